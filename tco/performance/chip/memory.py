"""What a plan keeps in the HBM of one chip."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import Byte, Pure


@formula(unit="byte", source="scaling-book")
def weight_bytes(shared_parameters: Pure, expert_parameters: Pure, tensor_parallel: Pure, chips: Pure, weight_size: Byte, expert_size: Byte) -> Any:
    """Weights of one chip: W = P_shared / tp b_w + P_experts / N b_e."""
    return shared_parameters / tensor_parallel * weight_size + expert_parameters / chips * expert_size


@formula(unit="byte", source="scaling-book")
def cache_bytes(sequences: Pure, cached_tokens: Pure, growing_numbers: Pure, kept_numbers: Pure, cache_size: Byte) -> Any:
    """Cache of one chip over all layers: C = B (L g + k) b, g numbers a token and k numbers a sequence (windows, states)."""
    return sequences * (cached_tokens * growing_numbers + kept_numbers) * cache_size


@formula(unit="byte", source="tco-model")
def usable_memory(hbm_capacity: Byte, memory_reserve: Pure) -> Any:
    """HBM left for weights and cache: usable = capacity (1 - reserve)."""
    return hbm_capacity * (1 - memory_reserve)


@formula(unit="byte", source="tco-model")
def memory_in_use(weights: Byte, cache: Byte) -> Any:
    """HBM in use: weights + cache."""
    return weights + cache


@formula(unit="byte", source="tensorrt-llm-caches")
def room_for_caches(cache: Byte, share: Pure) -> Any:
    """HBM that weights must leave free so that an engine, which gives caches a share s of it, holds them: C / s."""
    return cache / share
