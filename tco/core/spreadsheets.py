"""CSV files as spreadsheets write them: delimiter, header, empty rows and columns, and faults.

`read_csv` of `tco.core.files` asks here only where a header does not fit as it stands.
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
HEADER_LINES = 20  # rows of a file among which its header is looked for
COMMA_NUMBER = re.compile(r"[-+$€£¥ ]*\d[\d. '\u00a0\u202f]*,\d+\s*%?")
THOUSANDS = re.compile(r"[-+$ ]*[1-9]\d{0,2}"), re.compile(r"\d{3}(\.\d+)?")
NumberedRow = tuple[int, list[str]]


class TableStart(NamedTuple):
    """Where the header of a table stands, and how its cells are parted."""

    delimiter: str
    line: int  # of the file, from 1
    names: list[str]  # normalised names of its columns


def other_format(table_text: str) -> str:
    """Return the format of a text that is no CSV, such as JSON; empty where it may be CSV."""
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
    # a line of a file ends with a line feed; texts may hold other marks, such as U+2028
    reader = csv.reader(StringIO(table_text), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: broken CSV ({error})") from None


def is_left_out(cells: Sequence[str]) -> bool:
    """Say whether a row holds nothing, or a comment."""
    return not any(map(str.strip, cells)) or cells[0].startswith("#")


def _column_name(cell: str) -> str:
    return re.sub(r"[\s-]+", "_", cell.strip().lower())


def _table_start(path: Path, table_text: str, columns: Sequence[str]) -> TableStart | None:
    """Return the row that holds most of the needed columns, however its cells are parted."""
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
    # the first of those that hold as many
    return max(
        starts,
        key=lambda start: (len(set(start.names) & set(columns)), len(start.names) > 1),
        default=None,
    )


def recognised_rows(path: Path, table_text: str, columns: Sequence[str]) -> Iterator[NumberedRow]:
    """Yield header and rows of a table whose header does not fit as it stands.

    Names of columns are in lower case, words joined by `_`. Comments, lines above the header, empty
    rows and empty columns are left out.

    Args:
        path: File, for errors.
        table_text: Its content.
        columns: Columns that the file must have.

    Raises:
        DataError: The text is no table, a column with content has no name, or a number has a
            decimal comma.

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
    named_places = _named_columns(path, start, table_rows)
    yield start.line, [start.names[index] for index in named_places]
    for line, cells in table_rows:
        if start.delimiter != ",":
            _refuse_commas(f"{path}:{line}", start, cells)
        yield (
            line,
            [
                *(cells[index] for index in named_places if index < len(cells)),
                *cells[len(start.names) :],
            ],
        )


def _named_columns(path: Path, start: TableStart, table_rows: Sequence[NumberedRow]) -> list[int]:
    """Return the places of the columns that have a name; others must be empty."""
    named_places = [index for index, column_name in enumerate(start.names) if column_name]
    for line, cells in table_rows:
        for index, cell in enumerate(cells[: len(start.names)]):
            if cell.strip() and not start.names[index]:
                raise DataError(
                    f"{path}:{line}: {cell!r} stands in column {index + 1}, which has no name in "
                    f"line {start.line}; name the column, or empty it"
                )
    return named_places


def _refuse_commas(where: str, start: TableStart, cells: Sequence[str]) -> None:
    for column_name, cell in zip(start.names, cells, strict=False):
        if COMMA_NUMBER.fullmatch(cell.strip()):
            raise DataError(
                f"{where}: {column_name} is {cell!r}, in a file parted by "
                f"{DELIMITERS[start.delimiter]}: "
                "a comma may be a decimal mark or part thousands; write decimals with a point, and "
                "thousands without a mark"
            )


def header_fault(header: Sequence[str], columns: Sequence[str], optional: Collection[str]) -> str:
    """Return the fault of a header with the nearest column; empty where it fits."""
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
    """Return the fault of the number of a row's cells, and a cell that a comma may part."""
    first, rest = THOUSANDS
    parted = next(
        (
            f"; quote the number {left},{right}, or write it without the comma"
            for left, right in pairwise(cells)
            if len(cells) > len(header) and first.fullmatch(left) and rest.fullmatch(right)
        ),
        "",
    )
    return f"{len(cells)} cells, expected {len(header)} ({', '.join(header)}){parted}"
