"""Rows of the catalogue: a value with unit, range, date, kind and source, in CSV and TOML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any, NamedTuple

from tco.core.errors import DataError, located, nearest, unknown
from tco.core.files import data_directory, read_csv
from tco.core.own_values import own_input, untold_errors
from tco.core.provenance import DIRECTNESS, GUESSED, KINDS, Input, check_bounds, period
from tco.core.types import JsonObject
from tco.core.units import (
    cell_quantity,
    convert,
    currency_hint,
    number_mark_hint,
    read_number,
)

COLUMNS = ("value", "unit", "low", "high", "as_of", "kind", "source", "note")
OPTIONAL = ("directness", "solved_from", "evidence_of")  # columns that a file may leave out
ALTERNATIVE = "alternative"  # in column `use`: a row that is shown beside the chosen row


class Attribute(NamedTuple):
    """Attribute of a part, a site or another document."""

    group: str
    name: str
    unit: str  # unit that formulas take
    minimum: float
    maximum: float
    belief: str  # distribution whose P5 and P95 are low and high
    dated: bool  # whether the value depends on the date
    description: str
    also: str  # other words for the attribute


@cache
def input_attributes() -> dict[tuple[str, str], Attribute]:
    """Return every attribute of `data/attributes.csv` by (group, name).

    Returns:
        Attributes. Their bounds are the physical floor and ceiling where the file states them,
        otherwise the minimum and maximum.

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
    for _, attribute_row in read_csv(data_directory() / "attributes.csv", columns):
        attribute_key = (attribute_row["group"], attribute_row["attribute"])
        attribute_table[attribute_key] = Attribute(
            group=attribute_row["group"],
            name=attribute_row["attribute"],
            unit=attribute_row["unit"],
            minimum=float(attribute_row["floor"] or attribute_row["minimum"]),
            maximum=float(attribute_row["ceiling"] or attribute_row["maximum"]),
            belief=attribute_row["belief"],
            dated=attribute_row["dated"] == "yes",
            description=attribute_row["description"],
            also=attribute_row["also"],
        )
    return attribute_table


def split_path(path: str) -> tuple[str, str, str]:
    """Return group, owner and attribute of an input path.

    Args:
        path: Path such as `parts.h100.price`; the owner of `site.pue` is empty.

    """
    group, _, rest = path.partition(".")
    owner, _, attribute_name = rest.rpartition(".")
    return group, owner, attribute_name


def attribute_of_path(path: str) -> Attribute | None:
    """Return the attribute of an input path; None for a derived input, which has no attribute.

    Args:
        path: Path of the input.

    """
    group, _, attribute_name = split_path(path)
    return input_attributes().get((group, attribute_name))


def attribute(group: str, attribute_name: str, where: str) -> Attribute:
    """Return an attribute of a group of inputs.

    Args:
        group: Group of the attribute, the first word of an input path.
        attribute_name: Name of the attribute, the last word of an input path.
        where: Place of the name, with which the message of an error begins.

    Raises:
        DataError: The group does not have the attribute; the message states the nearest name.

    """
    matched_attribute = input_attributes().get((group, attribute_name))
    if matched_attribute is None:
        raise unknown(
            f"attribute of {group}",
            attribute_name,
            [name for known_group, name in input_attributes() if known_group == group],
            where,
        )
    return matched_attribute


class CatalogueRow(NamedTuple):
    """Row of the catalogue as written."""

    cells: JsonObject  # by column
    where: str  # place: file:line or file:key
    overlay: bool  # whether the row is the user's own

    @property
    def as_of(self) -> str:
        """Date from which the value holds, as written; may be empty."""
        return str(self.cells.get("as_of", ""))

    @property
    def begins(self) -> date:
        """First day on which the value holds; the earliest possible day without a date."""
        return period(self.as_of, self.where).first if self.as_of else date.min


def parse_finite_number(raw_cell: Any, column_name: str, where: str) -> float:
    """Return a cell as a finite number.

    Args:
        raw_cell: Cell: a number, or a number as text.
        column_name: Name of the column, for the message of an error.
        where: Place of the cell, with which the message of an error begins.

    Raises:
        DataError: The cell is not a finite number.

    """
    if isinstance(raw_cell, bool) or not isinstance(raw_cell, (int, float, str)):
        raise DataError(f"{where}: {column_name} is {raw_cell!r}, expected a number")
    try:
        cell_number = read_number(raw_cell) if isinstance(raw_cell, str) else float(raw_cell)
    except (ValueError, OverflowError):
        raise DataError(f"{where}: {column_name} is {raw_cell!r}, expected a number") from None
    if not math.isfinite(cell_number):
        raise DataError(f"{where}: {column_name} is {raw_cell!r}, expected a finite number")
    return cell_number


