"""Roofline formulas of single operators: work, traffic, time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import ceil_ratio, formula, maximum, minimum
from tco.foundation.units import FLOP, Byte, BytePerSecond, FLOPPerSecond, PerSecond, Pure, Second


@formula(unit="FLOP", source="scaling-book")
def gemm_flops(tokens: Pure, inner: Pure, outer: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of a matrix product of (tokens x inner) and (inner x outer): F = 2 m k n."""
    return flop_per_mac * tokens * inner * outer


@formula(unit="FLOP", source="scaling-book")
def attention_flops(queries: Pure, keys: Pure, heads: Pure, score_width: Pure, value_width: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of scores and values: F = 2 q k H (d_qk + d_v); `keys` is the mean number of keys a query sees."""
    return flop_per_mac * (score_width + value_width) * heads * queries * keys


@formula(unit="byte", source="scaling-book")
def attention_bytes(sequences: Pure, cached_tokens: Pure, cached_numbers: Pure, cache_size: Byte) -> Any:
    """Cache read by the attention core: Q = B L_kv x numbers per token x bytes per number."""
    return cached_numbers * cache_size * sequences * cached_tokens


@formula(unit="byte/s", source="tco-model")
def achieved_bandwidth(bandwidth: BytePerSecond, memory_efficiency: Pure) -> Any:
    """Bandwidth that long streams reach: BW = peak x efficiency."""
    return bandwidth * memory_efficiency


@formula(unit="byte/s", source="aws-nki-dma")
def fed_bandwidth(memory: BytePerSecond, engines: BytePerSecond) -> Any:
    """Bandwidth of a memory that DMA engines read for the cores: min(B_HBM, B_DMA), large transfers on all engines."""
    return minimum(memory, engines)


@formula(unit="FLOP/s", source="tco-model")
def achieved_rate(peak: FLOPPerSecond, gemm_efficiency: Pure) -> Any:
    """Rate that large products reach: P = dense peak x efficiency."""
    return peak * gemm_efficiency


@formula(unit="s", source="tco-model")
def repeated(time: Second, layers: Pure) -> Any:
    """Time of an operator over all layers that have it: t = n t_1."""
    return time * layers


@formula(unit="s", source="tco-model")
def with_unexplained(time: Second, unexplained: Pure) -> Any:
    """Time with what runs take beyond all that the model knows: t (1 + x). Most likely nothing; single runs lie off on either side."""
    return time * (1 + unexplained)


@formula(unit="FLOP/byte", source="williams2009")
def machine_balance(peak: FLOPPerSecond, bandwidth: BytePerSecond) -> Any:
    """Intensity at which computing takes as long as moving: I = P / B."""
    return peak / bandwidth


@formula(unit="byte", source="ocp-mx")
def block_scaled_size(element_size: Byte, scale_size: Byte, block: Pure) -> Any:
    """Size of a number whose block shares a scale: b = element + scale / block."""
    return element_size + scale_size / block


@formula(unit="FLOP", source="scaling-book")
def passing_flops(weights: Pure, tokens: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of passing tokens through some weights: F = 2 w m."""
    return flop_per_mac * weights * tokens


@formula(unit="1/s", source="flashattention3")
def exponential_rate(cores: Pure, per_clock: Pure, clock: PerSecond, sustained: Pure) -> Any:
    """Exponentials a chip computes per second: cores x per clock and core x clock x sustained share."""
    return cores * per_clock * clock * sustained


@formula(unit="", source="flashattention3")
def attention_scores(queries: Pure, keys: Pure, heads: Pure) -> Any:
    """Scores of attention: q k H."""
    return queries * keys * heads


@formula(unit="", source="aws-nki-trn2")
def array_fill(weights: Pure, tokens: Pure, padded: Pure, moving: Pure) -> Any:
    """Share of a systolic array's work that is useful: w T / (w_padded max(T, T_min)); fewer moving rows than that wait for the weights."""
    return weights / padded * (tokens / maximum(tokens, moving))


@formula(unit="", source="aws-nki-trn2")
def padded_weights(inner: Pure, outer: Pure, rows: Pure, joined_rows: Pure, columns: Pure) -> Any:
    """Weights with the padding of arrays that work joined along the sum or side by side, whichever pads less.

    w = min(ceil(k / r_j) r_j ceil(n / c) c, ceil(k / r) r ceil(n / m) m), m = c r_j / r.
    """
    beside = columns * joined_rows / rows
    joined = ceil_ratio(inner, joined_rows) * joined_rows * ceil_ratio(outer, columns) * columns
    apart = ceil_ratio(inner, rows) * rows * ceil_ratio(outer, beside) * beside
    return minimum(joined, apart)


@formula(unit="byte", source="scaling-book")
def product_bytes(tokens: Pure, inner: Pure, outer: Pure, weights: Pure, input_size: Byte, output_size: Byte) -> Any:
    """Traffic of a product: Q = b_in (m k + W) + b_out m n, W being the distinct weights read."""
    return input_size * (tokens * inner + weights) + output_size * tokens * outer


@formula(unit="s", source="tco-model")
def smooth_maximum(one: Second, other: Second, sharpness: Pure) -> Any:
    """Time of two things that run beside each other: (a^p + b^p)^(1/p), the larger one if they differ much."""
    return (one**sharpness + other**sharpness) ** (1 / sharpness)


@formula(unit="s", source="tco-model")
def added_beside(one: Second, other: Second, sharpness: Pure) -> Any:
    """Time that a second thing adds to a first it runs beside: (a^p + b^p)^(1/p) - a, exact where that is next to nothing."""
    longer = maximum(one, other)
    return longer - one + longer * np.expm1(np.log1p((minimum(one, other) / longer) ** sharpness) / sharpness)


@formula(unit="byte", source="tco-model")
def conversion_traffic(tokens: Pure, numbers: Pure, conversion_size: Byte) -> Any:
    """Traffic of turning activations into a narrow format: Q = T n b_c."""
    return tokens * numbers * conversion_size


@formula(unit="s", source="tco-model")
def computing_time(flops: FLOP, rate: FLOPPerSecond) -> Any:
    """Time of some work on engines of a rate: t = F / P."""
    return flops / rate
