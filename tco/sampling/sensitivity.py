"""Sensitivity analysis: tornado, variance shares, ranking reversals and Sobol indices.

A tornado has every input at both ends of its range. A variance share is the worth of knowing an
input.

Every point chooses its plan anew, as the draws of `uncertainty` and `compare` do; where none meets
the target the metric has no value there. Or the plan and all else that was decided are held, and
the batch is solved for the target. Sobol indices are of one plan with its batch, so that every row
of their samples has a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from tco.core.columns import Column, Hidden
from tco.core.errors import DataError, UsageError
from tco.core.formula import finite
from tco.core.notebook_display import Shown
from tco.core.progress import named_step
from tco.core.provenance import SOURCED, Input
from tco.core.types import FloatArray
from tco.evaluation.evaluation import own_and_baseline
from tco.evaluation.scenario_function import Evaluation
from tco.sampling.drivers import (
    Indices,
    Pair,
    design,
    first_order,
    flips_of,
    indices,
    narrowing,
    pairs_that_flip,
)
from tco.sampling.scenario_quantity import ScenarioQuantity, finite_or_none
from tco.scenario.beliefs import Dice, belief_of, beliefs_of
from tco.scenario.evaluate_samples import DRAWS_PER_CALL
from tco.scenario.metrics import AGAINST_BASELINE

DRAWS = 2048  # draws from which the variance shares are estimated
ROUNDING = 1e-12  # relative change of the metric that counts as none
INPUTS_WORTH_KNOWING = 3  # unsourced inputs that an answer names


class Swing(NamedTuple):
    """An input, and the metric at both ends of its range; None where either is missing."""

    input_record: Hidden[Input]
    at_low: Annotated[float | None, Column(key="metric_low")]
    at_high: Annotated[float | None, Column(key="metric_high")]
    # change of the metric from low to high; None where only one end has a value
    swing: float | None
    meets_low: bool  # whether the low end meets the target
    meets_high: bool
    # break-even value of the input at which the ratio passes one, nearest to the input's value
    flips_at: Hidden[float | None] = None


@dataclass(repr=False)
class Sensitivity(Shown):
    """Sensitivity of a metric to every input, the strongest first."""

    metric: str
    sides: Sequence[Evaluation]  # the scenario, and the baseline of a ratio
    hold: bool  # whether all points share the plan of the base case
    centre: float | None  # metric with every input at its value; None where it misses the target
    swings: list[Swing]
    drivers: dict[str, Indices]  # Sobol indices by path; empty unless requested
    # share of the variance over draws that each input explains, by path; empty without draws
    variance_shares: dict[str, float]
    # pairs that reverse the ranking though neither input does alone; None without a ranking
    pairs: list[Pair] | None

    @property
    def line(self) -> str:
        """The metric, and the inputs that move it most."""
        return (
            f"{self.metric} of {self.sides[0].name}: "
            f"{', '.join(swing.input_record.path for swing in self.swings[:3])} move it most"
        )

    def to_frame(self) -> Any:
        """Return a row for each input, with the metric at both ends of its range."""
        import pandas as pd

        swing_rows = [
            (
                swing.input_record.path,
                swing.input_record.low,
                swing.input_record.high,
                swing.input_record.unit,
                swing.at_low,
                swing.at_high,
                swing.swing,
                swing.flips_at,
            )
            for swing in self.swings
        ]
        frame = pd.DataFrame(
            swing_rows,
            columns=[
                "path",
                "low",
                "high",
                "unit",
                "metric_low",
                "metric_high",
                "swing",
                "flips_at",
            ],
        )
        return frame.assign(**self.sides[0].result.context, metric=self.metric)

    def table(self) -> Any:
        """Return the rows of `to_frame` without the columns that all inputs share."""
        return self.to_frame().iloc[:, :8]

    @property
    def variance(self) -> float:
        """Sum of the squared swings, which measures the variance of a metric that is a sum."""
        return sum((swing.swing or 0.0) ** 2 for swing in self.swings)

    def share(self, swing: Swing) -> float | None:
        """Return the share of the metric's variance due to an input.

        The share is that over draws of all inputs if there are draws, else an estimate from the
        squared swings. It is None without draws if an end of the input has no value.
        """
        if self.variance_shares:
            return self.variance_shares.get(swing.input_record.path, 0.0)
        return None if swing.swing is None else swing.swing**2 / (self.variance or 1.0)

    @property
    def worth(self) -> list[Swing]:
        """Return the unsourced inputs that would narrow the range most if they were known."""
        guessed = [
            swing
            for swing in self.swings
            if swing.input_record.kind not in SOURCED and swing.swing != 0
        ]

        def share_or_one(swing: Swing) -> float:
            share = self.share(swing)
            return 1.0 if share is None else share

        return sorted(guessed, key=lambda swing: -share_or_one(swing))[:INPUTS_WORTH_KNOWING]

    def narrows(self, swing: Swing) -> float | None:
        """Return the share by which the metric's range narrows if an input becomes known."""
        share = self.share(swing)
        return None if share is None else narrowing(min(max(share, 0.0), 1.0))

    @property
    def flips(self) -> list[Swing]:
        """Inputs that reverse the ranking alone, the strongest first."""
        return [swing for swing in self.swings if swing.flips_at is not None]

    def groups(self, group_of: Callable[[Input], str]) -> dict[str, float]:
        """Return the shares of squared swings by group of inputs, the largest first."""
        shares_by_group: dict[str, float] = {}
        for swing in self.swings:
            if swing.swing:
                group = group_of(swing.input_record)
                share = swing.swing**2 / self.variance
                shares_by_group[group] = shares_by_group.get(group, 0.0) + share
        return dict(sorted(shares_by_group.items(), key=lambda group_share: -group_share[1]))


