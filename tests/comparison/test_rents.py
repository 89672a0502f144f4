"""Rents by statistic: a comparison uses one statistic of one publisher, and margins follow."""

from __future__ import annotations

import re
from statistics import median

import pytest

from tco.cost.ledger import COMMITMENTS, RENTS
from tco.evaluation.break_even_rents import BreakEvenRent
from tco.report.verdict import rent_words
from tests.catalogue import CATALOGUE
from tests.cli import document, tco
from tests.scenario_helpers import evaluate

RENTER = ("--set", "terms.perspective=renter", "--set", "terms.date=2026-08", "--no-range")


def test_every_rent_names_its_statistic_and_publisher():
    names = {
        name
        for _, name in CATALOGUE.part_rows
        if name.startswith("rent") and not name.startswith("rent_per")
    }
    assert names <= set(RENTS)
    assert {name for names in COMMITMENTS.values() for name in names} == set(RENTS)
    for row in document("rents")["rows"]:
        assert row["publisher"], row
        assert row["statistic"] in RENTS.values()


def test_renters_are_compared_by_one_statistic_of_one_publisher():
    compared_rows = document(
        "compare", "gb200-nvl72", "b200-hgx8", "h100-hgx8", "trn3-nl72x2", *RENTER
    )["rows"]
    rents = {row["scenario"]: row.get("rent") for row in compared_rows}
    contract = {"statistic": "contracts of three years", "publisher": "SemiAnalysis"}
    assert rents == {
        "gb200-nvl72": contract,
        "b200-hgx8": contract,
        "h100-hgx8": contract,
        "trn3-nl72x2": None,
    }
    left = next(row for row in compared_rows if row["scenario"] == "trn3-nl72x2")
    assert left["metrics"]["usd_per_million_output_tokens"] is None
    assert any(
        "is not public. A comparison takes one kind of rent from one publisher" in note
        for note in left["notes"]
    )
    hours = {row["scenario"]: row["metrics"]["tco_usd_per_chip_hour"] for row in compared_rows}
    assert [round(hours[name], 9) for name in ("gb200-nvl72", "b200-hgx8", "h100-hgx8")] == [
        2.6,
        2.6,
        1.78,
    ]


def test_lists_of_two_publishers_are_not_compared():
    compared_rows = document(
        "compare",
        "gb200-nvl72",
        "b200-hgx8",
        "h100-hgx8",
        *RENTER,
        "--set",
        "terms.commitment=on-demand",
    )["rows"]
    assert {row["rent"]["publisher"] for row in compared_rows if "rent" in row} == {
        "GPU rental price index"
    }
    assert "rent" not in next(row for row in compared_rows if row["scenario"] == "gb200-nvl72")


def test_single_renter_pays_the_rent_nearest_to_a_contract():
    renter_settings = {"terms.perspective": "renter", "terms.date": "2026-08", "workload": "stated"}
    contract_result, bound, set_rent_result = (
        evaluate(name, renter_settings | more, catalogue=CATALOGUE)
        for name, more in (
            ("h100-hgx8", {}),
            ("trn3-nl72x2", {}),
            ("h100-hgx8", {"parts.h100-sxm.rent": "3 USD/chip/h"}),
        )
    )
    assert contract_result.rent == ("rent_one_year", "SemiAnalysis")
    assert bound.rent[0] == "rent_bound"
    assert any("upper bound" in note for note in bound.notes)
    assert set_rent_result.metrics["tco_usd_per_chip_hour"] == pytest.approx(3)


def test_a_table_prints_the_margin_that_its_rent_and_cost_leave():
    rents = document("rents", "h100-sxm")["rows"]
    lines = tco("rents", "h100-sxm", "--format", "md").stdout.splitlines()
    cells = [line.strip("| ").split(" | ")[-1] for line in lines if re.search(r" \| 20\d\d-", line)]
    assert sorted(cells) == sorted(
        "-" if rent["margin"] is None else f"{rent['margin'] * 100:.0f}" for rent in rents
    )


