"""Histogram of the draws of a metric, with percentiles and the baseline."""

from __future__ import annotations

import numpy as np

from tco.core.errors import DataError
from tco.report.assumptions import premise_lines, workload_line
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, Log, Plot, separated_positions
from tco.report.figures.style import SMALL
from tco.report.figures.svg import Drawing
from tco.report.table import headed, significant
from tco.report.uncertainty import percent_with_error, pictured, statistics_by_metric
from tco.sampling.uncertainty import Uncertainty
from tco.scenario.metrics import RATIOS

BINS = 40
APART = 30.0  # pixels between the names of percentiles
OUTER = (0.5, 99.5)  # percentiles between which the draws are shown
WORSE, BETTER = "fill-2", "fill-1"
SHOWN = ("p10", "p50", "p90")


def range_figure(found: Uncertainty, width: float = WIDE) -> str:
    """Return the histogram of the draws of the main metric, as SVG.

    The metric is the ratio to the baseline if there is a baseline, else the cost.

    Args:
        found: The draws of a scenario and of its baseline.
        width: Width of the figure in px.

    Raises:
        DataError: The metric has no range among the draws that meet the target.

    """
    metric, label, unit, size = pictured(found)
    many = found.sample.metrics[metric]
    kept = many[np.isfinite(many) & (many > 0)] / size
    low, high = np.percentile(kept, OUTER) if len(kept) > 1 else (0.0, 0.0)
    if not 0 < low < high:
        raise DataError(
            f"{found.asked.name}: {metric} has no range among the {len(kept):,} draws that meet "
            "the target, so there is nothing to draw"
        )
    counts, edges = np.histogram(kept, edges_of(float(low), float(high), metric in RATIOS))
    some = statistics_by_metric(found)[metric] or {}
    points = {name: some[name] / size for name in SHOWN if some.get(name) is not None}
    words = ", ".join(f"{name.upper()} {significant(value, 3)}" for name, value in points.items())
    title = found.asked.result.title
    drawing = Drawing(
        f"How sure the answer is: {title}",
        f"{label}: {words}; {len(found.sample.meets):,} draws of {len(found.drawn)} inputs.",
        width,
    )
    drawing.paragraph(f"{headed(label, unit)}: {words}")
    ratio = metric in RATIOS and found.baseline is not None
    if ratio and found.baseline is not None:
        other = found.baseline.result.title
        drawing.paragraph(
            f"{percent_with_error(found.sample.better)} of the draws in which either meets the target cost "
            f"less a token than {other}"
        )
        drawing.legend([(WORSE, "costs more a token"), (BETTER, "costs less")])
    top = drawing.bottom + 48
    plot = Plot(
        drawing,
        Log(float(edges[0]), float(edges[-1]), drawing.left + 40, drawing.right - 12),
        Linear.rounded(
            [0.0, float(counts.max()) / len(kept) * 100], top + min(width * 0.6, 280), top, 4
        ),
    )
    plot.axes(headed(label, unit), "% of the draws", above=32)
    for at, count in enumerate(counts.tolist()):
        start, end, height = (
            plot.x.position_of(float(edges[at])),
            plot.x.position_of(float(edges[at + 1])),
            plot.y.position_of(count / len(kept) * 100),
        )
        look = WORSE if ratio and edges[at + 1] <= 1 + 1e-9 else BETTER
        tip = (
            f"{significant(edges[at], 3)} to {significant(edges[at + 1], 3)}: "
            f"{count / len(kept) * 100:.1f} %"
        )
        drawing.rectangle(
            start, height, max(end - start - 1, 0.5), plot.y.start - height, look, tip
        )
    draw_percentiles(plot, points)
    if ratio and plot.x.low < 1 < plot.x.high:
        drawing.line(
            (plot.x.position_of(1), plot.y.start), (plot.x.position_of(1), plot.y.end), "dashed"
        )
    drawing.paragraphs([workload_line([found.asked.result]), *premise_lines([found.asked.result])])
    drawing.paragraph(
        f"{len(found.sample.meets):,} draws of {len(found.drawn)} inputs within their ranges, seed "
        f"{found.seed}; equal widths are equal ratios."
    )
    return drawing.svg()


def edges_of(low: float, high: float, ratio: bool) -> list[float]:
    """Return the borders of the bins in equal ratios; of a ratio one of them is 1, so that no bin
    is better and worse.
    """
    step = (high / low) ** (1 / BINS)
    if not ratio:
        return [float(low * step**at) for at in range(BINS + 1)]
    first, last = (
        int(np.floor(np.log(low) / np.log(step))),
        int(np.ceil(np.log(high) / np.log(step))),
    )
    return [float(step**at) for at in range(first, last + 1)]


def draw_percentiles(plot: Plot, points: dict[str, float]) -> None:
    """Draw where the percentiles lie, above the bars."""
    y = plot.y.end - 4
    inside = {
        name: plot.x.position_of(value)
        for name, value in points.items()
        if plot.x.low <= value <= plot.x.high
    }
    if {"p10", "p90"} <= inside.keys():
        plot.drawing.line((inside["p10"], y), (inside["p90"], y), "rule")
    for x, (name, at) in zip(
        separated_positions(list(inside.values()), APART, plot.x.start, plot.x.end),
        inside.items(),
        strict=True,
    ):
        plot.drawing.line((at, y - 4), (at, y + 4), "rule")
        plot.drawing.text((x, y - 8), name.upper(), "ink", SMALL, "middle", halo=True)
