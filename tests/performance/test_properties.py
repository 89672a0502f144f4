"""No collective or pass beats its lower bounds, and more hardware is never slower."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco.fabric.collective_times import AlgorithmTiming
from tco.fabric.links import Latencies
from tests.fabric_helpers import OPERATIONS, Links, RankGroup, rank_group, timings, timings_on
from tests.performance.servers import (
    CATALOGUE,
    DecodePlan,
    Machine,
    Server,
    changed,
    decode_plan_from_axes,
    plan_axes,
    server,
)
from tests.registry import Known
from tests.scenario_helpers import dispatched, fabric_of, links_of, system_of

FABRICS = {
    "star": "gb200-nvl72",
    "star that adds up": "h100-hgx8",
    "two stars": "gb200-nvl36x2",
    "two levels": "trn3-nl72x2",
    "torus": "trn2-nl32x2-3d",
    "large torus": "tpuv7-cube64",
    "mesh": "mi355x-8",
}
on_every_fabric = pytest.mark.parametrize("fabric", FABRICS)
RATES = (
    "inside",
    "direct",
    "pairwise",
    "spread",
    "crossing",
    "network",
    "lane",
    "pairwise_lane",
    "exchange_lane",
    "copy_rate",
)
# all ports at work, without chunks: a step reaches all
AT_ONCE = (
    "one-shot",
    "two-shot",
    "two-shot, forwarded",
    "direct",
    "direct, forwarded",
)
SLACK = 1 - 1e-9


class Wires(NamedTuple):
    """Full rates of a system's links, before anything that practice takes away."""

    name: str
    domain: int
    world: int
    inside: float  # injection of a chip inside its domain
    anywhere: float  # with its lanes to other domains of the world
    crossing: float  # those lanes alone
    network: float
    bisections: dict[int, float]  # of a domain and of the world


@cache
def fabric_named(name: str, **setting_texts: str) -> tuple[Links, Wires]:
    """Return the links and wires of a system's chips.

    The switches of H100 servers, which can, add up here.
    """
    inputs = system_of(name, **setting_texts)
    values = inputs.values()
    links, scopes = (
        links_of(name, **setting_texts)._replace(reduces=name == FABRICS["star that adds up"]),
        fabric_of(inputs),
    )
    inner = next(scope for scope in scopes if scope.chips == links.domain)
    world = scopes[-1]
    network = float(values[f"parts.{inputs.system.chip}.scale_out_bandwidth"])
    bisections = {scope.chips: float(scope.bisection) for scope in (inner, world)}
    anywhere = max(float(inner.injection), float(world.injection))
    return links, Wires(
        name,
        links.domain,
        links.world,
        float(inner.injection),
        anywhere,
        float(world.crossing or 0),
        network,
        bisections,
    )


def groups(world: int) -> st.SearchStrategy[int]:
    """Ranks of a collective: any in a world, and several worlds."""
    return st.one_of(st.integers(2, world), st.sampled_from([2 * world, 4 * world, 8 * world]))