def test_a_rent_names_its_source_and_what_its_margin_is_after():
    rows = document("rents", "h100-sxm")["rows"]
    for row in rows:
        assert row["source_title"] == CATALOGUE.sources[row["source"]].title
    text = " ".join(tco("rents", "h100-sxm").stdout.split())
    assert "The cost counts depreciation and the cost of capital (terms.rate)" in text
    command = text.partition("a link is in `tco ")[2].partition("`")[0]
    assert CATALOGUE.sources[rows[-1]["source"]].url in tco(*command.split()).stdout


def test_margins_follow_from_rent_and_cost():
    rows = document("rents", "h100-sxm")["rows"]
    assert len({row["date"] for row in rows}) >= 12
    for row in rows:
        assert row["margin"] == pytest.approx(
            1 - row["cost_usd_per_chip_hour"] / row["usd_per_chip_hour"]
        )
    neocloud_settings = {
        "terms.perspective": "neocloud",
        "terms.date": "2026-06",
        "workload": "stated",
    }
    cost = evaluate("h100-hgx8", neocloud_settings, catalogue=CATALOGUE).metrics[
        "tco_usd_per_chip_hour"
    ]
    assert next(
        row["cost_usd_per_chip_hour"] for row in rows if row["date"] == "2026-06"
    ) == pytest.approx(cost, rel=1e-9)


def test_the_supplier_of_a_chip_that_is_not_for_sale_is_its_builder():
    (row,) = document("rents", "trn3")["rows"]
    builder_settings = {
        "terms.perspective": "hyperscaler",
        "terms.date": "2026-03-22",
        "workload": "stated",
    }
    costs = {
        evaluate(name, builder_settings, catalogue=CATALOGUE).metrics["tco_usd_per_chip_hour"]
        for name in CATALOGUE.ids("systems")
        if name.startswith("trn3-")
    }
    assert row["cost_usd_per_chip_hour"] in costs
    assert row["margin"] == pytest.approx(1 - row["cost_usd_per_chip_hour"] / 1.29, rel=1e-12)


def test_the_price_of_the_chip_explains_a_cost_that_stands_still():
    def words(*arguments):
        return " ".join(tco("rents", *arguments).stdout.split())

    prices = "Price of h100-sxm in this cost: 29,700 USD from 2023-05, 17,000 USD from 2025-08."
    assert prices in words("h100")
    assert "Earlier costs use the first price too." not in words("h100")
    b200 = "30,000 USD from 2025-08. While it holds, only other inputs move the cost."
    assert f"{b200} Earlier costs use the first price too." in words("b200-sxm")
    assert "in this cost" not in words("h100", "--set", "parts.h100-sxm.price=20000 USD")
    assert "in this cost" not in words("trn3")


def test_a_rent_of_nothing_or_a_chip_without_a_rack_has_no_margin(tmp_path):
    (tmp_path / "parts").mkdir()
    rows = [
        "part,attribute,value,unit,low,high,as_of,kind,source,note,use",
        "free-chip,rent,2,USD/chip/h,,,2026-08,press,own-2026,,",
        "h100-sxm,rent_bound,0,USD/chip/h,,,2026-08,press,own-2026,,",
    ]
    (tmp_path / "parts" / "own.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "sources.csv").write_text(
        "id,title,url,date,publisher\nown-2026,Own offers,,2026-08,Own\n"
    )
    (row,) = document("rents", "free-chip", "--data", tmp_path)["rows"]
    assert (row["cost_usd_per_chip_hour"], row["margin"]) == (None, None)
    (row,) = (
        row
        for row in document("rents", "h100-sxm", "--data", tmp_path)["rows"]
        if row["statistic"] == RENTS["rent_bound"]
    )
    assert row["cost_usd_per_chip_hour"] > 1
    assert row["margin"] is None


