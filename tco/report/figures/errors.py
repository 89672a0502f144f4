"""Figure of model errors on published measurements, by kind and chip.

The figure shows errors of the fit and errors with the chip left out of the fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from tco.catalog.accuracy import FAMILY_WORDS, WORDS
from tco.core.mappings import lists_by_key
from tco.report.figures.drawing import MARGIN, Drawing, styled, text_width, tip
from tco.report.figures.style import LIGHT, MUTED, WIDE

ROW = 18.0  # pixels
MEDIAN, LEFT_OUT = LIGHT[0], LIGHT[1]


@styled
def errors_figure(accuracy_rows: Sequence[Mapping[str, str]], width: float = WIDE) -> Drawing:
    """Return a figure of prediction errors by chip and kind of measurement.

    Each chip of each kind has a row: the median error, the median error with the chip left out of
    the fit, and the 90th percentile.

    Args:
        accuracy_rows: Accuracy of each kind and chip as texts by column, at least one row; errors
            are shares.
        width: Width of the figure in pixels.

    """
    figures = "; ".join(
        f"{accuracy_row['kind']} {accuracy_row['part']} "
        f"{float(accuracy_row['median_ape']) * 100:.0f} % of {accuracy_row['n']} runs"
        for accuracy_row in accuracy_rows
    )
    drawing = Drawing(
        "How far predictions lie from measurements",
        f"Median absolute error by kind and chip: {figures}.",
        width,
        "Absolute error of published measurements, each predicted from its own stated "
        "configuration; the line ends at the 90th percentile",
    )
    drawing.legend({"median": MEDIAN, "median, chip unseen in the fit": LEFT_OUT}, "oD")
    kinds = lists_by_key(
        (measurement_kind_label(accuracy_row["kind"]), accuracy_row)
        for accuracy_row in sorted(accuracy_rows, key=_kind_rank)
    )
    ends = [
        float(accuracy_row[key])
        for accuracy_row in accuracy_rows
        for key in ("p90_ape", "left_out")
        if accuracy_row[key]
    ]
    left = max(text_width(_chip_label(accuracy_row)) for accuracy_row in accuracy_rows) + 2 * MARGIN
    for kind, unordered in kinds.items():
        chips = sorted(
            unordered, key=lambda accuracy_row: (-int(accuracy_row["n"]), accuracy_row["part"])
        )
        axes = drawing.group(kind, list(map(_chip_label, chips)), ROW, left)
        axes.set_xlim(0, max(ends) * 105)
        axes.xaxis.set_major_formatter("{x:g} %")
        axes.grid(visible=False, axis="y")
        for level, accuracy_row in enumerate(chips):
            _draw_errors(axes, level, accuracy_row)
    drawing.paragraphs(
        "Beside a chip: the number of its published runs. As of "
        f"{max(accuracy_row['date'] for accuracy_row in accuracy_rows)}."
    )
    return drawing


def _kind_rank(accuracy_row: Mapping[str, str]) -> tuple[int, str]:
    """Return the place of a kind among the groups: those of `WORDS` first, its families after."""
    kind = accuracy_row["kind"]
    ends = [number for number, general in enumerate(WORDS) if kind.endswith(general)]
    return (ends or [len(WORDS)])[0], kind.removesuffix(list(WORDS)[ends[0]]) if ends else kind


def _draw_errors(axes: Axes, level: int, accuracy_row: Mapping[str, str]) -> None:
    """Draw the errors of a chip: its median, with the chip left out, and a line to the P90."""
    median, ninth, left_out = (
        float(accuracy_row[error_column] or "nan") * 100
        for error_column in ("median_ape", "p90_ape", "left_out")
    )
    words = f"{accuracy_row['part']}: {int(accuracy_row['n']):,} runs, median error {median:.1f} %"
    axes.plot([0, ninth], [level, level], color=MUTED, linewidth=1)
    if accuracy_row["left_out"]:
        mark = axes.plot(left_out, level, "D", color=LEFT_OUT, markersize=5)
        tip(mark, f"{words}, {left_out:.1f} % with the chip unseen in the fit")
    tip(axes.plot(median, level, "o", color=MEDIAN), words)


def _chip_label(accuracy_row: Mapping[str, str]) -> str:
    return f"{accuracy_row['part']}  {int(accuracy_row['n']):,}"


def measurement_kind_label(kind: str) -> str:
    """Return a kind of measurements in words, with the family of those that are of one."""
    general = next((kind_name for kind_name in WORDS if kind.endswith(kind_name)), kind)
    family = kind.removesuffix(general).strip("_")
    general_words = WORDS.get(general, general)
    family_words = FAMILY_WORDS.get(family, family.replace("_", " "))
    return f"{general_words}: {family_words}" if family else general_words
