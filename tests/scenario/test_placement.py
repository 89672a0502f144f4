"""Whether a site takes a rack, and what an air-cooled hall adds to a liquid-cooled one."""

from __future__ import annotations

import pytest
import pyxirr

from tco import DataError, evaluate
from tco.scenario.document import Scenario
from tests.cli import tco
from tests.scenario_helpers import HEADLINE, again, result, same

LIQUID = "trn3-nl72x2"


def evaluate_at(site: str, name: str, catalogue, **settings: str):
    """Evaluate a headline scenario at another site."""
    documents = {
        "site": site,
        "terms": "hyperscaler-2025-12",
        "workload": "deepseek-v3-8k-1k",
        "cluster": "tor-100g-16k",
    }
    paths = {path.replace("__", "."): value for path, value in settings.items()}
    return evaluate(
        Scenario(name, name, name, documents, None, {}, {}, "here"),
        paths,
        result(name).plan,
        catalogue=catalogue,
    )


def hourly(scenario_result, path: str) -> float:
    return next(line.usd_per_chip_hour for line in scenario_result.lines if line.path == path)


@pytest.mark.parametrize("name", HEADLINE)
def test_every_headline_rack_fits_its_site(name):
    scenario_result = result(name)
    assert scenario_result.bill.power / scenario_result.metrics["racks"] <= 250e3
    assert not [line.path for line in scenario_result.lines if "sidecar" in line.path]


def test_a_rack_beyond_the_site_is_refused_with_the_arithmetic(catalogue):
    power = result(LIQUID).bill.power
    with pytest.raises(DataError) as caught:
        evaluate_at("us-air-hall", LIQUID, catalogue)
    text = str(caught.value)
    assert text.startswith(
        "us-air-hall: a rack position takes 50 kW (site.rack_kw_max), a rack of trn3-nl72x2 draws "
    )
    assert f"{power / 1e3:.1f} kW / 2 = {power / 2e3:.1f} kW" in text


def test_the_air_cooled_rack_fits_the_air_cooled_hall(catalogue):
    scenario_result = evaluate_at("us-air-hall", "trn3-nl32x2", catalogue)
    assert scenario_result.notes == result("trn3-nl32x2").notes
    assert not [line.path for line in scenario_result.lines if "sidecar" in line.path]


def test_the_limit_may_be_raised(catalogue):
    scenario_result = evaluate_at("us-air-hall", LIQUID, catalogue, site__rack_kw_max="120 kW")
    assert scenario_result.metrics["tco_usd_per_chip_hour"] > 0


def test_the_limit_itself_still_fits():
    scenario_result = result(LIQUID)
    rack = scenario_result.bill.power / scenario_result.metrics["racks"]
    assert again(LIQUID, site__rack_kw_max=f"{rack!r} W").bill.power == scenario_result.bill.power
    with pytest.raises(DataError, match=r"or set site\.rack_kw_max"):
        again(LIQUID, site__rack_kw_max=f"{rack * 0.999!r} W")


def test_the_limit_is_no_setting_without_effect():
    assert again(LIQUID, site__rack_kw_max="249 kW").notes == result(LIQUID).notes


def test_a_liquid_cooled_rack_pays_a_sidecar_where_only_air_cools(catalogue):
    """A sidecar costs 450 USD per kW of the racks, with upkeep and the power of its fans.

    The hall for air costs less, and holds less.
    """
    plain, sidecar_result = (
        result(LIQUID),
        again(LIQUID, site__cooling="air", site__rack_kw_max="400 kW"),
    )
    (line,) = (line for line in sidecar_result.lines if line.path == "site/sidecar")
    assert line.usd == pytest.approx(sidecar_result.bill.power / 1e3 * 450, rel=1e-12)
    assert (line.asset, line.kind) == ("cooling", "estimate")
    rate, life, hours = (
        plain.inputs[f"terms.{name}"].value for name in ("rate", "life", "maintenance")
    )
    yearly = -12 * pyxirr.pmt(rate / 12, 12 * life, line.usd)
    assert line.usd_per_chip_hour == pytest.approx(yearly / (144 * 8760), rel=1e-9)
    assert hourly(sidecar_result, "upkeep/sidecar") == pytest.approx(
        line.usd * hours / (144 * 8760), rel=1e-12
    )
    fans = 0.05 * sidecar_result.bill.power / 144
    assert sidecar_result.metrics["it_power_w_per_chip"] == pytest.approx(
        plain.metrics["it_power_w_per_chip"] + fans, rel=1e-12
    )
    price, premium, backup = (
        plain.inputs[f"site.{name}"].value
        for name in ("usd_per_mw", "liquid_premium", "backup_usd_per_mw")
    )
    discount, hotter = (
        sidecar_result.inputs["site.air_discount"].value,
        sidecar_result.inputs["site.pue"].value / plain.inputs["site.pue"].value,
    )
    # both racks hold their own batteries, and a sixth of the hall stays empty
    air = (price * (1 - discount) - backup) / 0.85 / (price * (1 + premium) - backup)
    more = sidecar_result.metrics["it_power_w_per_chip"] / plain.metrics["it_power_w_per_chip"]
    for path in ("site/building", "site/building-upkeep"):
        assert hourly(sidecar_result, path) == pytest.approx(
            hourly(plain, path) * air * more, rel=1e-12
        )
    assert hourly(sidecar_result, "site/energy") == pytest.approx(
        hourly(plain, "site/energy") * more * hotter, rel=1e-12
    )
    assert sidecar_result.metrics["capex_usd"] == plain.metrics["capex_usd"]


