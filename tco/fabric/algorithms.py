"""The algorithms of each collective on a group of chips, and the choice of the cheapest.

Which algorithms exist is structure: rings, trees and direct exchanges behind switches, in-switch reduction where the switches add
up, bucket rings on the slice of a torus. Where chips and switches forward for each other, an exchange goes straight to its place in
a single phase; hierarchical ones cross to the paired chip first. A group inside one domain meets no outside tier: its bytes and
steps are zero there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tco.fabric import costs as cost
from tco.fabric.links import Group, Links, group_of, links_for
from tco.foundation.errors import unknown
from tco.foundation.formula import least, total

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
    makers: dict[str, Callable[[Reach, Any], dict[str, Timing]]] = {
        "all-reduce": all_reduce,
        "all-gather": partial(one_pass, reduces=False),
        "reduce-scatter": partial(one_pass, reduces=True),
        "all-to-all": exchange,
        "broadcast": broadcast,
        "send-recv": send_receive,
    }
    if operation not in makers:
        raise unknown("operation", operation, makers, "--op")
    return makers[operation](reach(links, group), size)


def candidates(links: Links, operation: str, ranks: Any, size: Any) -> dict[str, Any]:
    """Return the time of every algorithm for consecutive ranks."""
    return {name: timing.time for name, timing in timings(links, operation, ranks, size).items()}


def cheapest(links: Links, operation: str, ranks: Any, size: Any) -> Any:
    """Return the time of the cheapest algorithm for consecutive ranks."""
    return least(operation, list(candidates(links, operation, ranks, size).values()))


def half_rate(links: Links, operation: str, ranks: Any, name: str) -> Any:
    """Return the buffer with which an algorithm reaches half of the rate it has on a vast one, from its time on three sizes."""
    empty, some, vast = (candidates(links, operation, ranks, size)[name] for size in (0.0, SOME, VAST))
    return cost.half_rate_size(empty, cost.algorithm_bandwidth(VAST, vast), SOME, some)


class Reach(NamedTuple):
    """A group on the links it meets, with the rate and the steps by which its domains reach each other."""

    links: Links
    group: Group
    rate: Any  # between domains: the lanes of the world, or the network beyond it
    step: Any  # between domains, to the paired place
    straight: Any  # to any place of another domain: forwarded on the way inside the world, else as between pairs


def reach(links: Links, group: Group) -> Reach:
    """Return how a group reaches its domains."""
    t = links.latencies
    rate = cost.outside_rate(group.ranks, links.world, links.crossing, links.network)
    straight = step = cost.outside_step(group.ranks, links.world, t.crossing_step, t.network_step)
    if t.forwarded_step is not None:
        within = cost.reaching_step(group.per_domain, t.crossing_step, t.forwarded_step)
        straight = cost.outside_step(group.ranks, links.world, within, t.network_step)
    return Reach(links_for(links, group), group, rate, step, straight)


def straight_latency(at: Reach, start: Any, phases: int, step: Any) -> Any:
    """Return the latency of exchanges straight to every place: one step a phase inside the world, beyond it one inside and one across."""
    t = at.links.latencies
    across = cost.direct_latency(start, phases, at.group.ranks, at.group.domains, step, at.step)
    if t.forwarded_step is None:
        return across
    within = cost.forwarded_latency(start, phases, at.group.ranks, at.group.domains, step, at.straight)
    return cost.outside_step(at.group.ranks, at.links.world, within, across)


def wire(at: Reach, inner: Any, outer: Any, inner_rate: Any) -> Any:
    """Return the time on the wire of bytes that stay and bytes that leave the domain, which may pass the same ports."""
    if not at.links.shared:
        return cost.wire_time(inner, inner_rate, outer, at.rate)
    within = np.minimum(np.asarray(at.group.ranks) <= at.links.world, 1.0)  # beyond its world a chip has ports of its own
    return cost.shared_wire_time(inner, inner_rate, outer, at.rate, within)


def pipelined(at: Reach, latency: Any, wire: Any, reducing: Any = None) -> Timing:
    """Return the timing of a transfer in chunks, of whose steps some add up."""
    t = at.links.latencies
    whole = latency if reducing is None else cost.reducing_latency(latency, reducing, t.reduction)
    return Timing(cost.pipelined_time(whole, wire, t.chunk), t.start, latency, whole, wire)


def at_once(at: Reach, start: Any, latency: Any, wire: Any, reducing: Any = None) -> Timing:
    """Return the timing of a transfer in one piece, of whose steps some add up."""
    whole = latency if reducing is None else cost.reducing_latency(latency, reducing, at.links.latencies.reduction)
    return Timing(cost.direct_time(whole, wire), start, latency, whole, wire)


def halvings(parts: Any) -> Any:
    """Return the steps of halving some parts down to one."""
    return np.ceil(np.log2(parts) - 1e-9)


class Shares(NamedTuple):
    """Bytes of a rank that stay in its domain and that leave it, in algorithms where each rank owns a part of the buffer."""

    passes: int  # one gathers or scatters, two reduce to all
    reduces: bool
    inner: Any
    outer: Any


def shares_of(at: Reach, size: Any, passes: int, reduces: bool) -> Shares:
    """Return what each rank of a group sends."""
    inner, outer = cost.ring_bytes(size, at.group.ranks, passes), cost.outer_share(size, at.group.domains, at.group.per_domain, passes)
    return Shares(passes, reduces, inner, outer)


def ring_wire(at: Reach, share: Shares) -> Any:
    """Return the time on the wire of rings and trees."""
    return cost.wire_time(share.inner, at.links.inside, share.outer, at.rate)


def ring(at: Reach, share: Shares, wire: Any) -> Timing:
    """Return the timing of a pipelined ring over both tiers."""
    t, group = at.links.latencies, at.group
    latency = cost.ring_latency(t.start, share.passes, group.ranks, group.domains, t.step, at.step)
    return pipelined(at, latency, wire, group.ranks - 1 if share.reduces else None)


def halving(at: Reach, share: Shares, wire: Any) -> Timing:
    """Return the timing of recursive halving and doubling."""
    t, group = at.links.latencies, at.group
    latency = cost.halving_latency(t.start, share.passes, group.per_domain, group.domains, t.step, at.step)
    return pipelined(at, latency, wire, halvings(group.per_domain) + halvings(group.domains) if share.reduces else None)


def direct(at: Reach, share: Shares) -> Timing:
    """Return the timing of direct exchanges, a phase for each pass, every rank talking to all of its domain and to its pairs in others."""
    t, group = at.links.latencies, at.group
    wire = cost.wire_time(share.inner, at.links.direct, share.outer, at.rate)
    latency = cost.direct_latency(t.direct_start, share.passes, group.ranks, group.domains, t.far_step, at.step)
    adding = np.minimum(group.ranks - group.domains, 1) + np.minimum(group.domains - 1, 1) if share.reduces else None
    return at_once(at, t.direct_start, latency, wire, adding)


def forwarded(at: Reach, size: Any, share: Shares) -> Timing:
    """Return the timing of exchanges straight to every place, a phase for each pass, forwarded by the chips and switches on the way."""
    t, group = at.links.latencies, at.group
    outer = cost.outer_exchange(size, group.ranks, group.per_domain, share.passes)
    latency = straight_latency(at, t.direct_start, share.passes, t.far_step)
    rate = at.links.direct if at.links.torus is None else at.links.spread
    adding = np.minimum(group.ranks - 1, 1) if share.reduces else None
    return at_once(at, t.direct_start, latency, wire(at, share.inner, outer, rate), adding)


def bucket(at: Reach, size: Any, share: Shares) -> Timing:
    """Return the timing of bucket rings over the dimensions of a torus, one after the other, and at last over several tori."""
    before, phases = 1, []
    for ring_size, link, closed in at.links.rings:
        phases.append(cost.bucket_time(size, ring_size, before, share.passes, link, closed))
        before = before * ring_size
    phases.append(cost.wire_time(0.0, at.links.inside, share.outer, at.rate))
    return pipelined(at, bucket_latency(at, share.passes), total("bucket_wire", phases), adding_steps(at) if share.reduces else None)


def bucket_all(at: Reach, share: Shares) -> Timing:
    """Return the timing of bucket rings with the data split over rotated orders, all dimensions busy at once."""
    return pipelined(at, bucket_latency(at, share.passes), ring_wire(at, share), adding_steps(at) if share.reduces else None)


def bucket_latency(at: Reach, passes: int) -> Any:
    """Return the latency of bucket rings: steps to neighbours over all dimensions, and over the network between tori."""
    t = at.links.latencies
    inside = cost.torus_latency(t.start, passes, at.links.steps, t.near_step)
    return cost.ring_latency(inside, passes, at.group.domains, at.group.domains, t.near_step, at.step)


def adding_steps(at: Reach) -> Any:
    """Return the steps of bucket rings that add up."""
    return at.links.steps + at.group.domains - 1


def one_pass(at: Reach, size: Any, reduces: bool) -> dict[str, Timing]:
    """All-gather and reduce-scatter."""
    share = shares_of(at, size, 1, reduces)
    if at.links.rings:
        return {"bucket": bucket(at, size, share), "bucket, all dimensions": bucket_all(at, share), "direct": forwarded(at, size, share)}
    wire = ring_wire(at, share)
    found = {"ring": ring(at, share, wire), "recursive doubling": halving(at, share, wire), "direct": direct(at, share)}
    if at.links.latencies.forwarded_step is not None:
        found["direct, forwarded"] = forwarded(at, size, share)
    return found


def all_reduce(at: Reach, size: Any) -> dict[str, Timing]:
    """All-reduce."""
    share = shares_of(at, size, 2, True)
    if at.links.rings:
        return {
            "bucket": bucket(at, size, share),
            "bucket, all dimensions": bucket_all(at, share),
            "one-shot": one_shot(at, size),
            "two-shot": forwarded(at, size, share),
        }
    wire = ring_wire(at, share)
    found = {
        "ring": ring(at, share, wire),
        "halving-doubling": halving(at, share, wire),
        "one-shot": one_shot(at, size),
        "two-shot": direct(at, share),
    }
    if at.links.latencies.forwarded_step is not None:
        found["two-shot, forwarded"] = forwarded(at, size, share)
    if at.links.reduces:
        found["in-network"] = in_network(at, size)
    return found


def one_shot(at: Reach, size: Any) -> Timing:
    """Return the timing of every rank reading the whole buffer of every other."""
    t = at.links.latencies
    everything, across = cost.one_shot_bytes(size, at.group.ranks), cost.one_shot_crossing(size, at.group.ranks, at.group.per_domain)
    latency = straight_latency(at, t.direct_start, 1, t.far_step)
    wire = cost.wire_time(everything, at.links.direct if at.links.torus is None else at.links.spread, across, at.rate)
    return at_once(at, t.direct_start, latency, wire, np.minimum(at.group.ranks - 1, 1))


def in_network(at: Reach, size: Any) -> Timing:
    """Return the timing of a reduction in the switches."""
    t = at.links.latencies
    inner, outer = cost.in_network_bytes(size, at.group.per_domain), cost.outer_share(size, at.group.domains, at.group.per_domain, 2)
    wire = cost.wire_time(inner, at.links.direct, outer, at.rate)
    return pipelined(at, cost.in_network_latency_of(t.start, t.in_network, at.group.domains, at.step), wire)


def gather(at: Reach, size: Any) -> Timing:
    """Return the timing of an all-gather of few ranks, which all talk to all at once, on a torus by buckets."""
    share = shares_of(at, size, 1, False)
    return bucket(at, size, share) if at.links.rings else direct(at, share)


def exchange(at: Reach, size: Any) -> dict[str, Timing]:
    """All-to-all. Its latency as measured grows with log2 N, as that of Bruck's algorithm, which moves log2(N)/2 buffers: that is not offered."""
    t = at.links.latencies
    inner = cost.inner_exchange(size, at.group.ranks, at.group.per_domain)
    outer = cost.outer_exchange(size, at.group.ranks, at.group.per_domain)
    latency = cost.exchange_latency(t.start, at.group.ranks, at.group.domains, t.step, at.straight)
    return {"pairwise": pipelined(at, latency, wire(at, inner, outer, at.links.spread))}


