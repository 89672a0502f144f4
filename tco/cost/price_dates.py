"""Availability of a system at a date, waiting costs and price ages.

A system is available when the last of its parts is. Each part that states a date of its own
(`general_availability`, `first_volume`) counts, so a variant with a later switch comes later. A
buyer who wants the system sooner pays for an empty hall, a deposit, chips rented meanwhile and work
left undone. The cost of an hour stays as it is; the cost of waiting stands beside it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import short_name
from tco.catalog.rows import (
    attribute_of_path,
    input_attributes,
    parse_finite_number,
    split_path,
)
from tco.catalog.system_tree import System
from tco.core.elementwise import elementwise_maximum, expm1, log1p
from tco.core.errors import UnavailableError
from tco.core.files import data_directory, read_csv
from tco.core.formula import formula, greatest, total
from tco.core.inputs import Values
from tco.core.memory import once_per_owner
from tco.core.provenance import MONTHS, Input, Period, month_text, period
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import Hour, Month, Pure, USDPerChip, USDPerChipHour
from tco.cost.cash_flows import Flow
from tco.cost.failures import rest_of
from tco.cost.guards import PartPrice, unguarded_notes
from tco.cost.ledger import Cost


@formula("month")
def months_to_wait(arrival: Pure, wanted_date: Pure, year: Month = 12) -> Quantity:
    """Months from the wanted date of a system to its arrival: w = 12 max(there - wanted, 0).

    Dates are calendar years with their fractions.
    """
    return year * elementwise_maximum(arrival - wanted_date, 0)


@formula("USD/chip")
def idle_deposit(
    price: USDPerChip, share: Pure, rate: Pure, wait: Month, year: Month = 12
) -> Quantity:
    """Interest on the payment at the order, during the wait.

    C = price x share x ((1 + r)^(w / 12) - 1).
    """
    return price * share * expm1(wait / year * log1p(rate))


@formula("USD/chip")
def hours_waited(
    hour: USDPerChipHour,
    rate: Pure,
    share: Pure,
    wait: Month,
    month: Hour = 730,
    interval: Month = 1,
) -> Quantity:
    """Cost per chip of waiting hours: C = c x rate x share x 730 h x months.

    The rate is relative to the cost per hour c.
    """
    return hour * rate * share * month * (wait / interval)


# attributes of the parts of a tree
GENERAL, VOLUME, BRING_UP = (
    "general_availability",
    "first_volume",
    "bring_up",
)
HALL = ("building", "cooling")  # classes of assets that stand ready at the date, racks or not
Dates = tuple[float, float, float]  # a date as a year with its part, its earliest and its latest


class Available(NamedTuple):
    """Dates at which a system is available, such as 2026-07, with a range of its first volume."""

    general: str | None
    volume: str
    first_token: str | None  # of racks bought at the date, or as soon as they are there
    low: str
    high: str
    months: float  # from the date to its first volume

    @property
    def words(self) -> str:
        """Its first volume with its range."""
        return f"{self.volume} ({self.low} to {self.high})"


def waiting_cost(
    input_values: Values,
    system: System,
    cost: Cost,
    order_date: str,
    states: Callable[[str, str], bool],
) -> Any:
    """Return the cost of waiting for a system, in USD per chip.

    The wait runs from the date `order_date` until the system is available in volume.

    Args:
        input_values: Values of the inputs.
        system: System with the parts of its tree.
        cost: Cost of the system without the wait.
        order_date: Date of the order, as written.
        states: Says of a part id and an attribute whether the part states the attribute.

    Returns:
        Cost in USD per chip; None where no part states a date.

    """
    for attribute in (GENERAL, BRING_UP):
        for path in _dated_part_paths(system, attribute, states):
            input_values.input(path)
    dates = [input_values[path] for path in _dated_part_paths(system, VOLUME, states)]
    if not dates:
        return None
    with scope("waiting"):
        wait = months_to_wait(greatest("there", dates), year_of(order_date))
        share, hour = input_values["money.stopgap_share"], cost.per_chip_hour
        with scope("rented-meanwhile"):
            costs = [hours_waited(hour, input_values["money.stopgap_premium"], share, wait)]
        with scope("work-left-undone"):
            costs.append(
                hours_waited(hour, input_values["money.lost_margin"], rest_of(share), wait)
            )
        # who rents chips has none
        if hall := [line.usd_per_chip_hour for line in cost.lines if line.asset in HALL]:
            with scope("empty-hall"):
                costs.append(hours_waited(total("hall", hall), 1.0, 1.0, wait))
            costs.append(
                idle_deposit(
                    cost.capex_per_chip,
                    input_values["money.deposit"],
                    input_values["terms.rate"],
                    wait,
                )
            )
        return total("waiting", costs)


def waiting_inputs(system: System, states: Callable[[str, str], bool]) -> list[str]:
    """Return the paths that the cost of waiting is priced by.

    Args:
        system: System with the parts of its tree.
        states: Says of a part id and an attribute whether the part states the attribute.

    Returns:
        Paths of the first volumes of the parts, then paths of the buyer's terms under `money`.

    """
    volumes = _dated_part_paths(system, VOLUME, states)
    return [
        *volumes,
        "money.stopgap_share",
        "money.stopgap_premium",
        "money.lost_margin",
        "money.deposit",
    ]


def _dated_part_paths(
    system: System, attribute: str, states: Callable[[str, str], bool]
) -> list[str]:
    """Return the paths of a tree's parts that state a date or a set-up time."""

    def paths() -> list[str]:
        parts = dict.fromkeys(leaf.part for leaf in system.leaves if leaf.quantity)
        return [f"parts.{part}.{attribute}" for part in parts if states(part, attribute)]

    return system.once(("dated", attribute), paths)


