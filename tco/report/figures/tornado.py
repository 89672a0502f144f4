"""Tornado chart of a metric, with a bar for each input.

A bar goes from the low of the input to its high. All other inputs are at their values.
"""

from __future__ import annotations

from tco.catalog.labels import short_name
from tco.core.errors import DataError
from tco.report.assumptions import marked
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, tick_words
from tco.report.figures.style import BODY, SMALL
from tco.report.figures.svg import TAIL, Drawing, text_width, truncate_to_width
from tco.report.sensitivity import input_range_text, plan_treatment, tornado_end_label
from tco.report.table import significant
from tco.sampling.sensitivity import Sensitivity, Swing
from tco.scenario.metrics import METRICS

SHOWN = 12  # inputs
BAR, ROW = 11.0, 34.0  # pixels
LOW, HIGH = "fill-2", "fill-1"


def tornado_figure(found: Sensitivity, width: float = WIDE) -> str:
    """Return the SVG of a metric's strongest inputs as bars.

    The input that moves the metric most comes first.

    Args:
        found: Sensitivity of the metric to every input.
        width: Width of the figure, in pixels.

    Raises:
        DataError: The metric has no value with every input at its own value.

    """
    metric, middle = METRICS[found.metric], found.centre
    if middle is None:
        raise DataError(
            f"{found.sides[0].scenario.name}: {found.metric} has no value with every input at its "
            "own, so there is no middle to draw from"
        )
    moving = [one for one in found.swings if one.swing != 0]
    shown = moving[:SHOWN]
    said = "; ".join(
        f"{short_name(one.given.path)} {tornado_end_label(one.at_low, one.meets_low)} to "
        f"{tornado_end_label(one.at_high, one.meets_high)}"
        for one in shown
    )
    centre = marked(found.sides[0].result, found.metric, significant(found.centre))
    now = f"{metric.label}: {centre} {metric.unit}".rstrip()
    drawing = Drawing(
        f"What drives {found.sides[0].result.title}",
        f"{now} at the centre; from low to high of each input: {said}.",
        width,
    )
    drawing.paragraph(f"{now} with every input at its value")
    drawing.paragraph(
        f"Each input alone at its P5 and P95, the plan {plan_treatment(found)}; ~ an estimate"
    )
    drawing.legend([(LOW, "input at its low"), (HIGH, "input at its high")])
    room = text_width("000,000", SMALL) + 6
    ends = [end for one in shown for end in (one.at_low, one.at_high) if end is not None]
    scale = Linear.over([middle, *ends], drawing.left + room, drawing.right - room)
    top = drawing.bottom + 4
    foot = top + ROW * len(shown)
    for tick in scale.ticks(max(int((scale.end - scale.start) / 62), 2)):
        drawing.line((scale.position_of(tick), top), (scale.position_of(tick), foot), "grid")
        drawing.text(
            (scale.position_of(tick), foot + 15), tick_words(tick), "muted", SMALL, "middle"
        )
    for at, one in enumerate(shown):
        draw_swing(drawing, scale, top + ROW * at, one, middle)
    drawing.text(
        ((scale.start + scale.end) / 2, foot + 32),
        f"{metric.label}, {metric.unit}".rstrip(", "),
        "muted",
        BODY,
        "middle",
    )
    drawing.bottom = foot + 40
    if len(moving) > len(shown):
        drawing.paragraph(f"{len(moving) - len(shown)} more inputs move it less.")
    if not all(one.meets_low and one.meets_high for one in shown):
        drawing.paragraph("! the workload's targets are not met there.")
    return drawing.svg()


def draw_swing(drawing: Drawing, scale: Linear, top: float, one: Swing, centre: float) -> None:
    """Draw an input: its name and range, and below them how far either end moves the metric."""
    name, y, words = short_name(one.given.path), top + 17, input_range_text(one.given)
    room = drawing.right - drawing.left - text_width(words, SMALL) - TAIL
    drawing.text(
        (drawing.left, top + 12),
        truncate_to_width(name, room, BODY, bold=True),
        bold=True,
        halo=True,
        tail=words,
    )
    ends = [(one.at_low, LOW, "low", one.meets_low), (one.at_high, HIGH, "high", one.meets_high)]
    for end, look, side, meets in sorted(
        ends, key=lambda part: -abs((centre if part[0] is None else part[0]) - centre)
    ):
        if end is not None and end != centre:
            start, stop = sorted((scale.position_of(centre), scale.position_of(end)))
            drawing.rectangle(
                start,
                y,
                stop - start,
                BAR,
                look,
                f"{name} at its {side}: {tornado_end_label(end, meets)}",
            )
    drawing.line(
        (scale.position_of(centre), y - 2), (scale.position_of(centre), y + BAR + 2), "rule"
    )
    for end, _, _, meets in ends:
        if end is not None and end != centre:
            right = end > centre
            others = [
                other
                for other, *_ in ends
                if other is not None
                and (other > centre) == right
                and abs(other - centre) > abs(end - centre)
            ]
            if not others:  # both ends on one side: the farther is named
                drawing.text(
                    (scale.position_of(end) + (4 if right else -4), y + BAR - 2),
                    tornado_end_label(end, meets),
                    "ink",
                    SMALL,
                    "start" if right else "end",
                )
