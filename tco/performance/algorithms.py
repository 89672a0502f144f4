"""The algorithms of each collective on a group of chips, and the choice of the cheapest.

Which algorithms exist is structure: rings, trees and direct exchanges behind switches, in-switch reduction where the switches add
up, bucket rings on the slice of a torus. A group inside one domain meets no outside tier: its bytes and steps are zero there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.errors import unknown
from tco.formula import least, total
from tco.performance import collectives as cost
from tco.performance.links import Group, Links, group_of, links_for

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv")


def candidates(links: Links, operation: str, ranks: Any, size: Any) -> dict[str, Any]:
    """Return the time of every algorithm that the fabric allows for an operation; an unknown one raises `DataError`."""
    if operation not in OPERATIONS:
        raise unknown("operation", operation, OPERATIONS, "--op")
    group = group_of(links, ranks)
    makers = {
        "all-reduce": all_reduce,
        "all-gather": one_pass,
        "reduce-scatter": one_pass,
        "all-to-all": exchange,
        "broadcast": broadcast,
        "send-recv": send_receive,
    }
    return makers[operation](links_for(links, group), group, size)


def cheapest(links: Links, operation: str, ranks: Any, size: Any) -> Any:
    """Return the time of the cheapest algorithm."""
    return least(operation, list(candidates(links, operation, ranks, size).values()))


def outer_rate(links: Links, group: Group) -> Any:
    """Return the rate between domains: the lanes of the world, or the network beyond it."""
    return cost.outside_rate(group.ranks, links.world, links.crossing, links.network)


def outer_step(links: Links, group: Group) -> Any:
    """Return the latency of a step between domains."""
    return cost.outside_step(group.ranks, links.world, links.latencies.crossing_step, links.latencies.network_step)


def wire(links: Links, group: Group, inner: Any, outer: Any, inner_rate: Any) -> Any:
    """Return the time on the wire of bytes that stay and bytes that leave the domain, which may pass the same ports."""
    if not links.shared:
        return cost.wire_time(inner, inner_rate, outer, outer_rate(links, group))
    within = np.minimum(np.asarray(group.ranks) <= links.world, 1.0)  # beyond its world a chip has ports of its own
    return cost.shared_wire_time(inner, inner_rate, outer, outer_rate(links, group), within)


def ring(links: Links, group: Group, size: Any, passes: int) -> Any:
    """Return the time of a pipelined ring over both tiers."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.inside, outer, outer_rate(links, group))
    return cost.pipelined_time(cost.ring_latency(t.start, passes, group.ranks, group.domains, t.step, outer_step(links, group)), wire, t.chunk)


