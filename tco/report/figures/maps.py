"""Map of two inputs moved together: each cell has the colour of the scenario that is best there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tco.catalog.labels import axis_label
from tco.comparison.maps import NOBODY, Map, MapAxis
from tco.core.types import FloatArray
from tco.report.assumptions import premise_lines, workload_line
from tco.report.figures.drawing import (
    Drawing,
    distinct_titles,
    styled,
    tick_text,
    tip,
    write_beside,
)
from tco.report.figures.style import INK, LIGHT, PAPER, WIDE, vendor_colours
from tco.report.table import scaled_unit, significant
from tco.scenario.metrics import METRICS, MORE_IS_BETTER

CLOSE = 0.1  # of a lead, below which a cell is pale
PALE = 0.55  # opacity
EVEN = 1e-6  # relative to a ratio: ratios that are alike


def _leads_of(field: Map) -> FloatArray:
    sign = -1 if field.metric in MORE_IS_BETTER else 1
    nothing = np.full_like(field.values[:1], np.nan)
    ordered = np.sort(np.concatenate([field.values * sign, nothing]), axis=0)  # nan comes last
    leads: FloatArray = (ordered[1] / ordered[0]) ** sign - 1
    return leads


@styled
def map_figure(field: Map, width: float = WIDE) -> Drawing:
    """Return the map of which scenario is best over two inputs.

    Args:
        field: Metric of scenarios over two inputs.
        width: Width of the figure in pixels.

    """
    scenario_titles = distinct_titles(
        [(scenario_result.title, scenario_result.scenario) for scenario_result in field.results]
    )
    colours = [LIGHT[number - 1] for number in vendor_colours(field.results)]
    shares = {number: np.mean(field.best == number) for number in range(len(scenario_titles))}
    winners = [number for number, share in shares.items() if share]
    figures = "; ".join(
        f"{scenario_titles[number]} {shares[number] * 100:.0f} %" for number in winners
    )
    label = METRICS[field.metric].label
    best_word = "highest" if field.metric in MORE_IS_BETTER else "lowest"
    drawing = Drawing(
        f"Which system has the {best_word} {label}",
        f"Share of the map in which each is best by {label}: "
        f"{figures or 'none has a value anywhere'}.",
        width,
        "The plan is re-optimised in every cell. A cell is pale where the next system is within "
        f"{CLOSE * 100:.0f} %, and empty where none has an answer.",
    )
    drawing.legend({scenario_titles[number]: colours[number] for number in winners})
    (x_words, x_values), (y_words, y_values) = map(_scaled_axis, (field.x, field.y))
    axes = drawing.axes(min(width * 0.62, 360), 58, 18, x_words, y_words)
    axes.grid(visible=False)
    axes.set(xlim=(-0.5, len(field.x.values) - 0.5), ylim=(-0.5, len(field.y.values) - 0.5))
    for axis, inputs in ((axes.xaxis, x_values), (axes.yaxis, y_values)):
        step = math.ceil(len(inputs) / axis.get_tick_space())
        axis.set_ticks(range(0, len(inputs), step), map(tick_text, inputs[::step]))
    for (row_index, column), lead in np.ndenumerate(_leads_of(field)):
        winner = int(field.best[row_index, column])
        if winner != NOBODY:
            tip(
                axes.barh(
                    row_index,
                    1,
                    1,
                    column - 0.5,
                    color=colours[winner],
                    alpha=PALE if lead < CLOSE else None,
                ),
                f"{significant(x_values[column])}, {significant(y_values[row_index])}: "
                f"{_cell_words(scenario_titles, winner, field.values[:, row_index, column])}",
            )
    x, y = _cell_number(field.x.values, field.x.today), _cell_number(field.y.values, field.y.today)
    if axes.viewLim.contains(x, y):
        mark = axes.plot(
            x, y, "D", color=INK, markeredgecolor=PAPER, markeredgewidth=1.5, markersize=9
        )
        tip(mark, "base case")
        frame = {"facecolor": PAPER, "edgecolor": "none", "boxstyle": "round,pad=0.15"}
        gap = 9 if x < len(field.x.values) / 2 else -9
        write_beside(axes, x, y, "base case", gap, weight="bold", bbox=frame)
    drawing.paragraphs(workload_line(field.results), *premise_lines(field.results))
    return drawing


def _scaled_axis(axis: MapAxis) -> tuple[str, list[float]]:
    """Return an axis in words, with its values in the unit in which they are read most easily."""
    unit, size = scaled_unit(axis.unit, max(axis.values))
    return axis_label(axis.path, unit), [input_value / size for input_value in axis.values]


def _cell_words(scenario_titles: Sequence[str], winner: int, cell_values: FloatArray) -> str:
    """Return the text of a cell: winner, nearest rival and their figures."""
    nearest = sorted(
        np.flatnonzero(~np.isnan(cell_values)).tolist(),
        key=lambda number: (number != winner, abs(cell_values[number] - cell_values[winner])),
    )
    return ", then ".join(
        f"{scenario_titles[number]} {significant(cell_values[number], 3)}" for number in nearest[:2]
    )


def _cell_number(inputs: Sequence[float], input_value: float | None) -> float:
    """Return the place of a value among evenly spaced inputs, or nan for none."""
    if input_value is None:
        return math.nan
    input_values = np.array(inputs)
    if input_values[0] > 0 and np.ptp(input_values[1:] / input_values[:-1]) < EVEN:
        if input_value <= 0:
            return math.nan
        input_values, input_value = np.log(input_values), math.log(input_value)
    return float((input_value - input_values[0]) / (input_values[1] - input_values[0]))
