"""Why the base case differs from the median: inputs off their medians, and effects of spread.

    ln(middle / base) = ln(at medians / base) + ln(middle / at medians)

The first part is of inputs whose value is not the median of their belief (a most likely share of a
skewed range); what each does alone stands beside it, in the order of its size. The second is of
what no single value shows: inputs that move together, steps of plans and of batches, and draws that
miss the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tco.comparison.records import Confidence
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import speed_of
from tco.sampling.uncertainty import COST

NAMED = 3  # inputs that an answer names
ALIKE = 1e-6  # share of a value by which its median may differ and be it


class OffMedianInput(NamedTuple):
    """An input whose value is not its median, and the cost ratio with the input at its median."""

    path: str
    value: float
    median: float
    factor: float


class BaseCase(NamedTuple):
    """Cost per million output tokens: base case, input medians, median of draws."""

    scenario: str
    usd_per_million_output_tokens: float
    at_medians_usd_per_million_output_tokens: float
    median_usd_per_million_output_tokens: float
    causes: list[OffMedianInput]

    @property
    def medians(self) -> float:
        """Ratio of the cost at input medians to the base case."""
        return self.at_medians_usd_per_million_output_tokens / self.usd_per_million_output_tokens

    @property
    def spread(self) -> float:
        """Ratio of the draws' median cost to the cost at input medians."""
        return (
            self.median_usd_per_million_output_tokens
            / self.at_medians_usd_per_million_output_tokens
        )


def base_cases(
    evaluations: Sequence[Evaluation], confidence: Confidence, hold: bool
) -> list[BaseCase]:
    """Return the base case of each scenario that was drawn, at its own speed.

    A scenario is left out if its base case or the median of its draws has no cost.

    Args:
        evaluations: Evaluated scenarios.
        confidence: Uncertainty of the comparison, with the median cost of each scenario at each
            speed.
        hold: Whether the plan is held in every draw.

    """
    middles = {
        (
            curve_point.scenario,
            curve_point.tokens_per_s_per_user,
        ): curve_point.median_usd_per_million_output_tokens
        for curve_point in confidence.curve
    }
    drawn = (
        (evaluation, speed_of(evaluation.result))
        for evaluation in evaluations
        if evaluation.why_undrawable(hold) is None
    )
    evaluation_medians = (
        (evaluation, middles.get((evaluation.result.scenario, speed)))
        for evaluation, speed in drawn
        if speed is not None
    )
    return [
        case
        for evaluation, middle in evaluation_medians
        if middle is not None and (case := _base_case(evaluation, middle, hold)) is not None
    ]


def _base_case(evaluation: Evaluation, middle: float, hold: bool) -> BaseCase | None:
    """Return a scenario's base case beside its median, or None without a cost at either."""
    function = evaluation.drawn_function(hold)
    medians = {
        path: float(input_range.quantile(np.zeros(1))[0])
        for path, input_range in function.ranges.items()
    }
    off_median_paths = [
        path
        for path, input_range in function.ranges.items()
        if not math.isclose(medians[path], input_range.value, rel_tol=ALIKE)
    ]
    input_values = {}
    # first the base case, then all at their medians, then one by one
    for draw_index, path in enumerate(off_median_paths, 2):
        draw_values = np.full(2 + len(off_median_paths), function.ranges[path].value)
        draw_values[[1, draw_index]] = medians[path]
        input_values[path] = draw_values, function.ranges[path].unit
    costs = (
        np.array([evaluation.result.metrics[COST]])
        if not input_values
        else function.draws(input_values).metrics[COST]
    )
    if costs is None or costs[0] is None or not np.all(np.isfinite(costs[:2].astype(float))):
        return None
    factors = costs / costs[0]
    causes = [
        OffMedianInput(path, function.ranges[path].value, medians[path], float(factors[draw_index]))
        for draw_index, path in enumerate(off_median_paths, 2)
    ]
    causes = sorted(
        (cause for cause in causes if cause.factor > 0 and cause.factor != 1),
        key=lambda cause: -abs(math.log(cause.factor)),
    )
    return BaseCase(
        evaluation.result.scenario,
        float(costs[0]),
        float(costs[1] if input_values else costs[0]),
        middle,
        causes,
    )
