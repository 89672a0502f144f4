"""The verdict: who is best per cost, against whom, and when nothing can be said."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tco
from tco.outputs.ranges import VERDICT, verdict_words
from tco.studies.comparison import Lead, Verdict, compared, verdict_of
from tco.studies.confidence import sureness_of
from tco.studies.evaluation import evaluate_each
from tco.studies.side_by_side import DRAWS, SEED
from tests.chain import HEADLINE
from tests.cli import document
from tests.cli import tco as command

GB200 = "gb200-nvl72"
COST = "usd_per_million_output_tokens"


@cache
def verdict(names, settings=(), baseline=None, ranges=True):
    asked = evaluate_each(names, None, dict(settings), refuse=False)
    base, results = compared([one.result for one in asked], baseline)
    return verdict_of(results, base, sureness_of(asked, base) if ranges else ()), results


def test_the_best_is_the_cheapest_and_its_range_is_that_of_the_study():
    found, results = verdict(HEADLINE)
    costs = sorted((result.metrics[COST], result.scenario) for result in results)
    assert (found.cost, found.best) == costs[0]
    assert found.against == costs[1][1]
    assert found.ratio == pytest.approx(costs[1][0] / costs[0][0], rel=1e-12)
    study = tco.uncertainty(found.best, found.against, samples=DRAWS, seed=SEED).sample
    ratios = study.metrics["perf_per_tco_vs_baseline"][~study.ties]
    assert found.lead[:3] == pytest.approx(np.quantile(ratios, (0.1, 0.5, 0.9)), rel=1e-7)
    assert found.lead.probability == pytest.approx(np.mean(ratios > 1))
    assert found.close is (found.lead.p10 <= 1)


@pytest.mark.thorough
def test_the_next_best_need_not_be_the_baseline():
    """Its range is drawn for every pair, and does not follow who is the baseline."""
    one, _ = verdict(HEADLINE, baseline="trn3-nl32x2")
    other, _ = verdict(HEADLINE)
    assert one == other


def test_a_range_that_reaches_one_is_too_close_to_call():
    clear = Verdict(COST, "a", 1.0, "b", 1.5, Lead(1.2, 1.5, 1.8, 0.97))
    assert (
        verdict_words(clear)
        == "Best per cost at this workload: a, ~1.5 times the output tokens per dollar of b; P10 to P90 1.2 to 1.8, ahead in 97 % of draws."
    )
    close = clear._replace(lead=Lead(0.9, 1.5, 1.8, 0.8))
    assert verdict_words(close).startswith(
        "Too close to call at this workload: a gives ~1.5 times the output tokens per dollar of b, but P10 to P90 is 0.9 to 1.8"
    )
    assert "no range was drawn" in verdict_words(clear._replace(lead=None))
    assert verdict_words(clear._replace(ratio=1.0)) == "Level at this workload: a and b give the same output tokens per dollar."
    assert "in different formats" in verdict_words(clear._replace(formats=True))
    assert [one.close for one in (clear, close, clear._replace(lead=None))] == [False, True, None]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ((GB200, "moe-3t-decode-gb200-nvl72"), "its workload.model is moe-3t, that of gb200-nvl72 deepseek-v3"),
        ((GB200, "tpuv6e-256"), "its terms.owner is Google, that of gb200-nvl72 Amazon"),
    ],
)
def test_other_work_and_other_owners_are_in_no_order(names, reason):
    found, (own, other) = verdict(names, ranges=False)
    assert (found.best, found.against, found.unrated) == (names[0], None, {names[1]: reason})
    assert own.metrics["perf_per_tco_vs_baseline"] == 1
    assert other.metrics["perf_per_tco_vs_baseline"] is None
    assert f"performance per cost says nothing here: {reason}" in other.notes
    assert f"{names[1]} is not rated: {reason}." in command("compare", *names, "--no-range").stdout


@pytest.mark.thorough
def test_another_date_is_in_no_order_and_two_ways_to_write_one_day_are(tmp_path):
    for name, date in (("later", "2026-09"), ("same", "2025-Q4")):
        tco.evaluate(GB200, {"terms.date": date}).save(tmp_path / f"{name}.json")
    rows = document("compare", GB200, str(tmp_path / "later.json"))["rows"]
    assert [row["metrics"]["perf_per_tco_vs_baseline"] for row in rows] == [1, None]
    assert rows[1]["probability_better_than_baseline"] is None
    assert rows[1]["drivers"] == []
    rows = document("compare", GB200, str(tmp_path / "same.json"), "--no-range")["rows"]
    assert rows[1]["metrics"]["perf_per_tco_vs_baseline"] == 1


def test_what_does_not_fit_or_misses_the_target_is_named():
    found, _ = verdict((GB200, "h200-hgx8"), (("site", "us-air-hall"),), ranges=False)
    assert found.unrated == {GB200: "does not fit its site"}
    found, _ = verdict((GB200, "h200-hgx8"), (("workload.interactivity", "500 token/s"),), ranges=False)
    assert "no plan" in found.unrated[GB200]
    assert verdict_words(found).startswith("No verdict: gb200-nvl72 no plan")


@pytest.mark.thorough
def test_training_is_rated_by_what_its_tokens_cost():
    found, results = verdict(("llama-3.1-405b-training-gb200-nvl72", "llama-3.1-405b-training-trn3-nl72x2"))
    costs = {result.scenario: result.metrics["train_usd_per_trillion_tokens"] for result in results}
    assert found.best == min(costs, key=costs.get)
    assert found.ratio == pytest.approx(max(costs.values()) / min(costs.values()))
    assert found.lead is not None
    assert "training tokens per dollar" in verdict_words(found)


def test_the_document_says_it():
    said = document("compare")["verdict"]
    assert said["best"] == "trn3-nl32x2"
    assert said["range"]["p10"] < said["range"]["p50"] < said["range"]["p90"]
    assert said["too_close_to_call"] is True
    assert VERDICT.json(Verdict())["best"] is None
    assert document("compare", "--no-range")["verdict"]["probability"] is None