def test_contracts_leave_a_margin_that_owners_live_on():
    contract_rows = [
        row
        for row in document("rents")["rows"]
        if row["statistic"].startswith("contracts") and row["margin"] is not None
    ]
    by_month: dict[str, list[float]] = {}
    for row in contract_rows:
        by_month.setdefault(row["date"], []).append(row["margin"])
    assert all(-0.1 <= median(margins) <= 0.7 for margins in by_month.values()), by_month


def test_system_stands_for_its_chip_and_a_chip_without_rents_is_named():
    chip_rows = document("rents", "h100-sxm")["rows"]
    assert document("rents", "h100-hgx8")["rows"] == document("rents", "H100")["rows"] == chip_rows
    done = tco("rents", "h100-sxn")
    assert done.exit_code == 3
    assert "did you mean 'h100-sxm'" in done.stderr
    assert tco("rents", "h20").exit_code == 3  # another chip than H200
    assert "own a GB200" not in tco("rents", "h100").stdout  # H100 is for sale
    (line,) = [line for line in tco("rents", "trn3").stdout.splitlines() if "own a GB200" in line]
    assert "renting trn3" in tco(*line.partition(": tco ")[2].split(), "--no-range").stdout
    assert "`tco rents` lists what there is" in tco("rents", "nope").stderr
    assert tco("rents", "h100-sxm", "--format", "csv").stdout.startswith(
        "chip,statistic,publisher,date,usd_per_chip_hour,low,high,"
    )


def test_agreements_show_strike_price_share_and_path():
    agreement = document("rebates", "show", "astera-2022", "--set", "terms.date=2025-12")
    terms = {term["path"]: term["value"] for term in agreement["terms"]}
    assert terms["rebates.astera-2022.strike"] == 20.34
    price, strike, then = (
        terms["shares.astera.price"],
        20.34,
        terms["rebates.astera-2022.reference_price"],
    )
    assert agreement["given_back"] == pytest.approx(0.23 * (price - strike) / (then - strike))
    assert (
        f"{agreement['given_back'] * 100:.2f} %"
        in tco("rebates", "show", "astera-2022", "--date", "2025-12").stdout
    )


# ---------------------------------------------------------------- one renter that can be priced
def test_one_priced_renter_is_no_recommendation_and_the_output_says_why():
    drawn = RENTER[:-1]
    comparison = document("compare", "trn3-nl32x2", "gb200-nvl72", "mi450x-ualoe72", *drawn)
    assert comparison["verdict"] == []
    assert all(curve_point["share_cheapest"] is None for curve_point in comparison["curve"])
    text = tco("compare", "trn3-nl32x2", "gb200-nvl72", "mi450x-ualoe72", *drawn).stdout
    assert "Only gb200-nvl72 can be priced" in text
    assert "trn3-nl32x2 cannot be priced: parts.trn3.rent" in text.replace("\n", " ")
    assert "99 %" not in text


def test_at_its_break_even_rent_a_rack_costs_what_the_cheapest_does():
    comparison = document("compare", "trn3-nl72x2", "gb200-nvl72", *RENTER)
    (rent,) = comparison["break_even_rents"]
    assert (rent["scenario"], rent["against"]) == ("trn3-nl72x2", "gb200-nvl72")
    assert rent["upper_bound_usd_per_chip_hour"] == 1.29
    setting = f"parts.trn3.rent={rent['usd_per_chip_hour']!r} USD/chip/h"
    rows = document(
        "compare", "trn3-nl72x2", "gb200-nvl72", *RENTER, "--no-range", "--set", setting
    )["rows"]
    costs = [row["metrics"]["usd_per_million_output_tokens"] for row in rows]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)
    assert rows[1]["metrics"]["tco_usd_per_chip_hour"] == pytest.approx(
        rent["against_usd_per_chip_hour"], rel=1e-12
    )


