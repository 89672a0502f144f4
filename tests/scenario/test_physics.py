"""Every metric of every study lies within its physical bounds.

No draw makes more tokens than its chips could compute or read.
"""

from __future__ import annotations

import numpy as np
import pytest

import tco
from tco import DataError
from tco.sampling.uncertainty import rankable_draws
from tco.scenario.metrics import is_possible
from tests.catalogue import CATALOGUE, load_model
from tests.scenario_helpers import HEADLINE, METRICS, load_scenario
from tests.study_helpers import draw_statistics

SHARES = {"exposed_communication", "goodput", "host_floor", "mfu", "pipeline_bubble"}

TRAINING = sorted(
    name
    for name in CATALOGUE.scenarios
    if load_scenario(CATALOGUE, name).settings.get("workload.kind") == "training"
    or "training" in name
)
JOBS = [(name, {}) for name in TRAINING] + [
    ("gb200-nvl72", {"workload": "training"}),
    ("h100-hgx8", {"workload": "llama-3.1-405b-training"}),
]
CASES = [(name, {}) for name in HEADLINE] + [
    pytest.param(*job, marks=pytest.mark.thorough) for job in JOBS
]
PEAKS = ("peak_bf16_flop_per_s", "peak_fp8_flop_per_s", "peak_fp4_flop_per_s")


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_every_draw_and_every_percentile_is_possible(name, settings):
    uncertainty_study = tco.uncertainty(name, samples=60, seed=3, set=settings)
    for metric, metric_draws in uncertainty_study.sample.metrics.items():
        finite_draws = metric_draws[np.isfinite(metric_draws)]
        assert all(is_possible(metric, finite_draw) for finite_draw in finite_draws), (
            metric,
            finite_draws.min(),
            finite_draws.max(),
        )
        for figure, value in (draw_statistics(metric, metric_draws) or {}).items():
            assert value is None or figure == "sd" or is_possible(metric, value), (
                metric,
                figure,
                value,
            )
    assert all(
        value is None or is_possible(metric, value)
        for metric, value in uncertainty_study.evaluation.result.metrics.items()
    )


@pytest.mark.parametrize("name", HEADLINE)
def test_tokens_lie_below_the_roofline_of_their_draw(name):
    """A draw makes no more tokens than two operations per parameter allow at the highest peak."""
    drawn_metrics = tco.uncertainty(name, samples=200, seed=3).sample.metrics
    model = load_model(CATALOGUE, "deepseek-v3")
    tokens = (
        drawn_metrics["output_tokens_per_s_per_chip"] + drawn_metrics["input_tokens_per_s_per_chip"]
    )
    peak = np.fmax.reduce([drawn_metrics[metric] for metric in PEAKS if metric in drawn_metrics])
    has_tokens = np.isfinite(tokens)
    assert has_tokens.any()
    assert np.all(2 * model.active_parameters * tokens[has_tokens] < peak[has_tokens])


def test_bounds_refuse_impossible_metrics():
    for metric in METRICS:
        assert is_possible(metric, 0.5)
        assert not is_possible(metric, -1e-9)
        assert is_possible(metric, 1.01) == (metric not in SHARES)
    assert is_possible("mfu", 0)
    assert not is_possible("tco_usd_per_chip_hour", 0)


@pytest.mark.thorough
def test_a_job_that_never_makes_progress_has_no_price_and_says_so():
    never = {
        "workload": "training",
        "parts.gb200-gpu.failure_rate": "100 1/year",
        "failures.restart_time": "1e6 s",
    }
    job_result = tco.evaluate("gb200-nvl72", never)
    assert job_result.metrics["goodput"] == 0
    assert job_result.metrics["tco_usd_per_chip_hour"] > 0
    for metric in ("tco_usd_per_used_chip_hour", "train_usd_per_trillion_tokens"):
        assert job_result.metrics[metric] is None
    assert any("goodput is 0" in note for note in job_result.notes)
    rates = {"parts.gb200-gpu.failure_rate": (np.array([0.0001, 100]), "1/year")}
    draw_results = tco.evaluate_draws("gb200-nvl72", never | rates)
    cost = draw_results.metrics["train_usd_per_trillion_tokens"]
    assert np.isfinite(cost).tolist() == [True, False]
    assert rankable_draws("train_usd_per_trillion_tokens", cost)[1] == np.inf


def test_arithmetic_without_an_end_is_an_error_and_leaves_the_callers_settings(monkeypatch):
    before = np.geterr()
    monkeypatch.setattr("tco.scenario.evaluate.chain_of", lambda *_: np.ones(1) / np.zeros(1))
    with pytest.raises(DataError, match="no finite number"):
        tco.evaluate("gb200-nvl72")
    assert np.geterr() == before
