"""The difference between the base case and the median of the draws, split into tested parts."""

from __future__ import annotations

import pytest

from tco import evaluate
from tco.comparison.confidence import confidence_of
from tco.comparison.records import ConfidenceRequest
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.side_by_side import compare_results
from tests.catalogue import CATALOGUE
from tests.cli import document, tco

NAMES, COST = ("gb200-nvl72", "mi450x-ualoe72"), "usd_per_million_output_tokens"


@pytest.fixture(scope="module")
def cases():
    return document("compare", *NAMES, "--full")["base_cases"]


def test_parts_of_the_difference_sum_to_the_median_of_the_draws(cases):
    curve = document("compare", *NAMES)["curve"]
    middles = {
        curve_point["scenario"]: curve_point["median_usd_per_million_output_tokens"]
        for curve_point in curve
        if curve_point["tokens_per_s_per_user"] == 50
    }
    for median_case in cases:
        assert (
            median_case["median_usd_per_million_output_tokens"] == middles[median_case["scenario"]]
        )
        assert median_case[COST] == pytest.approx(
            evaluate(median_case["scenario"], catalogue=CATALOGUE).metrics[COST], rel=1e-6
        )
    assert [median_case["scenario"] for median_case in cases] == list(NAMES)


def test_part_of_an_input_is_that_of_an_answer_with_it_at_its_median(cases):
    for median_case in cases:
        first = median_case["causes"][0]
        unit = evaluate(median_case["scenario"], catalogue=CATALOGUE).inputs[first["path"]].unit
        median_input_cost = evaluate(
            median_case["scenario"],
            {first["path"]: f"{first['median']!r} {unit}"},
            catalogue=CATALOGUE,
        ).metrics[COST]
        assert first["factor"] == pytest.approx(median_input_cost / median_case[COST], rel=1e-5)
        assert [abs(cause["factor"] - 1) for cause in median_case["causes"][:2]] == sorted(
            [abs(cause["factor"] - 1) for cause in median_case["causes"][:2]], reverse=True
        )


def test_median_of_constant_draws_is_the_base_case():
    """Every input is set to its value but the carbon of the grid, which costs nothing."""
    result = evaluate("gb200-nvl72", catalogue=CATALOGUE)
    ranged = (
        scenario_input
        for scenario_input in result.inputs.values()
        if scenario_input.low is not None
        and scenario_input.high is not None
        and scenario_input.low < scenario_input.high
    )
    settings = {
        scenario_input.path: f"{scenario_input.value!r} {scenario_input.unit}"
        for scenario_input in ranged
        if scenario_input.path != "site.grid_carbon"
    }
    evaluations = evaluate_each(["gb200-nvl72"], None, settings, refuse=False, what_if={})
    base, _ = compare_results([evaluation.result for evaluation in evaluations], None)
    confidence = confidence_of(evaluations, base, ConfidenceRequest((20.0, 75.0)))
    assert len(confidence.curve) == 2
    for point in confidence.curve:
        assert point.median_usd_per_million_output_tokens == pytest.approx(
            point.usd_per_million_output_tokens, rel=1e-9
        )


def test_difference_is_printed_below_the_full_table_alone():
    words = "From the base case to the median of the draws, USD per million output tokens"
    assert words in " ".join(tco("compare", *NAMES, "--full").stdout.split())
    assert words not in " ".join(tco("compare", *NAMES).stdout.split())
    assert "base_cases" not in document("compare", *NAMES)
