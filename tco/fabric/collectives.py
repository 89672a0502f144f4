"""The algorithms of each collective on a group of chips, and the choice of the cheapest.

The fabric decides which algorithms exist: rings, trees and direct exchanges behind switches,
reduction in switches that can add up, and bucket rings on the slice of a torus. Where chips and
switches forward transfers, an exchange reaches any rank in one phase. Otherwise an exchange crosses
to the paired chip of the other domain first. A group inside one domain has no outside bytes or
steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.core.errors import refuse_unknown, unknown
from tco.core.formula import everywhere, least, minimum, somewhere, total
from tco.core.trace import scope
from tco.core.types import Quantity
from tco.fabric import collective_costs as cost
from tco.fabric.collective_times import (
    AlgorithmTimers,
    AlgorithmTiming,
    GroupLinks,
    pipelined_timing,
    straight_latency,
    timing_where_possible,
    two_tier_wire_time,
    unchunked_timing,
)
from tco.fabric.expert_exchange import expert_exchange_algorithms
from tco.fabric.libraries import EXCHANGES, NotOfferedError, nothing_offered
from tco.fabric.links import Links, RankGroup, links_for, rank_group, worlds_of

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv")
# Phases of each collective in which the number of reached ranks doubles step by step.
PHASES = {
    "all-reduce": 2,
    "all-gather": 1,
    "reduce-scatter": 1,
    "broadcast": 1,
}
MEDIUM_SIZE = 1e6  # bytes
VAST = 1e15  # bytes, a size at which wire time dominates
LARGEST_LOG10_SIZE = 12.0  # upper end of the bisection for a buffer size, log10 of bytes
BISECTION_STEPS = 50


def algorithms_for(group_links: GroupLinks, operation: str, size: Any) -> AlgorithmTimers:
    """Return the algorithms that the fabric allows for an operation.

    Args:
        group_links: Group of ranks on its links.
        operation: Name of a collective or of an expert exchange.
        size: Whole buffer, bytes; in expert exchanges the `Tokens` of a rank.

    Returns:
        Functions that time an algorithm, by its name.

    Raises:
        DataError: The operation is unknown.

    """
    makers: dict[str, Callable[[GroupLinks, Any], AlgorithmTimers]] = {
        "all-reduce": all_reduce,
        "all-gather": partial(_one_pass, reduces=False),
        "reduce-scatter": partial(_one_pass, reduces=True),
        "all-to-all": _all_to_all_algorithms,
        "broadcast": broadcast,
        "send-recv": _send_receive,
        **{
            exchange_name: partial(expert_exchange_algorithms, exchange_name)
            for exchange_name in EXCHANGES
        },
    }
    refuse_unknown("operation", [operation], makers, "--op")
    return makers[operation](_signalled_group(group_links, operation), size)


def _signalled_group(group_links: GroupLinks, operation: str) -> GroupLinks:
    """Return a group whose collectives start later where transfers must signal each other."""
    doubling = group_links.links.doubling
    latencies = group_links.links.latencies
    if doubling is None or operation not in PHASES:
        return group_links
    signals = cost.doublings_time(
        PHASES[operation], group_links.group.ranks, doubling.ranks, doubling.step
    )
    signalled_latencies = latencies._replace(
        start=total("signalled_start", [latencies.start, signals]),
        direct_start=total("signalled_start", [latencies.direct_start, signals]),
    )
    return group_links._replace(links=group_links.links._replace(latencies=signalled_latencies))


def with_caller_overhead(
    group_links: GroupLinks, operation: str, timing: AlgorithmTiming, size: Any
) -> AlgorithmTiming:
    """Return a timing with the time that the caller of the library adds.

    The timing is unchanged where no caller adds time to the operation.

    Args:
        group_links: Group of ranks on its links.
        operation: Name of a collective or of an expert exchange.
        timing: Time of an algorithm and its parts, s.
        size: Whole buffer, bytes.

    """
    library = group_links.links.library
    if library.overhead is None or operation not in library.called:
        return timing
    call_time = cost.caller_time(library.overhead, size, library.staged)
    return timing._replace(time=total("called", [timing.time, call_time]), call=call_time)


def timings_of_available(
    group_links: GroupLinks, operation: str, algorithms: AlgorithmTimers, size: Any
) -> dict[str, AlgorithmTiming]:
    """Return the timings of the algorithms that the library offers a group.

    For arrays of groups the time is infinite for each group that does not have the algorithm.

    Args:
        group_links: Group of ranks on its links.
        operation: Name of a collective or of an expert exchange.
        algorithms: Algorithms that the fabric allows, by name.
        size: Whole buffer, bytes; in expert exchanges the `Tokens` of a rank.

    Returns:
        Timings in s, by name of the algorithm.

    Raises:
        DataError: The library offers no algorithm of the operation.

    """
    library = group_links.links.library
    timings = {}
    spans_domains = group_links.group.domains > 1
    for algorithm_name, algorithm in algorithms.items():
        if not library.offered(operation, algorithm_name):
            continue
        with scope(algorithm_name):
            if library.anywhere(operation, algorithm_name) or not somewhere(spans_domains):
                timings[algorithm_name] = with_caller_overhead(
                    group_links, operation, algorithm(), size
                )
            elif not everywhere(spans_domains):
                timings[algorithm_name] = with_caller_overhead(
                    group_links,
                    operation,
                    timing_where_possible(algorithm(), 1.0 - spans_domains),
                    size,
                )
    if not timings:
        raise nothing_offered(library, operation, algorithms)
    return timings


def fastest_algorithm_time(
    group_links: GroupLinks, operation: str, size: Any, algorithm_name: str | None = None
) -> Quantity:
    """Return the time of the quickest algorithm that the library offers, s.

    Args:
        group_links: Group of ranks on its links.
        operation: Name of a collective or of an expert exchange.
        size: Whole buffer as nccl-tests counts bytes; in expert exchanges the `Tokens` of a rank.
        algorithm_name: Algorithm to take; None takes the quickest.

    Raises:
        DataError: The operation is unknown, or the fabric or the library has no such algorithm.

    """
    with scope(operation):
        algorithms = algorithms_for(group_links, operation, size)
        if algorithm_name is not None:
            algorithms = {algorithm_name: algorithm_named(algorithms, operation, algorithm_name)}
        return least(
            "quickest",
            [
                timing.time
                for timing in timings_of_available(
                    group_links, operation, algorithms, size
                ).values()
            ],
        )


def algorithm_named(
    algorithms: AlgorithmTimers, operation: str, algorithm_name: str
) -> Callable[[], AlgorithmTiming]:
    """Return the algorithm `algorithm_name` of an operation.

    Args:
        algorithms: Algorithms that the fabric allows, by name.
        operation: Name of the operation, for the message of an error.
        algorithm_name: Name of the algorithm.

    Returns:
        Function that times the algorithm.

    Raises:
        DataError: The fabric does not have the algorithm.

    """
    if algorithm_name not in algorithms:
        raise NotOfferedError(
            str(unknown("algorithm", algorithm_name, algorithms, f"{operation} on this fabric"))
        )
    return algorithms[algorithm_name]


def cheapest(links: Links, operation: str, ranks: Any, size: Any) -> Quantity:
    """Return the time of the fastest offered algorithm for consecutive ranks, s."""
    return fastest_algorithm_time(reach(links, rank_group(links, ranks)), operation, size)


def half_rate(links: Links, operation: str, group: RankGroup, algorithm_name: str) -> Quantity:
    """Return the buffer size at half of an algorithm's full rate, bytes.

    The full rate is the rate for a buffer of `VAST` bytes. The size follows from the times for an
    empty, a medium and a vast buffer.

    Args:
        links: Links of the whole fabric.
        operation: Name of a collective.
        group: Ranks of the collective.
        algorithm_name: Name of the algorithm.

    Raises:
        DataError: The operation is unknown, or the fabric does not have the algorithm.

    """
    group_links = reach(links, group)
    empty_time, medium_time, vast_time = (
        with_caller_overhead(
            group_links,
            operation,
            algorithm_named(
                algorithms_for(group_links, operation, size), operation, algorithm_name
            )(),
            size,
        ).time
        for size in (0.0, MEDIUM_SIZE, VAST)
    )
    full_rate = cost.algorithm_bandwidth(VAST, vast_time)
    return cost.half_rate_size(empty_time, full_rate, MEDIUM_SIZE, medium_time)


def doubling_size(links: Links, operation: str, ranks: Quantity) -> float:
    """Return the buffer size that doubles the time of an empty collective, bytes.

    Beyond this size most of the time grows with the buffer.

    Args:
        links: Links of the whole fabric.
        operation: Name of a collective.
        ranks: Number of consecutive ranks.

    Returns:
        Size from 1 to 1e12 bytes.

    Raises:
        DataError: The operation is unknown, or the library offers no algorithm.

    """
    low = 0.0  # log10 of bytes
    high = LARGEST_LOG10_SIZE
    empty_time = cheapest(links, operation, ranks, 0.0)
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if cheapest(links, operation, ranks, 10**middle) < 2 * empty_time:
            low = middle
        else:
            high = middle
    return float(10**low)


def reach(links: Links, group: RankGroup) -> GroupLinks:
    """Return the links of a rank group, with the rate and latencies between its domains.

    Args:
        links: Links of the whole fabric.
        group: Ranks of a collective.

    """
    latencies = links.latencies
    worlds = worlds_of(links, group)
    group = group._replace(worlds=worlds)
    rate = cost.outside_rate(worlds, links.crossing, links.network)
    step = cost.scope_latency(worlds, 1, latencies.crossing_step, latencies.network_step)
    straight_step = step
    if latencies.forwarded_step is not None:
        world_step = cost.scope_latency(
            group.per_domain, 1, latencies.crossing_step, latencies.forwarded_step
        )
        straight_step = cost.scope_latency(worlds, 1, world_step, latencies.network_step)
    return GroupLinks(
        links=links_for(links, group),
        group=group,
        rate=rate,
        step=step,
        straight_step=straight_step,
    )


def _doubling_steps(parts: Any) -> Any:
    return np.ceil(np.log2(parts) - 1e-9)


class TierBytes(NamedTuple):
    """Bytes of a rank that stay in its domain and that leave it, with the passes that send them."""

    passes: int  # one gathers or scatters, two reduce to all
    reduces: bool  # whether the steps add up what arrives
    inner: Quantity
    outer: Any


def _bytes_per_tier(
    group_links: GroupLinks, size: Quantity, passes: int, reduces: bool
) -> TierBytes:
    inner = cost.ring_bytes(size, group_links.group.ranks, passes)
    outer = cost.outer_share(size, group_links.group.domains, group_links.group.per_domain, passes)
    return TierBytes(passes, reduces, inner, outer)


def _ring_wire(group_links: GroupLinks, tier_bytes: TierBytes) -> Quantity:
    return cost.wire_time(
        tier_bytes.inner, group_links.links.inside, tier_bytes.outer, group_links.rate
    )


def ring(group_links: GroupLinks, tier_bytes: TierBytes, wire: Any) -> AlgorithmTiming:
    """Return the timing of a pipelined ring over both tiers."""
    latencies = group_links.links.latencies
    group = group_links.group
    latency = cost.ring_latency(
        latencies.start,
        tier_bytes.passes,
        group.ranks,
        group.domains,
        latencies.step,
        group_links.step,
    )
    return pipelined_timing(
        group_links, latency, wire, group.ranks - 1 if tier_bytes.reduces else None
    )


def _halving(group_links: GroupLinks, tier_bytes: TierBytes, wire: Quantity) -> AlgorithmTiming:
    """Return the timing of recursive halving and doubling."""
    latencies = group_links.links.latencies
    group = group_links.group
    latency = cost.halving_latency(
        latencies.start,
        tier_bytes.passes,
        group.per_domain,
        group.domains,
        latencies.step,
        group_links.step,
    )
    return pipelined_timing(
        group_links,
        latency,
        wire,
        _doubling_steps(group.per_domain) + _doubling_steps(group.domains)
        if tier_bytes.reduces
        else None,
    )


def direct(group_links: GroupLinks, tier_bytes: TierBytes) -> AlgorithmTiming:
    """Return the timing of direct exchanges, with a phase per pass.

    Every rank exchanges with all ranks of its domain and with the paired ranks of other domains.
    """
    latencies = group_links.links.latencies
    group = group_links.group
    wire = cost.wire_time(
        tier_bytes.inner, group_links.links.direct, tier_bytes.outer, group_links.rate
    )
    latency = cost.direct_latency(
        latencies.direct_start,
        tier_bytes.passes,
        group.ranks,
        group.domains,
        latencies.far_step,
        group_links.step,
    )
    reducing_steps = (
        minimum(group.ranks - group.domains, 1) + minimum(group.domains - 1, 1)
        if tier_bytes.reduces
        else None
    )
    return unchunked_timing(group_links, latencies.direct_start, latency, wire, reducing_steps)


def _forwarded_timing(group_links: GroupLinks, size: Any, tier_bytes: TierBytes) -> AlgorithmTiming:
    """Return the timing of exchanges straight to every rank, with a phase per pass.

    Chips and switches forward the transfers.
    """
    latencies = group_links.links.latencies
    group = group_links.group
    outer = cost.outer_exchange(size, group.ranks, group.per_domain, tier_bytes.passes)
    latency = straight_latency(
        group_links, latencies.direct_start, tier_bytes.passes, latencies.far_step
    )
    rate = group_links.links.direct if group_links.links.torus is None else group_links.links.spread
    reducing_steps = minimum(group.ranks - 1, 1) if tier_bytes.reduces else None
    wire = two_tier_wire_time(group_links, tier_bytes.inner, outer, rate)
    return unchunked_timing(group_links, latencies.direct_start, latency, wire, reducing_steps)


def bucket(group_links: GroupLinks, size: Any, tier_bytes: TierBytes) -> AlgorithmTiming:
    """Return the timing of bucket rings over the dimensions of a torus, then over several tori."""
    ranks_before = 1  # ranks of the dimensions whose rings have already run
    wire_times = []
    for ring_size, link, closed in group_links.links.rings:
        wire_times.append(
            cost.bucket_time(size, ring_size, ranks_before, tier_bytes.passes, link, closed)
        )
        ranks_before = ranks_before * ring_size
    wire_times.append(
        cost.wire_time(0.0, group_links.links.inside, tier_bytes.outer, group_links.rate)
    )
    return pipelined_timing(
        group_links,
        _bucket_latency(group_links, tier_bytes.passes),
        total("bucket_wire", wire_times),
        _bucket_reducing_steps(group_links) if tier_bytes.reduces else None,
    )


def _rotated_buckets(group_links: GroupLinks, tier_bytes: TierBytes) -> AlgorithmTiming:
    """Return the timing of bucket rings in rotated orders, with all dimensions busy at once."""
    return pipelined_timing(
        group_links,
        _bucket_latency(group_links, tier_bytes.passes),
        _ring_wire(group_links, tier_bytes),
        _bucket_reducing_steps(group_links) if tier_bytes.reduces else None,
    )


def _bucket_latency(group_links: GroupLinks, passes: int) -> Any:
    latencies = group_links.links.latencies
    torus_latency = cost.torus_latency(
        latencies.start, passes, group_links.links.steps, latencies.near_step
    )
    return cost.ring_latency(
        torus_latency,
        passes,
        group_links.group.domains,
        group_links.group.domains,
        latencies.near_step,
        group_links.step,
    )


def _bucket_reducing_steps(group_links: GroupLinks) -> Any:
    return group_links.links.steps + group_links.group.domains - 1


def tree(group_links: GroupLinks, tier_bytes: TierBytes, wire: Quantity) -> AlgorithmTiming:
    """Return the timing of a tree up and down, a chain inside each board and binary above."""
    latencies = group_links.links.latencies
    group = group_links.group
    board = group_links.links.board
    latency = cost.tree_latency(
        latencies.start,
        tier_bytes.passes,
        group.per_domain,
        board,
        group.domains,
        latencies.step,
        group_links.step,
    )
    return pipelined_timing(
        group_links, latency, wire, cost.tree_depth(group.per_domain, board, group.domains)
    )


def _one_pass(group_links: GroupLinks, size: Quantity, reduces: bool) -> AlgorithmTimers:
    """Return the algorithms of all-gather, or of reduce-scatter where the steps add up."""
    tier_bytes = _bytes_per_tier(group_links, size, 1, reduces)
    if group_links.links.rings:
        return {
            "bucket": lambda: bucket(group_links, size, tier_bytes),
            "bucket, all dimensions": lambda: _rotated_buckets(group_links, tier_bytes),
            "direct": lambda: _forwarded_timing(group_links, size, tier_bytes),
        }
    algorithms = {
        "ring": lambda: ring(group_links, tier_bytes, _ring_wire(group_links, tier_bytes)),
        "recursive doubling": lambda: _halving(
            group_links, tier_bytes, _ring_wire(group_links, tier_bytes)
        ),
        "direct": lambda: direct(group_links, tier_bytes),
    }
    if group_links.links.latencies.forwarded_step is not None:
        algorithms["direct, forwarded"] = lambda: _forwarded_timing(group_links, size, tier_bytes)
    return algorithms


def all_reduce(group_links: GroupLinks, size: Quantity) -> AlgorithmTimers:
    """Return the algorithms of all-reduce."""
    tier_bytes = _bytes_per_tier(group_links, size, 2, True)
    if group_links.links.rings:
        return {
            "bucket": lambda: bucket(group_links, size, tier_bytes),
            "bucket, all dimensions": lambda: _rotated_buckets(group_links, tier_bytes),
            "one-shot": lambda: _one_shot(group_links, size),
            "two-shot": lambda: _forwarded_timing(group_links, size, tier_bytes),
        }
    wire = _ring_wire(group_links, tier_bytes)
    algorithms = {
        "ring": lambda: ring(group_links, tier_bytes, wire),
        "tree": lambda: tree(group_links, tier_bytes, wire),
        "halving-doubling": lambda: _halving(group_links, tier_bytes, wire),
        "one-shot": lambda: _one_shot(group_links, size),
        "two-shot": lambda: direct(group_links, tier_bytes),
    }
    if group_links.links.latencies.forwarded_step is not None:
        algorithms["two-shot, forwarded"] = lambda: _forwarded_timing(group_links, size, tier_bytes)
    if somewhere(group_links.links.reduces):
        algorithms["in-network"] = lambda: _in_network(group_links, size)
    return algorithms


def _one_shot(group_links: GroupLinks, size: Quantity) -> AlgorithmTiming:
    """Return the timing of an exchange in which every rank reads every other rank's buffer."""
    latencies = group_links.links.latencies
    all_bytes = cost.one_shot_bytes(size, group_links.group.ranks)
    crossing_bytes = cost.one_shot_crossing(
        size, group_links.group.ranks, group_links.group.per_domain
    )
    latency = straight_latency(group_links, latencies.direct_start, 1, latencies.far_step)
    wire = cost.wire_time(
        all_bytes,
        group_links.links.direct if group_links.links.torus is None else group_links.links.spread,
        crossing_bytes,
        group_links.rate,
    )
    return unchunked_timing(
        group_links, latencies.direct_start, latency, wire, minimum(group_links.group.ranks - 1, 1)
    )


