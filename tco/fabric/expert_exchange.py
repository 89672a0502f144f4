"""Expert exchanges: algorithms that dispatch tokens to experts and combine the results.

A rank sends every copy of a token itself, or sends one copy to each rank or domain and has it
copied there.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import greatest
from tco.core.types import Quantity
from tco.fabric import collective_costs as cost
from tco.fabric.collective_times import (
    AlgorithmTimers,
    AlgorithmTiming,
    GroupLinks,
    two_tier_wire_time,
)
from tco.fabric.libraries import COPIED


class Tokens(NamedTuple):
    """Tokens that a rank sends to experts, and the limits of their routing."""

    count: Any  # number of tokens
    bytes: Any  # bytes per token
    active: Quantity  # experts per token
    groups: int = 0  # number of expert groups; zero where routing is not limited to groups
    drawn: int = 0  # number of groups that a token may reach
    cores: Any = None  # cores that copy tokens; None takes the number of the library


def units_reached_per_token(tokens: Tokens, units: Quantity) -> Quantity:
    """Return the number of distinct units that hold a token's experts.

    Args:
        tokens: Tokens and the limits of their routing.
        units: Number of ranks or domains, with equal shares of the experts.

    """
    if not tokens.groups:
        return cost.distinct_places(units, tokens.active)
    missed: Quantity = 1.0  # share of tokens that miss a unit
    for drawn in range(tokens.drawn):
        missed = cost.missed_share(missed, units, tokens.groups, drawn)
    return cost.limited_places(units, missed, tokens.groups, tokens.drawn, tokens.active)


def expert_exchange_algorithms(
    operation: str, group_links: GroupLinks, tokens: Tokens
) -> AlgorithmTimers:
    """Return the algorithms that dispatch or combine expert tokens.

    The low-latency algorithm sends each copy of a token separately. The normal algorithms send a
    token once to each rank or domain; cores or DMA engines copy it there.

    Args:
        operation: `dispatch` or `combine`.
        group_links: Group of ranks on its links.
        tokens: Tokens that a rank sends.

    """
    group = group_links.group

    def low_latency_timing() -> AlgorithmTiming:
        inner_share = (group.per_domain - 1) / group.ranks
        outer_share = (group.domains - 1) / group.domains
        inner, outer = (
            cost.scattered_bytes(tokens.count, tokens.active, tokens.bytes, share)
            for share in (inner_share, outer_share)
        )
        return _exchange_timing(
            group_links,
            kernels=1,
            step=group_links.straight_step,
            wire=two_tier_wire_time(group_links, inner, outer, group_links.links.spread),
            copying=0.0,
        )

    def normal_timing(copied_by_cores: bool) -> AlgorithmTiming:
        inner_share = (group.per_domain - 1) / group.per_domain
        outer_share = (group.domains - 1) / group.domains
        ranks = units_reached_per_token(tokens, group.ranks)
        domains = units_reached_per_token(tokens, group.domains)
        inner = cost.scattered_bytes(tokens.count, ranks, tokens.bytes, inner_share)
        outer = cost.scattered_bytes(tokens.count, domains, tokens.bytes, outer_share)
        copying: Quantity = 0.0
        if copied_by_cores:
            cores = group_links.links.library.cores if tokens.cores is None else tokens.cores
            copying = cost.copy_time(
                tokens.count, tokens.bytes, ranks, cores, group_links.links.copy_rate
            )
        return _exchange_timing(
            group_links,
            kernels=group_links.links.library.kernels[operation],
            step=group_links.step,
            wire=two_tier_wire_time(group_links, inner, outer, group_links.links.spread),
            copying=copying,
        )

    algorithms = {"low-latency": low_latency_timing}
    if operation in group_links.links.library.kernels:
        algorithms["normal, by DMA"] = partial(normal_timing, copied_by_cores=False)
        if group_links.links.library.cores is not None:
            algorithms[COPIED] = partial(normal_timing, copied_by_cores=True)
    return algorithms


def reported_bytes(group_links: GroupLinks, size: Any) -> Any:
    """Return the bytes that a benchmark of a library divides by the measured time.

    Args:
        group_links: The group of ranks on its links.
        size: Bytes of the buffer, or the tokens that a rank sends to experts.

    Returns:
        Bytes of the buffer. For tokens these are the bytes of one copy for each domain that holds
        an expert of the token, or for each such rank where the group is within a single domain.

    """
    if not isinstance(size, Tokens):
        return size
    group = group_links.group
    units = np.where(np.asarray(group.domains) > 1, group.domains, group.ranks)
    return cost.received_bytes(size.count, size.bytes, units_reached_per_token(size, units))


def _exchange_timing(
    group_links: GroupLinks, kernels: Quantity, step: Quantity, wire: Quantity, copying: Quantity
) -> AlgorithmTiming:
    """Return the timing of an expert exchange from its number of kernels and its transfer times."""
    kernel_latency = group_links.links.latencies.expert_kernel
    network_latency = cost.only_if_shared(step, group_links.group.domains)
    latency = cost.expert_latency(kernels, kernel_latency, network_latency)
    moving = greatest("moving", (wire, copying))
    return AlgorithmTiming(
        time=cost.direct_time(latency, moving),
        start=cost.scaled_latency(kernel_latency, kernels),
        stepping=latency,
        latency=latency,
        wire=moving,
        kernels=kernels,
    )
