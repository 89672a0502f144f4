"""Prices that change a pick: their values in closed form and the break-even of base cases."""

from __future__ import annotations

import numpy as np
import pytest

from tco.comparison.turning_points import Priced, is_price, price_turns
from tco.evaluation.side_by_side import nearest_speed
from tco.scenario.beliefs import Dice, Range
from tests.catalogue import CATALOGUE
from tests.cli import document, tco

GB200, MI450X = "gb200-nvl72", "mi450x-ualoe72"
PATH = "parts.mi450x.price"


def span_of(value, low, high, path=PATH):
    """Return a log-normal range of a price."""
    return Range(path, low, value, high, "USD", 0.0, 1e9, False, None, path)


@pytest.mark.parametrize("rival_cost", [80.0, 130.0])
def test_pick_changes_at_the_price_that_equals_the_rivals_cost(rival_cost):
    """Mean regrets are equal where the median price is the rival's cost.

    Prices are log-normal, and each deviate has its opposite.
    """
    dice, span = Dice(CATALOGUE, 0, 0, 512), span_of(100.0, 50.0, 200.0)
    prices = span.quantile(dice.correlated_deviates(span))
    racks = [
        Priced("a", {PATH: span}, 100.0, {PATH: (50.0, 200.0)}),
        Priced("b", {}, rival_cost, {}),
    ]
    drawn = np.array([prices, np.full(512, rival_cost)])
    pick = "b" if rival_cost < 100 else "a"
    (turn,) = price_turns(racks, drawn, pick, dice)
    assert (turn.path, turn.pick, turn.to) == (PATH, pick, "a" if pick == "b" else "b")
    assert turn.turns_at == pytest.approx(rival_cost, rel=0.01)
    assert turn.break_even == pytest.approx(rival_cost, rel=1e-12)
    assert turn.sigmas == pytest.approx(
        abs(np.log(rival_cost / 100)) / (np.log(2) / 1.6449), rel=0.02
    )


def test_price_that_both_pay_alike_changes_no_pick():
    dice, span = Dice(CATALOGUE, 0, 0, 512), span_of(100.0, 50.0, 200.0)
    prices = span.quantile(dice.correlated_deviates(span))
    racks = [
        Priced(name, {PATH: span}, base, {PATH: (base / 2, base * 2)})
        for name, base in (("a", 100.0), ("b", 110.0))
    ]
    assert price_turns(racks, np.array([prices, 1.1 * prices]), "a", dice) == []


@pytest.mark.parametrize(("rest", "turns"), [(990.0, True), (99_990.0, False)])
def test_a_price_turns_a_pick_unless_it_is_less_than_a_thousandth_of_its_cost(rest, turns):
    """A part of 5 to 20 USD beside a rest of the cost, and a rival of the same rest and 12 USD."""
    dice, span = Dice(CATALOGUE, 0, 0, 512), span_of(10.0, 5.0, 20.0)
    prices = span.quantile(dice.correlated_deviates(span))
    racks = [
        Priced("a", {PATH: span}, rest + 10, {PATH: (rest + 5, rest + 20)}),
        Priced("b", {}, rest + 12, {}),
    ]
    drawn = np.array([rest + prices, np.full(512, rest + 12)])
    turning_prices = price_turns(racks, drawn, "a", dice)
    assert bool(turning_prices) is turns
    for turn in turning_prices:
        assert turn.break_even == pytest.approx(12.0, rel=1e-9)
        # the mean of log-normal prices is dearer than their median, 10
        assert turn.turns_at == pytest.approx(12 * 10 / prices.mean(), rel=0.02)


@pytest.mark.parametrize(
    "path",
    [
        "parts.mi450x.price",
        "site.usd_per_mw",
        "site.electricity_price",
        "shares.amd.price",
        "parts.x.stack_price",
    ],
)
def test_input_is_a_price_by_its_attribute(path):
    assert is_price(path)


@pytest.mark.parametrize(
    "path",
    [
        "terms.rate",
        "parts.trn3.design_cost",
        "parts.mi450x.hbm_bandwidth",
        "performance.nvidia.price",
    ],
)
def test_input_that_is_no_price_changes_no_pick(path):
    assert not is_price(path)


@pytest.mark.thorough
def test_base_cases_cost_the_same_at_the_break_even_price_and_another_is_picked_beyond_the_turn():
    comparison = document("compare", GB200, MI450X, "--speeds", "50")
    turn = next(
        price_turn for price_turn in comparison["price_turns"] if price_turn["path"] == PATH
    )
    even_metrics = {
        row["scenario"]: row["metrics"]
        for row in document(
            "compare", GB200, MI450X, "--no-range", "--set", f"{PATH}={turn['break_even']} USD"
        )["rows"]
    }
    assert even_metrics[MI450X]["perf_per_tco_vs_baseline"] == pytest.approx(1, rel=1e-6)
    picks = []
    for factor in (0.93, 1.07):
        verdict = document(
            "compare",
            GB200,
            MI450X,
            "--speeds",
            "50",
            "--set",
            f"{PATH}={factor * turn['turns_at']} USD",
        )["verdict"]
        picks.append(set(verdict[0]["picks"]))
    assert MI450X in picks[0]
    assert GB200 in picks[1]
    assert picks[0] != picks[1]


def test_prices_that_turn_the_pick_are_those_at_the_compared_speed_nearest_the_target():
    assert nearest_speed((20.0, 40.0, 75.0), 50.0) == 40.0
    assert nearest_speed([60.0, 40.0], 50.0) == 40.0
    text = " ".join(tco("compare", GB200, MI450X, "--speeds", "40").stdout.split())
    assert f"The pick at 40 tokens/s turns to {MI450X} if mi450x price is below" in text
    assert "Cheaper at 50 tokens/s, the only speed of the shipped ranking, but" in text
