"""The pipeline: time of a stage, bubbles of the schedules, transfers, and all micro-batches of a step; optimizer and the whole step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.units import (
    FLOP,
    Byte,
    BytePerSecond,
    FLOPPerSecond,
    PerSecond,
    Pure,
    Second,
    Token,
)
from tco.models.architecture import Architecture
from tco.performance.chip.roofline import exposed_time
from tco.performance.layer.machine import Machine
from tco.performance.training.job import Job
from tco.performance.training.micro_batch import MicroBatch, Way
from tco.performance.training.plans import Plan, slots_of
from tco.performance.training.traffic import hidden_bytes, hidden_traffic, sent, strided


@formula(unit="", source="tco-model")
def micro_batches(global_batch: Pure, data_parallel: Pure, micro_batch: Pure) -> Any:
    """Micro-batches of a step: m = B / (dp b)."""
    return global_batch / (data_parallel * micro_batch)


@formula(unit="s", source="narayanan2021")
def stage_time(model_time: Second, slots: Pure, layers: Pure) -> Any:
    """Part of a micro-batch's time that one stage with some of the layers takes: t slots / L."""
    return model_time * slots / layers


@formula(unit="s", source="narayanan2021")
def longest_stage(stage: Second, head: Second, layer: Second, spared: Pure) -> Any:
    """Time of the stage with the output head, which may hold a layer less: t + max(t_head - n t_layer, 0)."""
    return stage + np.maximum(head - spared * layer, 0)


@formula(unit="s", source="narayanan2021")
def pipeline_bubble(stages: Pure, interleave: Pure, micro_batch_time: Second) -> Any:
    """Idle time of one-forward-one-backward with v model parts a stage: (p - 1) t / v."""
    return (stages - 1) * micro_batch_time / interleave


@formula(unit="s", source="qi2023")
def zero_bubble(stages: Pure, micro_batch_time: Second, weight_gradients: Second) -> Any:
    """Idle time when weight gradients fill the bubble at the memory of 1F1B: (p - 1) (F + B - 2 W)."""
    return (stages - 1) * np.maximum(micro_batch_time - 2 * weight_gradients, 0)


@formula(unit="s", source="deepseek-v3")
def dual_pipe_bubble(stages: Pure, forward_and_backward: Second, backward: Second, weight_gradients: Second) -> Any:
    """Idle time of a pipeline fed from both ends: (p/2 - 1) (FB + B - 3 W)."""
    return (stages / 2 - 1) * np.maximum(forward_and_backward + backward - 3 * weight_gradients, 0)


@formula(unit="s", source="narayanan2021")
def pipeline_time(micro_batches: Pure, stage: Second, transfer: Second, bubble: Second) -> Any:
    """Time of all micro-batches through the pipeline: m (t + t_transfer) + bubble."""
    return micro_batches * (stage + transfer) + bubble


@formula(unit="s", source="rajbhandari2020")
def optimizer_time(parameters: Pure, shards: Pure, bandwidth: BytePerSecond, offload: Pure, traffic: Byte = 28) -> Any:
    """Time of the optimizer's step on the chip: P/N x 28 bytes / B: gradient read, FP32 master and both moments read and written."""
    return (1 - offload) * parameters / shards * traffic / bandwidth


@formula(unit="s", source="ren2021")
def host_update_time(parameters: Pure, shards: Pure, offload: Pure, update_rate: PerSecond, host_link: BytePerSecond, traffic: Byte = 4) -> Any:
    """Time of the optimizer's step on the host: P/N (1/U + 4 bytes / B_host), gradients down and weights up."""
    return offload * parameters / shards * (1 / update_rate + traffic / host_link)


@formula(unit="s", source="tco-model")
def scaled_step(step: Second, domains: Pure, loss: Pure) -> Any:
    """Step with what synchronising many domains costs: t (1 + x log2 n)."""
    return step * (1 + loss * np.log2(domains))


@formula(unit="FLOP", source="scaling-book")
def step_flops(flops_per_token: FLOP, sequences: Pure, sequence: Pure) -> Any:
    """Model FLOPs of a step: F B s, F being those of a token forward and backward, attention causal."""
    return flops_per_token * sequences * sequence


