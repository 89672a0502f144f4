"""Expert exchanges: dispatch and combine of tokens, sent per copy or once and copied there."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import greatest
from tco.core.types import Quantity
from tco.fabric import collective_costs as cost
from tco.fabric.collective_times import AlgorithmTiming, GroupLinks, Ways, wire
from tco.fabric.libraries import COPIED


class Tokens(NamedTuple):
    """Tokens that a rank sends to experts: number, bytes, experts and groups.

    `active` is the number of experts per token. `groups` and `drawn` state the groups of experts to
    which the routing is limited.
    """

    count: Any
    bytes: Any  # of one token
    active: Quantity
    groups: int = 0  # of experts; none where routing is not limited
    drawn: int = 0  # groups a token may reach
    cores: Any = None  # that copy tokens; none: as many as the library takes


def units_reached_per_token(tokens: Tokens, units: Quantity) -> Quantity:
    """Return the distinct units that a token's experts fall on; units hold equal shares."""
    if not tokens.groups:
        return cost.distinct_places(units, tokens.active)
    missed: Quantity = 1.0
    for drawn in range(tokens.drawn):
        missed = cost.missed_share(missed, units, tokens.groups, drawn)
    return cost.limited_places(units, missed, tokens.groups, tokens.drawn, tokens.active)


def expert_ways(operation: str, group_links: GroupLinks, tokens: Tokens) -> Ways:
    """Return the algorithms of dispatch or combine of expert tokens.

    Each copy is sent by itself, or once to a rank or domain and copied there by cores or DMA
    engines.
    """
    group = group_links.group

    def low_latency_timing() -> AlgorithmTiming:
        inside, outside = (group.per_domain - 1) / group.ranks, (group.domains - 1) / group.domains
        inner_bytes, left = (
            cost.scattered_bytes(tokens.count, tokens.active, tokens.bytes, share)
            for share in (inside, outside)
        )
        return _exchanged(
            group_links,
            1,
            group_links.straight,
            wire(group_links, inner_bytes, left, group_links.links.spread),
            0.0,
        )

    def once(copied: bool) -> AlgorithmTiming:
        near = (group.per_domain - 1) / group.per_domain
        outside = (group.domains - 1) / group.domains
        ranks = units_reached_per_token(tokens, group.ranks)
        inner_bytes, left = (
            cost.scattered_bytes(tokens.count, reached, tokens.bytes, share)
            for reached, share in (
                (ranks, near),
                (units_reached_per_token(tokens, group.domains), outside),
            )
        )
        copying: Quantity = 0.0
        if copied:
            cores = group_links.links.library.cores if tokens.cores is None else tokens.cores
            copying = cost.copy_time(
                tokens.count, tokens.bytes, ranks, cores, group_links.links.copy_rate
            )
        return _exchanged(
            group_links,
            group_links.links.library.kernels[operation],
            group_links.step,
            wire(group_links, inner_bytes, left, group_links.links.spread),
            copying,
        )

    algorithms = {"low-latency": low_latency_timing}
    if operation in group_links.links.library.kernels:
        algorithms["normal, by DMA"] = partial(once, copied=False)
        if group_links.links.library.cores is not None:
            algorithms[COPIED] = partial(once, copied=True)
    return algorithms


def reported_bytes(group_links: GroupLinks, size: Any) -> Any:
    """Return the bytes that a library divides by the measured time.

    Args:
        group_links: The group of ranks on its links.
        size: Bytes of the buffer, or the tokens that a rank sends to experts.

    Returns:
        The buffer in bytes. For tokens: bytes of the copies that reach distinct domains, or
        distinct ranks where the group is within a single domain.

    """
    if not isinstance(size, Tokens):
        return size
    across = np.asarray(group_links.group.domains) > 1
    return cost.received_bytes(
        size.count,
        size.bytes,
        units_reached_per_token(
            size, np.where(across, group_links.group.domains, group_links.group.ranks)
        ),
    )


def _exchanged(
    group_links: GroupLinks, kernels: Quantity, step: Quantity, wire: Quantity, copying: Quantity
) -> AlgorithmTiming:
    """Return the timing of an expert exchange in some kernels."""
    kernel = group_links.links.latencies.expert_kernel
    network = cost.only_if_shared(step, group_links.group.domains)
    latency = cost.expert_latency(kernels, kernel, network)
    moving = greatest("moving", (wire, copying))
    return AlgorithmTiming(
        cost.direct_time(latency, moving),
        cost.scaled_latency(kernel, kernels),
        latency,
        latency,
        moving,
        kernels=kernels,
    )
