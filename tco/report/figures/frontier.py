"""Frontier figure: cost or throughput against interactivity, for the best plans.

The figure shows, for each system, the plans that no other plan beats, and the plan of the workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, cycle, repeat
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from tco.comparison.frontier_records import Frontier, Point
from tco.report.assumptions import premise_lines, workload_line
from tco.report.figures.drawing import (
    MARGIN,
    MARKERS,
    Drawing,
    Labels,
    distinct_titles,
    scale_by_ratios,
    styled,
    text_width,
    tip,
)
from tco.report.figures.style import LIGHT, MUTED, WIDE, vendor_colours
from tco.report.frontier import frontier_scenario_label, frontier_title
from tco.report.table import significant
from tco.scenario.metrics import METRICS

SPEED = "tokens_per_s_per_user"
COST = "usd_per_million_output_tokens"
AGAINST = {  # what may stand against interactivity, with what the axis says
    COST: "USD per million output tokens",
    "output_tokens_per_s_per_chip": "output tokens/s per chip",
    "tokens_per_s_per_facility_mw": "output tokens/s per site MW",
}
RANGE_STEP = 13.0  # pixels from one range to the next
SPAN = "P10 to P90"
ENDS = ("p10", "p90")


class CostCurve(NamedTuple):
    """A frontier as it is drawn."""

    name: str
    colour: str
    marker: str
    frontier: Frontier
    # P10 and P90 of what the cheapest plan of the workload gives
    range: Mapping[str, float] | None

    def chosen_words(self, against: str) -> str:
        """Return the figures of the workload's plan, or that no plan reaches its speed."""
        chosen = self.frontier.chosen
        if chosen is None:
            return f"{self.name} has no plan at the workload's target speed"
        cost, speed = (significant(getattr(chosen, metric), 3) for metric in (against, SPEED))
        return f"{self.name} {cost} at {speed}"

    def point_words(self, point: Point, against: str) -> str:
        """Return a text with the plan and the figures of a point."""
        return (
            f"{self.name}: {significant(getattr(point, against), 3)} {METRICS[against].unit} at "
            f"{significant(getattr(point, SPEED), 3)} tokens/s per user; {point.chips} chips, "
            f"tensor parallel {point.tp}, batch {point.batch}, bound by {point.bound}"
        )


@styled
def frontier_figure(
    frontiers: Sequence[Frontier],
    against: str = COST,
    width: float = WIDE,
    ranges: Sequence[Mapping[str, float] | None] = (),
) -> Drawing:
    """Return the figure of cost against interactivity, a line for each system.

    Both axes are logarithmic. The large mark is the cheapest plan at the workload's interactivity.
    Lines have their names beside them, or in a legend where a name finds no room.

    Args:
        frontiers: Frontiers of the systems.
        against: Metric of the cost axis.
        width: Width of the figure, in pixels.
        ranges: P10 and P90 for each frontier, None where unknown; empty for no ranges.

    """
    curve_titles = distinct_titles(
        [(frontier_title(frontier), frontier_scenario_label(frontier)) for frontier in frontiers]
    )
    numbers = vendor_colours([frontier.decode.result for frontier in frontiers])
    curves = [
        CostCurve(curve_title, LIGHT[number - 1], marker, frontier, span)
        for curve_title, number, marker, frontier, span in zip(
            curve_titles, numbers, cycle(MARKERS), frontiers, ranges or repeat(None), strict=False
        )
    ]
    drawn = [curve for curve in curves if curve.frontier.points]
    scenario_results = [curve.frontier.decode.result for curve in drawn or curves]
    figures = "; ".join(curve.chosen_words(against) for curve in curves)
    drawing = Drawing(
        "What speed costs (base case)",
        f"{METRICS[against].label} against tokens/s per user: {figures}.",
        width,
        workload_line(scenario_results, target=False),
        "Each point is a plan that no other of its system beats, as estimated. The large mark is "
        "the cheapest at the target speed (dashed).",
    )
    if any(curve.range for curve in drawn):
        drawing.paragraphs(
            "On the right P10 to P90 of that plan, every input drawn within its range."
        )
    if drawn:
        _draw_curves(drawing, drawn, against)
    for curve in curves:
        if not curve.frontier.points:
            drawing.paragraphs(f"{curve.name}: {curve.frontier.reason}.")
    drawing.paragraphs(*dict.fromkeys(premise_lines(scenario_results)))
    return drawing


def _draw_curves(drawing: Drawing, curves: Sequence[CostCurve], against: str) -> None:
    """Draw every line with its points and its name, and the ranges beside them."""
    ranged = [curve for curve in curves if curve.range and curve.frontier.chosen]
    strip = max(RANGE_STEP * (len(ranged) + 1), text_width(SPAN)) if ranged else 4
    if ranged:
        drawing.text(drawing.width - MARGIN, drawing.bottom + 19, SPAN, color=MUTED, ha="right")
    axes = drawing.axes(
        min(drawing.width * 0.75, 380), 54, 14 + strip, "tokens/s per user", AGAINST[against]
    )
    points = [
        [(getattr(point, SPEED), getattr(point, against)) for point in curve.frontier.points]
        for curve in curves
    ]
    speeds, costs = zip(*chain.from_iterable(points), strict=True)
    ends = [
        end_value for curve in ranged for end in ENDS if (end_value := (curve.range or {})[end])
    ]
    scale_by_ratios(axes.xaxis, speeds)
    scale_by_ratios(axes.yaxis, [*costs, *ends])
    for target in {curve.frontier.decode.values["workload.interactivity"] for curve in curves}:
        if axes.viewLim.containsx(target):
            axes.axvline(target, color=MUTED, linewidth=1, dashes=(4, 3))
    labels = Labels(axes)
    for curve, pairs in zip(curves, points, strict=True):
        axes.plot(*zip(*pairs, strict=True), color=curve.colour, linewidth=2)
        labels.keep_clear(pairs, 4)
        for point, pair in zip(curve.frontier.points, pairs, strict=True):
            marker, size = (curve.marker, 11) if point.chosen else ("o", 4.5)
            mark = axes.plot(*pair, marker, color=curve.colour, markersize=size, zorder=3)
            tip(mark, curve.point_words(point, against))
    for position, curve in enumerate(ranged, start=1):
        _draw_range(axes, curve, against, 1 + RANGE_STEP * position / axes.bbox.width)
    drawing.name_lines(
        labels,
        [
            (curve.name, curve.colour, curve.marker, pairs)
            for curve, pairs in zip(curves, points, strict=True)
        ],
    )


def _draw_range(axes: Axes, curve: CostCurve, against: str, x: float) -> None:
    """Draw P10 to P90 of the workload's plan beside the axes, with its mark.

    An end among draws that miss the target lies at the end of the axis.
    """
    span = curve.range or {}
    style: dict[str, Any] = {
        "transform": axes.get_yaxis_transform(),
        "color": curve.colour,
        "clip_on": False,
    }
    ends = [
        limit if span[end] is None else span[end]
        for end, limit in zip(ENDS, axes.get_ylim(), strict=True)
    ]
    line = axes.plot([x, x], ends, linewidth=2, marker="_", markeredgewidth=2, **style)
    low, high = (significant(span[end], 3) or "beyond" for end in ENDS)
    tip(line, f"{curve.name}: P10 {low}, P90 {high} {METRICS[against].unit}")
    cost = getattr(curve.frontier.chosen, against)
    axes.plot(x, cost, marker=curve.marker, markersize=8, **style)