def _collect_ranged_inputs(scenario: str, sides: Sequence[Evaluation]) -> dict[str, Input]:
    """Return the inputs with a range by path; a scenario without any raises `DataError`."""
    ranged_inputs = {
        path: side.result.inputs[path]
        for side in reversed(sides)
        for path in beliefs_of(side.result)
    }
    if not ranged_inputs:
        raise DataError(f"{scenario}: none of its inputs has a range")
    return ranged_inputs


def _refuse_sobol_of_plans(sobol: int | None, hold: bool) -> None:
    if sobol is not None and not hold:
        raise UsageError(
            "Sobol indices are those of one plan, and a sample of them chooses none: ask for them "
            "with the plan fixed (--hold)"
        )


@finite
def sensitivity(
    scenario: str,
    metric: str,
    data: Path | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - as in `evaluate`
    variant: Mapping[str, str] | None = None,
    *,
    baseline: str | None = None,
    hold: bool = False,
    sobol: int | None = None,
    seed: int = 0,
) -> Sensitivity:
    """Return the sensitivity of a metric to every input of a scenario.

    Args:
        scenario: Name or path of the scenario.
        metric: Name of the metric.
        data: Folder of further user data; None without a further folder.
        set: Values of inputs by path.
        variant: Variants of the system by key.
        baseline: Scenario that a ratio is relative to; None takes the usual baseline.
        hold: Whether every point keeps the plan of the base case.
        sobol: Size of the sample for Sobol indices, a power of two; None returns no indices.
        seed: Seed of the draws and the sample.

    Raises:
        UsageError: `sobol` is given without `hold`, or is not a power of two.
        DataError: The scenario or metric is unknown, the metric has no value, or no input has a
            range.

    >>> found = sensitivity("gb200-nvl72", "tco_usd_per_chip_hour")
    >>> found.swings[0].input_record.path
    'terms.life'
    """
    _refuse_sobol_of_plans(sobol, hold)
    read, sides = own_and_baseline(scenario, metric, data, set or {}, variant or {}, baseline)
    if hold:
        for side in sides:
            side.metric(read)  # raises an error if there is no plan to hold
    ranged = _collect_ranged_inputs(scenario, sides)
    quantity = _drawn_quantity(read, sides, hold, seed)
    with named_step("moving each input to its ends"):
        metrics_by_input = quantity.one_at_a_time_values()
    if not any(np.isfinite(input_metrics).any() for input_metrics in metrics_by_input.values()):
        sides[0].metric(read)  # raises an error that says why no point has a value
    ratio = metric in AGAINST_BASELINE
    flips, pairs = _inputs_that_flip(quantity, metrics_by_input) if ratio else ({}, None)
    swings = _ranked_swings(ranged, metrics_by_input, ratio, flips)
    drivers = _sobol_indices_by_input(quantity, sides, swings, sobol, seed) if sobol else {}
    return Sensitivity(
        metric=metric,
        sides=sides,
        hold=hold,
        centre=_base_value(quantity, sides),
        swings=swings,
        drivers=drivers,
        variance_shares=_variance_shares(quantity),
        pairs=pairs,
    )


def _drawn_quantity(
    metric: str, sides: Sequence[Evaluation], hold: bool, seed: int
) -> ScenarioQuantity:
    """Return a metric, or its ratio to the baseline's, as a function of the inputs."""
    own_function, *baseline_functions = (side.drawn_function(hold) for side in sides)
    return ScenarioQuantity(
        metric,
        own_function,
        baseline_functions[0] if baseline_functions else None,
        Dice(sides[0].catalogue, seed, 0, DRAWS),
    )


