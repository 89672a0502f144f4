"""The plan space: distinct, divisible plans that use all chips."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tco import evaluate
from tco.performance.training.plans import fixed_axes, parts_allowed, schedules
from tests.catalogue import CATALOGUE
from tests.performance.training.jobs import (
    A100,
    chips_in_use,
    every_plan,
    job,
    search_training_plans,
    small,
    space,
)

SPACES = [
    pytest.param(lambda: small("megatron-gpt-1.7b", 12, 24), id="gpt, 12 chips"),
    pytest.param(lambda: small("mixtral-8x7b", 16, 8), id="experts, 16 chips"),
]


@pytest.mark.parametrize("make", SPACES)
def test_every_plan_is_whole_and_there_is_none_twice(make):
    training_job, machine = make()
    blocks = space(training_job, machine.links.domain)
    plans = list(every_plan(blocks))
    assert len(plans) == sum(block.plans for block in blocks) > 1000
    assert len(set(plans)) == len(plans)
    heads = training_job.model.blocks[0].attention.heads
    for plan in plans:
        assert plan.tensor * plan.context * plan.pipeline * plan.data == training_job.chips
        assert training_job.batch % (plan.data * plan.micro_batch) == 0
        assert heads % plan.tensor == 0
        assert plan.tensor * plan.context * plan.data % plan.expert == 0
        count = training_job.batch // plan.data // plan.micro_batch
        assert plan.schedule != "interleaved" or (plan.interleave > 1 and count >= plan.pipeline)
        assert plan.schedule != "zero-bubble" or count >= plan.pipeline
        assert plan.schedule != "dual-pipe" or count >= 2 * plan.pipeline
        assert plan.schedule == "1f1b" or plan.pipeline > 1
        assert plan.tensor > 1 or not (plan.sequence_parallel or plan.overlap)
        assert (
            plan.zero == 0
            or plan.data * plan.context > 1
            or plan.data * plan.context * plan.tensor > plan.expert
        )


@pytest.mark.parametrize(
    ("length", "contexts"), [(2048, {1, 2, 4}), (2050, {1}), (2052, {1, 2, 3, 6})]
)
def test_ranks_of_a_context_take_two_whole_parts_of_a_sequence(length, contexts):
    """An early and a late one, to balance the causal mask."""
    training_job, machine = small(
        "megatron-gpt-1.7b", 12, 24, workload__sequence_length=str(length)
    )
    assert {
        plan.context for plan in every_plan(space(training_job, machine.links.domain))
    } == contexts


@pytest.mark.parametrize(
    ("system", "chips", "used"),
    [
        # 227 domains are prime, 226 and 225 have factors that no axis takes; 224 = 7 x 32 divide
        ("gb200-nvl72", 16384, 16128),
        ("gb200-nvl72", 16128, 16128),
        ("gb200-nvl72", 19584, 18432),  # 272 = 16 x 17
        ("trn3-nl32x2", 16384, 16384),
        ("trn3-nl32x2", 32, 32),  # less than a domain
    ],
)
def test_a_job_takes_the_whole_domains_that_divide(system, chips, used):
    settings = {"workload": "llama-3.1-405b-training", "cluster__chips": str(chips)}
    training_job, machine = job(system, **settings)
    assert chips_in_use(training_job, machine.links)[0] == used


def test_a_job_may_take_fewer_chips_that_make_more_replicas():
    """A search of 20,736 chips tries 18,432 too, and some chips stand idle.

    A batch of 2,304 sequences makes replicas of 144 chips at least on all chips, and of 64 on
    fewer.
    """
    training_job, machine = job(
        "gb200-nvl72",
        workload="llama-3.1-405b-training",
        workload__precision="fp8",
        cluster__chips="20736",
    )
    assert chips_in_use(training_job, machine.links) == [20736, 18432]
    plans = (
        search_training_plans(training_job, machine).best,
        search_training_plans(training_job, machine, fixed_axes({"tp": "4", "cp": "4"})).best,
    )
    assert [int(plan.tensor * plan.context * plan.pipeline * plan.data) for plan in plans] == [
        18432,
        20736,
    ]


def test_the_cost_of_training_follows_the_size_of_the_cluster_smoothly():
    """It stays within a tenth of a straight line in logarithms."""
    sizes = np.arange(2304, 20737, 4608)
    cost = [
        evaluate(
            "gb200-nvl72",
            {"workload": "llama-3.1-405b-training", "cluster.chips": str(size)},
            catalogue=CATALOGUE,
        ).metrics["train_usd_per_trillion_tokens"]
        for size in sizes
    ]
    line = np.polyfit(np.log(sizes), np.log(cost), 1)
    assert np.abs(np.log(cost) - np.polyval(line, np.log(sizes))).max() < 0.1


def test_chips_that_stand_idle_are_said():
    result = evaluate(
        "gb200-nvl72",
        {"workload": "llama-3.1-405b-training", "cluster.chips": "16384"},
        catalogue=CATALOGUE,
    )
    assert math.prod(result.plan[:4]) == 16128  # ranks of tensor, context, pipeline and data
    assert any(note.startswith("16,128 of 16,384 chips work") for note in result.notes)


def test_large_space_has_over_600000_plans():
    training_job, machine = job()
    assert sum(block.plans for block in space(training_job, machine.links.domain)) >= 600_000


@pytest.mark.parametrize(("layers", "parts"), [(96, 96), (126, 16), (126, 18), (61, 16), (61, 1)])
def test_layers_divide_with_few_places_left_empty(layers, parts):
    assert parts_allowed(layers, parts)


@pytest.mark.parametrize(("layers", "parts"), [(126, 20), (4, 6), (96, 40)])
def test_stages_that_would_stand_half_empty_are_no_plan(layers, parts):
    assert not parts_allowed(layers, parts)


@pytest.mark.parametrize("order", ["tp-cp-dp-pp", "tp-cp-pp-dp"])
def test_the_axes_that_are_fixed_are_those_of_the_plan(order):
    fixed = {
        "tp": "2",
        "pp": "4",
        "cp": "1",
        "dp": "8",
        "ep": "1",
        "micro_batch": "1",
        "zero": "0",
        "schedule": "1f1b",
        "order": order,
    }
    flags = {"sequence_parallel": "yes", "tp_overlap": "no", "optimizer_offload": "no"}
    plan_document = evaluate(
        A100,
        {"workload.model": "llama-3.1-8b"},
        fixed | flags | {"recompute": "full"},
        catalogue=CATALOGUE,
    ).report.plan
    assert {name: str(plan_document[name]) for name in fixed} == fixed
    assert {name: "yes" if plan_document[name] else "no" for name in flags} == flags


@pytest.mark.parametrize(
    ("stages", "both_ends"), [(1, False), (2, False), (3, False), (4, True), (6, True), (8, True)]
)
def test_a_pipeline_fed_from_both_ends_has_four_stages_or_more_in_pairs(stages, both_ends):
    stage_schedules = schedules(96, stages)
    assert (("dual-pipe", 1) in stage_schedules) == both_ends
    assert (("zero-bubble", 1) in stage_schedules) == (stages > 1)
    assert (stage_schedules == [("1f1b", 1)]) == (stages == 1)
