"""Money over time: capital recovery, value of assets, and cost lines as flows and payments."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

from tco.core.elementwise import elementwise_maximum, elementwise_minimum, expm1, log1p
from tco.core.formula import formula
from tco.core.inputs import Values, following
from tco.core.trace import scope, untraced_value
from tco.core.types import Quantity
from tco.core.units import (
    USD,
    Chip,
    HourPerYear,
    Month,
    MonthPerYear,
    PerYear,
    Pure,
    USDPerChipHour,
    USDPerYear,
    Year,
)

OPERATION = "terms.life"  # years in which a world is run, and recurring costs are paid
# Lives of asset classes that do not last as long as the operation.
LIVES = {
    "network": "terms.life_network",
    "building": "terms.life_building",
}
SOLD = ("servers", "storage")  # asset classes that are sold at the end of their life
RESIDUAL = "terms.residual"  # share of the price left at the end of the life
LOSS = "terms.value_loss"  # share of the value lost per year; where stated, it sets the residual
RATE = "terms.rate"
# Rates of asset classes that may have a separate cost of capital.
RATES = {
    "network": "terms.rate_network",
    "building": "terms.rate_building",
}
# Months between payments, of recurring costs and of the repayment of a purchase with interest.
MONTHLY = 1


@formula(
    "1/year",
    source="nrel-atb",
    textbook_equation="rate / (1 - (1 + rate)^-(life / period)) / period",
)
def capital_recovery_factor(rate: Pure, life: Year, period: Year = 1) -> Quantity:
    """Yearly share of a price that repays it with interest: CRF = r / (1 - (1+r)^-n).

    It is 1/n at r = 0. `rate` is the interest of one period of a year.
    """
    periods = life / period
    positive_rate = elementwise_maximum(rate, 1e-300)  # gives the limit 1/n at a rate of zero
    return -positive_rate / expm1(-periods * log1p(positive_rate)) / period


@formula("", textbook_unit="1/month")
def rate_of_period(rate: Pure, interval: Month, year: Month = 12) -> Quantity:
    """Interest per period of a yearly rate paid in parts, as loans quote it: i = r m / 12."""
    return rate * (interval / year)


@formula("year")
def period_in_years(interval: Month, months_per_year: MonthPerYear = 12) -> Quantity:
    """Length of a period between payments in years: p = m / 12."""
    return interval / months_per_year


@formula(
    "",
    source="nrel-atb",
    textbook_equation="1 - residual / (1 + rate)^(life / period)",
)
def recoverable_share(residual: Pure, rate: Pure, life: Year, period: Year = 1) -> Quantity:
    """Share of a price to recover where a residual is left: k = 1 - RV / (1+r)^n."""
    return 1 - residual - residual * expm1(-life / period * log1p(rate))


@formula("1/year", source="nrel-atb")
def capital_charge(recovery: PerYear, recoverable: Pure) -> Quantity:
    """Yearly share of a price that repays it with interest, less its residual: a = k x CRF."""
    return recoverable * recovery


@formula("USD/year", source="nrel-atb")
def yearly_capital(price: USD, charge: PerYear) -> Quantity:
    """Yearly capital charge: A = C x a.

    a is the recovery factor of the share of the price that must be recovered.
    """
    return price * charge


@formula("")
def residual_by_age(loss: Pure, age: Year, period: Year = 1) -> Quantity:
    """Share of its price that an asset is worth at an age: RV = (1 - d)^t.

    It loses the same share d of its value every year.
    """
    return (1 - loss) ** (age / period)


@formula("USD")
def resale(price: USD, residual: Pure) -> Quantity:
    """Resale value at the end of a life, as a negative payment: -C x RV."""
    return -price * residual


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


@formula("USD")
def payment(yearly: USDPerYear, interval: Month, months_per_year: MonthPerYear = 12) -> Quantity:
    """Payment of a yearly cost for some months: p = Y m / 12."""
    return yearly * interval / months_per_year


@formula("USD", source="nrel-atb")
def discounted(
    amount: USD, rate: Pure, time: Month, interval: Month = 1, year: Month = 12
) -> Quantity:
    """Present value at month 0 of an amount paid t months later: C / (1 + r/12)^t.

    Interest is added monthly at a yearly rate, as loans quote it.
    """
    return amount / (1 + rate * (interval / year)) ** (time / interval)


@formula("USD/year")
def yearly_upkeep(price: USD, share: Pure, period: Year = 1) -> Quantity:
    """Yearly upkeep as a share of the price: U = C x share."""
    return price * share / period


@formula("USD/chip/h")
def per_chip_hour(
    yearly_cost: USDPerYear, chips: Chip, hours_per_year: HourPerYear = 8760
) -> Quantity:
    """A yearly cost of a world per installed chip and calendar hour: c = Y / (chips x 8,760 h)."""
    return yearly_cost / (chips * hours_per_year)


@formula("USD/year")
def chips_cost(chips: Chip, hour: USDPerChipHour, hours_per_year: HourPerYear = 8760) -> Quantity:
    """Cost or rent of chips in a year, used or not: Y = n c x 8,760 h."""
    return chips * hour * hours_per_year


class Flow(NamedTuple):
    """Line of the cost of one world, as payments. Income is negative."""

    path: str
    asset: str  # servers, network, storage, cooling, building, energy, upkeep, staff, rebate
    amount: Quantity  # USD of a purchase, or USD per year of a recurring cost
    first_month: int  # month of the first payment; operation begins with month 1
    life: Quantity  # years of service of a purchase, or years in which a cost recurs
    recurrence: int  # months from one payment to the next; 0 for a purchase
    residual: Quantity  # share of a purchase that is paid back at the end of its life
    kind: str  # kind of the evidence: the weakest kind among the inputs
    sources: tuple[str, ...]
    inputs: tuple[str, ...]  # paths of the inputs that set the amount
    overlay: bool = False  # whether an input is the user's own
    usd_per_chip_hour: Any = None  # contribution to the cost per chip-hour

    @property
    def recurs(self) -> bool:
        """Whether the line is a yearly cost and not a purchase."""
        return self.recurrence > 0

    @property
    def usd(self) -> Any:
        """Purchase price in USD; None for a yearly cost."""
        return None if self.recurs else self.amount


class Payment(NamedTuple):
    """Payment of one cost line in one month. Income is negative."""

    month: int
    usd: Quantity
    line: str  # path of the cost line


class MonthlyRate(NamedTuple):
    """Interest of one month."""

    interest: Quantity
    month: Quantity  # length of a month, years


class Terms:
    """Life, residual and yearly charge per dollar of each asset class.

    Classes of equal rate and life share a charge, which is computed once.

    Args:
        input_values: Inputs by path.
        own_rates: Asset classes with a separate cost of capital.

    """

    def __init__(self, input_values: Values, own_rates: Container[str] = ()) -> None:
        self.values = input_values
        self.own_rates = own_rates
        self.monthly_rates: dict[str, MonthlyRate] = {}  # by path of the yearly rate
        # Yearly charges per dollar without and with a residual, by paths of rate and life.
        self.recoveries: dict[tuple[str, str], Any] = {}
        self.residual_charges: dict[tuple[str, str], Any] = {}

    def life(self, asset: str) -> Any:
        """Return the years of service of an asset class, or the years of operation without one."""
        return self.values[LIVES.get(asset, OPERATION)]

    def residual(self, asset: str) -> Quantity:
        """Return the value of an asset class at the end of its life, as a share of its price."""
        return self.values[RESIDUAL] if asset in SOLD else 0.0

    def paths(self, asset: str) -> tuple[str, str]:
        """Return the input paths of the rate and the life of an asset class."""
        rate = RATES[asset] if asset in self.own_rates else RATE
        return rate, LIVES.get(asset, OPERATION)

    def monthly(self, rate_path: str) -> MonthlyRate:
        """Return the monthly interest of the yearly rate at a path."""
        if rate_path not in self.monthly_rates:
            with scope("recovery", *([] if rate_path == RATE else [_last_path_name(rate_path)])):
                self.monthly_rates[rate_path] = MonthlyRate(
                    interest=rate_of_period(self.values[rate_path], MONTHLY),
                    month=period_in_years(MONTHLY),
                )
        return self.monthly_rates[rate_path]

    def recovery(self, asset: str) -> Any:
        """Return the yearly charge per dollar of price without a residual."""
        rate_path, life_path = paths = self.paths(asset)
        if paths not in self.recoveries:
            interest, month = self.monthly(rate_path)
            with scope("recovery", _last_path_name(life_path)):
                self.recoveries[paths] = capital_recovery_factor(
                    interest, self.values[life_path], month
                )
        return self.recoveries[paths]

    def charge(self, asset: str) -> Any:
        """Return the yearly charge per dollar of price of an asset class."""
        return self.residual_charge(asset) if asset in SOLD else self.recovery(asset)

    def residual_charge(self, asset: str) -> Any:
        """Return the yearly charge per dollar of price less the residual."""
        rate_path, life_path = paths = self.paths(asset)
        if paths not in self.residual_charges:
            recovery = self.recovery(asset)
            interest, month = self.monthly(rate_path)
            with scope("charge", _last_path_name(life_path)):
                share = recoverable_share(
                    self.residual(asset), interest, self.values[life_path], month
                )
                self.residual_charges[paths] = capital_charge(recovery, share)
        return self.residual_charges[paths]

    def purchase(
        self,
        path: str,
        asset: str,
        price: Quantity,
        kind: str,
        sources: tuple[str, ...],
        inputs: tuple[str, ...],
        overlay: bool = False,
    ) -> Flow:
        """Return the flow of a purchase before operation begins."""
        return Flow(
            path=path,
            asset=asset,
            amount=price,
            first_month=0,
            life=self.life(asset),
            recurrence=0,
            residual=self.residual(asset),
            kind=kind,
            sources=sources,
            inputs=inputs,
            overlay=overlay,
        )

    def recurring(self, path: str, asset: str, yearly: Quantity, inputs: tuple[str, ...]) -> Flow:
        """Return the flow of a yearly cost, paid at the end of every month."""
        kind, sources, overlay = self.values.grounds(inputs)
        return Flow(
            path=path,
            asset=asset,
            amount=yearly,
            first_month=MONTHLY,
            life=self.values[OPERATION],
            recurrence=MONTHLY,
            residual=0.0,
            kind=kind,
            sources=sources,
            inputs=inputs,
            overlay=overlay,
        )


# Rule that derives the residual from the yearly loss of value and the life.
FROM_THE_AGE = {RESIDUAL: following(residual_by_age, LOSS, OPERATION)}


def _last_path_name(path: str) -> str:
    return path.rpartition(".")[2]


def yearly_charge(flow: Flow, terms: Terms) -> Quantity:
    """Return the yearly cost of a flow, USD per year.

    A purchase costs its annuity. A recurring flow costs its yearly amount.
    """
    return flow.amount if flow.recurs else yearly_capital(flow.amount, terms.charge(flow.asset))


def chip_hour(flow: Flow, terms: Terms, chips: float) -> Quantity:
    """Return the cost of a flow per installed chip-hour, USD.

    `chips` counts the chips of the scale-up domain. The hours are calendar hours.
    """
    return per_chip_hour(yearly_charge(flow, terms), chips)


def payments(flow: Flow) -> list[Payment]:
    """Return the payments of a flow over its life, USD.

    Args:
        flow: Line of the cost. Its amount may be an array; its life is a single number.

    Returns:
        Payments of every month for a recurring cost. For a purchase its price, and the resale where
        the asset class is sold at the end of its life.

    """
    months = round(12 * float(untraced_value(flow.life)))
    if flow.recurs:
        recurring_payment = payment(flow.amount, flow.recurrence)
        return [
            Payment(month, recurring_payment, flow.path)
            for month in range(flow.first_month, months + 1, flow.recurrence)
        ]
    purchase = Payment(flow.first_month, flow.amount, flow.path)
    if flow.asset not in SOLD:
        return [purchase]
    resale_value = resale(flow.amount, flow.residual)
    return [purchase, Payment(flow.first_month + months, resale_value, flow.path)]
