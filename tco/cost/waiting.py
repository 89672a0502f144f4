"""Availability of a system at a date, and the cost of waiting for the system.

A system is available when the last of its parts is. Each part that states a date of its own
(`general_availability`, `first_volume`) counts, so a variant with a later switch comes later. A
buyer who needs the system sooner pays for an empty hall, a deposit, chips rented meanwhile and work
left undone. The cost of waiting is a separate line; the other lines do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from tco.catalog.system_tree import System
from tco.core.elementwise import elementwise_maximum, expm1, log1p
from tco.core.formula import formula, greatest, total
from tco.core.inputs import Values
from tco.core.provenance import MONTHS, Input, month_text, period
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.core.units import Hour, Month, Pure, USDPerChip, USDPerChipHour
from tco.cost.failures import rest_of
from tco.cost.ledger import Cost

# Attributes of parts that state a date or a duration.
GENERAL_AVAILABILITY = "general_availability"
FIRST_VOLUME = "first_volume"
BRING_UP = "bring_up"  # months from delivery to the first token
HALL_ASSETS = ("building", "cooling")  # asset classes that are paid for while the racks are awaited


class YearRange(NamedTuple):
    """Date or duration with its range, as calendar years with fractions or as months."""

    value: float
    low: float
    high: float


class Available(NamedTuple):
    """Dates at which a system is available, such as 2026-07."""

    general: str | None  # general availability
    volume: str  # first volume
    first_token: str | None  # first token of racks that are ordered at the date
    low: str  # earliest first volume
    high: str  # latest first volume
    months: float  # from the date of the order to the first volume

    @property
    def words(self) -> str:
        """First volume with its range."""
        return f"{self.volume} ({self.low} to {self.high})"


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
        states: Returns for a part id and an attribute whether the part states the attribute.

    Returns:
        Cost in USD per chip; None where no part states a date.

    """
    # The answer lists these dates with its inputs, though they do not change the cost.
    for attribute in (GENERAL_AVAILABILITY, BRING_UP):
        for path in _dated_part_paths(system, attribute, states):
            input_values.input(path)
    dates = [input_values[path] for path in _dated_part_paths(system, FIRST_VOLUME, states)]
    if not dates:
        return None
    with scope("waiting"):
        wait = months_to_wait(greatest("there", dates), year_of(order_date))
        share = input_values["money.stopgap_share"]
        hour = cost.per_chip_hour
        with scope("rented-meanwhile"):
            costs = [hours_waited(hour, input_values["money.stopgap_premium"], share, wait)]
        with scope("work-left-undone"):
            costs.append(
                hours_waited(hour, input_values["money.lost_margin"], rest_of(share), wait)
            )
        hall_costs = [line.usd_per_chip_hour for line in cost.lines if line.asset in HALL_ASSETS]
        if hall_costs:  # a renter of chips has no hall and pays no deposit
            with scope("empty-hall"):
                costs.append(hours_waited(total("hall", hall_costs), 1.0, 1.0, wait))
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
    """Return the paths of the inputs that set the cost of waiting.

    Args:
        system: System with the parts of its tree.
        states: Returns for a part id and an attribute whether the part states the attribute.

    Returns:
        Paths of the first volumes of the parts, then paths of the buyer's terms under `money`.

    """
    return [
        *_dated_part_paths(system, FIRST_VOLUME, states),
        "money.stopgap_share",
        "money.stopgap_premium",
        "money.lost_margin",
        "money.deposit",
    ]


def _dated_part_paths(
    system: System, attribute: str, states: Callable[[str, str], bool]
) -> list[str]:
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
        DataError: The text is not a date.

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
        DataError: The text `date` is not a date.

    """
    volume = _latest(inputs, FIRST_VOLUME)
    if volume is None:
        return None
    general = _latest(inputs, GENERAL_AVAILABILITY)
    bring_up = _latest(inputs, BRING_UP)
    order_year = year_of(date)
    first_token = None
    if bring_up is not None:
        first_token = month_text(max(volume.value, order_year) + bring_up.value / MONTHS)
    return Available(
        general=None if general is None else month_text(general.value),
        volume=month_text(volume.value),
        first_token=first_token,
        low=month_text(volume.low),
        high=month_text(volume.high),
        months=MONTHS * max(volume.value - order_year, 0.0),
    )


def _latest(inputs: Mapping[str, Input], attribute: str) -> YearRange | None:
    """Return the latest value that any part states, with the latest low and the latest high."""
    stated = [
        YearRange(
            value=part_input.value,
            low=part_input.value if part_input.low is None else part_input.low,
            high=part_input.value if part_input.high is None else part_input.high,
        )
        for path, part_input in inputs.items()
        if path.startswith("parts.") and path.endswith(f".{attribute}")
    ]
    if not stated:
        return None
    return YearRange(
        value=max(year.value for year in stated),
        low=max(year.low for year in stated),
        high=max(year.high for year in stated),
    )


def not_there(inputs: Mapping[str, Input], date: str) -> list[str]:
    """Return a note where the order precedes the availability of a system.

    Args:
        inputs: Inputs of an answer by path.
        date: Date of the order, as written.

    Returns:
        List of one note, or an empty list where the system can be ordered or states no dates.

    Raises:
        DataError: The text `date` is not a date.

    """
    general = _latest(inputs, GENERAL_AVAILABILITY)
    if general is None or general.value <= year_of(date):
        return []
    available = available_of(inputs, date)
    if available is None:
        return []
    return [
        f"not yet there in {date}: generally available in {available.general}, first volume "
        f"{available.words}; it waits {available.months:.0f} months"
    ]