def _in_network(group_links: GroupLinks, size: Quantity) -> AlgorithmTiming:
    """Return the timing of a reduction in the switches."""
    latencies = group_links.links.latencies
    inner = cost.in_network_bytes(size, group_links.group.per_domain)
    outer = cost.outer_share(size, group_links.group.domains, group_links.group.per_domain, 2)
    wire = cost.wire_time(inner, group_links.links.direct, outer, group_links.rate)
    timing = pipelined_timing(
        group_links,
        cost.in_network_latency_of(
            latencies.start, latencies.in_network, group_links.group.domains, group_links.step
        ),
        wire,
    )
    if everywhere(group_links.links.reduces):
        return timing
    return timing_where_possible(timing, group_links.links.reduces)


def _all_to_all_algorithms(group_links: GroupLinks, size: Quantity) -> AlgorithmTimers:
    latencies = group_links.links.latencies
    inner = cost.inner_exchange(size, group_links.group.ranks, group_links.group.per_domain)
    outer = cost.outer_exchange(size, group_links.group.ranks, group_links.group.per_domain)
    latency = cost.exchange_latency(
        latencies.start,
        group_links.group.ranks,
        group_links.group.domains,
        latencies.step,
        group_links.straight_step,
    )
    return {
        "pairwise": lambda: pipelined_timing(
            group_links,
            latency,
            two_tier_wire_time(group_links, inner, outer, group_links.links.pairwise),
        )
    }


