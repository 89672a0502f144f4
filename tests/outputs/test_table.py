"""Tables: numbers as people read them, CSV as machines do."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco.outputs.document import number, to_json
from tco.outputs.table import Table, csv_cell, fitted, folded, significant, to_csv, to_markdown, to_text

TABLE = Table(("part", "USD"), [("a|b", "1,234"), ("[bold]", "~5")], "Title [x]", ["above"], ["below"], "lr")


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
        (1e15, 4, "1.000e+15"),
        (64, 6, "64"),
        (11520, 6, "11,520"),
        (0.82701740, 5, "0.82702"),
    ],
)
def test_significant(value, digits, text):
    assert significant(value, digits) == text


@given(st.floats(1e-300, 1e300), st.integers(2, 8))
def test_significant_loses_no_more_than_its_digits(value, digits):
    shown = float(significant(value, digits).replace(",", ""))
    assert math.isclose(shown, value, rel_tol=0.51 * 10 ** (1 - digits))


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


def test_a_line_breaks_between_words_and_a_word_only_where_it_is_wider_than_its_room():
    assert folded("one two three", 8) == ["one two", "three"]
    assert folded("cost sourced/estimated/assumed", 17) == ["cost", "sourced/estimated", "/assumed"]
    assert folded("  indented/path", 20) == ["  indented/path"]
    assert folded("  indented/path", 10) == ["  indented", "/path"]
    assert folded("two\nlines", None) == ["two", "lines"]


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)), st.integers(1, 30))
def test_folding_loses_nothing_but_spaces(text, width):
    lines = folded(text, width)
    assert max(map(len, lines)) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(8, 200))
def test_columns_share_their_room(widths, room):
    cut = fitted(widths, room)
    assert sum(cut) <= max(room, len(widths))
    assert all(new == old or new == max(cut) for new, old in zip(cut, widths, strict=True))
    assert cut == widths or sum(cut) + sum(old > new for new, old in zip(cut, widths, strict=True)) > room


def test_a_row_is_as_tall_as_its_tallest_cell():
    assert to_text(Table(("a", "b"), [("one two", "5")], align="lr"), 7) == "a     b\n" + "─" * 7 + "\none   5\ntwo\n"


def test_a_pipe_is_never_folded():
    assert "x" * 300 in to_text(Table(("a",), [("x" * 300,)]), None)


def test_markdown():
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
def test_csv_cell(cell, text):
    assert csv_cell(cell) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_csv_numbers_are_whole(value):
    assert float(csv_cell(value)) == value


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs", "Cc"))), min_size=1, max_size=5))
def test_csv_texts_come_back(cells):
    text = to_csv([f"c{n}" for n in range(len(cells))], [cells])
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert [cell.removeprefix("'") if cell[:2] in ("'=", "'+", "'-", "'@") else cell for cell in rows[1]] == cells
    assert "\r" not in text


@pytest.mark.parametrize(("value", "made"), [(None, None), (2.0, 2), (2.5, 2.5), (1e300, 1e300), (-3.0, -3)])
def test_json_numbers(value, made):
    assert number(value) == made
    assert type(number(value)) is type(made)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_json_refuses_what_is_no_number(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json({"a": value})
