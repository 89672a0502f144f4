"""Ages of prices: shares of a bill and of a chip-hour with prices of other dates, and notes.

A price is later than its bill if its row begins after the date of the bill. A price is old if its
evidence is older than `data/price_ages.csv` allows.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import short_name
from tco.catalog.rows import (
    attribute_of_path,
    input_attributes,
    parse_finite_number,
    split_path,
)
from tco.core.errors import UnavailableError
from tco.core.files import data_directory, read_csv
from tco.core.memory import once_per_owner
from tco.core.provenance import Input, Period, period
from tco.cost.cash_flows import Flow
from tco.cost.guards import PartPrice, unguarded_notes

ANY_SUBJECT = "*"  # subject of a limit that covers the whole group
ACCELERATORS = "accelerators"  # folder of parts in which every chip has a file
BILL = ("servers", "network", "storage")  # asset classes that are bought at the prices of parts
REBATE = "rebate"  # asset class of the money that suppliers give back
TERMS = "terms."  # prefix of the paths of terms, on which every line of the cost depends
PREFIXES_IN_HOUR_NOTE = ("site.", TERMS, "rebates.")  # paths that the note on the chip-hour names
LONGEST_PREORDER_DAYS = 366  # from the order of an announced part to its first known price
NAMED_PARTS = 3  # parts that a note names, those with the largest sums


class DatedInput(NamedTuple):
    """Input of a cost line, with the age of its evidence at the date of a bill."""

    cost_input: Input
    is_dated: bool  # a price whose rows change with the date
    first: datetime.date = datetime.date.min  # first day of the row
    is_later: bool = False  # the row begins after the date of the bill
    is_old: bool = False  # the evidence is older than allowed


class Ages(NamedTuple):
    """Shares of the bill and of the chip-hour with prices of other dates."""

    later: float = 0.0  # share of the bill with prices later than its date
    older: float = 0.0  # share of the bill with prices older than allowed
    notes: tuple[str, ...] = ()  # on the bill
    hour_older: float = 0.0  # share of the gross chip-hour, with hall and power, on old evidence
    hour_notes: tuple[str, ...] = ()  # on the hall, the terms and the agreements


@cache
def limits() -> dict[tuple[str, str], float]:
    """Return the largest age of evidence in days, by group and part, attribute or table."""
    path = data_directory() / "price_ages.csv"
    return {
        (limit_row["group"], limit_row["of"]): parse_finite_number(
            limit_row["days"], "days", f"{path}:{line}"
        )
        for line, limit_row in read_csv(path, ("group", "of", "days", "note"))
    }


@cache
def source_table_name(where: str) -> str:
    """Return the name of the table that holds a row.

    Args:
        where: Place of the row as `file:line`.

    Returns:
        Name of the file without its extension; for a file of a chip the name of the folder.

    """
    path = Path(where.rpartition(":")[0])
    return ACCELERATORS if path.parent.name == ACCELERATORS else path.stem


def evidence_age_limit(cost_input: Input) -> float | None:
    """Return the largest age that the evidence of an input may have, days.

    Args:
        cost_input: An input of the catalogue.

    Returns:
        The first limit that is stated of part, attribute, table and group, in this order; None
        without a limit.

    """
    group, owner, attribute_name = split_path(cost_input.path)
    for subject in (owner, attribute_name, source_table_name(cost_input.where), ANY_SUBJECT):
        if (group, subject) in limits():
            return limits()[group, subject]
    return None


@cache
def _is_dated(path: str) -> bool:
    input_attribute = attribute_of_path(path)
    return input_attribute is not None and input_attribute.dated


def is_dated_price(cost_input: Input) -> bool:
    """Return whether an input is a price of a stated date.

    Args:
        cost_input: An input of the catalogue.

    Returns:
        True where the input states a date and its attribute has rows of several dates.

    """
    return bool(cost_input.as_of) and _is_dated(cost_input.path)


def ages_of(
    catalogue: Catalogue, lines: Sequence[Flow], inputs: Mapping[str, Input], date: str
) -> Ages:
    """Return the shares of a bill and of a chip-hour with prices of other dates, with notes.

    The notes name the parts with the largest sums.

    Args:
        catalogue: Holds the rows of prices.
        lines: Cost lines of a scenario.
        inputs: Inputs of the lines by path.
        date: Date of the bill, as written.

    Returns:
        Shares from 0 to 1 of the bill and of the gross chip-hour, each with notes.

    Raises:
        DataError: The text `date` is not a date.

    """
    day = period(date)
    newest = newest_price(catalogue)
    dated_inputs = _dated_inputs(catalogue, date)
    prices_by_line = {
        line.path: [
            price
            for path in line.inputs
            if (price := _cached_dated_input(dated_inputs, inputs[path], day)).is_dated
        ]
        for line in lines
    }
    bill = _bill_lines(lines)
    notes = []
    if day.first > period(newest).last:
        notes.append(f"{date} lies beyond the prices known: the last is of {newest}, and holds on")
    later_share, later_notes = _misdated_share(
        bill, prices_by_line, lambda price: price.is_later, f"later than {date}"
    )
    old_share, old_notes = _misdated_share(
        bill, prices_by_line, lambda price: price.is_old, "older than they should be"
    )
    notes += [*later_notes, *old_notes]
    for line in lines:
        if line.asset in (REBATE, "rent"):
            notes += [
                _misdated_note(line.path, price.cost_input, day.last)
                for price in prices_by_line[line.path]
                if price.is_later or price.is_old
            ]
    notes += unguarded_notes(_bill_parts(bill, prices_by_line))
    hour_older, hour_notes = _old_share_of_hour(lines, dated_inputs, inputs, day)
    return Ages(
        later=later_share,
        older=old_share,
        notes=tuple(notes),
        hour_older=hour_older,
        hour_notes=hour_notes,
    )


def refuse_unpriced_date(
    catalogue: Catalogue, lines: Sequence[Flow], inputs: Mapping[str, Input], date: str
) -> None:
    """Refuse a date too long before the first price of a bill.

    Args:
        catalogue: Holds the rows of prices.
        lines: Cost lines of a scenario.
        inputs: Inputs of the lines by path.
        date: Date of the bill, as written.

    Raises:
        UnavailableError: The parts of the bill were not for sale yet.
        DataError: The text `date` is not a date.

    """
    day = period(date)
    dated_inputs = _dated_inputs(catalogue, date)
    prices = [
        price
        for line in _bill_lines(lines)
        for path in line.inputs
        if (price := _cached_dated_input(dated_inputs, inputs[path], day)).is_dated
    ]
    earliest = min(prices, key=lambda price: price.first, default=None)
    if earliest is not None and (earliest.first - day.last).days > LONGEST_PREORDER_DAYS:
        raise UnavailableError(
            f"terms.date={date} lies before the first price of this bill, of "
            f"{earliest.cost_input.as_of}: its parts were not for sale yet"
        )


def _bill_lines(lines: Sequence[Flow]) -> list[Flow]:
    return [line for line in lines if line.asset in BILL and not line.recurs]


def _dated_inputs(catalogue: Catalogue, date: str) -> dict[str, DatedInput]:
    return catalogue.once(("ages", date), dict)


def _misdated_share(
    bill: Sequence[Flow],
    prices_by_line: Mapping[str, Sequence[DatedInput]],
    is_misdated: Callable[[DatedInput], bool],
    description: str,
) -> tuple[float, list[str]]:
    """Return the share of a bill with prices of another date, and a note on these prices."""
    bill_usd = misdated_usd = 0.0
    usd_by_part: dict[str, float] = {}  # by part with the date of its price
    for line in bill:
        usd = float(line.amount)
        bill_usd += usd
        misdated = [price.cost_input for price in prices_by_line[line.path] if is_misdated(price)]
        if misdated:
            misdated_usd += usd
        for part in dict.fromkeys(
            f"{cost_input.path.split('.')[1]} ({cost_input.evidence_date})"
            for cost_input in misdated
        ):
            usd_by_part[part] = usd_by_part.get(part, 0.0) + usd
    if not usd_by_part:
        return 0.0, []
    share = misdated_usd / bill_usd
    parts = _largest_parts(usd_by_part)
    return share, [f"{share * 100:.1f} % of the bill has prices {description}: {parts}"]


def _largest_parts(usd_by_part: Mapping[str, float]) -> str:
    parts = sorted(usd_by_part, key=lambda part: -usd_by_part[part])
    rest = f" and {len(parts) - NAMED_PARTS} more" if len(parts) > NAMED_PARTS else ""
    return ", ".join(parts[:NAMED_PARTS]) + rest


def _bill_parts(
    bill: Sequence[Flow], prices_by_line: Mapping[str, Sequence[DatedInput]]
) -> list[PartPrice]:
    return [
        PartPrice(
            part=line.path.rpartition("/")[2],
            usd=float(line.amount),
            prices=tuple(price.cost_input for price in prices_by_line[line.path]),
        )
        for line in bill
    ]


def _old_share_of_hour(
    lines: Sequence[Flow],
    dated_inputs: dict[str, DatedInput],
    inputs: Mapping[str, Input],
    day: Period,
) -> tuple[float, tuple[str, ...]]:
    """Return the share of the gross chip-hour on old evidence, and a note on old inputs."""
    old_usd = gross_usd = 0.0
    for line in lines:
        if line.asset == REBATE:
            continue
        hour_usd = float(line.usd_per_chip_hour)
        gross_usd += hour_usd
        has_old_input = any(
            _cached_dated_input(dated_inputs, inputs[path], day).is_old
            for path in line.inputs
            if not path.startswith(TERMS)
        )
        old_usd += hour_usd if has_old_input else 0.0
    old_inputs = {
        path: cost_input
        for path, cost_input in inputs.items()
        if path.startswith(PREFIXES_IN_HOUR_NOTE)
        and _cached_dated_input(dated_inputs, cost_input, day).is_old
    }
    if not old_inputs:
        return (old_usd / gross_usd if gross_usd else 0.0), ()
    share = old_usd / gross_usd
    input_names = ", ".join(
        f"{short_name(path)} ({cost_input.evidence_date})"
        for path, cost_input in sorted(old_inputs.items())
    )
    words = f"{share * 100:.0f} % of the chip-hour rests on old evidence"
    return share, (f"evidence older than it should be: {input_names}; {words}",)


def _cached_dated_input(
    dated_inputs: dict[str, DatedInput], cost_input: Input, day: Period
) -> DatedInput:
    """Return the dated record of an input at `day`, cached by path."""
    dated_input = dated_inputs.get(cost_input.path)
    if dated_input is None or dated_input.cost_input is not cost_input:
        if is_dated_price(cost_input):
            first = period(cost_input.as_of).first
            dated_input = DatedInput(
                cost_input=cost_input,
                is_dated=True,
                first=first,
                is_later=first > day.last,
                is_old=is_old(cost_input, day.last),
            )
        else:
            dated_input = DatedInput(
                cost_input, is_dated=False, is_old=is_old(cost_input, day.last)
            )
        dated_inputs[cost_input.path] = dated_input
    return dated_input


def is_old(cost_input: Input, day: datetime.date) -> bool:
    """Return whether the evidence of an input is older at a day than its limit allows."""
    limit = evidence_age_limit(cost_input) if cost_input.as_of else None
    return limit is not None and (day - period(cost_input.evidence_date).last).days > limit


def _misdated_note(line_path: str, cost_input: Input, day: datetime.date) -> str:
    """Return a note on a rebate or a rent with a price of another date."""
    evidence_period = period(cost_input.evidence_date)
    if evidence_period.first > day:
        distance = f"{(evidence_period.first - day).days} days after"
    else:
        distance = f"{(day - evidence_period.last).days} days before"
    return (
        f"{line_path}: {short_name(cost_input.path)} is of {cost_input.evidence_date}, "
        f"{distance} {day}"
    )


@once_per_owner
def newest_price(catalogue: Catalogue) -> str:
    """Return the date of the latest price of a part.

    Args:
        catalogue: Holds the rows of parts.

    Returns:
        Date as written in the row.

    """
    price_attributes = {
        attribute_name
        for (group, attribute_name), input_attribute in input_attributes().items()
        if group == "parts" and input_attribute.dated
    }
    price_rows = (
        price_row
        for (_, attribute_name), attribute_rows in catalogue.part_rows.items()
        if attribute_name in price_attributes
        for price_row in attribute_rows
    )
    return max(
        (price_row for price_row in price_rows if price_row.as_of),
        key=lambda price_row: price_row.begins,
    ).as_of
