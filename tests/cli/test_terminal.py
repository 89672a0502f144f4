"""On a terminal a table keeps to its width; in a pipe it never loses a digit."""

from __future__ import annotations

import re

import pytest

from tco.cli.output import screen_width
from tests.cli import output, tco


class Screen:
    """A stdout that is a terminal."""

    def isatty(self):
        return True

    def fileno(self):
        return 1


def test_a_pipe_has_the_width_that_columns_states(monkeypatch):
    assert screen_width() is None
    unbroken, folded_text = (
        tco("price", "gb200-nvl72", **stated).stdout for stated in ({}, {"COLUMNS": "80"})
    )
    monkeypatch.setenv("COLUMNS", "80")
    assert screen_width() == 80
    widths = [max(map(len, text.splitlines())) for text in (folded_text, unbroken)]
    assert widths[0] <= 80 < widths[1]


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("132", 132)])
def test_a_terminal_is_as_wide_as_it_says(columns, width, monkeypatch):
    monkeypatch.setattr(output.sys, "stdout", Screen())
    monkeypatch.setenv("COLUMNS", columns)
    assert screen_width() == width


def test_width_is_read_from_a_terminal_without_columns_in_the_environment(monkeypatch):
    monkeypatch.setattr(output.sys, "stdout", Screen())
    monkeypatch.setattr(output.os, "get_terminal_size", lambda _: output.os.terminal_size((97, 20)))
    assert screen_width() == 97


@pytest.mark.parametrize(
    "arguments",
    [("compare",), ("price", "trn3-nl72x2"), ("bom", "trn3-nl72x2"), ("parts", "show", "trn3")],
    ids=" ".join,
)
def test_eighty_columns(arguments, monkeypatch):
    monkeypatch.setattr(output, "screen_width", lambda: 80)
    text = tco(*arguments).stdout
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["0", ""])
def test_a_terminal_without_columns_is_as_wide_as_usual(columns, monkeypatch):
    monkeypatch.setattr(output.sys, "stdout", Screen())
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(output.os, "get_terminal_size", lambda _: output.os.terminal_size((0, 0)))
    assert screen_width() == 80


# ---------------------------------------------------------------- colour
COMPARE = ("compare", "gb200-nvl72", "trn3-nl72x2", "--no-range")
COLOURED = {"NO_COLOR": "", "TERM": "xterm"}
COLOUR = re.compile("\x1b\\[[0-9;]*m")


def test_a_terminal_shows_the_pick_in_bold_and_no_other_text(monkeypatch):
    monkeypatch.setattr(output, "screen_width", lambda: 80)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    coloured = tco(*COMPARE, **COLOURED).stdout
    assert "\x1b[1mgb200-nvl72\x1b[0m" in coloured
    assert COLOUR.sub("", coloured) == tco(*COMPARE, NO_COLOR="1").stdout


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_has_none(environment, monkeypatch):
    monkeypatch.setattr(output, "screen_width", lambda: 80)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    assert "\x1b" not in tco(*COMPARE, **COLOURED | environment).stdout


def test_pipes_and_files_have_no_colour(tmp_path, monkeypatch):
    assert "\x1b" not in tco(*COMPARE, **COLOURED).stdout
    monkeypatch.setattr(output, "screen_width", lambda: 80)
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    tco(*COMPARE, "-o", tmp_path / "answer.txt", **COLOURED)
    assert "\x1b" not in (tmp_path / "answer.txt").read_text(encoding="utf-8")


def test_a_pipe_keeps_lines_whole():
    text = tco("parts", "show", "trn3").stdout
    assert max(map(len, text.splitlines())) > 80
