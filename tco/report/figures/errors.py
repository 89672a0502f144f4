"""Figure of model errors on published measurements, by kind and chip.

The figure shows errors of the fit and errors with the chip left out of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tco.catalog.accuracy import WORDS
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, tick_words
from tco.report.figures.style import BODY, SMALL
from tco.report.figures.svg import Drawing, text_width, truncate_to_width

ROW = 18.0  # pixels
MEDIAN, APART = "dot-1", "hollow"


def errors_figure(rows: Sequence[Mapping[str, str]], width: float = WIDE) -> str:
    """Return a figure of prediction errors by chip and kind of measurement.

    Each chip of each kind has a row: the median error, the median error with the chip left out of
    the fit, and the 90th percentile.

    Args:
        rows: Accuracy of each kind and chip as texts by column, at least one row; errors are
            shares.
        width: Width of the figure in pixels.

    Returns:
        The figure as SVG text.

    """
    said = "; ".join(
        f"{row['kind']} {row['part']} {float(row['median_ape']) * 100:.0f} % of {row['n']} rows"
        for row in rows
    )
    drawing = Drawing(
        "How far predictions lie from measurements",
        f"Median absolute error by kind and chip: {said}.",
        width,
    )
    drawing.paragraph(
        "Absolute error of published measurements, each predicted from its own stated "
        "configuration; the line ends at the 90th percentile"
    )
    drawing.legend([(MEDIAN, "median"), (APART, "median, leave-one-chip-out")], ("circle",))
    names = max(text_width(f"{row['part']} {int(row['n']):,}", SMALL) for row in rows) + 10
    ends = [float(row[name]) * 100 for row in rows for name in ("p90_ape", "left_out") if row[name]]
    scale = Linear.rounded([0.0, *ends], drawing.left + names, drawing.right - 16)
    ticks = scale.ticks(max(int((scale.end - scale.start) / 44), 2))
    for words in dict.fromkeys(measurement_kind_label(row["kind"]) for row in rows):
        some = [row for row in rows if measurement_kind_label(row["kind"]) == words]
        drawing.bottom += 6
        drawing.text((drawing.left, drawing.bottom + BODY), words, bold=True)
        drawing.bottom += BODY * 1.5
        for value in ticks:
            drawing.line(
                (scale.position_of(value), drawing.bottom),
                (scale.position_of(value), drawing.bottom + ROW * len(some)),
                "grid",
            )
        for row in sorted(some, key=lambda row: (-int(row["n"]), row["part"])):
            draw_chip(drawing, scale, row)
    for value in ticks:
        drawing.text(
            (scale.position_of(value), drawing.bottom + 14),
            f"{tick_words(value)} %",
            "muted",
            SMALL,
            "middle",
        )
    drawing.bottom += 22
    drawing.paragraph(
        f"Beside a chip: its rows. As of {max(row['date'] for row in rows)}. A chip that is not "
        "here has no published measurement of that kind."
    )
    return drawing.svg()


def measurement_kind_label(kind: str) -> str:
    """Return a kind of measurements in words, that of a family with those of all."""
    return WORDS.get(next((name for name in WORDS if kind.endswith(name)), kind), kind)


def draw_chip(drawing: Drawing, scale: Linear, row: Mapping[str, str]) -> None:
    """Draw the errors of a chip in a row of its own."""
    y = drawing.bottom + ROW / 2
    median, ninth, apart = (
        float(row[name]) * 100 if row[name] else None
        for name in ("median_ape", "p90_ape", "left_out")
    )
    drawing.text(
        (drawing.left, y + 4),
        truncate_to_width(row["part"], scale.start - drawing.left, SMALL),
        size=SMALL,
        tail=f"{int(row['n']):,}",
    )
    tip = f"{row['part']}: {int(row['n']):,} rows, median error {median:.1f} %"
    if ninth is not None:
        drawing.line((scale.position_of(0), y), (scale.position_of(ninth), y), "axis")
    if apart is not None:
        drawing.mark(
            (scale.position_of(apart), y), 4.5, APART, f"{tip}, {apart:.1f} % leave-one-chip-out"
        )
    if median is not None:
        drawing.mark((scale.position_of(median), y), 4, MEDIAN, tip)
    drawing.bottom += ROW
