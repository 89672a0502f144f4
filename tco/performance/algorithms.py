"""The algorithms of each collective on a group of chips, and the choice of the cheapest.

Which algorithms exist is structure: rings, trees and direct exchanges behind switches, in-switch reduction where the switches add
up, bucket rings on the slice of a torus. Where chips and switches forward for each other, an exchange goes straight to its place in
a single phase; hierarchical ones cross to the paired chip first. A group inside one domain meets no outside tier: its bytes and
steps are zero there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.errors import unknown
from tco.formula import least, total
from tco.performance import collectives as cost
from tco.performance.links import Group, Links, group_of, links_for

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv")
SOME, VAST = 1e6, 1e15  # bytes


class Timing(NamedTuple):
    """Time of an algorithm and what it consists of."""

    time: Any
    start: Any  # with the trips to memory at both ends
    stepping: Any  # start and steps
    latency: Any  # start, steps and what steps that add up take longer
    wire: Any


def timings(links: Links, operation: str, ranks: Any, size: Any) -> dict[str, Timing]:
    """Return the timing of every algorithm for consecutive ranks."""
    return timings_on(links, operation, group_of(links, ranks), size)


def timings_on(links: Links, operation: str, group: Group, size: Any) -> dict[str, Timing]:
    """Return the timing of every algorithm that the fabric allows for a group wherever its ranks stand; an unknown operation raises `DataError`."""
    makers: dict[str, Callable[[Links, Group, Any], dict[str, Timing]]] = {
        "all-reduce": all_reduce,
        "all-gather": partial(one_pass, reduces=False),
        "reduce-scatter": partial(one_pass, reduces=True),
        "all-to-all": exchange,
        "broadcast": broadcast,
        "send-recv": send_receive,
    }
    if operation not in makers:
        raise unknown("operation", operation, makers, "--op")
    return makers[operation](links_for(links, group), group, size)


def candidates(links: Links, operation: str, ranks: Any, size: Any) -> dict[str, Any]:
    """Return the time of every algorithm for consecutive ranks."""
    return {name: timing.time for name, timing in timings(links, operation, ranks, size).items()}


def cheapest(links: Links, operation: str, ranks: Any, size: Any) -> Any:
    """Return the time of the cheapest algorithm for consecutive ranks."""
    return cheapest_on(links, operation, group_of(links, ranks), size)


def cheapest_on(links: Links, operation: str, group: Group, size: Any) -> Any:
    """Return the time of the cheapest algorithm for a group wherever its ranks stand."""
    return least(operation, [timing.time for timing in timings_on(links, operation, group, size).values()])


def half_rate(links: Links, operation: str, ranks: Any, name: str) -> Any:
    """Return the buffer with which an algorithm reaches half of the rate it has on a vast one, from its time on three sizes."""
    empty, some, vast = (candidates(links, operation, ranks, size)[name] for size in (0.0, SOME, VAST))
    return cost.half_rate_size(empty, cost.algorithm_bandwidth(VAST, vast), SOME, some)


def outer_rate(links: Links, group: Group) -> Any:
    """Return the rate between domains: the lanes of the world, or the network beyond it."""
    return cost.outside_rate(group.ranks, links.world, links.crossing, links.network)


def outer_step(links: Links, group: Group) -> Any:
    """Return the latency of a step between domains, to the paired place."""
    return cost.outside_step(group.ranks, links.world, links.latencies.crossing_step, links.latencies.network_step)


def straight_step(links: Links, group: Group) -> Any:
    """Return the latency of a step to any place of another domain: forwarded on the way inside the world, else as between pairs."""
    t = links.latencies
    if t.forwarded_step is None:
        return outer_step(links, group)
    return cost.outside_step(group.ranks, links.world, cost.reaching_step(group.per_domain, t.crossing_step, t.forwarded_step), t.network_step)


def straight_latency(links: Links, group: Group, start: Any, phases: int, step: Any) -> Any:
    """Return the latency of exchanges straight to every place: one step a phase inside the world, beyond it one inside and one across."""
    t = links.latencies
    across = cost.direct_latency(start, phases, group.ranks, group.domains, step, outer_step(links, group))
    if t.forwarded_step is None:
        return across
    within = cost.forwarded_latency(start, phases, group.ranks, group.domains, step, straight_step(links, group))
    return cost.outside_step(group.ranks, links.world, within, across)


def wire(links: Links, group: Group, inner: Any, outer: Any, inner_rate: Any) -> Any:
    """Return the time on the wire of bytes that stay and bytes that leave the domain, which may pass the same ports."""
    if not links.shared:
        return cost.wire_time(inner, inner_rate, outer, outer_rate(links, group))
    within = np.minimum(np.asarray(group.ranks) <= links.world, 1.0)  # beyond its world a chip has ports of its own
    return cost.shared_wire_time(inner, inner_rate, outer, outer_rate(links, group), within)


def pipelined(links: Links, latency: Any, wire: Any, reducing: Any = None) -> Timing:
    """Return the timing of a transfer in chunks, of whose steps some add up."""
    t = links.latencies
    whole = latency if reducing is None else cost.reducing_latency(latency, reducing, t.reduction)
    return Timing(cost.pipelined_time(whole, wire, t.chunk), t.start, latency, whole, wire)


def at_once(links: Links, start: Any, latency: Any, wire: Any, reducing: Any = None) -> Timing:
    """Return the timing of a transfer in one piece, of whose steps some add up."""
    whole = latency if reducing is None else cost.reducing_latency(latency, reducing, links.latencies.reduction)
    return Timing(cost.direct_time(whole, wire), start, latency, whole, wire)


def halvings(parts: Any) -> Any:
    """Return the steps of halving some parts down to one."""
    return np.ceil(np.log2(parts) - 1e-9)


def ring(links: Links, group: Group, size: Any, passes: int, reduces: bool) -> Timing:
    """Return the timing of a pipelined ring over both tiers."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.inside, outer, outer_rate(links, group))
    latency = cost.ring_latency(t.start, passes, group.ranks, group.domains, t.step, outer_step(links, group))
    return pipelined(links, latency, wire, group.ranks - 1 if reduces else None)


