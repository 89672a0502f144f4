"""One boundary for every rack: the same kinds of lines, each where it stands, none twice."""

from __future__ import annotations

import pytest

from tco import DataError, evaluate
from tco.scenario.network_choice import design_network
from tests.scenario_helpers import (
    CATALOGUE,
    DECEMBER,
    HEADLINE,
    again,
    bill_of,
    in_december,
    inputs_of,
    result,
    system_of,
)

HOUR = "tco_usd_per_chip_hour"


def tiers(catalogue, name, chips):
    inputs = system_of(
        name, catalogue=catalogue, cluster__chips=str(chips), cluster__switch="25.6T"
    )
    return design_network(inputs, inputs.values()).tiers


# ---------------------------------------------------------------- network
@pytest.mark.parametrize(
    ("name", "reach", "domain", "domain_tiers"),
    [
        ("trn3-nl32x2", 256 * 32, 32, 1),
        ("trn3-nl72x2", 256 * 72, 144, 2),  # a domain is two racks, with a switch each
    ],
)
def test_racks_with_their_own_switches_reach_as_many_racks_as_a_spine_has_ports(
    catalogue, name, reach, domain, domain_tiers
):
    """A spine of 25.6T has 256 ports of 100G, each for the switch of another rack."""
    assert tiers(catalogue, name, reach) == 2
    assert tiers(catalogue, name, reach + 1) == 3
    assert tiers(catalogue, name, domain) == domain_tiers
    # leaves of their own are filled whatever a rack holds
    assert tiers(catalogue, "gb200-nvl72", 32_768) == 2


def test_the_third_tier_of_small_racks_is_paid(catalogue):
    cost = {
        chips: again("trn3-nl32x2", cluster__chips=str(chips), cluster__switch="25.6T").metrics[
            "network_usd_per_chip"
        ]
        for chips in (4096, 8192, 16384, 32768)
    }
    assert cost[4096] == pytest.approx(cost[8192], rel=0.01)
    assert cost[16384] > cost[8192] + 500
    assert cost[32768] == pytest.approx(cost[16384], rel=0.01)


@pytest.mark.parametrize("name", HEADLINE)
def test_every_network_has_cards_switches_optics_and_a_front_end(name):
    rack_result = result(name)
    lines = [line for line in rack_result.lines if line.asset == "network"]
    parts = {line.path.rpartition("/")[2] for line in lines}
    assert parts & {"nitro-v6-400g", "connectx-7", "vulcano-800g"}
    # what joins hosts to the front end
    assert parts & {
        "nitro-v6-400g",
        "bluefield-3",
        "pensando-salina",
    }
    assert parts & {"tor-12t8", "tor-25t6", "switches-tier-1"}
    module = rack_result.texts["cluster.optic"].removeprefix("optic-")
    assert {
        f"modules-{module}",
        f"frontend-modules-{module}",
        "fibres",
        "fibre-length",
        "frontend-fibres",
    } <= parts
    network_cost = sum(line.usd for line in lines) / rack_result.metrics["chips"]
    assert rack_result.metrics["network_usd_per_chip"] == pytest.approx(network_cost, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "gbit"),
    [("trn3-nl72x2", 100), ("trn3-nl32x2", 25), ("gb200-nvl72", 100), ("mi450x-ualoe72", 100)],
)
def test_the_front_end_follows_the_cards_of_hosts(catalogue, name, gbit):
    inputs = inputs_of(name, catalogue=catalogue)
    assert inputs.values()[f"parts.{inputs.system.chip}.frontend_bandwidth"] == pytest.approx(
        gbit * 1e9 / 8
    )


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("mi450x-ualoe72", "1x", "2x"),
        ("mi450x-ualoe72", "2x", "3x"),
        ("gb200-nvl72", "200g", "400g"),
        ("trn3-nl72x2", "200g", "400g"),
    ],
)
def test_a_network_is_an_option_that_serving_inside_a_world_does_not_need(
    catalogue, name, less, more
):
    small, large = (
        evaluate(name, None, result(name).plan, catalogue=catalogue, variant={"nic": nic}).metrics
        for nic in (less, more)
    )
    assert small["network_usd_per_chip"] < large["network_usd_per_chip"]
    assert small["scale_out_byte_per_s"] < large["scale_out_byte_per_s"]
    assert small[HOUR] < large[HOUR]
    assert small["output_tokens_per_s_per_chip"] == pytest.approx(
        large["output_tokens_per_s_per_chip"], rel=0.02
    )


