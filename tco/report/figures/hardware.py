"""Figures of racks: scale-up fabrics by scope, and a treemap of a bill of materials by price."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

import numpy as np
from matplotlib.axes import Axes

from tco.catalog.system_tree import System
from tco.core.mappings import lists_by_key
from tco.fabric.topology import FabricScope
from tco.report.figures.drawing import (
    MARGIN,
    SMALL,
    Drawing,
    shortened,
    styled,
    text_width,
    tip,
    write_beside,
)
from tco.report.figures.style import INK, LIGHT, MUTED, PAPER, WIDE, colours_of, ink_on
from tco.report.hardware import SCOPE
from tco.report.ranges import rounded_percent
from tco.report.table import significant, weak
from tco.system.bill import Bill, BillLine

SCOPE_ROW = 40.0  # pixels
INJECTION, ALL, HOPS = LIGHT[7], LIGHT[0], LIGHT[1]
SCOPE_WORDS = {"world": "domain"}
# name; chips, injection, mean hops, worst, bisection, all-to-all
ScopeNumbers = tuple[str, Sequence[float]]


def _scope_rows(systems: Sequence[tuple[str, Sequence[FabricScope]]]) -> list[ScopeNumbers]:
    """Return a row for each scope of each system, scopes that are alike together."""
    scope_rows: list[ScopeNumbers] = []
    for system, scopes in systems:
        cells = list(map(SCOPE.cells, scopes))
        alike = len({tuple(cell_row[1:]) for cell_row in cells}) == 1
        for scope, *numbers in cells[:1] if alike else cells:
            scope_rows.append(
                (
                    f"{system}: {'' if alike else f'{SCOPE_WORDS.get(scope, scope)}, '}"
                    f"{numbers[0]:g} chips",
                    numbers,
                )
            )
    return scope_rows


@styled
def fabric_figure(
    systems: Sequence[tuple[str, Sequence[FabricScope]]], width: float = WIDE
) -> Drawing:
    """Return the figure of bandwidths and hops by scope.

    Bandwidths are on the left in GB/s per chip and direction, hops on the right. Scopes of a
    system that are alike share a row.

    Args:
        systems: Names of systems with their scopes.
        width: Width of the drawing in pixels.

    """
    scope_rows = _scope_rows(systems)
    figures = "; ".join(
        f"{scope_label}: injection {significant(injection, 3)} GB/s, all-to-all "
        f"{significant(all_to_all, 3)} GB/s, hops {significant(mean, 3)} on average, "
        f"{significant(worst, 3)} at most"
        for scope_label, (_, injection, mean, worst, _, all_to_all) in scope_rows
    )
    drawing = Drawing(
        "Scale-up fabrics",
        f"GB/s per chip and direction, and hops: {figures}.",
        width,
        "Left: GB/s per chip and direction. Injection is all that a chip can send; all-to-all is "
        "what it can send while every chip sends to every other.",
        "Right: devices between two chips.",
    )
    drawing.legend(
        {"injection": INJECTION, "all-to-all": ALL, "hops, mean": HOPS, "hops, worst": INK}, "ssoD"
    )
    top = drawing.bottom
    scope_labels = [scope_label for scope_label, _ in scope_rows]
    left = drawing.rows(scope_labels, SCOPE_ROW, right=width * 0.4 + 110)
    drawing.bottom = top
    right = drawing.axes(SCOPE_ROW * len(scope_rows), width * 0.6)
    right.set(xlabel="hops", ylim=left.get_ylim(), yticks=())
    left.set_xlabel("GB/s")
    for row_index, (scope_label, (_, injection, mean, worst, _, all_to_all)) in enumerate(
        scope_rows
    ):
        for label, scope_value, height, colour in (
            ("injection", injection, 0.3, INJECTION),
            ("all-to-all", all_to_all, 0.15, ALL),
        ):
            bar = left.barh(row_index, scope_value, height, color=colour)
            tip(bar, f"{scope_label}: {label} {significant(scope_value)} GB/s")
        words = f"{significant(all_to_all, 3)} of {significant(injection, 3)}"
        write_beside(left, injection, row_index, words, 4)
        right.plot([mean, worst], [row_index, row_index], color=MUTED, linewidth=1)
        for label, scope_value, marker, colour in (
            ("at most", worst, "D", INK),
            ("on average", mean, "o", HOPS),
        ):
            mark = right.plot(scope_value, row_index, marker, color=colour, clip_on=False)
            tip(mark, f"{scope_label}: {significant(scope_value, 3)} hops {label}")
    right.set_xlim(0, max(4, right.dataLim.x1))
    drawing.bottom += 18
    return drawing


HEIGHT = 0.62  # of the map as a share of its width
LEAST = 300.0  # pixels
Tile = tuple[float, float, float, float]  # left, top, width, height in pixels
LEAST_NAME = 6  # characters of a name that is cut
PAD, LINE = 4.0, 14.0  # pixels: around words, and from a line of words to the next


def tiles(sizes: Sequence[float], x: float, y: float, width: float, height: float) -> list[Tile]:
    """Return rectangles that fill a room, their areas as some sizes.

    The longer side of the room is cut where the sizes have half of their sum, and so on in both
    parts.

    Args:
        sizes: Sizes above nought, the largest first.
        x: Left end of the room in pixels.
        y: Upper end of the room in pixels.
        width: Width of the room in pixels.
        height: Height of the room in pixels.

    """
    if len(sizes) < 2:
        return [(x, y, width, height)]
    if height > width:
        turned = tiles(sizes, y, x, height, width)
        return [(left, top, wide, high) for top, left, high, wide in turned]
    sums = np.cumsum(sizes)
    count = max(int(np.searchsorted(sums, sums[-1] / 2)), 1)
    cut = float(sums[count - 1] / sums[-1]) * width
    first = tiles(sizes[:count], x, y, cut, height)
    return first + tiles(sizes[count:], x + cut, y, width - cut, height)


def _assembly_of(line: BillLine, trees: Set[str]) -> str:
    steps = line.path.split("/")
    return steps[1] if "/".join(steps[:2]) in trees and len(steps) > 1 else steps[0]


@styled
def bom_figure(system: System, bill: Bill, date: str, width: float = WIDE) -> Drawing:
    """Return the map of a bill of materials.

    A line whose price lies in another line has no rectangle.

    Args:
        system: System of the bill.
        bill: Bill of materials, in USD.
        date: Date of the prices.
        width: Width of the figure, pixels.

    """
    lines = [line for line in bill.lines if line.extended is not None and float(line.extended) > 0]
    trees = {line.path.rpartition("/")[0] for line in bill.lines}
    dearest_first = sorted(lines, key=lambda line: -float(line.extended))
    assemblies = lists_by_key((_assembly_of(line, trees), line) for line in dearest_first)
    total = _bill_lines_cost(lines)
    by_price = sorted(assemblies.items(), key=lambda item: -_bill_lines_cost(item[1]))
    shares = {assembly_name: _bill_lines_cost(group) / total for assembly_name, group in by_price}
    figures = "; ".join(
        f"{assembly_name} {share * 100:.1f} %" for assembly_name, share in shares.items()
    )
    racks = f"{system.racks:g} {'rack' if system.racks == 1 else 'racks'}"
    drawing = Drawing(
        f"What {system.name} is made of",
        f"Prices of the bill, {significant(total)} USD in all: {figures}.",
        width,
        f"{significant(total)} USD for {system.chips:g} chips in {racks}, prices of {date}; the "
        "area of a part is its price; ~ an estimate",
    )
    colours = colours_of(shares)
    drawing.legend(
        {
            f"{assembly_name} {rounded_percent(shares[assembly_name])}": colours[assembly_name]
            for assembly_name in shares
        }
    )
    room = width - 2 * MARGIN
    top, height = drawing.bottom + 10, max(room * HEIGHT, LEAST)
    axes = drawing.axes(height, MARGIN, MARGIN)
    axes.set(xlim=(0, room), ylim=(height, 0), xticks=(), yticks=())
    drawing.bottom = top + height
    spaces = tiles(list(shares.values()), 0, 0, room, height)
    for assembly_name, space in zip(shares, spaces, strict=True):
        prices = [float(line.extended) for line in assemblies[assembly_name]]
        for line, (x, y, wide, high) in zip(
            assemblies[assembly_name], tiles(prices, *space), strict=True
        ):
            price = f"{weak(line.kind)}{significant(line.extended, 3)} USD"
            share = f"{float(line.extended) / total * 100:.1f} %"
            tip(
                axes.bar(
                    x, high, wide, y, align="edge", edgecolor=PAPER, color=colours[assembly_name]
                ),
                f"{line.part}: {line.quantity:g} for {price}, {share} ({line.kind})",
            )
            ink = ink_on(colours[assembly_name])
            _write_in_tile(axes, (line.part, price, share), (x, y, wide, high), ink)
    return drawing


def _write_in_tile(axes: Axes, words: Sequence[str], tile: Tile, ink: str) -> None:
    """Write the lines of words that a tile has room for, the first one bold."""
    x, y, wide, high = tile
    name, *figures = words
    name_lines = _name_lines(name, wide - 2 * PAD)
    count = int((high - PAD) / LINE)
    lines = [*((line, "bold") for line in name_lines), *((line, "normal") for line in figures)]
    for number, (line, weight) in enumerate(lines[:count] if len(name_lines) <= count else ()):
        short = shortened(line, wide - 2 * PAD, weight)
        if short != line and (weight == "normal" or len(short) < LEAST_NAME):
            break
        base = y + PAD / 2 + LINE * number + SMALL
        axes.text(x + PAD, base, short, weight=weight, color=ink)


def _name_lines(name: str, room: float) -> list[str]:
    """Return the name of a part in lines, broken after its hyphens where it is too wide."""
    lines = [""]
    for piece in re.findall(r"[^-]+-?", name):
        if lines[-1] and text_width(lines[-1] + piece, weight="bold") > room:
            lines.append("")
        lines[-1] += piece
    return lines


def _bill_lines_cost(lines: Sequence[BillLine]) -> float:
    return sum(float(line.extended) for line in lines)
