"""Kept answers: a command line is checked before one is looked up, and gets no other line's."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tco.comparison import curve
from tco.comparison.confidence import confidence_of
from tco.comparison.records import Confidence, ConfidenceRequest
from tco.core.disk_cache import cache_folder
from tco.evaluation.evaluation import evaluate_each
from tests.cli import app, tco
from tests.conftest import CACHE_PREFIX, ROOT

# A command line of each command that keeps answers, by the command's function.
COMMAND_LINES = {
    "compare": ("compare", "gb200-nvl72", "trn3-nl72x2", "--no-range"),
    "frontier": ("frontier", "h100-hgx8"),
    "uncertainty": ("uncertainty", "gb200-nvl72", "--samples", "8"),
    "price": ("price", "gb200-nvl72"),
    "perf": ("perf", "gb200-nvl72"),
    "explain": ("explain", "gb200-nvl72", "tco_usd_per_chip_hour"),
}
# The first is no value, the second is the default's text, the others fit few options.
VALUES = ("", "None", "nonsense", "-1")
# Options whose values turn out wrong where draws begin, or where the answer is written.
CHECKED_LATER = {"--workers", "--cluster", "--output"}


def keeping_functions() -> set[str]:
    """Return the functions of `tco.cli` that call `emit_kept`."""
    names = set()
    for path in (ROOT / "tco" / "cli").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and ".emit_kept(" in ast.unparse(node):
                names.add(node.name)
    return names


def invalid_lines(command_line: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return a command line with each option that takes a value, at each of `VALUES`."""
    command = typer.main.get_command(app).get_command(None, command_line[0])
    lines = []
    for parameter in command.params:
        if parameter.param_type_name == "option" and not parameter.is_flag:
            lines += [(*command_line, parameter.opts[0], value) for value in VALUES]
    return lines


def exit_code(line: tuple[str, ...]) -> int:
    return CliRunner().invoke(app, list(line)).exit_code


def test_each_command_that_keeps_answers_has_a_line_here():
    assert keeping_functions() == set(COMMAND_LINES)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(name, marks=pytest.mark.thorough if name in ("compare", "uncertainty") else ())
        for name in COMMAND_LINES
    ],
)
def test_invalid_option_exits_alike_before_and_after_an_answer_is_kept(
    function, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    lines = invalid_lines(COMMAND_LINES[function])
    assert len(lines) > 12
    cold = {}
    for number, line in enumerate(lines):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cold-{number}"))
        cold[line] = exit_code(line)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "warm"))
    assert tco(*COMMAND_LINES[function]).exit_code == 0
    assert {line: exit_code(line) for line in lines} == cold
    assert 2 in cold.values()


@pytest.mark.parametrize("function", COMMAND_LINES)
def test_line_that_is_wrong_in_itself_is_refused_before_answers_are_looked_up(
    function, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    lines = invalid_lines(COMMAND_LINES[function])
    wrong = [line for line in lines if exit_code(line) == 2 and not CHECKED_LATER & {*line}]

    def refuse(key, make):
        raise AssertionError(f"{key} was looked up")

    monkeypatch.setattr("tco.core.disk_cache.disk_cached", refuse)
    assert {line: exit_code(line) for line in wrong} == dict.fromkeys(wrong, 2)


def test_choice_called_none_is_drawn_and_not_taken_for_no_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    evaluations = evaluate_each(["gb200-nvl72"], None, {})
    choices_drawn = []

    def draw(evaluations, baseline, request):
        choices_drawn.append(request.choose)
        return Confidence([], [], [])

    monkeypatch.setattr(curve, "draw_confidence", draw)
    for choose in (None, "None", None, "None"):
        confidence_of(evaluations, "gb200-nvl72", ConfidenceRequest(choose=choose))
    assert choices_drawn == [None, "None"]


# ---------------------------------------------------------------- the cache of tests
def test_tests_keep_answers_in_a_folder_of_the_session():
    assert cache_folder().parent.name.startswith(CACHE_PREFIX)
    assert tco("price", "gb200-nvl72").exit_code == 0
    assert [*cache_folder().glob("*.json")]


def test_cache_of_the_user_is_neither_read_nor_written_by_tests(tmp_path):
    inner = f"{Path(__file__)}::test_tests_keep_answers_in_a_folder_of_the_session"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", inner]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout
    assert not (tmp_path / "tco").exists()
    assert not (tmp_path / ".cache").exists()
