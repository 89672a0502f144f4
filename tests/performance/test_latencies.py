"""Latency of small messages: memory ends, adding steps, devices on the way, and the network."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tco import evaluate
from tco.scenario.collective_links import route_of
from tests.catalogue import CATALOGUE, DATA
from tests.cli import document, tco
from tests.fabric_helpers import OPERATIONS, RankGroup, timings, timings_on
from tests.scenario_helpers import dispatched, links_of, system_of

FITTED = DATA / "calibration" / "collectives.csv"
SMALL = 8192.0


def test_start_of_a_collective_is_the_launch_and_two_trips_to_memory():
    """At H100's clock a start is the fitted launch and two trips of half a microsecond.

    The start of one-shot kernels is a share of the launch.
    """
    rows = csv.DictReader(FITTED.read_text().splitlines())
    fitted = {
        row["attribute"]: float(row["value"])
        for row in rows
        if (row["family"], row["source"]) == ("nvidia", "tco-calibration")
    }
    latencies = links_of("h100-hgx8").latencies
    assert float(latencies.ends) == pytest.approx(1e-6)
    assert float(latencies.start) == pytest.approx(fitted["collective_start"] + 1e-6, rel=1e-6)
    assert float(latencies.direct_start) == pytest.approx(
        fitted["direct_start_ratio"] * fitted["collective_start"] + 1e-6, rel=1e-6
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_collective_from_memory_to_memory_takes_a_trip_at_either_end(operation):
    """Trainium pays two trips if its ends are set into memory, whatever the algorithm.

    Its collectives start and end in on-chip memory.
    """
    trip = 2 * CATALOGUE.practice("trainium", "endpoint_latency").value
    near = timings(links_of("trn3-nl72x2"), operation, 144, SMALL)
    far = timings(
        links_of("trn3-nl72x2", performance__trainium__endpoint_in_memory="1"),
        operation,
        144,
        SMALL,
    )
    assert near.keys() == far.keys()
    for name, timing in near.items():
        assert float(far[name].time - timing.time) == pytest.approx(trip, rel=1e-9)


def test_expert_exchange_from_memory_to_memory_takes_a_trip_at_either_end():
    near, far = (
        dispatched(
            links_of("trn3-nl72x2", performance__trainium__endpoint_in_memory=share),
            72,
            8,
            8,
            7168.0,
        )
        for share in ("0", "1")
    )
    assert float(far - near) == pytest.approx(2e-6, rel=1e-9)


def test_only_what_adds_up_takes_longer():
    slow = links_of("h100-hgx8", performance__nvidia__reduction_latency="0.1 us")
    plain = links_of("h100-hgx8")
    adding = {"ring": 7, "halving-doubling": 3, "one-shot": 1, "two-shot": 1}
    for operation, steps in (
        ("all-reduce", adding),
        ("reduce-scatter", {"ring": 7, "recursive doubling": 3, "direct": 1}),
    ):
        before, after = timings(plain, operation, 8, SMALL), timings(slow, operation, 8, SMALL)
        for name, count in steps.items():
            assert float(after[name].time - before[name].time) == pytest.approx(
                count * 0.1e-6, rel=1e-6
            ), (operation, name)
    before, after = timings(plain, "all-reduce", 16, SMALL), timings(slow, "all-reduce", 16, SMALL)
    # of two servers
    for name, count in {
        "ring": 15,
        "halving-doubling": 3 + 1,
        "one-shot": 1,
        "two-shot": 1 + 1,
    }.items():
        assert float(after[name].time - before[name].time) == pytest.approx(
            count * 0.1e-6, rel=1e-6
        ), name
    for operation in ("all-gather", "all-to-all", "broadcast", "send-recv"):
        assert [float(t.time) for t in timings(slow, operation, 8, SMALL).values()] == [
            float(t.time) for t in timings(plain, operation, 8, SMALL).values()
        ]


def test_a_group_of_one_adds_nothing_up():
    slow, plain = (
        links_of("trn3-nl72x2", performance__trainium__reduction_latency=time)
        for time in ("0.12 us", "0 us")
    )
    for name in ("two-shot, forwarded", "one-shot"):
        single_rank, rack_ranks = (
            float(
                timings(slow, "all-reduce", n, SMALL)[name].time
                - timings(plain, "all-reduce", n, SMALL)[name].time
            )
            for n in (1, 144)
        )
        assert (single_rank, rack_ranks) == (0.0, pytest.approx(0.12e-6, rel=1e-6))


def test_steps_of_a_torus_that_add_up():
    before = timings(links_of("trn2-nl32x2-3d"), "all-reduce", 64, SMALL)["bucket"]
    after = timings(
        links_of("trn2-nl32x2-3d", performance__trainium__reduction_latency="0.12 us"),
        "all-reduce",
        64,
        SMALL,
    )["bucket"]
    # 3 + 3 + 3 steps of one of the two passes
    assert float(after.time - before.time) == pytest.approx(9 * 0.1e-6, rel=1e-6)


def test_every_device_on_the_way_to_the_other_rack_counts():
    """Four devices lie between the farthest chips of NL72x2: two switches and two chips.

    They are plane switch, chip, tray switch and paired chip; the switch of the step itself is
    among them.
    """
    met = links_of("trn3-nl72x2")
    hop, near = float(met.latencies.hop), float(met.latencies.near_step)
    assert hop == pytest.approx(0.3e-6 + 512 / 64e9)  # a packet through eight lanes of 8 GB/s
    forwarded_gather = timings(met, "all-gather", 144, SMALL)["direct, forwarded"]
    assert float(forwarded_gather.stepping - forwarded_gather.start) == pytest.approx(
        near + 3 * hop
    )
    rack = timings(met, "all-gather", 72, SMALL)["direct, forwarded"]
    assert float(rack.stepping - rack.start) == pytest.approx(near + 2 * hop)
    pairs = timings(met, "all-gather", 144, SMALL)["direct"]
    # a phase inside, and one cable to the pair
    assert float(pairs.stepping - pairs.start) == pytest.approx(near + 2 * hop + near)


def test_chips_of_a_tray_are_neighbours():
    met = links_of("trn3-nl72x2")
    tray, rack = (timings(met, "all-gather", ranks, SMALL)["direct"] for ranks in (4, 8))
    assert float(tray.stepping - tray.start) == pytest.approx(float(met.latencies.near_step))
    assert float(rack.stepping - rack.start) == pytest.approx(float(met.latencies.far_step))


def test_a_pair_across_the_racks_takes_one_cable():
    met = links_of("trn3-nl72x2")
    pair = timings_on(met, "all-reduce", RankGroup(2, 2, 1), SMALL)["two-shot"]
    assert float(pair.stepping - pair.start) == pytest.approx(2 * float(met.latencies.near_step))


def test_narrow_ports_hold_a_packet_longer():
    wide, narrow = (
        float(links_of("trn3-nl72x2", variant={"switch": which}).latencies.hop)
        for which in ("gen1", "gen3")
    )
    assert narrow - wide == pytest.approx(512 / 32e9 - 512 / 64e9)


@pytest.mark.parametrize("name", ["trn2-nl32x2-3d", "tpuv7-cube64"])
def test_torus_sends_small_messages_directly_and_large_ones_by_rings(name):
    """Small messages on a torus go straight to the place, large ones by rings.

    Rings over three dimensions take many steps.
    """
    met = links_of(name)
    small, large = (
        min((float(t.time), name) for name, t in timings(met, "all-reduce", 64, size).items())[1]
        for size in (SMALL, 2.0**30)
    )
    assert small in ("one-shot", "two-shot")
    assert large.startswith("bucket")


def test_groups_beyond_a_torus_cross_the_network():
    met = links_of("trn2-nl32x2-3d")
    inside, beyond = (
        timings(met, "all-reduce", ranks, 2.0**30)["bucket, all dimensions"] for ranks in (64, 128)
    )
    assert float(beyond.latency - inside.latency) > 2 * float(met.latencies.network_step) * (
        1 - 1e-9
    )
    # half of each shard, twice
    assert float(beyond.wire) >= 2**30 / 64 / float(met.network) * (1 - 1e-9)


def route(name: str, **settings: str):
    inputs = system_of(name, **settings)
    return route_of(inputs, inputs.values())


def test_chips_of_one_rank_meet_at_one_switch_where_leaves_serve_ranks():
    """4,608 chips: 64 racks on a leaf of 256 ports against two tiers over top-of-rack switches."""
    rail, rack = (
        route("gb200-nvl72", cluster__chips="4608"),
        route("trn3-nl72x2", cluster__chips="4608"),
    )
    assert (rail.design, rail.tiers, rail.switches) == ("leaf", 1, 1)
    assert (rack.design, rack.tiers, rack.switches) == ("tor", 2, 3)


def test_the_design_of_the_network_slows_serving_and_training_alike():
    plain, sprayed = (
        links_of("trn3-nl72x2", performance__network__tor_efficiency="1"),
        links_of("trn3-nl72x2"),
    )
    assert float(sprayed.network / plain.network) == pytest.approx(0.9)
    full_network, two = (
        links_of("trn3-nl72x2", cluster__oversubscription=ratio) for ratio in ("1", "2")
    )
    tiers = route("trn3-nl72x2", cluster__oversubscription="2").tiers
    assert float(full_network.network / two.network) == pytest.approx(2.0 ** (tiers - 1))
    # eight servers meet at their leaf
    single_leaf = links_of("h100-hgx8", cluster__chips="64", cluster__oversubscription="2")
    assert float(single_leaf.network) == pytest.approx(
        float(links_of("h100-hgx8", cluster__chips="64").network)
    )
    steps = [
        evaluate(
            "llama-3.1-405b-training-trn3-nl72x2",
            {"cluster.chips": "576", **extra},
            catalogue=CATALOGUE,
        ).metrics["step_s"]
        for extra in (
            {"performance.network.tor_efficiency": "1"},
            {},
            {"cluster.oversubscription": "4"},
        )
    ]
    assert steps[0] <= steps[1] <= steps[2]
    assert steps[0] < steps[2]


def test_further_switches_add_to_a_step():
    near, far = (
        links_of(
            "trn3-nl72x2", cluster__chips=chips, cluster__switch="25.6T"
        ).latencies.network_step
        for chips in ("16384", "32768")
    )
    assert float(far - near) == pytest.approx(2 * 0.8e-6)


@pytest.mark.parametrize("system", ["trn3-nl72x2", "trn2-nl32x2-3d", "gb200-nvl72"])
def test_parts_of_a_time_sum_to_it(system):
    collective_answer = document("collective", system, "--size", "16KiB", "--to", "1MiB")
    assert [row["size_bytes"] for row in collective_answer["sizes"]] == [
        2.0**power for power in range(14, 21)
    ]
    for row in (*collective_answer["candidates"], *collective_answer["sizes"]):
        assert sum(row["parts"].values()) == pytest.approx(row["time_us"], rel=1e-6)
        assert all(part >= 0 for part in row["parts"].values())
    assert np.all(np.diff([row["time_us"] for row in collective_answer["sizes"]]) > 0)
    best = collective_answer["candidates"][0]
    assert {name: collective_answer[name] for name in best} == best


def test_larger_messages_never_take_less_time():
    done = tco("collective", "gb200-nvl72", "--to", "1KiB")
    assert done.exit_code == 3
    assert "--to" in done.stderr
