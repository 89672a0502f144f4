"""Capital recovery and yearly charges."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.units import USD, Chip, HourPerYear, Month, MonthPerYear, PerYear, Pure, USDPerChipHour, USDPerYear, Year


@formula(unit="1/year", source="nrel-atb")
def capital_recovery_factor(rate: Pure, life: Year, period: Year = 1) -> Any:
    """Yearly share of a price that repays it over its life with interest: CRF = r / (1 - (1+r)^-n), and 1/n at r = 0.

    `rate` is the interest of one period of a year.
    """
    periods = life / period
    safe = np.maximum(rate, 1e-300)  # at nought the limit 1/n
    return -safe / np.expm1(-periods * np.log1p(safe)) / period


@formula(unit="", source="tco-model")
def rate_of_period(rate: Pure, interval: Month, year: Month = 12) -> Any:
    """Interest of one period where a yearly rate is paid in parts, as loans quote it: i = r m / 12."""
    return rate * (interval / year)


@formula(unit="year", source="tco-model")
def period_in_years(interval: Month, months_per_year: MonthPerYear = 12) -> Any:
    """Length of a period between payments in years: p = m / 12."""
    return interval / months_per_year


@formula(unit="", source="nrel-atb")
def recoverable_share(residual: Pure, rate: Pure, life: Year, period: Year = 1) -> Any:
    """Share of a price that must be recovered where a residual is left after n periods: k = 1 - RV / (1+r)^n."""
    return 1 - residual - residual * np.expm1(-life / period * np.log1p(rate))


@formula(unit="1/year", source="nrel-atb")
def capital_charge(recovery: PerYear, recoverable: Pure) -> Any:
    """Yearly charge on a price of which a share must be recovered: a = k x CRF."""
    return recoverable * recovery


@formula(unit="USD/year", source="nrel-atb")
def yearly_capital(price: USD, charge: PerYear) -> Any:
    """Yearly capital charge: A = C x a, a being the recovery factor where nothing is left of the price."""
    return price * charge


@formula(unit="", source="tco-model")
def residual_by_age(loss: Pure, age: Year, period: Year = 1) -> Any:
    """Share of its price that a thing is worth at an age, if it loses the same share of its value every year: RV = (1 - d)^t."""
    return (1 - loss) ** (age / period)


@formula(unit="USD", source="tco-model")
def resale(price: USD, residual: Pure) -> Any:
    """What comes in at the end of a life, as a payment that is negative: -C x RV."""
    return -price * residual


@formula(unit="USD", source="tco-model")
def payment(yearly: USDPerYear, interval: Month, months_per_year: MonthPerYear = 12) -> Any:
    """Payment of a yearly cost for some months: p = Y m / 12."""
    return yearly * interval / months_per_year


@formula(unit="USD", source="nrel-atb")
def discounted(amount: USD, rate: Pure, time: Month, interval: Month = 1, year: Month = 12) -> Any:
    """Worth at month 0 of an amount paid some months later, with interest every month at a yearly rate as loans quote it: C / (1 + r/12)^t."""
    return amount / (1 + rate * (interval / year)) ** (time / interval)


@formula(unit="USD/year", source="tco-model")
def yearly_upkeep(price: USD, share: Pure, period: Year = 1) -> Any:
    """Yearly upkeep as a share of the price: U = C x share."""
    return price * share / period


@formula(unit="USD/chip/h", source="tco-model")
def per_chip_hour(yearly_cost: USDPerYear, chips: Chip, hours_per_year: HourPerYear = 8760) -> Any:
    """A yearly cost of a world per installed chip and calendar hour: c = Y / (chips x 8,760 h)."""
    return yearly_cost / (chips * hours_per_year)


@formula(unit="USD/year", source="tco-model")
def chips_cost(hour: USDPerChipHour, chips: Chip, hours_per_year: HourPerYear = 8760) -> Any:
    """What some chips cost in a year: Y = c x chips x 8,760 h."""
    return hour * chips * hours_per_year