@st.composite
def draw_group(draw, wires: Wires) -> RankGroup:
    """Draw a group of ranks: consecutive, or some in each of several domains.

    The domains are of one world, or so many that they fill worlds.
    """
    if draw(st.booleans()):
        return rank_group(fabric_named(wires.name)[0], draw(groups(wires.world)))
    joined = wires.world // wires.domain
    if joined > 1 and draw(st.booleans()):
        ranks_per_domain, domains = draw(st.integers(1, wires.domain)), draw(st.integers(2, joined))
    else:
        domains = draw(st.sampled_from([2, 4, 8])) * joined
        ranks_per_domain = draw(st.integers(wires.world // domains + 1, wires.domain))
    return RankGroup(ranks_per_domain * domains, domains, ranks_per_domain)


sizes = st.floats(0, 10).map(lambda power: 10**power)
factors = st.floats(1, 16)
operations = st.sampled_from(OPERATIONS)


def scaled(record: Any, fields: dict[str, float]) -> Any:
    """Return a tuple with some fields multiplied, those it has."""
    return record._replace(
        **{
            name: getattr(record, name) * factor
            for name, factor in fields.items()
            if getattr(record, name) is not None
        }
    )


def algorithm_times(timings_by_algorithm: dict[str, AlgorithmTiming]) -> dict[str, float]:
    return {name: float(timing.time) for name, timing in timings_by_algorithm.items()}


# ---------------------------------------------------------------- collectives: more hardware
@on_every_fabric
def test_more_bandwidth_is_never_slower(fabric):
    """Whichever rates rise, and for every algorithm."""
    links, wires = fabric_named(FABRICS[fabric])

    @settings(max_examples=60)
    @given(
        operations,
        groups(wires.world),
        sizes,
        st.dictionaries(st.sampled_from(RATES), factors, min_size=1),
    )
    def never_slower(operation, ranks, size, raised):
        before, after = (
            algorithm_times(timings(met, operation, ranks, size))
            for met in (links, scaled(links, raised))
        )
        assert before.keys() == after.keys()
        assert all(after[name] <= time for name, time in before.items())

    never_slower()


@on_every_fabric
def test_lower_latencies_are_never_slower(fabric):
    links, wires = fabric_named(FABRICS[fabric])

    @settings(max_examples=60)
    @given(
        operations,
        groups(wires.world),
        sizes,
        st.dictionaries(st.sampled_from(Latencies._fields), st.floats(0, 1), min_size=1),
    )
    def never_slower(operation, ranks, size, lowered):
        quick = links._replace(latencies=scaled(links.latencies, lowered))
        before, after = (
            algorithm_times(timings(met, operation, ranks, size)) for met in (links, quick)
        )
        assert all(after[name] <= time for name, time in before.items())

    never_slower()


@on_every_fabric
def test_a_larger_buffer_is_never_quicker(fabric):
    links, wires = fabric_named(FABRICS[fabric])

    @settings(max_examples=60)
    @given(operations, groups(wires.world), sizes, factors)
    def never_quicker(operation, ranks, size, factor):
        small, large = (
            algorithm_times(timings(links, operation, ranks, buffer))
            for buffer in (size, size * factor)
        )
        assert all(large[name] >= time for name, time in small.items())

    never_quicker()


FASTER = ("lane_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth")


@on_every_fabric
@pytest.mark.parametrize("attribute", FASTER)
def test_faster_links_of_the_chip_are_never_slower(fabric, attribute):
    """From the catalogue's figure on, whatever the fabric makes of it."""
    name = FABRICS[fabric]
    inputs = system_of(name)
    path = f"parts.{inputs.system.chip}.{attribute}"
    before = inputs.values()[path]
    links, wires = fabric_named(name)
    faster = fabric_named(name, **{path.replace(".", "__"): f"{before * 1.5!r} byte/s"})[0]
    for operation in OPERATIONS:
        for ranks in (2, 4, wires.domain, wires.world, 4 * wires.world):
            for size in (1e3, 1e6, 1e9):
                slow, quick = (
                    algorithm_times(timings(met, operation, ranks, size)) for met in (links, faster)
                )
                assert all(quick[algorithm] <= time for algorithm, time in slow.items())
    if attribute == "scale_out_bandwidth":
        assert float(faster.network) == pytest.approx(1.5 * float(links.network), rel=1e-12)


@on_every_fabric
@pytest.mark.parametrize("operation", OPERATIONS)
def test_half_of_every_rate_is_twice_the_time_on_the_wire(fabric, operation):
    """Half of every rate doubles the time on the wire and leaves the latency.

    Chunks are as many as is best, so that their time grows by the root of two.
    """
    links, wires = fabric_named(FABRICS[fabric])
    slow = scaled(links, dict.fromkeys(RATES, 0.5))

    @settings(max_examples=15)
    @given(groups(wires.world), sizes)
    def doubles(ranks, size):
        empty = timings(links, operation, ranks, 0.0)
        for name, before in timings(links, operation, ranks, size).items():
            after = timings(slow, operation, ranks, size)[name]
            assert float(empty[name].time) == pytest.approx(float(before.latency), rel=1e-12)
            assert float(after.latency) == float(before.latency)
            assert float(after.wire) == pytest.approx(2 * float(before.wire), rel=1e-9)
            moving, slower = (
                float(timing.time) - float(timing.latency) for timing in (before, after)
            )
            noise = 1e-12 * float(after.time)
            if name in AT_ONCE or operation == "send-recv":
                assert slower == pytest.approx(2 * moving, rel=1e-9, abs=4 * noise)
            else:
                assert math.sqrt(2) * moving - 4 * noise <= slower <= 2 * moving + 4 * noise

    doubles()


# ---------------------------------------------------------------- collectives: lower bounds
def rate_between_domains(wires: Wires, ranks: float) -> float:
    """Return the full rate of a chip's lanes to other domains.

    They are those of the world, and its network ports where a group needs them.
    """
    return wires.crossing * (wires.world > wires.domain) + wires.network * (ranks > wires.world)


def least_wire(wires: Wires, operation: str, group: RankGroup, size: float, adds_up: bool) -> float:
    """Return the time that no algorithm can beat.

    It is bound by what a chip hands over at its full injection, and by what a domain takes in
    over its border.

    A sum over N chips moves 2 (N-1)/N of the buffer through each chip's links, a gather or an
    exchange (N-1)/N; a switch that adds up spares the chips all but once. A domain of Y takes
    in the whole sum, the other domains' parts of a gather, or of an exchange.
    """
    ranks, domains, ranks_per_domain = (float(number) for number in group[:3])
    share, elsewhere = (ranks - 1) / ranks, (ranks - ranks_per_domain) / ranks
    handed = {"all-reduce": 1.0 if adds_up else 2 * share, "broadcast": 1.0, "send-recv": 1.0}.get(
        operation, share
    )
    injection = (
        wires.inside if domains <= 1 else wires.anywhere + wires.network * (ranks > wires.world)
    )
    bound = handed * size / injection
    if domains > 1:
        part = {
            "all-reduce": 1 / ranks_per_domain,
            "broadcast": 1 / ranks_per_domain,
            "send-recv": 1.0,
            "all-to-all": elsewhere,
        }.get(operation, elsewhere / ranks_per_domain)
        bound = max(bound, part * size / rate_between_domains(wires, ranks))
    if operation == "all-to-all" and ranks in wires.bisections and ranks % 2 == 0:
        # half of the chips send half of what they have across the middle
        bound = max(bound, size * ranks / 4 / wires.bisections[int(ranks)])
    return bound


@on_every_fabric
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_algorithm_beats_the_wires(fabric, operation):
    links, wires = fabric_named(FABRICS[fabric])

    def bounded(group, size):
        for name, timing in timings_on(links, operation, group, size).items():
            assert (
                float(timing.wire)
                >= least_wire(wires, operation, group, size, name == "in-network") * SLACK
            ), name
            assert float(timing.time) >= float(timing.wire) + float(timing.latency)

    for ranks in {wires.domain, wires.world, 4 * wires.world}:
        bounded(rank_group(links, ranks), 1e9)
    settings(max_examples=50)(given(draw_group(wires), sizes)(bounded))()


@on_every_fabric
def test_no_exchange_of_tokens_beats_the_wires(fabric):
    """A token goes once to every other chip, and once over the border to every other domain.

    They are the chips and domains that hold one of its experts.
    """
    links, wires = fabric_named(FABRICS[fabric])

    @settings(max_examples=60)
    @given(
        groups(wires.world),
        st.floats(0.1, 1e5),
        st.sampled_from([1, 2, 4, 8]),
        st.floats(512, 16384),
    )
    def bounded(ranks, tokens, active, token):
        time, domains = (
            float(dispatched(links, ranks, tokens, active, token)),
            math.ceil(ranks / wires.domain),
        )
        chips = (ranks - 1) * (1 - (1 - 1 / ranks) ** active)
        assert (
            time
            >= tokens
            * token
            * chips
            / (wires.anywhere + wires.network * (ranks > wires.world))
            * SLACK
        )
        if domains > 1:
            other_domains = (domains - 1) * (1 - (1 - 1 / domains) ** active)
            assert (
                time >= tokens * token * other_domains / rate_between_domains(wires, ranks) * SLACK
            )
        assert time >= float(links.latencies.expert_kernel)
        more = scaled(links, dict.fromkeys(RATES, 2.0))
        assert time / 2 * SLACK <= float(dispatched(more, ranks, tokens, active, token)) <= time
        assert (
            time <= float(dispatched(links, ranks, 2 * tokens, active, token)) <= 2 * time / SLACK
        )

    bounded()


@on_every_fabric
@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_algorithm_beats_its_steps(fabric, operation):
    """Pairwise exchange takes log2 N steps to reach all chips, and exchange with all takes one.

    Switches that add up take a trip.
    """
    links, wires = fabric_named(FABRICS[fabric])
    t = links.latencies
    step = min(float(t.near_step), float(t.crossing_step), float(t.network_step))

    @settings(max_examples=40)
    @given(groups(wires.world), sizes)
    def bounded(ranks, size):
        for name, timing in timings(links, operation, ranks, size).items():
            steps = float(timing.latency) - float(timing.start)
            if name == "in-network":
                assert steps >= float(t.in_network) * SLACK
            else:
                reached = 1 if operation == "send-recv" or name in AT_ONCE else math.log2(ranks)
                assert steps >= reached * step * SLACK, name

    bounded()


# operation, algorithm: steps, and buffers through the links of a chip at rings' or at direct
# kernels' rate
EIGHT = [
    ("all-reduce", "ring", 2 * 7, 2 * 7 / 8),
    ("all-reduce", "halving-doubling", 2 * 3, 2 * 7 / 8),
    ("all-reduce", "one-shot", 1, 7),
    ("all-reduce", "two-shot", 2, 2 * 7 / 8),
    ("all-gather", "ring", 7, 7 / 8),
    ("all-gather", "recursive doubling", 3, 7 / 8),
    ("all-gather", "direct", 1, 7 / 8),
    ("reduce-scatter", "recursive doubling", 3, 7 / 8),
    ("all-to-all", "pairwise", 3, 7 / 8),
    ("broadcast", "tree", 3, 1),
]


@pytest.mark.parametrize(("operation", "name", "steps", "buffers"), EIGHT)
def test_steps_and_bytes_of_eight_chips_behind_a_switch(operation, name, steps, buffers):
    links = fabric_named("h100-hgx8")[0]
    t, timing = links.latencies, timings(links, operation, 8, 1e6)[name]
    far, rate = (
        (t.far_step, links.direct)
        if name in AT_ONCE
        else (t.step, links.pairwise if operation == "all-to-all" else links.inside)
    )
    assert float(timing.stepping - timing.start) == pytest.approx(steps * float(far), rel=1e-9)
    assert float(timing.wire) == pytest.approx(buffers * 1e6 / float(rate), rel=1e-9)


def test_a_switch_that_adds_up_takes_the_buffer_once():
    """And each chip's eighth of it back into the sum."""
    links = fabric_named("h100-hgx8")[0]
    reduce_timings = timings(links, "all-reduce", 8, 1e9)
    assert float(reduce_timings["in-network"].wire) == pytest.approx(
        9 / 8 * 1e9 / float(links.direct), rel=1e-12
    )
    assert "in-network" not in timings(links, "all-gather", 8, 1e9)
    assert "in-network" not in timings(fabric_named("trn3-nl72x2")[0], "all-reduce", 72, 1e9)


# ---------------------------------------------------------------- serving
SERVED = {
    "trn3-nl72x2": {
        "workload__input_tokens": "65536"
    },  # large arrays; every way across racks, and sequences that are split
    "gb200-nvl72": {},
    "h100-hgx8": {
        "workload__precision": "nvfp4"
    },  # unpacked by the vector units; several servers, and pipelines of them
    "trn2-nl32x2-3d": {"workload__model": "llama-3.1-70b", "workload__precision": "bf16"},
    "gb200-nvl36x2": {"workload__model": "gpt-oss-120b"},
}
on_every_server = pytest.mark.parametrize("system", SERVED)
COMPUTE = ("peak_bf16", "peak_fp8", "peak_fp4", "peak_int8", "peak_vector", "clock", "tdp")
MEMORY = ("hbm_bandwidth", "dma_bandwidth")
# what a plan waits for, by whose practice it is
FAMILY = (
    "launch_time",
    "collective_wait",
    "exchange_wait",
    "network_wait",
)
ENGINE = ("host_time",)
SHARED = (
    "elementwise_traffic",
    "residual_passes",
    "expert_passes",
    "kernels_grouped",
    "kernels_latent",
    "kernels_experts",
)
# times inside a kernel that follow no rate
FIXED = (
    "kernel_stage",
    "decode_block_time",
    "fp4_inner_latency",
    "expert_reads",
)
WAITS = (*FAMILY, *ENGINE, *SHARED, *FIXED)


def of(system: str) -> Server:
    return server(system, **SERVED[system])


def with_factors(system: str, factors: dict[str, float]) -> Server:
    """Return the server with attributes and practice multiplied; unknown attributes stay out."""
    machine = of(system).machine
    owners = {
        **dict.fromkeys((*FAMILY, *FIXED), machine.family),
        **dict.fromkeys(ENGINE, machine.engine),
        **dict.fromkeys(SHARED, "layer"),
    }
    paths = {
        f"performance.{owners[name]}.{name}" if name in owners else name: factor
        for name, factor in factors.items()
    }
    catalogue_rows = CATALOGUE.calibration_rows, CATALOGUE.part_rows
    available_factors = {
        path: factor
        for path, factor in paths.items()
        if (
            tuple(path.split(".")[1:]) in catalogue_rows[0]
            if "." in path
            else (machine.chip, path) in catalogue_rows[1]
        )
    }
    return changed(system, available_factors, **SERVED[system])


@cache
def plans(system: str) -> tuple[Any, DecodePlan]:
    """Every plan of both phases, a row each, decode at some sequences a group."""
    model_server = of(system)
    reads, writes = (
        plan_axes(
            model_server.model, model_server.machine.links, model_server.request.prompt + tokens
        )
        for tokens in (0, model_server.request.answer)
    )
    return reads, decode_plan_from_axes(writes, np.array([[1.0, 8.0, 64.0, 512.0]]))


@on_every_server
def test_no_operator_beats_its_engines(system):
    """An operator takes at least its work at the engine's rate and its bytes at the bandwidth.

    This holds for every plan, with what runs beside.
    """
    model_server, (prefill, decode) = of(system), plans(system)
    for pass_result in (model_server.decode(decode), model_server.prefill(prefill)):
        for operator in pass_result.operators:
            assert np.all(np.asarray(operator.time) >= 0)
            if operator.link or operator.flops is None:
                continue
            least = np.maximum(
                operator.flops / operator.compute_rate, operator.bytes / operator.bandwidth
            )
            assert np.all(operator.time >= operator.layers * least * SLACK), operator.name
        assert np.all(
            pass_result.time >= sum(operator.time for operator in pass_result.operators) * SLACK
        )


@on_every_server
def test_many_plans_at_once_take_what_each_takes(system):
    """Plans computed together take what each takes by itself.

    Plans that split nothing stand beside some that split sequences, stages and experts over
    racks.
    """
    model_server, (prefill, decode) = of(system), plans(system)
    at_once = model_server.decode(decode), model_server.prefill(prefill)
    for row in range(0, len(prefill.chips), 5):
        single_pass = model_server.prefill(prefill._make(float(axis[row, 0]) for axis in prefill))
        assert float(single_pass.time) == pytest.approx(float(at_once[1].time[row, 0]), rel=1e-12)
        assert float(single_pass.memory) == pytest.approx(
            float(at_once[1].memory[row, 0]), rel=1e-12
        )
    for row in range(0, len(decode.chips), 5):
        single_pass = model_server.decode(
            decode._make(
                float(np.broadcast_to(axis, decode.chips.shape)[row, 0])
                for axis in decode._replace(
                    sequences=np.broadcast_to(decode.sequences[0, 2], decode.chips.shape)
                )
            )
        )
        assert float(single_pass.time) == pytest.approx(float(at_once[0].time[row, 2]), rel=1e-12)
        assert float(single_pass.memory) == pytest.approx(
            float(at_once[0].memory[row, 2]), rel=1e-12
        )


@on_every_server
def test_more_chip_never_slows_a_plan(system):
    """Higher rates or shorter waits never slow a plan or one of its operators."""
    model_server, (prefill, decode) = of(system), plans(system)
    before = model_server.decode(decode), model_server.prefill(prefill)

    @settings(max_examples=10)
    @given(
        st.dictionaries(st.sampled_from(COMPUTE + MEMORY), factors, min_size=1),
        st.dictionaries(st.sampled_from(WAITS), st.floats(0.25, 1)),
    )
    def never_slower(raised, lowered):
        faster = with_factors(system, raised | lowered)
        for old, new in zip(before, (faster.decode(decode), faster.prefill(prefill)), strict=True):
            assert np.all(new.time <= old.time * (1 + 1e-12))
            for old_operator, new_operator in zip(old.operators, new.operators, strict=True):
                # quicker compute hides less of an exchange, quicker routed experts less of a shared
                # one
                hidden = (
                    old_operator.link and model_server.machine.exchange_overlap
                ) or old_operator.name == "shared expert"
                assert hidden or np.all(new_operator.time <= old_operator.time * (1 + 1e-12)), (
                    old_operator.name
                )

    never_slower()


@on_every_server
def test_more_links_never_slow_a_plan(system):
    model_server, (prefill, decode) = of(system), plans(system)
    before = model_server.decode(decode), model_server.prefill(prefill)

    @settings(max_examples=6)
    @given(
        st.dictionaries(st.sampled_from(RATES), factors, min_size=1),
        st.dictionaries(st.sampled_from(Latencies._fields), st.floats(0, 1), min_size=1),
    )
    def never_slower(raised, lowered):
        links = model_server.machine.links
        better = scaled(links, raised)._replace(latencies=scaled(links.latencies, lowered))
        faster = model_server._replace(
            machine=model_server.machine._replace(links=better, wait_times=Known())
        )
        for old, new in zip(before, (faster.decode(decode), faster.prefill(prefill)), strict=True):
            assert np.all(new.time <= old.time * (1 + 1e-12))
            assert np.array_equal(new.memory, old.memory)

    never_slower()


@on_every_server
def test_half_of_every_rate_doubles_what_is_computed_and_moved(system):
    """Half of every rate doubles the time of computing and moving.

    So does twice the fixed time inside kernels. The wait for the longest stage is its share of
    all the rest.
    """
    model_server, (prefill, decode) = of(system), plans(system)
    slow = with_factors(system, dict.fromkeys((*COMPUTE, *MEMORY), 0.5) | dict.fromkeys(FIXED, 2.0))
    for old, new in (
        (model_server.decode(decode), slow.decode(decode)),
        (model_server.prefill(prefill), slow.prefill(prefill)),
    ):
        for old_operator, new_operator in zip(old.operators, new.operators, strict=True):
            factor = 1 if old_operator.link or old_operator.name == "launches" else 2
            if old_operator.name == "uneven stages":
                continue
            assert np.allclose(
                new_operator.time, factor * np.asarray(old_operator.time), rtol=1e-9, atol=0
            ), old_operator.name
        for answer in (old, new):
            (waiting,) = (
                operator.time for operator in answer.operators if operator.name == "uneven stages"
            )
            work = sum(
                np.asarray(operator.time)
                for operator in answer.operators
                if operator.name not in ("uneven stages", "stage transfer")
            )
            stages = (decode if answer.per_token is not None else prefill).pipeline_parallel
            assert np.allclose(
                waiting,
                work
                * (
                    stages * np.ceil(model_server.model.layers / stages) / model_server.model.layers
                    - 1
                ),
                rtol=1e-9,
                atol=0,
            )


@on_every_server
def test_more_sequences_take_longer_and_are_more_at_work(system):
    """A step of more sequences is no quicker, and no plan makes fewer tokens by taking more."""
    model_server, (_, decode) = of(system), plans(system)
    time = np.asarray(model_server.decode(decode).time)
    assert np.all(np.diff(time, axis=1) >= 0)
    assert np.all(np.diff(decode.sequences / time, axis=1) >= 0)


def test_every_rate_of_a_machine_is_raised_here():
    """Every new attribute of a machine is named here: built from raised values, or no rate."""
    built = {"operands", "core", "kernels", "bandwidth", "row_bandwidth", "exponentials", "values"}
    waits = {
        "launch",
        "overhead",
        "waits",
        "elementwise",
        "expert_gates",
        "permutes",
        "expert_start",
    }
    rest = {
        "chip",
        "family",
        "engine",
        "formats",
        "memory",
        "imbalance",
        "expert_factor",
        "whole_factor",
        "exchange_overlap",
        "links",
        "bucket",
        "wait_times",
        "unexplained",
        "release",
        "deployed",
        "deployer",
        "drafting",
    }
    trained = {"gradient_form", "gradients", "separate_experts"}
    sizes_of = {name for name in Machine._fields if name.endswith("_size")}
    assert set(Machine._fields) == {*built, *waits, *rest, *trained, *sizes_of}
