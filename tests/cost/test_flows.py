"""Annuity, chip-hour and monthly payments of a flow agree with each other and a spreadsheet."""

from __future__ import annotations

import pytest
import pyxirr
from hypothesis import given
from hypothesis import strategies as st

from tco import evaluate
from tco.cost.cash_flows import Flow, Payment, Terms, chip_hour, payments, yearly_charge
from tests.cli import document, tco
from tests.scenario_helpers import Input, Values

RATES = st.floats(1e-4, 0.5)
YEARS = st.integers(1, 30)
ASSETS = ("servers", "storage", "network", "cooling", "building", "rebate")


def terms(rate: float = 0.09, life: float = 5, residual: float = 0.1, **more: float) -> Terms:
    """Terms as a document would state them."""
    stated = {
        "rate": rate,
        "life": life,
        "residual": residual,
        "life_network": life,
        "life_building": life,
        "chips": 1.0,
    } | more
    return Terms(Values(lambda path: Input(path, stated[path.partition(".")[2]], "")))


def bought(of: Terms, asset: str, price: float) -> Flow:
    return of.purchase("it/part", asset, price, "vendor", ("a",), ("parts.part.price",))


def present_value(paid: list[Payment], rate: float) -> float:
    """Return the value of payments at month 0, at a rate as loans quote it."""
    return sum(payment.usd / (1 + rate / 12) ** payment.month for payment in paid)


# ---------------------------------------------------------------- purchases
@given(
    st.sampled_from(ASSETS),
    RATES,
    YEARS,
    st.floats(0, 0.9),
    st.floats(-1e9, 1e9).filter(lambda price: abs(price) > 1),
)
def test_present_value_of_payments_is_that_of_the_annuity(asset, rate, life, residual, price):
    """Sum of the discounted flows = present value of the charges, month by month, over the life."""
    of = terms(rate, life, residual)
    flow = bought(of, asset, price)
    annuity = -pyxirr.pv(rate / 12, 12 * life, yearly_charge(flow, of) / 12)
    assert present_value(payments(flow), rate) == pytest.approx(annuity, rel=1e-9)


