"""Tiers of a Clos and lanes of a fabric on systems that are made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.system import scale_out_network, wiring
from tests.cli import document


# ---------------------------------------------------------------- tiers
@pytest.mark.parametrize(
    ("radices", "oversubscription", "endpoints"),
    [
        ([64], 1.0, 64),
        ([4, 8], 1.0, 4 / 2 * 8),
        ([4, 8, 16], 1.0, 2 * 4 * 16),
        ([8, 8, 16], 3.0, 6 * 6 * 16),
    ],
)
def test_endpoints_of_a_clos_multiply_the_ports_down_of_every_tier(
    radices, oversubscription, endpoints
):
    reached = scale_out_network.clos_endpoints_by_radices(radices, oversubscription)
    assert reached == pytest.approx(endpoints, rel=1e-12)


@pytest.mark.parametrize(("chips", "tiers"), [(1, 1), (64, 1), (65, 2), (2048, 2), (2049, 3)])
def test_tiers_of_a_clos_are_the_fewest_that_reach_all_chips(chips, tiers):
    assert scale_out_network.tiers_needed(chips, 64) == tiers


def test_part_of_the_network_in_racks_that_the_tree_lacks_is_a_fault():
    system = SimpleNamespace(
        network={scale_out_network.IN_RACKS: ["switch", "cable"]},
        quantity={"switch": 2},
        where="a.toml",
    )
    faults = list(scale_out_network.nic_faults(system))
    assert faults == [
        f"network.{scale_out_network.IN_RACKS} names cable, of which the tree holds none"
    ]


VALUES = {"cluster.oversubscription": 1.0, "parts.switch.switch_capacity": 12.8e12 / 8}


@pytest.mark.parametrize(
    ("chips", "port", "words"),
    [
        (10_000, 100e9 / 8, r"10,000 chips do not fit 2 tiers .* reach 8,192; `--tiers 3`"),
        (1, 12.8e12 / 8, r"switch has no two ports of 12800G: 1 ports"),
    ],
)
def test_network_that_a_switch_cannot_make_is_refused_with_the_next_step(chips, port, words):
    with pytest.raises(DataError, match=words):
        scale_out_network.clos_size(VALUES, "switch", chips, port, 2)


def test_module_for_a_link_is_the_shortest_that_reaches_and_the_longest_is_named():
    reaches = {"near": 500.0, "far": 2000.0, "farther": 10000.0}
    values = SimpleNamespace(
        structure=lambda path: reaches[path.split(".")[1]] if path.endswith("reach") else 1e11
    )
    assert scale_out_network.optics_covering(values, list(reaches), 600.0) == ["far"]
    with pytest.raises(DataError, match=r"a link of 12 km is beyond .* farther covers 10 km$"):
        scale_out_network.optics_covering(values, list(reaches), 12e3)


def test_network_of_three_tiers_has_five_quarters_of_its_squared_radix_in_switches():
    """128 ports make 2 x 64^3 endpoints, on two tiers of 8,192 switches and a top of 4,096."""
    network = document("network", "--switch", "12.8T", "--port", "100G", "--tiers", "3")
    assert network["max_endpoints"] == 2 * 64**3
    assert [switches["count"] for switches in network["switches"]] == [8192, 8192, 4096]
    # four ports share a module of 400G, with one at each end of the links of two tiers
    assert network["transceivers"] == 2 * network["links"] == 2 * 2 * 2 * 64**3 / 8


# ---------------------------------------------------------------- lanes
def system_of(quantity=(), chips=8.0, racks=1.0, **fabric):
    """Return a system of eight chips with a fabric and a count of parts."""
    return SimpleNamespace(
        fabric=fabric,
        chips=chips,
        racks=racks,
        chip="chip",
        where="a.toml",
        quantity=dict(quantity),
        once=lambda _, make: make(),
    )


def test_lanes_of_a_mesh_lead_to_every_other_chip_and_those_of_hosts_do_not():
    system = system_of(kind="mesh", lanes={"wire": 4, "host": 16})
    assert wiring.used_lanes(system) == {"wire": 28, "host": 16}
    star = system_of(kind="star", lanes={"wire": 4, "host": 16})
    assert wiring.used_lanes(star) == {"wire": 4, "host": 16}


@pytest.mark.parametrize(
    ("lane_count", "serdes_count", "faults"),
    [
        (4, 20, []),
        (3, 20, ["fabric.lanes: wire 4 = 4 scale-up lanes, a chip has 3"]),
        (4, 19, ["fabric.lanes: wire 4 + host 16 = 20 lanes in all, a chip has 19"]),
    ],
)
def test_chip_without_the_lanes_that_its_fabric_takes_is_a_fault(lane_count, serdes_count, faults):
    counts = {"parts.chip.lanes": lane_count, "parts.chip.serdes_lanes": serdes_count}
    values = SimpleNamespace(has=counts.__contains__, structure=counts.get)
    system = system_of(kind="star", lanes={"wire": 4, "host": 16})
    assert list(wiring._chip_faults(system, None, values)) == faults


CATALOGUE = SimpleNamespace(parts={"switch": {}})


@pytest.mark.parametrize(
    ("switch_count", "plane_lanes", "faults"),
    [
        (4, 6, []),
        (2, 6, ["1 switch a plane by x3 give a chip 3 lanes, fabric.lanes.plane is 6"]),
        (4, 8, ["2 switch a plane by x3 give a chip 6 lanes, fabric.lanes.plane is 8"]),
        (6, 9, []),
    ],
)
def test_planes_without_the_ports_that_a_chip_needs_are_a_fault(switch_count, plane_lanes, faults):
    values = SimpleNamespace(structure=lambda _: 12)
    system = system_of(
        {"switch": switch_count},
        kind="two-level",
        switch="switch",
        port_lanes=3,
        planes=2,
        lanes={"plane": plane_lanes},
    )
    assert list(wiring._switch_faults(system, CATALOGUE, values)) == faults


@pytest.mark.parametrize(("switch_count", "is_fault"), [(4, False), (3, True), (0, True)])
def test_star_needs_a_port_for_every_lane_of_its_chips(switch_count, is_fault):
    values = SimpleNamespace(structure=lambda _: 8)
    system = system_of(
        {"switch": switch_count}, kind="star", switch="switch", lanes={"wire": 4, "host": 16}
    )
    faults = list(wiring._switch_faults(system, CATALOGUE, values))
    missing = [f"8 chips by 4 lanes are 32, {switch_count} switch have {switch_count * 8}"]
    absent = ["fabric.switch names switch, of which the tree holds none"] * (switch_count == 0)
    assert faults == [*absent, *missing] * is_fault
