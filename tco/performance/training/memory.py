"""Memory of a training plan on its fullest chip: weights, gradients, optimizer, activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import ceil_ratio, formula
from tco.foundation.units import Byte, Pure


@formula(unit="byte", source="rajbhandari2020")
def sharded_bytes(parameters: Pure, size: Byte, shards: Pure, copies: Pure) -> Any:
    """One of weights, gradients or optimizer state, split over shards: c P b / N."""
    return copies * parameters * size / shards


@formula(unit="byte", source="ren2021")
def resident_bytes(state: Byte, offload: Pure) -> Any:
    """State that stays in HBM: M (1 - offload)."""
    return state * (1 - offload)


@formula(unit="byte", source="korthikanti2022")
def layer_activations(
    tokens: Pure,
    wide: Pure,
    masked: Pure,
    wide_split: Pure,
    narrow: Pure,
    tensor_parallel: Pure,
    element_size: Byte,
    mask_size: Byte = 1,
    wide_inputs: Pure = 0,
    narrow_inputs: Pure = 0,
    input_size: Byte = 2,
) -> Any:
    """Activations layers keep of a micro-batch: T ((wide b + inputs b_in + masked b_mask) / sp + (narrow b + inputs b_in) / tp).

    Inputs of products are kept in the format these compute in. For a GPT layer in 16 bits wide = 4 h, masked = 2 h, narrow = 12 h:
    s b h (10 + 24/t), or 34 s b h / t with sequence parallelism.
    """
    whole = (wide * element_size + wide_inputs * input_size + masked * mask_size) / wide_split
    return tokens * (whole + (narrow * element_size + narrow_inputs * input_size) / tensor_parallel)


@formula(unit="byte", source="korthikanti2022")
def score_activations(
    tokens: Pure, sequence: Pure, heads: Pure, tensor_parallel: Pure, copies: Pure, masks: Pure, element_size: Byte, mask_size: Byte = 1
) -> Any:
    """Scores that unfused attention keeps: T s H / tp (copies b + masks b_mask); with dropout 5 a s^2 b / t bytes."""
    return tokens * sequence * heads / tensor_parallel * (copies * element_size + masks * mask_size)


@formula(unit="", source="korthikanti2022")
def in_flight(stages: Pure, extra: Pure, interleave: Pure, micro_batches: Pure) -> Any:
    """Micro-batches the first stage holds: min(p + extra / v, m); extra is p - 1 with interleaving, 0 without."""
    return np.minimum(stages + extra / interleave, micro_batches)


@formula(unit="byte", source="korthikanti2022")
def held_activations(model_activations: Byte, slots: Pure, layers: Pure, in_flight: Pure) -> Any:
    """Activations the first stage holds: A slots / L x micro-batches in flight."""
    return model_activations * slots / layers * in_flight


@formula(unit="byte", source="tco-model")
def logits_bytes(tokens: Pure, vocabulary: Pure, logit_size: Byte = 4) -> Any:
    """Logits of a micro-batch in FP32: T V b."""
    return tokens * vocabulary * logit_size


@formula(unit="", source="korthikanti2022")
def recomputed_share(kept: Byte, recomputed: Byte, usable: Byte) -> Any:
    """Least share of the layers to compute again so that a plan fits: x = min(max((M_0 - M) / (M_0 - M_1), 0), 1)."""
    return np.minimum(np.maximum((kept - usable) / np.maximum(kept - recomputed, 1e-9 * kept), 0), 1)


@formula(unit="", source="narayanan2021")
def whole_layers(share: Pure, layers: Pure) -> Any:
    """Share of the layers of a stage that is whole layers: ceil(x n) / n."""
    return ceil_ratio(share * layers, 1) / layers


@formula(unit="byte", source="korthikanti2022")
def partly_kept(kept: Byte, recomputed: Byte, share: Pure) -> Any:
    """Activations where a share of the layers is computed again: M = M_0 + x (M_1 - M_0)."""
    return kept + share * (recomputed - kept)


@formula(unit="byte", source="tco-model")
def overlap_buffers(hidden_states: Byte, overlapped: Pure, tensor_parallel: Pure) -> Any:
    """Buffers that let a collective run in pieces beside a product, one for each direction: 2 M o, none for a chip alone."""
    return 2 * hidden_states * overlapped * np.minimum(tensor_parallel - 1, 1)
