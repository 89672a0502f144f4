"""Names, ranges and statements of the catalogue on rows that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.catalog import accuracy, overlay, statements
from tco.catalog.catalogue import LONGEST_NAME, is_name
from tco.catalog.halls import hall_cooling
from tco.catalog.labels import count_with_noun
from tco.catalog.system_tree import expand
from tco.catalog.templates import refuse_taken
from tco.core.provenance import Input


# ---------------------------------------------------------------- names
@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("", False),
        ("a", True),
        ("a" * LONGEST_NAME, True),
        ("a" * (LONGEST_NAME + 1), False),
        ("a/b", False),
        ("a\\b", False),
        ("a\0", False),
        (".", False),
        ("..", False),
        ("a.b", True),
    ],
)
def test_a_name_is_that_of_a_file(name, is_valid):
    assert is_name(name) is is_valid


def test_a_new_name_is_of_letters_and_not_taken():
    refuse_taken("my-rack.2_b", ["other"], "system")
    for name in ("my rack", "..", "a/b", "räck"):
        with pytest.raises(DataError, match="is no name for a system"):
            refuse_taken(name, [], "system")
    with pytest.raises(DataError, match="my-rack is a system already"):
        refuse_taken("my-rack", ["my-rack"], "system")


def test_a_count_has_a_plural_but_of_one():
    assert [count_with_noun(number, "rack") for number in (0, 1, 2)] == [
        "0 racks",
        "1 rack",
        "2 racks",
    ]


# ---------------------------------------------------------------- statements
@pytest.mark.parametrize(
    ("figure", "low", "high", "lies"),
    [
        (2.0, 1.0, 3.0, True),
        (1.0, 1.0, 3.0, True),
        (3.0, 1.0, 3.0, True),
        (0.9, 1.0, 3.0, False),
        (3.1, 1.0, 3.0, False),
        (3.0 * (1 + 1e-15), 1.0, 3.0, True),
        (None, 1.0, 3.0, None),
        (2.0, None, 3.0, None),
        (2.0, 1.0, None, None),
    ],
)
def test_a_figure_lies_within_a_range_or_at_its_ends(figure, low, high, lies):
    assert statements.lies_within(figure, low, high) is lies


# ---------------------------------------------------------------- own rows
USER_ROW = SimpleNamespace(where="own.csv:3")


def test_the_first_fault_of_own_rows_is_told_and_the_rest_counted(monkeypatch):
    paths = []
    monkeypatch.setattr(overlay, "own_rows", lambda _: [(path, USER_ROW) for path in paths])

    def read_row(_, path):
        if path.startswith("bad"):
            raise DataError(f"{path}: no number")

    monkeypatch.setattr(overlay, "read_row", read_row)
    overlay.check_own_rows(None)
    for fault_count, words in ((1, "^bad1: no number$"), (3, r"^bad1: no number \(and 2 more")):
        paths[:] = ["good", *(f"bad{number + 1}" for number in range(fault_count))]
        with pytest.raises(DataError, match=words):
            overlay.check_own_rows(None)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (2.0 * overlay.FARTHEST, None),
        (1.0 / overlay.FARTHEST, None),
        (4.0 * overlay.FARTHEST, f"{2 * overlay.FARTHEST:,.3g} times above"),
        (0.25 / overlay.FARTHEST, f"{4 * overlay.FARTHEST:,.3g} times below"),
        (0.0, ", below the shipped range, 1 to 2"),
        (-1.0, ", below the shipped range, 1 to 2"),
    ],
)
def test_a_value_far_outside_the_shipped_range_is_noted(value, words):
    own_input = Input("parts.a.price", value, "USD", where="own.csv:3")
    notes = overlay._range_note(own_input, 1.0, 2.0)
    assert len(notes) == (words is not None)
    assert all(words in note and "(own.csv:3)" in note for note in notes)


# ---------------------------------------------------------------- halls and accuracy
WITH_HALLS = {"halls": {"air": {}, "liquid": {}}}


@pytest.mark.parametrize(
    ("stated", "documents", "rack_cooling", "cooling"),
    [
        ("air", [WITH_HALLS], "liquid", "air"),
        (None, [WITH_HALLS], "liquid", "liquid"),
        (None, [WITH_HALLS], "immersion", "air"),
        (None, [{}], "liquid", None),
        (None, [{"cooling": "air"}, WITH_HALLS, {"cooling": "liquid"}], "air", "liquid"),
    ],
)
def test_a_hall_is_stated_or_picked_or_that_of_the_rack(stated, documents, rack_cooling, cooling):
    assert hall_cooling(documents, rack_cooling, stated) == cooling


def test_the_order_of_a_kind_is_told_from_its_own_row(monkeypatch):
    rows = [
        {"kind": kind, "right": right, "ratio_error": "0.2", "pairs": "1200"}
        for kind, right in (("training", "0.5"), ("inference", "0.875"))
    ]
    monkeypatch.setattr(accuracy, "accuracy_rows", lambda *_: rows)
    assert "right in 88 % of 1,200 pairs" in accuracy.order_of(None, "inference")
    assert "right in 50 %" in accuracy.order_of(None, "training")
    assert accuracy.order_of(None, "kernels") == ""


# ---------------------------------------------------------------- trees
def test_quantities_multiply_down_the_tree():
    tree = {"world": {"rack": 2}, "rack": {"tray": 9, "switch": 0}, "tray": {"chip": 4, "fan": 3}}
    quantities = {leaf[0]: (leaf[1], leaf[2], leaf[3]) for leaf in expand(tree, "a.toml")}
    assert quantities == {
        "rack": ("rack", 2, ""),
        "rack/tray": ("tray", 18, "rack"),
        "rack/tray/chip": ("chip", 72, "rack/tray"),
        "rack/tray/fan": ("fan", 54, "rack/tray"),
    }


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"rack": {}}, "the assembly 'world' is missing"),
        ({"world": {"rack": 1}, "rack": {"world": 1}}, "world contains itself"),
        ({"world": {"rack": -1}}, "world contains -1 of rack, expected a count"),
    ],
)
def test_a_tree_that_cannot_be_counted_is_refused(tree, words):
    with pytest.raises(DataError, match=words):
        list(expand(tree, "a.toml"))
