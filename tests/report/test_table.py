"""Tables: numbers as people read them, CSV as machines do."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco.report.record import to_json
from tco.report.table import PICK, TIE, csv_cell, starred_emphasis, to_markdown
from tco.report.terminal import to_text
from tests.report.helpers import Table, json_number_or_none, significant, to_csv

TABLE = Table(
    ("part", "USD"), [("a|b", "1,234"), ("[bold]", "~5")], "Title [x]", ["above"], ["below"], "lr"
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 4, ""),
        (0, 4, "0"),
        (1, 4, "1"),
        (1234.5, 4, "1,234"),
        (1235.5, 4, "1,236"),
        (123456.789, 4, "123,500"),
        (0.83349, 4, "0.8335"),
        (0.000123456, 4, "0.0001235"),
        (0.0000123456, 4, "1.235e-05"),
        (-2.5, 4, "-2.5"),
        (999.95, 4, "1,000"),
        (1e15, 4, "1e+15"),
        (64, 6, "64"),
        (11520, 6, "11,520"),
        (0.82701740, 5, "0.82702"),
    ],
)
def test_numbers_are_rounded_to_significant_digits(value, digits, text):
    assert significant(value, digits) == text


@given(st.floats(1e-300, 1e300), st.integers(2, 8))
def test_significant_loses_no_more_than_its_digits(value, digits):
    rounded_value = float(significant(value, digits).replace(",", ""))
    assert math.isclose(rounded_value, value, rel_tol=0.51 * 10 ** (1 - digits))


def test_text_keeps_brackets_and_every_digit():
    text = to_text(TABLE, None)
    assert "Title [x]" in text
    assert "[bold]" in text
    assert "1,234" in text
    assert text.index("above") < text.index("a|b") < text.index("below")


@pytest.mark.parametrize("width", [20, 40, 80])
def test_text_keeps_to_its_width(width):
    wide = Table(("a" * 30, "b" * 30), [("x" * 100, "12345678")], "T" * 90, [], [], "lr")
    text = to_text(wide, width)
    assert max(map(len, text.splitlines())) <= width
    assert "12345678" in text.replace("\n", "").replace(" ", "")


def test_a_pipe_is_never_folded():
    assert "x" * 300 in to_text(Table(("a",), [("x" * 300,)]), None)


def test_table_is_printed_as_markdown():
    lines = to_markdown(TABLE).splitlines()
    assert lines[0] == "### Title [x]"
    assert "| --- | ---: |" in lines
    assert "| a\\|b | 1,234 |" in lines


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, ""),
        (1.0, "1"),
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (2**53, "9007199254740992.0"),
        (True, "True"),
        ("text", "text"),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-x", "'-x"),
        ("@x", "'@x"),
    ],
)
def test_csv_cell_is_quoted_against_formulas(cell, text):
    assert csv_cell(cell) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_csv_numbers_are_whole(value):
    assert float(csv_cell(value)) == value


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs", "Cc"))), min_size=1, max_size=5))
def test_csv_texts_come_back(cells):
    text = to_csv([f"c{n}" for n in range(len(cells))], [cells])
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [
        cell.removeprefix("'") if cell[:2] in ("'=", "'+", "'-", "'@") else cell for cell in rows[1]
    ] == cells
    assert "\r" not in text


@pytest.mark.parametrize(
    ("value", "json_value"), [(None, None), (2.0, 2), (2.5, 2.5), (1e300, 1e300), (-3.0, -3)]
)
def test_json_numbers_keep_every_digit(value, json_value):
    assert json_number_or_none(value) == json_value
    assert type(json_number_or_none(value)) is type(json_value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_refuses_what_is_no_number(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"a": value})


@pytest.mark.parametrize(
    "character", ["\t", "\n", "\r", "\x1b[31m", "\x07", "\x9b", "\u2028", "\x7f"]
)
def test_control_characters_are_printed_as_blanks(character):
    """A name from a file breaks no row, colours no terminal and runs nothing in a spreadsheet."""
    text = f"{character}=1+1"
    table = Table(("part",), [(text,)], text, [text], [text], "l")
    first = character[0]
    assert first not in to_text(table, None).replace("\n", "")
    assert len(to_text(table, None).splitlines()) == len(
        to_text(Table(("part",), [("x",)], "x", ["x"], ["x"], "l"), None).splitlines()
    )
    assert len(to_markdown(table).splitlines()) == len(
        to_markdown(Table(("part",), [("x",)], "x", ["x"], ["x"], "l")).splitlines()
    )
    assert csv_cell(text).startswith("'") or not csv_cell(text).lstrip().startswith("=")
    assert first not in csv_cell(text)


def test_own_text_has_no_markup_and_breaks_no_line():
    """A tag, a link and the control that turns the direction of what follows."""
    table = Table(
        ("part",), [("<script>x</script>\u202e",)], "<b>mine</b> [a](javascript:b)", ["\u2066up"]
    )
    markdown_text = to_markdown(table)
    assert "### &lt;b>mine&lt;/b> [a]\\(javascript:b)" in markdown_text
    assert not set(markdown_text) & set("\u202e\u2066")
    assert "<script" not in markdown_text
    assert not set(to_text(table, 80)) & set("\u202e\u2066")


def test_stars_are_picks_or_ties_and_colour_moves_no_column():
    table_rows = [("20", "*1.00", "2.00"), ("30", "*1.00", "*1.01"), ("40", "3.00", "2.00")]
    emphasis = starred_emphasis(table_rows)
    assert emphasis == {(0, 1): PICK, (1, 1): TIE, (1, 2): TIE}
    table = Table(("speed", "a", "b"), table_rows, emphasis=emphasis)
    coloured, plain = to_text(table, 80, is_coloured=True), to_text(table, 80)
    pick, tie, neither = coloured.splitlines()[2:]
    assert "\x1b[1m*1.00\x1b[0m" in pick
    assert tie.count("\x1b[33m\x1b[1m*1.0") == 2
    assert "\x1b" not in neither + plain
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain
