"""Who wins where: two inputs moved together, and in each cell the colour of the scenario that is
best there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from tco.comparison.maps import NOBODY, Map
from tco.core.types import FloatArray
from tco.report.assumptions import premise_lines, workload_line
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, Log, Plot, Scale
from tco.report.figures.style import BODY, vendor_colours
from tco.report.figures.svg import Drawing, Labels, Point, box_of, distinct, text_width
from tco.report.table import significant
from tco.scenario.metrics import METRICS, MORE_IS_BETTER

CLOSE = 0.1  # of a lead, below which a cell is pale
EVEN = 1e-6  # relative to a step: steps that are alike


def leads_of(field: Map) -> FloatArray:
    """Return by how much the next is worse than the best in every cell; nan where none has a value,
    or no other has.
    """
    more = field.metric in MORE_IS_BETTER
    ordered = np.sort(-field.values if more else field.values, axis=0)  # what is nan comes last
    best, following = (
        ordered[0],
        ordered[1] if len(ordered) > 1 else np.full_like(ordered[0], np.nan),
    )
    found: FloatArray = (best / following if more else following / best) - 1
    return found


def map_figure(field: Map, width: float = WIDE) -> str:
    """Return the map, with names in its areas or with a legend.

    Areas have the name of their winner where all names find room. Otherwise the map has a legend.

    Args:
        field: Metric of scenarios over two inputs.
        width: Width of the figure in pixels.

    Returns:
        Text of an SVG drawing.

    """
    return render_map_figure(field, width, named=True) or render_map_figure(
        field, width, named=False
    )


def render_map_figure(field: Map, width: float, named: bool) -> str:
    """Return the map with names in its areas, or nothing where one finds no room; or with a
    legend.
    """
    best, names = (
        field.best,
        distinct([one.title for one in field.results], [one.scenario for one in field.results]),
    )
    colours = vendor_colours(field.results)
    winners = [at for at in range(len(names)) if (best == at).any()]
    said = "; ".join(f"{names[at]} {np.mean(best == at) * 100:.0f} %" for at in winners)
    label = METRICS[field.metric].label
    drawing = Drawing(
        "Who wins where",
        f"Share of the map in which each is best by {label}: "
        f"{said or 'none has a value anywhere'}.",
        width,
    )
    drawing.paragraph(
        f"Best by {label}, the plan re-optimised in every cell; pale where the next is within "
        f"{CLOSE * 100:.0f} %, empty where none has an answer"
    )
    if not named:
        drawing.legend([(f"fill-{colours[at]}", names[at]) for at in winners])
    top = drawing.bottom + 26
    x, y = (
        scale_of(field.x.values, drawing.left + 52, drawing.right - 10),
        scale_of(field.y.values, top + min(width * 0.62, 360), top),
    )
    plot = Plot(drawing, x, y)
    across, up = borders(field.x.values, x), borders(field.y.values, y)
    for (row, column), lead in np.ndenumerate(leads_of(field)):
        if (winner := int(best[row, column])) != NOBODY:
            (below, above), (left, right) = up[row], across[column]
            figures = cell_words(names, winner, field.values[:, row, column])
            tip = (
                f"{significant(field.x.values[column])}, {significant(field.y.values[row])}: "
                f"{figures}"
            )
            drawing.rectangle(
                left,
                above,
                right - left,
                below - above,
                f"{'pale' if lead < CLOSE else 'fill'}-{colours[winner]}",
                tip,
            )
    plot.axes(field.x.words, field.y.words, grid=False)
    labels = Labels(drawing, (x.start, y.end, x.end, y.start))
    draw_today(plot, labels, field)
    if named and not all(
        draw_area_name(labels, names[at], middles(best, at, across, up)) for at in winners
    ):
        return ""
    drawing.paragraphs(dict.fromkeys([workload_line(field.results), *premise_lines(field.results)]))
    return drawing.svg()


def cell_words(names: Sequence[str], winner: int, figures: FloatArray) -> str:
    """Return the text of a cell: winner, nearest rival and their figures."""
    nearest = sorted(
        np.flatnonzero(~np.isnan(figures)).tolist(),
        key=lambda at: (at != winner, abs(figures[at] - figures[winner])),
    )
    return ", then ".join(f"{names[at]} {significant(figures[at], 3)}" for at in nearest[:2])


def scale_of(values: Sequence[float], start: float, end: float) -> Scale:
    """Return the scale on which the values of an axis are evenly spaced: of ratios where their
    ratios are alike, else of differences.
    """
    if values[0] > 0 and len(values) > 2:
        ratios = [after / before for before, after in pairwise(values)]
        if max(ratios) - min(ratios) < EVEN * max(ratios):
            half = ratios[0] ** 0.5
            return Log(values[0] / half, values[-1] * half, start, end)
    half = (values[-1] - values[0]) / max(len(values) - 1, 1) / 2 or 0.5
    return Linear(values[0] - half, values[-1] + half, start, end)


def borders(values: Sequence[float], scale: Scale) -> list[tuple[float, float]]:
    """Return the start and end of each value's cell on `scale`.

    A border lies half way between neighbouring values.
    """
    places = [scale.position_of(value) for value in values]
    ends = [scale.start, *((one + other) / 2 for one, other in pairwise(places)), scale.end]
    return list(pairwise(ends))


def runs(best: FloatArray, winner: int) -> Iterator[tuple[int, int, int]]:
    """Yield the row, start and end of adjacent cells that `winner` wins.

    The end is the cell after the last cell.
    """
    for y, row in enumerate(best):
        start = 0
        for who, group in groupby(row):
            end = start + len(list(group))
            if who == winner:
                yield y, start, end
            start = end


def middles(
    best: FloatArray,
    winner: int,
    across: Sequence[tuple[float, float]],
    up: Sequence[tuple[float, float]],
) -> list[tuple[float, Point]]:
    """Return the widths of a scenario's runs of cells and their middles: the widest first, of alike
    ones that amid the others.
    """
    found = [
        (across[end - 1][1] - across[start][0], y, (across[start][0] + across[end - 1][1]) / 2)
        for y, start, end in runs(best, winner)
    ]
    amid = sum(y for _, y, _ in found) / len(found)
    return [
        (wide, (x, sum(up[y]) / 2))
        for wide, y, x in sorted(
            found, key=lambda run: (-round(run[0]), abs(run[1] - amid), run[1])
        )
    ]


def draw_area_name(labels: Labels, name: str, places: Sequence[tuple[float, Point]]) -> bool:
    """Write a name in the first run of cells that it fits and where nothing stands; say whether
    there was one.
    """
    wide = text_width(name, BODY, bold=True)
    for room, (x, y) in places:
        if wide + 8 <= room and labels.is_free(box_of((x, y + 4), wide, BODY, "middle")):
            labels.write((x, y + 4), name, BODY, "middle", bold=True)
            return True
    return False


def draw_today(plot: Plot, labels: Labels, field: Map) -> None:
    """Mark where both inputs are today."""
    x, y = field.x.today, field.y.today
    if (
        x is None
        or y is None
        or not (plot.x.low <= x <= plot.x.high and plot.y.low <= y <= plot.y.high)
    ):
        return
    at = plot.point_of(x, y)
    plot.drawing.mark(at, 7, "paper", "today", "diamond")
    plot.drawing.mark(at, 4.5, "ink", shape="diamond")
    labels.keep_clear(at, 9)
    labels.name(at, 7, "today", bold=True)