@cache
def year_of(date: str) -> float:
    """Return the end of a written date as a fractional calendar year.

    Args:
        date: Date of a year, a month or a day, as written.

    Raises:
        DataError: The text is no date.

    """
    day = period(date).last
    return day.year + day.timetuple().tm_yday / (366 if day.year % 4 == 0 else 365)


def available_of(inputs: Mapping[str, Input], date: str) -> Available | None:
    """Return the dates at which a system is available.

    Args:
        inputs: Inputs of an answer by path.
        date: Date of the order, as written.

    Returns:
        Dates of the last part of the system; None where no part states a first volume.

    Raises:
        DataError: The text `date` is no date.

    """
    general, volume, up = (_last_of(inputs, attribute) for attribute in (GENERAL, VOLUME, BRING_UP))
    if volume is None:
        return None
    order_year = year_of(date)
    first = None if up is None else month_text(max(volume[0], order_year) + up[0] / MONTHS)
    months = MONTHS * max(volume[0] - order_year, 0.0)
    low, high = map(month_text, volume[1:])
    return Available(
        None if general is None else month_text(general[0]),
        month_text(volume[0]),
        first,
        low,
        high,
        months,
    )


def _last_of(inputs: Mapping[str, Input], attribute: str) -> Dates | None:
    """Return the latest value that parts state, with its range; None where no part states any."""
    end = f".{attribute}"
    paths = [path for path in inputs if path.endswith(end)]
    date_inputs = [inputs[path] for path in paths if path.startswith("parts.")]
    if not date_inputs:
        return None
    values, lows, highs = zip(
        *(
            (
                date_input.value,
                date_input.value if date_input.low is None else date_input.low,
                date_input.value if date_input.high is None else date_input.high,
            )
            for date_input in date_inputs
        ),
        strict=True,
    )
    return max(values), max(lows), max(highs)


def not_there(inputs: Mapping[str, Input], date: str) -> list[str]:
    """Return a note where the order precedes the availability of a system.

    Args:
        inputs: Inputs of an answer by path.
        date: Date of the order, as written.

    Returns:
        List of one note, or an empty list where the system can be ordered or states no dates.

    Raises:
        DataError: The text `date` is no date.

    """
    general = _last_of(inputs, GENERAL)
    if (
        general is None
        or general[0] <= year_of(date)
        or (available_dates := available_of(inputs, date)) is None
    ):
        return []
    return [
        f"not yet there in {date}: generally available in {available_dates.general}, first volume "
        f"{available_dates.words}; it waits {available_dates.months:.0f} months"
    ]


# ---------------------------------------------------------------- the ages of prices
ANY = "*"


@cache
def limits() -> dict[tuple[str, str], float]:
    """Return the days a price may be older than the date, by group and table or attribute."""
    path = data_directory() / "price_ages.csv"
    return {
        (limit_row["group"], limit_row["of"]): parse_finite_number(
            limit_row["days"], "days", f"{path}:{line}"
        )
        for line, limit_row in read_csv(path, ("group", "of", "days", "note"))
    }


ACCELERATORS = "accelerators"  # the folder of parts in which every chip has a file of its own


@cache
def source_table_name(where: str) -> str:
    """Return the name of the table that a row stands in.

    Args:
        where: Place of the row as `file:line`.

    Returns:
        Name of the file without its ending; all files of chips share the name of their folder.

    """
    path = Path(where.rpartition(":")[0])
    return ACCELERATORS if path.parent.name == ACCELERATORS else path.stem


