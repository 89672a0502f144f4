"""Regret of a choice: shares of the best in known draws, mixes of dollars, and what is printed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tco.comparison.regret import (
    SpendingMix,
    least_regret,
    paired_errors,
    parse_mixes,
    share_of_mix,
    shares_of_best,
    stakes,
)
from tco.core.errors import DataError, UsageError
from tests.cli import document
from tests.cli import tco as command

HEADLINE = ("trn3-nl32x2", "trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72")
COSTS = arrays(float, (3, 40), elements=st.one_of(st.just(np.nan), st.floats(0.1, 10)))


def test_stakes_of_four_draws_equal_those_by_hand():
    """Four draws: a is the cheapest, b is, neither reaches the speed, both cost the same."""
    first_stake, second_stake = stakes(np.array([[1.0, 4.0, np.nan, 2.0], [2.0, 1.0, np.nan, 2.0]]))
    assert (first_stake.share_cheapest, second_stake.share_cheapest, first_stake.share_nobody) == (
        0.375,
        0.375,
        0.25,
    )
    assert first_stake.share_of_best.mean == pytest.approx((1 + 0.25 + 1) / 3)
    assert second_stake.share_of_best.mean == pytest.approx((0.5 + 1 + 1) / 3)


def test_choices_are_racks_or_dollars_that_come_to_one():
    names = ["a", "b", "c"]
    assert parse_mixes("a,b:0.25+c:0.75, c ", names) == [
        SpendingMix("a", {"a": 1.0}),
        SpendingMix("b:0.25+c:0.75", {"b": 0.25, "c": 0.75}),
        SpendingMix(" c ", {"c": 1.0}),
    ]
    thirds = parse_mixes("a:0.3333333+b:0.3333333+c:0.3333334", names)
    assert sum(thirds[0].shares.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:0.7+b:0.7", "these sum to 1.4"),
        ("a:0.4+b:0.4", "these sum to 0.8"),
        ("a:-1+b:2", "none below nought"),
        ("a:0.5+a:0.5", "shares of dollars"),
        ("a:x", "expected shares of dollars"),
        ("d", "'d'"),
    ],
)
def test_dollars_that_do_not_come_to_one_are_refused(text, message):
    with pytest.raises((UsageError, DataError), match=message):
        parse_mixes(text, ["a", "b", "c"])


@given(COSTS)
def test_shares_sum_to_one_and_the_best_keeps_all(costs):
    scenario_stakes = stakes(costs)
    assert sum(stake.share_cheapest for stake in scenario_stakes) + scenario_stakes[
        0
    ].share_nobody == pytest.approx(1)
    kept_shares = shares_of_best(costs)
    assert (kept_shares.max(axis=0, initial=1.0) == 1).all()
    assert ((kept_shares >= 0) & (kept_shares <= 1)).all()
    assert all(stake.share_of_best.p10 <= stake.share_of_best.p50 for stake in scenario_stakes)


@given(COSTS, st.floats(0.01, 100))
def test_a_currency_changes_nothing(costs, rate):
    for stake, converted_stake in zip(stakes(costs), stakes(costs * rate), strict=True):
        assert stake.share_of_best == pytest.approx(converted_stake.share_of_best)


@given(COSTS, st.floats(0, 1))
def test_share_kept_by_a_mix_is_the_mean_over_its_dollars(costs, share):
    mean_shares = [stake.share_of_best.mean for stake in stakes(costs)]
    mixed = share_of_mix(SpendingMix("", {"a": share, "b": 1 - share}), ["a", "b", "c"], costs)
    assert mixed.mean == pytest.approx(share * mean_shares[0] + (1 - share) * mean_shares[1])


def test_equal_racks_are_a_tie_in_19_of_20_samples():
    """Two racks whose costs have one distribution are no tie in a twentieth of the samples.

    A 95 % interval of their difference misses zero in as many.
    """
    random, ties = np.random.default_rng(7), 0
    for _ in range(400):
        normal_deviates = random.standard_normal((2, 128))
        both = np.stack([normal_deviates, -normal_deviates], axis=2).reshape(2, 256)
        ties += len(least_regret(np.exp(0.3 * both + 0.1 * both**2))) == 2
    assert ties / 400 == pytest.approx(0.95, abs=0.03)


def test_a_rack_that_loses_by_more_than_sampling_error_is_no_pick():
    draws = np.exp(0.3 * np.random.default_rng(3).standard_normal((2, 512)))
    assert least_regret(draws * [[1.0], [1.3]]) == [0]
    assert least_regret(draws * [[1.3], [1.0]]) == [1]
    assert sorted(least_regret(draws * [[1.0], [1.005]])) == [0, 1]


def test_opposite_draws_count_as_one_observation():
    reached = np.ones(8, dtype=bool)
    opposite = np.array([[1.0, -1.0] * 4, [1.0, 1.0, -1.0, -1.0] * 2])
    exact, alike = paired_errors(opposite, reached)
    assert exact == 0
    assert alike == pytest.approx((4 * 2**2 * 4 / 3) ** 0.5 / 8)  # four sums of two


@given(arrays(float, (4, 40), elements=st.floats(0.1, 10), unique=True), st.permutations(range(4)))
def test_order_of_racks_changes_no_pick(costs, order):
    assert {order[row] for row in least_regret(costs[list(order)])} == set(least_regret(costs))


def test_order_of_arguments_changes_nothing():
    compare_document = document("compare", *HEADLINE)
    turned = document("compare", *reversed(HEADLINE))
    assert turned["verdict"] == compare_document["verdict"]
    assert turned["price_turns"] == compare_document["price_turns"]
    assert turned["later"] == compare_document["later"]


@pytest.mark.parametrize(
    "names", [HEADLINE[2:], pytest.param(HEADLINE, marks=pytest.mark.thorough)]
)
def test_another_seed_draws_other_samples_and_shares_a_pick(names):
    first_document, second_document = (
        document("compare", *names, "--speeds", "30,50", "--seed", seed) for seed in ("0", "1")
    )
    medians = [
        [
            curve_point["median_usd_per_million_output_tokens"]
            for curve_point in compare_document["curve"]
        ]
        for compare_document in (first_document, second_document)
    ]
    assert medians[0] != medians[1]
    for speed in (30, 50):
        picks = [
            next(
                set(regime["picks"])
                for regime in compare_document["verdict"]
                if speed in regime["speeds"]
            )
            for compare_document in (first_document, second_document)
        ]
        assert picks[0] & picks[1]


def test_a_comparison_says_what_each_choice_keeps():
    compare_document = document(
        "compare", "--choose", f"{HEADLINE[2]},{HEADLINE[2]}:0.25+{HEADLINE[3]}:0.75"
    )
    curve_points = {
        (curve_point["scenario"], curve_point["tokens_per_s_per_user"]): curve_point
        for curve_point in compare_document["curve"]
    }
    for regime in compare_document["verdict"]:
        for speed in regime["speeds"]:
            mean_shares = {
                name: curve_points[name, speed]["share_of_best"]["mean"] for name in HEADLINE
            }
            assert max(mean_shares, key=mean_shares.get) in regime["picks"]
            assert all(regime["keeps"] <= mean_shares[name] for name in regime["picks"])
        assert regime["choose"] == (regime["picks"][0] if len(regime["picks"]) == 1 else None)
    mean_shares = [
        choice["share_of_best"]["mean"]
        for choice in compare_document["choices"]
        if choice["tokens_per_s_per_user"] == 50
    ]
    rack_shares = [curve_points[name, 50]["share_of_best"]["mean"] for name in HEADLINE[2:]]
    assert mean_shares == pytest.approx(
        [rack_shares[0], 0.25 * rack_shares[0] + 0.75 * rack_shares[1]]
    )


@pytest.mark.parametrize(
    "text",
    [
        "gb200-nvl72:0.7+mi450x-ualoe72:0.7",
        "banana",
        "gb200-nvl72:-1+mi450x-ualoe72:2",
        "",
        "gb200-nvl72:x",
    ],
)
def test_choice_that_is_unknown_is_refused(text):
    done = command("compare", "--choose", text)
    assert done.exit_code in (2, 3)
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_the_workloads_stand_side_by_side():
    cells = document("compare", "gb200-nvl72", "mi450x-ualoe72", "--workloads")["workloads"]
    curve_points = {
        (curve_point["scenario"], curve_point["tokens_per_s_per_user"]): curve_point
        for curve_point in document("compare", "gb200-nvl72", "mi450x-ualoe72")["curve"]
    }
    headline = [cell for cell in cells if cell["workload"] == "deepseek-v3-8k-1k"]
    assert headline
    for headline_cell in headline:
        assert headline_cell["share_of_best"] == pytest.approx(
            curve_points[headline_cell["scenario"], headline_cell["tokens_per_s_per_user"]][
                "share_of_best"
            ]
        )
    assert len({cell["workload"] for cell in cells}) >= 5
    workload_speeds = {(cell["workload"], cell["tokens_per_s_per_user"]) for cell in cells}
    for workload_speed in workload_speeds:  # one pick, or the racks of a tie
        picks = [
            cell["share_of_best"]["mean"]
            for cell in cells
            if cell["choose"]
            and (cell["workload"], cell["tokens_per_s_per_user"]) == workload_speed
        ]
        assert picks == pytest.approx([max(picks, default=0.0)] * len(picks), abs=0.02)
