"""What a training step computes and moves besides its products: gradient sums, the attention core, passes through memory, launches."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula, select
from tco.foundation.units import FLOP, Byte, Pure, Second


@formula(unit="", source="tco-model")
def rank_tokens(micro_batch: Pure, sequence: Pure, context_parallel: Pure) -> Any:
    """Tokens of a micro-batch on one chip of a context-parallel group: T = b s / cp."""
    return micro_batch * sequence / context_parallel


@formula(unit="byte", source="scaling-book")
def weight_gradient_bytes(tokens: Pure, inner: Pure, outer: Pure, weights: Pure, input_size: Byte, accumulator_size: Byte) -> Any:
    """Traffic of the product that makes weight gradients, sums read and written: Q = b_in m (k + n) + 2 b_acc W."""
    return input_size * tokens * (inner + outer) + 2 * accumulator_size * weights


@formula(unit="byte", source="narayanan2021")
def gradient_sum_bytes(weights: Pure, gradient_size: Byte, accumulator_size: Byte) -> Any:
    """Traffic of adding a product's gradients to the sums in a kernel of its own: Q = W (b_g + 2 b_acc)."""
    return weights * (gradient_size + 2 * accumulator_size)


@formula(unit="", source="tco-calibration")
def kernel_share(asynchronous: Pure, share: Pure, share_asynchronous: Pure) -> Any:
    """Share of today's rate that an attention kernel reaches: that on chips whose matrix units work beside the others, or on older ones."""
    return select(asynchronous > 0.5, share_asynchronous, share)


@formula(unit="s", source="flashattention3")
def attention_pass_time(core: Second, products: Pure, share: Pure) -> Any:
    """Time of fused attention: t = n t_core / x, n the products in units of the forward pass and x the kernel's share of today's rate."""
    return products * core / share


@formula(unit="", source="flashattention3")
def keys_of_tiles(keys: Pure, tile: Pure) -> Any:
    """Keys a query meets on average when kernels take whole tiles, half of one of which the mask hides: k + tile/2."""
    return keys + tile / 2


@formula(unit="byte", source="korthikanti2022")
def score_traffic(tokens: Pure, sequence: Pure, heads: Pure, passes: Pure, element_size: Byte) -> Any:
    """Traffic of attention that keeps its scores in memory: Q = passes x T s H b."""
    return passes * tokens * sequence * heads * element_size


@formula(unit="byte", source="tco-model")
def sweep_bytes(tokens: Pure, wide: Pure, wide_split: Pure, narrow: Pure, passes: Pure, element_size: Byte) -> Any:
    """Traffic of elementwise passes: Q = p b T (wide / split + narrow), `wide` numbers being whole on a chip unless sequences are split."""
    return passes * element_size * tokens * (wide / wide_split + narrow)


@formula(unit="FLOP", source="scaling-book")
def group_work(flops: FLOP, groups: Pure) -> Any:
    """Work of equal products: g F."""
    return groups * flops


@formula(unit="byte", source="scaling-book")
def group_bytes(bytes_moved: Byte, groups: Pure) -> Any:
    """Traffic of equal products: g Q."""
    return groups * bytes_moved


@formula(unit="s", source="tco-model")
def host_time(
    blocks: Pure, block_time: Second, expert_blocks: Pure, expert_block_time: Second, experts: Pure, expert_time: Second, again: Pure, factor: Pure
) -> Any:
    """Time the host needs to launch a micro-batch through all layers: t = f (n t_b + n_e t_e + m t_1) (1 + r/3).

    m experts have kernels of their own, r is the share computed again.
    """
    return factor * (blocks * block_time + expert_blocks * expert_block_time + experts * expert_time) * (1 + again / 3)
