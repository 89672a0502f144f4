"""A hall holds as many racks of one system as the worst hour leaves power for.

A rack that does not fit keeps its row in the table.
"""

from __future__ import annotations

import math

import pytest

from tco import DataError, compare, evaluate
from tco.comparison.filled_site import hall_of
from tco.scenario.pricing import worlds_in_a_rack
from tests.cli import HEADLINE, document, tco

POWER = {"site.power": "20 MW", "workload": "stated"}


def filled(catalogue, system="gb200-nvl72", **settings):
    paths = {path.replace("__", "."): value for path, value in settings.items()}
    result = evaluate(system, {**POWER, **paths}, catalogue=catalogue)
    return result, hall_of(result)


@pytest.mark.parametrize("system", ["gb200-nvl72", "trn3-nl32x2", "h100-hgx8", "tpuv6e-256"])
def test_the_worst_hour_fits_and_one_world_more_does_not(system, catalogue):
    result, hall = filled(catalogue, system)
    world = result.metrics["it_power_w_per_chip"] * result.metrics["chips"]
    peak = result.inputs["site.pue_peak"].value
    assert hall["worlds"] * world * peak <= 20e6 * (1 + 1e-9) < (hall["worlds"] + 1) * world * peak
    assert hall["chips"] == hall["worlds"] * result.metrics["chips"]
    assert hall["racks"] == math.ceil(hall["worlds"] * result.metrics["racks"])
    assert hall["capex_usd"] == pytest.approx(
        hall["chips"] * result.metrics["capex_usd_per_chip"], rel=1e-12
    )
    assert hall["it_power_w"] == pytest.approx(hall["worlds"] * world, rel=1e-12)
    # a hall in a region that builds for less than the usual price of a watt from the grid
    per_watt = hall["building_usd"] / (hall["it_power_w"] * peak)
    assert 0.6 < per_watt / result.inputs["site.usd_per_mw"].value < 1


def test_a_hot_summer_sells_less(catalogue):
    cool, hot = (filled(catalogue, site__pue_peak=peak)[1] for peak in ("1.2", "1.5"))
    assert hot["chips"] / cool["chips"] == pytest.approx(1.2 / 1.5, rel=0.02)


def test_a_margin_is_income_less_cost(catalogue):
    result, hall = filled(
        catalogue,
        money__rent="3.3 USD/chip/h",
        money__token_price="0.1 USD/Mtoken",
        workload__output_rate="700 token/s/chip",
    )
    used = result.metrics["goodput"] * 0.8
    income = used * (3.3 + 700 * 3600 / 1e6 * 0.1)
    expected = (income - result.metrics["tco_usd_per_chip_hour"]) * hall["chips"] * 8760 / 20
    assert hall["margin_usd_per_mw_year"] == pytest.approx(expected, rel=1e-9)
    assert filled(catalogue)[1]["margin_usd_per_mw_year"] is None
    assert hall["output_tokens_per_s"] == pytest.approx(700 * hall["chips"] * used)


def test_scenario_without_a_power_has_no_hall(catalogue):
    assert hall_of(evaluate("gb200-nvl72", {"workload": "stated"}, catalogue=catalogue)) is None


# ---------------------------------------------------------------- racks filled to their power
def test_three_servers_where_four_do_not_fit(catalogue):
    result, hall = filled(catalogue, "h100-hgx8", site__rack_kw_max="35 kW")
    full = filled(catalogue, "h100-hgx8")[1]
    assert (hall["worlds"], hall["racks"]) == (full["worlds"], math.ceil(full["worlds"] / 3))
    assert full["racks"] == math.ceil(full["worlds"] / 4)
    assert any(
        "so 3 of h100-hgx8 stand in a rack where 4 would draw 40." in note for note in result.notes
    )
    with pytest.raises(DataError, match="a rack position takes 9 kW"):
        filled(catalogue, "h100-hgx8", site__rack_kw_max="9 kW")


@pytest.mark.parametrize("name", ["h100-hgx8", "mi300x-8"])
@pytest.mark.parametrize("servers", [1, 2, 3, 5, 6])
def test_each_server_carries_its_share_of_the_rack(catalogue, name, servers):
    """Rack, power units and management switch are shared by its servers; nothing else differs."""
    usual, changed_rack = (
        evaluate(name, variant=variant, catalogue=catalogue)
        for variant in ({}, {"servers": str(servers)})
    )
    assert changed_rack.metrics["racks"] == pytest.approx(1 / servers)
    shared = sum(
        line.extended
        for line in usual.bill.lines
        if line.path in ("hgx-rack", "hgx-rack/rack-pdu", "hgx-rack/management-switch")
    )
    labour = 60 * 32 / 4  # of a rack's 32 hours, for each of four servers
    assert changed_rack.bill.price - usual.bill.price == pytest.approx(
        (shared + labour) * (4 / servers - 1), rel=1e-6
    )
    counts = {line.part: line.quantity for line in changed_rack.bill.lines}
    assert {
        part: counts[part]
        for part in counts
        if part not in ("hgx-rack", "rack-pdu", "management-switch")
    } == pytest.approx(
        {
            line.part: line.quantity
            for line in usual.bill.lines
            if line.part not in ("hgx-rack", "rack-pdu", "management-switch")
        }
    )


