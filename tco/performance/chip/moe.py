"""Mixture of experts: how many experts tokens reach, and what the busiest group of them has to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, minimum
from tco.foundation.units import Pure, Second


@formula(unit="", source="tco-model")
def instance_tokens(tokens: Pure, groups: Pure) -> Any:
    """Tokens of all attention groups of an instance: T x groups."""
    return tokens * groups


@formula(unit="", source="tco-model")
def distinct_experts(experts: Pure, active: Pure, tokens: Pure, local_experts: Pure) -> Any:
    """Experts of a group that at least one token reaches, tokens choosing evenly: E_local (1 - (1 - k/E)^T)."""
    return -local_experts * np.expm1(tokens * np.log1p(-minimum(active / experts, 0.999)))


@formula(unit="", source="raab-steger1998")
def busiest_reached(reached: Pure, groups: Pure, imbalance: Pure, local_experts: Pure) -> Any:
    """Experts reached in the busiest of some groups: min(x + c sqrt(2 x ln G), E_local)."""
    return minimum(reached + imbalance * np.sqrt(2 * reached * np.log(groups)), local_experts)


@formula(unit="", source="tco-model")
def group_tokens(tokens: Pure, active: Pure, groups: Pure) -> Any:
    """Expert tokens of a group on average: T k / G."""
    return tokens * active / groups


@formula(unit="", source="raab-steger1998")
def busiest_load(load: Pure, groups: Pure, imbalance: Pure) -> Any:
    """Expert tokens of the busiest of some groups: x + c sqrt(2 x ln G)."""
    return load + imbalance * np.sqrt(2 * load * np.log(groups))


@formula(unit="", source="semianalysis-trn3")
def permute_passes(passes: Pure, dereferences: Pure) -> Any:
    """Passes that bring tokens into the order of their experts, none where engines read them through their indices: p (1 - d)."""
    return passes * (1 - dereferences)


@formula(unit="s", source="tco-calibration")
def engine_factor(time: Second, factor: Pure) -> Any:
    """Time of grouped products in an engine whose kernels are slower than the best: t f."""
    return time * factor


@formula(unit="s", source="aws-nki-dma")
def dependent_reads_time(reads: Pure, start: Second) -> Any:
    """Gap before the weights of an expert arrive that DMA engines read once tokens have chosen it: n t_start."""
    return reads * start


@formula(unit="s", source="aws-nki-dma")
def experts_start_time(reached: Pure, start: Second) -> Any:
    """Gaps before the weights of all experts a group reads, one after the other: E t_1."""
    return reached * start
