"""Interest and annuities agree with spreadsheet functions and with yearly cash flows."""

from __future__ import annotations

import pytest
import pyxirr
from hypothesis import given
from hypothesis import strategies as st

from tests.registry import FORMULA

RATES = st.floats(1e-4, 0.5)
YEARS = st.integers(1, 40)


@given(RATES, st.floats(0.5, 40))
def test_recovery_is_the_spreadsheet_payment(rate, life):
    assert FORMULA.capital_recovery_factor(rate, life) == pytest.approx(
        -pyxirr.pmt(rate, life, 1), rel=1e-9
    )


@given(RATES, YEARS, st.floats(1, 1e9), st.floats(0, 0.9))
def test_a_residual_is_the_future_value_of_the_payment(rate, life, price, residual):
    yearly = FORMULA.yearly_capital(
        price,
        FORMULA.capital_charge(
            FORMULA.capital_recovery_factor(rate, life),
            FORMULA.recoverable_share(residual, rate, life),
        ),
    )
    assert yearly == pytest.approx(-pyxirr.pmt(rate, life, price, -residual * price), rel=1e-8)


@given(RATES, YEARS, st.floats(0, 0.9))
def test_the_charges_pay_the_price_off(rate, life, residual):
    """Yearly charges with interest on the debt leave the residual at the end."""
    charge = FORMULA.capital_charge(
        FORMULA.capital_recovery_factor(rate, life), FORMULA.recoverable_share(residual, rate, life)
    )
    owed = 1.0
    for _ in range(life):
        owed = owed * (1 + rate) - charge
    assert owed == pytest.approx(residual, abs=1e-9 * (1 + rate) ** life)


@given(RATES, YEARS)
def test_the_interest_of_the_cash_flow_is_the_rate(rate, life):
    charge = FORMULA.capital_recovery_factor(rate, life)
    assert pyxirr.irr([-1.0, *[charge] * life]) == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("life", [1, 3, 5, 20])
def test_recovery_without_interest_is_one_over_the_life(life):
    assert FORMULA.capital_recovery_factor(0.0, life) == 1 / life


@given(st.floats(1e-10, 1e-5), YEARS)
def test_recovery_at_small_rates_nears_that_without_interest(rate, life):
    """CRF = 1/n (1 + r (n+1)/2 + ...) for small r: no jump, no loss of digits that shows."""
    assert FORMULA.capital_recovery_factor(rate, life) == pytest.approx(
        (1 + rate * (life + 1) / 2) / life, rel=2e-6
    )


@given(RATES)
def test_one_year_costs_the_price_and_its_interest(rate):
    assert FORMULA.capital_recovery_factor(rate, 1) == pytest.approx(1 + rate, rel=1e-9)


def test_a_chip_hour_of_a_year_of_hours():
    assert FORMULA.per_chip_hour(8760.0, 1) == 1
    assert FORMULA.per_chip_hour(2 * 8760.0 * 64, 64) == 2


def test_upkeep_is_a_share():
    assert FORMULA.yearly_upkeep(1e6, 0.05) == 50_000
