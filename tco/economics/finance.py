"""Capital recovery and yearly charges."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, select
from tco.foundation.units import USD, Chip, HourPerYear, PerYear, Pure, USDPerYear, Year


@formula(unit="1/year", source="nrel-atb")
def capital_recovery_factor(rate: Pure, life: Year, period: Year = 1) -> Any:
    """Yearly share of a price that repays it over its life with interest: CRF = r (1+r)^n / ((1+r)^n - 1), and 1/n at r = 0.

    `rate` is the interest of one period of a year.
    """
    periods = life / period
    safe = select(rate > 1e-9, rate, 1e-9)  # below it the limit 1/n holds to nine digits
    growth = (1 + safe) ** periods
    return select(rate > 1e-9, safe * growth / np.maximum(growth - 1, 1e-300), 1 / periods) / period


@formula(unit="USD", source="nrel-atb")
def recoverable_price(price: USD, residual: Pure, rate: Pure, life: Year, period: Year = 1) -> Any:
    """What must be recovered of a price that keeps a residual: C - RV / (1+r)^n."""
    return price * (1 - residual / (1 + rate) ** (life / period))


@formula(unit="USD/year", source="nrel-atb")
def yearly_capital(price: USD, recovery: PerYear) -> Any:
    """Yearly capital charge: A = C x CRF."""
    return price * recovery


@formula(unit="USD/year", source="tco-model")
def yearly_upkeep(price: USD, share: Pure, period: Year = 1) -> Any:
    """Yearly upkeep as a share of the price: U = C x share."""
    return price * share / period


@formula(unit="USD/chip/h", source="tco-model")
def per_chip_hour(yearly_cost: USDPerYear, chips: Chip, hours_per_year: HourPerYear = 8760) -> Any:
    """A yearly cost of a world per installed chip and calendar hour: c = Y / (chips x 8,760 h)."""
    return yearly_cost / (chips * hours_per_year)
