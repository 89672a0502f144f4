"""The algorithms of each collective on a group of chips, and the choice of the cheapest.

Which algorithms exist is structure: rings, trees and direct exchanges behind switches, in-switch
reduction where the switches add up, bucket rings on the slice of a torus. Where chips and switches
forward for each other, an exchange goes straight to its place in a single phase; hierarchical ones
cross to the paired chip first. A group inside one domain meets no outside tier: its bytes and steps
are zero there.
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
    AlgorithmTiming,
    GroupLinks,
    Ways,
    at_once,
    pipelined,
    straight_latency,
    timing_where_possible,
    wire,
)
from tco.fabric.expert_exchange import expert_ways
from tco.fabric.libraries import EXCHANGES, NotOfferedError, nothing_offered
from tco.fabric.links import Links, RankGroup, links_for, rank_group, worlds_of

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv")
# times that ranks double their way through a group
PHASES = {
    "all-reduce": 2,
    "all-gather": 1,
    "reduce-scatter": 1,
    "broadcast": 1,
}
SOME, VAST = 1e6, 1e15  # bytes
DECADES = 12.0  # of buffers from one byte on, which a bisection halves
HALVINGS = 50


def algorithms_for(group_links: GroupLinks, operation: str, size: Any) -> Ways:
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
    makers: dict[str, Callable[[GroupLinks, Any], Ways]] = {
        "all-reduce": all_reduce,
        "all-gather": partial(_one_pass, reduces=False),
        "reduce-scatter": partial(_one_pass, reduces=True),
        "all-to-all": _all_to_all_algorithms,
        "broadcast": broadcast,
        "send-recv": _send_receive,
        **{exchange_name: partial(expert_ways, exchange_name) for exchange_name in EXCHANGES},
    }
    refuse_unknown("operation", [operation], makers, "--op")
    return makers[operation](_signalled(group_links, operation), size)


def _signalled(group_links: GroupLinks, operation: str) -> GroupLinks:
    """Return a group whose collectives start with signals, where its transfers double."""
    doubling, t = group_links.links.doubling, group_links.links.latencies
    if doubling is None or operation not in PHASES:
        return group_links
    signals = cost.doublings_time(
        PHASES[operation], group_links.group.ranks, doubling.ranks, doubling.step
    )
    longer = t._replace(
        start=total("signalled_start", [t.start, signals]),
        direct_start=total("signalled_start", [t.direct_start, signals]),
    )
    return group_links._replace(links=group_links.links._replace(latencies=longer))


def with_caller_overhead(
    group_links: GroupLinks, operation: str, timing: AlgorithmTiming, size: Any
) -> AlgorithmTiming:
    """Return a timing with the time that the caller of the library adds.

    The timing is unchanged where no caller stands before the library for the operation.

    Args:
        group_links: Group of ranks on its links.
        operation: Name of a collective or of an expert exchange.
        timing: Time of an algorithm and its parts, s.
        size: Whole buffer, bytes.

    """
    library = group_links.links.library
    if library.overhead is None or operation not in library.called:
        return timing
    over = cost.caller_time(library.overhead, size, library.staged)
    return timing._replace(time=total("called", [timing.time, over]), call=over)


def timings_of_available(
    group_links: GroupLinks, operation: str, algorithms: Ways, size: Any
) -> dict[str, AlgorithmTiming]:
    """Return the timings of the algorithms that the library offers a group.

    Where an algorithm exists for a part of many groups only, its time for the rest is endless.

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
    library, timings = group_links.links.library, {}
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
    algorithms: Ways, operation: str, algorithm_name: str
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
    """Return the time of the fastest offered algorithm among consecutive ranks."""
    return fastest_algorithm_time(reach(links, rank_group(links, ranks)), operation, size)


