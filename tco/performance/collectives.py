"""Costs of collectives on one tier of the fabric: latency and bandwidth terms by algorithm, the cheapest being taken.

`group` is the number of ranks and `size` the bytes of the buffer of one rank. A step takes the latency of its endpoints and of the
devices in between. In-network reduction and torus algorithms follow with the systems that have them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.formula import formula, least
from tco.units import Byte, BytePerSecond, Pure, Second


@formula(unit="s", source="hockney1994")
def step_latency(collective_latency: Second, hop_latency: Second, hops: Pure) -> Any:
    """Latency of one step of a collective: alpha = endpoints + hops x time per intermediate device."""
    return collective_latency + hops * hop_latency


@formula(unit="byte/s", source="tco-model")
def link_rate(bandwidth: BytePerSecond, link_efficiency: Pure) -> Any:
    """Rate large messages reach on the links of a tier: B = bandwidth x efficiency."""
    return bandwidth * link_efficiency


@formula(unit="s", source="thakur2005")
def ring_all_reduce(group: Pure, size: Byte, latency: Second, rate: BytePerSecond) -> Any:
    """Ring all-reduce: t = 2 (N-1) alpha + 2 (N-1)/N M/B."""
    return 2 * (group - 1) * latency + 2 * (group - 1) / group * size / rate


@formula(unit="s", source="thakur2005")
def one_shot_all_reduce(group: Pure, size: Byte, latency: Second, rate: BytePerSecond) -> Any:
    """Every rank sends all to all: t = min(N-1, 1) alpha + (N-1) M/B."""
    return np.minimum(group - 1, 1) * latency + (group - 1) * size / rate


@formula(unit="s", source="thakur2005")
def two_shot_all_reduce(group: Pure, size: Byte, latency: Second, rate: BytePerSecond) -> Any:
    """Direct reduce-scatter, then direct all-gather: t = 2 min(N-1, 1) alpha + 2 (N-1)/N M/B."""
    return 2 * np.minimum(group - 1, 1) * latency + 2 * (group - 1) / group * size / rate


def all_reduce(group: Any, size: Any, latency: Any, rate: Any) -> Any:
    """Return the time of the cheapest all-reduce of `size` bytes a rank."""
    algorithms = (one_shot_all_reduce, two_shot_all_reduce, ring_all_reduce)
    return least("all_reduce", [algorithm(group, size, latency, rate) for algorithm in algorithms])


@formula(unit="byte", source="deepep")
def dispatch_bytes(tokens: Pure, active: Pure, hidden: Pure, element_size: Byte, group: Pure) -> Any:
    """Bytes one rank sends when each of its tokens goes to k experts spread over the group: M = T k h b (N-1)/N."""
    return tokens * active * hidden * element_size * (group - 1) / group


@formula(unit="s", source="deepep")
def all_to_all(size: Byte, latency: Second, rate: BytePerSecond, load_balance: Pure, group: Pure) -> Any:
    """Direct all-to-all: t = min(N-1, 1) alpha + M / (R x load balance), R being the fabric's uniform all-to-all rate."""
    return np.minimum(group - 1, 1) * latency + size / (rate * load_balance)