def evidence_age_limit(cost_input: Input) -> float | None:
    """Return the days that the evidence of an input may be old.

    Args:
        cost_input: An input of the catalogue.

    Returns:
        The limit of its part, else of its attribute, its table or its group; None without one.

    """
    group, owner, attribute_name = split_path(cost_input.path)
    limit_keys = (
        (group, limit_subject)
        for limit_subject in (owner, attribute_name, source_table_name(cost_input.where), ANY)
    )
    return next((limits()[limit_key] for limit_key in limit_keys if limit_key in limits()), None)


@cache
def _is_dated(path: str) -> bool:
    input_attribute = attribute_of_path(path)
    return input_attribute is not None and input_attribute.dated


def is_dated_price(cost_input: Input) -> bool:
    """Say whether an input is a price of a stated date.

    Args:
        cost_input: An input of the catalogue.

    Returns:
        True where the input states a date and its attribute moves with the date.

    """
    return bool(cost_input.as_of) and _is_dated(cost_input.path)


BILL = ("servers", "network", "storage")  # classes of assets that are bought at the prices of parts
REBATE = "rebate"  # class of asset of what suppliers give back
TERMS = "terms."  # how paths of terms begin, on which every hour rests
NOTED = ("site.", TERMS, "rebates.")  # how paths begin of what a note on old evidence names
BY_ROWS = " of the bill has prices "
ORDERED = 366  # days that what is announced may be ordered before a price of it is known
NAMED = 3  # parts a note names, those of the largest sums


class Ages(NamedTuple):
    """Shares of the bill and of the chip-hour that rest on prices of other dates."""

    later: float = 0.0  # share of the bill with prices later than its date
    older: float = 0.0  # share of the bill with prices older than they should be
    notes: tuple[str, ...] = ()  # on the bill
    # share of the gross chip-hour that rests on old evidence, the hall and power too
    hour_older: float = 0.0
    hour_notes: tuple[str, ...] = ()  # on the hall, the terms and the agreements


