"""Where the time of a plan goes: its operators under the roofs of the chip, and by what binds
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tco.core.errors import DataError
from tco.performance.profile import BOUNDS
from tco.report.assumptions import workload_words
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, Log, Plot
from tco.report.figures.style import BODY, SMALL, series
from tco.report.figures.svg import SHAPES, Drawing, Labels, text_width, truncate_to_width
from tco.report.performance import operators_of, plan_text
from tco.report.table import sentence, significant
from tco.scenario.result import Result

TERA = 1e12
FORMATS = ("bf16", "fp8", "fp4")
LARGEST = 13.0  # pixels: radius of an operator that takes all of its phase
SMALLEST = 3.0
NAMED = 0.01  # share of its phase from which on an operator has its name written


class Dot(NamedTuple):
    """An operator that computes: its phase, where it lies, and the share of the phase it takes."""

    phase: str
    name: str
    intensity: float  # FLOP/byte
    rate: float  # TFLOP/s
    share: float
    bound: str


def dots_of(result: Result) -> Iterator[Dot]:
    """Yield the operators that compute and move; collectives and launches do not."""
    for phase, line, share in operators_of(result):
        if line.flops and line.bytes and line.time:
            yield Dot(
                phase,
                line.name,
                line.flops / line.bytes,
                line.flops / line.time / TERA,
                share,
                line.bound,
            )


def roofs_of(result: Result) -> dict[str, float]:
    """Return the dense peaks in TFLOP/s of the formats that the workload computes in, the highest
    first; all of the chip where it names others.
    """
    peaks = {
        form: peak / TERA for form in FORMATS if (peak := result.metrics[f"peak_{form}_flop_per_s"])
    }
    named = {text for path, text in result.texts.items() if path.startswith("workload.")}
    return dict(
        sorted(
            ((form, peaks[form]) for form in peaks if form in named or not named & peaks.keys()),
            key=lambda item: -item[1],
        )
    )


def roofline_figure(result: Result, width: float = WIDE) -> str:
    """Return the SVG of a chip's roofs, with operators as points.

    The area of a point is the operator's share of its phase's time.

    Args:
        result: Result of a scenario.
        width: Width of the figure, in pixels.

    Raises:
        DataError: No operator of the plan both computes and moves data, or no roof is known.

    """
    dots, roofs = list(dots_of(result)), roofs_of(result)
    if not (dots and roofs):
        raise DataError(
            f"{result.scenario}: no operator of its plan both computes and moves data, so there is "
            "nothing to draw under a roof"
        )
    slope = result.metrics["hbm_byte_per_s"] / TERA  # TFLOP/s for each FLOP/byte
    said = ", ".join(
        f"{dot.phase} {dot.name} {significant(dot.rate, 3)} TFLOP/s at "
        f"{significant(dot.intensity, 3)} FLOP/byte"
        for dot in dots
    )
    drawing = Drawing(
        f"Roofline of {result.title}",
        f"Operators of the plan under the roofs of a chip: {said}.",
        width,
    )
    drawing.paragraph(
        f"{workload_words(result)}; area of a point: its share of the time of its phase"
    )
    phases = list(dict.fromkeys(dot.phase for dot in dots))
    drawing.legend([(f"dot-{series(at)}", phase) for at, phase in enumerate(phases)], SHAPES)
    top = drawing.bottom + 26
    ridge = max(roofs.values()) / slope
    plot = Plot(
        drawing,
        Log.over(
            [dot.intensity for dot in dots] + [ridge * 3, ridge / 30],
            drawing.left + 46,
            drawing.right - 4,
        ),
        Log.over(
            [dot.rate for dot in dots] + [max(roofs.values()) * 1.3, max(roofs.values()) / 30],
            top + min(width * 0.6, 380),
            top,
        ),
    )
    plot.axes("FLOP for each byte moved", "TFLOP/s a chip")
    labels = Labels(drawing, (plot.x.start, plot.y.end, plot.x.end, plot.y.start))
    draw_roofs(plot, labels, roofs, slope)
    radii = [max(SMALLEST, LARGEST * dot.share**0.5) for dot in dots]
    for dot, radius in zip(dots, radii, strict=True):
        phase = phases.index(dot.phase)
        tip = (
            f"{dot.phase}, {dot.name}: {significant(dot.rate, 3)} TFLOP/s at "
            f"{significant(dot.intensity, 3)} FLOP/byte, "
        )
        tip += f"{dot.share * 100:.1f} % of the time, bound by {dot.bound}"
        drawing.mark(
            plot.point_of(dot.intensity, dot.rate),
            radius,
            f"dot-{series(phase)}",
            tip,
            SHAPES[phase % len(SHAPES)],
        )
        labels.keep_clear(plot.point_of(dot.intensity, dot.rate), radius)
    for dot, radius in sorted(zip(dots, radii, strict=True), key=lambda pair: -pair[0].share):
        if dot.share >= NAMED:
            labels.name(plot.point_of(dot.intensity, dot.rate), radius, dot.name)
    drawing.paragraph(
        f"Roofs are dense peaks and the peak of HBM. {sentence(result.standing.text)}."
    )
    return drawing.svg()


def draw_roofs(plot: Plot, labels: Labels, roofs: dict[str, float], slope: float) -> None:
    """Draw the bandwidth of memory as the slope, and every peak as a flat roof from where it meets
    it.
    """
    drawing, highest = plot.drawing, max(roofs.values())
    foot = max(plot.x.low, plot.y.low / slope)
    drawing.path(
        [plot.point_of(foot, foot * slope), plot.point_of(highest / slope, highest)], "rule"
    )
    for form, peak in roofs.items():
        drawing.path([plot.point_of(peak / slope, peak), plot.point_of(plot.x.high, peak)], "rule")
        labels.write(
            (plot.x.end - 3, plot.y.position_of(peak) - 5),
            f"{form.upper()} {significant(peak, 3)}",
            anchor="end",
        )
    x, y = plot.point_of(
        foot * (highest / slope / foot) ** 0.7, foot * slope * (highest / slope / foot) ** 0.7
    )
    labels.write((x - 8, y), f"HBM {significant(slope, 3)} TB/s", anchor="end")


BAR, ROW = 14.0, 21.0  # pixels
NAMES = 0.4  # of the width, at most


def operators_figure(result: Result, width: float = WIDE) -> str:
    """Return the SVG of each operator's time as bars, phase by phase.

    The longest bar of a phase is first. Each bar has its share of the phase and its time.

    Args:
        result: Result of a scenario.
        width: Width of the figure, in pixels.

    """
    rows = operators_of(result)
    phases = {
        phase: [row for row in rows if row.phase == phase]
        for phase in dict.fromkeys(row.phase for row in rows)
    }
    said = "; ".join(
        f"{phase} {line.name} {share * 100:.1f} %, {line.bound}" for phase, line, share in rows
    )
    drawing = Drawing(
        f"Where the time of {result.title} goes", f"Share of each phase by operator: {said}.", width
    )
    drawing.paragraph(workload_words(result))
    if result.report.plan:
        drawing.paragraph(f"Plan: {plan_text(result.report.plan)}")
    bounds = [bound for bound in BOUNDS if any(row.line.bound == bound for row in rows)]
    drawing.legend(
        [
            (f"fill-{series(BOUNDS.index(bound))}", f"bound by {bound}" if at == 0 else bound)
            for at, bound in enumerate(bounds)
        ]
    )
    names = min(max(text_width(row.line.name, BODY) for row in rows) + 8, width * NAMES)
    room = text_width("100.0 %  1,000 ms", SMALL) + 6
    scale = Linear.over(
        [0.0, *(row.share for row in rows)], drawing.left + names, drawing.right - room
    )
    for phase, some in phases.items():
        whole = float(result.report.phases[phase].time)
        drawing.bottom += 8
        drawing.text(
            (drawing.left, drawing.bottom + BODY),
            f"{phase}: {significant(whole * 1e3)} ms",
            bold=True,
        )
        drawing.bottom += BODY * 1.6
        for _, line, share in some:
            y = drawing.bottom + (ROW - BAR) / 2
            drawing.text(
                (scale.start - 6, y + BAR - 3),
                truncate_to_width(line.name, names - 6, BODY),
                anchor="end",
            )
            tip = (
                f"{phase}, {line.name}: {significant(line.time * 1e3)} ms, {share * 100:.1f} %, "
                f"bound by {line.bound}"
            )
            tip += (
                f", at {line.of_bound * 100:.0f} % of that bound"
                if line.of_bound is not None
                else ""
            )
            drawing.rectangle(
                scale.position_of(0),
                y,
                scale.position_of(share) - scale.position_of(0),
                BAR,
                f"fill-{series(BOUNDS.index(line.bound))}",
                tip,
            )
            where = scale.position_of(share) + 5, y + BAR - 3
            drawing.text(
                where,
                f"{share * 100:.1f} %",
                size=SMALL,
                tail=f"{significant(line.time * 1e3, 3)} ms",
            )
            drawing.bottom += ROW
        drawing.line(
            (scale.position_of(0), drawing.bottom - ROW * len(some)),
            (scale.position_of(0), drawing.bottom),
            "axis",
        )
    drawing.bottom += 6
    drawing.paragraph(f"{sentence(result.standing.text)}.")
    return drawing.svg()