def half_rate(links: Links, operation: str, group: RankGroup, algorithm_name: str) -> Quantity:
    """Return the buffer size at half of an algorithm's full rate, bytes.

    The full rate is the rate on a vast buffer. The size follows from the times on three buffers.

    Args:
        links: Links of the whole fabric.
        operation: Name of a collective.
        group: Ranks of the collective.
        algorithm_name: Name of the algorithm.

    Raises:
        DataError: The operation is unknown, or the fabric does not have the algorithm.

    """
    group_links = reach(links, group)
    empty, midsize_time, vast = (
        with_caller_overhead(
            group_links,
            operation,
            algorithm_named(
                algorithms_for(group_links, operation, size), operation, algorithm_name
            )(),
            size,
        ).time
        for size in (0.0, SOME, VAST)
    )
    return cost.half_rate_size(empty, cost.algorithm_bandwidth(VAST, vast), SOME, midsize_time)


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
    low, high = 0.0, DECADES
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = cheapest(links, operation, ranks, 10**middle) < 2 * cheapest(
            links, operation, ranks, 0.0
        )
        low, high = (middle, high) if below else (low, middle)
    return float(10**low)


def reach(links: Links, group: RankGroup) -> GroupLinks:
    """Return the links of a rank group, with outside rate and latencies.

    Args:
        links: Links of the whole fabric.
        group: Ranks of a collective.

    """
    t, worlds = links.latencies, worlds_of(links, group)
    group = group._replace(worlds=worlds)
    rate = cost.outside_rate(worlds, links.crossing, links.network)
    straight = step = cost.scope_latency(worlds, 1, t.crossing_step, t.network_step)
    if t.forwarded_step is not None:
        world_step = cost.scope_latency(group.per_domain, 1, t.crossing_step, t.forwarded_step)
        straight = cost.scope_latency(worlds, 1, world_step, t.network_step)
    return GroupLinks(links_for(links, group), group, rate, step, straight)


def _halvings(parts: Any) -> Any:
    return np.ceil(np.log2(parts) - 1e-9)


class Shares(NamedTuple):
    """A rank's bytes that stay in and leave its domain, where each rank owns part of the buffer."""

    passes: int  # one gathers or scatters, two reduce to all
    reduces: bool
    inner: Quantity
    outer: Any


def _bytes_per_tier(group_links: GroupLinks, size: Quantity, passes: int, reduces: bool) -> Shares:
    inner = cost.ring_bytes(size, group_links.group.ranks, passes)
    outer = cost.outer_share(size, group_links.group.domains, group_links.group.per_domain, passes)
    return Shares(passes, reduces, inner, outer)


def _ring_wire(group_links: GroupLinks, share: Shares) -> Quantity:
    return cost.wire_time(share.inner, group_links.links.inside, share.outer, group_links.rate)


def ring(group_links: GroupLinks, share: Shares, wire: Any) -> AlgorithmTiming:
    """Return the timing of a pipelined ring over both tiers."""
    t, group = group_links.links.latencies, group_links.group
    latency = cost.ring_latency(
        t.start, share.passes, group.ranks, group.domains, t.step, group_links.step
    )
    return pipelined(group_links, latency, wire, group.ranks - 1 if share.reduces else None)


def _halving(group_links: GroupLinks, share: Shares, wire: Quantity) -> AlgorithmTiming:
    """Return the timing of recursive halving and doubling."""
    t, group = group_links.links.latencies, group_links.group
    latency = cost.halving_latency(
        t.start, share.passes, group.per_domain, group.domains, t.step, group_links.step
    )
    return pipelined(
        group_links,
        latency,
        wire,
        _halvings(group.per_domain) + _halvings(group.domains) if share.reduces else None,
    )


def direct(group_links: GroupLinks, share: Shares) -> AlgorithmTiming:
    """Return the timing of direct exchanges, with a phase per pass.

    Every rank exchanges with all ranks of its domain and with its pairs in others.
    """
    t, group = group_links.links.latencies, group_links.group
    wire = cost.wire_time(share.inner, group_links.links.direct, share.outer, group_links.rate)
    latency = cost.direct_latency(
        t.direct_start, share.passes, group.ranks, group.domains, t.far_step, group_links.step
    )
    adding = (
        minimum(group.ranks - group.domains, 1) + minimum(group.domains - 1, 1)
        if share.reduces
        else None
    )
    return at_once(group_links, t.direct_start, latency, wire, adding)


