"""Every page of help has two examples, and each is a command line that runs."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from tco.cli.help import UNDER, examples, kept_examples
from tests.cli import tco
from tests.cli.test_help import ALL
from tests.cli.test_help import ROOT as TREE

ROOT = Path(__file__).parents[2]
LINES = sorted({line for words in ALL for line in examples(" ".join(("tco", *words)))})
# What takes seconds or minutes, a GPU or the whole of the catalogue, and is run by tests of its
# own: of these the command line alone is read.
LONG = (
    "tco plot",
    "tco report",
    "tco sweep",
    "tco measure",
    "tco calibrate",
    "tco claims",
    "tco scenarios check",
    "tco systems check",
    "tco frontier",
    "tco sensitivity",
    "tco solve",
    "tco uncertainty gb200-nvl72 --samples 1000000",
)
# some seconds of draws each
DRAWN = (
    "tco uncertainty",
    "tco compare h200-hgx8",
    "tco plot range",
    "tco report gb200",
    "tco service gb200-nvl72 trn3-nl72x2",
)
QUICK = [
    pytest.param(line, marks=pytest.mark.thorough) if line.startswith(DRAWN) else line
    for line in LINES
    if not line.startswith(LONG)
]


@pytest.mark.parametrize("words", ALL, ids=["-".join(words) or "tco" for words in ALL])
def test_every_help_page_has_two_examples(words):
    page_examples = examples(" ".join(("tco", *words)))
    assert len(set(page_examples)) == 2
    assert all(line.startswith(" ".join(("tco", *words))) for line in page_examples)
    help_text = tco(*words, "--help").stdout
    assert all(f"  {line}\n" in help_text for line in page_examples)


def test_every_example_is_of_an_existing_command():
    command_names = {" ".join(words) for words in ALL}
    assert kept_examples().keys() <= {f"tco {words}".strip() for words in command_names}
    assert UNDER.keys() <= command_names


@pytest.mark.parametrize("line", LINES)
def test_command_line_of_an_example_is_valid(line):
    words = shlex.split(line)[1:]
    group, context = TREE, None
    while hasattr(group, "commands"):
        context = group.make_context("tco", words[:1], parent=context, resilient_parsing=True)
        group, words = group.get_command(context, words[0]), words[1:]
        assert group is not None, line
    group.make_context(group.name, words, parent=context)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a user's data folder with a baseline and a few rows of measurements."""
    example_folder = tmp_path_factory.mktemp("examples")
    with gzip.open(ROOT / "data/measured/kernels.csv.gz", "rt") as rows:
        (example_folder / "kernels.csv").write_text("".join(next(rows) for _ in range(40)))
    rows = "".join(
        f"{row_index / 2},{500 + row_index % 7 * 300},{100 + row_index % 5 * 80}\n"
        for row_index in range(50)
    )
    (example_folder / "trace.csv").write_text(f"arrived,input_tokens,output_tokens\n{rows}")
    (example_folder / "hf").mkdir()
    (example_folder / "hf" / "config.json").write_text(
        (ROOT / "data/models/gemma-2-9b/config.json").read_text()
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(example_folder)
        assert tco("baseline", "save", "main").exit_code == 0
        (example_folder / "data" / "traffic").mkdir(parents=True)
    return example_folder


@pytest.mark.parametrize("line", QUICK)
def test_example_runs(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder))
    words = shlex.split(line)[1:]
    done = tco(
        *(word.replace("~", str(folder), 1) if word.startswith("~") else word for word in words)
    )
    assert done.exit_code == 0, done.stderr
