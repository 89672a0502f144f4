"""What a group of chips meets when it communicates: two tiers of links and the latencies of its family.

Inside is the smallest scope that every link of the fabric serves alike (a rack, a server, a torus); outside is what joins such
domains: the lanes between paired racks, or the network. Group sizes are plain numbers or arrays; rates and latencies are values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tco.formula import formula
from tco.performance.collectives import latency_scale, scaled_latency
from tco.units import BytePerSecond, Pure, Second
from tco.values import Values


@formula(unit="byte/s", source="tco-model")
def link_rate(bandwidth: BytePerSecond, link_efficiency: Pure) -> Any:
    """Rate large messages reach on the links of a tier: B = bandwidth x efficiency."""
    return bandwidth * link_efficiency


@dataclass(slots=True)
class Tier:
    """One scope of the fabric as the hardware describes it."""

    scope: str
    chips: int
    injection: Any
    all_to_all: Any
    hops: Any
    balanced: bool
    crossing: Any = None  # bandwidth a chip has to other domains of the same world
    rings: tuple[tuple[int, Any], ...] = ()  # a torus: size and link bandwidth of each dimension


@dataclass(slots=True)
class Latencies:
    """Latencies of a family at the clock of a chip."""

    start: Any
    step: Any
    chunk: Any
    network_step: Any
    crossing_step: Any
    in_network: Any
    direct_start: Any
    expert_kernel: Any


@dataclass(slots=True)
class Links:
    """Rates and latencies of a system's fabric and network, for groups of any size."""

    domain: int  # chips of the inside tier
    world: int  # chips that the outside tier joins without the network
    inside: Any  # rate of rings and trees
    direct: Any  # rate of kernels that reach peer memory directly
    spread: Any  # rate a chip reaches when all talk to all inside a domain
    crossing: Any  # rate to other domains of the world
    network: Any  # rate to other worlds
    latencies: Latencies
    reduces: bool  # the switches add up
    rings: tuple[tuple[int, Any], ...] = ()


@dataclass(slots=True)
class Group:
    """Ranks of a collective, the domains they stand in, and how many stand in each."""

    ranks: Any
    domains: Any
    per_domain: Any


def group_of(links: Links, ranks: Any) -> Group:
    """Return how a group of consecutive ranks falls on the domains of the inside tier."""
    domains = np.ceil(np.asarray(ranks) / links.domain - 1e-9)
    return Group(ranks, domains, ranks / domains)


@formula(unit="s", source="hockney1994")
def step_over_hops(step: Second, hop_latency: Second, hops: Pure) -> Any:
    """Latency of a step over more devices than the one switch the family's step was measured on: alpha + (hops - 1) alpha_hop."""
    return step + np.maximum(hops - 1, 0) * hop_latency


def latencies_of(values: Values, chip: str, family: str, hops: Any) -> Latencies:
    """Return a family's latencies at the clock of a chip."""
    prior, part = f"performance.{family}", f"parts.{chip}"
    scale = latency_scale(
        values[f"{part}.max_clock"], values[f"{part}.dies"], values[f"{prior}.die_latency_factor"], values[f"{prior}.reference_clock"]
    )

    def scaled(name: str, ratio: Any = 1.0) -> Any:
        return scaled_latency(values[f"{prior}.{name}"], scale, ratio)

    step = step_over_hops(scaled("collective_step"), values[f"{prior}.hop_latency"], hops)
    start = scaled("collective_start")
    return Latencies(
        start=start,
        step=step,
        chunk=scaled("collective_chunk"),
        network_step=values[f"{prior}.network_step"],
        crossing_step=step,
        in_network=values[f"{prior}.in_network_latency"],
        direct_start=scaled_latency(start, values[f"{prior}.direct_start_ratio"]),
        expert_kernel=scaled("expert_kernel_latency"),
    )


def links_of(values: Values, chip: str, family: str, tiers: list[Tier], reduces: bool) -> Links:
    """Return what the chips of a system meet, from the scopes of its fabric."""
    inner, world, prior = tiers[0], tiers[-1], f"performance.{family}"
    efficiency, direct = values[f"{prior}.link_efficiency"], values[f"{prior}.direct_efficiency"]
    network = link_rate(values[f"parts.{chip}.scale_out_bandwidth"], efficiency)
    spread = inner.all_to_all if inner.balanced else balanced_rate(inner.all_to_all, values[f"{prior}.load_balance"])
    return Links(
        domain=inner.chips,
        world=world.chips,
        inside=link_rate(inner.injection, efficiency),
        direct=link_rate(inner.injection, direct),
        spread=link_rate(spread, direct),
        crossing=network if world.crossing is None else link_rate(world.crossing, efficiency),
        network=network,
        latencies=latencies_of(values, chip, family, inner.hops),
        reduces=reduces,
        rings=tuple((size, link_rate(link, efficiency)) for size, link in inner.rings),
    )


@formula(unit="byte/s", source="tco-model")
def balanced_rate(bound: BytePerSecond, load_balance: Pure) -> Any:
    """All-to-all rate that routing over several paths reaches of the fabric's bound: R = bound x load balance."""
    return bound * load_balance
