"""What changed between two states, and why."""

from __future__ import annotations

import pytest

from tco import evaluate
from tco.studies.difference import causes, input_kind, moves, rounded
from tests.chain import again, result
from tests.studies.room import state_of

NAME = "trn3-nl72x2"


def test_nothing_moves_between_equal_states():
    state = state_of(result(NAME))
    assert moves(state, state) == []
    assert causes(state, state) == []


def test_a_dearer_kilowatt_hour_is_named():
    before, after = state_of(again(NAME)), state_of(again(NAME, site__electricity_price="0.3 USD/kWh"))
    (cause,) = causes(before, after)
    assert (cause.kind, cause.path, cause.unit) == ("price", "site.electricity_price", "USD/kWh")
    assert (cause.old, cause.new) == (0.0861, 0.3)
    moved = {move.metric: move.change for move in moves(before, after)}
    assert moved["tco_usd_per_chip_hour"] > 0
    assert "it_power_w_per_chip" not in moved


def test_another_variant_is_a_change_of_quantities(catalogue):
    before, after = (state_of(evaluate(NAME, catalogue=catalogue, variant={"switch": kind})) for kind in ("gen1", "gen2"))
    kinds = {cause.kind for cause in causes(before, after)}
    assert "quantity" in kinds
    quantities = {cause.path.rpartition("/")[2] for cause in causes(before, after) if cause.kind == "quantity"}
    assert quantities == {"scorpio-x-160", "scorpio-x-320"}


def test_another_system_is_the_first_cause():
    before, after = state_of(result(NAME)), state_of(result("gb200-nvl72"))
    assert causes(before, after)[0][:4] == ("assumption", "system", NAME, "gb200-nvl72")


def test_a_value_in_another_unit_is_the_same_value():
    before, same, other = (state_of(again(NAME, site__electricity_price=text)) for text in ("0.0861 USD/kWh", "86.1 USD/MWh", "90 USD/MWh"))
    assert causes(before, same) == []
    (cause,) = causes(before, other)
    assert (cause.old, cause.new, cause.unit) == (pytest.approx(86.1, rel=1e-12), 90, "USD/MWh")


def state(**metrics):
    return {"system": "x", "metrics": metrics, "texts": {}, "quantities": {}, "inputs": {}}


@pytest.mark.parametrize(("new", "count"), [(1.0, 0), (1 + 1e-10, 0), (1 + 1e-8, 1), (1 - 1e-8, 1)])
def test_the_threshold_holds_both_ways(new, count):
    assert len(moves(state(a=1.0), state(a=new), 1e-9)) == count


def test_a_metric_may_come_and_go():
    came, gone = moves(state(), state(a=1.0))[0], moves(state(a=1.0), state())[0]
    assert (came.old, came.new, came.change) == (None, 1.0, None)
    assert (gone.old, gone.new, gone.change) == (1.0, None, None)


def test_a_metric_that_was_zero_has_no_relative_change():
    assert moves(state(a=0.0), state(a=1.0))[0].change is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("parts.trn3.price", "price"),
        ("parts.trn3.wafer_price", "price"),
        ("shares.amd.price", "price"),
        ("site.pue", "assumption"),
        ("terms.life", "assumption"),
    ],
)
def test_prices_and_assumptions(path, kind):
    assert input_kind(path) == kind


def test_words_of_a_cause():
    before, after = state_of(again(NAME)), state_of(again(NAME, terms__rate="0.3"))
    (cause,) = causes(before, after)
    assert cause.words() == f"assumption terms.rate: {result(NAME).inputs['terms.rate'].value:g} -> 0.3"
    before, after = state_of(again(NAME)), state_of(again(NAME, parts__trn3__tdp="1.1 kW"))
    (cause,) = causes(before, after)
    assert cause.words() == "assumption parts.trn3.tdp: 1 -> 1.1 kW"


def test_states_keep_twelve_digits():
    assert rounded(1 / 3) == 0.333333333333
    assert rounded(123456789.123456789) == 123456789.123


def test_a_changed_formula_is_named_beside_what_else_differs():
    before, after = state_of(again(NAME)), state_of(again(NAME, site__electricity_price="0.3 USD/kWh"))
    after["formulas"]["used_chip_hour"] = "another"
    assert [cause.words() for cause in causes(before, after) if cause.kind == "formula"] == ["program changed: formula used_chip_hour is another"]
    assert [cause.path for cause in causes(before, after)] == ["site.electricity_price", "used_chip_hour"]


def test_formulas_of_one_side_count_where_nothing_else_differs():
    before, after = state_of(again(NAME)), state_of(again(NAME))
    after["formulas"]["split_hour"] = after["formulas"].pop("used_chip_hour")
    assert [cause.words() for cause in causes(before, after)] == [
        "program changed: formula split_hour is new",
        "program changed: formula used_chip_hour is gone",
    ]
    after["inputs"] = {}
    assert {cause.kind for cause in causes(before, after)}.isdisjoint({"formula"})


def test_a_state_that_knows_no_formulas_blames_none():
    before, after = state_of(again(NAME)), state_of(again(NAME))
    del before["formulas"]
    assert causes(before, after) == []
