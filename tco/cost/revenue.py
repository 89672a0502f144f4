"""Revenue: rented hours or sold tokens, month by month, at falling prices."""

from __future__ import annotations

from tco.core.elementwise import elementwise_maximum, elementwise_minimum
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import (
    Chip,
    Hour,
    Month,
    Pure,
    Second,
    TokenPerMillion,
    TokenPerSecondPerChip,
    USDPerChipHour,
    USDPerMillionTokens,
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
    """Income of a month of rented hours: R = price x chips x 730 h x share."""
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
