"""Figure of scale-up fabrics: bandwidth per chip and hops by scope.

`fabric_figure` draws injection and all-to-all bandwidth on the left, and hops on the right.
"""

from __future__ import annotations

from collections.abc import Sequence

from tco.fabric.topology import FabricScope
from tco.report.figures import WIDE
from tco.report.figures.scales import Linear, tick_words
from tco.report.figures.style import BODY, SMALL
from tco.report.figures.svg import Drawing, text_width, truncate_to_width
from tco.report.hardware import SCOPE
from tco.report.table import significant

BAR, ROW, GAP = 12.0, 40.0, 26.0  # pixels
INJECTION, ALL = "fill-8", "fill-1"
Row = tuple[str, Sequence[float]]  # name; chips, injection, mean hops, worst, bisection, all-to-all


def scope_rows(found: Sequence[tuple[str, Sequence[FabricScope]]]) -> list[Row]:
    """Return a row for each scope of each system, scopes that are alike together."""
    rows: list[Row] = []
    for system, scopes in found:
        cells = list(map(SCOPE.cells, scopes))
        alike = len({tuple(one[1:]) for one in cells}) == 1
        for scope, *numbers in cells[:1] if alike else cells:
            rows.append((f"{system}: {'' if alike else f'{scope}, '}{numbers[0]:g} chips", numbers))
    return rows


def fabric_figure(found: Sequence[tuple[str, Sequence[FabricScope]]], width: float = WIDE) -> str:
    """Return an SVG drawing of bandwidths and hops by scope.

    Bandwidths are on the left in GB/s per chip and direction, hops on the right. Scopes of a
    system that are alike share a row.

    Args:
        found: Names of systems with their scopes.
        width: Width of the drawing in pixels.

    """
    rows = scope_rows(found)
    said = "; ".join(
        f"{name}: injection {significant(one[1], 3)} GB/s, all-to-all {significant(one[5], 3)} "
        f"GB/s, hops {significant(one[2], 3)} on average, "
        f"{significant(one[3], 3)} at worst"
        for name, one in rows
    )
    drawing = Drawing("Scale-up fabrics", f"GB/s of a chip and direction, and hops: {said}.", width)
    drawing.paragraph(
        "Left: GB/s of a chip, per direction, when all send to all, of what it puts in. Right: "
        "intermediate devices between two chips."
    )
    drawing.legend(
        [
            (INJECTION, "injection"),
            (ALL, "all-to-all"),
            ("dot-2", "hops, mean"),
            ("hollow", "hops, worst"),
        ],
        ("square", "square", "circle", "circle"),
    )
    room = text_width("0,000 of 0,000", SMALL) + 6
    middle = drawing.left + (drawing.right - drawing.left) * 0.6
    left = Linear.over([0.0, *(one[1] for _, one in rows)], drawing.left, middle - GAP - room)
    right = Linear.over([0.0, *(one[3] for _, one in rows), 4.0], middle, drawing.right - 8)
    top = drawing.bottom + 4
    foot = top + ROW * len(rows)
    for scale, words, apart in ((left, "GB/s", 56), (right, "hops", 24)):
        for value in scale.ticks(min(max(int((scale.end - scale.start) / apart), 2), 6)):
            drawing.line((scale.position_of(value), top), (scale.position_of(value), foot), "grid")
            drawing.text(
                (scale.position_of(value), foot + 14),
                tick_words(value),
                "muted",
                SMALL,
                "middle" if value else "start",
            )
        drawing.text(((scale.start + scale.end) / 2, foot + 30), words, "muted", BODY, "middle")
    for at, (name, one) in enumerate(rows):
        y = top + ROW * at
        drawing.text(
            (drawing.left, y + 14),
            truncate_to_width(name, drawing.right - drawing.left, BODY),
            halo=True,
        )
        _, injection, mean, worst, _, all_to_all = one
        inner, level = left.position_of(all_to_all) - left.position_of(0), y + 20 + BAR / 2
        drawing.rectangle(
            left.position_of(0),
            y + 20,
            left.position_of(injection) - left.position_of(0),
            BAR,
            INJECTION,
            f"{name}: injection {significant(injection)} GB/s",
        )
        drawing.rectangle(
            left.position_of(0),
            y + 20 + BAR / 4,
            inner,
            BAR / 2,
            ALL,
            f"{name}: all-to-all {significant(all_to_all)} GB/s",
        )
        words = f"{significant(all_to_all, 3)} of {significant(injection, 3)}"
        drawing.text(
            (left.position_of(injection) + 4, y + 20 + BAR - 2), words, size=SMALL, halo=True
        )
        drawing.line((right.position_of(mean), level), (right.position_of(worst), level), "axis")
        drawing.mark(
            (right.position_of(worst), level),
            5,
            "hollow",
            f"{name}: {significant(worst)} hops at worst",
        )
        drawing.mark(
            (right.position_of(mean), level),
            4,
            "dot-2",
            f"{name}: {significant(mean, 3)} hops on average",
        )
    drawing.bottom = foot + 36
    return drawing.svg()