def broadcast(at: Reach, size: Any) -> dict[str, Timing]:
    """Broadcast: the whole buffer passes every rank once, pipelined."""
    t = at.links.latencies
    latency = cost.halving_latency(t.start, 1, at.group.per_domain, at.group.domains, t.step, at.step)
    wire = cost.wire_time(size, at.links.inside, cost.broadcast_crossing(size, at.group.domains, at.group.per_domain), at.rate)
    return {"tree": pipelined(at, latency, wire)}


def send_receive(at: Reach, size: Any) -> dict[str, Timing]:
    """Point to point, within a domain or to the next one."""
    t = at.links.latencies
    latency = straight_latency(at, t.start, 1, t.step)
    across = cost.crossing_bytes(size, at.group.domains)
    staying = cost.staying_bytes(size, at.group.domains)
    return {"direct": at_once(at, t.start, latency, wire(at, staying, across, at.links.inside))}


def expert_exchange(links: Links, ranks: Any, tokens: Any, active: int, token: Any) -> Any:
    """Return the time of an expert dispatch or combine of consecutive ranks."""
    return expert_exchanges(reach(links, group_of(links, ranks)), tokens, active, [token])[0]


def expert_exchanges(at: Reach, tokens: Any, active: int, sizes: Sequence[Any]) -> list[Any]:
    """Return the time of expert dispatch and combine, each with its bytes a token.

    Each copy is sent by itself, or once to every domain and forwarded there.
    """
    t, group = at.links.latencies, at.group
    near, inside, outside = (group.per_domain - 1) / group.per_domain, (group.per_domain - 1) / group.ranks, (group.domains - 1) / group.domains
    apart, paired = (cost.crossing_step(step, group.domains) for step in (at.straight, at.step))
    places, domains = cost.distinct_places(group.ranks, active), cost.distinct_places(group.domains, active)
    found = []
    for token in sizes:
        kept, left = (cost.scattered_bytes(tokens, active, token, share) for share in (inside, outside))
        each = wire(at, kept, left, at.links.spread)
        kept, left = (cost.deduplicated_bytes(tokens, reached, token, share) for reached, share in ((places, near), (domains, outside)))
        once = wire(at, kept, left, at.links.spread)
        ways = ((1, apart, each), (2, paired, once))
        times = [cost.expert_exchange_time(kernels, t.expert_kernel, network, moving, 0.0) for kernels, network, moving in ways]
        found.append(least("expert_exchange", times))
    return found
