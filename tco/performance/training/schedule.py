"""The pipeline and the step: time of a stage, bubbles of the schedules, optimizer, and the whole."""

from __future__ import annotations

from typing import Any

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
