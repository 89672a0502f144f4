"""Times of a training step: its micro-batches through the pipeline, the optimizer, and rates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import elementwise_maximum, log2
from tco.core.formula import formula
from tco.core.types import JsonObject, Quantity
from tco.core.units import (
    FLOP,
    Byte,
    BytePerSecond,
    FLOPPerSecond,
    PerSecond,
    Pure,
    Second,
    Token,
)
from tco.fabric.collectives import fastest_algorithm_time, reach
from tco.fabric.links import Links, RankGroup, strided_group
from tco.models.architecture import Architecture
from tco.performance.chip.roofline import exposed_time, message_bytes, per_rank
from tco.performance.layer.chip_model import Machine
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch_levels import MicroBatch, ScheduleVariant, pipeline_stride
from tco.performance.training.plans import TrainingPlan


@formula("")
def micro_batches(global_batch: Pure, data_parallel: Pure, micro_batch: Pure) -> Quantity:
    """Micro-batches of a step: m = B / (dp b)."""
    return global_batch / (data_parallel * micro_batch)


@formula("s", source="narayanan2021")
def stage_time(model_time: Second, slots: Pure, layers: Pure) -> Quantity:
    """Part of a micro-batch's time that one stage with some of the layers takes: t slots / L."""
    return model_time * slots / layers


@formula("s", source="narayanan2021")
def longest_stage(stage: Second, head: Second, layer: Second, spared: Pure) -> Quantity:
    """Time of the stage with the output head: t + max(t_head - n t_layer, 0).

    The stage may hold a layer less.
    """
    return stage + elementwise_maximum(head - spared * layer, 0)


@formula("s", source="narayanan2021")
def pipeline_bubble(stages: Pure, interleave: Pure, micro_batch_time: Second) -> Quantity:
    """Idle time of one-forward-one-backward with v model parts a stage: (p - 1) t / v."""
    return (stages - 1) * micro_batch_time / interleave


@formula("s", source="qi2023")
def zero_bubble(stages: Pure, micro_batch_time: Second, weight_gradients: Second) -> Quantity:
    """Idle time with weight gradients in the bubble, at 1F1B's memory: (p - 1) (F + B - 2 W)."""
    return (stages - 1) * elementwise_maximum(micro_batch_time - 2 * weight_gradients, 0)


@formula("s", source="deepseek-v3")
def dual_pipe_bubble(
    stages: Pure, forward_and_backward: Second, backward: Second, weight_gradients: Second
) -> Quantity:
    """Idle time of a pipeline fed from both ends: (p/2 - 1) (FB + B - 3 W)."""
    return (stages / 2 - 1) * elementwise_maximum(
        forward_and_backward + backward - 3 * weight_gradients, 0
    )


@formula("s", source="narayanan2021")
def pipeline_time(micro_batches: Pure, stage: Second, transfer: Second, bubble: Second) -> Quantity:
    """Time of all micro-batches through the pipeline: m (t + t_transfer) + bubble."""
    return micro_batches * (stage + transfer) + bubble


@formula("s", source="rajbhandari2020")
def hidden_traffic(time: Second, micro_batches: Pure, times: Pure) -> Quantity:
    """Time of collectives hidden behind a step, n per micro-batch: t m n."""
    return time * micro_batches * times


@formula("s", source="rajbhandari2020")
def optimizer_time(
    parameters: Pure, shards: Pure, bandwidth: BytePerSecond, offload: Pure, traffic: Byte = 28
) -> Quantity:
    """Time of the optimizer's step on the chip: P/N x 28 bytes / B.

    The gradient is read; the FP32 master weights and both moments are read and written.
    """
    return (1 - offload) * parameters / shards * traffic / bandwidth


@formula("s", source="ren2021")
def host_update_time(
    parameters: Pure,
    shards: Pure,
    offload: Pure,
    update_rate: PerSecond,
    host_link: BytePerSecond,
    traffic: Byte = 4,
) -> Quantity:
    """Time of the optimizer's step on the host: P/N (1/U + 4 bytes / B_host).

    Gradients go down and weights come up.
    """
    return offload * parameters / shards * (1 / update_rate + traffic / host_link)


@formula("s")
def scaled_step(step: Second, domains: Pure, loss: Pure) -> Quantity:
    """Step with what synchronising many domains costs: t (1 + x log2 n)."""
    return step * (1 + loss * log2(domains))


@formula("FLOP", source="scaling-book")
def step_flops(flops_per_token: FLOP, sequences: Pure, sequence: Pure) -> Quantity:
    """Model FLOPs of a step: F B s.

    F is the work of a token forward and backward, with causal attention.
    """
    return flops_per_token * sequences * sequence


@formula("s")
def step_at_peak(flops: FLOP, chips: Pure, peak: FLOPPerSecond) -> Quantity:
    """Least time of a step, at the dense peak of every chip: t = F / (n P).

    It holds nothing that measured runs leave unexplained.
    """
    return flops / (chips * peak)


