"""Names, ranges and statements of the catalogue on rows that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.catalog import accuracy, overlay, statements, system_tree
from tco.catalog.catalogue import LONGEST_NAME, Catalogue, is_name
from tco.catalog.halls import hall_cooling
from tco.catalog.labels import count_with_noun
from tco.catalog.schema import FigureSchema
from tco.catalog.system_tree import expand
from tco.catalog.templates import refuse_taken, scenario_draft
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


def test_excess_of_a_computed_figure_is_its_share_above_the_stated_one():
    assert statements.relative_excess(3.0, 2.0) == 0.5
    assert statements.relative_excess(1.0, 2.0) == -0.5
    assert statements.relative_excess(None, 2.0) is None
    assert statements.relative_excess(3.0, None) is None


def test_statement_of_a_range_without_a_value_takes_its_middle():
    statement = statements.read_statement({"low": "2", "high": "5"}, "a.csv:2")
    assert statement == statements.Statement(3.5, None, 2.0, 5.0)
    stated = statements.read_statement({"value": "3", "low": "2", "high": "5"}, "a.csv:2")
    assert stated == statements.Statement(3.0, None, 2.0, 5.0)


def test_published_rows_of_a_file_are_counted_from_one_and_name_its_system():
    document = {"system": "rack", "published": [{"value": 1}, {"value": 2, "system": "other"}]}
    catalogue = SimpleNamespace(published={"a": "a.toml"}, toml=lambda _: document)
    assert list(statements.published_rows(catalogue, "a")) == [
        ("a.toml:published 1", {"system": "rack", "value": 1}),
        ("a.toml:published 2", {"system": "other", "value": 2}),
    ]


@pytest.mark.parametrize(
    ("figure", "is_valid"),
    [
        ({"value": 1.0, "tolerance": 0.10}, True),
        ({"value": 1.0}, False),
        ({"tolerance": 0.10}, False),
        ({"value": 1.0, "tolerance": 0.11}, False),
        ({"value": 1.0, "tolerance": 0.10, "reason": "unknown"}, False),
        ({"kind": "independent", "low": 1.0, "high": 2.0}, True),
    ],
)
def test_figure_of_our_own_arithmetic_needs_a_value_within_a_tenth(figure, is_valid):
    figure = {"kind": "arithmetic", "metric": "price", "source": "vendor", **figure}
    if is_valid:
        assert FigureSchema(**figure).metric == "price"
    else:
        with pytest.raises(ValueError, match=r"a value and a tolerance of at most 0\.10"):
            FigureSchema(**figure)


@pytest.mark.parametrize(
    ("publisher", "title", "name"), [("Vendor", "Sheet", "Vendor"), ("", "Sheet", "Sheet")]
)
def test_publisher_of_a_source_without_one_is_its_title(publisher, title, name):
    source = SimpleNamespace(publisher=publisher, title=title)
    catalogue = SimpleNamespace(sources={"sheet": source})
    assert Catalogue.publisher(catalogue, "sheet") == name
    assert Catalogue.publisher(catalogue, "unknown") == "unknown"


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
        (2.0 * overlay.LARGEST_FACTOR, None),
        (1.0 / overlay.LARGEST_FACTOR, None),
        (4.0 * overlay.LARGEST_FACTOR, f"{2 * overlay.LARGEST_FACTOR:,.3g} times above"),
        (0.25 / overlay.LARGEST_FACTOR, f"{4 * overlay.LARGEST_FACTOR:,.3g} times below"),
        (0.0, ", below the shipped range, 1 to 2 USD;"),
        (-1.0, ", below the shipped range, 1 to 2 USD;"),
    ],
)
def test_a_value_far_outside_the_shipped_range_is_noted(value, words):
    own_input = Input("parts.a.price", value, "USD", where="own.csv:3")
    notes = overlay._range_note(own_input, 1.0, 2.0)
    assert len(notes) == (words is not None)
    assert all(words in note and "(own.csv:3)" in note for note in notes)


@pytest.mark.parametrize(
    ("shipped_attributes", "stands_alone"),
    [
        ({"price", "bandwidth", "ports"}, True),
        ({"price", "bandwidth", "ports", "radix"}, False),
        ({"price", "bandwidth"}, False),
        ({"price", "power", "own_price"}, False),
    ],
)
def test_own_part_that_nothing_names_stands_alone_with_the_attributes_of_a_shipped_one(
    shipped_attributes, stands_alone
):
    own_attributes = {"price", "power", "own_price", "bandwidth", "ports"}
    parts = {"own": dict.fromkeys(own_attributes), "shipped": dict.fromkeys(shipped_attributes)}
    catalogue = SimpleNamespace(parts=parts)
    assert overlay._can_be_asked_for(catalogue, "parts", "own", ["shipped"]) is stands_alone


def test_draft_of_a_scenario_states_documents_variants_and_settings_line_by_line():
    draft = scenario_draft(
        "mine", "Rack", "rack-72", {"site": "hall"}, {"nic": "fast"}, {"parts.a.price": "5 USD"}
    )
    assert draft == (
        'title = "mine, as Rack"\nsystem = "rack-72"\nsite = "hall"\n\n[variant]\nnic = "fast"\n\n'
        '[set]  # any input, with its unit: tco inputs rack-72\n"parts.a.price" = "5 USD"\n'
    )


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


@pytest.mark.parametrize(("run_count", "anchors"), [(19, ("relative",)), (20, ()), (21, ())])
def test_runs_of_a_relative_stand_in_for_fewer_than_twenty_of_a_chip(
    monkeypatch, run_count, anchors
):
    common = {"kind": "training", "median_ape": "0.1", "left_out": ""}
    rows = [
        {"part": "chip", "n": str(run_count), **common},
        {"part": "relative", "n": "50", **common},
        {"part": "stranger", "n": "60", **common},
    ]
    monkeypatch.setattr(accuracy, "accuracy_rows", lambda *_: rows)
    standing = accuracy._chip_standing(None, "training", "chip", ["chip", "relative"])
    assert standing.validated_rows == run_count
    assert standing.anchors == anchors
    assert standing.anchored_rows == 50 * len(anchors)


# ---------------------------------------------------------------- trees
def test_tree_of_the_most_places_is_read_and_a_larger_one_refused(monkeypatch):
    monkeypatch.setattr(system_tree, "MOST_PLACES", 3)
    assert len(list(expand({"world": {"a": 1, "b": 1}, "a": {"c": 1}}, "a.toml"))) == 3
    with pytest.raises(DataError, match="more than 3 places"):
        list(expand({"world": {"a": 1, "b": 1}, "a": {"c": 1, "d": 1}}, "a.toml"))


def test_alternative_adds_to_the_same_part_that_stands_beside_its_slot():
    tree = {"tray": {"slot": 2, "a": 3, "fan": 1}, "rack": {"tray": 9}}
    candidates = {"a": 4, "b": 1}
    of_first = system_tree._substitute_alternative(tree, "slot", candidates, None, "a.toml")
    assert of_first == {"tray": {"a": 11, "fan": 1}, "rack": {"tray": 9}}
    of_second = system_tree._substitute_alternative(tree, "slot", candidates, "b", "a.toml")
    assert of_second == {"tray": {"b": 2, "a": 3, "fan": 1}, "rack": {"tray": 9}}


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