def to_input(catalogue_row: CatalogueRow, path: str, expected_attribute: Attribute) -> Input:
    """Return a row as an input in the unit of its attribute.

    Args:
        catalogue_row: Row of the catalogue.
        path: Path of the input.
        expected_attribute: Attribute with the unit and the bounds.

    Raises:
        DataError: The value or source is missing, a cell is malformed, the unit does not convert,
            the value or its range is out of bounds or out of order, or a guess has no range.

    """
    cells = catalogue_row.cells
    row_path = f"{catalogue_row.where}: {path}"
    stated_value, stated_low, stated_high = (
        stated_quantity(catalogue_row, column, row_path) for column in ("value", "low", "high")
    )
    if stated_value is None:
        raise DataError(f"{row_path}: the value is missing; a missing value is never taken as zero")
    kind = str(cells.get("kind", ""))
    source = str(cells.get("source", ""))
    if kind not in KINDS:
        raise DataError(
            f"{row_path}: kind {kind!r} is not one of {', '.join(KINDS)}{nearest(kind, KINDS)}"
        )
    if not source:
        raise DataError(f"{row_path}: the source is missing")
    with located(row_path):
        value = convert(*stated_value, expected_attribute.unit)
        low, high = (
            None if end is None else convert(*end, expected_attribute.unit)
            for end in (stated_low, stated_high)
        )
    if catalogue_row.as_of:
        period(catalogue_row.as_of, f"{row_path}: as_of")
    if kind in GUESSED and None in (low, high):
        raise DataError(f"{row_path}: an {kind} value needs low and high")
    usage = cells.get("use") or ""
    if usage not in ("", ALTERNATIVE):
        raise DataError(f"{row_path}: use {usage!r}, expected {ALTERNATIVE!r} or nothing")
    note = str(cells.get("note", ""))
    row_input = Input(
        path=path,
        value=value,
        unit=expected_attribute.unit,
        low=low,
        high=high,
        as_of=catalogue_row.as_of,
        kind=kind,
        source=source,
        note=note,
        stated_quantity=stated_value,
        where=catalogue_row.where,
        overlay=catalogue_row.overlay,
        directness=_own_directness(catalogue_row, kind, note, path),
        solved_from=str(cells.get("solved_from") or ""),
        evidence_of=_evidence_date(catalogue_row, path),
    )
    return check_bounds(row_input, expected_attribute.minimum, expected_attribute.maximum)


def stated_quantity(
    catalogue_row: CatalogueRow, column: str, row_path: str
) -> tuple[float, str] | None:
    """Return number and unit of a cell, such as '$31,000'; None for an empty cell.

    Args:
        catalogue_row: Row as written.
        column: Column of the cell.
        row_path: Path of the input, for errors.

    Raises:
        DataError: The cell is not a finite number, or its unit has another dimension than the
            unit of the row.

    """
    cell = catalogue_row.cells.get(column, "")
    row_unit = str(catalogue_row.cells.get("unit", ""))
    if cell in ("", None):
        return None
    try:
        return parse_finite_number(cell, column, catalogue_row.where), row_unit
    except DataError as error:
        cell_text = str(cell)
        quantity = cell_quantity(cell_text) if isinstance(cell, str) else None
        if quantity is None or not math.isfinite(quantity[0]):
            hint = number_mark_hint(cell_text) or currency_hint(cell_text)
            raise DataError(f"{error}{hint}") from None
    number, cell_unit = quantity
    if not cell_unit or row_unit == cell_unit:
        return number, row_unit
    with located(f"{row_path}: {column}"):
        return convert(number, cell_unit, row_unit or cell_unit), row_unit or cell_unit


def read_row(catalogue_row: CatalogueRow, path: str) -> Input:
    """Return a row as the input of a path, in the unit of the attribute that the path names.

    Args:
        catalogue_row: Row of the catalogue.
        path: Path of the input; its first word is the group, its last the attribute.

    Raises:
        DataError: The group does not have the attribute, or `to_input` refuses the row.

    """
    group, _, attribute_name = split_path(path)
    return to_input(catalogue_row, path, attribute(group, attribute_name, catalogue_row.where))


def _evidence_date(catalogue_row: CatalogueRow, path: str) -> str:
    evidence_text = str(catalogue_row.cells.get("evidence_of") or "")
    if not evidence_text:
        return ""
    evidence = period(evidence_text, f"{catalogue_row.where}: {path}: evidence_of")
    if (
        catalogue_row.as_of
        and evidence.first
        > period(catalogue_row.as_of, f"{catalogue_row.where}: {path}: as_of").last
    ):
        raise DataError(
            f"{catalogue_row.where}: {path}: evidence_of {evidence_text} is later than as_of "
            f"{catalogue_row.as_of}, "
            "expected the date of older evidence; leave it out where the row is as old as its "
            "evidence"
        )
    return evidence_text