def _forwarded(group_links: GroupLinks, size: Any, share: Shares) -> AlgorithmTiming:
    """Return the timing of forwarded exchanges straight to every rank, with a phase per pass.

    Chips and switches on the way forward them.
    """
    t, group = group_links.links.latencies, group_links.group
    outer = cost.outer_exchange(size, group.ranks, group.per_domain, share.passes)
    latency = straight_latency(group_links, t.direct_start, share.passes, t.far_step)
    rate = group_links.links.direct if group_links.links.torus is None else group_links.links.spread
    adding = minimum(group.ranks - 1, 1) if share.reduces else None
    return at_once(
        group_links, t.direct_start, latency, wire(group_links, share.inner, outer, rate), adding
    )


def bucket(group_links: GroupLinks, size: Any, share: Shares) -> AlgorithmTiming:
    """Return the timing of bucket rings, by dimension of a torus and then over several tori."""
    before, phases = 1, []
    for ring_size, link, closed in group_links.links.rings:
        phases.append(cost.bucket_time(size, ring_size, before, share.passes, link, closed))
        before = before * ring_size
    phases.append(cost.wire_time(0.0, group_links.links.inside, share.outer, group_links.rate))
    return pipelined(
        group_links,
        _bucket_latency(group_links, share.passes),
        total("bucket_wire", phases),
        _adding_steps(group_links) if share.reduces else None,
    )


def _bucket_all(group_links: GroupLinks, share: Shares) -> AlgorithmTiming:
    """Return the timing of bucket rings in rotated orders, with all dimensions busy at once."""
    return pipelined(
        group_links,
        _bucket_latency(group_links, share.passes),
        _ring_wire(group_links, share),
        _adding_steps(group_links) if share.reduces else None,
    )


def _bucket_latency(group_links: GroupLinks, passes: int) -> Any:
    t = group_links.links.latencies
    inside = cost.torus_latency(t.start, passes, group_links.links.steps, t.near_step)
    return cost.ring_latency(
        inside,
        passes,
        group_links.group.domains,
        group_links.group.domains,
        t.near_step,
        group_links.step,
    )


def _adding_steps(group_links: GroupLinks) -> Any:
    return group_links.links.steps + group_links.group.domains - 1


def tree(group_links: GroupLinks, share: Shares, wire: Quantity) -> AlgorithmTiming:
    """Return the timing of a tree up and down: chains inside boards, binary above them."""
    t, group, board = group_links.links.latencies, group_links.group, group_links.links.board
    latency = cost.tree_latency(
        t.start, share.passes, group.per_domain, board, group.domains, t.step, group_links.step
    )
    return pipelined(
        group_links, latency, wire, cost.tree_depth(group.per_domain, board, group.domains)
    )


def _one_pass(group_links: GroupLinks, size: Quantity, reduces: bool) -> Ways:
    """All-gather and reduce-scatter."""
    share = _bytes_per_tier(group_links, size, 1, reduces)
    if group_links.links.rings:
        return {
            "bucket": lambda: bucket(group_links, size, share),
            "bucket, all dimensions": lambda: _bucket_all(group_links, share),
            "direct": lambda: _forwarded(group_links, size, share),
        }
    algorithms = {
        "ring": lambda: ring(group_links, share, _ring_wire(group_links, share)),
        "recursive doubling": lambda: _halving(group_links, share, _ring_wire(group_links, share)),
        "direct": lambda: direct(group_links, share),
    }
    if group_links.links.latencies.forwarded_step is not None:
        algorithms["direct, forwarded"] = lambda: _forwarded(group_links, size, share)
    return algorithms


