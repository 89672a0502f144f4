"""The array search against a loop over single plans, and what more hardware does to its answer."""

from __future__ import annotations

import pytest

from tco.performance.training import micro_batch_levels, step
from tco.performance.training.step import chosen_share
from tests.performance.training.jobs import (
    evaluate_plan,
    every_plan,
    job,
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


def cached_by_shape(function):
    """Keep a function's values by the shape of the micro-batch.

    Plans are many, and shapes are few.
    """
    results_by_shape = {}

    def call(training_job, machine, shape, *work):
        if shape not in results_by_shape:
            results_by_shape[shape] = function(training_job, machine, shape, *work)
        return results_by_shape[shape]

    return call


@pytest.mark.thorough
@pytest.mark.parametrize("make", SMALL)
def test_the_array_search_equals_a_loop(make, monkeypatch):
    training_job, machine = make()
    quick = search_training_plans(training_job, machine)
    # of the loop, not of the search
    for room, name in (
        (step, "work_of"),
        (micro_batch_levels, "work_of"),
        (step, "micro_batch"),
    ):
        monkeypatch.setattr(room, name, cached_by_shape(getattr(room, name)))
    times, plans, leanest = [], 0, float("inf")
    for plan in every_plan(space(training_job, machine.links.domain)):
        step_result = evaluate_plan(training_job, machine, plan)[0]
        plans += 1
        leanest = min(leanest, float(step_result.memory_in_use))
        # else it is another plan
        between = (
            plan.recompute != PARTIAL or 0 < chosen_share(training_job, machine, plan).share < 1
        )
        if step_result.memory_in_use <= machine.memory and between:
            times.append(float(step_result.time))
    times.sort()
    assert (quick.plans, quick.feasible) == (plans, len(times))
    if times:
        assert [candidate.seconds for candidate in quick.top] == pytest.approx(times[:2], rel=1e-12)
        best = evaluate_plan(training_job, machine, quick.best)[0]
        assert float(best.time) == pytest.approx(times[0], rel=1e-12)
        assert best.memory_in_use <= machine.memory
    else:
        assert quick.need == pytest.approx(leanest, rel=1e-12)


def test_the_small_spaces_hold_plans_that_fit_and_plans_that_do_not():
    results = [search_training_plans(*make.values[0]()) for make in SMALL]
    assert any(0 < search_result.feasible < search_result.plans for search_result in results)


@pytest.fixture(scope="module")
def full_search():
    """Return the search of the whole space of plans."""
    return search_training_plans(*job())


SIZE = {"workload__global_batch": "64"}


@pytest.fixture(scope="module")
def baseline_search():
    """Return the search on the unchanged chip."""
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
def test_more_hardware_is_never_slower(path, baseline_search):
    assert (
        search_training_plans(*job(**SIZE, **{path: FASTER[path]})).top[0].seconds
        <= baseline_search.top[0].seconds
    )


def test_search_counts_feasible_and_all_plans(full_search):
    training_job, machine = job()
    assert (
        full_search.plans
        == sum(block.plans for block in space(training_job, machine.links.domain))
        >= 600_000
    )
    assert 10_000 <= full_search.feasible < full_search.plans
    assert full_search.margin is not None
    assert full_search.margin >= 0
    assert full_search.best != full_search.runner_up


def test_repeated_search_finds_the_same_plan(full_search):
    second_search = search_training_plans(*job())
    assert (full_search.best, full_search.runner_up, full_search.margin, full_search.feasible) == (
        second_search.best,
        second_search.runner_up,
        second_search.margin,
        second_search.feasible,
    )


def test_search_keeps_the_quickest_plans(full_search):
    quickest_plans = search_training_plans(*job(), count=24).top
    assert [candidate.plan for candidate in search_training_plans(*job(), count=12).top] == [
        candidate.plan for candidate in quickest_plans[:12]
    ]
    assert quickest_plans[0].plan == full_search.best