def broadcast(group_links: GroupLinks, size: Quantity) -> AlgorithmTimers:
    """Return the broadcast algorithms: a ring or a tree brings the buffer to every rank once."""
    latencies = group_links.links.latencies
    group = group_links.group

    def wire() -> Quantity:
        return cost.wire_time(
            size,
            group_links.links.inside,
            cost.broadcast_crossing(size, group.domains, group.per_domain),
            group_links.rate,
        )

    return {
        "ring": lambda: pipelined_timing(
            group_links,
            cost.ring_latency(
                latencies.start, 1, group.ranks, group.domains, latencies.step, group_links.step
            ),
            wire(),
        ),
        "tree": lambda: pipelined_timing(
            group_links,
            cost.halving_latency(
                latencies.start,
                1,
                group.per_domain,
                group.domains,
                latencies.step,
                group_links.step,
            ),
            wire(),
        ),
    }


def _send_receive(group_links: GroupLinks, size: Quantity) -> AlgorithmTimers:
    """Return the algorithm that sends a buffer from one rank to another."""
    latencies = group_links.links.latencies

    def direct_timing() -> AlgorithmTiming:
        latency = straight_latency(group_links, latencies.start, 1, latencies.step)
        outer = cost.crossing_bytes(size, group_links.group.domains)
        inner = cost.staying_bytes(size, group_links.group.domains)
        return unchunked_timing(
            group_links,
            latencies.start,
            latency,
            two_tier_wire_time(group_links, inner, outer, group_links.links.inside),
        )

    return {"direct": direct_timing}