def direct(links: Links, group: Group, size: Any, passes: int, reduces: bool) -> Timing:
    """Return the timing of direct exchanges, a phase for each pass, every rank talking to all of its domain and to its pairs in others."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.direct, outer, outer_rate(links, group))
    latency = cost.direct_latency(t.direct_start, passes, group.ranks, group.domains, t.far_step, outer_step(links, group))
    adding = np.minimum(group.ranks - group.domains, 1) + np.minimum(group.domains - 1, 1) if reduces else None
    return at_once(links, t.direct_start, latency, wire, adding)


def forwarded(links: Links, group: Group, size: Any, passes: int, reduces: bool) -> Timing:
    """Return the timing of exchanges straight to every place, a phase for each pass, forwarded by the chips and switches on the way."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_exchange(size, group.ranks, group.per_domain, passes)
    latency = straight_latency(links, group, t.direct_start, passes, t.far_step)
    rate = links.direct if links.torus is None else links.spread
    return at_once(links, t.direct_start, latency, wire(links, group, inner, outer, rate), np.minimum(group.ranks - 1, 1) if reduces else None)


def halving(links: Links, group: Group, size: Any, passes: int, reduces: bool) -> Timing:
    """Return the timing of recursive halving and doubling."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.inside, outer, outer_rate(links, group))
    latency = cost.halving_latency(t.start, passes, group.per_domain, group.domains, t.step, outer_step(links, group))
    return pipelined(links, latency, wire, halvings(group.per_domain) + halvings(group.domains) if reduces else None)


def bucket(links: Links, group: Group, size: Any, passes: int, reduces: bool) -> Timing:
    """Return the timing of bucket rings over the dimensions of a torus, one after the other, and at last over several tori."""
    before, phases = 1, []
    for ring_size, link, closed in links.rings:
        phases.append(cost.bucket_time(size, ring_size, before, passes, link, closed))
        before = before * ring_size
    outer = cost.outer_share(size, group.domains, group.per_domain, passes)
    phases.append(cost.wire_time(0.0, links.inside, outer, outer_rate(links, group)))
    return pipelined(links, bucket_latency(links, group, passes), total("bucket_wire", phases), adding_steps(links, group) if reduces else None)


def bucket_all(links: Links, group: Group, size: Any, passes: int, reduces: bool) -> Timing:
    """Return the timing of bucket rings with the data split over rotated orders, all dimensions busy at once."""
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.inside, outer, outer_rate(links, group))
    return pipelined(links, bucket_latency(links, group, passes), wire, adding_steps(links, group) if reduces else None)


def bucket_latency(links: Links, group: Group, passes: int) -> Any:
    """Return the latency of bucket rings: steps to neighbours over all dimensions, and over the network between tori."""
    t = links.latencies
    inside = cost.torus_latency(t.start, passes, links.steps, t.near_step)
    return cost.ring_latency(inside, passes, group.domains, group.domains, t.near_step, outer_step(links, group))


def adding_steps(links: Links, group: Group) -> Any:
    """Return the steps of bucket rings that add up."""
    return links.steps + group.domains - 1


def one_pass(links: Links, group: Group, size: Any, reduces: bool) -> dict[str, Timing]:
    """All-gather and reduce-scatter."""
    if links.rings:
        return {
            "bucket": bucket(links, group, size, 1, reduces),
            "bucket, all dimensions": bucket_all(links, group, size, 1, reduces),
            "direct": forwarded(links, group, size, 1, reduces),
        }
    found = {
        "ring": ring(links, group, size, 1, reduces),
        "recursive doubling": halving(links, group, size, 1, reduces),
        "direct": direct(links, group, size, 1, reduces),
    }
    return found | ({"direct, forwarded": forwarded(links, group, size, 1, reduces)} if links.latencies.forwarded_step is not None else {})


def all_reduce(links: Links, group: Group, size: Any) -> dict[str, Timing]:
    """All-reduce."""
    if links.rings:
        return {
            "bucket": bucket(links, group, size, 2, True),
            "bucket, all dimensions": bucket_all(links, group, size, 2, True),
            "one-shot": one_shot(links, group, size),
            "two-shot": forwarded(links, group, size, 2, True),
        }
    found = {
        "ring": ring(links, group, size, 2, True),
        "halving-doubling": halving(links, group, size, 2, True),
        "one-shot": one_shot(links, group, size),
        "two-shot": direct(links, group, size, 2, True),
    }
    if links.latencies.forwarded_step is not None:
        found["two-shot, forwarded"] = forwarded(links, group, size, 2, True)
    if links.reduces:
        found["in-network"] = in_network(links, group, size)
    return found


def one_shot(links: Links, group: Group, size: Any) -> Timing:
    """Return the timing of every rank reading the whole buffer of every other."""
    t = links.latencies
    everything, across = cost.one_shot_bytes(size, group.ranks), cost.one_shot_crossing(size, group.ranks, group.per_domain)
    latency = straight_latency(links, group, t.direct_start, 1, t.far_step)
    wire = cost.wire_time(everything, links.direct if links.torus is None else links.spread, across, outer_rate(links, group))
    return at_once(links, t.direct_start, latency, wire, np.minimum(group.ranks - 1, 1))


def in_network(links: Links, group: Group, size: Any) -> Timing:
    """Return the timing of a reduction in the switches."""
    t = links.latencies
    inner, outer = cost.in_network_bytes(size, group.per_domain), cost.outer_share(size, group.domains, group.per_domain, 2)
    wire = cost.wire_time(inner, links.direct, outer, outer_rate(links, group))
    return pipelined(links, cost.in_network_latency_of(t.start, t.in_network, group.domains, outer_step(links, group)), wire)


def gather(links: Links, group: Group, size: Any) -> Timing:
    """Return the timing of an all-gather of few ranks, which all talk to all at once, on a torus by buckets."""
    met = links_for(links, group)
    return bucket(met, group, size, 1, False) if met.rings else direct(met, group, size, 1, False)


def exchange(links: Links, group: Group, size: Any) -> dict[str, Timing]:
    """All-to-all. Its latency as measured grows with log2 N, as that of Bruck's algorithm, which moves log2(N)/2 buffers: that is not offered."""
    t = links.latencies
    inner = cost.inner_exchange(size, group.ranks, group.per_domain)
    outer = cost.outer_exchange(size, group.ranks, group.per_domain)
    latency = cost.exchange_latency(t.start, group.ranks, group.domains, t.step, straight_step(links, group))
    return {"pairwise": pipelined(links, latency, wire(links, group, inner, outer, links.spread))}


