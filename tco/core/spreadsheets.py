"""CSV files as spreadsheets write them: delimiter, header, empty rows and columns, and faults.

`read_csv` of `tco.core.files` uses this module where a header does not have the expected columns.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from io import StringIO
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from tco.core.errors import DataError, nearest

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
HEADER_LINES = 20  # first rows of a file that may be its header
# Cell with a number and its currency or its unit.
NUMBER_CELL = re.compile(
    r"(?P<before>[-+$€£¥ ]*)(?P<number>\d[\d.,]*(?:[ '\u2019\u00a0\u202f]\d[\d.,]*)*)"
    r"(?P<after>\s*(?:[%$€£¥]|[A-Za-z][\w$/.]*)?)"
)
GROUP_BLANKS = re.compile(r"[ '\u2019\u00a0\u202f]")  # separators of thousands
# Numbers whose marks have only one meaning: "0,5", "3,25", "1.000,5" or "1.000.000".
MARKED = r"0{0}\d+|\d+{0}(?:\d{{1,2}}|\d{{4,}})|\d{{4,}}{0}\d+|\d{{1,3}}(?:{1}\d{{3}})+{0}\d+"
CLEAR_MARKS = {
    ",": re.compile(MARKED.format(",", r"\.") + r"|\d{1,3}(?:\.\d{3}){2,}"),
    ".": re.compile(MARKED.format(r"\.", ",") + r"|\d{1,3}(?:,\d{3}){2,}"),
}
UNCLEAR_MARK = re.compile(r"([1-9]\d{0,2})([.,])(\d{3})")  # 31.000 is 31, or 31 thousand
THOUSANDS = re.compile(r"[-+$ ]*[1-9]\d{0,2}"), re.compile(r"\d{3}(\.\d+)?")
NumberedRow = tuple[int, list[str]]


class TableStart(NamedTuple):
    """Header of a table and the delimiter of its cells."""

    delimiter: str
    line: int  # line of the header in the file, from 1
    names: list[str]  # normalised names of the columns


def other_format(table_text: str) -> str:
    """Return the format of a text that is not CSV, such as JSON; empty where it may be CSV."""
    start = table_text.lstrip()[:200]
    if start.startswith(("{", "[")):
        return "JSON"
    if start.startswith("PK\x03\x04"):
        return "a workbook, of which a sheet is saved as 'CSV UTF-8'"
    if start.startswith("<"):
        return "HTML or XML"
    return ""


def numbered_rows(path: Path, table_text: str, delimiter: str = ",") -> Iterator[NumberedRow]:
    """Yield line number and cells of each row of a CSV text; broken CSV raises `DataError`."""
    # Only a line feed ends a line, while a cell may contain other line separators, such as U+2028.
    reader = csv.reader(StringIO(table_text), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: broken CSV ({error})") from None


def is_left_out(cells: Sequence[str]) -> bool:
    """Return whether a row is empty or a comment."""
    return not cells or cells[0].startswith("#") or not any(map(str.strip, cells))


def _column_name(cell: str) -> str:
    return re.sub(r"[\s-]+", "_", cell.strip().lower())


def _table_start(path: Path, table_text: str, columns: Sequence[str]) -> TableStart | None:
    """Return the row with most of the needed columns, for any delimiter."""
    starts = []
    for delimiter in DELIMITERS:
        try:
            leading_rows = list(islice(numbered_rows(path, table_text, delimiter), HEADER_LINES))
        except DataError:
            continue
        starts += [
            TableStart(delimiter, line, [_column_name(cell) for cell in cells])
            for line, cells in leading_rows
            if not is_left_out(cells)
        ]
    # `max` returns the first of several equal rows.
    return max(
        starts,
        key=lambda start: (len(set(start.names) & set(columns)), len(start.names) > 1),
        default=None,
    )


def recognised_rows(path: Path, table_text: str, columns: Sequence[str]) -> Iterator[NumberedRow]:
    """Yield header and rows of a table whose header does not have the expected columns.

    Names of columns are in lower case, words joined by `_`. Comments, lines above the header, empty
    rows and empty columns are left out.

    Args:
        path: Path of the file, for errors.
        table_text: Content of the file.
        columns: Columns that the file must have.

    Raises:
        DataError: The text is not a table, a column with content has no name, or a number has two
            possible meanings.

    """
    if format_name := other_format(table_text):
        raise DataError(
            f"{path}: is {format_name}, expected CSV with the columns {', '.join(columns)}"
        )
    start = _table_start(path, table_text, columns)
    if start is None:
        raise DataError(f"{path}: is empty, expected the columns {', '.join(columns)}")
    table_rows = [
        (line, cells)
        for line, cells in numbered_rows(path, table_text, start.delimiter)
        if line > start.line and not is_left_out(cells)
    ]
    if start.delimiter != ",":
        table_rows = _plain_numbers(path, start, table_rows)
    named_places = _named_columns(path, start, table_rows)
    yield start.line, [start.names[index] for index in named_places]
    for line, cells in table_rows:
        yield (
            line,
            [
                *(cells[index] for index in named_places if index < len(cells)),
                *cells[len(start.names) :],
            ],
        )


def _named_columns(path: Path, start: TableStart, table_rows: Sequence[NumberedRow]) -> list[int]:
    """Return the indices of the columns with a name, and refuse content in other columns."""
    named_places = [index for index, column_name in enumerate(start.names) if column_name]
    for line, cells in table_rows:
        for index, cell in enumerate(cells[: len(start.names)]):
            if cell.strip() and not start.names[index]:
                raise DataError(
                    f"{path}:{line}: {cell!r} stands in column {index + 1}, which has no name in "
                    f"line {start.line}; name the column, or empty it"
                )
    return named_places


def _plain_numbers(
    path: Path, start: TableStart, table_rows: Sequence[NumberedRow]
) -> list[NumberedRow]:
    """Return rows whose numbers have decimal points, by the decimal mark of the table.

    Raises:
        DataError: The table has both decimal marks, or no number shows the meaning of a mark.

    """
    number_columns = _number_columns(start, table_rows)
    decimal_mark = _decimal_mark(path, start, table_rows, number_columns)
    plain_rows = []
    for line, cells in table_rows:
        plain_cells = list(cells)
        for index in number_columns:
            cell = cells[index] if index < len(cells) else ""
            if not decimal_mark:
                _refuse_unclear_mark(f"{path}:{line}: {start.names[index]}", start, cell)
            elif decimal_mark == "," and cell:
                plain_cells[index] = _with_point(cell)
        plain_rows.append((line, plain_cells))
    return plain_rows


def _number_columns(start: TableStart, table_rows: Sequence[NumberedRow]) -> list[int]:
    """Return the indices of the columns whose cells are numbers or empty."""
    texts = {
        index
        for _, cells in table_rows
        for index, cell in enumerate(cells)
        if cell.strip() and not NUMBER_CELL.fullmatch(cell.strip())
    }
    return [index for index in range(len(start.names)) if index not in texts]


def _decimal_mark(
    path: Path,
    start: TableStart,
    table_rows: Sequence[NumberedRow],
    number_columns: Sequence[int],
) -> str:
    """Return the decimal mark of a table; empty where no number shows it."""
    clear_cells: dict[str, str] = {}  # description of the first cell with each decimal mark
    for line, cells in table_rows:
        for index in number_columns:
            digits = _digits_and_marks(cells[index]) if index < len(cells) else ""
            for mark, clear_number in CLEAR_MARKS.items():
                if clear_number.fullmatch(digits):
                    located_cell = f"{path}:{line}: {start.names[index]} is {cells[index]!r}"
                    clear_cells.setdefault(mark, located_cell)
    if len(clear_cells) > 1:
        raise DataError(
            f"{clear_cells[',']} with a decimal comma, {clear_cells['.']} with a decimal point; "
            "write all decimals with a point, and thousands without a mark"
        )
    return next(iter(clear_cells), "")


def _digits_and_marks(cell: str) -> str:
    match = NUMBER_CELL.fullmatch(cell.strip())
    return GROUP_BLANKS.sub("", match["number"]) if match else ""


def _with_point(cell: str) -> str:
    """Return a cell with a decimal point instead of a decimal comma or points between thousands."""
    match, digits = NUMBER_CELL.fullmatch(cell.strip()), _digits_and_marks(cell)
    if not match or not (CLEAR_MARKS[","].fullmatch(digits) or UNCLEAR_MARK.fullmatch(digits)):
        return cell
    number = digits.replace(".", "").replace(",", ".")
    return f"{match['before']}{number}{match['after']}"


def _refuse_unclear_mark(where: str, start: TableStart, cell: str) -> None:
    """Refuse a number whose only mark may be a decimal mark or separate thousands."""
    match = UNCLEAR_MARK.fullmatch(_digits_and_marks(cell))
    # Programs separate cells by semicolons where the decimal mark is a comma.
    if match is None or (match[2] == "." and start.delimiter != ";"):
        return
    mark = "comma" if match[2] == "," else "point"
    raise DataError(
        f"{where} is {cell!r}, in a file parted by {DELIMITERS[start.delimiter]}: its {mark} may "
        f"be a decimal mark or part thousands, and no other number of the file tells; write "
        f"{match[1]}{match[3]}, or {match[1]}.{match[3]}0"
    )


def header_fault(header: Sequence[str], columns: Sequence[str], optional: Collection[str]) -> str:
    """Return the fault of a header with the nearest column; empty without a fault."""
    missing = [column_name for column_name in columns if column_name not in header]
    surplus = [
        column_name
        for column_name in header
        if column_name not in columns and column_name not in optional
    ]
    if missing:
        hints = (nearest(surplus_name, missing) for surplus_name in surplus)
        meant = next(
            (
                f", and has {surplus_name!r}{hint}"
                for surplus_name, hint in zip(surplus, hints, strict=True)
                if hint
            ),
            "",
        )
        return f"lacks column {missing[0]!r}{meant}"
    if surplus:
        return f"has the unexpected column {surplus[0]!r}{nearest(surplus[0], optional)}"
    return "repeats a column" if len(set(header)) != len(header) else ""


def width_fault(cells: Sequence[str], header: Sequence[str]) -> str:
    """Return the fault of a wrong number of cells, with a number that a comma may have split."""
    first, rest = THOUSANDS
    split_hint = next(
        (
            f"; quote the number {left},{right}, or write it without the comma"
            for left, right in pairwise(cells)
            if len(cells) > len(header) and first.fullmatch(left) and rest.fullmatch(right)
        ),
        "",
    )
    return f"{len(cells)} cells, expected {len(header)} ({', '.join(header)}){split_hint}"
