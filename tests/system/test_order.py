"""Order between newer and older parts, larger and smaller networks; published power of racks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tco.system.scale_out_network import NetworkDesign, scale_out_network
from tests.catalogue import tiers_needed
from tests.scenario_helpers import again, bill_of, fabric_of, plain_values, result, system_of

DESIGNS = ("tor", "leaf")

GENERATIONS = (
    ("trn1", "trn2", "trn3", "trn4"),
    ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm"),
    ("gb200-gpu", "gb300-gpu", "vr200-gpu"),
    ("mi300x", "mi325x", "mi355x", "mi450x"),
    ("tpu-v6e", "tpu-v7"),
)

RATES = (
    "peak_bf16",
    "peak_fp8",
    "peak_fp4",
    "hbm_capacity",
    "hbm_bandwidth",
    "scale_up_bandwidth",
    "scale_out_bandwidth",
)
SUCCESSORS = [pair for generation in GENERATIONS for pair in pairwise(generation)]


@pytest.mark.parametrize(("older", "newer"), SUCCESSORS)
@pytest.mark.parametrize("rate", RATES)
def test_a_newer_chip_is_not_slower(catalogue, older, newer, rate):
    before, after = (catalogue.part_input(chip, rate, "2026-12").value for chip in (older, newer))
    assert after >= before


SWITCHES = [
    ("scorpio-x-160", "scorpio-x-320", "ualink-switch"),
    ("nvswitch-2", "nvswitch-3", "nvswitch-5", "nvswitch-6"),
]
NETWORK = [("tor-6t4", "tor-12t8", "tor-25t6", "tor-51t2", "tor-102t4")]


@pytest.mark.parametrize(("older", "newer"), [pair for line in SWITCHES for pair in pairwise(line)])
def test_a_newer_switch_carries_no_less(catalogue, older, newer):
    lanes = [
        catalogue.part_input(part, "lanes", "2026-12").value
        * catalogue.part_input(part, "lane_bandwidth", "2026-12").value
        for part in (older, newer)
    ]
    assert lanes[1] >= lanes[0]


@pytest.mark.parametrize(("older", "newer"), [pair for line in NETWORK for pair in pairwise(line)])
def test_a_larger_switch_costs_more_in_all_but_no_more_a_bit(catalogue, older, newer):
    price, capacity = (
        [catalogue.part_input(part, name, "2025-12").value for part in (older, newer)]
        for name in ("price", "switch_capacity")
    )
    assert price[1] > price[0]
    assert price[1] / capacity[1] <= price[0] / capacity[0] * 1.05


def world(name: str, **variant: str):
    inputs = system_of(name, variant)
    return fabric_of(inputs)


@pytest.mark.parametrize("name", ["trn3-nl32x2", "trn3-nl72x2"])
def test_a_newer_generation_of_switches_has_no_more_hops(name):
    """And carries the same: the lanes of the chips set the rate."""
    for older, newer in pairwise(("gen1", "gen2", "gen3")):
        for before, after in zip(world(name, switch=older), world(name, switch=newer), strict=True):
            assert after.hops_mean <= before.hops_mean
            assert after.hops_worst <= before.hops_worst
            assert (after.injection, after.bisection, after.all_to_all) == (
                before.injection,
                before.bisection,
                before.all_to_all,
            )


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("trn2-nl16", "trn3-nl16"),
        ("trn2-nl32x2-3d", "trn3-nl32x2-3d"),
        ("trn3-nl32x2-3d", "trn3-nl32x2"),
    ],
)
def test_a_newer_world_of_as_many_chips_exchanges_no_less(older, newer):
    before, after = world(older)[-1], world(newer)[-1]
    assert before.chips == after.chips
    assert after.all_to_all >= before.all_to_all
    assert after.bisection >= before.bisection


# ---------------------------------------------------------------- clusters
OPTIC = "optic-800g-dr8"


def network_of(chips: float, nic: float, design: str):
    """Return the network of a cluster as a scenario builds it, with the tiers that it needs."""
    values = plain_values()
    radix = values["parts.tor-51t2.switch_capacity"] / 12.5e9
    return scale_out_network(
        values,
        NetworkDesign(chips, nic, "tor-51t2", OPTIC, tiers_needed(chips, radix), 12.5e9, design),
    )


def test_the_links_of_a_leaf_are_of_the_rate_of_its_own_module():
    """A cluster of one tier needs twice as many modules at half their rate.

    Modules of longer reach have no part in it.
    """
    module_counts = {}
    for part in (None, "optic-800g-dr8", "optic-800g-fr4"):
        values = plain_values(**({f"parts.{part}.port_bandwidth": "50 GB/s"} if part else {}))
        lines = scale_out_network(
            values, NetworkDesign(64.0, 50e9, "tor-51t2", OPTIC, 1, 12.5e9, "leaf")
        ).lines
        (module_counts[part],) = (
            line.quantity for line in lines if line.name == "modules-800g-dr8"
        )
    assert module_counts[None] == 64 * 50e9 / 100e9 * 2  # an end each
    assert (module_counts["optic-800g-dr8"], module_counts["optic-800g-fr4"]) == (
        2 * module_counts[None],
        module_counts[None],
    )


sizes = st.integers(1, 2_000_000)


@given(sizes, sizes, st.sampled_from((12.5e9, 25e9, 50e9, 100e9)), st.sampled_from(DESIGNS))
def test_a_bigger_cluster_has_no_cheaper_network(first_chips, second_chips, nic, design):
    small, large = (
        network_of(float(chips), nic, design) for chips in sorted((first_chips, second_chips))
    )
    assert large.price >= small.price
    assert large.power >= small.power
    assert large.tiers >= small.tiers


@given(st.integers(64, 200_000), st.floats(1e9, 100e9), st.floats(1.0, 4.0))
def test_faster_nics_have_no_cheaper_network(chips, nic, faster):
    assert (
        network_of(float(chips), nic * faster, "tor").price
        >= network_of(float(chips), nic, "tor").price
    )


@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72"])
def test_a_bigger_cluster_does_not_cost_less_in_total(name):
    """All chips of the cluster together, an hour."""
    counts = (144, 1152, 4608, 16128, 64512, 258048)
    costs = [
        count * again(name, cluster__chips=f"{count} count").metrics["tco_usd_per_chip_hour"]
        for count in counts
    ]
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


@pytest.mark.parametrize("name", ["trn3-nl72x2", "gb200-nvl72"])
def test_undersubscribing_the_network_costs_more(name):
    ratios = (4, 2, 1, 0.5)
    costs = [
        again(name, cluster__oversubscription=str(ratio)).metrics["network_usd_per_chip"]
        for ratio in ratios
    ]
    assert costs == sorted(costs)
    assert costs[-1] > costs[0]


@pytest.mark.parametrize("name", ["trn3-nl72x2", "mi450x-ualoe72"])
def test_a_dearer_part_never_makes_a_cheaper_bill(name, catalogue):
    plain = bill_of(name, catalogue=catalogue).bill.price
    paths = [
        path
        for path in result(name).inputs
        if path.startswith("parts.") and path.endswith(".price")
    ]
    assert len(paths) >= 10
    for path in paths:
        dearer = {path: f"{result(name).inputs[path].value * 1.5!r} USD"}
        assert bill_of(name, dearer, catalogue=catalogue).bill.price >= plain, path


# ---------------------------------------------------------------- power, as published
PUBLISHED = [  # system, variant, kW of a rack: at least, at most; and who says so
    ("trn2-nl32x2-3d", {}, 24 * 0.95, 24 * 1.05),  # SemiAnalysis: 24 kW
    ("trn2-nl16", {}, 27 * 0.95, 27 * 1.05),  # SemiAnalysis: 27 kW
    ("gb200-nvl72", {}, 120, 132),  # NVIDIA's guide to its DGX: about 120; 132 provisioned
    ("gb300-nvl72", {}, 132, 142),  # 132 to 142 by power supply
    ("mi450x-ualoe72", {}, 225, 245),  # AMD's rack
    ("vr-nvl144", {"power": "maxp"}, 230 * 0.95, 230 * 1.05),  # the high setting
    ("vr-nvl144", {"power": "maxq"}, 190 * 0.95, 190 * 1.05),  # the low setting
    ("h100-hgx8", {}, 4 * 10.2 * 0.93, 4 * 10.2),  # 10.2 kW a server at most
    ("b200-hgx8", {}, 4 * 14.3 * 0.9, 4 * 14.3),  # 14.3 kW a server at most
    ("tpuv7-pod9216", {}, 10_000 / 144 * 0.95, 10_000 / 144 * 1.05),  # nearly 10 MW a pod
]


@pytest.mark.parametrize(
    ("name", "variant", "low", "high"),
    PUBLISHED,
    ids=[f"{case[0]} {'-'.join(case[1].values())}".strip() for case in PUBLISHED],
)
def test_rack_power_as_published(catalogue, name, variant, low, high):
    bill = bill_of(name, {}, variant, catalogue=catalogue)
    assert low <= bill.bill.power / bill.system.racks / 1e3 <= high


def test_the_server_with_more_nics_draws_more(catalogue):
    """27 against 24 kW: four times the NICs, and more switches above them."""
    wide, narrow = (bill_of(name, catalogue=catalogue) for name in ("trn2-nl16", "trn2-nl32x2-3d"))
    difference = wide.bill.power / wide.system.racks - narrow.bill.power / narrow.system.racks
    assert difference == pytest.approx(3e3, rel=0.2)


@pytest.mark.parametrize("cooling", ["air", "liquid"])
def test_no_rack_draws_more_than_its_shelves_deliver(catalogue, cooling):
    for name in catalogue.ids("systems"):
        bill = bill_of(name, catalogue=catalogue)
        (shelf,) = {
            line.part
            for line in bill.bill.lines
            if catalogue.has_part_value(line.part, "efficiency")
        }
        if bill.system.cooling == cooling:
            rated = (
                bill.system.quantity[shelf]
                * catalogue.part_input(shelf, "rated_power", "2025-12").value
            )
            load = sum(line.power for line in bill.bill.lines if line.part != shelf)
            assert load <= rated, name
