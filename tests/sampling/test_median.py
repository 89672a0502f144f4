"""The median of one metric, as every screen of a base case shows it."""

from __future__ import annotations

import pytest

from tco.scenario.metrics import CHIP_HOUR
from tests.study_helpers import (
    COST,
    DRAWS,
    SEED,
    Dice,
    confidence_of,
    draw_statistics,
    drawn_metric,
    evaluate_each,
)

TRAINING = {"workload": "llama-3.1-405b-training", "cluster.chips": "2304"}


@pytest.mark.parametrize(
    ("name", "settings"), [("trn3-nl32x2", {}), ("mi450x-ualoe72", {}), ("gb200-nvl72", TRAINING)]
)
def test_chip_hour_without_model_has_median_of_full_draws(name, settings):
    (evaluation,) = evaluate_each([name], None, settings)
    draws = evaluation.drawn_function().sample(Dice(evaluation.catalogue, SEED, 0, DRAWS))
    expected = draw_statistics(CHIP_HOUR, draws.metrics[CHIP_HOUR])
    drawn = drawn_metric(evaluation, CHIP_HOUR)
    for percentile in ("p10", "p50", "p90"):
        assert getattr(drawn, percentile) == pytest.approx(expected[percentile], rel=1e-9)
    assert drawn.p10 < evaluation.result.metrics[CHIP_HOUR] < drawn.p90


def test_median_cost_is_that_of_comparison():
    evaluations = evaluate_each(["trn3-nl32x2", "gb200-nvl72"], None, {})
    confidence = confidence_of(evaluations, "gb200-nvl72")
    for evaluation in evaluations:
        (point,) = [
            point
            for point in confidence.curve
            if (point.scenario, point.tokens_per_s_per_user) == (evaluation.name, 50.0)
        ]
        assert drawn_metric(evaluation, COST).p50 == pytest.approx(
            point.median_usd_per_million_output_tokens, rel=1e-9
        )


def test_ratio_of_baseline_to_itself_is_one_in_every_draw():
    (evaluation,) = evaluate_each(["gb200-nvl72"], None, {})
    drawn = drawn_metric(evaluation, "perf_per_tco_vs_baseline", reference=evaluation)
    assert (drawn.p10, drawn.p50, drawn.p90) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("metric", [COST, CHIP_HOUR])
def test_saved_result_has_no_median(metric):
    (evaluation,) = evaluate_each(["gb200-nvl72"], None, {})
    assert drawn_metric(evaluation._replace(saved=True), metric) is None


def test_chip_hour_asked_again_is_not_drawn_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = {"site.electricity_price": "0.0712 USD/kWh"}
    (evaluation,) = evaluate_each(["gb200-nvl72"], None, settings)
    first = drawn_metric(evaluation, CHIP_HOUR)

    def refuse(*_):
        raise AssertionError("inputs are drawn again")

    monkeypatch.setattr("tco.sampling.median.Dice", refuse)
    assert drawn_metric(evaluation, CHIP_HOUR) == first
    (dearer,) = evaluate_each(["gb200-nvl72"], None, {"site.electricity_price": "0.0713 USD/kWh"})
    with pytest.raises(AssertionError, match="drawn again"):
        drawn_metric(dearer, CHIP_HOUR)


def test_chip_hour_of_own_prices_is_drawn_each_time(tmp_path, monkeypatch, own_data):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    medians = []
    for price in (20_000, 40_000):
        own_data.parts(f"gb200-gpu,price,{price},USD,,,2026-10,vendor,tco-estimate-2026,own,")
        (evaluation,) = evaluate_each(["gb200-nvl72"], own_data.folder, {})
        medians.append(drawn_metric(evaluation, CHIP_HOUR).p50)
    assert medians[0] < medians[1]