def direct(links: Links, group: Group, size: Any, passes: int) -> Any:
    """Return the time of direct exchanges, a phase for each pass, every rank talking to all at once."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.direct, outer, outer_rate(links, group))
    latency = cost.direct_latency(t.direct_start, passes, group.ranks, group.domains, t.step, outer_step(links, group))
    return cost.direct_time(latency, wire)


def halving(links: Links, group: Group, size: Any, passes: int) -> Any:
    """Return the time of recursive halving and doubling."""
    t = links.latencies
    inner, outer = cost.ring_bytes(size, group.ranks, passes), cost.outer_share(size, group.domains, group.per_domain, passes)
    wire = cost.wire_time(inner, links.inside, outer, outer_rate(links, group))
    latency = cost.halving_latency(t.start, passes, group.per_domain, group.domains, t.step, outer_step(links, group))
    return cost.pipelined_time(latency, wire, t.chunk)


def bucket(links: Links, size: Any, passes: int) -> Any:
    """Return the time of bucket rings over the dimensions of a torus, one after the other."""
    t, before, phases = links.latencies, 1, []
    for ring_size, link, closed in links.rings:
        phases.append(cost.bucket_time(size, ring_size, before, passes, link, closed))
        before = before * ring_size
    return cost.pipelined_time(cost.torus_latency(t.start, passes, links.steps, t.step), total("bucket_wire", phases), t.chunk)


def bucket_all(links: Links, group: Group, size: Any, passes: int) -> Any:
    """Return the time of bucket rings with the data split over rotated orders, all dimensions busy at once."""
    t = links.latencies
    wire = cost.wire_time(cost.ring_bytes(size, group.ranks, passes), links.inside, 0.0, links.inside)
    return cost.pipelined_time(cost.torus_latency(t.start, passes, links.steps, t.step), wire, t.chunk)


def one_pass(links: Links, group: Group, size: Any) -> dict[str, Any]:
    """All-gather and reduce-scatter."""
    if links.rings:
        return {"bucket": bucket(links, size, 1), "bucket, all dimensions": bucket_all(links, group, size, 1)}
    return {"ring": ring(links, group, size, 1), "recursive doubling": halving(links, group, size, 1), "direct": direct(links, group, size, 1)}


def all_reduce(links: Links, group: Group, size: Any) -> dict[str, Any]:
    """All-reduce."""
    t = links.latencies
    if links.rings:
        return {"bucket": bucket(links, size, 2), "bucket, all dimensions": bucket_all(links, group, size, 2)}
    latency = cost.direct_latency(t.direct_start, 1, group.ranks, group.domains, t.step, outer_step(links, group))
    everything, across = cost.one_shot_bytes(size, group.ranks), cost.one_shot_crossing(size, group.ranks, group.per_domain)
    found = {
        "ring": ring(links, group, size, 2),
        "halving-doubling": halving(links, group, size, 2),
        "one-shot": cost.direct_time(latency, cost.wire_time(everything, links.direct, across, outer_rate(links, group))),
        "two-shot": direct(links, group, size, 2),
    }
    if links.reduces:
        inner, outer = cost.in_network_bytes(size, group.per_domain), cost.outer_share(size, group.domains, group.per_domain, 2)
        wire = cost.wire_time(inner, links.direct, outer, outer_rate(links, group))
        latency = cost.in_network_latency_of(t.start, t.in_network, group.domains, outer_step(links, group))
        found["in-network"] = cost.pipelined_time(latency, wire, t.chunk)
    return found


def exchange(links: Links, group: Group, size: Any) -> dict[str, Any]:
    """All-to-all."""
    t = links.latencies
    inner = cost.inner_exchange(size, group.ranks, group.per_domain)
    outer = cost.outer_exchange(size, group.ranks, group.per_domain)
    latency = cost.exchange_latency(t.start, group.ranks, group.domains, t.step, outer_step(links, group))
    return {"pairwise": cost.pipelined_time(latency, wire(links, group, inner, outer, links.spread), t.chunk)}


def broadcast(links: Links, group: Group, size: Any) -> dict[str, Any]:
    """Broadcast: the whole buffer passes every rank once, pipelined."""
    t = links.latencies
    latency = cost.halving_latency(t.start, 1, group.per_domain, group.domains, t.step, outer_step(links, group))
    wire = cost.wire_time(size, links.inside, cost.outer_share(size, group.domains, group.per_domain, 1), outer_rate(links, group))
    return {"tree": cost.pipelined_time(latency, wire, t.chunk)}


def send_receive(links: Links, group: Group, size: Any) -> dict[str, Any]:
    """Point to point, within a domain or to the next one."""
    t = links.latencies
    latency = cost.direct_latency(t.start, 1, group.ranks, group.domains, t.step, outer_step(links, group))
    across = cost.crossing_bytes(size, group.domains)
    staying = cost.staying_bytes(size, group.domains)
    return {"direct": cost.direct_time(latency, wire(links, group, staying, across, links.inside))}


def expert_exchange(links: Links, ranks: Any, tokens: Any, active: int, token: Any) -> Any:
    """Return the time of an expert dispatch or combine: each copy sent by itself, or once to every domain and forwarded there."""
    group = group_of(links, ranks)
    links = links_for(links, group)
    t = links.latencies
    inside, outside = (group.per_domain - 1) / group.ranks, (group.domains - 1) / group.domains
    network = cost.crossing_step(outer_step(links, group), group.domains)
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
    times = [cost.expert_exchange_time(kernels, t.expert_kernel, network, moving, 0.0) for kernels, moving in ((1, each), (2, once))]
    return least("expert_exchange", times)
