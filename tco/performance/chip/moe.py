"""Mixture of experts: how many experts tokens reach, and what the busiest group of them has to do."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, maximum, minimum, select
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


@formula(unit="", source="raab-steger1998")
def busiest_popular(load: Pure, groups: Pure, imbalance: Pure, local_experts: Pure, skew: Pure, even: Pure) -> Any:
    """Expert tokens of the busiest of some groups of experts: x + c sqrt(2 ln G (x + (s x)^2 / E_local)), x where they are dealt out in turn.

    Chance and popularity both scatter, whose standard deviation over its mean is s.
    """
    return load + (1 - even) * imbalance * np.sqrt(2 * np.log(groups) * (load + (skew * load) ** 2 / local_experts))


@formula(unit="", source="tco-model")
def popular_experts(load: Pure, local_experts: Pure, skew: Pure, even: Pure) -> Any:
    """Experts of a group that at least one of its expert tokens reaches: E_local (1 - exp(-x / sqrt(1 + s^2))), x tokens an expert on average.

    sqrt(1 + s^2) is mean over median of a popularity whose logarithm is normal; dealt out in turn they are min(x, 1).
    """
    each = load / local_experts
    return local_experts * select(even > 0.5, minimum(each, 1), -np.expm1(-each / np.sqrt(1 + skew**2)))


@formula(unit="", source="tco-model")
def per_expert(load: Pure, reached: Pure) -> Any:
    """Tokens of one of the experts that are reached: x / E."""
    return load / reached


@formula(unit="", source="tco-calibration")
def expert_numbers(width: Pure, hidden: Pure, passes: Pure) -> Any:
    """Numbers an expert token moves beside its products: 3 w of the activation, and p h to its expert and back."""
    return 3 * width + passes * hidden


@formula(unit="", source="clauset2009")
def power_law_scatter(exponent: Pure, least: Pure, most: Pure) -> Any:
    """Standard deviation over mean of a power law p(x) ~ x^-a between two ends: sqrt(m_0 m_2 / m_1^2 - 1).

    m_i = (M^(1+i-a) - l^(1+i-a)) / (1+i-a).
    """
    none = (most ** (1 - exponent) - least ** (1 - exponent)) / (1 - exponent)
    one = (most ** (2 - exponent) - least ** (2 - exponent)) / (2 - exponent)
    two = (most ** (3 - exponent) - least ** (3 - exponent)) / (3 - exponent)
    return np.sqrt(maximum(none * two / one**2 - 1, 0))


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
