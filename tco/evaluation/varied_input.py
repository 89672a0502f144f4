"""Input that varies: its value today, its unit, and the values at which it is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

import numpy as np

from tco.core.errors import DataError, UsageError, located
from tco.core.own_values import question_quantity
from tco.core.provenance import period
from tco.core.trace import walk
from tco.core.units import convert
from tco.evaluation.chip_prices import chip_parts_price
from tco.evaluation.scenario_function import Evaluation
from tco.scenario.choices import DOCUMENTS, TEXTS
from tco.scenario.resolved import bounds

DATE = "terms.date"  # the date of the prices: a text, and varied month by month
# Factor below and above today's value within which an input is varied without ends of the user.
WIDE = 30.0
AHEAD = 24  # months after its own that a date is sought in, unless the user says where
MONTHS = 240  # at most: further prices are no more than the last ones known
OPTIONS = ("--from", "--to")
Ends = tuple[str | None, str | None]  # texts of the low and the high end; None where unset


class VariedInput(NamedTuple):
    """An input as of today."""

    path: str
    value: float | None  # None where the input has no value
    unit: str  # unit of the value
    own_unit: str  # unit of the bounds

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

    def in_unit_of(self, ends: Ends) -> VariedInput:
        """Return the input in the unit of the first end that names one, if that fits."""
        texts = (end.strip().partition(" ")[2].strip() for end in ends if end is not None)
        unit = next(filter(None, texts), self.unit)
        if unit == self.unit:
            return self
        try:
            converted_value = None if self.value is None else convert(self.value, self.unit, unit)
        except DataError:  # the end itself is refused with what was expected
            return self
        return self._replace(value=converted_value, unit=unit)

    def interval(self, ends: Ends, width: float) -> tuple[float, float]:
        """Return the ends of the interval in which the input is searched.

        Args:
            ends: Texts of `--from` and `--to`, None where absent.
            width: Factor below and above today's value at which an absent end lies.

        Returns:
            Low and high end in the unit of the input, within its bounds.

        Raises:
            DataError: An end is no quantity of the unit, or lies beyond the bounds of the input.
            UsageError: The interval is reversed or empty, or an end is absent while the input has
                no value or is zero.

        """
        least, most = (convert(bound, self.own_unit, self.unit) for bound in bounds(self.path))
        limits: list[float | None] = []
        for end_text, option in zip(ends, OPTIONS, strict=True):
            with located(f"{option} {end_text}: {self.path}"):
                # it names its own, as a size without one may be of two
                limits.append(None if end_text is None else question_quantity(end_text, self.unit))
        for limit, option in zip(limits, OPTIONS, strict=True):
            if limit is not None and not least <= limit <= most:
                raise DataError(
                    f"{option} {self.text(limit)}: {self.path} lies within {least:g} to "
                    f"{self.text(most)}"
                )
        if None in limits and not self.value:
            today_state = "has no value" if self.value is None else "is zero"
            raise UsageError(
                f"--vary {self.path}: it {today_state} today; say where to look, with --from and "
                f"--to in {self.unit or 'no unit'}"
            )
        today = self.value or 0.0
        low = max(today / width, least) if limits[0] is None else limits[0]
        high = min(today * width, most) if limits[1] is None else limits[1]
        if low >= high:
            raise UsageError(
                f"--from {self.text(low)} --to {self.text(high)}: the range is reversed or empty"
            )
        return low, high

    def grid(
        self, ends: Ends, count: int, width: float = WIDE, least_ratio: float = 1
    ) -> list[float]:
        """Return the values at which a metric is evaluated, in ascending order.

        Args:
            ends: Texts of `--from` and `--to`, None where absent.
            count: Number of values without today's, which is among them between the ends.
            width: Factor below and above today's value at which an absent end lies.
            least_ratio: Ratio of the ends from which the values are spaced by ratios.

        Raises:
            DataError: An end is no value of the input.
            UsageError: The interval is reversed or empty.

        """
        low, high = self.interval(ends, width)
        grid_values = set(log_or_linear_grid(low, high, count, least_ratio))
        if self.value is not None and low < self.value < high:
            grid_values.add(self.value)
        return sorted(grid_values)


class Moment(VariedInput):
    """A date: its value is the number of its last day, and what is looked at are months."""

    @property
    def stepwise(self) -> bool:
        """Prices are those of a month's last day."""
        return True

    def text(self, value: float) -> str:
        """Return the month that ends with the day, else the day."""
        day = date.fromordinal(int(value))
        return f"{day:%Y-%m}" if day == _end_of_month(_month_number(day)) else f"{day:%Y-%m-%d}"

    def plain(self, value: float) -> float | str:
        """Return the date as documents carry it."""
        return self.text(value)

    def months_to(self, target_day: float) -> int:
        """Return the months from today's date to another."""
        today, later = (date.fromordinal(int(day)) for day in (self.value or 0, target_day))
        return _month_number(later) - _month_number(today)

    def grid(
        self, ends: Ends, _count: int, _width: float = WIDE, _least_ratio: float = 1
    ) -> list[float]:
        """Return the last days of the months between two dates, as ordinals in days.

        An end that is a single day is among the days, and so is today's date between the ends.
        Without `--from` the interval begins today; without `--to` it ends `AHEAD` months later.

        Raises:
            DataError: An end is no date.
            UsageError: The interval is reversed, has fewer than two days or more than `MONTHS`
                months.

        """
        today = date.fromordinal(int(self.value or 0))
        first, last = (
            None if end is None else period(end.strip(), f"{option} {end}: {DATE}")
            for end, option in zip(ends, OPTIONS, strict=True)
        )
        start = first.first if first else today
        end = last.last if last else _end_of_month(_month_number(start) + AHEAD)
        span = (
            f"--from {ends[0] or self.text(today.toordinal())} --to "
            f"{ends[1] or self.text(end.toordinal())}"
        )
        months = range(_month_number(start), _month_number(end) + 1)
        if len(months) > MONTHS:
            raise UsageError(f"{span}: {len(months)} months, expected {MONTHS} at most")
        single_days = {limit.last for limit in (first, last) if limit and limit.first == limit.last}
        days = {today, *map(_end_of_month, months), *single_days}
        ordinals = sorted(float(day.toordinal()) for day in days if start <= day <= end)
        if len(ordinals) < 2:
            raise UsageError(f"{span}: the range is reversed or empty")
        return ordinals


