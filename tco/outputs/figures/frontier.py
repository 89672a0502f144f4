"""What interactivity costs on each system: the plans that no other beats, and the one the workload asks for."""

from __future__ import annotations

from collections.abc import Sequence

from tco.chain.metrics import METRICS
from tco.outputs.comparison import premises, workload_line
from tco.outputs.figures import WIDE
from tco.outputs.figures.labels import Labels
from tco.outputs.figures.plot import Plot
from tco.outputs.figures.scales import Log
from tco.outputs.figures.style import BODY, series
from tco.outputs.figures.svg import SHAPES, Drawing
from tco.outputs.frontiers import title_of
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


def frontier_figure(frontiers: Sequence[Frontier], against: str = COST, width: float = WIDE) -> str:
    """Return a line for each system, both axes in ratios; the large mark is the cheapest plan at the workload's interactivity.

    Lines have their names beside them where all of them find room, and else a legend.
    """
    return drawn(frontiers, against, width, named=True) or drawn(frontiers, against, width, named=False)


def drawn(frontiers: Sequence[Frontier], against: str, width: float, named: bool) -> str:
    """Return the figure with its lines named, or nothing where a name finds no room; or with a legend."""
    some = [frontier for frontier in frontiers if frontier.points]
    results = [frontier.decode.result for frontier in some or frontiers]
    said = "; ".join(f"{title_of(frontier)} {chosen_words(frontier, against)}" for frontier in frontiers)
    drawing = Drawing("What interactivity costs", f"{METRICS[against].label} against tokens/s for each user: {said}.", width)
    drawing.paragraph(workload_line(results))
    drawing.paragraph("Each point is a plan that no other of its system beats; the large mark is the cheapest for this workload. All are estimates.")
    if not named:
        drawing.legend([(f"fill-{series(at)}", title_of(frontier)) for at, frontier in enumerate(some)], SHAPES)
    points = [point for frontier in some for point in frontier.points]
    top = drawing.bottom + 26
    plot = Plot(
        drawing,
        Log.over([getattr(point, SPEED) for point in points], drawing.left + 46, drawing.right - 4),
        Log.over([getattr(point, against) for point in points], top + min(width * 0.75, 380), top),
    )
    plot.axes("tokens/s for each user", AGAINST[against])
    draw_targets(plot, some)
    labels = Labels(drawing, (plot.x.start, plot.y.end, plot.x.end, plot.y.start))
    for at, frontier in enumerate(some):
        draw_frontier(plot, labels, at, frontier, against)
    if named and not all(draw_name(plot, labels, at, frontier, against) for at, frontier in enumerate(some)):
        return ""
    for frontier in frontiers:
        if not frontier.points:
            drawing.paragraph(f"{title_of(frontier)}: {frontier.reason}.")
    for line in premises(results):
        drawing.paragraph(line)
    return drawing.svg()


def chosen_words(frontier: Frontier, against: str) -> str:
    """Say what the plan of the workload gives."""
    if frontier.chosen is None:
        return "has no plan at the workload's interactivity"
    return f"{significant(getattr(frontier.chosen, against), 3)} at {significant(getattr(frontier.chosen, SPEED), 3)}"


def point_words(frontier: Frontier, point: Point, against: str) -> str:
    """Say what a plan is and gives."""
    figures = f"{significant(getattr(point, against), 3)} {METRICS[against].unit} at {significant(getattr(point, SPEED), 3)} tokens/s a user"
    return f"{title_of(frontier)}: {figures}; {point.chips} chips, tensor parallel {point.tp}, batch {point.batch}, bound by {point.bound}"


def draw_targets(plot: Plot, frontiers: Sequence[Frontier]) -> None:
    """Draw the interactivity that the workloads ask for."""
    for target in dict.fromkeys(frontier.decode.values["workload.interactivity"] for frontier in frontiers):
        if plot.x.low <= target <= plot.x.high:
            plot.drawing.line(plot.at(target, plot.y.low), plot.at(target, plot.y.high), "dashed")


def draw_frontier(plot: Plot, labels: Labels, at: int, frontier: Frontier, against: str) -> None:
    """Draw the points of a system and the line through them."""
    places = [plot.at(getattr(point, SPEED), getattr(point, against)) for point in frontier.points]
    plot.drawing.path(places, f"line-{series(at)}")
    labels.keep_clear_along(places)
    for point, where in zip(frontier.points, places, strict=True):
        shape, radius = (SHAPES[at % len(SHAPES)], CHOSEN) if point.chosen else ("circle", DOT)
        plot.drawing.mark(where, radius, f"fill-{series(at)}", point_words(frontier, point, against), shape)
        labels.keep_clear(where, radius)


def draw_name(plot: Plot, labels: Labels, at: int, frontier: Frontier, against: str) -> bool:
    """Name a line at one of its points, from its quickest plan on; say whether there was room."""
    places = [plot.at(getattr(point, SPEED), getattr(point, against)) for point in frontier.points]
    return any(labels.name(where, DOT + 2, title_of(frontier), f"fill-{series(at)}", BODY, bold=True) for where in places)
