"""Traffic of a training step: groups placed on the fabric, what they exchange, and what collectives take from compute beside them.

The time of a collective is that of the fabric room. What it takes from others is how long it holds the links of each tier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.fabric.algorithms import Tokens, choose, reach
from tco.fabric.costs import outer_share, ring_bytes
from tco.fabric.links import Group, Links
from tco.foundation.formula import formula
from tco.foundation.units import Byte, BytePerSecond, Pure, Second
from tco.performance.chip.roofline import only_if_shared, stream_time


@formula(unit="byte", source="narayanan2021")
def hidden_bytes(tokens: Pure, width: Pure, split: Pure, element_size: Byte) -> Any:
    """Hidden states, or the part of them a chip sends: M = T h b / n."""
    return tokens * width * element_size / split


@formula(unit="byte", source="rajbhandari2020")
def parameter_bytes(parameters: Pure, element_size: Byte) -> Any:
    """Gradients or weights of a chip as they travel: M = P b."""
    return parameters * element_size


@formula(unit="", source="tco-model")
def exposed_share(overlapped: Pure, exposed: Pure) -> Any:
    """Share of a collective's time the step grows by: all of it, or x where it runs in pieces beside compute: 1 - o (1 - x)."""
    return 1 - overlapped * (1 - exposed)


@formula(unit="s", source="rajbhandari2020")
def hidden_traffic(time: Second, micro_batches: Pure, times: Pure) -> Any:
    """Time of collectives that run beside the compute of a step, some times for each micro-batch: t m n."""
    return time * micro_batches * times


@formula(unit="byte", source="rajbhandari2020")
def gathered_bytes(size: Byte, micro_batches: Pure, times: Pure) -> Any:
    """Bytes of the collectives that run beside the compute of a step: M m n."""
    return size * micro_batches * times


@formula(unit="s", source="tco-model")
def waiting_time(exposed: Second, background: Second, step: Second, classes: Pure) -> Any:
    """Time exposed collectives grow by while others use their links too, each at half the rate: x min(G/t, 1) (1 - c).

    c is one where the links know classes of traffic and let those the chip waits for go first.
    """
    return exposed * np.minimum(background / step, 1) * (1 - classes)


@formula(unit="s", source="tco-model")
def crowding(step: Second, background: Second, cores: Pure, moved: Byte, bandwidth: BytePerSecond) -> Any:
    """What collectives take from compute beside them: x min(G, t) + 2 M / B: a share of the cores, and each byte in and out of memory."""
    return cores * np.minimum(background, step) + 2 * moved / bandwidth


class Exchange(NamedTuple):
    """One collective of a group: its time, and how long it holds the links of each tier."""

    time: Any
    holds: dict[str, Any]


def strided(links: Links, stride: Any, ranks: Any) -> Group:
    """Return a group whose ranks are each `stride` chips from the next."""
    inside, within = (np.gcd(stride * ranks, chips) // np.gcd(stride, chips) for chips in (links.domain, links.world))
    return Group(ranks, ranks // inside, inside, ranks // within)


def joined(one: Group, other: Group) -> Group:
    """Return the product of two groups."""
    return Group(*(a * b for a, b in zip(one, other, strict=True)))


def among(domains: Group) -> Group:
    """Return the group of one rank of each domain that a group stands in."""
    return Group(domains.domains, domains.domains, 1, domains.worlds)


def gathered(links: Links, size: Any, group: Group) -> Exchange:
    """Return an all-gather or a reduce-scatter of `size` bytes, the gathered size."""
    at = reach(links, group)
    inner, outer = ring_bytes(size, group.ranks, 1), outer_share(size, group.domains, group.per_domain, 1)
    time = only_if_shared(choose(at, "all-gather", size), group.ranks)
    return Exchange(time, {"inside": stream_time(inner, at.links.inside), "across": stream_time(outer, at.rate)})


def sent(links: Links, size: Any, group: Group) -> Any:
    """Return the time of a transfer from one rank of a group to the next, which may stand in another domain."""
    far = np.minimum(group.domains, 2)
    return choose(reach(links, Group(2, far, 2 / far, np.minimum(group.worlds, 2))), "send-recv", size)


def spread(links: Links, tokens: Any, token: Any, active: Any, group: Group, tier: str) -> Exchange:
    """Return a dispatch or combine of tokens to the experts of a group, each token once to each place."""
    time = only_if_shared(choose(reach(links, group), "dispatch", Tokens(tokens, token, active)), np.minimum(group.ranks, 2))
    return Exchange(time, {tier: time})
