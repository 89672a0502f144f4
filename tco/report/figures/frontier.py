"""Frontier figure: cost or throughput against interactivity, for the best plans.

The figure shows, for each system, the plans that no other plan beats, and the plan of the workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tco.comparison.frontier_records import Frontier, Point
from tco.report.assumptions import premise_lines, workload_line
from tco.report.figures import WIDE
from tco.report.figures.scales import Log, Plot
from tco.report.figures.style import BODY, SMALL, vendor_colours
from tco.report.figures.svg import SHAPES, Drawing, Labels, distinct, text_width
from tco.report.frontier import frontier_scenario_label, frontier_title
from tco.report.table import significant
from tco.scenario.metrics import METRICS

SPEED = "tokens_per_s_per_user"
COST = "usd_per_million_output_tokens"
AGAINST = {  # what may stand against interactivity, with what the axis says
    COST: "USD for a million output tokens",
    "output_tokens_per_s_per_chip": "output tokens/s a chip",
    "tokens_per_s_per_facility_mw": "output tokens/s a site MW",
}
DOT, CHOSEN = 1.8, 5.5  # pixels
# pixels: from one range to the next, of the marks at its ends, and from the plot to the first
APART, CAP, BESIDE = (
    13.0,
    3.0,
    8.0,
)
SPAN = "P10 to P90"
ENDS = ("p10", "p90")


class CostCurve(NamedTuple):
    """A frontier as it is drawn."""

    name: str
    number: int  # of its colour
    shape: str
    frontier: Frontier
    # P10 and P90 of what the cheapest plan of the workload gives
    range: Mapping[str, float] | None = None

    @property
    def mark(self) -> tuple[str, str]:
        """The look and shape that stand for it."""
        return f"fill-{self.number}", self.shape


def curves_of(
    frontiers: Sequence[Frontier], ranges: Sequence[Mapping[str, float] | None]
) -> list[CostCurve]:
    """Return frontiers with their names, colours and shapes."""
    titles = distinct(
        list(map(frontier_title, frontiers)), list(map(frontier_scenario_label, frontiers))
    )
    colours = vendor_colours([frontier.decode.result for frontier in frontiers])
    every = zip(titles, colours, frontiers, ranges or [None] * len(frontiers), strict=True)
    return [
        CostCurve(name, colour, SHAPES[at % len(SHAPES)], frontier, one)
        for at, (name, colour, frontier, one) in enumerate(every)
    ]


def frontier_figure(
    frontiers: Sequence[Frontier],
    against: str = COST,
    width: float = WIDE,
    ranges: Sequence[Mapping[str, float] | None] = (),
) -> str:
    """Return the SVG of cost against interactivity, a line for each system.

    Both axes are logarithmic. The large mark is the cheapest plan at the workload's interactivity.
    Lines have their names beside them where all names find room, and else a legend.

    Args:
        frontiers: Frontiers of the systems.
        against: Metric of the cost axis.
        width: Width of the figure, in pixels.
        ranges: P10 and P90 for each frontier, None where unknown; empty for no ranges.

    """
    curves = curves_of(frontiers, ranges)
    return render_frontier_figure(curves, against, width, named=True) or render_frontier_figure(
        curves, against, width, named=False
    )


def render_frontier_figure(
    curves: Sequence[CostCurve], against: str, width: float, named: bool
) -> str:
    """Return the figure with its lines named, or nothing where a name finds no room; or with a
    legend.
    """
    some = [curve for curve in curves if curve.frontier.points]
    results = [curve.frontier.decode.result for curve in some or curves]
    said = "; ".join(f"{curve.name} {chosen_words(curve.frontier, against)}" for curve in curves)
    drawing = Drawing(
        "What interactivity costs",
        f"{METRICS[against].label} against tokens/s for each user: {said}.",
        width,
    )
    drawing.paragraph(workload_line(results))
    drawing.paragraph(
        "Each point is a plan that no other of its system beats; the large mark is the cheapest "
        "for this workload. All are estimates."
    )
    if any(curve.range for curve in some):
        drawing.paragraph(
            "On the right P10 to P90 of that plan, every input drawn within its range."
        )
    if some and not draw_plot(drawing, some, against, named):
        return ""
    for curve in curves:
        if not curve.frontier.points:
            drawing.paragraph(f"{curve.name}: {curve.frontier.reason}.")
    drawing.paragraphs(dict.fromkeys(premise_lines(results)))
    return drawing.svg()


def draw_plot(drawing: Drawing, curves: Sequence[CostCurve], against: str, named: bool) -> bool:
    """Draw the curves, with their names beside them or with a legend; say whether every name found
    room.
    """
    if not named:
        drawing.legend(
            [(curve.mark[0], curve.name) for curve in curves], [curve.shape for curve in curves]
        )
    points = [point for curve in curves for point in curve.frontier.points]
    ranged = [curve for curve in curves if curve.range and curve.frontier.chosen]
    ends = [
        curve.range[end]
        for curve in ranged
        if curve.range
        for end in ENDS
        if curve.range[end] is not None
    ]
    strip = max(APART * len(ranged) + BESIDE, text_width(SPAN, SMALL)) if ranged else 0.0
    top = drawing.bottom + 26
    plot = Plot(
        drawing,
        Log.over(
            [getattr(point, SPEED) for point in points],
            drawing.left + 46,
            drawing.right - 4 - strip,
        ),
        Log.over(
            [*(getattr(point, against) for point in points), *ends],
            top + min(drawing.width * 0.75, 380),
            top,
        ),
    )
    plot.axes("tokens/s for each user", AGAINST[against])
    for target in dict.fromkeys(
        curve.frontier.decode.values["workload.interactivity"] for curve in curves
    ):
        if plot.x.low <= target <= plot.x.high:
            drawing.line(
                plot.point_of(target, plot.y.low), plot.point_of(target, plot.y.high), "dashed"
            )
    labels = Labels(drawing, (plot.x.start, plot.y.end, plot.x.end, plot.y.start))
    for curve in curves:
        draw_curve(plot, labels, curve, against)
    if ranged:
        drawing.text((drawing.right, top - 9), SPAN, "muted", SMALL, "end")
    for at, curve in enumerate(ranged):
        draw_range(plot, curve, against, plot.x.end + BESIDE + APART * (at + 0.5))
    return not named or all(draw_curve_name(plot, labels, curve, against) for curve in curves)


def chosen_words(frontier: Frontier, against: str) -> str:
    """Return the figures of the workload's plan as text.

    Where no plan reaches the workload's interactivity, the text says so.
    """
    if frontier.chosen is None:
        return "has no plan at the workload's interactivity"
    return (
        f"{significant(getattr(frontier.chosen, against), 3)} at "
        f"{significant(getattr(frontier.chosen, SPEED), 3)}"
    )


def point_words(curve: CostCurve, point: Point, against: str) -> str:
    """Return a text with the plan and the figures of a point."""
    figures = (
        f"{significant(getattr(point, against), 3)} {METRICS[against].unit} at "
        f"{significant(getattr(point, SPEED), 3)} tokens/s a user"
    )
    return (
        f"{curve.name}: {figures}; {point.chips} chips, tensor parallel {point.tp}, batch "
        f"{point.batch}, bound by {point.bound}"
    )


def point_coordinates(plot: Plot, curve: CostCurve, against: str) -> list[tuple[float, float]]:
    """Return the plot coordinates of the points of a frontier."""
    return [
        plot.point_of(getattr(point, SPEED), getattr(point, against))
        for point in curve.frontier.points
    ]


def draw_curve(plot: Plot, labels: Labels, curve: CostCurve, against: str) -> None:
    """Draw the points of a system and the line through them."""
    places = point_coordinates(plot, curve, against)
    plot.drawing.path(places, f"line-{curve.number}")
    labels.keep_clear_along(places)
    for point, where in zip(curve.frontier.points, places, strict=True):
        shape, radius = (curve.shape, CHOSEN) if point.chosen else ("circle", DOT)
        plot.drawing.mark(
            where, radius, f"fill-{curve.number}", point_words(curve, point, against), shape
        )
        labels.keep_clear(where, radius)


def draw_range(plot: Plot, curve: CostCurve, against: str, x: float) -> None:
    """Draw beside the plot, at its height, from P10 to P90 of the cheapest plan of the workload,
    and the plan's mark.
    """
    # an end among draws that miss the target lies beyond the plot
    none = {
        "p10": plot.y.low,
        "p90": plot.y.high,
    }
    low, high = (
        plot.y.position_of(none[end] if (at := (curve.range or {})[end]) is None else at)
        for end in ENDS
    )
    tip = (
        f"{curve.name}: P10 {curve_percentile_text(curve, 'p10')}, P90 {curve_percentile_text(curve, 'p90')} "
        f"{METRICS[against].unit}"
    )
    plot.drawing.path([(x, low), (x, high)], f"line-{curve.number}", tip)
    for end in (low, high):
        plot.drawing.line((x - CAP, end), (x + CAP, end), f"line-{curve.number}")
    plot.drawing.mark(
        (x, plot.y.position_of(getattr(curve.frontier.chosen, against))),
        CAP + 1.5,
        f"fill-{curve.number}",
        shape=curve.shape,
    )


def curve_percentile_text(curve: CostCurve, end: str) -> str:
    """Return an end of a range in words."""
    return (significant(curve.range[end], 3) or "beyond") if curve.range else ""


def draw_curve_name(plot: Plot, labels: Labels, curve: CostCurve, against: str) -> bool:
    """Name a line at one of its points, from its quickest plan on; say whether there was room."""
    return any(
        labels.name(where, DOT + 2, curve.name, curve.mark, BODY, bold=True)
        for where in point_coordinates(plot, curve, against)
    )
