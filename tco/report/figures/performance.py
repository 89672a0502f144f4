"""Figures of a plan's time: its operators under the roofs of the chip, and by their bounds."""

from __future__ import annotations

from collections.abc import Sized
from typing import NamedTuple

from matplotlib.axes import Axes

from tco.core.errors import DataError
from tco.performance.profile import BOUNDS
from tco.report.assumptions import workload_words
from tco.report.figures.drawing import (
    MARGIN,
    MARKERS,
    Drawing,
    Labels,
    scale_by_ratios,
    styled,
    text_width,
    tip,
    write_beside,
)
from tco.report.figures.style import INK, MUTED, WIDE, colours_of
from tco.report.performance import OperatorShare, operators_of, plan_text
from tco.report.table import sentence, significant
from tco.scenario.result import Result

TERA = 1e12
FORMATS = ("bf16", "fp8", "fp4")
LARGEST, SMALLEST = 24.0, 5.0  # pixels: width of an operator that takes all of its phase
NAMED = 0.01  # share of its phase from which on an operator has its name written
ROW = 21.0  # pixels


class Dot(NamedTuple):
    """An operator that computes, as a point under the roofs."""

    row: OperatorShare
    intensity: float  # FLOP/byte
    rate: float  # TFLOP/s

    @property
    def words(self) -> str:
        """The rate and intensity as text."""
        return f"{significant(self.rate, 3)} TFLOP/s at {significant(self.intensity, 3)} FLOP/byte"


def dots_of(scenario_result: Result) -> list[Dot]:
    """Return the operators that compute and move; collectives and launches do not."""
    return [
        Dot(
            operator_row,
            operator_row.line.flops / operator_row.line.bytes,
            operator_row.line.flops / operator_row.line.time / TERA,
        )
        for operator_row in operators_of(scenario_result)
        if operator_row.line.flops and operator_row.line.bytes and operator_row.line.time
    ]


def roofs_of(scenario_result: Result) -> dict[str, float]:
    """Return the dense peaks in TFLOP/s by number format, the highest first.

    Formats are those that the workload computes in, or all of the chip where it names others.
    """
    peaks = {
        form: peak / TERA
        for form in FORMATS
        if (peak := scenario_result.metrics[f"peak_{form}_flop_per_s"])
    }
    named = {
        workload_text
        for path, workload_text in scenario_result.texts.items()
        if path.startswith("workload.")
    }
    formats = (named & peaks.keys()) or peaks.keys()
    return {form: peaks[form] for form in sorted(formats, key=lambda form: -peaks[form])}


@styled
def roofline_figure(scenario_result: Result, width: float = WIDE) -> Drawing:
    """Return the figure of a chip's roofs, with operators as points.

    The area of a point is the operator's share of its phase's time.

    Args:
        scenario_result: Result of a scenario.
        width: Width of the figure, in pixels.

    Raises:
        DataError: No operator of the plan both computes and moves data, or no roof is known.

    """
    dots, roofs = dots_of(scenario_result), roofs_of(scenario_result)
    _refuse_empty_roofline(scenario_result.scenario, dots, roofs)
    slope = scenario_result.metrics["hbm_byte_per_s"] / TERA  # TFLOP/s for each FLOP/byte
    operators = ", ".join(f"{dot.row.phase} {dot.row.line.name} {dot.words}" for dot in dots)
    drawing = Drawing(
        f"Roofline of {scenario_result.title}",
        f"Operators of the plan under the roofs of a chip: {operators}.",
        width,
        f"{workload_words(scenario_result)}; area of a point: its share of the time of its phase",
    )
    phases = dict.fromkeys(dot.row.phase for dot in dots)
    colours = colours_of(phases)
    markers = dict(zip(phases, MARKERS, strict=False))
    drawing.legend(colours, MARKERS)
    axes = drawing.axes(
        min(width * 0.6, 380), x_words="FLOP per byte moved", y_words="TFLOP/s per chip"
    )
    highest = max(roofs.values())
    ridge = highest / slope
    scale_by_ratios(axes.xaxis, [*(dot.intensity for dot in dots), ridge * 3, ridge / 30])
    scale_by_ratios(axes.yaxis, [*(dot.rate for dot in dots), highest * 1.8, highest / 30])
    labels = Labels(axes)
    # area by share
    sizes = [max(SMALLEST, LARGEST * dot.row.share**0.5) for dot in dots]
    for (operator_row, x, y), size, dot in zip(dots, sizes, dots, strict=True):
        style = {"color": colours[operator_row.phase], "markersize": size, "alpha": 0.85}
        tip(
            axes.plot(x, y, markers[operator_row.phase], **style),
            f"{operator_row.phase}, {operator_row.line.name}: {dot.words}, "
            f"{operator_row.share * 100:.1f} % of the time, bound by {operator_row.line.bound}",
        )
        labels.keep_clear([(x, y)], size / 2)
    _draw_roofs(axes, labels, roofs, slope)
    for (operator_row, x, y), size in sorted(
        zip(dots, sizes, strict=True), key=lambda pair: -pair[1]
    ):
        if operator_row.share >= NAMED:
            labels.place_label([(x, y)], operator_row.line.name, size / 2 + 3)
    drawing.paragraphs(
        f"Roofs are dense peaks and the peak of HBM. {sentence(scenario_result.standing.text)}."
    )
    return drawing


