"""The time of a group's algorithm: start, steps and wire, in chunks or in one piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tco.core.types import Quantity
from tco.fabric import collective_costs as cost
from tco.fabric.links import Links, RankGroup

ABSENT_TIME = math.inf  # s, time of an algorithm that a group does not have


class AlgorithmTiming(NamedTuple):
    """Time of an algorithm and its components, s."""

    time: Any
    start: Any  # includes the trips to memory at both ends
    stepping: Quantity  # start and steps
    latency: Any  # start, steps and the time to add up what arrives
    wire: Quantity
    call: Quantity = 0.0  # added by the caller of the library
    kernels: Quantity = 1  # number of kernels, each with its own trips to memory
    chunk: Quantity = 0.0  # time per chunk; zero for a transfer in one piece


# Functions that time the algorithms of an operation, by name. Only the needed ones are called.
AlgorithmTimers = Mapping[str, Callable[[], AlgorithmTiming]]


class GroupLinks(NamedTuple):
    """A group on its links, with the rate and the step latencies between its domains."""

    links: Links
    group: RankGroup
    rate: Any  # between domains: the rate of the world's lanes, or of the network beyond the world
    step: Quantity  # latency to the paired chip of another domain
    # Latency to any chip of another domain. Devices of the world forward the transfer where they
    # can; otherwise the latency is `step`.
    straight_step: Quantity


def straight_latency(
    group_links: GroupLinks, start: Quantity, phases: int, step: Quantity
) -> Quantity:
    """Return the latency of exchanges straight to every rank, s.

    A phase takes one step inside the scale-up domain. Beyond the domain it takes one step inside
    and one step across.
    """
    group = group_links.group
    across_latency = cost.direct_latency(
        start, phases, group.ranks, group.domains, step, group_links.step
    )
    if group_links.links.latencies.forwarded_step is None:
        return across_latency
    inside_latency = cost.forwarded_latency(
        start, phases, group.ranks, group.domains, step, group_links.straight_step
    )
    return cost.scope_latency(group.worlds, 1, inside_latency, across_latency)


def two_tier_wire_time(
    group_links: GroupLinks, inner: Quantity, outer: Quantity, inner_rate: Quantity
) -> Quantity:
    """Return the wire time of the bytes that stay in the domain and of those that leave it, s.

    Both pass the same ports where the links are shared and the group is in one world. A chip has
    separate ports for traffic that leaves its world.
    """
    if not group_links.links.shared:
        return cost.wire_time(inner, inner_rate, outer, group_links.rate)
    is_single_world = 1.0 * (group_links.group.worlds <= 1)
    return cost.shared_wire_time(inner, inner_rate, outer, group_links.rate, is_single_world)


def pipelined_timing(
    group_links: GroupLinks, latency: Any, wire: Any, reducing_steps: Quantity | None = None
) -> AlgorithmTiming:
    """Return the timing of a transfer in chunks.

    Args:
        group_links: Group of ranks on its links.
        latency: Latency of start and steps, s.
        wire: Time on the wire, s.
        reducing_steps: Number of steps that add up what arrives; None adds up nothing.

    """
    latencies = group_links.links.latencies
    total_latency = _latency_with_reduction(group_links, latency, reducing_steps)
    return AlgorithmTiming(
        time=cost.pipelined_time(total_latency, wire, latencies.chunk),
        start=latencies.start,
        stepping=latency,
        latency=total_latency,
        wire=wire,
        chunk=latencies.chunk,
    )


def unchunked_timing(
    group_links: GroupLinks,
    start: Any,
    latency: Any,
    wire: Quantity,
    reducing_steps: Quantity | None = None,
) -> AlgorithmTiming:
    """Return the timing of a transfer in one piece.

    Args:
        group_links: Group of ranks on its links.
        start: Latency of the start, s.
        latency: Latency of start and steps, s.
        wire: Time on the wire, s.
        reducing_steps: Number of steps that add up what arrives; None adds up nothing.

    """
    total_latency = _latency_with_reduction(group_links, latency, reducing_steps)
    return AlgorithmTiming(
        time=cost.direct_time(total_latency, wire),
        start=start,
        stepping=latency,
        latency=total_latency,
        wire=wire,
    )


def _latency_with_reduction(
    group_links: GroupLinks, latency: Any, reducing_steps: Quantity | None
) -> Any:
    if reducing_steps is None:
        return latency
    return cost.reducing_latency(latency, reducing_steps, group_links.links.latencies.reduction)


def timing_where_possible(timing: AlgorithmTiming, possible: Quantity) -> AlgorithmTiming:
    """Return a timing with infinite time for the groups that do not have the algorithm.

    Args:
        timing: Timing of the algorithm for all groups.
        possible: One for each group that has the algorithm, zero for the others.

    """
    return timing._replace(time=cost.where_offered(timing.time, possible, ABSENT_TIME))
