"""The time of a group's algorithm: start, steps and wire, in chunks or in one piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tco.core.types import Quantity
from tco.fabric import collective_costs as cost
from tco.fabric.links import Links, RankGroup

NEVER = math.inf  # time of an algorithm that is not there


class AlgorithmTiming(NamedTuple):
    """Time of an algorithm and what it consists of."""

    time: Any
    start: Any  # with the trips to memory at both ends
    stepping: Quantity  # start and steps
    latency: Any  # start, steps and what steps that add up take longer
    wire: Quantity
    call: Quantity = 0.0  # what the caller adds
    kernels: Quantity = 1  # each with its own trips to memory
    chunk: Quantity = 0.0  # of a transfer in chunks; zero where it is in one piece


# the algorithms of an operation, each timed when it is asked for
Ways = Mapping[str, Callable[[], AlgorithmTiming]]


class GroupLinks(NamedTuple):
    """A group on its links, with the rate and the steps between its domains."""

    links: Links
    group: RankGroup
    rate: Any  # between domains: the lanes of the world, or the network beyond it
    step: Quantity  # between domains, to the paired place
    # to any place of another domain: forwarded on the way inside the world, else as between pairs
    straight: Quantity


def straight_latency(
    group_links: GroupLinks, start: Quantity, phases: int, step: Quantity
) -> Quantity:
    """Return the latency of exchanges straight to every rank.

    A phase takes one step inside the scale-up domain, beyond it one inside and one across.
    """
    t = group_links.links.latencies
    across = cost.direct_latency(
        start, phases, group_links.group.ranks, group_links.group.domains, step, group_links.step
    )
    if t.forwarded_step is None:
        return across
    inside_latency = cost.forwarded_latency(
        start,
        phases,
        group_links.group.ranks,
        group_links.group.domains,
        step,
        group_links.straight,
    )
    return cost.scope_latency(group_links.group.worlds, 1, inside_latency, across)


def wire(
    group_links: GroupLinks, inner: Quantity, outer: Quantity, inner_rate: Quantity
) -> Quantity:
    """Return the wire time of bytes that stay in and leave the domain.

    Both may pass the same ports.
    """
    if not group_links.links.shared:
        return cost.wire_time(inner, inner_rate, outer, group_links.rate)
    is_single_world = 1.0 * (
        group_links.group.worlds <= 1
    )  # beyond its world a chip has ports of its own
    return cost.shared_wire_time(inner, inner_rate, outer, group_links.rate, is_single_world)


def pipelined(
    group_links: GroupLinks, latency: Any, wire: Any, reducing: Quantity | None = None
) -> AlgorithmTiming:
    """Return the timing of a transfer in chunks, of whose steps some add up."""
    t = group_links.links.latencies
    total_latency = (
        latency if reducing is None else cost.reducing_latency(latency, reducing, t.reduction)
    )
    return AlgorithmTiming(
        cost.pipelined_time(total_latency, wire, t.chunk),
        t.start,
        latency,
        total_latency,
        wire,
        chunk=t.chunk,
    )


def at_once(
    group_links: GroupLinks,
    start: Any,
    latency: Any,
    wire: Quantity,
    reducing: Quantity | None = None,
) -> AlgorithmTiming:
    """Return the timing of a transfer in one piece, of whose steps some add up."""
    total_latency = (
        latency
        if reducing is None
        else cost.reducing_latency(latency, reducing, group_links.links.latencies.reduction)
    )
    return AlgorithmTiming(
        cost.direct_time(total_latency, wire), start, latency, total_latency, wire
    )


def timing_where_possible(timing: AlgorithmTiming, possible: Quantity) -> AlgorithmTiming:
    """Return the timing of an algorithm that only some of many groups have."""
    return timing._replace(time=cost.where_offered(timing.time, possible, NEVER))
