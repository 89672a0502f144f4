"""Money over time agrees with spreadsheet functions and published figures, and keeps invariants."""

from __future__ import annotations

from itertools import accumulate

import pytest
import pyxirr
from hypothesis import assume, given
from hypothesis import strategies as st

from tco import evaluate
from tco.comparison.cash_flow import net_present_value, payback, rate_of_return
from tco.cost.cash_flows import Payment
from tests.cli import document, tco
from tests.study_helpers import money_of

DEBT = "finance/debt"
INCOME = "income"

SYSTEM = "gb200-nvl72"
DEAL = {
    "money.rent": "3.3 USD/chip/h",
    "money.contract": "3 year",
    "money.prepayment": "0.25",
    "money.lead_time": "4 month",
    "money.ramp": "6 month",
    "money.price_fall": "0.2",
    "money.deposit": "0.2",
    "money.debt_share": "0.6",
    "money.debt_rate": "0.11",
}
GROWTH = (1 + 0.09 / 12) ** 12 - 1  # what 9 % a year, charged every month, come to in a year
AMOUNTS = st.lists(st.floats(-1e6, 1e6).filter(lambda usd: abs(usd) > 1), min_size=2, max_size=80)


def yearly(amounts: list[float]) -> list[Payment]:
    """Amounts a year apart, what comes in positive, as the sources of the figures have them."""
    return [Payment(12 * year, -amount, "x") for year, amount in enumerate(amounts)]


def money(catalogue, settings=None, workload="stated"):
    result = evaluate(SYSTEM, {"workload": workload, **(settings or {})}, catalogue=catalogue)
    return result, money_of(result, catalogue)


# ---------------------------------------------------------------- folds
@pytest.mark.parametrize(
    ("amounts", "rate"),
    [
        ([-100, 39, 59, 55, 20], 0.2809484),
        ([-250000, 100000, 150000, 200000, 250000, 300000], 0.5672303),
        ([-100, 110], 0.1),
        ([-100, 50], -0.5),
    ],
)
def test_rates_of_return_are_those_of_manuals(amounts, rate):
    assert rate_of_return(yearly(amounts)) == pytest.approx(rate, abs=1e-6)


@given(st.lists(st.floats(1, 1e3), min_size=6, max_size=80), st.floats(0.2, 0.99))
def test_rate_of_return_equals_a_spreadsheet(income, share):
    """A purchase for a share of its later income has one rate of return, monthly and yearly."""
    price = share * sum(income)
    monthly_return = pyxirr.irr([-price, *income])
    assume(monthly_return < 1)
    yearly_return = rate_of_return(
        [Payment(month, usd, "x") for month, usd in enumerate([price, *(-usd for usd in income)])]
    )
    assert yearly_return == pytest.approx((1 + monthly_return) ** 12 - 1, rel=1e-6)


@given(AMOUNTS, st.floats(0, 0.5))
def test_present_value_of_payments_equals_a_spreadsheet(amounts, rate):
    by_month = [Payment(month, usd, "x") for month, usd in enumerate(amounts)]
    expected = pyxirr.npv(rate / 12, amounts)
    assert net_present_value(by_month, rate) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("amounts", [[100.0, 50.0], [-100.0, -1.0], [0.0, 0.0]])
def test_no_rate_where_nothing_comes_back_or_nothing_is_paid(amounts):
    assert rate_of_return(yearly(amounts)) is None


@given(AMOUNTS)
def test_payback_is_the_month_after_which_nothing_is_owed(amounts):
    owed = list(accumulate(amounts))
    expected = next(
        (
            month
            for month in range(len(owed))
            if all(balance_usd <= 1e-9 for balance_usd in owed[month:])
        ),
        None,
    )
    payback_month = payback([Payment(month, usd, "x") for month, usd in enumerate(amounts)])
    if all(abs(balance_usd) > 1e-6 for balance_usd in owed):
        assert payback_month == expected