def _month_number(day: date) -> int:
    return day.year * 12 + day.month - 1


def _end_of_month(number: int) -> date:
    year, month = divmod(number, 12)
    return period(f"{year:04}-{month + 1:02}").last


def log_or_linear_grid(low: float, high: float, count: int, least_ratio: float = 1) -> list[float]:
    """Return ascending values from low to high, in equal ratios where low is above zero.

    Args:
        low: First value.
        high: Last value.
        count: Number of values, at least 2.
        least_ratio: Ratio of high to low below which they are in equal differences.

    """
    by_ratios = low > 0 and high >= low * least_ratio
    grid_values = np.geomspace(low, high, count) if by_ratios else np.linspace(low, high, count)
    return [low, *grid_values[1:-1].tolist(), high]


def price_date(side: Evaluation) -> Moment:
    """Return the date of a side's prices, by the ordinal of its last day."""
    day = period(side.result.texts[DATE], DATE).last
    return Moment(DATE, float(day.toordinal()), "date", "date")


def varied_input(
    sides: Sequence[Evaluation], path: str
) -> tuple[VariedInput, Sequence[Evaluation]]:
    """Return an input as of today, with the sides that rest on it.

    The input is given or derived.

    Args:
        sides: Evaluated scenarios; the first stands in where no side has the input.
        path: Path of the input.

    Returns:
        The input, whose value is None where the first side has no value, and the sides.

    Raises:
        DataError: The path is unknown or names a text.

    """
    first = sides[0]
    if path in TEXTS or path in DOCUMENTS:
        raise DataError(f"--vary {path}: is a text, expected an input that is a number")
    resting = [side for side in sides if path in side.result.inputs]
    if resting:
        given_input = resting[0].result.inputs[path]
        today_value, unit = given_input.stated_quantity or (given_input.value, given_input.unit)
        return VariedInput(path, today_value, unit, given_input.unit), resting
    prices = {}
    for index, side in enumerate(sides if path.endswith(".price") else ()):
        price = chip_parts_price(side)
        if price is not None and price.path == path:
            prices[index] = price.value
    if prices:
        today_value = next(iter(prices.values()))
        return VariedInput(path, today_value, "USD", "USD"), [sides[index] for index in prices]
    function = first.function()._replace(plan=first.result.plan)
    for root in function.result({}, trace=True).nodes.values():
        for node in walk(root):
            if node.path == path:
                return VariedInput(path, float(node.value), node.unit, node.unit), [first]
    unit = function.inputs({}).unit_of(path)
    return VariedInput(path, None, unit, unit), [first]
