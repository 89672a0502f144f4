"""A scenario's money over time: payments and income by month, and returns to an investor.

It reads the flows that the chip-hour is folded from, so cash and annuity cannot disagree about what
is paid. What is bought again or outlives the operation is paid again, or worth at its end what
keeps its yearly charge. Finding a root is no formula: it happens here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog.system_tree import load_system
from tco.core.columns import Hidden
from tco.core.elementwise import as_array
from tco.core.errors import DataError, UsageError
from tco.core.inputs import Values
from tco.core.mappings import sums_by_key
from tco.cost.cash_flows import (
    MONTHLY,
    OPERATION,
    RATES,
    SOLD,
    Flow,
    Payment,
    Terms,
    capital_recovery_factor,
    declining_book,
    discounted,
    left_over,
    payment,
    period_in_years,
    rate_of_period,
    resale,
    straight_line_book,
    yearly_capital,
)
from tco.cost.ledger import CIRCULAR, COMMITMENTS, COMMITTED
from tco.cost.revenue import (
    break_even_utilisation,
    charged_share,
    matured_share,
    price_path,
    ramped_share,
    rent_income,
    share_after_stop,
    token_income,
)
from tco.cost.site import idle_draw

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.result import Result

ORDERED = ("servers", "storage", "network")  # classes of assets on which a deposit is asked
INCOME, DEBT = "income", "finance/debt"  # lines that no flow of the cost has
YEAR = 12  # months
LOWEST, HIGHEST = -0.99, 1e4  # yearly rates of return beyond which nobody asks
EXACT = 1e-10  # to which a rate of return is found


class Book(NamedTuple):
    """Book value of the equipment at the end of a year.

    `straight_line_usd` and `declining_usd` are the values by the two usual methods.
    """

    year: int
    straight_line_usd: float
    declining_usd: float


class Money(NamedTuple):
    """Payments by month and what follows from them. Money that comes in is negative."""

    npv_usd: float | None  # of what comes in less what goes out, before debt
    irr_per_year: float | None
    equity_irr_per_year: float | None  # with the debt
    # the first month by which everything is paid back, without interest
    payback_month: int | None
    # price of an hour that is let at which nothing is gained or lost
    break_even_usd_per_used_chip_hour: float
    break_even_usd_per_million_output_tokens: float | None
    break_even_utilisation: float | None  # at the price that is stated
    # of one of its chips, committed, at the scenario's date; none where nobody states one, or it is
    # circular
    market_rent_usd_per_chip_hour: float | None
    # the month by which that rent would have cost as much as owning has
    renting_costs_as_much_by_month: int | None
    delay_usd_per_rack_month: float | None  # of one more month to the first revenue
    working_capital_usd: float  # paid before the first month of operation
    carrying_usd: float  # interest on it until then
    payments: Hidden[list[Payment]]
    books: Hidden[list[Book]]
    notes: Hidden[list[str]]


def money_of(
    scenario_result: Result, catalogue: Catalogue, after: Result | None = None, swap: int = 0
) -> Money:
    """Return the payments of a result by month and their totals.

    From a month of operation on, the result may run as another variant of its system.

    Args:
        scenario_result: Result of the scenario.
        catalogue: Holds the system, the default terms and the market rent.
        after: Result of the variant after the swap; None without a swap.
        swap: Month of operation, the last month of the old parts.

    Returns:
        Payments in USD, expenses positive, and the figures that follow.

    Raises:
        DataError: The swap lies beyond the months of operation.

    """
    defaults = catalogue.document_inputs("defaults", "money", "money", "money")
    input_values = Values(lambda path: scenario_result.inputs.get(path) or defaults[path])
    chip = load_system(catalogue, scenario_result.system).chip
    return Project(
        scenario_result,
        input_values,
        chip,
        _market_rent(scenario_result, catalogue, chip),
        after,
        swap,
    ).money()


def _market_rent(scenario_result: Result, catalogue: Catalogue, chip: str) -> float | None:
    """Return the committed market rent of a chip in USD per chip-hour.

    The rent is that of the date of `scenario_result`. None where no rent is known, or where the
    only known rent follows from the cost of the chip itself.
    """
    rent_attribute = next(
        (
            rent_attribute
            for rent_attribute in COMMITMENTS[COMMITTED]
            if catalogue.has_part_value(chip, rent_attribute)
        ),
        None,
    )
    if rent_attribute is None:
        return None
    rent_input = catalogue.part_input(chip, rent_attribute, scenario_result.texts["terms.date"])
    return None if rent_input.source == CIRCULAR else rent_input.value


ENERGY = "site/energy"  # the line of which a part is paid by use


class Project:
    """A system that is bought, run for its life, and rented out or sold by the hour or token."""

    def __init__(
        self,
        scenario_result: Result,
        input_values: Values,
        chip: str,
        rent: float | None = None,
        after: Result | None = None,
        swap: int = 0,
    ) -> None:
        self.result = scenario_result
        self.values = input_values
        self.chip = chip
        self.market_rent = rent
        self.after, self.swap = after, swap
        self.flows = scenario_result.lines
        self.chips, self.rate = scenario_result.metrics["chips"], input_values["terms.rate"]
        self.terms = Terms(
            input_values, [asset for asset, path in RATES.items() if path in scenario_result.inputs]
        )
        self.months = _months(input_values[OPERATION])
        if after is not None and swap >= self.months:
            raise DataError(
                f"--swap: month {swap} lies beyond the {self.months} months the scale-up domain is "
                "run (terms.life)"
            )
        self.time = np.arange(1.0, self.months + 1)
        self.tokens = self.by_variant("output_tokens_per_s_per_chip")
        self.lead, self.ramp = round(input_values["money.lead_time"]), input_values["money.ramp"]
        self.up = self.by_variant("goodput")
        self.used = self.up * input_values["terms.utilisation"]

    def by_variant(self, metric: str) -> Any:
        """Return a metric in every month, before and after a swap; None where either has none."""
        old = self.result.metrics.get(metric)
        new = old if self.after is None else self.after.metrics.get(metric)
        return None if old is None or new is None else np.where(self.time > self.swap, new, old)

    def money(self) -> Money:
        """Return payments and everything that follows from them."""
        rent, price = self.values["money.rent"], self.values["money.token_price"]
        costs, income = list(self.costs(self.lead)), self.income(self.lead, rent, price)
        loan = list(self.loan(costs))
        notes, earns = [], bool(income)
        npv = irr = equity = back = delay = None
        if earns:
            npv = self.net(costs, income)
            irr = rate_of_return([*costs, *income])
            equity = rate_of_return([*costs, *income, *loan]) if loan else None
            back = payback([*costs, *income])
            month = self.lead + 1
            later = self.net(list(self.costs(month)), self.income(month, rent, price))
            delay = (npv - later) / float(self.result.metrics["racks"] or 1)
        else:
            notes.append(
                "nothing is rented out or sold, so there is no income: --set money.rent or "
                "money.token_price"
            )
        # both prices that pay it back are those at which income, linear in them, is as much
        present_cost = net_present_value(costs, self.rate)
        hour = -present_cost / net_present_value(self.income(self.lead, 1.0, 0.0), self.rate)
        tokens = (
            None
            if self.tokens is None
            else -present_cost / net_present_value(self.income(self.lead, 0.0, 1.0), self.rate)
        )
        utilisation = None
        # otherwise idle hours earn as well
        if rent > 0 and not self.values["money.take_or_pay"]:
            energy_costs = [cash_payment for cash_payment in costs if cash_payment.line == ENERGY]
            energy = hour * net_present_value(energy_costs, self.rate) / present_cost
            utilisation = self.break_even(hour, energy, rent)
        books = list(self.books())
        ordered = sorted([*costs, *income, *loan], key=lambda cash_payment: cash_payment.month)
        ahead = [
            cash_payment._replace(month=cash_payment.month - self.lead)
            for cash_payment in costs
            if cash_payment.month <= self.lead
        ]
        tied = float(sum(cash_payment.usd for cash_payment in ahead))
        carrying = net_present_value(ahead, self.rate) - tied
        return Money(
            npv,
            irr,
            equity,
            back,
            hour,
            tokens,
            utilisation,
            self.market_rent,
            self.turns(costs),
            delay,
            tied,
            carrying,
            ordered,
            books,
            notes,
        )

    def break_even(self, hour: float, energy: float, rent: float) -> float:
        """Return the utilisation at which a used hour costs its rent.

        The energy beyond the draw of idle racks is paid by use.
        """
        use = self.values["terms.utilisation"]
        power = self.result.metrics["it_power_w_per_chip"] * self.chips
        lines = self.result.bill.lines if self.result.bill else []
        chips = sum(float(line.power) for line in lines if line.part == self.chip)
        idle = idle_draw(
            chips, power, self.values["site.idle_chips"], self.values["site.idle_rest"]
        )
        by_use = energy * (1 - idle) * use / (idle + (1 - idle) * use)
        return float(break_even_utilisation((hour - by_use) * use, rent - by_use))

    # ---------------------------------------------------------------- what goes out
    def costs(self, lead: int) -> Iterator[Payment]:
        """Yield the payments for purchases, recurring costs and upgrades, by month.

        A purchase is paid when it is made. A recurring cost is paid from the first month of
        operation. Value left at the end of operation comes back then.
        """
        for flow in self.flows:
            if not flow.recurs:
                yield from self.purchases(flow, lead)
        last = self.months if self.after is None else self.swap
        yield from self.recurring(self.flows, lead, 1, last)
        if self.after is not None:
            yield from _upgrade_payments(self.result, self.after, lead + self.swap)
            yield from self.recurring(self.after.lines, lead, self.swap + 1, self.months)

    def recurring(
        self, flows: Iterable[Flow], lead: int, first: int, last: int
    ) -> Iterator[Payment]:
        """Yield the recurring payments from month `first` to month `last` of operation."""
        for flow in flows:
            if flow.recurs:
                period_payment = payment(flow.amount, flow.recurrence)
                months = range(flow.first_month, last + 1, flow.recurrence)
                yield from (
                    Payment(lead + month, period_payment, flow.path)
                    for month in months
                    if month >= first
                )

    def purchases(self, flow: Flow, lead: int) -> Iterator[Payment]:
        """Yield the payments for a purchase, its replacements and its resale.

        Classes of assets in `ORDERED` pay a deposit ahead of the first purchase. Value left at the
        end of operation comes back then.
        """
        life, month = _months(flow.life), 0
        share = self.values["money.deposit"] if flow.asset in ORDERED else 0.0
        if share:
            yield Payment(-round(self.values["money.deposit_lead"]), flow.amount * share, flow.path)
        while month < self.months:
            again = month > 0
            yield Payment(
                lead + month if again else 0,
                flow.amount if again else flow.amount * (1 - share),
                flow.path,
            )
            month += life
            if flow.asset in SOLD:
                yield Payment(lead + month, resale(flow.amount, flow.residual), flow.path)
        if month > self.months:
            interest, month_length = self.terms.monthly(self.terms.paths(flow.asset)[0])
            rest = capital_recovery_factor(
                interest, period_in_years(month - self.months), month_length
            )
            full_recovery = self.terms.recovery(flow.asset)
            yield Payment(
                lead + self.months, -left_over(flow.amount, full_recovery, rest), flow.path
            )

    def loan(self, costs: Iterable[Payment]) -> Iterator[Payment]:
        """Yield the loan on the purchases and its equal monthly repayments."""
        share = self.values["money.debt_share"]
        if not share:
            return
        principal = share * sum(
            cash_payment.usd for cash_payment in costs if cash_payment.month <= 0
        )
        term = self.values["money.debt_term"]
        interest = rate_of_period(self.values["money.debt_rate"], MONTHLY)
        monthly_repayment = payment(
            yearly_capital(
                principal, capital_recovery_factor(interest, term, period_in_years(MONTHLY))
            ),
            MONTHLY,
        )
        yield Payment(0, -principal, DEBT)
        yield from (
            Payment(month, monthly_repayment, DEBT) for month in range(1, _months(term) + 1)
        )

    # ---------------------------------------------------------------- what comes in
    def income(self, lead: int, rent: Any, price: Any) -> list[Payment]:
        """Return the monthly income from hours at `rent` and tokens at `price`.

        Income begins in the first month of operation, under a contract and after the contract.
        Amounts are negative. A prepayment moves a part of the contract income to month `lead`.
        """
        if rent <= 0 and (price <= 0 or self.tokens is None):
            return []
        share, left, fixed = self.shares(lead)
        amounts = np.zeros(self.months)
        if rent > 0:
            amounts = amounts + rent_income(rent, self.chips, share) * left
        if price > 0 and self.tokens is not None:
            mature = matured_share(
                self.time, self.values["money.maturity_start"], self.values["money.maturity_time"]
            )
            amounts = amounts + token_income(price, self.tokens, self.chips, share) * left * mature
        ahead = self.values["money.prepayment"] * amounts[:fixed]
        amounts[:fixed] -= ahead
        paid = [Payment(lead, -float(ahead.sum()), INCOME)] if fixed and ahead.any() else []
        return [
            *paid,
            *(
                Payment(lead + month, -amount, INCOME)
                for month, amount in enumerate(amounts.tolist(), start=1)
            ),
        ]

    def shares(self, lead: int) -> tuple[Any, Any, int]:
        """Return monthly shares of paid hours and of the remaining price, and contract months."""
        share = self.used * ramped_share(self.time, self.ramp)
        left = as_array(price_path(self.values["money.price_fall"], self.time + lead))
        fixed = min(_months(self.values["money.contract"]), self.months)
        least = self.up * self.values["money.take_or_pay"]
        share[:fixed], left[:fixed] = charged_share(share[:fixed], least[:fixed]), 1.0
        if self.after is not None:
            share[self.swap] = share[self.swap] * share_after_stop(self.values["money.swap_stop"])
        return share, left, fixed

    # ---------------------------------------------------------------- what follows
    def net(self, costs: list[Payment], income: list[Payment]) -> float:
        """Return the net present value of income less costs, in USD.

        The value is that at month 0.
        """
        return -net_present_value([*costs, *income], self.rate)

    def turns(self, costs: list[Payment]) -> int | None:
        """Return the first month by which renting would cost as much as owning, or None.

        Interest is left out.
        """
        if self.market_rent is None:
            return None
        hours = np.arange(1.0, self.months + 1)
        rented = rent_income(self.market_rent, self.chips, hours)
        owned = np.array(
            [
                sum(
                    cash_payment.usd
                    for cash_payment in costs
                    if cash_payment.month - self.lead <= month
                )
                for month in hours
            ]
        )
        months = np.flatnonzero(rented >= owned)
        return int(months[0]) + 1 if months.size else None

    def books(self) -> Iterator[Book]:
        """Yield the yearly book value of servers, storage and network by both usual methods."""
        price = sum(float(flow.amount) for flow in self.flows if flow.asset in ORDERED)
        residual, life = self.values["terms.residual"], self.values[OPERATION]
        for year in range(round(float(life)) + 1):
            even = float(straight_line_book(price, residual, float(year), life))
            yield Book(
                year,
                even,
                float(declining_book(price, self.values["money.declining"], float(year))),
            )


def _months(years: Any) -> int:
    return round(12 * float(years))


def by_month(payments: Sequence[Payment]) -> tuple[Any, Any]:
    """Return the months from the first payment to the last, and what is paid in each."""
    if not payments:
        return np.zeros(0), np.zeros(0)
    when = np.array([cash_payment.month for cash_payment in payments])
    paid = np.bincount(when - when.min(), [float(cash_payment.usd) for cash_payment in payments])
    return np.arange(float(when.min()), float(when.max()) + 1), paid


def net_present_value(payments: Sequence[Payment], rate: Any) -> float:
    """Return the present value of `payments` at month 0, in USD."""
    time, paid = by_month(payments)
    return float(as_array(discounted(paid, rate, time)).sum())


def rate_of_return(payments: Sequence[Payment]) -> float | None:
    """Return the yearly growth at which payments are worth nothing, or None without any.

    It has none where costs are never recovered, or where there are none.
    """
    time, paid = by_month(payments)

    def owed(growth: float) -> float:
        quoted = YEAR * ((1 + growth) ** (1 / YEAR) - 1)
        return float(as_array(discounted(paid, quoted, time)).sum())

    low, high = LOWEST, HIGHEST
    if not paid.size or owed(low) >= 0 or owed(high) <= 0:
        return None
    while high - low > EXACT * (1 + abs(low)):  # halving never leaves the bracket
        middle = (low + high) / 2
        low, high = (middle, high) if owed(middle) < 0 else (low, middle)
    return (low + high) / 2


def payback(payments: Sequence[Payment]) -> int | None:
    """Return the first month after which income covers all costs so far for good, or None."""
    time, paid = by_month(payments)
    owed = np.cumsum(paid)
    behind = np.flatnonzero(owed > 0)
    if behind.size and behind[-1] == owed.size - 1:
        return None
    return int(time[behind[-1] + 1]) if behind.size else int(time[0])


# ---------------------------------------------------------------- parts that change while it runs
FORM = re.compile(r"(?P<key>[\w-]+)=(?P<value>[^@=]+)@(?P<month>\d+)")


class SystemUpgrade(NamedTuple):
    """A variant of the system that stands from a month of operation on."""

    key: str
    value: str
    month: int  # of operation, the last of the old parts


def swap_of(swap_text: str) -> SystemUpgrade:
    """Return the swap that `KEY=VALUE@MONTH` names.

    Args:
        swap_text: A variant of the system and a month of operation from 1, such as
            `switch=gen2@24`.

    Raises:
        UsageError: The text has another form, or the month is 0.

    """
    swap_match = FORM.fullmatch(swap_text)
    if swap_match is None or not int(swap_match["month"]):
        raise UsageError(
            f"--swap {swap_text}: expected a variant and a month of operation, such as "
            "switch=gen2@24"
        )
    return SystemUpgrade(swap_match["key"], swap_match["value"], int(swap_match["month"]))


def _upgrade_payments(before: Result, after: Result, month: int) -> Iterator[Payment]:
    """Yield the payments for parts that the variant `after` adds, in `month`.

    Parts that are taken out have no resale value.
    """
    had = _priced_part_counts(before)
    prices = (
        {line.part: line.unit_price for line in after.bill.lines if line.unit_price is not None}
        if after.bill
        else {}
    )
    for part, count in _priced_part_counts(after).items():
        if part in prices and count > had.get(part, 0.0):
            yield Payment(month, prices[part] * (count - had.get(part, 0.0)), f"swap/{part}")


def _priced_part_counts(scenario_result: Result) -> dict[str, float]:
    lines = scenario_result.bill.lines if scenario_result.bill else []
    return sums_by_key((line.part, line.quantity) for line in lines if line.extended is not None)
