"""On a terminal a table keeps to its width; in a pipe it never loses a digit."""

from __future__ import annotations

import pytest

from tco.cli.output import terminal_width
from tests.cli import output, tco


class Screen:
    """A stdout that is a terminal."""

    def isatty(self):
        return True

    def fileno(self):
        return 1


def test_a_pipe_has_no_width():
    assert terminal_width() is None


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("132", 132)])
def test_a_terminal_is_as_wide_as_it_says(columns, width, monkeypatch):
    monkeypatch.setattr(output.sys, "stdout", Screen())
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_width() == width


def test_a_terminal_that_says_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(output.sys, "stdout", Screen())
    monkeypatch.setattr(output.os, "get_terminal_size", lambda _: output.os.terminal_size((97, 20)))
    assert terminal_width() == 97


@pytest.mark.parametrize(
    "arguments",
    [("compare",), ("price", "trn3-nl72x2"), ("bom", "trn3-nl72x2"), ("parts", "show", "trn3")],
    ids=" ".join,
)
def test_eighty_columns(arguments, monkeypatch):
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    text = tco(*arguments).stdout
    assert max(map(len, text.splitlines())) <= 80


def test_a_pipe_keeps_lines_whole():
    text = tco("parts", "show", "trn3").stdout
    assert max(map(len, text.splitlines())) > 80
