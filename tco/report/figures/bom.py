"""Treemap figure of a system's bill of materials by price.

Each line of the bill is a rectangle, its area the price. The lines of an assembly stand side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from tco.catalog.system_tree import System
from tco.report.figures import WIDE
from tco.report.figures.style import SMALL, series
from tco.report.figures.svg import Drawing, truncate_to_width
from tco.report.table import significant, weak
from tco.system.bill import Bill, BillLine

TALL = 0.62  # height of the map as a share of its width
LEAST = 300.0  # pixels
PAD = 4.0


class Tile(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def tiles(sizes: Sequence[float], room: Tile) -> list[Tile]:
    """Return rectangles that fill a room, their areas as some sizes, the largest first, and none
    longer than it must be.

    A row is laid along the shorter side of what is left, and takes sizes as long as that makes its
    rectangles more square.
    """
    found: list[Tile] = []
    left, rest = room, list(sizes)
    while rest:
        scale = left.width * left.height / sum(rest)
        side = min(left.width, left.height)
        count = 1
        while count < len(rest) and longest(rest[: count + 1], scale, side) <= longest(
            rest[:count], scale, side
        ):
            count += 1
        row, rest = rest[:count], rest[count:]
        deep = sum(row) * scale / side
        along = 0.0
        for size in row:
            length = size * scale / deep
            upright = left.width >= left.height
            found.append(
                Tile(left.x, left.y + along, deep, length)
                if upright
                else Tile(left.x + along, left.y, length, deep)
            )
            along += length
        if left.width >= left.height:
            left = Tile(left.x + deep, left.y, left.width - deep, left.height)
        else:
            left = Tile(left.x, left.y + deep, left.width, left.height - deep)
    return found


def longest(row: Sequence[float], scale: float, side: float) -> float:
    """Return the largest ratio of length to width in a row that is laid along a side."""
    deep = sum(row) * scale / side
    return max(max(size * scale / deep / deep, deep * deep / (size * scale)) for size in row)


def assembly_of(line: BillLine, trees: Set[str]) -> str:
    """Return the tray, or else the rack, that a line belongs to, by which it has its colour;
    `trees` are the paths that hold others.
    """
    steps = line.path.split("/")
    return steps[1] if "/".join(steps[:2]) in trees and len(steps) > 1 else steps[0]


def bom_figure(system: System, bill: Bill, date: str, width: float = WIDE) -> str:
    """Return the treemap of a bill of materials as SVG.

    A line whose price lies in another line has no rectangle.

    Args:
        system: System of the bill.
        bill: Bill of materials, in USD.
        date: Date of the prices.
        width: Width of the figure, pixels.

    """
    lines = [line for line in bill.lines if line.extended is not None and float(line.extended) > 0]
    trees = {line.path.rpartition("/")[0] for line in bill.lines}
    groups: dict[str, list[BillLine]] = {}
    for line in sorted(lines, key=lambda line: -float(line.extended)):
        groups.setdefault(assembly_of(line, trees), []).append(line)
    ordered = sorted(groups.items(), key=lambda item: -bill_lines_cost(item[1]))
    whole = bill_lines_cost(lines)
    said = "; ".join(
        f"{name} {bill_lines_cost(group) / whole * 100:.1f} %" for name, group in ordered
    )
    drawing = Drawing(
        f"What {system.name} is made of",
        f"Prices of the bill, {significant(whole)} USD in all: {said}.",
        width,
    )
    racks = f"{system.racks:g} {'rack' if system.racks == 1 else 'racks'}"
    drawing.paragraph(
        f"{significant(whole)} USD for {system.chips:g} chips in {racks}, prices of {date}; an "
        "area is a price; ~ an estimate"
    )
    drawing.legend(
        [
            (f"fill-{series(at)}", f"{name} {bill_lines_cost(group) / whole * 100:.0f} %")
            for at, (name, group) in enumerate(ordered)
        ]
    )
    room = Tile(
        drawing.left,
        drawing.bottom + 4,
        drawing.right - drawing.left,
        max((drawing.right - drawing.left) * TALL, LEAST),
    )
    for at, ((_, group), space) in enumerate(
        zip(ordered, tiles([bill_lines_cost(group) for _, group in ordered], room), strict=True)
    ):
        for line, tile in zip(
            group, tiles([float(line.extended) for line in group], space), strict=True
        ):
            draw_tile(drawing, tile, line, series(at), whole)
    drawing.bottom = room.y + room.height + 4
    return drawing.svg()


def bill_lines_cost(lines: Sequence[BillLine]) -> float:
    """Return the total extended price of bill lines in USD."""
    return sum(float(line.extended) for line in lines)


def draw_tile(drawing: Drawing, tile: Tile, line: BillLine, colour: int, whole: float) -> None:
    """Draw a line of the bill with its part, its price and its share, as far as there is room."""
    price = f"{weak(line.kind)}{significant(line.extended, 3)} USD"
    share = f"{float(line.extended) / whole * 100:.1f} %"
    tip = f"{line.part}: {line.quantity:g} for {price}, {share} ({line.kind})"
    drawing.rectangle(tile.x, tile.y, tile.width, tile.height, f"fill-{colour}", tip)
    drawing.rectangle(tile.x, tile.y, tile.width, tile.height, "gap")
    y = tile.y + PAD + SMALL
    for words, bold in ((line.part, True), (price, False), (share, False)):
        short = truncate_to_width(words, tile.width - 2 * PAD, SMALL, bold)
        if y > tile.y + tile.height - PAD + 2 or not short or (not bold and short != words):
            return
        drawing.text((tile.x + PAD, y), short, f"on-{colour}", SMALL, bold=bold)
        y += SMALL * 1.3
