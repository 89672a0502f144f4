"""Tables: one neutral form, as Markdown, or as CSV with raw numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tco.catalog.labels import PLAIN_NUMBERS
from tco.core.provenance import SOURCED, is_date, month_text
from tco.core.streams import printable_line

# what a `~` before a number says
ESTIMATE_NOTE = "~ based on an estimate or an assumption."
# units of which numbers are large -> what stands after a prefix
SCALED_UNITS = {"byte": "B", "byte/s": "B/s", "FLOP/s": "FLOP/s"}
UNIT_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6))
FORMULA_STARTS = ("=", "+", "-", "@")  # a spreadsheet would run a text that begins like this


NARROW_SCREEN = 80  # characters of a line of what is read first, in a pipe too
PICK, TIE = "pick", "tie"  # emphasis of a cell


class Table(NamedTuple):
    """Rows of ready texts under a title, with lines above and below."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    above: Sequence[str] = ()
    below: Sequence[str] = ()
    # a letter for each column, l or r; columns beyond the letters are numbers, aligned to the right
    align: str = "l"
    width: int | None = None  # to which it is folded in a pipe, too; None leaves lines unbroken
    # cells that a terminal shows in colour, by row and column: PICK or TIE
    emphasis: Mapping[tuple[int, int], str] = {}

    def side(self, column: int) -> str:
        """Return the side a column is aligned to."""
        return "left" if self.align[column : column + 1] == "l" else "right"


def is_heading(table_row: Sequence[str]) -> bool:
    """Say whether a row is a heading: it has a name and nothing else.

    A heading may be wider than its column.
    """
    return len(table_row) > 1 and bool(table_row[0]) and not any(table_row[1:])


def starred_emphasis(table_rows: Sequence[Sequence[str]]) -> dict[tuple[int, int], str]:
    """Return the emphasis of cells that a star marks; several of a row are a tie."""
    stars = [
        [column for column, cell in enumerate(table_row) if cell.startswith("*")]
        for table_row in table_rows
    ]
    return {
        (row_index, column): TIE if len(columns) > 1 else PICK
        for row_index, columns in enumerate(stars)
        for column in columns
    }


def significant(value: Any, digits: int = 4) -> str:
    """Return a number as text with significant digits and thousands separators.

    Args:
        value: The number; None for an empty text.
        digits: Significant digits to keep.

    Returns:
        The text; a dash for inf and nan, powers of ten below 1e-4 and from 1e15.

    """
    if value is None:
        return ""
    number = float(value)
    if not math.isfinite(number):
        return "-"
    if number == 0:
        return "0"
    rounded = float(f"{number:.{digits - 1}e}")
    if abs(rounded) >= 1e15 or abs(rounded) < 1e-4:
        mantissa, exponent = f"{rounded:.{digits - 1}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    if abs(rounded) >= 1000:
        return f"{rounded:,.6f}".rstrip("0").rstrip(".")
    return f"{rounded:.12f}".rstrip("0").rstrip(".")


def fixed_digits(value: float | None, digits: int = 3) -> str:
    """Return a number with just so many significant digits, zeros at its end among them.

    Args:
        value: The number; None for an empty text.
        digits: Significant digits to print.

    """
    text = significant(value, digits)
    if value is None or "e" in text or text in ("0", "-"):
        return text
    rounded = float(text.replace(",", ""))
    return f"{rounded:,.{max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)}f}"


def input_text(path: str, input_value: float | None, digits: int = 6) -> str:
    """Return the value of an input as text: a date as its month, else a number.

    Args:
        path: Path of the input, or its attribute alone.
        input_value: The value; None for an empty text.
        digits: Significant digits of a number.

    """
    if input_value is not None and is_date(path):
        return month_text(input_value)
    return significant(input_value, digits)


def input_unit(path: str, unit: str) -> str:
    """Return the unit that tables show for an input; a date, a share and a count have none."""
    return "" if is_date(path) or unit in PLAIN_NUMBERS else unit


def scaled_unit(unit: str, largest: float) -> tuple[str, float]:
    """Return the unit in which a large number is read most easily, and its size.

    Args:
        unit: Unit of the number.
        largest: The number, or the largest of several.

    Returns:
        Such as `("GB/s", 1e9)` for 2e10 byte/s; the unit itself and 1 for others.

    """
    scaled_name = SCALED_UNITS.get(unit)
    for prefix, size in UNIT_PREFIXES if scaled_name else ():
        if abs(largest) >= size:
            return f"{prefix}{scaled_name}", size
    return unit, 1.0


def weak(kind: str | None) -> str:
    """Return the mark of a number that rests on an estimate or an assumption."""
    return "" if kind is None or kind in SOURCED else "~"


def sentence(text: str) -> str:
    """Return words as a sentence begins: with a capital letter."""
    return text[0].upper() + text[1:]


def headed(label: str, unit: str) -> str:
    """Return a label with the unit of what stands under it; a ratio, x, needs none."""
    if "million" in label:
        unit = unit.removesuffix("/Mtoken")
    return f"{label}, {unit}" if unit and unit != "x" else label


def _unmarked(text: str) -> str:
    return printable_line(text).replace("<", "&lt;").replace("](", "]\\(")


def to_markdown(table: Table) -> str:
    """Return the table as Markdown.

    Args:
        table: Title, lines above, columns with rows, and lines below.

    """

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(_unmarked(cell).replace("|", "\\|") for cell in cells) + " |"

    rule = [
        "---" if table.side(position) == "left" else "---:"
        for position in range(len(table.columns))
    ]
    grid = (
        [line(table.columns), line(rule), *(line(table_row) for table_row in table.rows)]
        if table.columns
        else []
    )
    above, below = (
        "  \n".join(_unmarked(line) for line in lines) for lines in (table.above, table.below)
    )
    blocks = [f"### {_unmarked(table.title)}" if table.title else "", above, "\n".join(grid), below]
    return "\n\n".join(block for block in blocks if block) + "\n"


def to_csv(header: Sequence[str], csv_rows: Sequence[Sequence[Any]]) -> str:
    """Return CSV with LF line ends and numbers at full precision.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.

    Args:
        header: Names of the columns.
        csv_rows: Cells by row; None, inf and nan become empty cells.

    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(cell) for cell in csv_row] for csv_row in csv_rows)
    return stream.getvalue()


def csv_cell(cell: Any) -> str:
    """Return one cell: an empty one for what cannot be computed."""
    if cell is None:
        return ""
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        if not math.isfinite(cell):
            return ""
        return repr(int(cell) if float(cell).is_integer() and abs(cell) < 2**53 else float(cell))
    cell_text = printable_line(str(cell))
    return "'" + cell_text if cell_text.lstrip().startswith(FORMULA_STARTS) else cell_text