@formula("", source="chowdhery2022")
def model_flops_utilisation(at_peak: Second, step: Second) -> Quantity:
    """Model FLOPs per second over the dense peak of the compute format: MFU = F / (n P) / t.

    Recomputed work does not count.
    """
    return at_peak / step


@formula("token/s", source="tco-contract")
def training_rate(
    sequences: Pure, sequence: Pure, step: Second, evaluated: Pure, one_token: Token = 1
) -> Quantity:
    """Tokens per second of the whole job: B s / (t (1 + e/3)).

    A forward pass evaluates e sequences per trained sequence.
    """
    return sequences * sequence * one_token / (step * (1 + evaluated / 3))


@formula("")
def share_of_step(part: Second, step: Second) -> Quantity:
    """Share of the step: t_part / t."""
    return part / step


@formula("s", source="korthikanti2022")
def partly_recomputed(kept_step: Second, recomputed_step: Second, share: Pure) -> Quantity:
    """Step in which a share of the layers is computed again: t = (1 - x) t_0 + x t_1."""
    return (1 - share) * kept_step + share * recomputed_step


class Common(dict[Any, Any]):
    """Cache shared by plans that differ only in recomputation and sharding.

    A key holds a name and the recomputation or sharding settings behind the result.
    """

    def of(self, cache_key: Any, make: Callable[[], Any]) -> Any:
        """Return the cached result of `make()` for `cache_key`.

        `make()` runs once per key.
        """
        if cache_key not in self:
            self[cache_key] = make()
        return self[cache_key]


class Pipe(NamedTuple):
    """All micro-batches through the pipeline."""

    time: Any
    micro_batches: Quantity
    stage: Quantity  # one micro-batch on an inner stage
    longest: Quantity  # on the stage with the output head
    transfer: Quantity
    bubble: Quantity
    links: JsonObject  # by tier, over all micro-batches
    waits: JsonObject


def micro_batch_times(plan: TrainingPlan, micro: MicroBatch) -> ScheduleVariant:
    """Return the times of a micro-batch in the schedule of a plan."""
    level = micro.levels[plan.recompute]
    # these schedules compute one micro-batch while another exchanges tokens between domains
    return level.hidden if plan.schedule in ("interleaved", "dual-pipe") else level.added


def layers_per_stage(plan: TrainingPlan, model: Architecture) -> Any:
    """Return the layers of the fullest stage: its model parts hold equal numbers, rounded up."""
    return -(-model.layers // (plan.pipeline * plan.interleave)) * plan.interleave


def neighbour_transfer_time(links: Links, size: Any, group: RankGroup) -> Quantity:
    """Return the time of a transfer to a group's next rank, possibly in another domain."""
    far = np.minimum(group.domains, 2)
    return fastest_algorithm_time(
        reach(links, RankGroup(2, far, 2 / far, np.minimum(group.worlds, 2))), "send-recv", size
    )


def _transfer_wait(
    job: TrainingJob, machine: Machine, plan: TrainingPlan, micro: MicroBatch
) -> Quantity:
    """Return the time for which a stage waits for transfers of a micro-batch between stages."""
    size = message_bytes(per_rank(micro.tokens, plan.tensor), job.model.hidden, job.wide_size)
    stages = strided_group(machine.links, pipeline_stride(plan), plan.pipeline)
    boundaries = 2 * plan.interleave * np.minimum(plan.pipeline - 1, 1)
    # older software waits for its transfers
    share = job.value("pipeline_exposed") if job.software.overlaps else 1.0
    return exposed_time(neighbour_transfer_time(machine.links, size, stages), boundaries, share)


def pipeline(
    job: TrainingJob, machine: Machine, plan: TrainingPlan, micro: MicroBatch, common: Common
) -> Pipe:
    """Return the time of all micro-batches through the pipeline."""
    model_layers, layers = job.model.layers, layers_per_stage(plan, job.model)

    def on_stage(model_time: Quantity) -> Quantity:
        return stage_time(model_time, layers, model_layers)

    count = micro_batches(job.sequences, plan.data, plan.micro_batch)
    busy = micro_batch_times(plan, micro).time
    stage = on_stage(busy)
    spared = np.minimum(layers * plan.pipeline - model_layers, 1)
    longest = longest_stage(stage, micro.head, stage_time(busy, 1, model_layers), spared)
    if plan.schedule == "zero-bubble":
        bubble = zero_bubble(plan.pipeline, longest, on_stage(micro.weights))
    elif plan.schedule == "dual-pipe":
        backward = on_stage(micro.backward)
        bubble = dual_pipe_bubble(plan.pipeline, longest, backward, on_stage(micro.weights))
    else:
        bubble = pipeline_bubble(plan.pipeline, plan.interleave, longest)
    transfer = common.of("transfer", lambda: _transfer_wait(job, machine, plan, micro))
    level = micro.levels[plan.recompute]
    links, waits = (
        {tier: hidden_traffic(on_stage(time), count, 1) for tier, time in times.items()}
        for times in (level.links, level.waits)
    )
    time = pipeline_time(count, longest, transfer, bubble)
    return Pipe(time, count, stage, longest, transfer, bubble, links, waits)
