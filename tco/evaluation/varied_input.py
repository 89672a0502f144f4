"""An input that is varied: what it is today, the unit it is told in, and the values at which it is
looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from tco.core.errors import DataError, UsageError, located
from tco.core.provenance import period
from tco.core.trace import walk
from tco.core.units import convert, parse_quantity
from tco.evaluation.chip_prices import chip_parts_price
from tco.evaluation.scenario_function import Evaluation
from tco.scenario.choices import DOCUMENTS, TEXTS
from tco.scenario.resolved import bounds

DATE = "terms.date"  # the date of the prices: a text, and varied month by month
# how many times smaller and larger than today's an input is sought, unless the user says where
WIDE = 30.0
AHEAD = 24  # months after its own that a date is sought in, unless the user says where
MONTHS = 240  # at most: further prices are no more than the last ones known
OPTIONS = ("--from", "--to")
Ends = tuple[str | None, str | None]


class VariedInput(NamedTuple):
    """An input today: none where it has no value; the unit it is told in, and that of the bounds it
    lies within.
    """

    value: float | None
    unit: str
    own_unit: str

    @property
    def stepwise(self) -> bool:
        """Whether nothing lies between two neighbours of the values it is looked at."""
        return False

    def text(self, value: float) -> str:
        """Return a value as `--set` takes it."""
        return f"{value!r} {self.unit}".strip()

    def plain(self, value: float) -> float | str:
        """Return a value as documents carry it."""
        return value


class Moment(VariedInput):
    """A date: its value is the number of its last day, and what is looked at are months."""

    @property
    def stepwise(self) -> bool:
        """Prices are those of a month's last day."""
        return True

    def text(self, value: float) -> str:
        """Return the month that ends with the day, else the day."""
        day = date.fromordinal(int(value))
        return f"{day:%Y-%m}" if day == end_of_month(month_number(day)) else f"{day:%Y-%m-%d}"

    def plain(self, value: float) -> float | str:
        """Return the date as documents carry it."""
        return self.text(value)

    def months_to(self, value: float) -> int:
        """Return the months from today's date to another."""
        one, other = (month_number(date.fromordinal(int(day))) for day in (self.value or 0, value))
        return other - one


def month_number(day: date) -> int:
    """Return the number of a day's month."""
    return day.year * 12 + day.month - 1


def end_of_month(number: int) -> date:
    """Return the last day of a month by its number."""
    year, month = divmod(number, 12)
    return period(f"{year:04}-{month + 1:02}").last


def amount_of(sides: Sequence[Evaluation], path: str) -> tuple[VariedInput, Sequence[Evaluation]]:
    """Return an input as of today, with the sides affected.

    The input is given or derived.

    Args:
        sides: Evaluated scenarios; the first stands in where no side has the input.
        path: Path of the input.

    Returns:
        The input, whose value is None where the first side has no value, and the sides.

    Raises:
        DataError: The path is unknown or names a text.

    """
    if path in TEXTS or path in DOCUMENTS:
        raise DataError(f"--vary {path}: is a text, expected an input that is a number")
    resting = [side for side in sides if path in side.result.inputs]
    if resting:
        given = resting[0].result.inputs[path]
        value, unit = given.shown or (given.value, given.unit)
        return VariedInput(value, unit, given.unit), resting
    own = sides[0]
    built = [
        (side, found)
        for side in sides
        if path.endswith(".price")
        and (found := chip_parts_price(side)) is not None
        and found.path == path
    ]
    if built:
        return VariedInput(built[0][1].value, "USD", "USD"), [side for side, _ in built]
    function = own.function()._replace(plan=own.result.plan)
    for root in function.result({}, trace=True).nodes.values():
        for node in walk(root):
            if node.path == path:
                return VariedInput(float(node.value), node.unit, node.unit), [own]
    unit = function.inputs({}).unit_of(path)
    return VariedInput(None, unit, unit), [own]


def moment_of(side: Evaluation) -> Moment:
    """Return the date of a side's prices.

    Args:
        side: An evaluated scenario.

    Returns:
        Moment whose value is the last day of the date, as a proleptic ordinal in days.

    """
    return Moment(float(period(side.result.texts[DATE], DATE).last.toordinal()), "date", "date")


def told_in(today: VariedInput, ends: Ends) -> VariedInput:
    """Return an input in the unit of the given ends.

    Args:
        today: The input as of today.
        ends: Texts of `--from` and `--to`, None where absent.

    Returns:
        The input in the unit of the first end that names a unit. The input stays unchanged where
        no end names a unit or the unit does not fit.

    """
    named = next(
        (
            unit
            for end in ends
            if end is not None and (unit := end.strip().partition(" ")[2].strip())
        ),
        today.unit,
    )
    if named == today.unit:
        return today
    try:
        value = None if today.value is None else convert(today.value, today.unit, named)
    except DataError:  # the end itself is refused with what was expected
        return today
    return today._replace(value=value, unit=named)


