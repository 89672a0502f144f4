"""No training step beats its critical path or its engines, and a faster machine is never slower."""

from __future__ import annotations

from collections import ChainMap
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco.performance.layer.operators import Operator, OperatorWork
from tco.performance.training.micro_batch import Work
from tco.performance.training.schedule import layers_per_stage
from tests.performance.servers import Machine
from tests.performance.training.jobs import (
    TrainingJob,
    TrainingPlan,
    evaluate_plan,
    every_plan,
    job,
    schedule,
    small,
    space,
)

JOBS = {
    "dense": lambda: small("megatron-gpt-7.5b", 16, 16),
    "dense, over servers": lambda: job(workload__global_batch="64"),
    "experts": lambda: small(
        "mixtral-8x7b", 16, 16, workload__attention="fused", workload__sequence_length="4096"
    ),
    "hybrid": lambda: small(
        "nemotron-3-nano-30b-a3b", 16, 8, workload__attention="fused", workload__dropout="no"
    ),
    "two racks": lambda: job(
        "llama-3.1-405b-training-trn3-nl72x2", cluster__chips="288", workload__global_batch="64"
    ),
}
on_every_job = pytest.mark.parametrize("name", JOBS)
CORES = ("peak_bf16", "tdp")  # of the chip: the peak that attention meets, and its watts
MEMORY = ("bandwidth", "row_bandwidth", "exponentials")
PRODUCTS = ("rate", "core", "load", "stream")
LINKS = (
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
WAITS = ("launch",)
SLACK = 1 - 1e-9
factors = st.floats(1, 16)


@cache
def job_and_plans(name: str) -> tuple[TrainingJob, Machine, list[TrainingPlan]]:
    """A job, its machine, and plans from all over its space."""
    training_job, machine = JOBS[name]()
    blocks = space(training_job, machine.links.domain)
    sampling_interval = max(sum(block.plans for block in blocks) // 3000, 1)
    return (
        training_job,
        machine,
        [
            plan
            for plan_index, plan in enumerate(every_plan(blocks))
            if plan_index % sampling_interval == 0
        ],
    )


def scaled(record: Any, names: set[str], factor: float) -> Any:
    """Return a record with some of its fields multiplied, those it has."""
    return record._replace(
        **{name: value * factor for name in names if (value := getattr(record, name)) is not None}
    )


def faster(machine: Machine, factor: float, *fields: str) -> Machine:
    """Return a machine with some of its rates multiplied: products, chip, memory, links.

    Rates of products are multiplied in all passes.
    """
    names = set(fields)
    product_operands = {
        name: tuple(
            scaled(operand, names & set(PRODUCTS), factor) for operand in getattr(machine, name)
        )
        for name in ("operands", "gradients")
    }
    cores = {
        f"{machine.kernels.parts}.{name}": machine.kernels.part(name) * factor
        for name in names & set(CORES)
    }
    kernels = machine.kernels._replace(values=ChainMap(cores, machine.kernels.values))
    scaled_fields = {
        name: getattr(machine, name) * factor for name in names & {*MEMORY, *WAITS, "exponentials"}
    }
    return machine._replace(
        **product_operands,
        **scaled_fields,
        kernels=kernels,
        links=scaled(machine.links, names & set(LINKS), factor),
    )


def nearer(machine: Machine, factor: float) -> Machine:
    """Return a machine with all its latencies multiplied."""
    latencies = machine.links.latencies
    return machine._replace(
        links=machine.links._replace(latencies=scaled(latencies, set(latencies._fields), factor))
    )


def operators_of(work: Work) -> list[Operator]:
    return [*work.operators, *work.head, *work.across]


def seconds(training_job: TrainingJob, machine: Machine, plan: TrainingPlan) -> float:
    return float(evaluate_plan(training_job, machine, plan)[0].time)


@on_every_job
def test_more_hardware_never_slows_a_plan(name):
    """Whichever rate rises or latency falls, on the same plan."""
    training_job, machine, plans = job_and_plans(name)

    @settings(max_examples=40)
    @given(
        st.sampled_from(plans),
        st.dictionaries(st.sampled_from(CORES + MEMORY + PRODUCTS + LINKS), factors, min_size=1),
        st.floats(0, 1),
    )
    def never_slower(plan, raised, latency):
        better = faster(nearer(machine, latency), latency, *WAITS)
        for field, factor in raised.items():
            better = faster(better, factor, field)
        assert seconds(training_job, better, plan) <= seconds(training_job, machine, plan) * (
            1 + 1e-12
        )

    never_slower()


@pytest.mark.parametrize(
    "path", ["peak_bf16", "hbm_bandwidth", "scale_up_bandwidth", "scale_out_bandwidth"]
)
def test_a_better_chip_never_slows_a_plan(path):
    """A higher figure of the chip in the catalogue never slows a plan.

    A higher peak runs at a lower clock under the same power limit, and is the quicker
    nonetheless.
    """
    unit = "FLOP/s" if path.startswith("peak") else "byte/s"
    full = f"parts.a100-sxm-80gb.{path}"
    training_job, machine, plans = job_and_plans("dense, over servers")
    before = training_job.values[full]
    for factor in (1.01, 1.5, 4):
        better = job(
            workload__global_batch="64", **{full.replace(".", "__"): f"{before * factor!r} {unit}"}
        )[1]
        for plan in plans[:: len(plans) // 20]:
            assert seconds(training_job, better, plan) <= seconds(training_job, machine, plan) * (
                1 + 1e-12
            )


def twice_the_latency(machine: Machine) -> Machine:
    """Return a machine whose kernels take twice as long to start and to sum split products."""
    product_operands = {
        name: tuple(scaled(operand, {"stage", "latency"}, 2) for operand in getattr(machine, name))
        for name in ("operands", "gradients")
    }
    return faster(machine, 2, *WAITS)._replace(**product_operands)


@on_every_job
def test_half_of_every_rate_doubles_what_is_computed_and_moved(name):
    training_job, machine, plans = job_and_plans(name)
    slow = twice_the_latency(faster(machine, 0.5, *CORES, *MEMORY, *PRODUCTS))
    dark = faster(machine, 0.5, *LINKS)

    @settings(max_examples=25)
    @given(st.sampled_from(plans))
    def doubles(plan):
        base, halved, narrow = (
            operators_of(evaluate_plan(training_job, machine_variant, plan)[3])
            for machine_variant in (machine, slow, dark)
        )
        for base_operator, computed, linked in zip(base, halved, narrow, strict=True):
            for direction in ("time", "backward"):
                before, after, on_links = (
                    float(getattr(item, direction)) for item in (base_operator, computed, linked)
                )
                if base_operator.link:
                    assert after == pytest.approx(before, rel=1e-12), base_operator.name
                    # all but its latency
                    assert before * SLACK <= on_links <= 2 * before / SLACK, base_operator.name
                else:
                    assert after == pytest.approx(2 * before, rel=1e-9), base_operator.name
                    assert on_links == before, base_operator.name

    doubles()


@on_every_job
def test_no_item_beats_its_engines(name):
    """Work at the peak of its format, bytes at the memory's bandwidth, whichever takes longer."""
    training_job, machine, plans = job_and_plans(name)

    @settings(max_examples=25)
    @given(st.sampled_from(plans))
    def bounded(plan):
        work = evaluate_plan(training_job, machine, plan)[3]
        parts = 0
        for operator in (*work.operators, *work.head):
            assert float(operator.time) >= 0
            assert float(operator.backward) >= 0
            forward = OperatorWork(operator.flops, operator.bytes, operator.compute_rate)
            for time, resting in (
                (operator.time, [forward] * bool(operator.backward_work)),
                (operator.backward, operator.backward_work),
            ):
                least = 0.0
                for part in resting:
                    parts += 1
                    least += max(
                        float(part.flops) / float(part.peak),
                        float(part.traffic) / float(machine.kernels.part("hbm_bandwidth")),
                    )
                assert float(time) >= float(operator.layers) * least * SLACK, operator.name
            if operator.weight_time is not None:
                assert float(operator.weight_time) <= float(operator.backward) / SLACK
        assert parts

    bounded()


@on_every_job
def test_no_pipeline_beats_its_critical_path(name):
    """A micro-batch passes every stage forward and backward, and a stage computes all of them.

    Stages follow one after the other; gradients of weights alone may wait.
    """
    training_job, machine, plans = job_and_plans(name)

    @settings(max_examples=60)
    @given(st.sampled_from([plan for plan in plans if plan.pipeline > 1]))
    def bounded(plan):
        step_result, pipe, micro, _ = evaluate_plan(training_job, machine, plan)
        weights = float(
            schedule.stage_time(
                micro.weights, layers_per_stage(plan, training_job.model), training_job.model.layers
            )
        )
        path = plan.pipeline * (float(pipe.stage) - weights) + weights
        assert float(pipe.time) >= float(pipe.micro_batches) * float(pipe.longest) * SLACK
        assert float(pipe.time) >= path * SLACK
        assert (
            float(step_result.time)
            >= float(step_result.parts["pipeline"] + step_result.parts.get("gathers", 0.0)) * SLACK
        )

    bounded()


def test_every_rate_of_the_links_and_of_products_is_raised_here():
    """Every new field of links and products is named above, or is no rate."""
    machine = job_and_plans("dense")[1]
    still = {
        "domain",
        "world",
        "latencies",
        "reduces",
        "library",
        "shared",
        "torus",
        "rings",
        "steps",
        "tray",
        "mesh",
        "board",
        "doubling",
    }
    assert set(machine.links._fields) == {*LINKS, *still, "hops", "world_hops", "pair_hops"}
    rest = {
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
    assert set(machine.operands[0]._fields) == {*PRODUCTS, *rest}
