"""The base case and the middle of the draws: what tells them apart, each part against an answer of
its own.
"""

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


def test_the_parts_make_the_middle_of_the_draws(cases):
    curve = document("compare", *NAMES)["curve"]
    middles = {
        one["scenario"]: one["median_usd_per_million_output_tokens"]
        for one in curve
        if one["tokens_per_s_per_user"] == 50
    }
    for one in cases:
        assert one["median_usd_per_million_output_tokens"] == middles[one["scenario"]]
        assert one[COST] == pytest.approx(
            evaluate(one["scenario"], catalogue=CATALOGUE).metrics[COST], rel=1e-6
        )
    assert [one["scenario"] for one in cases] == list(NAMES)


def test_an_input_at_its_median_is_an_answer_with_it_there(cases):
    for one in cases:
        first = one["causes"][0]
        unit = evaluate(one["scenario"], catalogue=CATALOGUE).inputs[first["path"]].unit
        alone = evaluate(
            one["scenario"], {first["path"]: f"{first['median']!r} {unit}"}, catalogue=CATALOGUE
        ).metrics[COST]
        assert first["factor"] == pytest.approx(alone / one[COST], rel=1e-5)
        assert [abs(cause["factor"] - 1) for cause in one["causes"][:2]] == sorted(
            [abs(cause["factor"] - 1) for cause in one["causes"][:2]], reverse=True
        )


def test_with_nothing_left_to_draw_that_matters_the_middle_is_the_base_case():
    """Every input is set to its value but the carbon of the grid, which costs nothing."""
    result = evaluate("gb200-nvl72", catalogue=CATALOGUE)
    ranged = (
        one
        for one in result.inputs.values()
        if one.low is not None and one.high is not None and one.low < one.high
    )
    settings = {
        one.path: f"{one.value!r} {one.unit}" for one in ranged if one.path != "site.grid_carbon"
    }
    asked = evaluate_each(["gb200-nvl72"], None, settings, refuse=False, what_if={})
    base, _ = compare_results([one.result for one in asked], None)
    found = confidence_of(asked, base, ConfidenceRequest((20.0, 75.0)))
    assert len(found.curve) == 2
    for point in found.curve:
        assert point.median_usd_per_million_output_tokens == pytest.approx(
            point.usd_per_million_output_tokens, rel=1e-9
        )


def test_it_is_told_under_the_full_table_alone():
    assert "Base case of gb200-nvl72, every input at its value" in " ".join(
        tco("compare", *NAMES, "--full").stdout.split()
    )
    assert "Base case of" not in tco("compare", *NAMES).stdout
    assert "base_cases" not in document("compare", *NAMES)
