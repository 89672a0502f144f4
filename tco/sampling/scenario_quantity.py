"""Metric of a scenario, or its ratio to a baseline, as a function of the inputs with a range.

All inputs take the values of random draws, or each input moves alone to both ends of its range, or
some inputs move together. At a point that misses the target the metrics of performance, and the
costs of performance, have no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tco.core.elementwise import as_array
from tco.core.provenance import P95
from tco.core.types import FloatArray
from tco.scenario import metrics as joined
from tco.scenario.beliefs import Dice, Range
from tco.scenario.metrics import PERFORMANCE

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import ScenarioFunction
    from tco.scenario.evaluate_samples import Draws

CENTRE = 1  # index of an input's value among P5, value and P95


class MetricAtMoves(NamedTuple):
    """Metric of the base case, and with each input moved alone."""

    base_case: float
    input_ends: FloatArray  # at the low and the high of each input, shape (inputs, 2)


class MetricWhereFixed(NamedTuple):
    """Metric where some inputs are fixed, and all others are at their values or drawn."""

    base_case: float
    draws: FloatArray


class SampledScenario(NamedTuple):
    """Scenario in random draws, at points where inputs move one at a time, and with some fixed."""

    draws: Draws
    # Row 0 is the base case. Two rows for each input follow, at its low and at its high with all
    # other inputs at their values. None where no input was moved alone.
    single_moves: Draws | None = None
    # for each way to fix some inputs: row 0 with all others at their values, then the first draws
    fixed: Sequence[Draws] = ()

    def metric_at_moves(self, metric_of: Callable[[Draws], FloatArray]) -> MetricAtMoves:
        """Return a metric of the base case, and with each input moved alone.

        Args:
            metric_of: Returns the metric of each row of draws.

        Raises:
            ValueError: No input was moved alone.

        """
        if self.single_moves is None:
            raise ValueError("expected a scenario that was sampled with single moves")
        row_values = metric_of(self.single_moves)
        return MetricAtMoves(row_values[0], row_values[1:].reshape(-1, 2))

    def metric_where_fixed(
        self, metric_of: Callable[[Draws], FloatArray]
    ) -> list[MetricWhereFixed]:
        """Return a metric for each way to fix some inputs.

        Args:
            metric_of: Returns the metric of each row of draws.

        """
        metrics = [metric_of(fixed_draws) for fixed_draws in self.fixed]
        return [MetricWhereFixed(row_values[0], row_values[1:]) for row_values in metrics]


def sample_with_moves(
    function: ScenarioFunction,
    dice: Dice,
    speeds: Sequence[float] = (),
    fixed: Sequence[Mapping[str, float]] = (),
    fixed_draws: int = 0,
) -> SampledScenario:
    """Evaluate a scenario in random draws, with each input moved alone, and with some fixed.

    Args:
        function: The scenario with the ranges of its inputs.
        dice: Source of the draws.
        speeds: Further user speeds at which each point is evaluated, tokens/s per user.
        fixed: Values of the fixed inputs by path, for each way to fix some.
        fixed_draws: Number of the first draws that are repeated for each way to fix some inputs.

    """
    ranges = function.ranges
    moves = _one_at_a_time(ranges)
    sizes = [dice.count, 1 + 2 * len(ranges), *([1 + fixed_draws] * len(fixed))]
    points = {}
    for path, (drawn, unit) in dice.settings(ranges).items():
        value_and_draws = np.concatenate([[ranges[path].value], drawn[:fixed_draws]])
        fixed_parts = [
            np.full(1 + fixed_draws, fixed_values[path])
            if path in fixed_values
            else value_and_draws
            for fixed_values in fixed
        ]
        points[path] = np.concatenate([drawn, moves[path], *fixed_parts]), unit
    evaluated = function.draws(points, speeds=speeds)
    ends = np.cumsum(sizes).tolist()
    draws, single_moves, *draws_with_fixed = (
        evaluated.part(slice(end - size, end)) for end, size in zip(ends, sizes, strict=True)
    )
    return SampledScenario(draws, single_moves, draws_with_fixed)


def metric_or_nan(draws: Draws, metric: str) -> FloatArray:
    """Return a metric in every draw, nan where a draw lacks the metric.

    A metric that depends on the workload is also nan where memory or a target is missed.

    Args:
        draws: Draws of a scenario.
        metric: Name of the metric.

    Returns:
        Array of shape (draws,), in the unit of the metric.

    """
    metric_draws = draws.metrics[metric]
    if metric_draws is None:
        return np.full(len(draws.meets), np.nan)
    return np.where(draws.meets, metric_draws, np.nan) if metric in PERFORMANCE else metric_draws


def finite_or_none(value: float | None) -> float | None:
    """Return a finite number; None for None, infinity and nan."""
    return float(value) if value is not None and np.isfinite(value) else None


def three_point_deviates(belief: Range) -> FloatArray:
    """Return the deviates at which an input is evaluated: P5, its value, P95."""
    return np.array([-P95, belief.home, P95])


def _one_at_a_time(ranges: Mapping[str, Range]) -> dict[str, FloatArray]:
    """Return the values of each input, by path, at the points where one input moves.

    The first point has every input at its value. Two points for each input follow, with that input
    at its low and at its high.
    """
    moves = {
        path: np.full(1 + 2 * len(ranges), belief.value, float) for path, belief in ranges.items()
    }
    for index, (path, belief) in enumerate(ranges.items()):
        first_point = 1 + 2 * index
        moves[path][first_point : first_point + 2] = belief.low, belief.high
    return moves


@dataclass(frozen=True)
class ScenarioQuantity:
    """A metric of a scenario at one speed, or its ratio to a baseline, as inputs move.

    Both sides of a ratio move. The ratio is zero where only the scenario misses the target,
    infinite where only the baseline does, and nan where both do.
    """

    metric: str
    scenario: ScenarioFunction
    baseline: ScenarioFunction | None
    dice: Dice
    # samples by identity of the scenario function, shared by quantities of the same functions
    samples: dict[int, SampledScenario] = field(default_factory=dict)
    # tokens/s per user, among the speeds of the samples; None for the workload's own speed
    speed: float | None = None

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """Ranges of the inputs of both sides, by path."""
        baseline_ranges = {} if self.baseline is None else self.baseline.ranges
        return {**baseline_ranges, **self.scenario.ranges}

    @property
    def sides(self) -> list[ScenarioFunction]:
        """The scenario, and the baseline if there is one."""
        return [self.scenario] if self.baseline is None else [self.scenario, self.baseline]

    def sampled(self, side: ScenarioFunction) -> SampledScenario:
        """Evaluate a side in all draws, and with every input moved alone, once."""
        samples = self.samples.get(id(side))
        if samples is None or samples.single_moves is None:
            samples = self.samples[id(side)] = sample_with_moves(side, self.dice)
        return samples

    def metric_at_speed(self, draws: Draws) -> FloatArray:
        """Return the metric of draws at the speed of this quantity."""
        return metric_or_nan(
            draws if self.speed is None else draws.by_speed[self.speed], self.metric
        )

    def metric_or_ratio(self, side_metrics: Sequence[FloatArray]) -> FloatArray:
        """Return the ratio of both sides, or the scenario's metric without a baseline."""
        if self.baseline is None:
            return side_metrics[0]
        scenario_metric, baseline_metric = side_metrics
        return ratios(baseline_metric, scenario_metric)

    def draws(self) -> FloatArray:
        """Return the metric or the ratio in all draws."""
        return self.metric_or_ratio(
            [self.metric_at_speed(self.sampled(side).draws) for side in self.sides]
        )

    def one_at_a_time_values(self) -> dict[str, FloatArray]:
        """Return the metric or the ratio at the low, the value and the high of each input.

        An input that a side does not read leaves the metric of that side at its base value.
        """
        metrics_by_path: dict[str, list[FloatArray]] = {path: [] for path in self.ranges}
        for side in self.sides:
            base_case, input_ends = self.sampled(side).metric_at_moves(self.metric_at_speed)
            ends_by_path = dict(zip(side.ranges, input_ends, strict=True))
            for path, side_values in metrics_by_path.items():
                low, high = ends_by_path.get(path, (base_case, base_case))
                side_values.append(np.array([low, base_case, high]))
        return {
            path: self.metric_or_ratio(side_values) for path, side_values in metrics_by_path.items()
        }

    def together(self, deviates: Mapping[str, FloatArray]) -> FloatArray:
        """Return the metric or the ratio at points where some inputs move together.

        Args:
            deviates: Standard normal deviates of each input that moves, all of one length.

        """
        point_count = len(next(iter(deviates.values())))
        side_metrics = []
        for side in self.sides:
            samples = self.sampled(side)
            if deviates.keys().isdisjoint(side.ranges):
                base_case = samples.metric_at_moves(self.metric_at_speed).base_case
                side_metrics.append(np.full(point_count, base_case))
                continue
            # Inputs that do not move are arrays too: the plans found for the draws then hold here.
            points = {
                path: (
                    belief.quantile(deviates[path])
                    if path in deviates
                    else np.full(point_count, belief.value),
                    belief.unit,
                )
                for path, belief in side.ranges.items()
            }
            side_metrics.append(
                self.metric_at_speed(side.draws(points, speeds=tuple(samples.draws.by_speed)))
            )
        return self.metric_or_ratio(side_metrics)


def ratios(baseline: FloatArray, costs: FloatArray) -> FloatArray:
    """Return the performance per cost relative to the baseline in every draw.

    Args:
        baseline: Costs of the baseline by draw, nan where the target is missed.
        costs: Costs of the scenario by draw in the same unit, nan where the target is missed.

    Returns:
        Ratios by draw: zero where only the scenario misses, inf where only the baseline does, and
        nan where both do.

    """
    is_missed = np.isnan(costs)
    return np.where(
        np.isnan(baseline),
        np.where(is_missed, np.nan, np.inf),
        np.where(is_missed, 0.0, as_array(joined.perf_per_tco(baseline, costs))),
    )