def broadcast(links: Links, group: Group, size: Any) -> dict[str, Timing]:
    """Broadcast: the whole buffer passes every rank once, pipelined."""
    t = links.latencies
    latency = cost.halving_latency(t.start, 1, group.per_domain, group.domains, t.step, outer_step(links, group))
    wire = cost.wire_time(size, links.inside, cost.outer_share(size, group.domains, group.per_domain, 1), outer_rate(links, group))
    return {"tree": pipelined(links, latency, wire)}


def send_receive(links: Links, group: Group, size: Any) -> dict[str, Timing]:
    """Point to point, within a domain or to the next one."""
    t = links.latencies
    latency = straight_latency(links, group, t.start, 1, t.step)
    across = cost.crossing_bytes(size, group.domains)
    staying = cost.staying_bytes(size, group.domains)
    return {"direct": at_once(links, t.start, latency, wire(links, group, staying, across, links.inside))}


def expert_exchange(links: Links, ranks: Any, tokens: Any, active: int, token: Any) -> Any:
    """Return the time of an expert dispatch or combine: each copy sent by itself, or once to every domain and forwarded there."""
    group = group_of(links, ranks)
    links = links_for(links, group)
    t = links.latencies
    inside, outside = (group.per_domain - 1) / group.ranks, (group.domains - 1) / group.domains
    apart, paired = (cost.crossing_step(step(links, group), group.domains) for step in (straight_step, outer_step))
    each = wire(
        links,
        group,
        cost.scattered_bytes(tokens, active, token, inside),
        cost.scattered_bytes(tokens, active, token, outside),
        links.spread,
    )
    places, domains = cost.distinct_places(group.ranks, active), cost.distinct_places(group.domains, active)
    once = wire(
        links,
        group,
        cost.deduplicated_bytes(tokens, places, token, (group.per_domain - 1) / group.per_domain),
        cost.deduplicated_bytes(tokens, domains, token, outside),
        links.spread,
    )
    ways = ((1, apart, each), (2, paired, once))
    times = [cost.expert_exchange_time(kernels, t.expert_kernel, network, moving, 0.0) for kernels, network, moving in ways]
    return least("expert_exchange", times)
