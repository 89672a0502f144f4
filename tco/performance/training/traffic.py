"""Traffic of a training step: groups placed on the tiers of the fabric, and the time their collectives take.

A group has members inside one scale-up domain and, if it is larger, the same again in other domains. Its collectives run in two
levels: inside over all members of the domain, then across with what each of them holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tco.fabric.costs import scope_latency
from tco.fabric.links import link_rate
from tco.foundation.formula import formula, select
from tco.foundation.units import Byte, BytePerSecond, Pure, Second


class Scope(Protocol):
    """A scope of the scale-up fabric as the hardware describes it."""

    chips: Any
    injection: Any
    hops_mean: Any


@formula(unit="byte/s", source="tco-model")
def scope_rate(extent: Pure, rack: Pure, inner: BytePerSecond, outer: BytePerSecond) -> Any:
    """Rate on the smallest scale-up scope that holds a group: inner if n <= chips of the rack, else outer."""
    return select(extent <= rack, inner, outer)


@formula(unit="s", source="hockney1994")
def round_latency(step: Second, hop_latency: Second, hops: Pure) -> Any:
    """Latency of one round of a collective: alpha = step + hops x time per device."""
    return step + hops * hop_latency


@formula(unit="s", source="thakur2005")
def gather_time(
    size: Byte, inside: Pure, across: Pure, inner: BytePerSecond, outer: BytePerSecond, inner_latency: Second, outer_latency: Second
) -> Any:
    """All-gather or reduce-scatter in two levels: t = M (a-1)/a / B_in + M/a (b-1)/b / B_out + log2 a alpha_in + log2 b alpha_out."""
    links = size * (inside - 1) / inside / inner + size / inside * (across - 1) / across / outer
    return links + np.log2(inside) * inner_latency + np.log2(across) * outer_latency


@formula(unit="byte", source="narayanan2021")
def hidden_bytes(tokens: Pure, width: Pure, split: Pure, element_size: Byte) -> Any:
    """Hidden states, or the part of them a chip sends: M = T h b / n."""
    return tokens * width * element_size / split


@formula(unit="byte", source="rajbhandari2020")
def parameter_bytes(parameters: Pure, element_size: Byte) -> Any:
    """Gradients or weights of a chip as they travel: M = P b."""
    return parameters * element_size


@formula(unit="s", source="deepseek-v3")
def spread_time(size: Byte, copies: Pure, rate: BytePerSecond, latency: Second) -> Any:
    """Dispatch or combine of tokens that each go to some other places: t = M c / B + min(c, 1) alpha."""
    return size * copies / rate + np.minimum(copies, 1) * latency


@formula(unit="", source="deepseek-v3")
def copies_elsewhere(places: Pure, active: Pure) -> Any:
    """Other places a token must reach, one copy for each: (n - 1) (1 - (1 - 1/n)^k)."""
    return (places - 1) * (1 - (1 - 1 / places) ** active)


@formula(unit="", source="tco-model")
def exposed_share(overlapped: Pure, exposed: Pure) -> Any:
    """Share of a collective's time the step grows by: all of it, or x where it runs in pieces beside compute: 1 - o (1 - x)."""
    return 1 - overlapped * (1 - exposed)


@formula(unit="s", source="rajbhandari2020")
def hidden_traffic(time: Second, micro_batches: Pure, times: Pure) -> Any:
    """Time of collectives that run beside the compute of a step, some times for each micro-batch: t m n."""
    return time * micro_batches * times


@formula(unit="byte", source="tco-model")
def part_of_member(size: Byte, members: Pure) -> Any:
    """Part of a collective that each member of a domain takes across domains: M / a."""
    return size / members


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
def crowded_time(step: Second, background: Second, cores: Pure, moved: Byte, bandwidth: BytePerSecond) -> Any:
    """Compute beside collectives: t + x min(G, t) + 2 M / B: they take a share of the cores, and each byte in and out of memory."""
    return step + cores * np.minimum(background, step) + 2 * moved / bandwidth


@formula(unit="s", source="narayanan2021")
def transfer_time(size: Byte, count: Pure, rate: BytePerSecond, latency: Second, exposed: Pure) -> Any:
    """Time of point-to-point transfers between pipeline stages that stays exposed: t = x n (M/B + alpha)."""
    return exposed * count * (size / rate + latency)


class Span(NamedTuple):
    """How a group lies on the fabric: members inside one scale-up domain, and domains. Whole numbers or arrays of them."""

    inside: Any
    across: Any


class Fabric(NamedTuple):
    """Rates and latencies of the tiers in practice."""

    rack: Any
    rack_rate: Any
    domain: Any
    domain_rate: Any
    rack_latency: Any
    domain_latency: Any
    outer_rate: Any
    outer_latency: Any
    hops: Any = 0  # mean devices between two chips of a domain

    def inner_rate(self, extent: Any) -> Any:
        """Return the rate on the smallest scale-up scope that holds `extent` chips."""
        return self.domain_rate if np.all(self.rack == self.domain) else scope_rate(extent, self.rack, self.rack_rate, self.domain_rate)

    def inner_latency(self, extent: Any) -> Any:
        """Return the latency of a round on the smallest scale-up scope that holds `extent` chips."""
        if np.all(self.rack == self.domain):
            return self.domain_latency
        return scope_latency(extent, self.rack, self.rack_latency, self.domain_latency)

    def gather(self, size: Any, span: Span) -> Any:
        """Return the time of an all-gather or a reduce-scatter of `size` bytes, the gathered size."""
        inner = self.inner_rate(span.inside)
        return gather_time(size, span.inside, span.across, inner, self.outer_rate, self.inner_latency(span.inside), self.outer_latency)

    def tiers(self, size: Any, span: Span) -> dict[str, Any]:
        """Return the same time by tier."""
        return {"inside": self.gather(size, Span(span.inside, 1)), "across": self.gather(part_of_member(size, span.inside), Span(1, span.across))}


def fabric_of(scopes: Sequence[Scope], efficiency: Any, step: Any, hop_latency: Any, outer_rate: Any, outer_latency: Any) -> Fabric:
    """Return the fabric of a system in practice, from the scopes its hardware describes."""
    rack, world = scopes[0], scopes[-1]
    inner, whole = (link_rate(scope.injection, efficiency) for scope in (rack, world))
    near, far = (round_latency(step, hop_latency, scope.hops_mean) for scope in (rack, world))
    return Fabric(rack.chips, inner, world.chips, whole, near, far, outer_rate, outer_latency, world.hops_mean)


def span(domain: Any, stride: Any, size: Any) -> Span:
    """Return how a group of `size` members, each `stride` chips from the next, lies on domains of so many chips."""
    inside = np.gcd(stride * size, domain) // np.gcd(stride, domain)
    return Span(inside, size // inside)


def joined(one: Span, other: Span) -> Span:
    """Return the span of the product of two groups."""
    return Span(one.inside * other.inside, one.across * other.across)
