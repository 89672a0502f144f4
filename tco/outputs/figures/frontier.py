"""What interactivity costs on each system: the plans that no other beats, and the one the workload asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tco.chain.metrics import METRICS
from tco.outputs.comparison import premises, workload_line
from tco.outputs.figures import WIDE
from tco.outputs.figures.labels import Labels
from tco.outputs.figures.plot import Plot
from tco.outputs.figures.scales import Log
from tco.outputs.figures.style import BODY, series
from tco.outputs.figures.svg import SHAPES, Drawing
from tco.outputs.figures.words import distinct
from tco.outputs.frontiers import names, title_of
from tco.outputs.table import significant
from tco.studies.frontier import Frontier, Point

SPEED = "tokens_per_s_per_user"
COST = "usd_per_million_output_tokens"
AGAINST = {  # what may stand against interactivity, with what the axis says
    COST: "USD for a million output tokens",
    "output_tokens_per_s_per_chip": "output tokens/s a chip",
    "tokens_per_s_per_facility_mw": "output tokens/s a site MW",
}
DOT, CHOSEN = 1.8, 5.5  # pixels


class Curve(NamedTuple):
    """A frontier as it is drawn."""

    name: str
    number: int  # of its colour
    shape: str
    frontier: Frontier

    @property
    def mark(self) -> tuple[str, str]:
        """The look and shape that stand for it."""
        return f"fill-{self.number}", self.shape


def curves_of(frontiers: Sequence[Frontier]) -> list[Curve]:
    """Return frontiers with their names, colours and shapes."""
    scenarios = [" with ".join(dict.fromkeys(names(frontier)[::2])) for frontier in frontiers]
    called = distinct([title_of(frontier) for frontier in frontiers], scenarios)
    return [Curve(name, series(at), SHAPES[at % len(SHAPES)], frontier) for at, (name, frontier) in enumerate(zip(called, frontiers, strict=True))]


def frontier_figure(frontiers: Sequence[Frontier], against: str = COST, width: float = WIDE) -> str:
    """Return a line for each system, both axes in ratios; the large mark is the cheapest plan at the workload's interactivity.

    Lines have their names beside them where all of them find room, and else a legend.
    """
    curves = curves_of(frontiers)
    return drawn(curves, against, width, named=True) or drawn(curves, against, width, named=False)


def drawn(curves: Sequence[Curve], against: str, width: float, named: bool) -> str:
    """Return the figure with its lines named, or nothing where a name finds no room; or with a legend."""
    some = [curve for curve in curves if curve.frontier.points]
    results = [curve.frontier.decode.result for curve in some or curves]
    said = "; ".join(f"{curve.name} {chosen_words(curve.frontier, against)}" for curve in curves)
    drawing = Drawing("What interactivity costs", f"{METRICS[against].label} against tokens/s for each user: {said}.", width)
    drawing.paragraph(workload_line(results))
    drawing.paragraph("Each point is a plan that no other of its system beats; the large mark is the cheapest for this workload. All are estimates.")
    if not named:
        drawing.legend([(curve.mark[0], curve.name) for curve in some], [curve.shape for curve in some])
    points = [point for curve in some for point in curve.frontier.points]
    top = drawing.bottom + 26
    plot = Plot(
        drawing,
        Log.over([getattr(point, SPEED) for point in points], drawing.left + 46, drawing.right - 4),
        Log.over([getattr(point, against) for point in points], top + min(width * 0.75, 380), top),
    )
    plot.axes("tokens/s for each user", AGAINST[against])
    draw_targets(plot, some)
    labels = Labels(drawing, (plot.x.start, plot.y.end, plot.x.end, plot.y.start))
    for curve in some:
        draw_curve(plot, labels, curve, against)
    if named and not all(draw_name(plot, labels, curve, against) for curve in some):
        return ""
    for curve in curves:
        if not curve.frontier.points:
            drawing.paragraph(f"{curve.name}: {curve.frontier.reason}.")
    for line in dict.fromkeys(premises(results)):
        drawing.paragraph(line)
    return drawing.svg()


def chosen_words(frontier: Frontier, against: str) -> str:
    """Say what the plan of the workload gives."""
    if frontier.chosen is None:
        return "has no plan at the workload's interactivity"
    return f"{significant(getattr(frontier.chosen, against), 3)} at {significant(getattr(frontier.chosen, SPEED), 3)}"


def point_words(curve: Curve, point: Point, against: str) -> str:
    """Say what a plan is and gives."""
    figures = f"{significant(getattr(point, against), 3)} {METRICS[against].unit} at {significant(getattr(point, SPEED), 3)} tokens/s a user"
    return f"{curve.name}: {figures}; {point.chips} chips, tensor parallel {point.tp}, batch {point.batch}, bound by {point.bound}"


def draw_targets(plot: Plot, curves: Sequence[Curve]) -> None:
    """Draw the interactivity that the workloads ask for."""
    for target in dict.fromkeys(curve.frontier.decode.values["workload.interactivity"] for curve in curves):
        if plot.x.low <= target <= plot.x.high:
            plot.drawing.line(plot.at(target, plot.y.low), plot.at(target, plot.y.high), "dashed")


def places_of(plot: Plot, curve: Curve, against: str) -> list[tuple[float, float]]:
    """Return where the points of a frontier lie."""
    return [plot.at(getattr(point, SPEED), getattr(point, against)) for point in curve.frontier.points]


def draw_curve(plot: Plot, labels: Labels, curve: Curve, against: str) -> None:
    """Draw the points of a system and the line through them."""
    places = places_of(plot, curve, against)
    plot.drawing.path(places, f"line-{curve.number}")
    labels.keep_clear_along(places)
    for point, where in zip(curve.frontier.points, places, strict=True):
        shape, radius = (curve.shape, CHOSEN) if point.chosen else ("circle", DOT)
        plot.drawing.mark(where, radius, f"fill-{curve.number}", point_words(curve, point, against), shape)
        labels.keep_clear(where, radius)


def draw_name(plot: Plot, labels: Labels, curve: Curve, against: str) -> bool:
    """Name a line at one of its points, from its quickest plan on; say whether there was room."""
    return any(labels.name(where, DOT + 2, curve.name, curve.mark, BODY, bold=True) for where in places_of(plot, curve, against))
