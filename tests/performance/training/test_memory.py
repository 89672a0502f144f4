"""Memory of a plan against published sizes and against its own order."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tco.models.architecture import Attention, FeedForward, LayerBlock
from tests.catalogue import Architecture
from tests.performance.training.jobs import MEGATRON, TrainingPlan, evaluate_plan, job

GIB = 2**30
# id, micro-batch, hidden, heads, layers, stages, parts a stage, recompute, sequence parallel, GiB;
# Korthikanti 2022
SIZES = (
    ("ROO024", 4, 6144, 64, 48, 1, 1, "none", 0, 59.25),
    ("ROO025", 4, 6144, 64, 48, 1, 1, "selective", 1, 9.5625),
    ("ROO026", 1, 12288, 96, 96, 8, 3, "none", 0, 66.84375),
    ("ROO027", 1, 12288, 96, 96, 8, 3, "selective", 1, 12.3515625),
    ("ROO028", 1, 20480, 128, 105, 35, 3, "none", 0, 114.0234375),
    ("ROO029", 1, 25600, 160, 128, 64, 1, "none", 0, 131.25),
    ("ROO030", 1, 25600, 160, 128, 64, 1, "selective", 1, 26.5625),
)


def gpt(hidden, heads, layers):
    block = LayerBlock(
        layers,
        Attention(heads, heads, hidden // heads, hidden // heads),
        FeedForward(4 * hidden, 2),
    )
    return Architecture("gpt", hidden, 51200, True, 2048, (block,), "test")


@pytest.mark.parametrize("size", SIZES, ids=[size[0] for size in SIZES])
def test_activations_are_the_published_ones(size):
    _, micro, hidden, heads, layers, stages, parts, recompute, parallel, expected = size
    batch = 8 * stages  # 64, 280 and 512 sequences, as published
    training_job, machine = job(workload__global_batch=str(batch))
    training_job = replace(training_job, model=gpt(hidden, heads, layers), chips=8 * stages)
    schedule = "interleaved" if parts > 1 else "1f1b"
    plan = TrainingPlan(8, 1, stages, 1, 1, 0, micro, parts, schedule, recompute, 0, parallel)
    activation_bytes = float(evaluate_plan(training_job, machine, plan)[0].memory["activations"])
    # the scores computed again are held for one layer at a time, which the published size leaves
    # out
    if recompute == "selective":
        activation_bytes -= (
            micro
            * 2048
            * 2048
            * heads
            / 8
            * 5
            * layers
            / stages
            / layers
            * min(stages + (stages - 1) / parts * (parts > 1), batch / micro)
        )
    assert activation_bytes / GIB == pytest.approx(expected, rel=1e-6)


def test_sharding_further_never_needs_more_state():
    training_job, machine = job()
    plans = [TrainingPlan(8, 1, 2, 4, 1, 0, 1, 1, "1f1b", "none", zero) for zero in range(4)]
    states = [
        sum(float(step_result.memory[name]) for name in ("weights", "gradients", "optimizer"))
        for step_result in (evaluate_plan(training_job, machine, p)[0] for p in plans)
    ]
    assert all(more > less for more, less in itertools.pairwise(states))
    parameters = states[0] / 16
    assert states[1] == pytest.approx(parameters * (4 + 12 / 4))
    assert states[2] == pytest.approx(parameters * (2 + 14 / 4))
    assert states[3] == pytest.approx(parameters * 16 / 4)


def test_recomputing_more_keeps_less():
    training_job, machine = job()
    activation_sizes = [
        float(
            evaluate_plan(training_job, machine, MEGATRON._replace(recompute=name))[0].memory[
                "activations"
            ]
        )
        for name in ("none", "selective", "full")
    ]
    assert activation_sizes[0] > activation_sizes[1] > activation_sizes[2]


def test_offload_takes_the_optimizer_away():
    training_job, machine = job()
    assert (
        float(
            evaluate_plan(training_job, machine, MEGATRON._replace(offload=1))[0].memory[
                "optimizer"
            ]
        )
        == 0
    )