@given(st.sampled_from(ASSETS), RATES, YEARS, st.floats(0, 0.9))
def test_cash_of_a_purchase_equals_a_spreadsheet(asset, rate, life, residual):
    of = terms(rate, life, residual)
    by_year = [0.0] * (life + 1)
    for payment in payments(bought(of, asset, 1e6)):
        assert payment.month % 12 == 0
        by_year[payment.month // 12] += payment.usd
    assert by_year[0] == 1e6
    assert present_value(payments(bought(of, asset, 1e6)), rate) == pytest.approx(
        pyxirr.npv((1 + rate / 12) ** 12 - 1, by_year), rel=1e-9
    )


def test_each_class_has_its_own_life_and_residual():
    of = terms(0.09, 5, 0.1, life_network=7, life_building=20)
    months = {
        asset: [payment.month for payment in payments(bought(of, asset, 1.0))] for asset in ASSETS
    }
    assert months == {
        "servers": [0, 60],
        "storage": [0, 60],
        "network": [0],
        "cooling": [0],
        "building": [0],
        "rebate": [0],
    }
    for asset, life in (("network", 7), ("building", 20), ("cooling", 5), ("rebate", 5)):
        assert of.charge(asset) == pytest.approx(
            -12 * pyxirr.pmt(0.09 / 12, 12 * life, 1.0), rel=1e-12
        )
    assert of.charge("servers") < of.charge("cooling")
    assert of.charge("servers") is of.charge("storage")  # once for a class


def test_rebate_is_a_payment_received():
    of = terms()
    flow = bought(of, "rebate", -100.0)
    assert [payment.usd for payment in payments(flow)] == [-100.0]
    assert chip_hour(flow, of, 1.0) == -chip_hour(bought(of, "rebate", 100.0), of, 1.0)


@given(st.sampled_from(ASSETS), RATES, YEARS, st.floats(0, 0.9))
def test_monthly_annuity_equals_a_spreadsheet(asset, rate, life, residual):
    """Twelve payments a year at a twelfth of the rate, as loans are quoted."""
    of = terms(rate, life, residual)
    left = -residual if asset in ("servers", "storage") else 0.0
    assert yearly_charge(bought(of, asset, 1.0), of) == pytest.approx(
        -12 * pyxirr.pmt(rate / 12, 12 * life, 1.0, left), rel=1e-8
    )


def test_a_class_may_be_financed_at_a_rate_of_its_own():
    stated = terms(0.09, 5, life_building=20, rate_building=0.0658)
    of, alike = Terms(stated.values, {"building"}), stated
    assert of.charge("building") == pytest.approx(
        -12 * pyxirr.pmt(0.0658 / 12, 240, 1.0), rel=1e-12
    )
    assert alike.charge("building") == pytest.approx(
        -12 * pyxirr.pmt(0.09 / 12, 240, 1.0), rel=1e-12
    )
    assert of.charge("network") == alike.charge("network")
    assert of.paths("building") == ("terms.rate_building", "terms.life_building")


# ---------------------------------------------------------------- what recurs
@given(RATES, YEARS, st.sampled_from([1, 3, 6, 12]))
def test_value_of_recurring_cost_equals_a_spreadsheet(rate, life, interval):
    of = terms(rate, life)
    flow = of.recurring("site/energy", "energy", 1200.0, ("terms.chips",))._replace(
        recurrence=interval, first_month=interval
    )
    paid = payments(flow)
    assert [payment.month for payment in paid] == list(range(interval, 12 * life + 1, interval))
    assert sum(payment.usd for payment in paid) == pytest.approx(1200.0 * life)
    interval_rate = (1 + rate / 12) ** interval - 1
    assert present_value(paid, rate) == pytest.approx(
        -pyxirr.pv(interval_rate, len(paid), 100.0 * interval), rel=1e-9
    )
    if interval == 1:  # as what repays a purchase is paid
        assert present_value(paid, rate) == pytest.approx(
            -pyxirr.pv(rate / 12, 12 * life, yearly_charge(flow, of) / 12), rel=1e-9
        )


# ---------------------------------------------------------------- a whole scenario
@pytest.fixture(scope="module")
def lines(catalogue):
    return evaluate(
        "trn3-nl72x2", catalogue=catalogue, set={"terms.residual": "0.1", "terms.life": "5 year"}
    ).lines


def test_the_cash_flow_of_a_scenario(lines):
    paid = [payment for line in lines for payment in payments(line)]
    bought = sum(line.usd for line in lines if line.usd is not None)
    assert sum(payment.usd for payment in paid if payment.month <= 0) == pytest.approx(
        bought, rel=1e-12
    )
    recurring = {line.path: line for line in lines if line.usd is None}
    for month in range(1, 60):
        now = {payment.line: payment.usd for payment in paid if payment.month == month}
        assert now.keys() == recurring.keys()
    assert {payment.line for payment in paid} == {line.path for line in lines}
    assert max(payment.month for payment in paid) == 60
    back = [payment for payment in paid if payment.usd < 0 and payment.month == 60]
    assert sum(payment.usd for payment in back) == pytest.approx(
        -0.1 * sum(line.usd for line in lines if line.asset in ("servers", "storage"))
    )


def test_line_names_its_inputs(lines):
    chip = next(line for line in lines if line.path.endswith("/trn3"))
    assert "parts.trn3.wafer_price" in chip.inputs
    assert all(line.inputs for line in lines)
    assert all(line.kind and line.sources for line in lines)


def test_the_command_shows_the_payments():
    price_document = document("price", "gb200-nvl72", "--cash-flow")
    paid = price_document["cash_flow"]
    assert sum(payment["usd"] for payment in paid if payment["month"] <= 0) == pytest.approx(
        sum(line["usd"] or 0 for line in price_document["lines"]), rel=1e-12
    )
    assert "cash_flow" not in document("price", "gb200-nvl72")
    rows = tco("price", "gb200-nvl72", "--cash-flow", "--format", "csv").stdout.splitlines()
    assert rows[0] == "month,usd,line,scenario,system,date,site,set"
    assert len(rows) == 1 + len(paid)
    table = tco("price", "gb200-nvl72", "--cash-flow").stdout
    assert "49-60" in table
    assert "so far" in table


@pytest.mark.parametrize(
    ("settings", "left"),
    [({}, 0.725**5), ({"terms.life": "3 year"}, 0.725**3), ({"terms.residual": "0.1"}, 0.1)],
)
def test_residual_follows_from_the_age_unless_it_is_set(catalogue, settings, left):
    """The residual lowers the chip-hour and comes back in the payments, under terms with resale."""
    resale_result = evaluate(
        "gb200-nvl72",
        {"terms": "hyperscaler-resale-2025-12", "workload": "stated", **settings},
        catalogue=catalogue,
    )
    sold = [line for line in resale_result.lines if line.asset in ("servers", "storage")]
    assert [flow.residual for flow in sold] == pytest.approx([left] * len(sold), rel=1e-12)
    back = -sum(payment.usd for flow in sold for payment in payments(flow) if payment.month > 0)
    assert back == pytest.approx(left * sum(flow.amount for flow in sold), rel=1e-12)
    usual = evaluate(
        "gb200-nvl72",
        {"workload": "stated", **settings, "terms.residual": "0"},
        catalogue=catalogue,
    )
    assert resale_result.metrics["tco_usd_per_chip_hour"] < usual.metrics["tco_usd_per_chip_hour"]