# ---------------------------------------------------------------- one world
@pytest.mark.parametrize(
    "lives",
    [
        {},
        {"terms.life_network": "3 year"},
        {"terms.life_network": "2 year", "terms.residual": "0.2"},
    ],
)
def test_present_value_of_payments_is_that_of_the_yearly_charges(lives, catalogue):
    """Assets with shorter lives are bought again, and what is left of them counts at the end."""
    result, cash_flow = money(catalogue, lives)
    rate, years = 0.09, 5
    capital = sum(line.usd_per_chip_hour for line in result.lines if not line.recurs) * 8760 * 72
    recurring = sum(line.amount for line in result.lines if line.recurs)
    expected = -pyxirr.pv(rate / 12, 12 * years, (capital + recurring) / 12)
    assert net_present_value(cash_flow.payments, rate) == pytest.approx(expected, rel=1e-9)


def test_an_hour_at_the_break_even_gains_nothing(catalogue):
    for settings in ({}, {**DEAL, "money.take_or_pay": "0.9"}):
        hour = money(catalogue, settings)[1].break_even_usd_per_used_chip_hour
        _, even = money(catalogue, {**settings, "money.rent": f"{hour!r} USD/chip/h"})
        paid = sum(abs(payment.usd) for payment in even.payments)
        assert even.npv_usd == pytest.approx(0, abs=1e-9 * paid)
        assert even.irr_per_year == pytest.approx(GROWTH, abs=1e-6)


def test_a_token_at_the_break_even_gains_nothing(catalogue):
    rate = {"workload.output_rate": "1000 token/s/chip", "money.price_fall": "0.3"}
    price = money(catalogue, rate)[1].break_even_usd_per_million_output_tokens
    _, even = money(catalogue, {**rate, "money.token_price": f"{price!r} USD/Mtoken"})
    assert even.irr_per_year == pytest.approx(GROWTH, abs=1e-6)
    assert (
        money(catalogue)[1].break_even_usd_per_million_output_tokens is None
    )  # nobody states how many there are


def test_owning_pays_from_the_break_even_utilisation(catalogue):
    even_utilisation = money(catalogue, {"money.rent": "3.3 USD/chip/h"})[1].break_even_utilisation
    _, even = money(
        catalogue, {"money.rent": "3.3 USD/chip/h", "terms.utilisation": repr(even_utilisation)}
    )
    assert even.irr_per_year == pytest.approx(GROWTH, abs=1e-6)


def test_delay_by_a_month_costs_the_difference_of_a_month(catalogue):
    _, now = money(catalogue, DEAL)
    _, later = money(catalogue, {**DEAL, "money.lead_time": "5 month"})
    assert now.delay_usd_per_rack_month == pytest.approx(now.npv_usd - later.npv_usd, rel=1e-9)
    assert now.delay_usd_per_rack_month > 0


def test_a_loan_is_repaid_as_a_spreadsheet_says(catalogue):
    result, cash_flow = money(catalogue, DEAL)
    bought = sum(line.usd for line in result.lines if line.usd is not None)
    loan = [payment.usd for payment in cash_flow.payments if payment.line == DEBT]
    assert loan[0] == pytest.approx(-0.6 * bought)
    assert loan[1:] == pytest.approx([-pyxirr.pmt(0.11 / 12, 48, 0.6 * bought)] * 48)
    _, without = money(catalogue, {**DEAL, "money.debt_share": "0"})
    assert (cash_flow.npv_usd, cash_flow.irr_per_year) == (
        without.npv_usd,
        without.irr_per_year,
    )  # of the project, whoever lends
    assert without.equity_irr_per_year is None
    # dear debt helps nobody
    assert (cash_flow.equity_irr_per_year > cash_flow.irr_per_year) == (
        cash_flow.irr_per_year > (1 + 0.11 / 12) ** 12 - 1
    )


def test_the_calendar_of_a_deal(catalogue):
    result, cash_flow = money(catalogue, DEAL)
    servers = sum(
        line.usd for line in result.lines if line.asset in ("servers", "storage", "network")
    )
    assert sum(
        payment.usd for payment in cash_flow.payments if payment.month == -6
    ) == pytest.approx(0.2 * servers)
    income = {
        payment.month: -payment.usd
        for payment in cash_flow.payments
        if payment.line == INCOME and payment.month > 4
    }
    assert min(income) == 5
    assert max(income) == 64
    full = 3.3 * 72 * 730 * result.metrics["goodput"] * 0.8
    assert income[5] == pytest.approx(full / 6 * 0.75)
    # the contract's last month, a quarter of it paid ahead
    assert income[40] == pytest.approx(full * 0.75)
    assert income[41] == pytest.approx(full * 0.8 ** (41 / 12))
    ahead = next(
        -payment.usd
        for payment in cash_flow.payments
        if payment.line == INCOME and payment.month == 4
    )
    assert ahead == pytest.approx(sum(income[month] for month in range(5, 41)) / 3)
    least = money(catalogue, {**DEAL, "money.take_or_pay": "1"})[1]
    assert min(
        -payment.usd
        for payment in least.payments
        if payment.line == INCOME and 4 < payment.month <= 40
    ) == pytest.approx(full / 0.8 * 0.75)


