"""`tco gigawatt` fills a power of the grid with racks and compares their cost with published ones.

A megawatt is the same for every owner. Dollars are listed by kind of part.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tco.evaluation.evaluation import evaluate_each
from tco.scenario.beliefs import Dice
from tco.scenario.pricing import SITE_POWER
from tests.cli import document, tco
from tests.scenario_helpers import again, result

RACKS = {"gb200-nvl72": "gb200-gpu", "trn3-nl72x2": "trn3", "h100-hgx8": "h100-sxm"}


@pytest.fixture(scope="module")
def rows():
    return {row["system"]: row for row in document("gigawatt", *RACKS)["rows"]}


@pytest.mark.parametrize("name", RACKS)
def test_a_gigawatt_is_one_for_all_who_ask(rows, name):
    row = rows[name]
    fleet = document("fleet", f"{name}:1 GW", "--set", "workload=stated")["fleet"]
    assert (row["racks"], row["chips"]) == (fleet["racks"], fleet["chips"])
    assert row["capex_usd"] == fleet["capex_usd"]
    assert row["usd"] == pytest.approx(fleet["capex_with_hall_usd"], rel=1e-12)
    assert row["cost_usd_per_year"] == fleet["cost_usd_per_year"]
    # but for a last rack that is not whole
    assert row["usd_per_grid_w"] == pytest.approx(
        result(name).metrics["usd_per_facility_w"], rel=1e-3
    )
    assert row["range"]["p10"] < row["usd_per_grid_w"] < row["range"]["p90"]


@pytest.mark.parametrize("name", RACKS)
def test_dollars_of_a_gigawatt_sum_over_its_parts(rows, name):
    row = rows[name]
    assert sum(line["usd"] for line in row["lines"]) == pytest.approx(row["usd"], rel=1e-12)
    scenario_result = result(name)
    worlds = row["chips"] / scenario_result.metrics["chips"]
    assert row["it_w"] == pytest.approx(
        worlds * scenario_result.metrics["chips"] * scenario_result.metrics["it_power_w_per_chip"],
        rel=1e-12,
    )
    assert row["usd_per_it_w"] == pytest.approx(row["usd"] / row["it_w"], rel=1e-12)
    assert row["it_w"] <= 1e9 / scenario_result.inputs["site.pue_peak"].value
    chips = next(line["usd"] for line in row["lines"] if line["kind"] == "chips")
    assert chips == pytest.approx(
        worlds
        * sum(line.extended for line in scenario_result.bill.lines if line.part == RACKS[name]),
        rel=1e-12,
    )


def test_revenue_of_a_year_is_that_of_the_cash_flow_by_month():
    priced = ("--set", "money.token_price=2 USD/Mtoken", "--set", "workload=stated")
    priced += ("--set", "workload.output_rate=500 token/s/chip")
    (row,) = document("gigawatt", "gb200-nvl72", *priced)["rows"]
    payments = document("price", "gb200-nvl72", "--cash-flow", *priced)["cash_flow"]
    income = sum(
        cash["usd"] for cash in payments if cash["line"] == "income" and cash["month"] <= 12
    )
    assert row["revenue_usd_per_year"] == pytest.approx(-income * row["chips"] / 72)
    assert row["margin_usd_per_year"] == pytest.approx(
        row["revenue_usd_per_year"] - row["cost_usd_per_year"]
    )
    screen = tco("gigawatt", "gb200-nvl72", *priced)
    assert f"{row['revenue_usd_per_year'] / 1e9:.2f}" in screen.stdout
    assert "money.token_price is set" not in screen.stderr


def test_a_site_that_sells_nothing_says_how_to_add_a_revenue(rows):
    assert rows["h100-hgx8"]["revenue_usd_per_year"] is None
    printed_text = tco("gigawatt", "h100-hgx8", "--set", "workload=stated").stdout
    assert "revenue per year" not in printed_text
    assert "--set money.token_price='2 USD/Mtoken' adds the revenue" in printed_text


# what an engineer calls each part that is bought of a rack of GB200, by the last name of its line
PARTS_BY_KIND = {
    "chips": {"gb200-gpu"},
    "memory": {"gb200-memory"},
    "CPUs": {"grace-cpu"},
    "scale-up switches and cables": {"nvswitch-5", "nvlink-cable"},
    "network": {"management-switch"},
    "storage": {"storage"},
    "power and cooling": {
        "gb200-tray-cooling",
        "nvlink-tray-cooling",
        "power-shelf-33kw",
        "busbar-48v-liquid",
        "rack-manifold",
    },
    "boards, racks and assembly": {
        "nvl72-rack",
        "gb200-compute-tray",
        "nvlink-switch-tray",
        "assembly-test",
    },
    "hall": {"building"},
}


def test_a_purchase_is_of_the_kind_that_its_part_is(rows):
    row, scenario_result = rows["gb200-nvl72"], result("gb200-nvl72")
    kinds = {part: kind for kind, parts in PARTS_BY_KIND.items() for part in parts}
    expected: dict[str, float] = {}
    for line in scenario_result.lines:
        if not line.recurs:
            part = line.path.rpartition("/")[2]
            kind = "network" if line.asset == "network" else kinds[part]
            worlds = row["chips"] / scenario_result.metrics["chips"]
            expected[kind] = expected.get(kind, 0.0) + line.amount * worlds
    assert {line["kind"]: line["usd"] for line in row["lines"]} == pytest.approx(expected)


def test_percentiles_have_their_share_of_draws_below(rows):
    (evaluation,) = evaluate_each(["h100-hgx8"], None, {}, implied={SITE_POWER: "1 GW"})
    catalogue = evaluation.catalogue
    draws = evaluation.drawn_function(hold=True).sample(Dice(catalogue, 0, 0, 1000))
    samples = np.asarray(draws.metrics["usd_per_facility_w"], dtype=float)
    percentiles = rows["h100-hgx8"]["range"]
    below = {name: int((samples < value).sum()) for name, value in percentiles.items()}
    assert below == {"p10": 100, "p50": 500, "p90": 900}


def test_power_kept_in_reserve_holds_no_rack(rows):
    (row,) = document("gigawatt", "gb200-nvl72", "--set", "site.in_hand=0.2")["rows"]
    assert row["racks"] == pytest.approx(rows["gb200-nvl72"]["racks"] * 0.8, abs=1)


def test_published_costs_are_printed_beside_the_computed_one(rows):
    published_bounds = {
        (published_row["source"], published_row["low"], published_row["high"])
        for published_row in rows["gb200-nvl72"]["published"]
    }
    # not its $100,000 of a chip, nor what its sources say of a part of the cost
    assert published_bounds == {("bernstein-gw-2025", 35, 35), ("bernstein-gw-2025", 50, 60)}
    printed_text = tco("gigawatt", "gb200-nvl72").stdout
    assert re.search(r"gb200-nvl72 +Bernstein +35\.0 +35\.0 ", printed_text)
    assert "hall" in printed_text
    header, line = tco(
        "gigawatt", "gb200-nvl72", "--power", "100 MW", "--date", "2026-09", "--format", "csv"
    ).stdout.splitlines()
    cells = dict(zip(header.split(","), line.split(","), strict=True))
    assert (cells["date"], cells["grid_w"]) == ("2026-09", "100000000")
    assert sum(
        float(value) for key, value in cells.items() if key.startswith("usd_of_")
    ) == pytest.approx(float(cells["usd"]))


def test_units_fit_the_power_that_is_filled():
    (row,) = document("gigawatt", "gb200-nvl72", "--power", "175.3 kW")["rows"]
    lines = tco("gigawatt", "gb200-nvl72", "--power", "175.3 kW").stdout.splitlines()
    texts = {line[:40].strip(): line[40:].strip() for line in lines}
    assert texts["kW from the grid"] == "175.3"
    assert texts["kW for the racks"] == f"{row['it_w'] / 1e3:.1f}"
    assert texts["capex with hall, million USD"] == f"{row['usd'] / 1e6:.3f}"
    assert texts["cost per year, million USD"] == f"{row['cost_usd_per_year'] / 1e6:.3f}"
    assert texts["thousand output tokens/s"] == f"{row['output_tokens_per_s'] / 1e3:.2f}"


def test_a_rack_that_is_not_in_volume_at_the_date_of_its_prices_has_its_month():
    stated = ("--set", "workload=stated", "--date")
    late, in_time = (
        tco("gigawatt", "gb200-nvl72", "mi450x-ualoe72", *stated, date)
        for date in ("2026-11", "2027-05")
    )
    (line,) = [line for line in late.stdout.splitlines() if line.startswith("in volume from")]
    assert line.split()[-2:] == ["2025-03", "2027-05"]
    assert "mi450x-ualoe72: not in volume in 2026-11, but from 2027-05" in late.stderr
    assert "gb200-nvl72: not in volume" not in late.stderr
    assert "in volume" not in in_time.stdout + in_time.stderr


def test_the_kind_of_price_stands_above_the_racks(rows):
    (line,) = [
        line
        for line in tco("gigawatt", *RACKS).stdout.splitlines()
        if line.startswith("racks are priced at")
    ]
    assert line.split("at", 1)[1].split("  ")[-1].strip() == "vendor's price"
    assert line.count("vendor's price") == 2
    assert line.count("own cost") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("gb200-nvl72", "--power", "100 kW"),
            "0.1 MW carry no scale-up domain of gb200-nvl72, the least that do are 0.175 MW",
        ),
        (("gb200-nvl72", "--power", "1 GWh"), "expected 'W'"),
        (("gb200-nvl72", "--power", "-1 GW"), "fills nothing"),
        (("gb200-nvl72", "--set", "terms.perspective=renter"), "renter buys nothing"),
        (
            ("vr-nvl144", "--set", "site=us-air-hall"),
            "the liquid hall of us-hyperscale takes the most, 250 kW",
        ),
        (("gb200-nvl72", "--date", "2020-01"), "lies before the first price"),
        (("gb200-nvl7",), "did you mean 'gb200-nvl72'"),
    ],
)
def test_bad_questions_are_refused(arguments, message):
    done = tco("gigawatt", *arguments)
    assert done.exit_code == 3
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_halls_and_power_have_a_date_and_a_country():
    then, now = (
        again("gb200-nvl72", terms__date=date).inputs["site.usd_per_mw"]
        for date in ("2024-12", "2026-09")
    )
    assert (then.value, now.value) == (11.7, 12.9)
    assert now.high >= 18
    costs = {
        site: again("gb200-nvl72", site=site).metrics["tco_usd_per_chip_hour"]
        for site in ("india", "us-hyperscale", "ireland")
    }
    assert costs["india"] < costs["us-hyperscale"] < costs["ireland"]


def test_energy_follows_use():
    """Idle chips draw 80 W of 593, as measured of an H200.

    At the utilisation for which the load factor is stated the energy is unchanged.
    """
    busy, idle = (again("h100-hgx8", terms__utilisation=use) for use in ("0.8", "0.01"))
    chips = sum(line.power for line in busy.bill.lines if line.part == "h100-sxm")
    share = chips / (busy.metrics["it_power_w_per_chip"] * 8)
    idles = 0.135 * share + 0.75 * (1 - share)
    ratio = (idles + (1 - idles) * 0.01) / (idles + (1 - idles) * 0.8)
    assert idle.metrics["energy_usd_per_chip_hour"] == pytest.approx(
        busy.metrics["energy_usd_per_chip_hour"] * ratio, rel=1e-9
    )
    power = busy.metrics["it_power_w_per_chip"] * 0.8 * busy.inputs["site.pue"].value
    assert busy.metrics["energy_usd_per_chip_hour"] == pytest.approx(
        power * busy.inputs["site.electricity_price"].value, rel=1e-12
    )