def _own_directness(catalogue_row: CatalogueRow, kind: str, note: str, path: str) -> str:
    """Return the directness that a row states, or empty where its source decides.

    Raises:
        DataError: The directness is unknown, or contradicts the kind or the note.

    """
    stated_directness = str(catalogue_row.cells.get("directness") or "")
    if stated_directness and stated_directness not in DIRECTNESS:
        raise DataError(
            f"{catalogue_row.where}: {path}: directness {stated_directness!r} is not one of "
            f"{', '.join(DIRECTNESS)}{nearest(stated_directness, DIRECTNESS)}"
        )
    if stated_directness in ("first-hand", "quoted") and (
        kind in GUESSED or "recalled" in note.lower()
    ):
        raise DataError(
            f"{catalogue_row.where}: {path}: directness {stated_directness!r}, but its "
            f"{'kind is ' + kind if kind in GUESSED else 'note says recalled'}"
        )
    if stated_directness or kind in GUESSED:
        return stated_directness or "estimate"
    return "recalled" if "recalled" in note.lower() else ""


def live(input_rows: Sequence[CatalogueRow], dated: bool, path: str) -> list[CatalogueRow]:
    """Return the rows that are not alternatives.

    Args:
        input_rows: Rows of an input, at least one.
        dated: Whether the value of the attribute depends on the date.
        path: Path of the input, for the message of an error.

    Raises:
        DataError: All rows are alternatives, two rows have the same date, or an attribute that does
            not depend on the date has two rows.

    """
    live_rows = [
        input_row for input_row in input_rows if input_row.cells.get("use", "") != ALTERNATIVE
    ]
    if not live_rows:
        raise DataError(
            f"{input_rows[0].where}: {path}: every row is an alternative, one must be chosen"
        )
    if len(live_rows) > 1 and (
        not dated or len({live_row.as_of for live_row in live_rows}) < len(live_rows)
    ):
        rows_by_place: dict[str, CatalogueRow] = {}
        duplicate_row = next(
            live_row
            for live_row in live_rows
            if rows_by_place.setdefault(live_row.as_of if dated else "", live_row) is not live_row
        )
        day = f", both of {duplicate_row.as_of}" if dated and duplicate_row.as_of else ""
        also = f"(also {rows_by_place[duplicate_row.as_of if dated else ''].where}){day}"
        raise DataError(
            f"{duplicate_row.where}: {path} is given twice {also}; mark one {ALTERNATIVE!r} or "
            f"date both{' apart' if day else ''}"
        )
    return live_rows


def at_date(dated_rows: list[CatalogueRow], when: str) -> CatalogueRow:
    """Return the latest row of a dated series that begins by the last day of a date.

    Args:
        dated_rows: Rows of an input, at least one.
        when: Year, quarter, month or day.

    Returns:
        The row; the first row of the series for an earlier date.

    """
    if len(dated_rows) == 1:
        return dated_rows[0]
    ordered = sorted(dated_rows, key=lambda dated_row: (dated_row.begins, dated_row.as_of))
    limit = period(when).last
    begun_rows = [dated_row for dated_row in ordered if dated_row.begins <= limit]
    return begun_rows[-1] if begun_rows else ordered[0]


def usual_value(
    shipped: Mapping[tuple[str, str], Sequence[CatalogueRow]], target_attribute: Attribute
) -> float | None:
    """Return the median of the shipped values of an attribute; None without shipped values."""
    shipped_values = sorted(
        to_input(candidate_row, target_attribute.name, target_attribute).value
        for (_, attribute_name), attribute_rows in shipped.items()
        if attribute_name == target_attribute.name
        for candidate_row in attribute_rows
    )
    return shipped_values[len(shipped_values) // 2] if shipped_values else None


def row_in_place(
    catalogue_row: CatalogueRow,
    path: str,
    target_attribute: Attribute,
    like: Sequence[CatalogueRow],
    usual: Callable[[], float | None],
) -> CatalogueRow:
    """Return a row with stand-ins for the user's own values.

    Args:
        catalogue_row: The user's own row.
        path: Path of the input.
        target_attribute: Attribute of the input.
        like: Shipped rows of the path; may be empty.
        usual: Returns the reference value where no row is shipped, or None.

    Raises:
        DataError: The row cannot be read. The message has only its place, since the cause may
            reveal the value.

    """
    with untold_errors(f"{catalogue_row.where}: {path}: cannot be read"):
        row_input = to_input(catalogue_row, path, target_attribute)

    def usual_in_place() -> float | None:
        return to_input(like[-1], path, target_attribute).value if like else usual()

    stand_in = own_input(
        row_input, usual_in_place, target_attribute.minimum, target_attribute.maximum
    )
    unit = stand_in.stated_quantity[1] if stand_in.stated_quantity else target_attribute.unit
    numbers = {"value": stand_in.value, "low": stand_in.low, "high": stand_in.high}
    cells = {
        column_name: "" if number is None else repr(convert(number, target_attribute.unit, unit))
        for column_name, number in numbers.items()
    }
    return catalogue_row._replace(cells=catalogue_row.cells | cells | {"note": stand_in.note})