@pytest.mark.parametrize("lead", [0, 4, 9])
def test_renting_costs_as_much_once_its_months_come_to_what_is_paid_by_then(catalogue, lead):
    """Months of rent have 730 hours; owning counts payments by month of operation."""
    _, cash_flow = money(catalogue, {"money.lead_time": f"{lead} month"})
    owned = [payment for payment in cash_flow.payments if payment.line not in (INCOME, DEBT)]
    month = cash_flow.renting_costs_as_much_by_month
    by_month = [
        sum(payment.usd for payment in owned if payment.month <= lead + last) for last in range(60)
    ]
    rented = [cash_flow.market_rent_usd_per_chip_hour * 72 * 730 * last for last in range(60)]
    assert rented[month] >= by_month[month]
    assert rented[month - 1] < by_month[month - 1]
    assert 12 < month < 60


def test_books_fall_to_the_residual(catalogue):
    _, cash_flow = money(catalogue, {"terms.residual": "0.1"})
    first, last = cash_flow.books[0], cash_flow.books[-1]
    assert first.straight_line_usd == first.declining_usd
    assert last.straight_line_usd == pytest.approx(0.1 * first.straight_line_usd)
    assert [book.declining_usd / first.declining_usd for book in cash_flow.books] == pytest.approx(
        [0.6**year for year in range(6)]
    )


def test_chip_hour_does_not_depend_on_the_deal(catalogue):
    assert money(catalogue, DEAL)[0].metrics == money(catalogue)[0].metrics


# ---------------------------------------------------------------- what changes while it runs
TOKENS = {"workload.output_rate": "1000 token/s/chip", "money.token_price": "1 USD/Mtoken"}


def income_of(cash_flow):
    return {payment.month: -payment.usd for payment in cash_flow.payments if payment.line == INCOME}


def test_income_of_tokens_follows_the_maturity_of_software(catalogue):
    """Income of tokens starts at 43 of 60 % and rises linearly to the mature rate.

    The seeds state 43 % on day 0 where kernels by hand reach 60 %. A rent does not depend on
    it.
    """
    plain = income_of(money(catalogue, TOKENS)[1])
    young = {**TOKENS, "money.maturity_start": "0.7167", "money.maturity_time": "12 month"}
    grown = income_of(money(catalogue, young)[1])
    for month in (1, 6, 12, 40):
        assert grown[month] == pytest.approx(
            plain[month] * (0.7167 + 0.2833 * min(month / 12, 1)), rel=1e-12
        )
    assert (
        money(catalogue, young)[1].break_even_usd_per_million_output_tokens
        > money(catalogue, TOKENS)[1].break_even_usd_per_million_output_tokens
    )
    rent = {"money.rent": "3.3 USD/chip/h"}
    assert (
        money(catalogue, {**rent, "money.maturity_start": "0.5"})[1].npv_usd
        == money(catalogue, rent)[1].npv_usd
    )


def test_what_is_paid_before_the_first_revenue_bears_interest(catalogue):
    result, cash_flow = money(catalogue, DEAL)
    early = {payment.month: 0.0 for payment in cash_flow.payments if payment.month <= 4}
    for payment in cash_flow.payments:
        if payment.month <= 4 and payment.line not in (INCOME, DEBT):
            early[payment.month] += payment.usd
    assert cash_flow.working_capital_usd == pytest.approx(sum(early.values()))
    assert cash_flow.working_capital_usd == pytest.approx(
        sum(line.usd for line in result.lines if line.usd is not None)
    )
    assert cash_flow.carrying_usd == pytest.approx(
        sum(usd * ((1 + 0.09 / 12) ** (4 - month) - 1) for month, usd in early.items())
    )
    assert money(catalogue)[1].carrying_usd == 0