def _inputs_that_flip(
    quantity: ScenarioQuantity, ratios: Mapping[str, FloatArray]
) -> tuple[dict[str, float], list[Pair]]:
    """Return the break-even values of inputs by path, and the pairs that reverse the ranking."""
    flips = flips_of(quantity.ranges, ratios, quantity.together)
    plan_inputs = frozenset(path for side in quantity.sides for path in side.plan_inputs())
    return flips, pairs_that_flip(quantity.ranges, ratios, quantity.together, plan_inputs)


def _base_value(quantity: ScenarioQuantity, sides: Sequence[Evaluation]) -> float | None:
    """Return the metric, or the ratio of both sides, with every input at its value."""
    metrics = [side.result.metrics[quantity.metric] for side in sides]
    base_value = quantity.metric_or_ratio(
        [np.array([np.nan if metric is None else metric]) for metric in metrics]
    )
    return finite_or_none(float(base_value[0]))


def _variance_shares(quantity: ScenarioQuantity) -> dict[str, float]:
    """Return each input's share of the metric's variance over the draws that have it."""
    metric_draws = quantity.draws()
    if quantity.baseline is not None:  # a ratio of zero is a draw that misses the target
        metric_draws = np.where(metric_draws > 0, metric_draws, np.nan)
    input_deviates = {
        path: quantity.dice.correlated_deviates(input_range)
        for path, input_range in quantity.ranges.items()
    }
    return first_order(metric_draws, input_deviates)


def rank(swing: Swing) -> tuple[float, str]:
    """Return the sort key of a swing, the largest first.

    Swings with an end that has no value come before the largest.
    """
    return -np.inf if swing.swing is None else -abs(swing.swing), swing.input_record.path


def _ranked_swings(
    ranged: Mapping[str, Input],
    metrics_by_input: Mapping[str, FloatArray],
    ratio: bool,
    flips: Mapping[str, float],
) -> list[Swing]:
    swings = (
        _input_swing(ranged[path], input_metrics, ratio, flips.get(path))
        for path, input_metrics in metrics_by_input.items()
    )
    return sorted(swings, key=rank)


def _input_swing(
    ranged_input: Input, input_metrics: FloatArray, ratio: bool, flips_at: float | None
) -> Swing:
    """Return an input's swing from the metric at its low, value and high.

    A swing within rounding is zero.
    """
    low, centre, high = map(float, input_metrics)
    if low == high or abs(high - low) <= ROUNDING * abs(centre):
        high = low

    def meets_target(end: float) -> bool:
        return not np.isnan(end) and not (ratio and end == 0)

    has_no_effect = low == high or bool(np.isnan(input_metrics).all())
    return Swing(
        input_record=ranged_input,
        at_low=finite_or_none(low),
        at_high=finite_or_none(high),
        swing=0.0 if has_no_effect else finite_or_none(high - low),
        meets_low=meets_target(low),
        meets_high=meets_target(high),
        flips_at=flips_at,
    )


# ---------------------------------------------------------------- Sobol indices
def _sobol_indices_by_input(
    quantity: ScenarioQuantity,
    sides: Sequence[Evaluation],
    swings: Sequence[Swing],
    count: int,
    seed: int,
) -> dict[str, Indices]:
    """Return the Sobol indices of the moving inputs, on fixed plans and batches.

    All other inputs stay at their values.
    """
    if count & (count - 1) or not 2 <= count <= DRAWS_PER_CALL:
        raise UsageError(f"{count} samples: expected a power of two up to {DRAWS_PER_CALL}")
    moving = [
        swing.input_record
        for swing in swings
        if swing.swing != 0
        and not any(side.decides_structure(swing.input_record.path) for side in sides)
    ]
    if not moving:
        return {}
    a, b = (
        np.column_stack(
            [
                input_quantiles(moving_input, part[:, input_index])
                for input_index, moving_input in enumerate(moving)
            ]
        )
        for part in design(count, len(moving), seed)
    )

    def metric_of_rows(design_rows: FloatArray) -> FloatArray:
        side_metrics = []
        for side, function in zip(sides, quantity.sides, strict=True):
            input_values = {
                moving_input.path: (design_rows[:, input_index], moving_input.unit)
                for input_index, moving_input in enumerate(moving)
                if moving_input.path in side.result.inputs
            }
            side_metrics.append(
                np.asarray(function.draws(input_values, solve=False).metrics[quantity.metric])
                if input_values
                else np.full(count, side.metric(quantity.metric))
            )
        return quantity.metric_or_ratio(side_metrics)

    sobol_indices = indices(metric_of_rows, a, b)
    return {
        moving_input.path: Indices(*(float(part[input_index]) for part in sobol_indices))
        for input_index, moving_input in enumerate(moving)
    }


def input_quantiles(ranged_input: Input, probabilities: FloatArray) -> FloatArray:
    """Return an input's quantiles in the distribution of its belief.

    The quantiles at 5 % and 95 % are the low and the high of the input.
    """
    from scipy.special import ndtri

    return belief_of(ranged_input).quantile(ndtri(probabilities))