# built for oneself, or without cards in its tree
SOLD = [name for name in CATALOGUE.ids("systems") if not name.startswith(("trn", "tpu"))]


@pytest.mark.parametrize("name", SOLD)
def test_a_rack_that_is_sold_has_the_same_network_whoever_owns_it(catalogue, name):
    stated_settings = {"workload": "stated"}
    amazon, openai, nobody = (
        evaluate(name, stated_settings | {"terms.owner": owner}, catalogue=catalogue, refuse=False)
        for owner in ("Amazon", "OpenAI", "nobody")
    )
    for owner_result in (openai, nobody):
        assert owner_result.structure.variant == amazon.structure.variant
        assert (
            owner_result.metrics["network_usd_per_chip"] == amazon.metrics["network_usd_per_chip"]
        )
        assert (
            owner_result.metrics["scale_out_byte_per_s"] == amazon.metrics["scale_out_byte_per_s"]
        )
    assert not any(line.part.startswith("nitro-") for line in amazon.bill.lines)
    cards = evaluate(
        name, stated_settings, catalogue=catalogue, variant={"nic": "efa"}, refuse=False
    ).bill.lines
    assert any(line.part.startswith("nitro-") for line in cards)  # Amazon's stay an option


def test_cards_other_than_the_usual_ones_are_named(catalogue):
    rack_result = evaluate(
        "mi450x-ualoe72",
        None,
        result("mi450x-ualoe72").plan,
        catalogue=catalogue,
        variant={"nic": "2x"},
    )
    (note,) = (note for note in rack_result.notes if "nic=" in note)
    assert (
        note == "nic=2x in place of the usual nic=1x: the network is "
        f"{rack_result.metrics['network_usd_per_chip']:,.0f} USD per chip"
    )
    assert not any("nic=" in note for note in result("mi450x-ualoe72").notes)


def test_a_network_that_serving_does_not_use_is_named(catalogue):
    cards = {"parts.vulcano-800g.price": "4000 USD"}
    dear = evaluate(
        "mi450x-ualoe72",
        cards,
        result("mi450x-ualoe72").plan,
        catalogue=catalogue,
        variant={"nic": "3x"},
    )
    (note,) = (note for note in dear.notes if "scale-out network" in note)
    assert note.endswith("here with nic=3x")
    assert f"{dear.metrics['network_usd_per_chip']:,.0f} USD per chip" in note
    assert not any("scale-out network" in note for note in result("gb200-nvl72").notes)


@pytest.mark.parametrize("name", HEADLINE)
def test_the_switch_with_which_an_hour_costs_least_is_bought(name):
    hours = {
        switch: again(name, cluster__switch=switch).metrics[HOUR]
        for switch in ("12.8T", "25.6T", "51.2T", "102.4T")
    }
    assert result(name).metrics[HOUR] == min(hours.values())
    assert len(set(hours.values())) == 4


def test_switch_of_lower_power_is_bought_if_power_has_a_price(catalogue):
    """GB200 takes the 25.6T switch by price alone, and the 51.2T switch where power is paid.

    With 51.2T the network draws less.
    """
    free = DECEMBER | {
        path: f"0 {unit}"
        for path, unit in (
            ("site.usd_per_mw", "USD/W"),
            ("site.electricity_price", "USD/kWh"),
            ("site.staff", "USD/W/year"),
        )
    }
    bought = {
        site: evaluate(
            "gb200-nvl72", settings, result("gb200-nvl72").plan, catalogue=catalogue
        ).texts["cluster.switch"]
        for site, settings in (("free", free), ("usual", DECEMBER))
    }
    assert bought == {"free": "tor-25t6", "usual": "tor-51t2"}


