"""Optical modules of a network's links, the cost of fibre by length, and links between sites."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tco import DataError, evaluate, evaluate_draws
from tco.scenario.network_choice import LANE, lane_neighbours
from tco.system.scale_out_network import optics_covering
from tests.catalogue import load_system
from tests.cli import document, tco
from tests.scenario_helpers import CATALOGUE, again, plain_values, result
from tests.system.test_wires import every_variant

HOUR = "tco_usd_per_chip_hour"
TWO_TIERS = ("network", "--switch", "25.6T", "--port", "100G", "--tiers", "2")


def lines_of(*arguments: str) -> dict[str, dict]:
    return {line["line"]: line for line in document(*arguments)["lines"]}


def modules(*arguments: str) -> set[str]:
    return {
        line["part"] for line in lines_of(*arguments).values() if line["part"].startswith("optic-")
    }


# ---------------------------------------------------------------- which module
def test_modules_with_which_a_network_costs_least_are_bought():
    wide = ("network", "--switch", "102.4T", "--port", "200G", "--tiers", "2")
    assert modules(*wide) == {"optic-1600g-dr8"}
    assert modules(*wide, "--set", "parts.optic-1600g-dr8.price=4000 USD") == {"optic-800g-dr8"}
    assert modules(*wide, "--set", "parts.optic-400g-dr4.price=20 USD") == {"optic-400g-dr4"}


def test_dearer_module_is_bought_if_it_saves_more_power_cost():
    """800G at little under half the price of 1.6T is bought, unless its module draws 100 W.

    That power costs more over its life than the module saves.
    """
    cheap = (
        "network",
        "--switch",
        "102.4T",
        "--port",
        "800G",
        "--tiers",
        "2",
        "--set",
        "parts.optic-800g-dr8.price=600 USD",
    )
    assert modules(*cheap) == {"optic-800g-dr8"}
    assert modules(*cheap, "--set", "parts.optic-800g-dr8.power=100 W") == {"optic-1600g-dr8"}


@pytest.mark.parametrize("name", ["gb200-nvl72", "mi450x-ualoe72", "trn3-nl72x2"])
def test_no_module_that_fits_makes_an_hour_cheaper(name):
    fitting = (
        ("400g-dr4", "800g-dr8", "1600g-dr8")
        if name == "mi450x-ualoe72"
        else ("400g-dr4", "800g-dr8")
    )
    hours = {optic: again(name, cluster__optic=optic).metrics[HOUR] for optic in fitting}
    assert result(name).metrics[HOUR] == min(hours.values())
    assert len(set(hours.values())) == len(fitting)


def test_a_module_too_fast_for_the_cards_is_refused():
    with pytest.raises(DataError, match="connectx-7 has lanes of 100G, every module faster ones"):
        again("gb200-nvl72", cluster__optic="1600g-dr8", cluster__switch="102.4T")


def test_a_module_is_no_faster_than_the_lanes_of_card_and_switch():
    """Cards or racks of 100G lanes keep 800G modules beside a switch of 200G lanes.

    ConnectX-7 is such a card. Vulcano takes 1.6T.
    """
    bought = {
        name: result(name).texts["cluster.optic"]
        for name in ("gb200-nvl72", "trn3-nl72x2", "mi450x-ualoe72")
    }
    assert bought == {
        "gb200-nvl72": "optic-800g-dr8",
        "trn3-nl72x2": "optic-800g-dr8",
        "mi450x-ualoe72": "optic-1600g-dr8",
    }
    slow = again("mi450x-ualoe72", cluster__switch="51.2T")
    assert slow.texts["cluster.optic"] == "optic-800g-dr8"


def test_a_module_too_fast_for_a_switch_is_refused_with_both_rates():
    done = tco("network", "--switch", "51.2T", "--set", "cluster.optic=1600g-dr8")
    assert (done.exit_code, done.stdout) == (3, "")
    assert (
        "tor-51t2 has lanes of 100G, every module faster ones (optic-1600g-dr8 200G)" in done.stderr
    )


def test_an_unknown_module_is_answered_with_those_there_are():
    done = tco("network", "--set", "cluster.optic=900g-dr9")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "unknown optical module '900g-dr9'" in done.stderr
    assert "optic-800g-dr8" in done.stderr


def test_every_card_and_switch_of_a_network_states_its_lanes(catalogue):
    """Without them every module would fit."""
    joined = {
        part
        for name, variant in every_variant(catalogue)
        for part in lane_neighbours(load_system(catalogue, name, variant))
    }
    switches = {
        part
        for part in catalogue.parts
        if catalogue.has_part_value(part, "switch_capacity") and part != "ualoe-switch-102t"
    }
    cards = {part for part in joined if catalogue.has_part_value(part, "port_bandwidth")}
    assert {"connectx-7", "vulcano-800g", "tor-12t8"} <= joined & (cards | switches)
    assert [
        part
        for part in sorted(cards | switches)
        if not catalogue.has_part_value(part, LANE) and not part.startswith("y-aec")
    ] == []


def test_draws_of_prices_choose_each_their_own_module():
    prices = np.array([600.0, 1360.0, 5000.0])
    stated_workload = {"workload": "stated"}
    draw_evaluation = evaluate_draws(
        "mi450x-ualoe72",
        stated_workload | {"parts.optic-1600g-dr8.price": (prices, "USD")},
        catalogue=CATALOGUE,
    )
    single = [
        evaluate(
            "mi450x-ualoe72",
            stated_workload | {"parts.optic-1600g-dr8.price": f"{price} USD"},
            catalogue=CATALOGUE,
        )
        for price in prices
    ]
    assert [evaluation.texts["cluster.optic"] for evaluation in single] == [
        "optic-1600g-dr8",
        "optic-1600g-dr8",
        "optic-800g-dr8",
    ]
    assert draw_evaluation.metrics["network_usd_per_chip"] == pytest.approx(
        [evaluation.metrics["network_usd_per_chip"] for evaluation in single], rel=1e-9
    )


# ---------------------------------------------------------------- fibre
def test_a_link_of_50_metres_costs_what_its_trunk_and_panels_are_listed_at():
    """An MPO-16 trunk at 50 to 150 USD and a port of panels at 500 to 1,500 for 48: 121."""
    values = plain_values()
    ends, strand = (values[f"parts.{part}.price"] for part in ("fibre-link", "fibre-strand"))
    length = values["cluster.cable_length"]
    assert length == 50
    assert ends + values["parts.optic-800g-dr8.strands"] * length * strand == pytest.approx(
        (50 + 150) / 2 + (500 + 1500) / 2 / 48, rel=0.01
    )


def test_fibre_is_paid_by_its_metres():
    near, far = (
        lines_of(*TWO_TIERS, "--set", f"cluster.cable_length={length} m") for length in (50, 150)
    )
    links = near["fibres"]["quantity"]
    assert near["fibres"] == far["fibres"]
    assert far["fibre-length"]["quantity"] == links * 16 * 150
    assert far["fibre-length"]["price_usd"] == pytest.approx(3 * near["fibre-length"]["price_usd"])
    assert far["fibre-length"]["price_usd"] == pytest.approx(links * 16 * 150 * 0.05)


# ---------------------------------------------------------------- between sites
def test_only_links_between_sites_are_long():
    """Of 4,096 links of 800G a quarter runs 80 km.

    Two tiers of 256 ports join 32,768 chips at 100G.
    """
    here = lines_of(*TWO_TIERS)
    split_lines = lines_of(*TWO_TIERS, "--span", "80 km", "--between-sites", "0.25")
    assert here["fibres"]["quantity"] == split_lines["fibres"]["quantity"] == 32768 / 8
    assert split_lines["modules-800g-zr"]["quantity"] == 2 * 32768 / 8 / 4
    assert split_lines["modules-800g-dr8"]["quantity"] == 2 * 32768 / 8 * 3 / 4
    assert split_lines["fibre-length"]["quantity"] == pytest.approx(
        1024 * 2 * 80_000 + 3072 * 16 * 50
    )


def test_two_equal_sites_join_by_half_of_the_links():
    split_network = document(*TWO_TIERS, "--span", "80 km")
    assert {line["line"]: line["quantity"] for line in split_network["lines"]}[
        "modules-800g-zr"
    ] == 32768 / 8
    done = tco(*TWO_TIERS, "--span", "80 km")
    assert "50 % of the links between the top two tiers run between sites, 80 km" in done.stdout


def test_lower_tiers_stay_inside_their_site():
    split_lines = lines_of(
        "network",
        "--switch",
        "25.6T",
        "--port",
        "400G",
        "--tiers",
        "3",
        "--span",
        "80 km",
        "--between-sites",
        "1",
    )
    assert split_lines["modules-800g-zr"]["quantity"] == split_lines["modules-800g-dr8"]["quantity"]


def test_sites_without_links_between_them_cost_what_one_costs():
    assert lines_of(*TWO_TIERS, "--span", "80 km", "--between-sites", "0") == lines_of(*TWO_TIERS)


def test_a_kilometre_takes_modules_for_two():
    assert modules(*TWO_TIERS, "--span", "1 km") == {"optic-800g-dr8", "optic-800g-fr4"}


def test_a_longer_span_is_never_cheaper():
    prices = [
        document(*TWO_TIERS, "--span", span)["price_usd"]
        for span in ("100 m", "400 m", "1 km", "2 km", "10 km", "80 km", "200 km")
    ]
    assert prices == sorted(prices)
    assert len(set(prices)) == len(prices)


def test_a_share_between_sites_without_a_span_is_refused():
    done = tco(*TWO_TIERS, "--between-sites", "0.1")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "add --span" in done.stderr


def test_one_tier_has_no_links_between_sites():
    done = tco("network", "--switch", "25.6T", "--port", "100G", "--tiers", "1", "--span", "80 km")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "ask for --tiers 2" in done.stderr


def test_shortest_reach_that_covers_a_length_is_taken_at_each_rate(catalogue):
    values = plain_values()
    optics = [part for part in catalogue.parts if part.startswith("optic-")]
    assert set(optics_covering(values, optics, 400.0)) == {
        "optic-400g-dr4",
        "optic-800g-dr8",
        "optic-1600g-dr8",
    }
    assert optics_covering(values, optics, 1999.0) == ["optic-800g-fr4"]
    with pytest.raises(
        DataError,
        match=r"a link of 900 km is beyond the reach of every optical module of cluster\.optic; "
        r"optic-800g-zr covers 300",
    ):
        optics_covering(values, optics, 900e3)


# ---------------------------------------------------------------- Helios
def test_helios_has_retimers_on_85_percent_of_its_links(catalogue):
    """SemiAnalysis counts over 550; each chip has 72 lanes."""
    quantity = load_system(catalogue, "mi450x-ualoe72").quantity
    lanes = catalogue.part_input("helios-retimer-200g", "lanes", "2026-11").value
    assert quantity["helios-retimer-200g"] == math.ceil(0.85 * 72 * 72 / lanes) > 550


def test_a_card_may_fail_only_where_another_takes_its_traffic(catalogue):
    spares = {
        cards: load_system(catalogue, "mi450x-ualoe72", {"nic": cards}).spares
        for cards in ("1x", "2x", "3x", "efa")
    }
    assert spares == {"1x": {}, "2x": {"vulcano-800g": 4}, "3x": {"vulcano-800g": 4}, "efa": {}}


def test_a_draw_with_long_links_moves_no_other():
    lengths = np.array([50.0, 700.0, 80.0])
    drawn = evaluate_draws(
        "trn3-nl72x2", {"cluster.cable_length": (lengths, "m")}, catalogue=CATALOGUE
    ).metrics["network_usd_per_chip"]
    single_costs = [
        again("trn3-nl72x2", cluster__cable_length=f"{length} m").metrics["network_usd_per_chip"]
        for length in lengths
    ]
    assert drawn == pytest.approx(single_costs, rel=1e-9)
    assert drawn[1] > drawn[2] > drawn[0]
