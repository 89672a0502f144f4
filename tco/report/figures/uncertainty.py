"""Figures of uncertainty: a tornado of the strongest inputs, and a histogram of draws."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from tco.catalog.labels import short_name
from tco.core.errors import DataError
from tco.core.types import FloatArray
from tco.report.assumptions import marked, premise_lines, workload_line
from tco.report.figures.drawing import (
    MARGIN,
    Drawing,
    scale_by_ratios,
    styled,
    tip,
    write_beside,
)
from tco.report.figures.style import INK, LIGHT, MUTED, PAPER, WIDE
from tco.report.sensitivity import input_range_text, plan_treatment, tornado_end_label
from tco.report.table import headed, significant
from tco.report.uncertainty import percent_with_error, pictured, statistics_by_metric
from tco.sampling.sensitivity import Sensitivity, Swing
from tco.sampling.uncertainty import Uncertainty
from tco.scenario.metrics import METRICS, RATIOS

SHOWN = 12  # inputs
ROW = 34.0  # pixels
LOW, HIGH = LIGHT[1], LIGHT[0]


@styled
def tornado_figure(sensitivity: Sensitivity, width: float = WIDE) -> Drawing:
    """Return the figure of a metric's strongest inputs as bars.

    The input that moves the metric most comes first.

    Args:
        sensitivity: Sensitivity of the metric to every input.
        width: Width of the figure, in pixels.

    Raises:
        DataError: The metric has no value with every input at its own value.

    """
    metric, centre = METRICS[sensitivity.metric], sensitivity.centre
    side = sensitivity.sides[0]
    if centre is None:
        raise DataError(
            f"{side.scenario.name}: {sensitivity.metric} has no value with every input at its "
            "own, so there is no middle to draw from"
        )
    moving = [swing for swing in sensitivity.swings if swing.swing != 0]
    swings = moving[:SHOWN]
    figures = "; ".join(
        f"{short_name(swing.input_record.path)} {tornado_end_label(swing.at_low, swing.meets_low)} "
        f"to {tornado_end_label(swing.at_high, swing.meets_high)}"
        for swing in swings
    )
    label = headed(metric.label, metric.unit)
    now = f"{label}: {marked(side.result, sensitivity.metric, significant(centre, 3))}"
    drawing = Drawing(
        f"What drives {side.result.title}",
        f"{now} at the centre; from low to high of each input: {figures}.",
        width,
        f"{now} in the base case",
        "Each input alone at its P5 and P95 (on the right), the plan "
        f"{plan_treatment(sensitivity)}; ~ an estimate",
    )
    drawing.legend({"input at its low": LOW, "input at its high": HIGH})
    input_names = [short_name(swing.input_record.path) for swing in swings]
    details = [input_range_text(swing.input_record) for swing in swings]
    axes = drawing.rows(input_names, ROW, MARGIN + 52, 60, details)
    axes.set_xlabel(label)
    drawing.bottom += 18
    for row_index, swing in enumerate(swings):
        _draw_swing(axes, row_index, swing, input_names[row_index], centre)
    if len(moving) > len(swings):
        drawing.paragraphs(f"{len(moving) - len(swings)} more inputs move it less.")
    if not all(swing.meets_low and swing.meets_high for swing in swings):
        drawing.paragraphs("! the workload's targets are not met there.")
    return drawing


def _draw_swing(axes: Axes, row_index: int, swing: Swing, input_name: str, centre: float) -> None:
    """Draw the bars of an input from the centre to its low and its high."""
    ends = [
        (
            end_value,
            colour,
            f"{input_name} at its {end}",
            tornado_end_label(end_value, meets),
        )
        for end_value, colour, end, meets in (
            (swing.at_low, LOW, "low", swing.meets_low),
            (swing.at_high, HIGH, "high", swing.meets_high),
        )
        if end_value is not None and end_value != centre
    ]
    axes.plot(
        [centre, centre],
        [row_index - 0.22, row_index + 0.22],
        color=INK,
        linewidth=1.5,
        zorder=3,
    )
    gaps = set()
    for end_value, colour, end, label in sorted(ends, key=lambda end: -abs(end[0] - centre)):
        tip(
            axes.barh(row_index, end_value - centre, 0.32, centre, color=colour),
            f"{end}: {label}",
        )
        gap = 4 if end_value > centre else -4
        if gap not in gaps:  # both ends on one side: the farther is named
            write_beside(axes, end_value, row_index, label, gap)
        gaps.add(gap)


BINS = 40
OUTER = (0.5, 99.5)  # percentiles between which the draws are shown
WORSE, BETTER = LIGHT[1], LIGHT[0]
# percentile -> where its name stands of its line
PERCENTILES = {"p10": "right", "p50": "center", "p90": "left"}
PERCENTILE_WORDS = {"p10": "P10", "p50": "median", "p90": "P90"}


@styled
def range_figure(uncertainty: Uncertainty, width: float = WIDE) -> Drawing:
    """Return the histogram of the draws of the main metric.

    The metric is the ratio to the baseline if there is a baseline, else the cost.

    Args:
        uncertainty: The draws of a scenario and of its baseline.
        width: Width of the figure in px.

    Raises:
        DataError: The metric has no range among the draws that meet the target.

    """
    metric, label, unit, size = pictured(uncertainty)
    sample, scenario_result = uncertainty.sample, uncertainty.evaluation.result
    draws, low, high = _draws_and_range(uncertainty, metric, size)
    counts, edges = np.histogram(draws, _bin_edges(low, high))
    shares = counts / len(draws) * 100
    statistics = statistics_by_metric(uncertainty)[metric] or {}
    percentiles = {
        percentile_name: statistics[percentile_name] / size
        for percentile_name in PERCENTILES
        if statistics.get(percentile_name) is not None
    }
    words = ", ".join(
        f"{PERCENTILE_WORDS[percentile_name]} {significant(percentile_value, 3)}"
        for percentile_name, percentile_value in percentiles.items()
    )
    drawing = Drawing(
        f"How sure the answer is: {scenario_result.title}",
        f"{label}: {words}; {len(sample.meets):,} draws of {len(uncertainty.drawn)} inputs.",
        width,
        f"{headed(label, unit)}: {words}",
    )
    baseline = uncertainty.baseline if metric in RATIOS else None
    if baseline is not None:
        drawing.paragraphs(
            f"{percent_with_error(sample.better)} of the draws in which either meets the target "
            f"cost less per token than {baseline.result.title}"
        )
        drawing.legend({"costs more per token": WORSE, "costs less": BETTER})
    inside = {
        percentile_name: percentile_value
        for percentile_name, percentile_value in percentiles.items()
        if low <= percentile_value <= high
    }
    height = min(width * 0.6, 280)
    axes = drawing.axes(height, x_words=headed(label, unit), y_words="% of the draws")
    _draw_histogram(axes, edges, shares, inside, baseline is not None)
    drawing.paragraphs(
        workload_line([scenario_result]),
        *premise_lines([scenario_result]),
        f"{len(sample.meets):,} draws of {len(uncertainty.drawn)} inputs within their ranges, seed "
        f"{uncertainty.seed}; equal widths are equal ratios.",
    )
    return drawing


def _draws_and_range(
    uncertainty: Uncertainty, metric: str, size: float
) -> tuple[FloatArray, float, float]:
    """Return the usable draws of a metric and the ends of its range; none raises `DataError`."""
    draws = uncertainty.sample.metrics[metric]
    draws = draws[np.isfinite(draws) & (draws > 0)] / size
    low, high = np.percentile(draws, OUTER) if len(draws) > 1 else (0.0, 0.0)
    if not 0 < low < high:
        raise DataError(
            f"{uncertainty.evaluation.name}: {metric} has no range among the {len(draws):,} draws "
            "that meet the target, so there is nothing to draw"
        )
    return draws, low, high


def _draw_histogram(
    axes: Axes,
    edges: FloatArray,
    shares: FloatArray,
    percentiles: dict[str, float],
    compared: bool,
) -> None:
    """Draw the shares of the draws with percentiles above them.

    If `compared`, costlier bins have a colour of their own, and a line stands at parity.
    """
    scale_by_ratios(axes.xaxis, edges)
    for start, end, share in zip(edges, edges[1:], shares, strict=False):
        colour = WORSE if compared and end <= 1 + 1e-9 else BETTER
        bar = axes.bar(start, share, end - start, align="edge", color=colour, edgecolor=PAPER)
        tip(bar, f"{significant(start, 3)} to {significant(end, 3)}: {share:.1f} %")
    level = shares.max() * 1.06
    axes.set_ylim(0, shares.max() * 1.2)
    ticks = list(percentiles.values())
    axes.plot(ticks, [level] * len(ticks), color=INK, marker="|", lw=1.5, mew=1.5)
    frame = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
    for percentile_name, percentile_value in percentiles.items():
        side, words = PERCENTILES[percentile_name], PERCENTILE_WORDS[percentile_name]
        axes.text(percentile_value, level * 1.04, words, ha=side, bbox=frame)
    if compared and edges[0] < 1 < edges[-1]:
        axes.axvline(1, color=MUTED, linewidth=1, dashes=(4, 3))


def _bin_edges(low: float, high: float) -> FloatArray:
    step = np.log(high / low) / BINS
    powers = np.arange(np.floor(np.log(low) / step), np.ceil(np.log(high) / step) + 1)
    edges: FloatArray = np.exp(step * powers)
    return edges