def test_rack_holds_the_servers_that_its_power_allows(catalogue):
    """Six servers of 10 kW share a rack of 80 kW, and three a rack of 35 kW.

    The note names the variant that prices three.
    """
    wide = evaluate(
        "h100-hgx8", {"site.rack_kw_max": "80 kW"}, variant={"servers": "6"}, catalogue=catalogue
    )
    assert not any("stand in a rack" in note for note in wide.notes)
    (note,) = (
        site_note
        for site_note in evaluate(
            "h100-hgx8", {"site.rack_kw_max": "35 kW"}, catalogue=catalogue
        ).notes
        if "stand in a rack" in site_note
    )
    assert note.endswith("; servers=3 prices it as it stands")
    exact = evaluate(
        "h100-hgx8", {"site.rack_kw_max": "35 kW"}, variant={"servers": "3"}, catalogue=catalogue
    )
    assert not any("stand in a rack" in note for note in exact.notes)


@pytest.mark.parametrize(
    ("most", "power", "racks", "together"),
    [(41, 10, 0.25, 4), (40, 10, 0.25, 4), (39.9, 10, 0.25, 3), (9, 10, 0.25, 0), (90, 10, 2, 0)],
)
def test_number_of_domains_in_a_rack_follows_from_its_power(most, power, racks, together):
    assert worlds_in_a_rack(most, power, racks) == together


# ---------------------------------------------------------------- side by side
def test_rack_that_does_not_fit_stays_in_the_table():
    compare_document = document(
        "compare", *HEADLINE, "--set", "site=us-air-hall", "--hall", "20 MW", "--no-range"
    )
    rows = {row["scenario"]: row for row in compare_document["rows"]}
    assert list(rows) == list(HEADLINE)
    for name in ("trn3-nl72x2", "gb200-nvl72", "mi450x-ualoe72"):
        row = rows[name]
        assert row["hall"] is None
        assert all(
            value is None
            for metric, value in row["metrics"].items()
            if "usd" in metric or "tco" in metric
        )
        assert row["metrics"]["output_tokens_per_s_per_chip"] > 0
        assert any(
            "does not fit: us-air-hall: a rack position takes 50 kW" in note
            for note in row["notes"]
        )
    assert rows["trn3-nl32x2"]["hall"]["racks"] > 300
    assert compare_document["baseline"] == "trn3-nl32x2"  # the first that has a cost


def test_the_table_of_a_site():
    hall_arguments = (
        "--set",
        "site=us-air-hall",
        "--hall",
        "20 MW",
        "--set",
        "money.rent=2 USD/chip/h",
        "--no-range",
    )
    done = tco("compare", "trn3-nl32x2", "gb200-nvl72", *hall_arguments)
    assert done.exit_code == 0
    for words in ("THE SITE FILLED", "~ racks", "~ chips", "~ gross margin per MW and year"):
        assert words in done.stdout
    assert "site: racks" not in tco("compare", "gb200-nvl72", "--no-range").stdout


def test_price_of_a_rack_that_does_not_fit_is_refused():
    assert tco("price", "gb200-nvl72", "--set", "site=us-air-hall").exit_code == 3
    assert [
        row.metrics["tco_usd_per_chip_hour"]
        for row in compare(["gb200-nvl72"], set={"site": "us-air-hall"}).results
    ] == [None]


@pytest.mark.parametrize("power", ["20", "20 mw", "-5 MW", "much"])
def test_bad_power_is_refused(power):
    done = tco("compare", "gb200-nvl72", "--hall", power)
    assert done.exit_code == 3
    assert "site.power" in done.stderr


# ---------------------------------------------------------------- sites
def test_building_of_rainier_has_its_published_power_and_chips(catalogue):
    """65 MW of IT power; seven buildings hold the 500,000 chips that were said to run, and more."""
    hall = hall_of(
        evaluate("rainier-building-trn2-nl32x2-3d", {"workload": "stated"}, catalogue=catalogue)
    )
    assert hall["it_power_w"] == pytest.approx(65e6, rel=0.01)
    assert 500_000 <= 7 * hall["chips"] <= 700_000


def test_a_site_is_based_on_another(catalogue, own_data):
    own_data.write(
        "sites/mine.toml", 'base = "us-hyperscale"\nname = "mine"\ntenure = "colocation"\n'
    )
    own_data.write("sites/deep.toml", 'base = "us-ohio"\nname = "deep"\n')
    ohio = evaluate("gb200-nvl72", {"site": "us-ohio", "workload": "stated"}, catalogue=catalogue)
    assert ohio.inputs["site.electricity_price"].value == pytest.approx(0.079e-3)
    assert ohio.inputs["site.pue"].value == 1.15
    with pytest.raises(DataError, match="base 'us-ohio' has a base itself"):
        evaluate(
            "gb200-nvl72", {"site": "deep", "workload": "stated"}, catalogue=own_data.catalogue()
        )
    own_data.write("sites/lost.toml", 'base = "us-hyperscal"\nname = "lost"\n')
    with pytest.raises(DataError, match="did you mean 'us-hyperscale'"):
        evaluate(
            "gb200-nvl72", {"site": "lost", "workload": "stated"}, catalogue=own_data.catalogue()
        )


def test_a_site_that_opens_later(catalogue):
    notes = evaluate(
        "gb200-nvl72", {"site.ready": "2027-03", "workload": "stated"}, catalogue=catalogue
    ).notes
    assert "us-hyperscale is ready from 2027-03, after the date of the prices, 2026-11" in notes
    ready = evaluate(
        "gb200-nvl72", {"site.ready": "2026-11", "workload": "stated"}, catalogue=catalogue
    )
    assert not [note for note in ready.notes if "ready" in note]
    with pytest.raises(DataError, match=r"site\.ready"):
        evaluate("gb200-nvl72", {"site.ready": "soon", "workload": "stated"}, catalogue=catalogue)
