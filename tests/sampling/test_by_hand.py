"""Shares, narrowing and flips of inputs on swings and draws that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata

from tco import DataError
from tco.core.provenance import Input
from tco.evaluation.scenario_function import Evaluation
from tco.sampling import scenario_quantity, uncertainty
from tco.sampling.drivers import first_order, leading_drivers, narrowing, rank_share
from tco.sampling.scenario_quantity import (
    SampledScenario,
    ScenarioQuantity,
    finite_or_none,
    ratios,
)
from tco.sampling.sensitivity import Sensitivity, Swing, _input_swing
from tco.sampling.uncertainty import (
    MOST_SAMPLES,
    Sample,
    _refuse_sampling,
    error_of_share,
    error_of_spread,
    share,
    why_endless,
)
from tco.scenario.beliefs import Range


def swing_of(path, size, kind="estimate", flips_at=None):
    swing_input = Input(path, 1.0, "", 0.5, 2.0, kind=kind)
    return Swing(swing_input, 1.0, 2.0, size, True, True, flips_at)


SWINGS = [
    swing_of("parts.a.price", 4.0, flips_at=1.5),
    swing_of("parts.b.price", -3.0, "vendor"),
    swing_of("terms.rate", 0.0),
    swing_of("site.pue", None),
]


def sensitivity_of(**shares):
    known_shares = {path.replace("__", "."): share for path, share in shares.items()}
    return Sensitivity("capex_usd", [], False, 1.0, SWINGS, {}, known_shares, None)


def test_without_draws_an_input_has_the_share_of_its_squared_swing():
    study = sensitivity_of()
    assert study.variance == 25
    assert [study.share(swing) for swing in SWINGS] == [16 / 25, 9 / 25, 0.0, None]
    # once four fifths of the deviation are known three fifths are left
    assert study.narrows(SWINGS[0]) == pytest.approx(1 - 0.6)
    assert study.narrows(SWINGS[3]) is None
    assert study.groups(lambda swing_input: swing_input.path.partition(".")[0]) == {"parts": 1.0}
    assert study.groups(lambda swing_input: swing_input.path) == {
        "parts.a.price": 16 / 25,
        "parts.b.price": 9 / 25,
    }
    assert study.flips == [SWINGS[0]]
    # what a vendor states is not worth finding out, nor what moves nothing
    assert study.worth == [SWINGS[3], SWINGS[0]]


def test_with_draws_an_input_has_the_share_that_they_say():
    study = sensitivity_of(parts__a__price=0.2, site__pue=0.75, terms__rate=-0.01)
    assert [study.share(swing) for swing in SWINGS] == [0.2, 0.0, -0.01, 0.75]
    assert study.narrows(SWINGS[3]) == pytest.approx(0.5)
    assert study.narrows(SWINGS[2]) == 0
    assert study.worth == [SWINGS[3], SWINGS[0]]


@pytest.mark.parametrize(("share", "narrowed"), [(0.0, 0.0), (0.75, 0.5), (0.36, 0.2), (1.0, 1.0)])
def test_knowing_a_share_of_the_variance_narrows_the_deviation(share, narrowed):
    assert narrowing(share) == pytest.approx(narrowed)


def test_draws_of_one_value_share_the_middle_rank_of_their_places():
    """Groups of 100, 10 and 10 equal values; the input tells the second group from the others."""
    values = np.repeat([1.0, 2.0, np.inf], [100, 10, 10])
    deviates = (values == 2).astype(float)
    ranks = rankdata(values)
    left = sum(
        ((ranks[group] - ranks[group].mean()) ** 2).sum() for group in (values == 2, values != 2)
    )
    total = ((ranks - ranks.mean()) ** 2).sum()
    expected = 1 - left / total * (120 - 1) / (120 - 1 - 3)
    assert 0.02 < expected < 0.9
    assert rank_share(values, [deviates]) == pytest.approx(expected, rel=1e-9)
    without_rank = np.append(values, np.nan)
    assert rank_share(without_rank, [np.append(deviates, 5.0)]) == pytest.approx(expected, rel=1e-9)


def test_ranks_are_a_normal_distribution_function_of_a_single_input():
    """Of Phi(x) on x, x^2 and x^3 the Hermite coefficients give 12 / (4 pi) (1 + 1 / 24)."""
    deviates = np.random.default_rng(5).standard_normal(40_000)
    expected = 12 / (4 * np.pi) * (1 + 1 / 24)
    assert rank_share(np.exp(deviates), [deviates]) == pytest.approx(expected, abs=2e-3)


def test_a_share_needs_a_hundred_draws_above_zero_that_differ():
    deviates = np.random.default_rng(6).standard_normal((2, 100))
    values = np.exp(0.6 * deviates[0] + 0.8 * deviates[1])
    shares = first_order(values, {"a": deviates[0], "b": deviates[1]})
    assert shares == {"a": pytest.approx(0.36, abs=0.2), "b": pytest.approx(0.64, abs=0.2)}
    assert first_order(np.where(values > 2, np.inf, values), {"a": deviates[0]}) == {}
    assert first_order(values[:99], {"a": deviates[0][:99]}) == {}
    assert first_order(values - values.min(), {"a": deviates[0]}) == {}
    assert first_order(np.ones(100), {"a": deviates[0]}) == {}
    assert rank_share(values, [deviates[0]]) is not None
    assert rank_share(values[:99], [deviates[0][:99]]) is None


def test_a_ratio_is_lost_or_won_where_one_side_misses_its_target():
    baseline = np.array([2.0, 2.0, np.nan, np.nan])
    costs = np.array([4.0, np.nan, 4.0, np.nan])
    assert ratios(baseline, costs)[:3].tolist() == [0.5, 0.0, np.inf]
    assert np.isnan(ratios(baseline, costs)[3])
    assert [finite_or_none(value) for value in (None, np.inf, np.nan, 2)] == [None, None, None, 2.0]


# ---------------------------------------------------------------- swings
@pytest.mark.parametrize(
    ("metrics", "is_ratio", "expected"),
    [
        ([1.0, 2.0, 4.5], False, (1.0, 4.5, 3.5, True, True)),
        ([4.5, 2.0, 1.0], False, (4.5, 1.0, -3.5, True, True)),
        ([2.0, 2.0, 2.0], False, (2.0, 2.0, 0.0, True, True)),
        # rounding is no swing
        ([2.0, 2.0, 2.0 * (1 + 1e-15)], False, (2.0, 2.0, 0.0, True, True)),
        ([np.nan, 2.0, 4.0], False, (None, 4.0, None, False, True)),
        ([np.nan, np.nan, np.nan], False, (None, None, 0.0, False, False)),
        # a ratio of nought misses the target, a cost of nought does not
        ([0.0, 1.0, 2.0], True, (0.0, 2.0, 2.0, False, True)),
        ([0.0, 1.0, 2.0], False, (0.0, 2.0, 2.0, True, True)),
    ],
)
def test_a_swing_leads_from_the_low_end_of_an_input_to_its_high_end(metrics, is_ratio, expected):
    swing_input = Input("a.b", 1.0, "", 0.5, 2.0)
    swing = _input_swing(swing_input, np.array(metrics), is_ratio, None)
    assert swing[1:6] == pytest.approx(expected)


def test_the_inputs_that_move_a_ratio_most_come_first():
    def range_of(path):
        return Range(path, 0.5, 1.0, 2.0, "x", 0.0, 9.0, False, None, path)

    swings = {
        "weak": [1.5, 1.6, 1.8],
        "strong": [2.4, 1.6, 1.2],
        "none": [1.6, 1.6, 1.6],
        "missed": [1.6, 1.6, np.inf],
        "lost": [np.nan, 1.6, np.nan],
    }
    drivers = leading_drivers(
        {path: range_of(path) for path in swings},
        {path: np.array(ratio) for path, ratio in swings.items()},
        lambda _: pytest.fail("no order turns"),
    )
    assert [(driver.path, driver.swing) for driver in drivers] == [
        ("missed", None),
        ("strong", pytest.approx(-1.2)),
        ("weak", pytest.approx(0.3)),
    ]


# ---------------------------------------------------------------- draws without a value
def test_a_share_of_draws_without_a_value_is_told_in_per_cent():
    draws = np.array([1.0] * 7 + [np.nan])
    assert why_endless("capex_usd", draws).startswith("in 12 % of the draws it has no value")
    ratio = np.array([1.0] * 3 + [np.inf])
    assert why_endless("perf_per_tco_vs_baseline", ratio).startswith(
        "only the baseline misses the target in 25 % of the draws"
    )


def test_an_error_needs_two_draws_with_a_value():
    assert error_of_spread("capex_usd", np.array([1.0, np.nan, np.nan])) is None
    assert error_of_spread("capex_usd", np.array([np.nan, np.nan])) is None
    two = error_of_spread("capex_usd", np.array([1.0, 3.0]))
    # the standard deviation of two is sqrt(2), over the square root of their number
    assert two["mean"] == pytest.approx(1.0)
    assert error_of_spread("capex_usd", np.array([1.0, 3.0, np.nan]))["mean"] is None


# ---------------------------------------------------------------- draws
@pytest.mark.parametrize(
    ("draws", "chance"),
    [([True] * 3 + [False] * 5, 3.5 / 9), ([False] * 8, 0.5 / 9), ([True], 0.75)],
)
def test_the_error_of_a_share_counts_half_a_draw_more_and_is_never_nought(draws, chance):
    count = len(draws)
    assert error_of_share(np.array(draws)) == pytest.approx((chance * (1 - chance) / count) ** 0.5)
    assert share(np.array(draws)) == pytest.approx(sum(draws) / count)


def test_a_question_that_does_not_arise_has_no_share():
    assert share(None) is None
    assert error_of_share(None) is None


@pytest.mark.parametrize("seed", [0, 128, 2**63, 2**64 - 1])
@pytest.mark.parametrize("samples", [2, MOST_SAMPLES])
def test_a_seed_of_64_bits_is_taken(samples, seed):
    _refuse_sampling(samples, seed)


@pytest.mark.parametrize(
    ("samples", "seed", "words"),
    [
        (2, -1, "seed -1"),
        (2, 2**64, f"seed {2**64}"),
        (1, 0, "1 draws tell nothing"),
        (MOST_SAMPLES + 1, 0, "draws are more than"),
    ],
)
def test_a_seed_or_a_number_of_draws_beyond_the_limits_is_refused(samples, seed, words):
    with pytest.raises(DataError, match=words):
        _refuse_sampling(samples, seed)


def test_a_scenario_is_evaluated_once_and_beside_its_baseline(monkeypatch):
    results = {name: SimpleNamespace(scenario=f"{name} rack") for name in "ab"}
    monkeypatch.setattr(
        uncertainty,
        "evaluate_each",
        lambda names, *_: [Evaluation(name, {}, None, results[name]) for name in names],
    )

    def compare(scenario_results, baseline):
        compared = [(scenario_result.scenario, baseline) for scenario_result in scenario_results]
        return SimpleNamespace(results=compared)

    monkeypatch.setattr(uncertainty, "compare_results", compare)

    def results_beside(baseline):
        evaluations = uncertainty._evaluate_beside("a", baseline, None, {})
        return [evaluation.result for evaluation in evaluations]

    assert results_beside(None) == [results["a"]]
    assert results_beside("a") == [("a rack", "a rack")]
    assert results_beside("b") == [("a rack", "b rack"), ("b rack", "b rack")]


def test_draws_of_a_study_are_those_of_its_scenario_with_progress_by_block(monkeypatch):
    """Three blocks of 4, 4 and 2 draws: 4, 8 and 10 are done."""
    racks = [Evaluation(name, {}, None, SimpleNamespace(scenario=name)) for name in "ab"]
    functions = {rack.name: SimpleNamespace(catalogue=None, ranges={}) for rack in racks}
    monkeypatch.setattr(uncertainty, "BLOCK", 4)
    monkeypatch.setattr(uncertainty, "_evaluate_beside", lambda *_: racks)
    monkeypatch.setattr(
        uncertainty, "_drawable_function", lambda evaluation, _: functions[evaluation.name]
    )
    monkeypatch.setattr(uncertainty, "beliefs_of", lambda _: {})
    compared = []
    monkeypatch.setattr(
        uncertainty, "why_incomparable", lambda *sides: compared.append(sides) or None
    )
    monkeypatch.setattr("tco.evaluation.workers.folders_of", lambda _: ())
    baselines = []

    def block(experiment, number):
        baselines.append(experiment.baseline)
        count = min(4, experiment.samples - 4 * number)
        return Sample({"capex_usd": number * 4 + np.arange(count)}, np.ones(count, bool))

    monkeypatch.setattr(uncertainty.Experiment, "block", block)
    monkeypatch.setattr(uncertainty, "fork_map", lambda make, items: enumerate(map(make, items)))
    progresses = []
    study = uncertainty.uncertainty("a", "b", 10, tell=progresses.append)
    assert (study.evaluation, study.baseline) == tuple(racks)
    assert study.sample.metrics["capex_usd"].tolist() == list(range(10))
    assert [(progress.cases_made, progress.finished) for progress in progresses] == [
        (4, 1),
        (8, 2),
        (10, 3),
    ]
    assert compared == [(racks[0].result, racks[1].result)]
    assert baselines == [functions["b"]] * 3


@pytest.mark.parametrize(
    ("baseline", "compared"),
    [(None, ("scenario", None)), ("scenario", ("scenario", "scenario")), ("b", ("scenario", "b"))],
)
def test_a_block_throws_one_dice_for_a_scenario_and_its_baseline(monkeypatch, baseline, compared):
    """The third block of four draws out of ten begins with the ninth and holds two."""
    dices = []

    def side_of(name):
        return SimpleNamespace(catalogue=None, sample=lambda dice: dices.append(dice) or name)

    sides = {name: side_of(name) for name in ("scenario", "b")}
    monkeypatch.setattr(uncertainty, "BLOCK", 4)
    monkeypatch.setattr(uncertainty, "Dice", lambda _, *numbers: numbers)
    monkeypatch.setattr(uncertainty, "fork_map", lambda make, items: enumerate(map(make, items)))
    monkeypatch.setattr(uncertainty, "sample_of", lambda *drawn_sides: drawn_sides)
    experiment = uncertainty.Experiment(sides["scenario"], sides.get(baseline), 7, 10)
    assert experiment.block(2) == compared
    assert dices == [(7, 8, 10)] * (2 if baseline == "b" else 1)


# ---------------------------------------------------------------- samples of a scenario
def test_single_moves_are_the_base_case_and_both_ends_of_each_input():
    samples = SampledScenario(None, np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    base_case, input_ends = samples.metric_at_moves(lambda row_values: row_values * 10)
    assert base_case == 10
    assert input_ends.tolist() == [[20, 30], [40, 50]]


def test_draws_with_fixed_inputs_follow_their_base_case():
    samples = SampledScenario(None, fixed=[np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])])
    public, best = samples.metric_where_fixed(lambda row_values: row_values * 10)
    assert (public.base_case, public.draws.tolist()) == (10, [20, 30])
    assert (best.base_case, best.draws.tolist()) == (40, [50, 60])


def test_a_scenario_sampled_without_single_moves_does_not_show_a_draw_as_its_base_case(monkeypatch):
    drawn_alone = SampledScenario(np.array([7.0, 8.0]))
    with pytest.raises(ValueError, match="sampled with single moves"):
        drawn_alone.metric_at_moves(lambda row_values: row_values)
    with_moves = SampledScenario(np.array([7.0, 8.0]), np.array([1.0, 2.0, 3.0]))
    monkeypatch.setattr(scenario_quantity, "sample_with_moves", lambda *_: with_moves)
    side = object()
    quantity = ScenarioQuantity("capex_usd", side, None, None, {id(side): drawn_alone})
    assert quantity.sampled(side) is with_moves
    assert quantity.sampled(side) is with_moves
