"""A fleet of several systems shares one power: each wave fills its own hall, in order of dates.

No wave takes more than the power that is left.
"""

from __future__ import annotations

import re

import pytest

from tests.cli import document, tco

WAVES = ("gb200-nvl72:40 MW:2026-06", "trn3-nl32x2:60 MW:2025-12")
STATED = ("--set", "workload=stated", "--set", "workload.output_rate=500 token/s/chip")
PRICED = (*STATED, "--set", "money.token_price=2 USD/Mtoken")


def test_each_wave_is_its_own_hall_at_its_own_prices():
    fleet_document = document("fleet", *WAVES, "--power", "100 MW", *PRICED)
    assert [wave["scenario"] for wave in fleet_document["waves"]] == ["trn3-nl32x2", "gb200-nvl72"]
    halls = [
        document(
            "compare",
            wave["scenario"],
            "--no-range",
            "--hall",
            power,
            "--set",
            f"terms.date={wave['date']}",
            *PRICED,
        )["rows"][0]
        for wave, power in zip(fleet_document["waves"], ("60 MW", "40 MW"), strict=True)
    ]
    for wave, row in zip(fleet_document["waves"], halls, strict=True):
        assert {name: wave[name] for name in ("racks", "chips", "capex_usd")} == {
            name: row["hall"][name] for name in ("racks", "chips", "capex_usd")
        }
        assert wave["cost_usd_per_year"] == pytest.approx(
            row["metrics"]["tco_usd_per_chip_hour"] * wave["chips"] * 8760
        )
        paid = wave["cost_usd_per_year"] / (wave["output_tokens_per_s"] * 8760 * 3600) * 1e6
        assert paid == pytest.approx(row["metrics"]["usd_per_million_output_tokens"])
        sold = wave["output_tokens_per_s"] * 8760 * 3600 / 1e6
        assert wave["revenue_usd_per_year"] == pytest.approx(2 * sold)
        assert wave["margin_usd_per_year"] == pytest.approx(
            row["hall"]["margin_usd_per_mw_year"] * wave["site_power_w"] / 1e6
        )
    for name, value in fleet_document["fleet"].items():
        assert value == pytest.approx(sum(wave[name] for wave in fleet_document["waves"]))
    assert fleet_document["waves"][0]["so_far"]["chips"] == fleet_document["waves"][0]["chips"]


def test_the_table_has_a_row_for_all():
    done = tco("fleet", *WAVES, "--power", "100 MW", *STATED)
    assert done.exit_code == 0
    assert "The purchases take 100 of 100 MW." in done.stdout
    names = [wave.partition(":")[0] for wave in reversed(WAVES)]  # by date
    first_words = [line.split()[0] for line in done.stdout.splitlines() if line.strip()]
    assert [word for word in first_words if word in (*names, "all")] == [*names, "all"]
    assert (
        tco("fleet", *WAVES, *STATED, "--format", "csv")
        .stdout.splitlines()[0]
        .startswith("date,scenario,site_power_w,racks")
    )


def test_output_tokens_are_the_mean_of_all_hours_as_of_a_gigawatt():
    """Hours in which chips are down or unused count as zero."""
    mean_of_hours = "Output tokens/s: mean of all hours of a year, used or not."
    assert mean_of_hours in tco("fleet", *WAVES, *STATED).stdout
    assert mean_of_hours in tco("gigawatt", "gb200-nvl72", *STATED).stdout
    assert mean_of_hours not in tco("fleet", *WAVES, "--set", "workload=stated").stdout
    (wave,) = document("fleet", WAVES[0], *STATED)["waves"]
    metrics = document("price", "gb200-nvl72", *STATED)["metrics"]
    used_share = 0.8 * metrics["goodput"]
    assert wave["output_tokens_per_s"] == pytest.approx(wave["chips"] * 500 * used_share)


def test_yearly_revenue_stands_beside_the_cost_where_something_is_sold():
    sold, unsold = (tco("fleet", *WAVES, *settings) for settings in (PRICED, STATED))
    assert re.search(r"revenue per year +gross margin per year", sold.stdout)
    assert "moves no metric" not in sold.stderr
    assert "revenue per year" not in unsold.stdout
    assert "--set money.token_price='2 USD/Mtoken' adds the revenue" in unsold.stdout
    assert document("fleet", *WAVES, *STATED)["fleet"]["revenue_usd_per_year"] is None


def test_a_fleet_says_its_unit_of_money_and_what_prices_its_racks():
    large, small = (
        tco("fleet", f"gb200-nvl72:{power}", *STATED).stdout for power in ("1 GW", "200 kW")
    )
    assert "Money is in billion USD." in large
    assert "Money is in million USD." in small
    capex = document("fleet", "gb200-nvl72:200 kW", *STATED)["fleet"]["capex_usd"]
    (total,) = [line for line in small.splitlines() if line.startswith("all ")]
    assert f" {capex / 1e6:.3f} " in total
    assert (
        "Priced at: own cost (trn3-nl32x2); vendor's price (gb200-nvl72)"
        in tco("fleet", *WAVES, *STATED).stdout
    )
    assert (
        "Priced at: rent (gb200-nvl72)"
        in tco("fleet", WAVES[0], *STATED, "--set", "terms.perspective=renter").stdout
    )


def test_the_month_in_service_stands_where_it_differs_from_that_of_the_prices():
    at_once, late = (tco("fleet", wave, *STATED).stdout for wave in WAVES)
    assert ("in service" in at_once, "in service" in late) == (False, True)


def test_wave_without_a_stated_rate_has_no_tokens():
    fleet_document = document("fleet", *WAVES, "--set", "workload=stated")
    assert fleet_document["fleet"]["output_tokens_per_s"] is None
    assert fleet_document["power_w"] is None


@pytest.mark.parametrize(
    ("wave", "code", "message"),
    [
        ("trn3-nl32x2:60 MW:2025-12", 3, "the waves take 60 MW, --power has 50 MW"),
        ("trn3-nl32x2", 2, "expected SCENARIO:POWER or SCENARIO:POWER:DATE"),
        ("trn3-nl32x2:1 MW:2025:12", 2, "expected SCENARIO:POWER"),
        ("trn3-nl32x3:1 MW", 3, "did you mean 'trn3-nl32x2'"),
        ("trn3-nl32x2:1 MWh", 3, "expected 'W'"),
        ("trn3-nl32x2:1 MW:soon", 3, "'soon' is no date"),
        ("trn3-nl32x2:3 kW", 3, "carry no scale-up domain of trn3-nl32x2"),
        ("trn3-nl32x2:-3 kW", 3, "fills nothing"),
    ],
)
def test_bad_waves_are_refused(wave, code, message):
    done = tco("fleet", wave, "--power", "50 MW", "--set", "workload=stated")
    assert done.exit_code == code
    assert message in done.stderr


def test_unavailable_system_arrives_later_and_counts_from_that_date():
    waves = ("mi450x-ualoe72:40 MW:2025-12", "gb200-nvl72:20 MW:2026-06")
    first, last = document("fleet", *waves)["waves"]
    assert (first["scenario"], first["arrives"], last["scenario"], last["date"]) == (
        "gb200-nvl72",
        "2026-06",
        "mi450x-ualoe72",
        "2025-12",
    )
    assert last["arrives"] > "2026-06"
    assert first["so_far"]["chips"] == first["chips"]
    assert last["so_far"]["waiting_usd"] == last["waiting_usd"] > 0 == first["waiting_usd"]
    assert "mi450x-ualoe72: not in volume in 2025-12, but from 2027" in tco("fleet", *waves).stderr
