"""Line figure: a metric of some scenarios against one input, each a line of its colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from tco.catalog.labels import short_name
from tco.comparison.break_even import rounded_text
from tco.comparison.input_lines import BY_RATIOS, InputLines
from tco.report.assumptions import premise_lines, workload_line
from tco.report.figures.drawing import (
    MARKERS,
    Drawing,
    Labels,
    distinct_titles,
    scale_by_ratios,
    styled,
    tip,
)
from tco.report.figures.style import LIGHT, MUTED, WIDE, vendor_colours
from tco.report.input_lines import lines_caption
from tco.report.table import headed, sentence, significant
from tco.scenario.metrics import METRICS

MARGIN = 0.06  # of the span of the metric, above and below the lines
SIDE = 0.03  # of the span of the input, left and right of the lines
LEAST_SHARE = 0.3  # of the highest value: a lowest value under it brings zero onto the axis


BASE_CASE_PLACES = np.linspace(0.96, 0.04, 24)  # of the height, where its line may be named


def _axis_words(input_lines: InputLines) -> str:
    """Return the sentences on the line of the base case, and on a vertical axis without zero."""
    is_drawn = input_lines.today.value in input_lines.input_values
    words = " The dashed line is the base case." if is_drawn else ""
    low, high = _metric_ends(input_lines)
    if low > 0 and low >= LEAST_SHARE * high:
        words += " The vertical axis does not start at 0."
    return words


def _metric_ends(input_lines: InputLines) -> tuple[float, float]:
    levels = [level for line in input_lines.lines for _, level in line.finite_points]
    return min(levels), max(levels)


@styled
def lines_figure(input_lines: InputLines, width: float = WIDE) -> Drawing:
    """Return the figure of a metric against one input, a line for each scenario.

    The large mark is the base case. Lines have their names beside them, or in a legend where a name
    finds no room.

    Args:
        input_lines: Metric of each scenario at each value of the input.
        width: Width of the figure, in pixels.

    """
    scenario_results = [line.result for line in input_lines.lines]
    titles = distinct_titles(
        [(scenario_result.title, scenario_result.scenario) for scenario_result in scenario_results]
    )
    metric, input_name = METRICS[input_lines.metric], short_name(input_lines.path)
    drawing = Drawing(
        f"{sentence(metric.label)}, by {input_name}",
        "; ".join(_line_words(input_lines, title, index) for index, title in enumerate(titles)),
        width,
        workload_line(scenario_results),
        f"{lines_caption(input_lines)}{_axis_words(input_lines)}",
    )
    axes = drawing.axes(
        min(width * 0.6, 380), 62, 34, input_lines.words, headed(metric.label, metric.unit)
    )
    _scale_axes(axes, input_lines)
    _draw_lines(drawing, axes, input_lines, titles)
    drawing.paragraphs(
        *(f"{note}." for note in input_lines.notes), *premise_lines(scenario_results)
    )
    return drawing


def _line_words(input_lines: InputLines, title: str, index: int) -> str:
    """Return a scenario with its metric at both ends of its line."""
    points = input_lines.lines[index].finite_points
    if not points:
        return f"{title} has no answer"
    (low, first), (high, last) = points[0], points[-1]
    start, end = (rounded_text(input_lines.today, limit) for limit in (low, high))
    return f"{title} from {significant(first, 3)} at {start} to {significant(last, 3)} at {end}"


def _scale_axes(axes: Axes, input_lines: InputLines) -> None:
    """Scale the axes to all points; wide ranges are scaled by ratios."""
    input_values, today = input_lines.input_values, input_lines.today
    levels = [level for line in input_lines.lines for _, level in line.finite_points]
    low, high = _metric_ends(input_lines)
    if 0 < low <= high / BY_RATIOS:
        scale_by_ratios(axes.yaxis, levels)
    else:
        room = MARGIN * (high - low)
        axes.set_ylim(0 if 0 <= low < LEAST_SHARE * high else low - room, high + room)
    if today.stepwise:
        count = max(axes.xaxis.get_tick_space() // 2, 2)
        ticks = input_values[:: max(-(-len(input_values) // count), 1)]
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_major_formatter(lambda day, _: today.text(day))
    elif 0 < input_values[0] <= input_values[-1] / BY_RATIOS:
        scale_by_ratios(axes.xaxis, input_values)
        return
    room = SIDE * (input_values[-1] - input_values[0])
    axes.set_xlim(input_values[0] - room, input_values[-1] + room)


def _draw_lines(
    drawing: Drawing, axes: Axes, input_lines: InputLines, titles: Sequence[str]
) -> None:
    """Draw every line with its points, its base case and its name."""
    today, metric = input_lines.today, METRICS[input_lines.metric]
    numbers = vendor_colours([line.result for line in input_lines.lines])
    series = [
        (line, title, LIGHT[number - 1], marker)
        for line, title, number, marker in zip(
            input_lines.lines, titles, numbers, cycle(MARKERS), strict=False
        )
    ]
    base_case = today.value
    if base_case is not None and not axes.viewLim.containsx(base_case):
        base_case = None
    if base_case is not None:
        axes.axvline(base_case, color=MUTED, linewidth=1, dashes=(4, 3))
    labels = Labels(axes)
    for line, title, colour, marker in series:
        levels = [float("nan") if point.metric is None else point.metric for point in line.points]
        axes.plot(input_lines.input_values, levels, color=colour, linewidth=2)
        if line.finite_points:
            labels.keep_clear(line.finite_points, 4)
        for point in line.points:
            if point.metric is None:
                continue
            shape, size = (marker, 11) if point.base_case else ("o", 4.5)
            mark = axes.plot(
                point.value, point.metric, shape, color=colour, markersize=size, zorder=3
            )
            tip(
                mark,
                f"{title}: {significant(point.metric, 3)} {metric.unit} at "
                f"{rounded_text(today, point.value)}",
            )
    drawing.name_lines(
        labels,
        [
            (title, colour, marker, line.finite_points[::-1])
            for line, title, colour, marker in series
        ],
    )
    if base_case is not None:
        _name_base_case(axes, labels, base_case)


def _name_base_case(axes: Axes, labels: Labels, base_case: float) -> None:
    """Name the line of the base case at the highest free place beside it."""
    corners = axes.transAxes.transform([(0, height_share) for height_share in BASE_CASE_PLACES])
    heights = axes.transData.inverted().transform(corners)[:, 1]
    labels.place_label([(base_case, height) for height in heights], "base case", 4, color=MUTED)