@pytest.mark.parametrize("name", ["gb200-nvl72", "mi450x-ualoe72", LIQUID])
def test_a_hall_of_air_is_no_bargain_for_a_liquid_cooled_rack(catalogue, name):
    same = {
        "site.electricity_price": "0.09 USD/kWh",
        "site.rack_kw_max": "400 kW",
        "workload": "stated",
    }
    air, liquid = (
        evaluate(name, {"site": site, **same}, catalogue=catalogue).metrics
        for site in ("us-air-hall", "us-liquid-hall")
    )
    assert air["tco_usd_per_chip_hour"] >= liquid["tco_usd_per_chip_hour"]


def test_the_sidecar_is_noted():
    (note,) = (
        note
        for note in again(LIQUID, site__cooling="air", site__rack_kw_max="400 kW").notes
        if "sidecar" in note
    )
    assert note.startswith(
        "us-hyperscale is cooled by air: each rack of trn3-nl72x2 takes a liquid-to-air sidecar, "
    )
    assert note.endswith(" kW at 450 USD/kW, which draws 5% more and leaves 85% of the hall")


def test_air_cooled_rack_fits_any_site():
    assert same(again("trn3-nl32x2", site__cooling="air").metrics, result("trn3-nl32x2").metrics)


def test_unknown_cooling_is_refused():
    with pytest.raises(DataError, match="unknown cooling 'water'"):
        again(LIQUID, site__cooling="water")


@pytest.mark.parametrize("name", HEADLINE)
def test_the_worst_hour_takes_more_of_the_grid(name):
    metrics, inputs = result(name).metrics, result(name).inputs
    assert inputs["site.pue_peak"].value >= inputs["site.pue"].value
    expected = metrics["it_power_w_per_chip"] * inputs["site.pue_peak"].value
    assert metrics["peak_facility_power_w_per_chip"] == pytest.approx(expected, rel=1e-12)


def test_peak_pue_is_not_paid_for_as_energy():
    scenario_result = again(LIQUID, site__pue_peak="1.9")
    for metric in (
        "energy_usd_per_chip_hour",
        "tco_usd_per_chip_hour",
        "facility_power_w_per_chip",
    ):
        assert scenario_result.metrics[metric] == result(LIQUID).metrics[metric]


def test_rented_hall_is_paid_for_by_its_worst_hour():
    """A site that draws a fifth more at its worst hour pays a fifth more rent.

    The rent is that of the hall the site states.
    """
    rented = {"site": "us-colocation"}
    stated, hotter = (evaluate(LIQUID, rented | more) for more in ({}, {"site.pue_peak": "1.8"}))
    rents = [
        next(line.usd_per_chip_hour for line in site_result.lines if line.path == "site/colocation")
        for site_result in (stated, hotter)
    ]
    assert rents[0] == pytest.approx(
        stated.metrics["it_power_w_per_chip"] / 1000 * 184.06 * 12 / 8760, rel=1e-12
    )
    assert rents[1] == pytest.approx(rents[0] * 1.8 / 1.5, rel=1e-12)
    rise = hotter.metrics["tco_usd_per_chip_hour"] - stated.metrics["tco_usd_per_chip_hour"]
    assert rise == pytest.approx(rents[1] - rents[0], rel=1e-9)


def test_command_refuses_a_rack_beyond_the_site():
    done = tco("price", "mi450x-ualoe72", "--set", "site.rack_kw_max=200 kW")
    assert done.exit_code == 3
    assert "us-hyperscale: a rack position takes 200 kW" in done.stderr
    assert "Traceback" not in done.stderr
