"""The array search against a loop over single plans, and what more hardware does to its answer."""

from __future__ import annotations

import pytest

from tco.performance.training import step
from tco.performance.training.step import chosen_share
from tests.performance.training.jobs import (
    evaluate_plan,
    every_plan,
    job,
    schedule,
    search_training_plans,
    small,
    space,
)

PARTIAL = "partial"

SMALL = [
    pytest.param(lambda: small("megatron-gpt-7.5b", 4, 4), id="gpt"),
    pytest.param(
        lambda: small(
            "mixtral-8x7b", 4, 2, workload__attention="fused", workload__sequence_length="4096"
        ),
        id="experts",
    ),
    pytest.param(
        lambda: small(
            "nemotron-3-nano-30b-a3b", 4, 2, workload__attention="fused", workload__dropout="no"
        ),
        id="hybrid",
    ),
]


def once_a_shape(function):
    """Keep what a function gives for a shape: plans are many, the shapes their micro-batches have
    few.
    """
    held = {}

    def call(found, machine, shape, *work):
        if shape not in held:
            held[shape] = function(found, machine, shape, *work)
        return held[shape]

    return call


@pytest.mark.thorough
@pytest.mark.parametrize("make", SMALL)
def test_the_array_search_equals_a_loop(make, monkeypatch):
    found, machine = make()
    quick = search_training_plans(found, machine)
    # of the loop, not of the search
    for room, name in (
        (step, "work_of"),
        (schedule, "work_of"),
        (step, "micro_batch"),
    ):
        monkeypatch.setattr(room, name, once_a_shape(getattr(room, name)))
    times, plans, leanest = [], 0, float("inf")
    for plan in every_plan(space(found, machine.links.domain)):
        made = evaluate_plan(found, machine, plan)[0]
        plans += 1
        leanest = min(leanest, float(made.held))
        # else it is another plan
        between = plan.recompute != PARTIAL or 0 < chosen_share(found, machine, plan).share < 1
        if made.held <= machine.memory and between:
            times.append(float(made.time))
    times.sort()
    assert (quick.plans, quick.feasible) == (plans, len(times))
    if times:
        assert [candidate.seconds for candidate in quick.top] == pytest.approx(times[:2], rel=1e-12)
        best = evaluate_plan(found, machine, quick.best)[0]
        assert float(best.time) == pytest.approx(times[0], rel=1e-12)
        assert best.held <= machine.memory
    else:
        assert quick.need == pytest.approx(leanest, rel=1e-12)


def test_the_small_spaces_hold_plans_that_fit_and_plans_that_do_not():
    results = [search_training_plans(*make.values[0]()) for make in SMALL]
    assert any(0 < found.feasible < found.plans for found in results)


@pytest.fixture(scope="module")
def whole():
    """What the search of the whole space finds."""
    return search_training_plans(*job())


SIZE = {"workload__global_batch": "64"}


@pytest.fixture(scope="module")
def usual():
    """What the search finds on the chip as it is."""
    return search_training_plans(*job(**SIZE))


FASTER = {
    "parts__a100-sxm-80gb__hbm_bandwidth": "4 TB/s",
    "parts__a100-sxm-80gb__scale_up_bandwidth": "600 GB/s",
    "parts__a100-sxm-80gb__scale_out_bandwidth": "50 GB/s",
    "parts__a100-sxm-80gb__hbm_capacity": "160 GB",
    "parts__a100-sxm-80gb__peak_bf16": "624 TFLOP/s",
    "performance__training__host_link_bandwidth": "50 GB/s",
}


@pytest.mark.parametrize("path", FASTER)
def test_more_hardware_is_never_slower(path, usual):
    assert (
        search_training_plans(*job(**SIZE, **{path: FASTER[path]})).top[0].seconds
        <= usual.top[0].seconds
    )


def test_what_fits_is_counted_among_all(whole):
    found, machine = job()
    assert (
        whole.plans == sum(block.plans for block in space(found, machine.links.domain)) >= 600_000
    )
    assert 10_000 <= whole.feasible < whole.plans
    assert whole.margin is not None
    assert whole.margin >= 0
    assert whole.best != whole.runner_up


def test_the_same_search_twice_finds_the_same(whole):
    other = search_training_plans(*job())
    assert (whole.best, whole.runner_up, whole.margin, whole.feasible) == (
        other.best,
        other.runner_up,
        other.margin,
        other.feasible,
    )


def test_what_is_kept_are_the_quickest_plans(whole):
    every = search_training_plans(*job(), count=24).top
    assert [one.plan for one in search_training_plans(*job(), count=12).top] == [
        one.plan for one in every[:12]
    ]
    assert every[0].plan == whole.best
