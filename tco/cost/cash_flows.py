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


@formula("1/year", source="nrel-atb")
def capital_recovery_factor(rate: Pure, life: Year, period: Year = 1) -> Quantity:
    """Yearly share of a price that repays it with interest: CRF = r / (1 - (1+r)^-n).

    It is 1/n at r = 0. `rate` is the interest of one period of a year.
    """
    periods = life / period
    safe = elementwise_maximum(rate, 1e-300)  # at nought the limit 1/n
    return -safe / expm1(-periods * log1p(safe)) / period


@formula("")
def rate_of_period(rate: Pure, interval: Month, year: Month = 12) -> Quantity:
    """Interest per period of a yearly rate paid in parts, as loans quote it: i = r m / 12."""
    return rate * (interval / year)


@formula("year")
def period_in_years(interval: Month, months_per_year: MonthPerYear = 12) -> Quantity:
    """Length of a period between payments in years: p = m / 12."""
    return interval / months_per_year


@formula("", source="nrel-atb")
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


OPERATION = "terms.life"  # years in which a world is run, and recurring costs are paid
# classes of assets with a life of their own
LIVES = {
    "network": "terms.life_network",
    "building": "terms.life_building",
}
SOLD = ("servers", "storage")  # classes of which a residual is left at the end of their life
RESIDUAL = "terms.residual"  # share of the price left at the end of the life
LOSS = "terms.value_loss"  # share of the value lost per year; where stated, it sets the residual
RATE = "terms.rate"
# classes that may be financed at a rate of their own
RATES = {
    "network": "terms.rate_network",
    "building": "terms.rate_building",
}
MONTHLY = 1  # months between payments: of what recurs, and of what repays a purchase with interest


class Flow(NamedTuple):
    """A line of the cost, as the money it moves. What comes in is negative."""

    path: str
    asset: str  # servers, network, storage, cooling, building, energy, upkeep, staff, rebate
    amount: Quantity  # USD of one world: of a purchase, or of a year of what recurs
    first_month: int  # of operation, which begins with month 1; what is bought is paid by month 0
    life: Quantity  # years it serves, or recurs
    recurrence: int  # months from one payment to the next; 0: once
    residual: Quantity  # share of a purchase that comes back at the end of its life
    kind: str  # how well its inputs are known: the worst kind among them
    sources: tuple[str, ...]
    inputs: tuple[str, ...]  # paths of the inputs that price it
    overlay: bool = False  # whether an input is the user's own
    usd_per_chip_hour: Any = None  # its part of the cost per chip-hour

    @property
    def recurs(self) -> bool:
        """Say whether it is a yearly cost, not a purchase."""
        return self.recurrence > 0

    @property
    def usd(self) -> Any:
        """Capital of one world; None for a yearly cost."""
        return None if self.recurs else self.amount


class Payment(NamedTuple):
    """Payment of one cost line in one month, USD.

    Money that comes in is negative.
    """

    month: int
    usd: Quantity
    line: str


class Terms:
    """Life, residual and yearly charge per dollar of each asset class.

    Classes of equal rate and life share a charge, which is computed once.
    """

    def __init__(self, input_values: Values, own_rates: Container[str] = ()) -> None:
        self.values = input_values
        self.own_rates = own_rates  # classes with a rate of their own
        # monthly interest and length of a month in years, by path of the yearly rate
        self.monthly_rates: dict[str, tuple[Any, Any]] = {}
        # yearly charge per dollar without and with a residual, by paths of rate and life
        self.recoveries: dict[tuple[str, str], Any] = {}
        self.residual_charges: dict[tuple[str, str], Any] = {}

    def life(self, asset: str) -> Any:
        """Return the years that a class of assets serves.

        Recurring costs last as long as the system is operated.
        """
        return self.values[LIVES.get(asset, OPERATION)]

    def residual(self, asset: str) -> Quantity:
        """Return the share of its price a class of assets is worth at the end of its life."""
        return self.values[RESIDUAL] if asset in SOLD else 0.0

    def paths(self, asset: str) -> tuple[str, str]:
        """Return the input paths of a class of assets: its rate and its life."""
        return RATES[asset] if asset in self.own_rates else RATE, LIVES.get(asset, OPERATION)

    def monthly(self, rate: str) -> tuple[Quantity, Quantity]:
        """Return the monthly interest of a yearly rate, and the length of a month in years."""
        if rate not in self.monthly_rates:
            with scope("recovery", *([] if rate == RATE else [_last_path_name(rate)])):
                self.monthly_rates[rate] = (
                    rate_of_period(self.values[rate], MONTHLY),
                    period_in_years(MONTHLY),
                )
        return self.monthly_rates[rate]

    def recovery(self, asset: str) -> Any:
        """Return the yearly charge per dollar of price without a residual."""
        rate, life = paths = self.paths(asset)
        if paths not in self.recoveries:
            interest, month = self.monthly(rate)
            with scope("recovery", _last_path_name(life)):
                self.recoveries[paths] = capital_recovery_factor(interest, self.values[life], month)
        return self.recoveries[paths]

    def charge(self, asset: str) -> Any:
        """Return the yearly charge per dollar of price of an asset class."""
        return self.residual_charge(asset) if asset in SOLD else self.recovery(asset)

    def residual_charge(self, asset: str) -> Any:
        """Return the yearly charge per dollar of price less the residual."""
        rate, life = paths = self.paths(asset)
        if paths not in self.residual_charges:
            recovery, (interest, month) = self.recovery(asset), self.monthly(rate)
            with scope("charge", _last_path_name(life)):
                share = recoverable_share(self.residual(asset), interest, self.values[life], month)
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
        """Return the flow of something bought before operation begins."""
        life, residual = self.life(asset), self.residual(asset)
        return Flow(path, asset, price, 0, life, 0, residual, kind, sources, inputs, overlay)

    def recurring(self, path: str, asset: str, yearly: Quantity, inputs: tuple[str, ...]) -> Flow:
        """Return the flow of a yearly cost, paid at the end of every month."""
        kind, sources, overlay = self.values.grounds(inputs)
        return Flow(
            path,
            asset,
            yearly,
            MONTHLY,
            self.values[OPERATION],
            MONTHLY,
            0.0,
            kind,
            sources,
            inputs,
            overlay,
        )


# the residual follows from the yearly loss of value and the life
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
    """Return the monthly payments of a flow over its life, USD.

    The number of months is a plain number. Amounts may be arrays.

    Args:
        flow: Line of the cost; its amount is for a purchase or for a year.

    Returns:
        Payments of a recurring cost; of a purchase its price, and for `SOLD` assets the resale.

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