def ages_of(
    catalogue: Catalogue, lines: Sequence[Flow], inputs: Mapping[str, Input], date: str
) -> Ages:
    """Return shares of a bill with prices of other dates, and notes.

    The notes name the parts with the largest sums.

    Args:
        catalogue: Holds the rows of prices.
        lines: Cost lines of a scenario.
        inputs: Inputs of the lines by path.
        date: Date of the bill, as written.

    Returns:
        Shares from 0 to 1 of the bill and of the gross chip-hour, each with notes.

    Raises:
        DataError: The text `date` is no date.

    """
    day, newest = period(date), newest_price(catalogue)
    cache = _dated_inputs(catalogue, date)
    prices_by_line = {
        line.path: [
            price
            for path in line.inputs
            if (price := _cached_dated_input(cache, inputs[path], day)).moves
        ]
        for line in lines
    }
    bill = [
        (float(line.amount), prices_by_line[line.path])
        for line in lines
        if line.asset in BILL and not line.recurs
    ]
    notes = []
    if day.first > period(newest).last:
        notes.append(f"{date} lies beyond the prices known: the last is of {newest}, and holds on")
    later_share, later_notes = _misdated_share(bill, LATER, f"later than {date}")
    old_share, old_notes = _misdated_share(bill, OLD, "older than they should be")
    notes += [*later_notes, *old_notes]
    for line in lines:
        if line.asset in ("rebate", "rent"):
            notes += [
                _price_age_note(line.path, price.cost_input, day.last)
                for price in prices_by_line[line.path]
                if price.later or price.old
            ]
    notes += unguarded_notes(_bill_parts(lines, prices_by_line))
    hour_older, hour_notes = _old_hours(lines, cache, inputs, day)
    return Ages(later_share, old_share, tuple(notes), hour_older, hour_notes)


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
        DataError: The text `date` is no date.

    """
    day, cache = period(date), _dated_inputs(catalogue, date)
    prices = [
        price
        for line in lines
        if line.asset in BILL and not line.recurs
        for path in line.inputs
        if (price := _cached_dated_input(cache, inputs[path], day)).moves
    ]
    first = min(prices, key=lambda price: price.first, default=None)
    if first is not None and (first.first - day.last).days > ORDERED:
        raise UnavailableError(
            f"terms.date={date} lies before the first price of this bill, of "
            f"{first.cost_input.as_of}: its parts were not for sale yet"
        )


def _dated_inputs(catalogue: Catalogue, date: str) -> dict[str, DatedInput]:
    return catalogue.once(("ages", date), dict)


def _misdated_share(
    bill: Sequence[tuple[float, list[DatedInput]]],
    is_misdated: Callable[[DatedInput], bool],
    words: str,
) -> tuple[float, list[str]]:
    """Return the share of a bill with prices of another date, and the note on it."""
    misdated_lines = []
    for usd, line_prices in bill:
        misdated = [price.cost_input for price in line_prices if is_misdated(price)]
        if misdated:
            misdated_lines.append((usd, misdated))
    if not misdated_lines:
        return 0.0, []
    share = sum(usd for usd, _ in misdated_lines) / sum(usd for usd, _ in bill)
    return share, [f"{share * 100:.1f} %{BY_ROWS}{words}: {_largest(misdated_lines)}"]


def _bill_parts(
    lines: Sequence[Flow], prices_by_line: Mapping[str, Sequence[DatedInput]]
) -> list[PartPrice]:
    bill = [line for line in lines if line.asset in BILL and not line.recurs]
    return [
        PartPrice(
            line.path.rpartition("/")[2],
            float(line.amount),
            tuple(line_price.cost_input for line_price in prices_by_line[line.path]),
        )
        for line in bill
    ]


def _old_hours(
    lines: Sequence[Flow],
    dated_inputs: dict[str, DatedInput],
    inputs: Mapping[str, Input],
    day: Period,
) -> tuple[float, tuple[str, ...]]:
    """Return the share of the gross chip-hour that rests on old evidence, and a note on it."""
    old_usd = gross_usd = 0.0
    for line in lines:
        if line.asset != REBATE:
            hour_usd = float(line.usd_per_chip_hour)
            gross_usd += hour_usd
            rests_on_old = any(
                _cached_dated_input(dated_inputs, inputs[path], day).old
                for path in line.inputs
                if not path.startswith(TERMS)
            )
            old_usd += hour_usd if rests_on_old else 0.0
    old_inputs = {
        path: cost_input
        for path, cost_input in inputs.items()
        if path.startswith(NOTED) and _cached_dated_input(dated_inputs, cost_input, day).old
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


class DatedInput(NamedTuple):
    """An input, whether it moves with the date, and how its own stands to that of the scenario."""

    cost_input: Input
    moves: bool
    first: datetime.date = datetime.date.min
    later: bool = False
    old: bool = False


LATER, OLD = attrgetter("later"), attrgetter("old")


def _cached_dated_input(
    dated_inputs: dict[str, DatedInput], cost_input: Input, day: Period
) -> DatedInput:
    """Return the dated record of an input at `day`, cached by path.

    The record says whether the input is later than `day` or too old.
    """
    dated_input = dated_inputs.get(cost_input.path)
    if dated_input is None or dated_input.cost_input is not cost_input:
        if is_dated_price(cost_input):
            first = period(cost_input.as_of).first
            dated_input = DatedInput(
                cost_input, True, first, first > day.last, is_old(cost_input, day.last)
            )
        else:
            dated_input = DatedInput(cost_input, False, old=is_old(cost_input, day.last))
        dated_inputs[cost_input.path] = dated_input
    return dated_input


def is_old(cost_input: Input, day: datetime.date) -> bool:
    """Say whether the evidence of an input is older at a day than its kind may be."""
    limit = evidence_age_limit(cost_input) if cost_input.as_of else None
    return limit is not None and (day - period(cost_input.evidence_date).last).days > limit


def _largest(rests: list[tuple[float, list[Input]]]) -> str:
    """Return the parts that the largest sums rest on, with the dates of their prices."""
    sums: dict[str, float] = {}
    for usd, misdated_inputs in rests:
        for part in dict.fromkeys(
            f"{cost_input.path.split('.')[1]} ({cost_input.evidence_date})"
            for cost_input in misdated_inputs
        ):
            sums[part] = sums.get(part, 0.0) + usd
    part_names = sorted(sums, key=lambda part: -sums[part])
    return ", ".join(part_names[:NAMED]) + (
        f" and {len(part_names) - NAMED} more" if len(part_names) > NAMED else ""
    )


def _price_age_note(line: str, cost_input: Input, day: datetime.date) -> str:
    """Return a note on a rebate or a rent that rests on a price of another date."""
    of = period(cost_input.evidence_date)
    away = (
        f"{(of.first - day).days} days after"
        if of.first > day
        else f"{(day - of.last).days} days before"
    )
    return f"{line}: {short_name(cost_input.path)} is of {cost_input.evidence_date}, {away} {day}"


@once_per_owner
def newest_price(catalogue: Catalogue) -> str:
    """Return the date of the latest price of a part.

    Args:
        catalogue: Holds the rows of parts.

    Returns:
        Date as its row writes the date.

    """
    priced = {
        attribute_name
        for (group, attribute_name), input_attribute in input_attributes().items()
        if group == "parts" and input_attribute.dated
    }
    price_rows = (
        price_row
        for (_, attribute_name), attribute_rows in catalogue.part_rows.items()
        if attribute_name in priced
        for price_row in attribute_rows
    )
    return max(
        (price_row for price_row in price_rows if price_row.as_of),
        key=lambda price_row: price_row.begins,
    ).as_of
