"""Changed metrics between two results, and the causes of each change."""

from __future__ import annotations

import copy
import json

import pytest

from tco import diff, evaluate
from tests.cli import document
from tests.scenario_helpers import again, result

NAME = "trn3-nl72x2"


def causes(before, after):
    return diff(before, after).causes


@pytest.fixture(scope="module")
def state():
    """A result as its document keeps it."""
    return document("price", NAME)["state"]


@pytest.fixture
def diff_after_change(tmp_path, state):
    """Return a function that compares a state with itself after a change by hand."""

    def diff_after(change):
        changed = copy.deepcopy(state)
        change(changed)
        paths = tmp_path / "before.json", tmp_path / "after.json"
        for path, written_state in zip(paths, (state, changed), strict=True):
            path.write_text(json.dumps({"state": written_state}))
        return diff(*paths)

    return diff_after


def test_nothing_moves_between_equal_states():
    assert diff(result(NAME), result(NAME)) == ([], [])


def test_a_dearer_kilowatt_hour_is_named():
    before, after = again(NAME), again(NAME, site__electricity_price="0.3 USD/kWh")
    (cause,) = causes(before, after)
    assert (cause.kind, cause.path, cause.unit) == ("price", "site.electricity_price", "USD/kWh")
    assert (cause.old, cause.new) == (0.0861, 0.3)
    metric_changes = {move.metric: move.change for move in diff(before, after).moves}
    assert metric_changes["tco_usd_per_chip_hour"] > 0
    assert "it_power_w_per_chip" not in metric_changes


def test_another_variant_is_a_change_of_quantities(catalogue):
    before, after = (
        evaluate(NAME, catalogue=catalogue, variant={"switch": kind}) for kind in ("gen1", "gen2")
    )
    kinds = {cause.kind for cause in causes(before, after)}
    assert "quantity" in kinds
    quantities = {
        cause.path.rpartition("/")[2] for cause in causes(before, after) if cause.kind == "quantity"
    }
    assert quantities == {"scorpio-x-160", "scorpio-x-320"}


def test_another_system_is_the_first_cause():
    before, after = result(NAME), result("gb200-nvl72")
    assert causes(before, after)[0][:4] == ("assumption", "system", NAME, "gb200-nvl72")


def test_a_value_in_another_unit_is_the_same_value():
    before, same, dearer = (
        again(NAME, site__electricity_price=text)
        for text in ("0.0861 USD/kWh", "86.1 USD/MWh", "90 USD/MWh")
    )
    assert causes(before, same) == []
    (cause,) = causes(before, dearer)
    assert (cause.old, cause.new, cause.unit) == (pytest.approx(86.1, rel=1e-12), 90, "USD/MWh")


@pytest.mark.parametrize(
    ("factor", "count"), [(1.0, 0), (1 + 1e-10, 0), (1 + 1e-8, 1), (1 - 1e-8, 1)]
)
def test_threshold_applies_to_increase_and_decrease(diff_after_change, factor, count):
    difference = diff_after_change(
        lambda state: state["metrics"].update(capex_usd=state["metrics"]["capex_usd"] * factor)
    )
    assert len(difference.moves) == count


def test_metric_that_appears_or_disappears_is_a_change(diff_after_change):
    (came,) = diff_after_change(lambda state: state["metrics"].update(step_s=1.0)).moves
    (gone,) = diff_after_change(lambda state: state["metrics"].pop("chips")).moves
    assert (came.metric, came.old, came.new, came.change) == ("step_s", None, 1.0, None)
    assert (gone.metric, gone.old, gone.new, gone.change) == ("chips", 144, None, None)


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("parts.trn3.wafer_price", "9000 USD", "price"),
        ("shares.astera.price", "9 USD/share", "price"),
        ("site.pue", "1.4", "assumption"),
        ("terms.life", "4 year", "assumption"),
    ],
)
def test_cause_is_a_price_or_an_assumption(path, text, kind):
    assert [(cause.kind, cause.path) for cause in diff(NAME, NAME, {path: text}).causes] == [
        (kind, path)
    ]


def test_words_of_a_cause():
    before, after = again(NAME), again(NAME, terms__rate="0.3")
    (cause,) = causes(before, after)
    assert (
        cause.words()
        == f"assumption terms.rate: {result(NAME).inputs['terms.rate'].value:g} -> 0.3"
    )
    before, after = again(NAME), again(NAME, parts__trn3__tdp="1.1 kW")
    (cause,) = causes(before, after)
    assert cause.words() == "assumption parts.trn3.tdp: 1 -> 1.1 kW"


def test_a_changed_formula_is_named_beside_what_else_differs(diff_after_change):
    def other(state):
        state["formulas"]["used_chip_hour"] = "another"
        state["inputs"]["site.electricity_price"] = [0.3, "USD/kWh"]

    difference_causes = diff_after_change(other).causes
    assert [cause.words() for cause in difference_causes if cause.kind == "formula"] == [
        "program changed: formula used_chip_hour is another"
    ]
    assert [cause.path for cause in difference_causes] == [
        "site.electricity_price",
        "used_chip_hour",
    ]


def test_formulas_of_one_side_count_where_nothing_else_differs(diff_after_change):
    def renamed(state):
        state["formulas"]["split_hour"] = state["formulas"].pop("used_chip_hour")

    def stripped(state):
        renamed(state)
        state["inputs"] = {}

    assert [cause.words() for cause in diff_after_change(renamed).causes] == [
        "program changed: formula split_hour is new",
        "program changed: formula used_chip_hour is gone",
    ]
    assert {cause.kind for cause in diff_after_change(stripped).causes}.isdisjoint({"formula"})


def test_a_state_that_knows_no_formulas_blames_none(diff_after_change):
    assert diff_after_change(lambda state: state.update(formulas={})).causes == []
