"""Median, P10 and P90 of one metric of a scenario, over the draws of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tco.core.array_cache import cached_arrays
from tco.core.progress import named_step
from tco.core.types import AnyArray
from tco.evaluation.scenario_function import Evaluation
from tco.sampling.scenario_quantity import finite_or_none
from tco.sampling.uncertainty import draw_statistics, sample_of
from tco.scenario.beliefs import Dice
from tco.scenario.metrics import CHIP_HOUR, PRICED
from tco.scenario.result import why_incomparable

# Draws of a comparison. A scenario has the same median wherever it is drawn with both constants.
DRAWS = 512
SEED = 0
DRAWN_COSTS = (*PRICED, CHIP_HOUR)


class DrawnMetric(NamedTuple):
    """Percentiles of a metric over draws, in its unit; None where a percentile is infinite."""

    draws: int  # number of draws
    p10: float | None
    p50: float | None
    p90: float | None


DrawnMetrics = Mapping[str, DrawnMetric]


def drawn_costs(evaluation: Evaluation) -> DrawnMetrics:
    """Draw all inputs with ranges, and return the percentiles of each cost of a scenario.

    Returns:
        Percentiles of each of `DRAWN_COSTS` that the scenario has, by metric; empty where the
        scenario cannot be drawn.

    """
    if evaluation.why_undrawable() is not None:
        drawn = drawn_chip_hour(evaluation)
        return {} if drawn is None else {CHIP_HOUR: drawn}
    metrics = _sampled_metrics([evaluation], hold=False)
    percentiles = {
        metric: _percentiles(metric, metrics[metric]) for metric in DRAWN_COSTS if metric in metrics
    }
    return {metric: drawn for metric, drawn in percentiles.items() if drawn is not None}


def drawn_metric(
    evaluation: Evaluation,
    metric: str,
    hold: bool = False,
    reference: Evaluation | None = None,
) -> DrawnMetric | None:
    """Draw all inputs with ranges, and return the percentiles of a metric.

    Args:
        evaluation: Evaluated scenario.
        metric: Name of the metric.
        hold: Whether each draw keeps the plan of the base case.
        reference: Baseline of a ratio; None without a baseline.

    Returns:
        Percentiles of the metric; None where the scenario cannot be drawn, or where fewer than two
        draws have the metric.

    """
    if metric == CHIP_HOUR and not hold:
        return drawn_chip_hour(evaluation)
    sides = [evaluation] if reference is None else [evaluation, reference]
    if any(side.why_undrawable(hold) for side in sides):
        return None
    if reference is not None and why_incomparable(evaluation.result, reference.result):
        return None
    metrics = _sampled_metrics(sides, hold)
    return None if metric not in metrics else _percentiles(metric, metrics[metric])


def _sampled_metrics(sides: Sequence[Evaluation], hold: bool) -> dict[str, AnyArray]:
    """Return the metrics of a scenario in each draw, with the ratios to a second scenario."""
    dice = Dice(sides[0].catalogue, SEED, 0, DRAWS)
    with named_step("drawing inputs"):
        draws = [side.drawn_function(hold).sample(dice) for side in sides]
    return sample_of(draws[0], draws[1] if len(draws) > 1 else None).metrics


def drawn_chip_hour(evaluation: Evaluation) -> DrawnMetric | None:
    """Draw all inputs with ranges, and return the percentiles of the cost per chip-hour, USD.

    The cost does not depend on the model, so no plan is chosen. Returns None for a saved result,
    for a scenario without a cost, and where no input has a range.
    """
    if evaluation.saved or evaluation.result.costless:
        return None
    function = evaluation.function(workload=False)
    if not function.inputs({}).is_shipped:
        return _drawn_chip_hour(evaluation)
    settings = sorted(function.settings.items())
    variant = sorted(function.variant.items())
    question = repr((function.scenario, settings, variant))
    (percentiles,) = cached_arrays(
        [b"chip-hour", question.encode()], lambda: [_array_of(_drawn_chip_hour(evaluation))]
    )
    return _drawn_from(percentiles)


def _drawn_chip_hour(evaluation: Evaluation) -> DrawnMetric | None:
    function = evaluation.with_settings({"workload": "stated"}, workload=False).drawn_function()
    if not function.ranges:
        return None
    draws = function.sample(Dice(evaluation.catalogue, SEED, 0, DRAWS))
    hourly_costs = draws.metrics[CHIP_HOUR]
    return None if hourly_costs is None else _percentiles(CHIP_HOUR, hourly_costs)


def _array_of(drawn: DrawnMetric | None) -> AnyArray:
    """Return percentiles as an array, with nan for None; empty without draws."""
    return np.array([] if drawn is None else drawn[1:], dtype=float)


def _drawn_from(percentiles: AnyArray) -> DrawnMetric | None:
    """Return the metric whose array `_array_of` returned; None for an empty array."""
    if not len(percentiles):
        return None
    return DrawnMetric(DRAWS, *map(finite_or_none, percentiles.tolist()))


def _percentiles(metric: str, metric_draws: AnyArray) -> DrawnMetric | None:
    statistics = draw_statistics(metric, metric_draws)
    if statistics is None:
        return None
    return DrawnMetric(DRAWS, *(statistics[percentile] for percentile in ("p10", "p50", "p90")))
