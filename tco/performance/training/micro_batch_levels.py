"""Time and memory of a micro-batch through all layers, at each level of recomputation."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.core.formula import formula, total
from tco.core.types import JsonObject, Quantity
from tco.core.units import Pure, Second
from tco.performance.chip.formats import element_size
from tco.performance.chip.roofline import added_beside, message_bytes
from tco.performance.layer.chip_model import Machine
from tco.performance.layer.layers import hidden_state_part_count
from tco.performance.training.activations import kept_activations
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch import TIERS, MicroBatchShape, Work, work_of
from tco.performance.training.plans import TrainingPlan

LOGIT = 32  # bits of one
# share of a forward pass's launches that the host does again, by recomputation level
RELAUNCHED_SHARES = {"none": 0.0, "selective": 0.25, "full": 1.0}


@formula("s")
def host_time(
    blocks: Pure,
    block_time: Second,
    expert_blocks: Pure,
    expert_block_time: Second,
    experts: Pure,
    expert_time: Second,
    again: Pure,
    factor: Pure,
) -> Quantity:
    """Time in which the host launches a micro-batch: t = f (n t_b + n_e t_e + m t_1) (1 + r/3).

    m experts have kernels of their own, r is the share computed again.
    """
    return (
        factor
        * (blocks * block_time + expert_blocks * expert_block_time + experts * expert_time)
        * (1 + again / 3)
    )


class ScheduleVariant(NamedTuple):
    """Times of a micro-batch whose exchanges across domains follow or overlap its compute.

    They overlap the compute of another micro-batch.
    """

    exchange: Quantity  # what those exchanges add to the rest
    launches: Quantity  # what the host's floor adds to both
    time: Any  # with both


class RecomputationLevel(NamedTuple):
    """Times, activations and link use of a micro-batch at one recomputation level."""

    added: ScheduleVariant  # exchanges following what is computed
    hidden: ScheduleVariant  # exchanges behind another micro-batch
    activations: Any  # activations of all layers
    links: JsonObject  # by tier: how long collectives hold the links
    waits: JsonObject  # for how long of that the chip waits


class MicroBatch(NamedTuple):
    """Times of a micro-batch through all layers, and its memory, for all plans of a shape."""

    tokens: Any
    forward: Quantity
    backward: Quantity
    weights: Quantity
    head: Quantity
    logits: Quantity
    levels: dict[str, RecomputationLevel]  # by recomputation


def micro_batch_shape(plan: TrainingPlan) -> MicroBatchShape:
    """Return the plan settings that determine the work of a micro-batch."""
    return MicroBatchShape(
        plan.tensor,
        plan.context,
        plan.expert,
        plan.micro_batch,
        data_stride(plan),
        plan.sequence_parallel,
        plan.overlap,
    )


def data_stride(plan: TrainingPlan) -> Any:
    """Return the chips between neighbours of a data-parallel group.

    In the second order pipeline stages lie inside the group.
    """
    return plan.tensor * plan.context * (1 + (plan.pipeline - 1) * plan.order)


def pipeline_stride(plan: TrainingPlan) -> Any:
    """Return the chips between neighbours of a pipeline.

    In the first order data-parallel groups lie inside the pipeline.
    """
    return plan.tensor * plan.context * (1 + (plan.data - 1) * (1 - plan.order))


def micro_batch(
    job: TrainingJob, machine: Machine, shape: MicroBatchShape, work: Work | None = None
) -> MicroBatch:
    """Return the times of a micro-batch."""
    work = work or work_of(job, machine, shape)
    sharpness = job.value("overlap_sharpness")
    forward, backward = work.forward(), work.backward()
    levels = {}
    for level, (level_name, host) in enumerate(_host_times(job, machine, shape).items()):
        base_time = total("micro_batch", [forward, backward, *work.again(level)])
        added = hidden = _micro_batch_with_exchange(
            base_time, work.crossing(level) if work.across else None, host, sharpness
        )
        if work.across:
            overlapped = added_beside(base_time, added.exchange, sharpness)
            hidden = _micro_batch_with_exchange(base_time, overlapped, host, sharpness)
        activations = kept_activations(job, machine, shape, work.tokens, level_name)
        by_tier = {tier: work.links(level, tier) for tier in TIERS}
        links = {tier: in_use for tier, (in_use, _) in by_tier.items()}
        waits = {tier: wait for tier, (_, wait) in by_tier.items()}
        levels[level_name] = RecomputationLevel(added, hidden, activations, links, waits)
    logits = message_bytes(work.tokens, job.model.vocabulary / shape.tensor, element_size(LOGIT))
    return MicroBatch(work.tokens, forward, backward, work.weights(), work.output(), logits, levels)


def _micro_batch_with_exchange(
    base_time: Any, exchange: Any, host: Any, sharpness: Quantity
) -> ScheduleVariant:
    """Return the times of a micro-batch with what its exchange and the host's launches add.

    Args:
        base_time: Time of its compute and its exchanges inside domains.
        exchange: Time that its exchanges across domains add; None without such exchanges.
        host: Time in which the host launches it.
        sharpness: Sharpness with which the longer of two overlapping times hides the other.

    """
    time = base_time
    if exchange is not None:
        time = total("micro_batch_and_exchange", [base_time, exchange])
    launches = added_beside(time, host, sharpness)
    busy = total("micro_batch_and_launches", [time, launches])
    return ScheduleVariant(0.0 if exchange is None else exchange, launches, busy)


def _host_times(job: TrainingJob, machine: Machine, shape: MicroBatchShape) -> JsonObject:
    """Return the time the host needs for a micro-batch through all layers, by recomputation."""
    if job.software.compiled:
        return dict.fromkeys(RELAUNCHED_SHARES, 0.0)
    blocks = job.model.blocks
    expert_layers = sum(block.layers for block in blocks if block.feed_forward.experts)
    separate_experts = 0
    if job.software.separate_experts:
        experts = sum(block.layers * block.feed_forward.experts for block in blocks)
        separate_experts = experts / shape.expert
    block_time = job.value("host_block_time")
    expert_block_time = job.value("host_expert_block_time")
    times = (
        hidden_state_part_count(blocks) - expert_layers,
        block_time,
        expert_layers,
        block_time if job.software.fused_experts else expert_block_time,
        separate_experts,
        job.value("host_expert_time"),
    )
    return {
        level_name: host_time(*times, share, machine.kernels.practice("host_factor"))
        for level_name, share in RELAUNCHED_SHARES.items()
    }
