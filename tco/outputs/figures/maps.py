"""Who wins where: two inputs moved together, and in each cell the colour of the scenario that is best there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from tco.chain.metrics import METRICS, MORE_IS_BETTER
from tco.outputs.figures import WIDE
from tco.outputs.figures.scales import Linear, Log, Plot, Scale
from tco.outputs.figures.style import BODY, vendor_colours
from tco.outputs.figures.svg import Drawing, Labels, Point, box_of, distinct, width_of
from tco.outputs.premises import premises, workload_line
from tco.outputs.table import significant
from tco.studies.maps import Map

CLOSE = 0.1  # of a lead, below which a cell is pale
EVEN = 1e-6  # relative to a step: steps that are alike


class Cell(NamedTuple):
    """A place of the grid: which scenario is best, and by how much the next is worse; none where none has a value, or no other has."""

    winner: int | None
    lead: float | None
    figures: Sequence[float | None]


def cells_of(field: Map) -> list[list[Cell]]:
    """Return who wins in every cell, row by row."""
    more = field.metric in MORE_IS_BETTER
    columns = np.moveaxis(field.values, 0, -1)  # rows by columns by scenarios
    return [[cell_of([None if np.isnan(one) else one for one in figures], more) for figures in row] for row in columns.tolist()]


def cell_of(figures: Sequence[float | None], more: bool) -> Cell:
    """Return who wins among some figures; of equals the first."""
    known = sorted(((value, at) for at, value in enumerate(figures) if value is not None), key=lambda pair: -pair[0] if more else pair[0])
    if not known:
        return Cell(None, None, figures)
    best, winner = known[0]
    lead = None if len(known) < 2 else (best / known[1][0] - 1 if more else known[1][0] / best - 1)
    return Cell(winner, lead, figures)


def map_figure(field: Map, width: float = WIDE) -> str:
    """Return the map; areas have their winner's name where all of them find room, and else a legend."""
    return drawn(field, width, named=True) or drawn(field, width, named=False)


def drawn(field: Map, width: float, named: bool) -> str:
    """Return the map with names in its areas, or nothing where one finds no room; or with a legend."""
    rows, names = cells_of(field), distinct([one.title for one in field.results], [one.scenario for one in field.results])
    colours = vendor_colours(field.results)
    winners = sorted({cell.winner for row in rows for cell in row if cell.winner is not None})
    count = sum(len(row) for row in rows)
    said = "; ".join(f"{names[at]} {sum(cell.winner == at for row in rows for cell in row) / count * 100:.0f} %" for at in winners)
    label = METRICS[field.metric].label
    drawing = Drawing("Who wins where", f"Share of the map in which each is best by {label}: {said or 'none has a value anywhere'}.", width)
    drawing.paragraph(
        f"Best by {label}, the plan re-optimised in every cell; pale where the next is within {CLOSE * 100:.0f} %, empty where none has an answer"
    )
    if not named:
        drawing.legend([(f"fill-{colours[at]}", names[at]) for at in winners])
    top = drawing.bottom + 26
    x, y = scale_of(field.x.values, drawing.left + 52, drawing.right - 10), scale_of(field.y.values, top + min(width * 0.62, 360), top)
    plot = Plot(drawing, x, y)
    across, up = borders(field.x.values, x), borders(field.y.values, y)
    for row, y_value, (below, above) in zip(rows, field.y.values, up, strict=True):
        for cell, x_value, (left, right) in zip(row, field.x.values, across, strict=True):
            if cell.winner is not None:
                look = f"{'pale' if cell.lead is not None and cell.lead < CLOSE else 'fill'}-{colours[cell.winner]}"
                tip = f"{significant(x_value)}, {significant(y_value)}: {cell_words(names, cell)}"
                drawing.rectangle(left, above, right - left, below - above, look, tip)
    plot.axes(field.x.words, field.y.words, grid=False)
    labels = Labels(drawing, (x.start, y.end, x.end, y.start))
    draw_today(plot, labels, field)
    if named and not all(draw_name(labels, names[at], middles(rows, at, across, up)) for at in winners):
        return ""
    for line in dict.fromkeys([workload_line(field.results), *premises(field.results)]):
        drawing.paragraph(line)
    return drawing.svg()


def cell_words(names: Sequence[str], cell: Cell) -> str:
    """Say what each scenario comes to in a cell, the winner first."""
    order = sorted(range(len(names)), key=lambda at: at != cell.winner)
    return ", ".join(f"{names[at]} {significant(cell.figures[at], 3) or 'none'}" for at in order)


def scale_of(values: Sequence[float], start: float, end: float) -> Scale:
    """Return the scale on which the values of an axis are evenly spaced: of ratios where their ratios are alike, else of differences."""
    if values[0] > 0 and len(values) > 2:
        ratios = [after / before for before, after in pairwise(values)]
        if max(ratios) - min(ratios) < EVEN * max(ratios):
            half = ratios[0] ** 0.5
            return Log(values[0] / half, values[-1] * half, start, end)
    half = (values[-1] - values[0]) / max(len(values) - 1, 1) / 2 or 0.5
    return Linear(values[0] - half, values[-1] + half, start, end)


def borders(values: Sequence[float], scale: Scale) -> list[tuple[float, float]]:
    """Return where the cell of each value begins and ends: half way to its neighbours."""
    places = [scale.at(value) for value in values]
    ends = [scale.start, *((one + other) / 2 for one, other in pairwise(places)), scale.end]
    return list(pairwise(ends))


def runs(rows: Sequence[Sequence[Cell]], winner: int) -> Iterator[tuple[int, int, int]]:
    """Yield where a scenario wins in cells side by side: the row, the first cell, and the one after the last."""
    for y, row in enumerate(rows):
        start = 0
        for who, group in groupby(row, key=lambda cell: cell.winner):
            end = start + len(list(group))
            if who == winner:
                yield y, start, end
            start = end


def middles(
    rows: Sequence[Sequence[Cell]], winner: int, across: Sequence[tuple[float, float]], up: Sequence[tuple[float, float]]
) -> list[tuple[float, Point]]:
    """Return the widths of a scenario's runs of cells and their middles: the widest first, of alike ones that amid the others."""
    found = [(across[end - 1][1] - across[start][0], y, (across[start][0] + across[end - 1][1]) / 2) for y, start, end in runs(rows, winner)]
    amid = sum(y for _, y, _ in found) / len(found)
    return [(wide, (x, sum(up[y]) / 2)) for wide, y, x in sorted(found, key=lambda run: (-round(run[0]), abs(run[1] - amid), run[1]))]


def draw_name(labels: Labels, name: str, places: Sequence[tuple[float, Point]]) -> bool:
    """Write a name in the first run of cells that it fits and where nothing stands; say whether there was one."""
    wide = width_of(name, BODY, bold=True)
    for room, (x, y) in places:
        if wide + 8 <= room and labels.is_free(box_of((x, y + 4), wide, BODY, "middle")):
            labels.write((x, y + 4), name, BODY, "middle", bold=True)
            return True
    return False


def draw_today(plot: Plot, labels: Labels, field: Map) -> None:
    """Mark where both inputs are today."""
    x, y = field.x.today, field.y.today
    if x is None or y is None or not (plot.x.low <= x <= plot.x.high and plot.y.low <= y <= plot.y.high):
        return
    at = plot.at(x, y)
    plot.drawing.mark(at, 7, "paper", "today", "diamond")
    plot.drawing.mark(at, 4.5, "ink", shape="diamond")
    labels.keep_clear(at, 9)
    labels.name(at, 7, "today", bold=True)
