"""Work, stages and memory of a training step agree with the closed form of the architecture."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tco.performance.training.result import training_plan_document
from tests.performance.servers import flops_per_token
from tests.performance.training.jobs import TrainingPlan, evaluate_plan, job

DEEPSEEK = {"workload__model": "deepseek-v3", "cluster__chips": "8", "workload__global_batch": "8"}


def products(training_job, machine, plan):
    """Return the operations per token of all products and attention.

    They are summed over all the chips that share its layers.
    """
    work = evaluate_plan(training_job, machine, plan)[3]
    flops = sum(
        float(operator.layers) * float(part.flops)
        for operator in (*work.operators, *work.head)
        if operator.backward_work
        for part in (operator, *operator.backward_work)
    )
    return flops * plan.tensor / float(work.tokens)


def router_operations(model):
    """Return the operations of routers per token, forward and backward.

    Every chip of a tensor-parallel group routes all of its tokens.
    """
    return sum(
        6 * block.layers * model.hidden * block.feed_forward.experts for block in model.blocks
    )


@pytest.mark.parametrize("tensor", [1, 2, 8])
@pytest.mark.parametrize("model", ["gpt3-175b", "llama-3.1-8b", "gpt-oss-120b"])
def test_a_step_takes_the_work_of_its_tokens(model, tensor):
    training_job, machine = job(
        workload__model=model, cluster__chips="8", workload__global_batch="8"
    )
    closed = float(flops_per_token(training_job.model, float(training_job.sequence), training=True))
    repeated = (tensor - 1) * router_operations(training_job.model)
    assert products(
        training_job, machine, TrainingPlan(tensor, 1, 1, 8 // tensor, 1, 0, 1, 1, "1f1b")
    ) == pytest.approx(closed + repeated, rel=5e-4)


def test_a_predicted_token_takes_one_more_layer_a_projection_and_a_head():
    """A predicted token takes a projection of 2 h x h, one layer more and the output head again.

    DeepSeek-V3 joins hidden state and embedding so (arxiv.org/abs/2412.19437, 2.2).
    """
    training_job, machine = job(**DEEPSEEK)
    model = training_job.model
    plan = TrainingPlan(1, 1, 1, 8, 1, 0, 1, 1, "1f1b")
    bare = model._replace(prediction_layers=0)
    last = bare.blocks[-1]
    deeper = bare._replace(blocks=(*bare.blocks[:-1], last._replace(layers=last.layers + 1)))
    without, with_layer = (
        products(replace(training_job, model=architecture), machine, plan)
        for architecture in (bare, deeper)
    )
    assert without == pytest.approx(
        float(flops_per_token(bare, float(training_job.sequence), training=True)), rel=5e-4
    )
    expected = with_layer + 6 * (2 * model.hidden**2 + model.hidden * model.vocabulary)
    assert products(training_job, machine, plan) == pytest.approx(expected, rel=1e-9)


def test_latents_are_kept_for_the_backward_pass():
    """Each token of each layer keeps its latents of queries, keys and values for the backward pass.

    They take two bytes per number, beside what heads read.
    """
    training_job, machine = job(**DEEPSEEK)
    plan = TrainingPlan(1, 1, 1, 8, 1, 0, 1, 1, "1f1b", "none")

    def held(width):
        blocks = tuple(
            block._replace(attention=block.attention._replace(q_rank=width))
            for block in training_job.model.blocks
        )
        return float(
            evaluate_plan(
                replace(training_job, model=training_job.model._replace(blocks=blocks)),
                machine,
                plan,
            )[0].memory["activations"]
        )

    layers = sum(block.layers for block in training_job.model.blocks)
    for width in (2536, 5536):
        assert held(width) - held(1536) == pytest.approx(
            (width - 1536) * float(training_job.sequence) * 2 * layers, rel=0.02
        )


def test_stages_inside_one_server_transfer_at_its_links_at_any_distance():
    """Stages inside one server transfer at its links, whether one or two chips apart.

    Two data-parallel copies of four stages fill a server of eight.
    """
    training_job, machine = job(cluster__chips="8", workload__global_batch="64")
    adjacent_stages, separated_stages = (
        evaluate_plan(training_job, machine, TrainingPlan(1, 1, 4, 2, 1, order, 1, 1, "1f1b"))[1]
        for order in (1, 0)
    )
    assert float(adjacent_stages.transfer) > 0
    assert float(separated_stages.transfer) == pytest.approx(
        float(adjacent_stages.transfer), rel=1e-12
    )
    training_job, machine = job(cluster__chips="16", workload__global_batch="64")
    inside, across = (
        evaluate_plan(training_job, machine, TrainingPlan(1, 1, 4, 4, 1, order, 1, 1, "1f1b"))[1]
        for order in (1, 0)
    )
    assert float(across.transfer) > float(inside.transfer), (
        "four copies between the stages put two of them in another server"
    )


def test_a_stage_holds_its_share_of_the_layers():
    """Stages hold all layers in equal parts, with no part to spare."""
    training_job, _ = job(cluster__chips="64", workload__global_batch="64")
    layers = training_job.model.layers
    layer_counts = set()
    for pipeline, interleave in ((1, 1), (4, 1), (4, 3), (8, 2), (8, 3), (5, 2)):
        layers_per_stage = training_plan_document(
            TrainingPlan(1, 1, pipeline, 1, 1, 0, 1, interleave, "interleaved"),
            training_job.model,
            64,
        )["layers_per_stage"]
        assert layers_per_stage % interleave == 0
        assert layers <= layers_per_stage * pipeline < layers + pipeline * interleave
        layer_counts.add(layers_per_stage)
    assert len(layer_counts) > 3
    assert (
        training_plan_document(
            TrainingPlan(1, 1, 1, 4, 1, 0, 2, 1, "1f1b"), training_job.model, 64
        )["micro_batches"]
        == 64 / 4 / 2
    )


def test_experts_keep_what_their_tokens_pass():
    """Experts keep two inputs and the activation's product for each token, two bytes a number.

    Experts wider by 128 keep as much more.
    """
    training_job, machine = job(**DEEPSEEK)
    plan = TrainingPlan(1, 1, 1, 8, 1, 0, 1, 1, "1f1b", "none")
    sparse = [block for block in training_job.model.blocks if block.feed_forward.experts]

    def held(more):
        wider = {
            block: block._replace(
                feed_forward=block.feed_forward._replace(width=block.feed_forward.width + more)
            )
            for block in sparse
        }
        blocks = tuple(wider.get(block, block) for block in training_job.model.blocks)
        return float(
            evaluate_plan(
                replace(training_job, model=training_job.model._replace(blocks=blocks)),
                machine,
                plan,
            )[0].memory["activations"]
        )

    taken = sum(block.layers * block.feed_forward.active for block in sparse)
    assert held(128) - held(0) == pytest.approx(
        128 * taken * float(training_job.sequence) * 3 * 2, rel=0.02
    )