def _refuse_empty_roofline(scenario_name: str, dots: Sized, roofs: Sized) -> None:
    if not dots:
        raise DataError(
            f"{scenario_name}: no operator of its plan both computes and moves data, so there is "
            "nothing to draw under a roof"
        )
    if not roofs:
        raise DataError(
            f"{scenario_name}: no peak of its chip is known, so there is no roof to draw"
        )


def _draw_roofs(axes: Axes, labels: Labels, roofs: dict[str, float], slope: float) -> None:
    """Draw memory bandwidth as a slope, and every peak as a flat roof from where it meets it."""
    left, right = axes.get_xlim()
    foot = max(left, axes.get_ylim()[0] / slope)
    for form, peak in roofs.items():
        corners = [(foot, foot * slope), (peak / slope, peak), (right, peak)]
        axes.plot(*zip(*corners, strict=True), color=INK, linewidth=1.5, zorder=1)
        labels.keep_clear(corners, 2)
        labels.place_label(corners[2:], f"{form.upper()} {significant(peak, 3)}", 3)
    middle = foot * (max(roofs.values()) / slope / foot) ** 0.7
    labels.place_label([(middle, middle * slope)], f"HBM {significant(slope, 3)} TB/s", 6)


@styled
def operators_figure(scenario_result: Result, width: float = WIDE) -> Drawing:
    """Return the figure of each operator's time as bars, phase by phase.

    The longest bar of a phase is first. Each bar has its share of the phase and its time.

    Args:
        scenario_result: Result of a scenario.
        width: Width of the figure, in pixels.

    """
    operator_rows = operators_of(scenario_result)
    figures = "; ".join(
        f"{phase} {line.name} {share * 100:.1f} %, {line.bound}"
        for phase, line, share in operator_rows
    )
    drawing = Drawing(
        f"Where the time of {scenario_result.title} goes",
        f"Share of each phase by operator: {figures}.",
        width,
        workload_words(scenario_result),
    )
    if scenario_result.report.plan:
        drawing.paragraphs(f"Plan: {plan_text(scenario_result.report.plan)}")
    colours = colours_of(BOUNDS)
    bounds = {operator_row.line.bound for operator_row in operator_rows}
    drawing.legend({f"bound by {bound}": colours[bound] for bound in BOUNDS if bound in bounds})
    left = max(text_width(operator_row.line.name) for operator_row in operator_rows) + 2 * MARGIN
    right = text_width("100.0 %  1,000 ms") + 16
    longest = max(operator_row.share for operator_row in operator_rows)
    for phase in dict.fromkeys(operator_row.phase for operator_row in operator_rows):
        operators = [operator_row for operator_row in operator_rows if operator_row.phase == phase]
        title = f"{phase}: {significant(float(scenario_result.report.phases[phase].time) * 1e3)} ms"
        axes = drawing.group(
            title, [operator_row.line.name for operator_row in operators], ROW, left, right
        )
        axes.set(xlim=(0, longest), xticks=())
        axes.grid(visible=False)
        axes.axvline(0, color=MUTED, linewidth=1)
        drawing.bottom -= 18
        for level, (_, line, share) in enumerate(operators):
            words = (
                f"{phase}, {line.name}: {significant(line.time * 1e3)} ms, {share * 100:.1f} %, "
                f"bound by {line.bound}"
            )
            if line.of_bound is not None:
                words += f", at {line.of_bound * 100:.0f} % of that bound"
            tip(axes.barh(level, share, 0.67, color=colours[line.bound]), words)
            time = significant(line.time * 1e3, 3)
            write_beside(axes, share, level, f"{share * 100:.1f} %  {time} ms", 5)
    drawing.bottom += 6
    drawing.paragraphs(f"{sentence(scenario_result.standing.text)}.")
    return drawing
