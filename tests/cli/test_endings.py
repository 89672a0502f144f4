"""The ending of an output names its form; the shell completes what the catalogue knows."""

from __future__ import annotations

import csv
import json

import pytest

from tests.cli import ENVIRONMENT, tco


def test_an_ending_is_a_form(tmp_path):
    for name, read in (
        ("a.csv", lambda text: list(csv.DictReader(text.splitlines()))),
        ("a.json", json.loads),
        ("A.JSON", json.loads),
    ):
        assert tco("compare", "--no-range", "-o", tmp_path / name).exit_code == 0
        assert read((tmp_path / name).read_text(encoding="utf-8"))
    for name, form in (("a.txt", "table"), ("a.md", "md"), ("plain", "table")):
        assert tco("price", "gb200-nvl72", "--output", tmp_path / name).exit_code == 0
        assert (tmp_path / name).read_text(encoding="utf-8") == tco(
            "price", "gb200-nvl72", "--format", form
        ).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "a.xlsx"), "`tco export SCENARIO -o FILE.xlsx` writes it"),
        (("--output", "a.docx"), "unknown ending '.docx', expected one of .csv, .json, .md, .txt"),
        (("--output", "a.csv", "--format", "json"), "ends in '.csv', and --format is json"),
    ],
)
def test_an_ending_without_a_form_is_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = tco("compare", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tco price trn3-nl7", ["trn3-nl72x2"]),
        ("tco explain gb200-nvl72 usd_per_million_out", ["usd_per_million_output_tokens"]),
        ("tco price x --set site.pue", ["site.pue=", "site.pue_peak="]),
        ("tco kernel h100-s", ["h100-sxm"]),
    ],
)
def test_the_shell_completes(words, expected, monkeypatch):
    from typer.testing import CliRunner

    from tests.cli import app

    shell = {
        **ENVIRONMENT,
        "_TCO_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    assert CliRunner().invoke(app, [], env=shell, prog_name="tco").stdout.split() == expected