def all_reduce(group_links: GroupLinks, size: Quantity) -> Ways:
    """All-reduce."""
    share = _bytes_per_tier(group_links, size, 2, True)
    if group_links.links.rings:
        return {
            "bucket": lambda: bucket(group_links, size, share),
            "bucket, all dimensions": lambda: _bucket_all(group_links, share),
            "one-shot": lambda: _one_shot(group_links, size),
            "two-shot": lambda: _forwarded(group_links, size, share),
        }
    wire = _ring_wire(group_links, share)
    algorithms = {
        "ring": lambda: ring(group_links, share, wire),
        "tree": lambda: tree(group_links, share, wire),
        "halving-doubling": lambda: _halving(group_links, share, wire),
        "one-shot": lambda: _one_shot(group_links, size),
        "two-shot": lambda: direct(group_links, share),
    }
    if group_links.links.latencies.forwarded_step is not None:
        algorithms["two-shot, forwarded"] = lambda: _forwarded(group_links, size, share)
    if somewhere(group_links.links.reduces):
        algorithms["in-network"] = lambda: _in_network(group_links, size)
    return algorithms


def _one_shot(group_links: GroupLinks, size: Quantity) -> AlgorithmTiming:
    """Return the timing of every rank reading the whole buffer of every other."""
    t = group_links.links.latencies
    everything = cost.one_shot_bytes(size, group_links.group.ranks)
    across = cost.one_shot_crossing(size, group_links.group.ranks, group_links.group.per_domain)
    latency = straight_latency(group_links, t.direct_start, 1, t.far_step)
    wire = cost.wire_time(
        everything,
        group_links.links.direct if group_links.links.torus is None else group_links.links.spread,
        across,
        group_links.rate,
    )
    return at_once(
        group_links, t.direct_start, latency, wire, minimum(group_links.group.ranks - 1, 1)
    )


def _in_network(group_links: GroupLinks, size: Quantity) -> AlgorithmTiming:
    """Return the timing of a reduction in the switches."""
    t = group_links.links.latencies
    inner = cost.in_network_bytes(size, group_links.group.per_domain)
    outer = cost.outer_share(size, group_links.group.domains, group_links.group.per_domain, 2)
    wire = cost.wire_time(inner, group_links.links.direct, outer, group_links.rate)
    timing = pipelined(
        group_links,
        cost.in_network_latency_of(
            t.start, t.in_network, group_links.group.domains, group_links.step
        ),
        wire,
    )
    return (
        timing
        if everywhere(group_links.links.reduces)
        else timing_where_possible(timing, group_links.links.reduces)
    )


def _all_to_all_algorithms(group_links: GroupLinks, size: Quantity) -> Ways:
    t = group_links.links.latencies
    inner = cost.inner_exchange(size, group_links.group.ranks, group_links.group.per_domain)
    outer = cost.outer_exchange(size, group_links.group.ranks, group_links.group.per_domain)
    latency = cost.exchange_latency(
        t.start, group_links.group.ranks, group_links.group.domains, t.step, group_links.straight
    )
    return {
        "pairwise": lambda: pipelined(
            group_links, latency, wire(group_links, inner, outer, group_links.links.pairwise)
        )
    }


def broadcast(group_links: GroupLinks, size: Quantity) -> Ways:
    """Return the broadcast algorithms: the buffer passes every rank once, by ring or tree."""
    t, group = group_links.links.latencies, group_links.group

    def wire() -> Quantity:
        return cost.wire_time(
            size,
            group_links.links.inside,
            cost.broadcast_crossing(size, group.domains, group.per_domain),
            group_links.rate,
        )

    return {
        "ring": lambda: pipelined(
            group_links,
            cost.ring_latency(t.start, 1, group.ranks, group.domains, t.step, group_links.step),
            wire(),
        ),
        "tree": lambda: pipelined(
            group_links,
            cost.halving_latency(
                t.start, 1, group.per_domain, group.domains, t.step, group_links.step
            ),
            wire(),
        ),
    }


def _send_receive(group_links: GroupLinks, size: Quantity) -> Ways:
    """Point to point, within a domain or to the next one."""
    t = group_links.links.latencies

    def straight() -> AlgorithmTiming:
        latency = straight_latency(group_links, t.start, 1, t.step)
        across = cost.crossing_bytes(size, group_links.group.domains)
        staying = cost.staying_bytes(size, group_links.group.domains)
        return at_once(
            group_links,
            t.start,
            latency,
            wire(group_links, staying, across, group_links.links.inside),
        )

    return {"direct": straight}