def swapped(catalogue, month=24, key="switch", value="gen2", **settings):
    base_settings = {
        "workload": "stated",
        **TOKENS,
        **{path.replace("__", "."): text for path, text in settings.items()},
    }
    before = evaluate("trn3-nl72x2", base_settings, catalogue=catalogue)
    after = evaluate("trn3-nl72x2", base_settings, catalogue=catalogue, variant={key: value})
    return before, after, money_of(before, catalogue, after, month)


def test_swap_of_switches_is_paid_and_stops_the_racks(catalogue):
    """40 switches of 320 lanes are bought in month 24.

    The racks stop for three days, and run as the new variant after.
    """
    before, after, cash_flow = swapped(catalogue)
    spent = [payment for payment in cash_flow.payments if payment.line.startswith("swap/")]
    new = next(line for line in after.bill.lines if line.part == "scorpio-x-320")
    assert [(payment.month, payment.line, payment.usd) for payment in spent] == [
        (24, "swap/scorpio-x-320", pytest.approx(40 * new.unit_price))
    ]
    income = income_of(cash_flow)
    up, full = (
        [result.metrics["goodput"] for result in (before, after)],
        1000 * 144 * 730 * 3600 * 0.8 / 1e6,
    )
    assert income[24] == pytest.approx(full * up[0])
    assert income[25] == pytest.approx(full * up[1] * (1 - 72 / 730))
    assert income[26] == pytest.approx(full * up[1])
    energy = {
        payment.month: payment.usd
        for payment in cash_flow.payments
        if payment.line == "site/energy"
    }
    assert energy[24] / energy[25] == pytest.approx(
        before.metrics["energy_usd_per_chip_hour"] / after.metrics["energy_usd_per_chip_hour"]
    )
    assert len(energy) == 60


def test_a_swap_that_changes_nothing_costs_its_stop(catalogue):
    before, _, cash_flow = swapped(catalogue, 12, "switch", "gen1", money__swap_stop="0 h")
    assert cash_flow.payments == money_of(before, catalogue).payments
    assert swapped(catalogue, 12, "switch", "gen1")[2].npv_usd < cash_flow.npv_usd


@pytest.mark.parametrize(
    ("swap", "code", "message"),
    [
        ("switch=gen2", 2, "expected a variant and a month of operation, such as switch=gen2@24"),
        ("switch=gen2@0", 2, "expected a variant and a month"),
        ("switch=gen9@24", 3, "unknown variant switch of trn3-nl72x2 'gen9'"),
        ("switches=gen2@24", 3, "did you mean 'switch'"),
        ("switch=gen2@60", 3, "lies beyond the 60 months"),
    ],
)
def test_bad_swaps_are_refused(swap, code, message):
    done = tco("price", "trn3-nl72x2", "--cash-flow", "--swap", swap, "--set", "workload=stated")
    assert done.exit_code == code
    assert message in done.stderr


def test_a_swap_is_of_the_money_by_month():
    done = tco("price", "trn3-nl72x2", "--swap", "switch=gen2@24")
    assert done.exit_code == 2
    assert "add --cash-flow" in done.stderr


# ---------------------------------------------------------------- as a user asks
def test_command_prints_the_results_of_the_deal():
    plain = document("price", SYSTEM, "--cash-flow")
    assert plain["money"]["npv_usd"] is None
    assert plain["money_notes"]
    assert plain["money"]["break_even_usd_per_used_chip_hour"] == pytest.approx(
        plain["metrics"]["tco_usd_per_used_chip_hour"], rel=0.05
    )
    settings = [word for path, value in DEAL.items() for word in ("--set", f"{path}={value}")]
    done = tco("price", SYSTEM, "--cash-flow", *settings)
    for words in (
        "internal rate of return",
        "paid back by month",
        "debt",
        "A month's delay costs",
        "-11-0",
    ):
        assert words in done.stdout
    assert "nothing in this scenario rests on it" not in done.stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("money.rnt=1 USD/chip/h", "did you mean 'money.rent'"),
        ("money.rent=1 USD", "expected 'USD/chip/h'"),
        ("money.deposit=2", "is outside 0 to 1"),
        ("money.lead_time=-1 month", "is outside"),
    ],
)
def test_bad_terms_of_money_are_refused(setting, message):
    done = tco("price", SYSTEM, "--cash-flow", "--set", setting)
    assert done.exit_code == 3
    assert message in done.stderr
