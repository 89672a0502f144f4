"""When a system is there, and what it costs to want it sooner: an empty hall, a deposit, chips rented meanwhile, work left undone.

A system is there when the last of its parts is: each that states a date of its own (`general_availability`, `first_volume`) counts, so a
variant with a later switch comes later. The cost of an hour is left as it is; what waiting costs stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tco.catalog.systems import System
from tco.economics.cost import Cost
from tco.foundation.formula import formula, total
from tco.foundation.provenance import Input, period
from tco.foundation.trace import scope
from tco.foundation.units import Hour, Month, Pure, USDPerChip, USDPerChipHour
from tco.foundation.values import Values


@formula(unit="", source="tco-model")
def later_of(one: Pure, other: Pure) -> Any:
    """The later of two dates, each a calendar year with its part: max(a, b)."""
    return np.maximum(one, other)


@formula(unit="month", source="tco-model")
def months_to_wait(there: Pure, wanted: Pure, year: Month = 12) -> Any:
    """Months from the date a system is wanted at to the one it is there at, calendar years with their parts: w = 12 max(there - wanted, 0)."""
    return year * np.maximum(there - wanted, 0)


@formula(unit="USD/chip", source="tco-model")
def empty_hall(hour: USDPerChipHour, wait: Month, month: Hour = 730, interval: Month = 1) -> Any:
    """Building, or its rent, that stands empty for a chip: C = hall's cost a chip-hour x 730 h x months."""
    return hour * month * (wait / interval)


@formula(unit="USD/chip", source="tco-model")
def idle_deposit(price: USDPerChip, share: Pure, rate: Pure, wait: Month, year: Month = 12) -> Any:
    """Interest on what is paid at the order, while it waits: C = price x share x ((1 + r)^(w / 12) - 1)."""
    return price * share * np.expm1(wait / year * np.log1p(rate))


@formula(unit="USD/chip", source="tco-model")
def stopgap_rent(hour: USDPerChipHour, premium: Pure, share: Pure, wait: Month, month: Hour = 730, interval: Month = 1) -> Any:
    """What rented chips cost beyond the awaited ones for the share of the work they do: C = c x premium x share x 730 h x months."""
    return hour * premium * share * month * (wait / interval)


@formula(unit="USD/chip", source="tco-model")
def lost_margin(hour: USDPerChipHour, margin: Pure, share: Pure, wait: Month, month: Hour = 730, interval: Month = 1) -> Any:
    """Margin on the work that nobody does meanwhile, the rest: C = c x margin x (1 - share) x 730 h x months."""
    return hour * margin * (1 - share) * month * (wait / interval)


GENERAL, VOLUME, BRING_UP = "general_availability", "first_volume", "bring_up"  # attributes of the parts of a tree
HALL = ("building", "cooling")  # classes of assets that stand ready at the date, racks or not
MONTHS = 12
Dates = tuple[float, float, float]  # a date as a year with its part, its earliest and its latest


class Available(NamedTuple):
    """When a system is there, as texts such as 2026-07; `low` and `high` are those of its first volume."""

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


def waiting_cost(values: Values, system: System, cost: Cost, wanted: str, states: Callable[[str, str], bool]) -> Any:
    """Return what a chip costs from the date it is wanted at until it is there; None where none of the parts states a date."""
    for attribute in (GENERAL, BRING_UP):
        for path in dated(system, attribute, states):
            values.input(path)
    dates = [values[path] for path in dated(system, VOLUME, states)]
    if not dates:
        return None
    with scope("waiting"):
        wait = months_to_wait(reduce(later_of, dates), year_of(wanted))
        share, hour = values["money.stopgap_share"], cost.per_chip_hour
        costs = [
            stopgap_rent(hour, values["money.stopgap_premium"], share, wait),
            lost_margin(hour, values["money.lost_margin"], share, wait),
        ]
        if hall := [line.usd_per_chip_hour for line in cost.lines if line.asset in HALL]:  # who rents chips has none
            costs.append(empty_hall(total("hall", hall), wait))
            costs.append(idle_deposit(cost.capex_per_chip, values["money.deposit"], values["terms.rate"], wait))
        return total("waiting", costs)


def dated(system: System, attribute: str, states: Callable[[str, str], bool]) -> list[str]:
    """Return the paths of the parts of a tree that state a date, or how long they take to set up."""
    parts = dict.fromkeys(leaf.part for leaf in system.leaves if leaf.quantity)
    return [f"parts.{part}.{attribute}" for part in parts if states(part, attribute)]


def year_of(date: str) -> float:
    """Return the end of a written date as a calendar year with its part."""
    day = period(date).last
    return day.year + day.timetuple().tm_yday / (366 if day.year % 4 == 0 else 365)


def available_of(inputs: Mapping[str, Input], date: str) -> Available | None:
    """Return when a system is there, from the inputs of an answer; None where none of its parts states it."""
    general, volume, up = (last_of(inputs, attribute) for attribute in (GENERAL, VOLUME, BRING_UP))
    if volume is None:
        return None
    wanted = year_of(date)
    first = None if up is None else month_text(max(volume[0], wanted) + up[0] / MONTHS)
    months = MONTHS * max(volume[0] - wanted, 0.0)
    low, high = map(month_text, volume[1:])
    return Available(None if general is None else month_text(general[0]), month_text(volume[0]), first, low, high, months)


def last_of(inputs: Mapping[str, Input], attribute: str) -> Dates | None:
    """Return the latest of what the parts of an answer state, with its range; None where none does."""
    found = [one for path, one in inputs.items() if path.startswith("parts.") and path.endswith(f".{attribute}")]
    ends = [(one.value, one.value if one.low is None else one.low, one.value if one.high is None else one.high) for one in found]
    return (max(one[0] for one in ends), max(one[1] for one in ends), max(one[2] for one in ends)) if ends else None


def month_text(year: float) -> str:
    """Return a calendar year with its part as year and month."""
    whole = int(year * MONTHS + 1e-6)
    return f"{whole // MONTHS}-{whole % MONTHS + 1:02}"


def not_there(system: str, inputs: Mapping[str, Input], date: str) -> list[str]:
    """Return a note where a system is wanted before anybody may order it."""
    found, general = available_of(inputs, date), last_of(inputs, GENERAL)
    if found is None or general is None or general[0] <= year_of(date):
        return []
    return [
        f"{system} is not there in {date}: generally available in {found.general}, first volume {found.words}; it waits {found.months:.0f} months"
    ]
