"""Cached answers are complete, belong to this program and data, and are the same to the byte."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from tco.core.disk_cache import disk_cached, stamp
from tests.cli import tco


@pytest.fixture
def cached_comparison(tmp_path, monkeypatch):
    """Return the file of a cached comparison, a function that reads it, and its computations.

    The comparison takes no draws.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compute_calls = []

    def read():
        def make():
            compute_calls.append(1)
            return [{"p10": 0.73, "p90": 6.4, "reason": None}]

        stamp.cache_clear()  # a process of its own
        return disk_cached("a comparison", make)

    read()
    (file,) = (tmp_path / "tco").iterdir()
    return file, read, compute_calls


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "[]",
        lambda text: "null",
        lambda text: '{"a": 1}',
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("0.73", "0.00073"),
        lambda text: json.dumps(json.loads(text)["content"]),
        lambda text: "[" * 100_000,
    ],
)
def test_cached_file_that_another_program_changed_is_computed_anew(cached_comparison, spoil):
    file, read, compute_calls = cached_comparison
    before, text = read(), file.read_text()
    assert len(compute_calls) == 1
    file.write_text(spoil(text))
    assert read() == before
    assert (len(compute_calls), file.read_text()) == (2, text)


@pytest.mark.parametrize("folder", ["data", "scenarios"])
def test_edit_that_keeps_size_and_time_of_a_file_empties_the_cache(
    cached_comparison, tmp_path, monkeypatch, folder
):
    """Copies and checkouts may set a file's time back."""
    _, read, compute_calls = cached_comparison
    (tmp_path / "shipped").mkdir()
    price = tmp_path / "shipped" / "chips.csv"
    price.write_text("gb200-gpu,price,30059")
    monkeypatch.setattr(
        "tco.core.disk_cache."
        + {"data": "data_directory", "scenarios": "scenario_directory"}[folder],
        lambda: tmp_path / "shipped",
    )
    read(), read()
    assert len(compute_calls) == 2
    before = price.stat()
    price.write_text("gb200-gpu,price,34959")
    os.utime(price, ns=(before.st_atime_ns, before.st_mtime_ns))
    read(), read()
    assert len(compute_calls) == 3


@pytest.mark.parametrize("environment_change", ["numpy", "scipy", "pint", "processor", "switch"])
def test_change_of_libraries_or_instructions_empties_the_cache(
    cached_comparison, tmp_path, monkeypatch, environment_change
):
    """They round in the last digits."""
    _, read, compute_calls = cached_comparison
    if environment_change in ("numpy", "scipy", "pint"):
        (tmp_path / f"{environment_change}-0.0.dist-info").mkdir()
        monkeypatch.setattr(
            "tco.core.disk_cache.find_spec",
            lambda name: SimpleNamespace(origin=str(tmp_path / name / "__init__.py")),
        )
    elif environment_change == "processor":
        (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse2\n")
        monkeypatch.setattr("tco.core.disk_cache.PROCESSOR", tmp_path / "cpuinfo")
    else:
        monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", "X86_V4")
    read(), read()
    assert len(compute_calls) == 2


def plant(file, what, prize):
    """Put a pipe, a link or a file open to all at the path of a cached file."""
    file.unlink()
    if what == "pipe":
        os.mkfifo(file)
    elif what == "link":
        file.symlink_to(prize)
    else:
        file.write_text("[]")
        file.chmod(0o666)


@pytest.mark.parametrize("what", ["pipe", "link", "open to all"])
def test_cached_path_that_is_no_file_of_the_user_is_replaced_unread(
    cached_comparison, tmp_path, what
):
    file, read, compute_calls = cached_comparison
    text, prize = file.read_text(), tmp_path / "prize"
    prize.write_text(text)
    plant(file, what, prize)
    read(), read()
    assert len(compute_calls) == 2
    assert file.is_file()
    assert not file.is_symlink()
    assert (file.read_text(), prize.read_text()) == (text, text)


def test_cache_folder_that_others_may_write_to_keeps_nothing(cached_comparison):
    file, read, compute_calls = cached_comparison
    file.parent.chmod(0o777)
    read(), read()
    assert len(compute_calls) == 3


# ---------------------------------------------------------------- answers
WORDS = ("compare", "gb200-nvl72", "trn3-nl72x2", "--no-range")


@pytest.fixture
def evaluated_scenarios(tmp_path, monkeypatch):
    """Return the list of scenarios that were evaluated; the cache is empty at first."""
    from tco.evaluation import evaluation

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stamp.cache_clear()
    usual, evaluations = evaluation.evaluate_each, []

    def noted(*call_arguments, **how):
        evaluations.append(call_arguments[0])
        return usual(*call_arguments, **how)

    monkeypatch.setattr(evaluation, "evaluate_each", noted)
    return evaluations


@pytest.mark.parametrize("form", ["table", "csv", "json", "md"])
def test_answer_of_shipped_data_is_computed_once_and_printed_the_same(evaluated_scenarios, form):
    first_run, again = (tco(*WORDS, "--format", form) for _ in range(2))
    assert len(evaluated_scenarios) == 1
    assert (first_run.stdout, first_run.stderr) == (again.stdout, again.stderr)
    assert first_run.stdout
    assert first_run.stderr.startswith("note: ")
    assert tco(*WORDS, "--format", form, "--quiet").stderr == ""
    assert len(evaluated_scenarios) == 1


def test_each_command_line_has_a_cached_answer_of_its_own(evaluated_scenarios):
    words = ((), ("--full",), ("--speeds", "25"), ("--format", "csv"))
    answers = [tco(*WORDS, *more).stdout for more in words]
    assert len(set(answers)) == len(answers)
    before = len(evaluated_scenarios)
    assert [tco(*WORDS, *more).stdout for more in words] == answers
    assert len(evaluated_scenarios) == before


def test_answer_that_rests_on_user_data_is_computed_each_time(
    evaluated_scenarios, tmp_path, monkeypatch
):
    data_folder(tmp_path / "here" / "data")
    for own_words in (
        ("--set", "site.pue=1.3"),
        ("--data", str(tmp_path / "here" / "data")),
        ("--redact",),
    ):
        for _ in range(2):
            before = len(evaluated_scenarios)
            assert tco(*WORDS, *own_words).exit_code == 0
            assert len(evaluated_scenarios) > before
    monkeypatch.chdir(tmp_path / "here")
    assert tco(*WORDS).stdout == tco(*WORDS, "--data", str(tmp_path / "here" / "data")).stdout
    monkeypatch.chdir(tmp_path)
    assert tco(*WORDS).stdout != tco(*WORDS, "--data", str(tmp_path / "here" / "data")).stdout


def data_folder(folder):
    """Write a folder with a price of one's own."""
    (folder / "parts").mkdir(parents=True)
    header = "part,attribute,value,unit,low,high,as_of,kind,source,note,use"
    (folder / "parts" / "own.csv").write_text(
        f"{header}\nnitro-v6-400g,price,5000,USD,,,2025-12,vendor,semianalysis-trn3,,\n"
    )
