"""The time of an algorithm of a group: its start, its steps and the wire, of transfers in chunks or
in one piece.
"""

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
    """A group on the links it meets, with the rate and the steps by which its domains reach each
    other.
    """

    links: Links
    group: RankGroup
    rate: Any  # between domains: the lanes of the world, or the network beyond it
    step: Quantity  # between domains, to the paired place
    # to any place of another domain: forwarded on the way inside the world, else as between pairs
    straight: Quantity


def straight_latency(at: GroupLinks, start: Quantity, phases: int, step: Quantity) -> Quantity:
    """Return the latency of exchanges straight to every place: one step a phase inside the world,
    beyond it one inside and one across.
    """
    t = at.links.latencies
    across = cost.direct_latency(start, phases, at.group.ranks, at.group.domains, step, at.step)
    if t.forwarded_step is None:
        return across
    within = cost.forwarded_latency(
        start, phases, at.group.ranks, at.group.domains, step, at.straight
    )
    return cost.scope_latency(at.group.worlds, 1, within, across)


def wire(at: GroupLinks, inner: Quantity, outer: Quantity, inner_rate: Quantity) -> Quantity:
    """Return the time on the wire of bytes that stay and bytes that leave the domain, which may
    pass the same ports.
    """
    if not at.links.shared:
        return cost.wire_time(inner, inner_rate, outer, at.rate)
    within = 1.0 * (at.group.worlds <= 1)  # beyond its world a chip has ports of its own
    return cost.shared_wire_time(inner, inner_rate, outer, at.rate, within)


def pipelined(
    at: GroupLinks, latency: Any, wire: Any, reducing: Quantity | None = None
) -> AlgorithmTiming:
    """Return the timing of a transfer in chunks, of whose steps some add up."""
    t = at.links.latencies
    whole = latency if reducing is None else cost.reducing_latency(latency, reducing, t.reduction)
    return AlgorithmTiming(
        cost.pipelined_time(whole, wire, t.chunk), t.start, latency, whole, wire, chunk=t.chunk
    )


def at_once(
    at: GroupLinks, start: Any, latency: Any, wire: Quantity, reducing: Quantity | None = None
) -> AlgorithmTiming:
    """Return the timing of a transfer in one piece, of whose steps some add up."""
    whole = (
        latency
        if reducing is None
        else cost.reducing_latency(latency, reducing, at.links.latencies.reduction)
    )
    return AlgorithmTiming(cost.direct_time(whole, wire), start, latency, whole, wire)


def timing_where_possible(timing: AlgorithmTiming, possible: Quantity) -> AlgorithmTiming:
    """Return the timing of an algorithm that only some of many groups have."""
    return timing._replace(time=cost.where_offered(timing.time, possible, NEVER))
