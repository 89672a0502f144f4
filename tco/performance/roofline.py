"""Roofline formulas of single operators: work, traffic, time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.formula import formula
from tco.units import FLOP, Byte, BytePerSecond, FLOPPerSecond, Pure, Second


@formula(unit="FLOP", source="scaling-book")
def gemm_flops(tokens: Pure, inner: Pure, outer: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of a matrix product of (tokens x inner) and (inner x outer): F = 2 m k n."""
    return flop_per_mac * tokens * inner * outer


@formula(unit="byte", source="scaling-book")
def gemm_bytes(tokens: Pure, inner: Pure, outer: Pure, weights: Pure, weight_size: Byte, activation_size: Byte) -> Any:
    """Traffic of a matrix product: Q = weights x b_w + m (k + n) x b_a, `weights` being the distinct weights read."""
    return weights * weight_size + tokens * (inner + outer) * activation_size


@formula(unit="", source="tco-model")
def distinct_experts(experts: Pure, active: Pure, tokens: Pure, local_experts: Pure) -> Any:
    """Experts of a group that at least one token reaches: E_local (1 - (1 - k/E)^T), tokens choosing evenly."""
    return local_experts * (1 - (1 - active / experts) ** tokens)


@formula(unit="FLOP", source="scaling-book")
def attention_flops(queries: Pure, keys: Pure, heads: Pure, score_width: Pure, value_width: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of scores and values: F = 2 q k H (d_qk + d_v); `keys` is the mean number of keys a query sees."""
    return flop_per_mac * queries * keys * heads * (score_width + value_width)


@formula(unit="byte", source="scaling-book")
def attention_bytes(sequences: Pure, cached_tokens: Pure, cached_numbers: Pure, cache_size: Byte) -> Any:
    """Cache read by the attention core: Q = B L_kv x numbers per token x bytes per number."""
    return sequences * cached_tokens * cached_numbers * cache_size


@formula(unit="byte/s", source="tco-model")
def achieved_bandwidth(bandwidth: BytePerSecond, memory_efficiency: Pure) -> Any:
    """Bandwidth that long streams reach: BW = peak x efficiency."""
    return bandwidth * memory_efficiency


@formula(unit="FLOP/s", source="tco-model")
def achieved_rate(peak: FLOPPerSecond, gemm_efficiency: Pure) -> Any:
    """Rate that large products reach: P = dense peak x efficiency."""
    return peak * gemm_efficiency


@formula(unit="s", source="williams2009")
def roofline_time(flops: FLOP, bytes_moved: Byte, compute_rate: FLOPPerSecond, bandwidth: BytePerSecond, launch_time: Second) -> Any:
    """Time of an operator that computes while it moves data: t = max(F/P, Q/B) + t_launch."""
    return np.maximum(flops / compute_rate, bytes_moved / bandwidth) + launch_time


@formula(unit="s", source="tco-model")
def repeated(time: Second, layers: Pure) -> Any:
    """Time of an operator over all layers that have it: t = n t_1."""
    return time * layers
