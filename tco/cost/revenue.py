"""Revenue: rented hours or sold tokens, month by month, at falling prices.

Formulas for the value of bought assets over time stand here too.
"""

from __future__ import annotations

from tco.core.elementwise import elementwise_maximum, elementwise_minimum
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import (
    USD,
    Chip,
    Hour,
    Month,
    PerYear,
    Pure,
    Second,
    TokenPerMillion,
    TokenPerSecondPerChip,
    USDPerChipHour,
    USDPerMillionTokens,
    Year,
)


@formula("")
def ramped_share(time: Month, ramp: Month, least: Month = 1) -> Quantity:
    """Share of full use t months after the first revenue: s = min(1, t / max(ramp, 1 month))."""
    return elementwise_minimum(time / elementwise_maximum(ramp, least), 1)


@formula("")
def matured_share(time: Month, start: Pure, months: Month, least: Month = 1) -> Quantity:
    """Share of the rate of mature software t months after the first revenue.

    e = s + (1 - s) min(1, t / max(T, 1 month)).
    """
    return start + (1 - start) * elementwise_minimum(time / elementwise_maximum(months, least), 1)


@formula("")
def share_after_stop(stop: Hour, month: Hour = 730) -> Quantity:
    """Share of a month that a stop leaves: 1 - t / 730 h."""
    return elementwise_maximum(1 - stop / month, 0)


@formula("")
def price_path(fall: Pure, time: Month, year: Month = 12) -> Quantity:
    """Remaining share of a price that falls by the same share every year: f = (1 - d)^(t/12)."""
    return (1 - fall) ** (time / year)


@formula("")
def charged_share(used: Pure, take_or_pay: Pure) -> Quantity:
    """Share of the hours paid for under a take-or-pay contract: max(used, take_or_pay)."""
    return elementwise_maximum(used, take_or_pay)


@formula("USD")
def rent_income(price: USDPerChipHour, chips: Chip, share: Pure, hours: Hour = 730) -> Quantity:
    """Income of a month of hours that are let: R = price x chips x 730 h x share."""
    return price * chips * hours * share


@formula("USD")
def token_income(
    price: USDPerMillionTokens,
    rate: TokenPerSecondPerChip,
    chips: Chip,
    share: Pure,
    month: Second = 2628000,
    tokens_per_million: TokenPerMillion = 1e6,
) -> Quantity:
    """Income of a month of tokens: R = price x rate x chips x 730 h x share / 1e6.

    The rate is tokens per second and chip.
    """
    return price * rate * chips * month * share / tokens_per_million


@formula("")
def break_even_utilisation(owned: USDPerChipHour, rent: USDPerChipHour) -> Quantity:
    """Utilisation above which owning is cheaper than renting: u = owned hour / rented hour."""
    return owned / rent


@formula("USD")
def straight_line_book(price: USD, residual: Pure, age: Year, life: Year) -> Quantity:
    """Book value that falls evenly to the residual: B = C (1 - (1 - RV) min(t/n, 1))."""
    return price * (1 - (1 - residual) * elementwise_minimum(age / life, 1))


@formula("USD")
def declining_book(price: USD, share: Pure, age: Year, period: Year = 1) -> Quantity:
    """Book value that falls by the same share of itself every year: B = C (1 - d)^t."""
    return price * (1 - share) ** (age / period)


@formula("USD", source="nrel-atb")
def left_over(price: USD, recovery: PerYear, rest: PerYear) -> Quantity:
    """Value of a part-used asset at the same yearly charge: W = C x CRF(life) / CRF(life left)."""
    return price * recovery / rest