def test_choice_of_a_switch_follows_its_price(catalogue):
    """A cheaper switch is bought and a dearer one is not.

    A price that only decides the choice is no setting without effect.
    """

    def bought(part, price):
        rack_result = evaluate(
            "gb200-nvl72",
            DECEMBER | {f"parts.{part}.price": f"{price} USD"},
            result("gb200-nvl72").plan,
            catalogue=catalogue,
        )
        assert not any("nothing in this scenario rests on it" in note for note in rack_result.notes)
        return rack_result.texts["cluster.switch"]

    usual = again("gb200-nvl72", terms__date="2025-12").texts["cluster.switch"]
    assert usual != "tor-25t6" == bought("tor-25t6", 1000)
    assert bought("tor-25t6", 9e6) == usual
    assert bought(usual, 9e6) == "tor-25t6"


def test_a_switch_that_is_not_yet_sold_is_not_bought(catalogue):
    switches = {
        date: evaluate("gb200-nvl72", {"terms.date": date}, catalogue=catalogue).texts[
            "cluster.switch"
        ]
        for date in ("2025-12", "2026-09")
    }
    assert switches == {"2025-12": "tor-51t2", "2026-09": "tor-102t4"}


def test_a_branded_switch_costs_more_than_a_whitebox():
    for name in ("trn3-nl72x2", "gb200-nvl72"):
        whitebox, branded = (
            again(name, cluster__switch=switch).metrics["network_usd_per_chip"]
            for switch in ("51.2T", "spectrum-sn5600")
        )
        assert branded > whitebox


# ---------------------------------------------------------------- power and building
@pytest.mark.parametrize("name", HEADLINE)
def test_batteries_stand_in_the_rack_or_in_the_building(name):
    """And a hall for liquid costs a premium on the average hall, one for air less."""
    rack_result = result(name)
    price, premium, discount, backup = (
        rack_result.inputs[f"site.{key}"].value if f"site.{key}" in rack_result.inputs else 0.0
        for key in BUILDING
    )
    in_rack = any(line.part == "bbu-shelf" for line in rack_result.bill.lines)
    assert in_rack == (backup > 0) == name.startswith("trn3")
    assert (premium > 0) == (discount == 0) == (name != "trn3-nl32x2")
    building = next(line.usd for line in rack_result.lines if line.path == "site/building")
    power = rack_result.metrics["it_power_w_per_chip"] * rack_result.metrics["chips"]
    assert building == pytest.approx(power * (price * (1 + premium - discount) - backup), rel=1e-12)


BUILDING = ("usd_per_mw", "liquid_premium", "air_discount", "backup_usd_per_mw")


def test_a_site_that_states_one_price_for_all_is_paid_as_it_states(own_data):
    text = own_data.catalogue().find("sites", "us-hyperscale", "site").read_text(encoding="utf-8")
    start, end = text.index("[air_discount]"), text.index("[maintenance]")
    own_data.write("sites/us-hyperscale.toml", text[:start] + text[end:])
    rack_result = evaluate(
        "trn3-nl72x2", None, result("trn3-nl72x2").plan, catalogue=own_data.catalogue()
    )
    building = next(line.usd for line in rack_result.lines if line.path == "site/building")
    assert building == pytest.approx(
        rack_result.metrics["it_power_w_per_chip"] * 144 * 12.9, rel=1e-12
    )