# ---------------------------------------------------------------- where it is looked at
def ends_of(path: str, today: VariedInput, ends: Ends) -> tuple[float | None, float | None]:
    """Return the ends that are given, in the unit the input is told in; what lies beyond the
    input's bounds raises `DataError`.
    """
    least, most = (convert(bound, today.own_unit, today.unit) for bound in bounds(path))
    found: list[float | None] = []
    for text, option in zip(ends, OPTIONS, strict=True):
        with located(f"{option} {text}: {path}"):
            # it names its own, as a size without one may be of two
            end = None if text is None else parse_quantity(text, today.unit)
        found.append(end)
    for end, option in zip(found, OPTIONS, strict=True):
        if end is not None and not least <= end <= most:
            raise DataError(
                f"{option} {today.text(end)}: {path} lies within {least:g} to {today.text(most)}"
            )
    if None in found and not today.value:
        value = "has no value" if today.value is None else "is zero"
        raise UsageError(
            f"--vary {path}: it {value} today; say where to look, with --from and --to in "
            f"{today.unit or 'no unit'}"
        )
    return found[0], found[1]


def search_interval(path: str, today: VariedInput, ends: Ends, wide: float) -> tuple[float, float]:
    """Return the ends of the interval in which an input is searched.

    Args:
        path: Path of the input.
        today: The input as of today, in the unit of the ends.
        ends: Texts of `--from` and `--to`, None where absent.
        wide: Factor below and above today's value at which an absent end lies.

    Returns:
        Low and high end in the unit of `today`. An absent end stays within the bounds of the input.

    Raises:
        DataError: An end is no quantity of the unit, or lies beyond the bounds of the input.
        UsageError: The interval is reversed or empty, or an end is absent while the input has no
            value or is zero.

    """
    given = ends_of(path, today, ends)
    least, most = (convert(bound, today.own_unit, today.unit) for bound in bounds(path))
    value = today.value or 0.0
    low = max(value / wide, least) if given[0] is None else given[0]
    high = min(value * wide, most) if given[1] is None else given[1]
    if low >= high:
        raise UsageError(
            f"--from {today.text(low)} --to {today.text(high)}: the range is reversed or empty"
        )
    return low, high


def log_or_linear_grid(low: float, high: float, count: int) -> list[float]:
    """Return values from low to high, in equal ratios above zero.

    Args:
        low: First value.
        high: Last value.
        count: Number of values, at least 2.

    Returns:
        Values in ascending order: in equal ratios where `low` is above zero, else in equal steps.

    """
    many = np.geomspace(low, high, count) if low > 0 else np.linspace(low, high, count)
    return [low, *many[1:-1].tolist(), high]


def input_grid(path: str, today: VariedInput, ends: Ends, count: int) -> list[float]:
    """Return the input values at which a metric is evaluated.

    Args:
        path: Path of the input.
        today: The input as of today, in the unit of the ends.
        ends: Texts of `--from` and `--to`, None where absent.
        count: Number of values without today's value, at least 2.

    Returns:
        Values in ascending order in the unit of `today`. Today's value is among the values if
        between the ends.

    Raises:
        DataError: An end is no quantity of the unit, or lies beyond the bounds of the input.
        UsageError: The interval is reversed or empty, or an end is absent while the input has no
            value or is zero.

    """
    low, high = search_interval(path, today, ends, WIDE)
    values = log_or_linear_grid(low, high, count)
    return sorted(
        {*values, today.value} if today.value is not None and low < today.value < high else values
    )


def month_end_days(today: Moment, ends: Ends) -> list[float]:
    """Return the last days of the months between two dates.

    An end that is a single day is among the days, and so is today's date between the ends.

    Args:
        today: The date of the prices.
        ends: Texts of `--from` and `--to`. Without `--from` the interval begins today; without
            `--to` the interval ends `AHEAD` months after the first month.

    Returns:
        At least two proleptic ordinals in days, in ascending order.

    Raises:
        DataError: An end is no date.
        UsageError: The interval is reversed, has fewer than two days or more than `MONTHS` months.

    """
    own = date.fromordinal(int(today.value or 0))
    given = [
        None if end is None else period(end.strip(), f"{option} {end}: {DATE}")
        for end, option in zip(ends, OPTIONS, strict=True)
    ]
    start = given[0].first if given[0] else own
    end = given[1].last if given[1] else end_of_month(month_number(start) + AHEAD)
    span = (
        f"--from {ends[0] or today.text(own.toordinal())} --to "
        f"{ends[1] or today.text(end.toordinal())}"
    )
    months = range(month_number(start), month_number(end) + 1)
    if len(months) > MONTHS:
        raise UsageError(f"{span}: {len(months)} months, expected {MONTHS} at most")
    days = (
        {end_of_month(month) for month in months}
        | {own}
        | {one.last for one in given if one is not None and one.first == one.last}
    )
    found = sorted(float(day.toordinal()) for day in days if start <= day <= end)
    if len(found) < 2:
        raise UsageError(f"{span}: the range is reversed or empty")
    return found
