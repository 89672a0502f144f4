"""Rebates by warrants: figures of filings, and the rules that keep them honest."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco import DataError, evaluate
from tco.cost.ownership import in_force_for
from tests.catalogue import DATA, read_csv
from tests.cli import tco
from tests.registry import FORMULA
from tests.scenario_helpers import DECEMBER, HEADLINE, bill_of, load_agreement, result
from tests.study_helpers import P95, beliefs_of

COLUMNS = ("value", "unit", "low", "high", "as_of", "kind", "source", "note")

PRICES = st.floats(1, 1000)


def test_credo_gave_back_more_than_was_paid():
    """Credo's warrant returned 325.57 % of the purchases.

    4.08 million shares struck at 10.74 were worth 171.13 USD each on 1 December 2025, against
    purchases of 201 million USD.
    """
    assert FORMULA.warrant_rebate_on_spend(
        201e6, 4.08e6, 171.13, 10.74, 201e6, 0
    ) / 201e6 == pytest.approx(3.2557, rel=1e-4)


def test_amd_gives_26_7_million_shares_a_gigawatt():
    """160 million shares over six gigawatts, struck at a cent."""
    assert FORMULA.warrant_rebate_on_power(1e9, 160e6, 1.01, 0.01, 6e9, 0, 1) == pytest.approx(
        26.7e6, rel=0.002
    )


@given(PRICES, PRICES, st.floats(0, 1))
def test_warrant_below_its_strike_is_worth_nothing(price, strike, vested):
    value = FORMULA.warrant_rebate_on_spend(1e6, 1e5, price, strike, 1e9, vested)
    assert value >= 0
    assert (value == 0) == (price <= strike or vested == 1)


@given(PRICES, PRICES)
def test_vested_shares_give_no_further_rebate(price, strike):
    assert FORMULA.warrant_rebate_on_spend(1e6, 1e5, price, strike, 1e9, 1.0) == 0
    assert FORMULA.warrant_rebate_on_power(1e6, 1e5, price, strike, 1e9, 1.0, 1.0) == 0


@given(PRICES, st.floats(0, 2), st.floats(1e6, 1e10), st.floats(1e4, 1e8))
def test_discount_at_the_share_price_of_a_rebate_is_that_rebate(strike, share, spend, shares):
    price = strike + share * spend / shares
    assert FORMULA.warrant_discount(
        FORMULA.intrinsic_value(price, strike), shares, spend
    ) == pytest.approx(share, rel=1e-6, abs=1e-12 * shares * strike / spend + 1e-15)


@given(
    st.floats(10, 500), st.floats(10, 500), st.floats(0, 0.1), st.floats(0.1, 1), st.floats(0.1, 10)
)
def test_an_option_is_worth_its_bounds(price, strike, rate, volatility, life):
    """No less than exercising at the end for certain, no more than the share."""
    value = FORMULA.black_scholes_call(price, strike, rate, volatility, life)
    assert (
        max(price - strike * math.exp(-rate * life), 0) - 1e-9 * price
        <= value
        <= price * (1 + 1e-12)
    )


@given(st.floats(10, 500), st.floats(10, 500), st.floats(0.1, 0.9), st.floats(0.2, 8))
def test_option_on_a_more_volatile_share_is_dearer(price, strike, volatility, life):
    assert (
        FORMULA.black_scholes_call(price, strike, 0.03, volatility + 0.05, life)
        >= FORMULA.black_scholes_call(price, strike, 0.03, volatility, life) - 1e-12 * price
    )


def test_value_of_a_grant_is_that_of_its_filing(catalogue):
    """The grant is worth at most 280 million USD at its date.

    It is of 3,262,299 shares at a strike of 142.82 USD, the market's price of that day.
    """
    document = catalogue.document("rebates", "astera-2026", "rebate")[1]
    volatility, rate, life = (
        document[name]["value"] for name in ("volatility", "riskless_rate", "life")
    )
    assert 3_262_299 * FORMULA.black_scholes_call(
        142.82, 142.82, rate, volatility, life
    ) == pytest.approx(280e6, rel=0.1)


@pytest.mark.parametrize(
    ("date", "holds"),
    [
        ("2022-10-13", False),
        ("2022-10-14", True),
        ("2022-10", True),
        ("2025-12", True),
        ("2026-02-04", True),
        ("2026-02-05", False),
        ("2027", False),
    ],
)
def test_an_agreement_holds_from_its_first_to_its_last_day(catalogue, date, holds):
    assert load_agreement(catalogue, "astera-2022").in_force(date) is holds


def test_agreements_of_one_supplier_and_holder_never_overlap(catalogue):
    """No purchase earns twice."""
    agreements = [load_agreement(catalogue, name) for name in catalogue.ids("rebates")]
    for agreement in agreements:
        for other_agreement in agreements:
            if agreement is not other_agreement and (agreement.supplier, agreement.holder) == (
                other_agreement.supplier,
                other_agreement.holder,
            ):
                assert (
                    agreement.ends < other_agreement.begins
                    or other_agreement.ends < agreement.begins
                ), (agreement.id, other_agreement.id)


@pytest.mark.parametrize("name", HEADLINE)
def test_a_rebate_is_a_line_of_its_own(name):
    """Part prices are gross: what comes back stands beside them and nowhere else."""
    rack_result = result(name)
    given_back = sum(rebate.value for rebate in rack_result.rebates)
    assert rack_result.metrics["rebate_usd_per_chip"] == pytest.approx(
        given_back / rack_result.metrics["chips"], rel=1e-12
    )
    assert sum(line.usd for line in rack_result.lines if line.asset == "rebate") == pytest.approx(
        -given_back, rel=1e-12
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [("supplier", "the key 'supplier' is missing"), ("kind", "the key 'kind' is missing")],
)
def test_broken_agreement_is_refused(own_data, key, message):
    text = (
        "\n".join(
            f'{name} = "x"'
            for name in ("supplier", "holder", "kind", "company", "from", "until")
            if name != key
        )
        + "\nparts = []\n"
    )
    path = own_data.write("rebates/mine.toml", text)
    with pytest.raises(DataError, match=message) as caught:
        load_agreement(own_data.catalogue(), "mine")
    assert str(caught.value).startswith(str(path))


def test_unknown_kind_of_agreement_is_refused(own_data):
    text = (
        "\n".join(
            f'{name} = "warrant-spent"'
            for name in ("supplier", "holder", "kind", "company", "from", "until")
        )
        + "\nparts = []\n"
    )
    own_data.write("rebates/mine.toml", text)
    with pytest.raises(
        DataError, match="unknown kind of rebate 'warrant-spent'; did you mean 'warrant-spend'"
    ):
        load_agreement(own_data.catalogue(), "mine")


@given(st.floats(0, 1), st.floats(0, 2))
def test_each_dollar_vests_the_same_until_all_shares_have_vested(vested, bought):
    """Shares vested before take nothing from the next dollar while enough shares are left."""
    rebate = FORMULA.warrant_rebate_on_spend(bought * 1e9, 1e6, 30.0, 10.0, 1e9, vested)
    assert rebate == pytest.approx(20e6 * min(bought, 1 - vested), rel=1e-12, abs=1e-6)


def test_rebate_as_a_share_of_spend_follows_the_share_price():
    """A rebate of 23 % at 210 USD per share is 15.6 % at 148.85 USD and nothing below 20.34.

    The share that a dollar vests is fixed; 20.34 USD is the strike, 148.85 USD the price of 12
    December 2025.
    """
    assert FORMULA.warrant_rebate_by_share(1.0, 0.23, 210, 20.34, 210) == pytest.approx(0.23)
    assert FORMULA.warrant_rebate_by_share(1.0, 0.23, 148.85, 20.34, 210) == pytest.approx(
        0.156, abs=5e-4
    )
    assert FORMULA.warrant_rebate_by_share(1.0, 0.23, 15.0, 20.34, 210) == 0
    rack_result = evaluate("trn3-nl72x2", DECEMBER)
    (rebate,) = (
        rack_rebate
        for rack_rebate in rack_result.rebates
        if rack_rebate.path == "rebates.astera-2022"
    )
    assert rebate.value / rebate.spend == pytest.approx(0.156, abs=5e-4)


def test_range_of_amds_warrant_holds_both_readings_of_2025(catalogue):
    """The rebate is 31 % of the accelerators' cost by book value and below 5 % of revenue by AMD.

    The first takes the grant's book value at today's share price, the second what AMD expects
    to book.
    """
    low, high = (
        evaluate(
            "mi450x-ualoe72",
            DECEMBER | {"terms.owner": "OpenAI", "rebates.amd-openai.reachable": share},
            catalogue=catalogue,
        )
        for share in ("0.11", "1")
    )
    shares = [
        rack_result.rebates[0].value / rack_result.rebates[0].spend for rack_result in (low, high)
    ]
    assert shares[0] < 0.06
    assert shares[1] > 0.3


def test_two_agreements_of_one_supplier_at_once_are_refused(catalogue):
    agreement = load_agreement(catalogue, "astera-2022")
    with pytest.raises(
        DataError,
        match="astera-2022 and again of Astera Labs are both in force at 2025-12; no purchase "
        "earns twice",
    ):
        in_force_for([agreement, agreement._replace(id="again")], "Amazon", "2025-12")
    assert in_force_for([agreement, agreement._replace(id="again")], "Google", "2025-12") == []


@pytest.mark.parametrize(
    ("path", "value"),
    [("rebates.credo-2021.vested", "0"), ("rebates.astera-2022.reference_price", "21 USD/share")],
)
def test_a_rebate_above_what_is_paid_is_noted(catalogue, path, value):
    agreement = path.rpartition(".")[0]
    words = re.compile(
        rf"^{agreement}: .* USD come back on .* USD paid for the parts it covers, "
        r"\d+ % of it at share price of \w+ .* USD$"
    )
    for ask in (
        evaluate,
        lambda name, settings, catalogue: bill_of(name, settings, catalogue=catalogue),
    ):
        notes = ask("trn3-nl72x2", DECEMBER | {path: value}, catalogue=catalogue).notes
        assert len([note for note in notes if words.match(note)]) == 1


@pytest.mark.parametrize("price", [633.91, 700, 5000])
def test_a_share_price_above_all_hurdles_is_one_line_and_leaves_other_columns(price):
    settings = ("--set", "terms.owner=OpenAI", "--set", f"shares.amd.price={price} USD/share")
    done = tco("compare", "gb200-nvl72", "mi450x-ualoe72", "--no-range", *settings)
    assert done.exit_code == 0
    assert len([line for line in done.stderr.splitlines() if "come back on" in line]) == 1
    assert "gb200-nvl72" in done.stdout


# ---------------------------------------------------------------- hurdles of share price
@pytest.mark.parametrize(
    ("date", "highest", "reached"),
    [
        ("2025-10-06", 203.71, 203.71 / 600),
        ("2025-12", 256.12, 256.12 / 600),
        ("2026-07", 537.37, 537.37 / 600),
        ("2026-09-21", 615.52, 1),
        ("2026-11", 633.91, 1),
    ],
)
def test_hurdles_follow_the_highest_price_of_the_series_by_the_date(
    catalogue, date, highest, reached
):
    reachable_share = catalogue.reachable("amd-openai", date)
    assert reachable_share.value == pytest.approx(reached, rel=1e-12)
    assert f"{highest:,.2f} USD" in reachable_share.note
    assert (reachable_share.low is None) == (reached == 1)
    if reached < 1:
        assert reachable_share.low == pytest.approx(reached**2.5)
        assert reachable_share.high == pytest.approx(reached**0.2)


def test_hurdles_once_reached_stay_reached(catalogue):
    """The share fell from 537 in June to 476 in August."""
    assert (
        catalogue.reachable("amd-openai", "2026-08").value
        == catalogue.reachable("amd-openai", "2026-06").value
    )


def test_warrant_past_its_last_hurdle_has_the_value_of_semianalysis(catalogue):
    """At 600 USD 16.0 billion a gigawatt, 105 % of the 15.2 billion that OpenAI pays AMD."""
    gigawatt = FORMULA.warrant_rebate_on_power(
        1e9, 160e6, 600, 0.01, 6e9, 0, catalogue.reachable("amd-openai", "2026-11").value
    )
    assert gigawatt / 1e9 == pytest.approx(16.0, rel=0.001)
    assert gigawatt / 15.2e9 == pytest.approx(1.05, abs=0.005)
    rack_result = evaluate(
        "mi450x-ualoe72",
        {"terms.owner": "OpenAI", "shares.amd.price": "600 USD/share"},
        catalogue=catalogue,
    )
    assert rack_result.rebates[0].value / rack_result.rebates[0].spend == pytest.approx(
        1.05, rel=0.05
    )


def test_an_agreement_without_hurdles_states_what_is_reachable(own_data, catalogue):
    text = (catalogue.folders[0] / "rebates" / "amd-openai.toml").read_text(encoding="utf-8")
    remaining_lines = [
        line for line in text.splitlines() if not line.startswith(("last_hurdle", "hurdle_steps"))
    ]
    stated = (
        'reachable = { value = 0.25, unit = "", low = 0.1, high = 0.5, as_of = "2026-11", '
        'kind = "estimate", source = "tco-model" }'
    )
    own_data.write("rebates/amd-openai.toml", "\n".join([*remaining_lines, stated]) + "\n")
    rack_result = evaluate(
        "mi450x-ualoe72", {"terms.owner": "OpenAI"}, catalogue=own_data.catalogue()
    )
    assert rack_result.inputs["rebates.amd-openai.reachable"].value == 0.25


# ---------------------------------------------------------------- agreements that are no discount
def test_investment_in_a_buyer_is_listed_and_gives_no_rebate(catalogue):
    rack_result = evaluate("mi450x-ualoe72", {"terms.owner": "Anthropic"}, catalogue=catalogue)
    assert rack_result.rebates == []
    assert rack_result.metrics["rebate_usd_per_chip"] == 0
    assert (
        "amd-anthropic: AMD invests in Anthropic for shares; no discount, not counted"
        in rack_result.notes
    )


def test_metas_warrant_covers_its_own_smaller_chip(catalogue):
    rack_result = evaluate("mi450x-ualoe72", {"terms.owner": "Meta"}, catalogue=catalogue)
    assert rack_result.metrics["rebate_usd_per_chip"] == 0
    assert load_agreement(catalogue, "amd-meta").parts == ("mi455x-meta",)


def test_range_of_share_prices_follows_from_their_volatility_until_vesting(catalogue):
    """P5 and P95 of every row are P exp(-+ 1.645 s sqrt(T)).

    s is the volatility of the company's agreements, T half a year to vesting.
    """
    volatility = {}
    for name in catalogue.ids("rebates"):
        _, document = catalogue.document("rebates", name, "rebate")
        if "volatility" in document:
            volatility[document["company"]] = document["volatility"]["value"]
    for _, row in read_csv(DATA / "shares" / "prices.csv", ("company", "attribute", *COLUMNS)):
        wide = math.exp(1.645 * volatility[row["company"]] * math.sqrt(0.5))
        value, low, high = (float(row[name]) for name in ("value", "low", "high"))
        assert (low, high) == pytest.approx((value / wide, value * wide), rel=1e-3), row
        assert "range an estimate" in row["note"]


@pytest.mark.parametrize("name", HEADLINE)
def test_share_price_of_a_rebate_is_drawn(name):
    """The price of a share that pays for parts has a range, and the rebate spreads with it."""
    rack_result = result(name)
    priced = [path for path in rack_result.inputs if path.startswith("shares.")]
    assert all(
        rack_result.inputs[path].low
        < rack_result.inputs[path].value
        < rack_result.inputs[path].high
        for path in priced
    )
    assert bool(priced) == bool(rack_result.metrics["rebate_usd_per_chip"])
    if priced:
        ranges = beliefs_of(rack_result)
        assert {ranges[path].shape for path in priced} == {"lognormal"}
        ends = [
            evaluate(
                name,
                {
                    "shares.astera.price": (
                        ranges["shares.astera.price"].quantile(deviation),
                        "USD/share",
                    )
                },
            )
            for deviation in (-P95, P95)
        ]
        low, high = (end_result.metrics["rebate_usd_per_chip"] for end_result in ends)
        assert high / low > 2


@pytest.mark.parametrize("reference", ["10", "20.34", "0.001"])
def test_a_share_of_spend_stated_where_the_right_is_worth_nothing_is_refused(reference):
    """Below the strike the rebate would be a debt, at it without end."""
    strike = evaluate("trn3-nl72x2", DECEMBER).inputs["rebates.astera-2022.strike"].value
    for price in (reference, repr(strike)):
        with pytest.raises(DataError, match=r"rebates\.astera-2022\.reference_price: not above"):
            evaluate(
                "trn3-nl72x2",
                DECEMBER | {"rebates.astera-2022.reference_price": f"{price} USD/share"},
            )