@formula(unit="", source="chowdhery2022")
def model_flops_utilisation(flops: FLOP, step: Second, chips: Pure, peak: FLOPPerSecond) -> Any:
    """Model FLOPs a second over the dense peak of the compute format: MFU = F / (t n P). Recomputed work does not count."""
    return flops / (step * chips * peak)


@formula(unit="token/s", source="tco-contract")
def training_rate(sequences: Pure, sequence: Pure, step: Second, evaluated: Pure, one_token: Token = 1) -> Any:
    """Tokens a second of the whole job, e sequences being evaluated by a forward pass for each one trained: B s / (t (1 + e/3))."""
    return sequences * sequence * one_token / (step * (1 + evaluated / 3))


@formula(unit="", source="tco-model")
def share_of_step(part: Second, step: Second) -> Any:
    """Share of the step: t_part / t."""
    return part / step


@formula(unit="s", source="korthikanti2022")
def partly_recomputed(kept: Second, recomputed: Second, share: Pure) -> Any:
    """Step in which a share of the layers is computed again: t = (1 - x) t_0 + x t_1."""
    return (1 - share) * kept + share * recomputed


class Pipe(NamedTuple):
    """All micro-batches through the pipeline."""

    time: Any
    micro_batches: Any
    stage: Any  # one micro-batch on an inner stage
    longest: Any  # on the stage with the output head
    transfer: Any
    bubble: Any
    links: dict[str, Any]  # by tier, over all micro-batches
    waits: dict[str, Any]


def hides(plan: Plan) -> bool:
    """Say whether a schedule has another micro-batch at hand to compute while one exchanges tokens between domains."""
    return plan.schedule in ("interleaved", "dual-pipe")


def way_of(plan: Plan, micro: MicroBatch) -> Way:
    """Return the times of a micro-batch in the schedule of a plan."""
    return (micro.hidden if hides(plan) else micro.added)[plan.recompute]


def slots(plan: Plan, model: Architecture) -> Any:
    """Layers a stage holds, over all its model parts."""
    return slots_of(model.layers, plan.pipeline * plan.interleave) * plan.interleave


def pipeline(job: Job, machine: Machine, plan: Plan, micro: MicroBatch) -> Pipe:
    """Return the time of all micro-batches through the pipeline."""
    model, layers = job.model, slots(plan, job.model)
    count = micro_batches(job.sequences, plan.data, plan.micro_batch)
    busy = way_of(plan, micro).time
    stage = stage_time(busy, layers, model.layers)
    spared = np.minimum(layers * plan.pipeline - model.layers, 1)
    longest = longest_stage(stage, micro.head, stage_time(busy, 1, model.layers), spared)
    if plan.schedule == "zero-bubble":
        bubble = zero_bubble(plan.pipeline, longest, stage_time(micro.weights, layers, model.layers))
    elif plan.schedule == "dual-pipe":
        backward, weights = (stage_time(time, layers, model.layers) for time in (micro.backward, micro.weights))
        bubble = dual_pipe_bubble(plan.pipeline, longest, backward, weights)
    else:
        bubble = pipeline_bubble(plan.pipeline, plan.interleave, longest)
    size = hidden_bytes(micro.tokens, model.hidden, plan.tensor, job.wide_size)
    stages = strided(machine.links, plan.tensor * plan.context * (1 + (plan.data - 1) * (1 - plan.order)), plan.pipeline)
    boundaries = 2 * plan.interleave * np.minimum(plan.pipeline - 1, 1)
    share = job.value("pipeline_exposed") if job.software.overlaps else 1.0  # older software waits for its transfers
    transfer = exposed_time(sent(machine.links, size, stages), boundaries, share)
    links, waits = (
        {tier: hidden_traffic(stage_time(time, layers, model.layers), count, 1) for tier, time in times[plan.recompute].items()}
        for times in (micro.links, micro.waits)
    )
    return Pipe(pipeline_time(count, longest, transfer, bubble), count, stage, longest, transfer, bubble, links, waits)
