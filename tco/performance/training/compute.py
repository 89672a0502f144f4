"""Compute of a training step: sustained rates, matrix products, the attention core, passes through memory.

At training shapes compute and traffic of a product hardly overlap, so both terms are added; large products run at the clock the
power limit sustains, not at the boost clock the peak is quoted at.
"""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import FLOP, Byte, BytePerSecond, FLOPPerSecond, PerSecond, Pure, Second


@formula(unit="FLOP/s", source="tco-model")
def sustained_rate(peak: FLOPPerSecond, efficiency: Pure, format_efficiency: Pure, clock: Pure, family: Pure) -> Any:
    """Rate of large products: dense peak x efficiency x that of the format x sustained clock x factor of the family's software."""
    return peak * efficiency * format_efficiency * clock * family


@formula(unit="FLOP/s", source="tco-model")
def grouped_rate(rate: FLOPPerSecond, narrow: Pure, half_width: Pure) -> Any:
    """Rate of the grouped products of experts, whose narrow side fills the units badly: P w / (w + w_half)."""
    return rate * narrow / (narrow + half_width)


@formula(unit="", source="tco-model")
def rank_tokens(micro_batch: Pure, sequence: Pure, context_parallel: Pure) -> Any:
    """Tokens of a micro-batch on one chip of a context-parallel group: T = b s / cp."""
    return micro_batch * sequence / context_parallel


@formula(unit="byte", source="scaling-book")
def weight_gradient_bytes(tokens: Pure, inner: Pure, outer: Pure, weights: Pure, input_size: Byte, accumulator_size: Byte) -> Any:
    """Traffic of the product that makes weight gradients, sums read and written: Q = b_in m (k + n) + 2 b_acc W."""
    return input_size * tokens * (inner + outer) + 2 * accumulator_size * weights


@formula(unit="s", source="tco-model")
def additive_roofline(flops: FLOP, bytes_moved: Byte, compute_rate: FLOPPerSecond, bandwidth: BytePerSecond) -> Any:
    """Time of a product whose compute and traffic do not overlap: t = F/P + Q/B."""
    return flops / compute_rate + bytes_moved / bandwidth


@formula(unit="s", source="flashattention3")
def attention_core_time(
    flops: FLOP,
    rate: FLOPPerSecond,
    keys: Pure,
    half_length: Pure,
    products: Pure,
    scores: Pure,
    exponentials: PerSecond,
    exponential_exposed: Pure,
) -> Any:
    """Time of fused attention: t = products x F / (P s / (s + s_half)) + x_e scores / E, with s = 2 keys.

    `products` counts the products in units of the forward pass; x_e is the share of the exponentials that no product hides.
    """
    return products * flops * (2 * keys + half_length) / (rate * 2 * keys) + exponential_exposed * scores / exponentials


@formula(unit="byte", source="korthikanti2022")
def score_traffic(tokens: Pure, sequence: Pure, heads: Pure, passes: Pure, element_size: Byte) -> Any:
    """Traffic of attention that keeps its scores in memory: Q = passes x T s H b."""
    return passes * tokens * sequence * heads * element_size


@formula(unit="byte", source="tco-model")
def sweep_bytes(tokens: Pure, wide: Pure, wide_split: Pure, narrow: Pure, passes: Pure, element_size: Byte) -> Any:
    """Traffic of elementwise passes: Q = p b T (wide / split + narrow), `wide` numbers being whole on a chip unless sequences are split."""
    return passes * element_size * tokens * (wide / wide_split + narrow)


@formula(unit="s", source="tco-model")
def host_time(blocks: Pure, block_time: Second, expert_blocks: Pure, expert_block_time: Second, again: Pure, factor: Pure) -> Any:
    """Time the host needs to launch a micro-batch through all layers: t = f (n t_b + n_e t_e) (1 + r/3), r the share computed again."""
    return factor * (blocks * block_time + expert_blocks * expert_block_time) * (1 + again / 3)