def test_a_buyer_who_cannot_own_a_rack_sees_below_which_rent_it_beats_what_he_owns():
    owner = ("--set", "terms.perspective=on-premises", "--no-range")
    comparison = document("compare", "trn3-nl72x2", "gb200-nvl72", *owner)
    (rent,) = comparison["break_even_rents"]
    assert (rent["scenario"], rent["against"]) == ("trn3-nl72x2", "gb200-nvl72")
    assert rent["against_basis"] == "vendor-price"
    owned = comparison["rows"][1]["metrics"]
    assert rent["against_usd_per_chip_hour"] == owned["tco_usd_per_chip_hour"]
    setting = f"parts.trn3.rent={rent['usd_per_chip_hour']!r} USD/chip/h"
    # the buyer fills half of the hours, rented or owned
    half_used = ("--set", setting, "--set", "terms.utilisation=0.5")
    (rented,) = document("compare", "trn3-nl72x2", *RENTER[:2], "--no-range", *half_used)["rows"]
    cost = "usd_per_million_output_tokens"
    assert rented["metrics"][cost] == pytest.approx(owned[cost], rel=1e-6)
    text = " ".join(tco("compare", "trn3-nl72x2", "gb200-nvl72", *owner).stdout.split())
    assert "renting trn3-nl72x2 beats owning gb200-nvl72 (base case: 2.78 USD per" in text
    assert "At 50 tokens/s and 50 % utilisation, renting" in text
    assert (
        "no rent is published; our estimate is 0.90 to 1.29, so owning gb200-nvl72 is cheaper."
        in text
    )
    assert "utilisation 50 %, assumed for this buyer" in text
    set_share = tco("compare", "gb200-nvl72", *owner, "--set", "terms.utilisation=50%").stdout
    assert "utilisation 50 % |" in " ".join(set_share.split())


def test_a_break_even_rent_follows_by_hand_from_the_cost_of_what_is_owned():
    """A million tokens take 1e6 / (3600 T) used hours, and a used hour 1 / (0.99 * 0.5) rented."""
    owner = ("--set", "terms.perspective=on-premises", "--no-range")
    comparison = document("compare", "trn3-nl72x2", "gb200-nvl72", *owner)
    (rent,) = comparison["break_even_rents"]
    trainium, owned = (row["metrics"] for row in comparison["rows"])
    rented_hours = 1e6 / (3600 * trainium["output_tokens_per_s_per_chip"]) / (0.99 * 0.5)
    assert rent["usd_per_chip_hour"] == pytest.approx(
        owned["usd_per_million_output_tokens"] / rented_hours, rel=1e-9
    )
    assert rent["utilisation"] == 0.5


@pytest.mark.parametrize(
    ("break_even", "verdict"),
    [
        (0.62, "so owning gb is cheaper"),
        (0.9, "which leaves it open"),
        (1.29, "which leaves it open"),
        (1.3, "so renting trn is cheaper"),
    ],
)
def test_both_ends_of_the_estimate_of_a_rent_decide(break_even, verdict):
    rent = BreakEvenRent("trn", "gb", 50.0, break_even, 2.51, 1.29, "vendor-price", 0.9, 0.8)
    assert rent_words([rent]) == [
        "At 50 tokens/s and 80 % utilisation, renting trn beats owning gb (base case: 2.51 USD "
        f"per chip-hour) below a rent of {break_even:.2f} USD per chip-hour; no rent is "
        f"published; our estimate is 0.90 to 1.29, {verdict}."
    ]
    (line,) = rent_words([rent._replace(lower_bound_usd_per_chip_hour=None)])
    end = "so renting trn is cheaper" if break_even > 1.29 else "which leaves it open"
    assert line.endswith(f"our estimate is at most 1.29, {end}.")
    (line,) = rent_words([rent._replace(against_basis="rent", tokens_per_s_per_user=None)])
    assert line.startswith("At 80 % utilisation, renting trn beats renting gb (2.51 USD per")


def test_a_rent_that_is_an_upper_bound_is_marked():
    text = tco("compare", "trn3-nl32x2", *RENTER, "--no-range").stdout
    assert "<1.29" in text


def test_an_upper_bound_is_said_to_be_no_market_price():
    sentence = "it is no market price"
    assert sentence in tco("rents", "trn3").stdout
    assert sentence not in tco("rents", "h100-sxm").stdout
