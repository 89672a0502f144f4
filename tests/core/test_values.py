"""One mapping gives every quantity: it resolves, takes settings, derives and checks bounds."""

from __future__ import annotations

import pytest

from tco import DataError
from tco.core.provenance import Given, check_bounds, worst
from tests.registry import FORMULA
from tests.scenario_helpers import KINDS, Input, Values, as_traced, recording

SOURCED = {"analyst", "derived", "filing", "measured", "press", "vendor"}

CATALOGUE = {
    "a.x": Input("a.x", 2.0, "USD", 1.0, 3.0, kind="vendor", source="s"),
    "a.y": Input("a.y", 5.0, "W", kind="assumed", source="s"),
}


def resolve(path):
    if path not in CATALOGUE:
        raise DataError(f"unknown {path}")
    return CATALOGUE[path]


def values(setting_texts=None, **options):
    return Values(
        resolve,
        given_values={path: Given(text) for path, text in (setting_texts or {}).items()},
        **options,
    )


def test_a_value_is_resolved_once_and_remembered():
    input_values = values()
    assert input_values["a.x"] == 2
    assert list(input_values.inputs) == ["a.x"]
    assert input_values.input("a.x") is CATALOGUE["a.x"]


def test_a_setting_is_converted_to_the_unit_of_its_path():
    input_values = values({"a.x": "0.5 kUSD"})
    assert input_values["a.x"] == 500
    set_input = input_values.input("a.x")
    assert (
        set_input.unit,
        set_input.low,
        set_input.high,
        set_input.stated_quantity,
        set_input.kind,
    ) == (
        "USD",
        500,
        500,
        (0.5, "kUSD"),
        "assumed",
    )


def test_a_percentage_is_a_pure_number():
    CATALOGUE["a.share"] = Input("a.share", 0.5, "", kind="vendor", source="s")
    assert values({"a.share": "25%"})["a.share"] == 0.25


@pytest.mark.parametrize("text", ["5", "5 W", "nan USD", "five USD", ""])
def test_a_bad_setting_names_path_and_text(text):
    with pytest.raises(DataError, match=f"^a.x={text}: "):
        values({"a.x": text})["a.x"]


def test_a_setting_keeps_to_its_bounds():
    with pytest.raises(DataError, match=r"a\.x: value -1 USD is outside 0 to 10 USD"):
        values({"a.x": "-1 USD"}, bounds=lambda _: (0, 10))["a.x"]


def test_a_derived_value_is_computed():
    input_values = values()
    assert input_values.derived("a.sum", "USD", lambda: input_values["a.x"] + 1) == 3
    assert input_values.derived_units == {"a.sum": "USD"}


def test_a_derived_value_that_is_set_is_not_computed():
    def fail():
        raise AssertionError

    input_values = values({"a.sum": "7 USD"})
    assert input_values.derived("a.sum", "USD", fail) == 7
    assert input_values.derived("a.sum", "USD", fail) == 7
    assert "a.x" not in input_values.inputs


def test_a_derived_value_that_is_set_keeps_its_unit():
    with pytest.raises(DataError, match=r"a\.sum=7 W: "):
        values({"a.sum": "7 W"}).derived("a.sum", "USD", lambda: 0)


def test_check_given_lists_settings_without_effect_and_refuses_unknown_paths():
    input_values = values({"a.x": "1 USD", "a.y": "1 W"})
    assert input_values["a.x"] == 1
    assert input_values.check_given(lambda path: path == "a.y") == ["a.y"]
    with pytest.raises(DataError, match=r"--set: unknown input path 'a\.y'"):
        input_values.check_given(lambda _: False)


def test_the_traced_reading_makes_leaves_with_paths():
    with recording() as trace:
        input_values = Values(resolve, as_traced(trace))
        leaf = input_values["a.x"].node
        assert input_values["a.x"].node is leaf
    assert (leaf.value, leaf.unit, leaf.source, leaf.kind, leaf.path) == (
        2,
        "USD",
        "s",
        "vendor",
        "a.x",
    )


def test_a_traced_value_keeps_the_path_it_has():
    with recording() as trace:
        input_values = Values(resolve, as_traced(trace))
        derived_value = input_values.derived("a.sum", "USD", lambda: input_values["a.x"])
    assert derived_value.node.path == "a.x"


def test_a_traced_derived_value_is_named_by_its_path():
    with recording() as trace:
        input_values = Values(resolve, as_traced(trace))
        derived_value = input_values.derived(
            "a.twice", "USD", lambda: FORMULA.extended_price(input_values["a.x"], 2)
        )
    assert (derived_value.node.path, derived_value.value) == ("a.twice", 4)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (None, None, None),
        (1, 3, None),
        (2, 2, None),
        (3, None, "low 3 is above"),
        (None, 1, "high 1 is below"),
        (-1, None, "low -1 USD is outside"),
        (None, 11, "high 11 USD"),
    ],
)
def test_ranges_hold_their_value(low, high, message):
    ranged_input = Input("a.x", 2.0, "USD", low, high, where="file:3")
    if message is None:
        assert check_bounds(ranged_input, 0, 10) is ranged_input
    else:
        with pytest.raises(DataError, match=f"^file:3: a.x: {message}"):
            check_bounds(ranged_input, 0, 10)


def test_kinds_from_firmest_to_weakest():
    assert worst(["measured", "vendor"]) == "vendor"
    assert worst(["estimate", "measured", "assumed"]) == "assumed"
    assert worst([]) == "derived"
    assert KINDS.index("derived") == len(SOURCED) - 1
    assert {"estimate", "assumed"} == set(KINDS) - SOURCED


@pytest.mark.parametrize(
    ("value", "unit", "hinted"),
    [(8.0, "ratio", True), (8.0, "", False), (120.0, "ratio", False), (-8.0, "ratio", False)],
)
def test_a_share_above_one_is_told_how_per_cent_are_written(value, unit, hinted):
    with pytest.raises(DataError) as caught:
        check_bounds(Input("terms.rate", value, unit), 0, 1)
    assert ("; per cent are written '8%'" in str(caught.value)) == hinted
    assert "is outside 0" in str(caught.value)
