"""What holds of any training plan: no step beats its critical path or its engines, and a faster machine is never slower."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco.performance.training import schedule
from tco.performance.training.items import Item, Work
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.pipe import slots
from tco.performance.training.plans import Plan, space
from tco.performance.training.step import evaluate_plan
from tests.performance.training.jobs import every_plan, job, small

JOBS = {
    "dense": lambda: small("megatron-gpt-7.5b", 16, 16),
    "dense, over servers": lambda: job(workload__global_batch="64"),
    "experts": lambda: small("mixtral-8x7b", 16, 16, workload__attention="fused", workload__sequence_length="4096"),
    "hybrid": lambda: small("nemotron-3-nano-30b-a3b", 16, 8, workload__attention="fused", workload__dropout="no"),
    "two racks": lambda: job("llama-3.1-405b-training-trn3-nl72x2", cluster__chips="288", workload__global_batch="64"),
}
on_every_job = pytest.mark.parametrize("name", JOBS)
CORES = ("peak_bf16", "exponentials_per_clock")  # of the chip, that attention meets
MEMORY = ("bandwidth", "row_bandwidth")
PRODUCTS = ("rate", "core", "load", "stream")
LINKS = ("inside", "direct", "pairwise", "spread", "crossing", "network", "lane", "pairwise_lane", "exchange_lane", "copy_rate")
WAITS = ("launch",)
SLACK = 1 - 1e-9
factors = st.floats(1, 16)


@cache
def made(name: str) -> tuple[Job, Practice, list[Plan]]:
    """A job, its machine, and plans from all over its space."""
    found, machine = JOBS[name]()
    blocks = space(found, machine.links.domain)
    every = max(sum(block.plans for block in blocks) // 3000, 1)
    return found, machine, [plan for at, plan in enumerate(every_plan(blocks)) if at % every == 0]


def scaled(record: Any, names: set[str], factor: float) -> Any:
    """Return a record with some of its fields multiplied, those it has."""
    return record._replace(**{name: value * factor for name in names if (value := getattr(record, name)) is not None})


def faster(machine: Practice, factor: float, *fields: str) -> Practice:
    """Return a machine with some of its rates multiplied: those of products in all passes, of the chip, of memory, of links."""
    names = set(fields)
    passes = {
        name: form._replace(made=scaled(form.made, names & set(PRODUCTS), factor))
        for name in ("forward", "backward", "wide")
        for form in [getattr(machine, name)]
    }
    cores = {f"{machine.chip.parts}.{name}": machine.chip.part(name) * factor for name in names & set(CORES)}
    chip = machine.chip._replace(values=ChainMap(cores, machine.chip.values))
    own = {name: getattr(machine, name) * factor for name in names & {*MEMORY, *WAITS}}
    return replace(machine, **passes, **own, chip=chip, links=scaled(machine.links, names & set(LINKS), factor))


def nearer(machine: Practice, factor: float) -> Practice:
    """Return a machine with all its latencies multiplied."""
    latencies = machine.links.latencies
    return replace(machine, links=machine.links._replace(latencies=scaled(latencies, set(latencies._fields), factor)))


def items_of(work: Work) -> list[Item]:
    return [*work.items, *work.head, *work.across]


def seconds(found: Job, machine: Practice, plan: Plan) -> float:
    return float(evaluate_plan(found, machine, plan)[0].time)


@on_every_job
def test_more_hardware_never_slows_a_plan(name):
    """Whichever rate rises or latency falls, on the same plan."""
    found, machine, plans = made(name)

    @settings(max_examples=40)
    @given(st.sampled_from(plans), st.dictionaries(st.sampled_from(CORES + MEMORY + PRODUCTS + LINKS), factors, min_size=1), st.floats(0, 1))
    def never_slower(plan, raised, latency):
        better = faster(nearer(machine, latency), latency, *WAITS)
        for field, factor in raised.items():
            better = faster(better, factor, field)
        assert seconds(found, better, plan) <= seconds(found, machine, plan) * (1 + 1e-12)

    never_slower()


@pytest.mark.parametrize("path", ["peak_bf16", "hbm_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth"])
def test_a_better_chip_never_slows_a_plan(path):
    """From the catalogue's figures on: a higher peak runs at a lower clock under the same power limit, and is the quicker nonetheless."""
    unit = "FLOP/s" if path.startswith("peak") else "byte/s"
    full = f"parts.a100-sxm-80gb.{path}"
    found, machine, plans = made("dense, over servers")
    before = found.values[full]
    for factor in (1.01, 1.5, 4):
        better = job(workload__global_batch="64", **{full.replace(".", "__"): f"{before * factor!r} {unit}"})[1]
        for plan in plans[:: len(plans) // 20]:
            assert seconds(found, better, plan) <= seconds(found, machine, plan) * (1 + 1e-12)


def twice_the_latency(machine: Practice) -> Practice:
    """Return a machine whose kernels take twice as long to start and to sum the parts of a split product."""
    forms = {
        name: form._replace(made=scaled(form.made, {"stage", "latency"}, 2))
        for name in ("forward", "backward", "wide")
        for form in [getattr(machine, name)]
    }
    chip = machine.chip
    start = {f"{chip.performance}.kernel_launch": chip.practice("kernel_launch") * 2}
    return replace(faster(machine, 2, *WAITS), **forms, chip=chip._replace(values=ChainMap(start, chip.values)))


@on_every_job
def test_half_of_every_rate_doubles_what_is_computed_and_moved(name):
    found, machine, plans = made(name)
    slow = twice_the_latency(faster(machine, 0.5, *CORES, *MEMORY, *PRODUCTS))
    dark = faster(machine, 0.5, *LINKS)

    @settings(max_examples=25)
    @given(st.sampled_from(plans))
    def doubles(plan):
        base, halved, narrow = (items_of(evaluate_plan(found, one, plan)[3]) for one in (machine, slow, dark))
        for one, computed, linked in zip(base, halved, narrow, strict=True):
            for way in ("forward", "backward"):
                before, after, on_links = (float(getattr(item, way)) for item in (one, computed, linked))
                if one.bound == "link":
                    assert after == pytest.approx(before, rel=1e-12), one.name
                    assert before * SLACK <= on_links <= 2 * before / SLACK, one.name  # all but its latency
                else:
                    assert after == pytest.approx(2 * before, rel=1e-9), one.name
                    assert on_links == before, one.name

    doubles()


@on_every_job
def test_no_item_beats_its_engines(name):
    """Work at the peak of its format, bytes at the memory's bandwidth, whichever takes longer."""
    found, machine, plans = made(name)

    @settings(max_examples=25)
    @given(st.sampled_from(plans))
    def bounded(plan):
        work = evaluate_plan(found, machine, plan)[3]
        parts = 0
        for item in (*work.items, *work.head):
            assert float(item.forward) >= 0
            assert float(item.backward) >= 0
            for time, resting in ((item.forward, (item.forward_part,)), (item.backward, item.backward_parts)):
                least = 0.0
                for part in filter(None, resting):
                    parts += 1
                    least += max(float(part.flops) / float(part.peak), float(part.moved) / float(machine.peak_bandwidth))
                assert float(time) >= float(item.layers) * least * SLACK, item.name
            if item.weight is not None:
                assert float(item.weight) <= float(item.backward) / SLACK
        assert parts

    bounded()


@on_every_job
def test_no_pipeline_beats_its_critical_path(name):
    """A micro-batch passes every stage forward and backward, one after the other; gradients of weights alone may wait.

    And a stage computes all micro-batches.
    """
    found, machine, plans = made(name)

    @settings(max_examples=60)
    @given(st.sampled_from([plan for plan in plans if plan.pipeline > 1]))
    def bounded(plan):
        made_of, pipe, micro, _ = evaluate_plan(found, machine, plan)
        weights = float(schedule.stage_time(micro.weights, slots(plan, found.model), found.model.layers))
        path = plan.pipeline * (float(pipe.stage) - weights) + weights
        assert float(pipe.time) >= float(pipe.micro_batches) * float(pipe.longest) * SLACK
        assert float(pipe.time) >= path * SLACK
        assert float(made_of.time) >= float(made_of.parts["pipeline"] + made_of.parts.get("gathers", 0.0)) * SLACK

    bounded()


def fields_of(record: Any) -> set[str]:
    return set(record.__dataclass_fields__ if hasattr(record, "__dataclass_fields__") else record._fields)


def test_every_rate_of_a_machine_is_raised_here():
    """What a machine has gained since is named above, or is no rate."""
    machine = made("dense")[1]
    rest = {"chip", "forward", "backward", "wide", "peak_bandwidth", "memory", "links", "host_factor", "communication_cores", "unexplained"}
    assert fields_of(machine) == {*MEMORY, *WAITS, *rest, "traffic_classes", "dereferences"}
    still = {"domain", "world", "latencies", "reduces", "library", "shared", "torus", "rings", "steps", "tray", "mesh", "board", "doubling"}
    assert fields_of(machine.links) == {*LINKS, *still, "hops", "world_hops", "pair_hops"}
    assert fields_of(machine.forward.made) == {
        *PRODUCTS,
        "input_size",
        "weight_size",
        "splits",
        "cores",
        "stage",
        "latency",
        "ends",
        "overlap",
        "array",
        "unpacking",
        "extent",
    }