# ---------------------------------------------------------------- parts
@pytest.mark.parametrize(
    ("variant", "dimms"),
    [
        ({}, {"ddr5-dimm": 96}),
        ({"cpu": "x86"}, {"ddr5-dimm": 128}),
        ({"dimm": "128g"}, {"ddr5-dimm-128g": 96}),
    ],
    ids=["graviton4", "x86", "128g"],
)
def test_a_socket_has_the_channels_of_its_cpu(catalogue, variant, dimms):
    quantity = bill_of("trn3-nl32x2", {}, variant, catalogue=catalogue).system.quantity
    assert {
        part: quantity.get(part, 0)
        for part in ("ddr5-dimm", "ddr5-dimm-128g")
        if quantity.get(part)
    } == dimms


def test_gb200_memory_outside_hbm_is_one_price_and_all_its_parts():
    bill = {line.part: line for line in again("gb200-nvl72", terms__date="2025-12").bill.lines}
    assert bill["gb200-memory"].extended == 233_067
    assert (bill["lpddr5x-480gb"].quantity, bill["nvme-3t84"].quantity) == (36, 144)
    assert bill["lpddr5x-480gb"].extended is bill["nvme-3t84"].extended is None


def test_memory_prices_raise_the_price_of_every_rack(catalogue):
    """From December 2025 to September 2026 memory makes every rack dearer outside its chips.

    It does so for racks that are built up and for racks that are bought.
    """
    for name in HEADLINE:
        dated = [
            evaluate(name, {"terms.date": date}, result(name).plan, catalogue=catalogue)
            for date in ("2025-12", "2026-09")
        ]
        prices = [
            sum(
                line.extended
                for line in dated_result.bill.lines
                if line.extended and line.part != system_of(name).system.chip
            )
            for dated_result in dated
        ]
        assert prices[1] > 1.02 * prices[0], name


# ---------------------------------------------------------------- trust
def test_storage_is_no_firmer_than_the_bill_it_is_a_share_of():
    for name in HEADLINE:
        (line,) = (line for line in result(name).lines if line.asset == "storage")
        assert line.kind == "estimate"


def test_a_building_rests_on_its_life_and_the_rate_too():
    (line,) = (line for line in result("gb200-nvl72").lines if line.path == "site/building")
    assert line.kind == "assumed"  # its life is


@pytest.mark.parametrize(
    ("name", "least"),
    [("gb200-nvl72", 0.75), ("trn3-nl32x2", 0.40), ("trn3-nl72x2", 0.45), ("mi450x-ualoe72", 0.40)],
)
def test_the_price_of_hardware_rests_on_sources(name, least):
    assert result(name).shares["hardware"]["sourced"] >= least


def test_gb200_rack_costs_what_morgan_stanley_computes():
    """Morgan Stanley computes 3,329,523 USD for the rack.

    It leaves boards and other parts open, 11 %, which are estimates here.
    """
    assert in_december("gb200-nvl72").bill.price == pytest.approx(3_329_523, rel=0.05)


# ---------------------------------------------------------------- storage by tier
def test_tiers_that_are_stated_stand_in_place_of_the_share(catalogue):
    """40 PB of flash and 500 PB of objects for 16,384 chips, each world its share."""
    tiers = {"cluster.flash_capacity": "40 PB", "cluster.object_capacity": "500 PB"}
    plain = evaluate("gb200-nvl72", {"workload": "stated"}, catalogue=catalogue)
    line_amounts = {
        line.path: line.amount
        for line in evaluate(
            "gb200-nvl72", {"workload": "stated", **tiers}, catalogue=catalogue
        ).lines
    }
    share = 72 / plain.inputs["cluster.chips"].value
    assert line_amounts["storage/flash"] == pytest.approx(40e15 * share * 250e-12)
    assert line_amounts["storage/objects"] == pytest.approx(500e15 * share * 0.021e-9 * 12)
    assert "storage" not in line_amounts
    assert "storage" in {line.path for line in plain.lines}
    with pytest.raises(DataError, match=r"cluster\.flash_capacity"):
        evaluate(
            "gb200-nvl72",
            {"workload": "stated", "cluster.flash_capacity": "40"},
            catalogue=catalogue,
        )
