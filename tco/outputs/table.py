"""Tables: one neutral form, printed for a terminal, as Markdown, or as CSV with raw numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

FORMULA_STARTS = ("=", "+", "-", "@")  # a spreadsheet would run a text that begins like this
GAP = "   "  # between columns


class Table(NamedTuple):
    """Rows of ready texts under a title, with lines above and below."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    align: str = "l"  # a letter for each column, l or r; columns beyond the letters are numbers, aligned to the right

    def side(self, column: int) -> str:
        """Return the side a column is aligned to."""
        return "left" if self.align[column : column + 1] == "l" else "right"


def significant(value: Any, digits: int = 4) -> str:
    """Return a number with some significant digits and thousands separators; nothing for None."""
    if value is None:
        return ""
    number = float(value)
    if number == 0:
        return "0"
    rounded = float(f"{number:.{digits - 1}e}")
    if abs(rounded) >= 1e15 or abs(rounded) < 1e-4:
        return f"{rounded:.{digits - 1}e}"
    if abs(rounded) >= 1000:
        return f"{rounded:,.6f}".rstrip("0").rstrip(".")
    return f"{rounded:.12f}".rstrip("0").rstrip(".")


def to_text(table: Table, width: int | None) -> str:
    """Return the table for a terminal of some width, or unbroken where `width` is None (a pipe)."""
    lines = [line for text in ([table.title] if table.title else [], table.above) for each in text for line in folded(each, width)]
    if table.columns:
        grid = [table.columns, *table.rows]
        widths = [max(len(line) for row in grid for line in row[column].split("\n")) for column in range(len(table.columns))]
        if width is not None:
            widths = fitted(widths, width - len(GAP) * (len(widths) - 1))
        sides = [table.side(column) for column in range(len(widths))]
        head, *body = (laid_out([folded(cell, room) for cell, room in zip(row, widths, strict=True)], widths, sides) for row in grid)
        lines += [*head, "─" * (sum(widths) + len(GAP) * (len(widths) - 1)), *(line for row in body for line in row)]
    lines += [line for each in table.below for line in folded(each, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def fitted(widths: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that share some room: the widest are cut to a common width, narrow ones keep theirs."""
    cut = max(widths)
    while cut > 1 and sum(min(each, cut) for each in widths) > room:
        cut -= 1
    return [min(each, cut) for each in widths]


def folded(text: str, width: int | None) -> list[str]:
    """Return a text's lines, those wider than the room broken between words, and a word only where it is wider than the room itself."""
    whole = text.split("\n")
    if width is None:
        return whole
    lines = []
    for each in whole:
        held = ""
        for position, word in enumerate(each.split(" ")):
            longer = f"{held} {word}" if position else word
            if len(longer) > width and held.strip():
                lines.append(held)
                longer = word
            while len(longer) > width:
                lines.append(longer[:width])
                longer = longer[width:]
            held = longer
        lines.append(held)
    return lines


def laid_out(cells: Sequence[Sequence[str]], widths: Sequence[int], sides: Sequence[str]) -> list[str]:
    """Return the lines of one row, its cells beside each other."""
    across = zip_longest(*cells, fillvalue="")
    return [
        GAP.join(text.rjust(room) if side == "right" else text.ljust(room) for text, room, side in zip(line, widths, sides, strict=True))
        for line in across
    ]


def to_markdown(table: Table) -> str:
    """Return the table as Markdown."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---" if table.side(position) == "left" else "---:" for position in range(len(table.columns))]
    grid = [line(table.columns), line(rule), *(line(row) for row in table.rows)] if table.columns else []
    blocks = [f"### {table.title}" if table.title else "", "  \n".join(table.above), "\n".join(grid), "  \n".join(table.below)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return CSV with LF line ends, numbers at full precision, and texts that no spreadsheet runs."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return stream.getvalue()


def csv_cell(cell: Any) -> str:
    """Return one cell: an empty one for what cannot be computed."""
    if cell is None:
        return ""
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return repr(int(cell) if float(cell).is_integer() and abs(cell) < 2**53 else float(cell))
    text = str(cell)
    return "'" + text if text.startswith(FORMULA_STARTS) else text
