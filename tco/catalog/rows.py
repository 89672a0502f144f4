"""Rows of the catalogue: a value with its unit, range, date, kind and source, as CSV and TOML files
hold them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any, NamedTuple

from tco.core.errors import DataError, located, nearest, unknown
from tco.core.files import data_directory, read_csv
from tco.core.own_values import own_input, untold_errors
from tco.core.provenance import DIRECTNESS, GUESSED, KINDS, Input, bounded, period
from tco.core.types import JsonObject
from tco.core.units import (
    cell_quantity,
    convert,
    currency_hint,
    number_mark_hint,
    read_number,
)

COLUMNS = ("value", "unit", "low", "high", "as_of", "kind", "source", "note")
# columns a file may leave out: what a row does not say, its source says
OPTIONAL = (
    "directness",
    "solved_from",
    "evidence_of",
)
ALTERNATIVE = "alternative"  # in the column `use`: shown beside the chosen row, never used


class Attribute(NamedTuple):
    """Attribute of a catalogue entry: unit, bounds, distribution and date dependence.

    The entry is a part, a site or another document. The unit is that of the formulas.
    """

    group: str
    name: str
    unit: str
    minimum: float
    maximum: float
    belief: str  # the distribution that a low and a high stand for
    dated: bool
    description: str
    also: str  # other words people have for it


@cache
def input_attributes() -> dict[tuple[str, str], Attribute]:
    """Return every attribute of `data/attributes.csv` by (group, name).

    Returns:
        Attributes, with the floor and the ceiling as bounds where the file states them, else the
        minimum and the maximum.

    """
    columns = (
        "group",
        "attribute",
        "unit",
        "minimum",
        "maximum",
        "floor",
        "ceiling",
        "belief",
        "dated",
        "description",
        "also",
    )
    attribute_table = {}
    for _, row in read_csv(data_directory() / "attributes.csv", columns):
        key = (row["group"], row["attribute"])
        # physics binds closer than what can be written
        ends = (
            float(row["floor"] or row["minimum"]),
            float(row["ceiling"] or row["maximum"]),
        )
        attribute_table[key] = Attribute(
            *key,
            row["unit"],
            *ends,
            row["belief"],
            row["dated"] == "yes",
            row["description"],
            row["also"],
        )
    return attribute_table


def attribute(group: str, name: str, where: str) -> Attribute:
    """Return an attribute of a group of inputs.

    Args:
        group: Group of the attribute, the first word of an input path.
        name: Name of the attribute, the last word of an input path.
        where: Place of the name, which opens the message of an error.

    Raises:
        DataError: The group has no such attribute; the message says the nearest name.

    """
    matched_attribute = input_attributes().get((group, name))
    if matched_attribute is None:
        raise unknown(
            f"attribute of {group}", name, [n for g, n in input_attributes() if g == group], where
        )
    return matched_attribute


class CatalogueRow(NamedTuple):
    """One row as written, with where it stands."""

    cells: JsonObject
    where: str
    overlay: bool

    @property
    def as_of(self) -> str:
        """The date the value holds for, as written."""
        return str(self.cells.get("as_of", ""))

    @property
    def begins(self) -> date:
        """The first day the value holds; one without a date holds from the beginning."""
        return period(self.as_of, self.where).first if self.as_of else date.min


def parse_finite_number(text: Any, name: str, where: str) -> float:
    """Return a cell as a finite number.

    Args:
        text: Cell: a number, or a number as text.
        name: Name of the column, for the message of an error.
        where: Place of the cell, which opens the message of an error.

    Raises:
        DataError: The cell is no number, or not finite.

    """
    if isinstance(text, bool) or not isinstance(text, (int, float, str)):
        raise DataError(f"{where}: {name} is {text!r}, expected a number")
    try:
        value = read_number(text) if isinstance(text, str) else float(text)
    except (ValueError, OverflowError):
        raise DataError(f"{where}: {name} is {text!r}, expected a number") from None
    if not math.isfinite(value):
        raise DataError(f"{where}: {name} is {text!r}, expected a finite number")
    return value


def to_input(row: CatalogueRow, path: str, expected_attribute: Attribute) -> Input:
    """Return a row as an input in the unit of its attribute.

    Args:
        row: Row of the catalogue.
        path: Path of the input.
        expected_attribute: Attribute with the unit and the bounds.

    Raises:
        DataError: The value or source is missing, a cell is malformed, the unit does not convert,
            the value or its range is out of bounds or out of order, or a guess has no range.

    """
    cells, row_path = row.cells, f"{row.where}: {path}"
    written, *ends = (_quantity(row, column, row_path) for column in ("value", "low", "high"))
    if written is None:
        raise DataError(f"{row_path}: the value is missing; a missing value is never taken as zero")
    kind, source = str(cells.get("kind", "")), str(cells.get("source", ""))
    if kind not in KINDS:
        raise DataError(
            f"{row_path}: kind {kind!r} is not one of {', '.join(KINDS)}{nearest(kind, KINDS)}"
        )
    if not source:
        raise DataError(f"{row_path}: the source is missing")
    with located(row_path):
        amount = convert(*written, expected_attribute.unit)
        low, high = (
            None if end is None else convert(*end, expected_attribute.unit) for end in ends
        )
    if row.as_of:
        period(row.as_of, f"{row_path}: as_of")
    if kind in GUESSED and None in (low, high):
        raise DataError(f"{row_path}: an {kind} value needs low and high")
    usage = cells.get("use") or ""
    if usage not in ("", ALTERNATIVE):
        raise DataError(f"{row_path}: use {usage!r}, expected {ALTERNATIVE!r} or nothing")
    note = str(cells.get("note", ""))
    row_input = Input(
        path,
        amount,
        expected_attribute.unit,
        low,
        high,
        row.as_of,
        kind,
        source,
        note,
        written,
        row.where,
        row.overlay,
        _own_directness(row, kind, note, path),
        solved_from=str(cells.get("solved_from") or ""),
        evidence_of=_evidence_date(row, path),
    )
    return bounded(row_input, expected_attribute.minimum, expected_attribute.maximum)


def _quantity(row: CatalogueRow, column: str, row_path: str) -> tuple[float, str] | None:
    """Return number and unit of a cell: a number, or what a spreadsheet shows, such as '$31,000'.

    An empty cell is None.
    """
    cell, row_unit = row.cells.get(column, ""), str(row.cells.get("unit", ""))
    if cell in ("", None):
        return None
    try:
        return parse_finite_number(cell, column, row.where), row_unit
    except DataError as error:
        text = str(cell)
        quantity = cell_quantity(text) if isinstance(cell, str) else None
        if quantity is None or not math.isfinite(quantity[0]):
            hint = number_mark_hint(text) or currency_hint(text)
            raise DataError(f"{error}{hint}") from None
    number, cell_unit = quantity
    if not cell_unit or row_unit == cell_unit:
        return number, row_unit
    with located(f"{row_path}: {column}"):
        return convert(number, cell_unit, row_unit or cell_unit), row_unit or cell_unit


def read_row(row: CatalogueRow, path: str) -> Input:
    """Return a row as the input of a path, in the unit of the attribute that the path names.

    Args:
        row: Row of the catalogue.
        path: Path of the input; its first word is the group, its last the attribute.

    Raises:
        DataError: The group has no such attribute, or the row is wrong as in `to_input`.

    """
    group, name = path.partition(".")[0], path.rpartition(".")[2]
    return to_input(row, path, attribute(group, name, row.where))


def _evidence_date(row: CatalogueRow, path: str) -> str:
    text = str(row.cells.get("evidence_of") or "")
    if not text:
        return ""
    evidence = period(text, f"{row.where}: {path}: evidence_of")
    if row.as_of and evidence.first > period(row.as_of, f"{row.where}: {path}: as_of").last:
        raise DataError(
            f"{row.where}: {path}: evidence_of {text} is later than as_of {row.as_of}, "
            "expected the date of older evidence; leave it out where the row is as old as its "
            "evidence"
        )
    return text


def _own_directness(row: CatalogueRow, kind: str, note: str, path: str) -> str:
    """Return the directness of `row`, checked against `kind` and `note`.

    The result is empty where the row leaves the directness to its source. An unknown or
    contradictory directness raises `DataError`.
    """
    stated_directness = str(row.cells.get("directness") or "")
    if stated_directness and stated_directness not in DIRECTNESS:
        raise DataError(
            f"{row.where}: {path}: directness {stated_directness!r} is not one of "
            f"{', '.join(DIRECTNESS)}{nearest(stated_directness, DIRECTNESS)}"
        )
    if stated_directness in ("first-hand", "quoted") and (
        kind in GUESSED or "recalled" in note.lower()
    ):
        raise DataError(
            f"{row.where}: {path}: directness {stated_directness!r}, but its "
            f"{'kind is ' + kind if kind in GUESSED else 'note says recalled'}"
        )
    return stated_directness or (
        "estimate" if kind in GUESSED else "recalled" if "recalled" in note.lower() else ""
    )


def live(rows: Sequence[CatalogueRow], dated: bool, path: str) -> list[CatalogueRow]:
    """Return the rows that are not alternatives.

    Args:
        rows: Rows of an input, at least one.
        dated: Whether the value of the attribute depends on the date.
        path: Path of the input, for the message of an error.

    Raises:
        DataError: All rows are alternatives, two rows have the same date, or an attribute that does
            not depend on the date has two rows.

    """
    live_rows = [row for row in rows if row.cells.get("use", "") != ALTERNATIVE]
    if not live_rows:
        raise DataError(f"{rows[0].where}: {path}: every row is an alternative, one must be chosen")
    if len(live_rows) > 1 and (not dated or len({row.as_of for row in live_rows}) < len(live_rows)):
        rows_by_place: dict[str, CatalogueRow] = {}
        row = next(
            row
            for row in live_rows
            if rows_by_place.setdefault(row.as_of if dated else "", row) is not row
        )
        day = f", both of {row.as_of}" if dated and row.as_of else ""
        also = f"(also {rows_by_place[row.as_of if dated else ''].where}){day}"
        raise DataError(
            f"{row.where}: {path} is given twice {also}; mark one {ALTERNATIVE!r} or date "
            f"both{' apart' if day else ''}"
        )
    return live_rows


def at_date(rows: list[CatalogueRow], when: str) -> CatalogueRow:
    """Return the row of a dated series that holds at `when` (a year, quarter, month or day): the
    latest that begins by its last day.

    A date before the whole series gets its first row; the caller shows the row's own date.
    """
    if len(rows) == 1:
        return rows[0]
    ordered = sorted(rows, key=lambda row: (row.begins, row.as_of))
    limit = period(when).last
    before = [row for row in ordered if row.begins <= limit]
    return before[-1] if before else ordered[0]


def usual_value(
    shipped: Mapping[tuple[str, str], Sequence[CatalogueRow]], target_attribute: Attribute
) -> float | None:
    """Return the middle of the shipped values of an attribute, if there are any."""
    values = sorted(
        to_input(candidate_row, target_attribute.name, target_attribute).value
        for (_, name), rows in shipped.items()
        if name == target_attribute.name
        for candidate_row in rows
    )
    return values[len(values) // 2] if values else None


def row_in_place(
    row: CatalogueRow,
    path: str,
    target_attribute: Attribute,
    like: Sequence[CatalogueRow],
    usual: Callable[[], float | None],
) -> CatalogueRow:
    """Return `row` with placeholder values in place of a person's own.

    `like` holds the shipped rows of the path. Without shipped rows, `usual` gives the reference
    value.

    An unreadable row raises `DataError` with its place alone, because the cause may reveal its
    value.
    """
    with untold_errors(f"{row.where}: {path}: cannot be read"):
        row_input = to_input(row, path, target_attribute)

    def usual_in_place() -> float | None:
        return to_input(like[-1], path, target_attribute).value if like else usual()

    after = own_input(row_input, usual_in_place, target_attribute.minimum, target_attribute.maximum)
    unit = after.shown[1] if after.shown else target_attribute.unit
    ends = {
        name: "" if end is None else repr(convert(end, target_attribute.unit, unit))
        for name, end in (("value", after.value), ("low", after.low), ("high", after.high))
    }
    return row._replace(cells=row.cells | ends | {"note": after.note})
