"""Rates and latencies of the links between a group of communicating chips.

The links form two tiers, with the latencies of the chip family. The inside tier is the smallest
scope that all links of a chip serve: a rack, a server or a torus. The outside tier joins such
domains, by the lanes between paired racks or by the network. Group sizes are plain
numbers or arrays. Rates and latencies are values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.core.formula import Known, ceil_ratio, formula, known_on, maximum, minimum, total
from tco.core.trace import untraced_value
from tco.core.types import Quantity, Settings
from tco.core.units import Byte, BytePerSecond, Pure, Second
from tco.fabric.collective_costs import (
    lanes_rate,
    latency_scale,
    mesh_injection,
    scaled_latency,
    scope_latency,
    step_ratio,
    trips_to_memory,
)
from tco.fabric.libraries import CollectiveLibrary, library_with_parameters
from tco.fabric.topology import FabricScope, Tray
from tco.fabric.torus import Torus, slice_all_to_all, slices_of


@formula("byte/s")
def link_rate(bandwidth: BytePerSecond, link_efficiency: Pure) -> Quantity:
    """Rate of large messages at a bandwidth limit: B = bandwidth x share.

    The share is the efficiency of links, or the balance of routing over several paths.
    """
    return bandwidth * link_efficiency


@formula("byte/s")
def scale_out_rate(
    bandwidth: BytePerSecond, efficiency: Pure, design: Pure, oversubscription: Pure, uplinks: Pure
) -> Quantity:
    """Rate of large messages on the network: B = bandwidth x efficiency x design / max(s, 1)^u.

    u is the number of uplink tiers on the way.
    """
    return bandwidth * efficiency * design / maximum(oversubscription, 1) ** uplinks


# Parameter with the step latency of each network protocol. "rdma" is InfiniBand or RoCE.
PROTOCOLS = {
    "rdma": "network_step",
    "efa": "efa_step",
}


SWITCHES_ACROSS = 2  # switches between paired chips of two domains, one in each domain


class Route(NamedTuple):
    """Scale-out route between worlds."""

    design: str  # network design
    tiers: int  # switch tiers up to the switch that both ends share
    step: str = PROTOCOLS["rdma"]  # parameter with the step latency of the protocol

    @property
    def switches(self) -> int:
        """Switches on the way up and down."""
        return 2 * self.tiers - 1


def _network_of(
    input_values: Settings,
    route: Route,
    bandwidth: Quantity,
    efficiency: Quantity,
    step: Quantity,
) -> tuple[Quantity, Quantity]:
    """Return a chip's rate and step latency on the scale-out network, from those of one switch."""
    design_efficiency = input_values[f"performance.network.{route.design}_efficiency"]
    oversubscription = input_values["cluster.oversubscription"]
    rate = scale_out_rate(
        bandwidth, efficiency, design_efficiency, oversubscription, route.tiers - 1
    )
    return rate, step_over_hops(
        step, input_values["performance.network.switch_latency"], route.switches
    )


class Latencies(NamedTuple):
    """Latencies of a family at the clock of a chip, s.

    The three starts (`start`, `direct_start` and `expert_kernel`) include `ends`.
    """

    start: Quantity  # start of a collective
    step: Quantity  # mean step inside the domain
    far_step: Quantity  # step to the farthest chip of the domain
    chunk: Quantity  # overhead per chunk
    network_step: Quantity  # step to another world over the scale-out network
    crossing_step: Quantity  # step to the paired chip or switch in another domain of the world
    in_network: Quantity  # added by a reduction in the switches
    direct_start: Quantity  # start of a kernel that reaches peer memory directly
    expert_kernel: Quantity  # start of a kernel that dispatches or combines tokens
    ends: Quantity = 0.0  # trips to memory at both ends
    reduction: Quantity = 0.0  # added to a step that adds up what arrives
    # Step to the farthest chip of the world over devices that forward; None where none forward.
    forwarded_step: Quantity | None = None
    near_step: Any = None  # step to a neighbour
    hop: Any = None  # added by each further device on the way


class Doubling(NamedTuple):
    """Step latency per doubling of a collective's ranks, and ranks per chip.

    It applies where transfer engines signal each other.
    """

    step: Quantity  # s
    ranks: Quantity  # ranks per chip


class SliceRing(NamedTuple):
    """Ring of a torus slice along one dimension."""

    size: Any  # chips
    link: Quantity  # rate of a link, byte/s
    closed: Quantity  # one for a closed ring, zero for an open line


class Links(NamedTuple):
    """Rates (byte/s) and latencies of a system's fabric and network, for groups of any size."""

    domain: int  # chips of the inside tier
    world: int  # chips that the outside tier joins without the network
    inside: Quantity  # rate of rings and trees
    direct: Quantity  # rate of kernels that reach peer memory directly
    pairwise: Quantity  # all-to-all rate inside a domain through the library's channels
    spread: Quantity  # all-to-all rate inside a domain by kernels that reach peer memory directly
    crossing: Quantity  # rate to other domains of the world
    network: Quantity  # rate to other worlds
    latencies: Latencies
    reduces: Quantity  # one where the switches can add up, otherwise zero
    library: CollectiveLibrary  # collective library on these links
    shared: bool = False  # whether the lanes inside a domain also reach other domains of the world
    torus: Torus | None = None  # a group that does not fill the torus takes a slice of it
    lane: Any = None  # rate of a lane of the torus in rings
    pairwise_lane: Any = None  # all-to-all rate of a lane through the library's channels
    exchange_lane: Any = None  # all-to-all rate of a lane by direct kernels
    rings: tuple[SliceRing, ...] = ()  # rings of a torus slice, one for each dimension
    steps: Quantity = 0  # steps of bucket rings over all dimensions
    hops: Quantity = 0  # mean number of devices between two chips of a domain
    world_hops: Quantity = 0  # mean number of devices between two chips of a world
    pair_hops: Quantity = 0  # devices between paired chips of two domains
    tray: Tray = Tray()
    # One for a mesh, on which a group smaller than the domain leaves links idle; zero otherwise.
    mesh: Quantity | None = None
    board: Quantity = 1  # chips of a board
    copy_rate: Any = None  # rate of one core that copies tokens
    doubling: Doubling | None = None  # set where transfers of collectives signal each other


def known_of(links: Links, *waits: Any) -> Known:
    """Return the cache of results for groups on `links`.

    Equal numbers return the cache of an earlier call. Arrays and traces return an empty cache.

    Args:
        links: Rates and latencies of the fabric.
        *waits: Times that ranks wait for each other, s.

    """
    library = links.library
    hashable_library = library._replace(
        offers=id(library.offers),  # type: ignore[arg-type]
        formats=id(library.formats),  # type: ignore[arg-type]
        kernels=tuple(library.kernels.items()),  # type: ignore[arg-type]
    )
    return known_on((links._replace(library=hashable_library), *waits), library)


class RankGroup(NamedTuple):
    """Ranks of a collective and their place in domains and worlds."""

    ranks: Any  # number of ranks
    domains: Any  # number of inside-tier domains that hold the ranks
    per_domain: Quantity  # ranks per domain
    worlds: Any = None  # number of worlds of the domains; None takes the fewest that hold them


def rank_group(links: Links, ranks: Quantity) -> RankGroup:
    """Return the group of consecutive ranks.

    Args:
        links: Links whose inside tier sets the chips of a domain.
        ranks: Number of ranks.

    """
    domains = ceil_ratio(ranks, links.domain)
    return RankGroup(ranks, domains, ranks / domains)


def group_across_domains(ranks: Quantity, per_domain: Quantity) -> RankGroup:
    """Return a group with at most `per_domain` ranks in each domain.

    Args:
        ranks: Number of ranks.
        per_domain: Largest number of ranks in a domain.

    Returns:
        Group over the fewest domains that hold the ranks, with the mean number of ranks per domain.

    """
    domains = ceil_ratio(ranks, per_domain)
    return RankGroup(ranks, domains, ranks / domains)


def strided_group(links: Links, stride: Any, ranks: Quantity) -> RankGroup:
    """Return a group with a rank at every `stride`-th chip.

    Args:
        links: Links that set the chips of a domain and of a world.
        stride: Chips from a rank to the next, a whole number or an array.
        ranks: Number of ranks.

    """
    ranks_per_domain, ranks_per_world = (
        np.gcd(stride * ranks, chips) // np.gcd(stride, chips)
        for chips in (links.domain, links.world)
    )
    return RankGroup(
        ranks=ranks,
        domains=ranks // ranks_per_domain,
        per_domain=ranks_per_domain,
        worlds=ranks // ranks_per_world,
    )


def group_product(first_group: RankGroup, second_group: RankGroup) -> RankGroup:
    """Return the product of two groups.

    Args:
        first_group: First group, with a known number of worlds.
        second_group: Second group, with a known number of worlds.

    Returns:
        Group whose ranks, domains, ranks per domain and worlds are the products.

    """
    return RankGroup(*(a * b for a, b in zip(first_group, second_group, strict=True)))


def among(domains: RankGroup) -> RankGroup:
    """Return the group with one rank in each domain of another group.

    Args:
        domains: Group whose domains each hold one rank of the new group.

    """
    return RankGroup(
        ranks=domains.domains, domains=domains.domains, per_domain=1, worlds=domains.worlds
    )


def worlds_of(links: Links, group: RankGroup) -> Quantity:
    """Return the number of worlds that hold a group."""
    if group.worlds is not None:
        worlds: Quantity = group.worlds
        return worlds
    return ceil_ratio(group.domains * links.domain, links.world)


def links_for(links: Links, group: RankGroup) -> Links:
    """Return the links that a group uses.

    On a torus the group uses the links of its slice, on a mesh the links between its chips. Within
    a tray a step has the latency of a step to a neighbour. Elsewhere the group uses all links.

    Args:
        links: Links of the whole fabric.
        group: Ranks of a collective.

    """
    if links.mesh is not None:
        rates = (links.inside, links.direct, links.pairwise, links.spread)
        inside, direct, pairwise, spread = (
            mesh_injection(rate, links.mesh, group.per_domain, links.domain) for rate in rates
        )
        return links._replace(inside=inside, direct=direct, pairwise=pairwise, spread=spread)
    if links.torus is not None:
        return _slice_links(links, links.torus, group)
    if links.tray.chips:
        latencies = links.latencies
        step, far_step = (
            scope_latency(group.per_domain, links.tray.chips, latencies.near_step, latency)
            for latency in (latencies.step, latencies.far_step)
        )
        return links._replace(latencies=latencies._replace(step=step, far_step=far_step))
    return links


def _slice_links(links: Links, torus: Torus, group: RankGroup) -> Links:
    slices = slices_of(torus, group.per_domain)
    narrowest = slices.narrowest
    rings = tuple(
        SliceRing(size, lanes_rate(lanes, links.lane), closed)
        for (size, closed), lanes in zip(slices.rings, torus.lanes, strict=True)
    )
    pairwise, spread = (
        slice_all_to_all(
            narrowest.size, narrowest.directions, lanes_rate(narrowest.lanes, lane), slices.chips
        )
        for lane in (links.pairwise_lane, links.exchange_lane)
    )
    latencies = links.latencies
    return links._replace(
        inside=lanes_rate(slices.injection, links.lane),
        pairwise=pairwise,
        spread=spread,
        latencies=latencies._replace(
            step=step_over_hops(latencies.near_step, latencies.hop, slices.hops_mean),
            far_step=step_over_hops(latencies.near_step, latencies.hop, slices.hops_worst),
        ),
        rings=rings,
        steps=slices.steps,
    )


def hops_between(links: Links, group: RankGroup) -> float | None:
    """Return the mean number of devices between the chips of a group.

    Args:
        links: Links of the whole fabric.
        group: Ranks of a collective.

    Returns:
        Number of devices; None where the group spans several worlds, which the scale-out network
        joins.

    """
    if worlds_of(links, group) > 1:
        return None
    if group.domains > 1:
        return float(untraced_value(links.pair_hops if group.per_domain <= 1 else links.world_hops))
    if links.torus:
        return float(slices_of(links.torus, group.per_domain).hops_mean)
    if group.per_domain <= links.tray.chips:
        return links.tray.hops
    return float(untraced_value(links.hops))


@formula("s", source="hockney1994")
def step_over_hops(step: Second, hop_latency: Second, hops: Pure) -> Quantity:
    """Latency of a step over several devices: alpha + (hops - 1) alpha_hop.

    alpha was measured over a single switch.
    """
    return step + maximum(hops - 1, 0) * hop_latency


@formula("s")
def forwarding_hop(hop_latency: Second, unit: Byte, port: BytePerSecond) -> Quantity:
    """Latency of a store-and-forward switch: alpha_hop + u / B_port."""
    return hop_latency + unit / port


def _latencies_of(
    input_values: Settings,
    chip: str,
    family: str,
    inner: FabricScope,
    world: FabricScope,
    port: Quantity,
    network_step: Quantity,
) -> Latencies:
    """Return a family's latencies at the clock of a chip."""
    prior = f"performance.{family}"
    part = f"parts.{chip}"
    scale = latency_scale(
        input_values[f"{part}.max_clock"],
        input_values[f"{part}.dies"],
        input_values[f"{prior}.die_latency_factor"],
        input_values[f"{prior}.reference_clock"],
    )

    def scaled(latency_name: str, ratio: Quantity = 1.0) -> Quantity:
        return scaled_latency(input_values[f"{prior}.{latency_name}"], scale, ratio)

    near = scaled(
        "collective_step",
        step_ratio(input_values[f"{part}.pcie_only"], input_values[f"{prior}.pcie_step_ratio"]),
    )
    hop = input_values[f"{prior}.hop_latency"]
    if port is not None:
        hop = forwarding_hop(hop, input_values[f"{prior}.forwarded_unit"], port)
    start = scaled("collective_start")
    ends = trips_to_memory(scaled("endpoint_latency"), input_values[f"{prior}.endpoint_in_memory"])
    return Latencies(
        start=total("start_with_ends", [start, ends]),
        step=step_over_hops(near, hop, inner.hops_mean),
        far_step=step_over_hops(near, hop, inner.hops_worst),
        chunk=scaled("collective_chunk"),
        network_step=network_step,
        crossing_step=step_over_hops(near, hop, SWITCHES_ACROSS) if world.shared else near,
        in_network=input_values[f"{prior}.in_network_latency"],
        direct_start=total(
            "start_with_ends",
            [scaled_latency(start, input_values[f"{prior}.direct_start_ratio"]), ends],
        ),
        expert_kernel=total("start_with_ends", [scaled("expert_kernel_latency"), ends]),
        ends=ends,
        reduction=scaled("reduction_latency"),
        forwarded_step=None if world is inner else step_over_hops(near, hop, world.hops_worst),
        near_step=near,
        hop=hop,
    )


@formula("", source="aws-neuron-trn2")
def ranks_of_a_chip(cores: Pure, cores_per_device: Pure) -> Quantity:
    """Ranks of a chip in its collectives: C / min(d, 2).

    They are its logical devices, or pairs of cores inside larger devices, which fan in.
    """
    return cores / minimum(cores_per_device, 2)


def chip_links(
    input_values: Settings,
    chip: str,
    family: str,
    tiers: list[FabricScope],
    route: Route,
    reduces: Any,
    library: CollectiveLibrary,
    signalled: bool,
    port: Any = None,
) -> Links:
    """Return the links of chips, from the scopes of their fabric.

    Args:
        input_values: Inputs by path: numbers, traces, or arrays with an entry for every chip.
        chip: Id of the chip.
        family: Family whose efficiencies and latencies apply.
        tiers: Fabric scopes from the inside tier to the world.
        route: Scale-out route between worlds.
        reduces: Whether the switches can add up: a flag, one or zero, or an array.
        library: Collective library on the links.
        signalled: Whether the transfers of collectives signal each other.
        port: Bandwidth of the switch port that the lanes enter, byte/s; None where unknown.

    """
    inner = tiers[0]
    world = tiers[-1]
    prior = f"performance.{family}"
    part = f"parts.{chip}"
    efficiency = input_values[f"{prior}.link_efficiency"]
    direct_efficiency = input_values[f"{prior}.direct_efficiency"]
    nic_bandwidth = input_values[f"{part}.scale_out_bandwidth"]
    step_latency = input_values[f"{prior}.{route.step}"]
    network, network_step = _network_of(
        input_values, route, nic_bandwidth, efficiency, step_latency
    )
    all_to_all, lane = _balanced_rates(input_values, prior, inner)
    return Links(
        domain=inner.chips,
        world=world.chips,
        inside=link_rate(inner.injection, efficiency),
        direct=link_rate(inner.injection, direct_efficiency),
        pairwise=link_rate(all_to_all, efficiency),
        spread=link_rate(all_to_all, direct_efficiency),
        crossing=network if world.crossing is None else link_rate(world.crossing, efficiency),
        network=network,
        latencies=_latencies_of(input_values, chip, family, inner, world, port, network_step),
        reduces=reduces,
        shared=world.shared,
        torus=inner.torus,
        lane=None if inner.torus is None else link_rate(inner.lane, efficiency),
        pairwise_lane=None if lane is None else link_rate(lane, efficiency),
        exchange_lane=None if lane is None else link_rate(lane, direct_efficiency),
        hops=inner.hops_mean,
        world_hops=world.hops_mean,
        pair_hops=SWITCHES_ACROSS if world.shared else 0,
        tray=inner.tray,
        mesh=inner.mesh,
        board=input_values[f"{part}.board_chips"],
        copy_rate=input_values[f"{prior}.core_copy_rate"],
        library=library_with_parameters(library, input_values),
        doubling=_signalled_doubling(input_values, part) if signalled else None,
    )


def _balanced_rates(input_values: Settings, prior: str, inner: FabricScope) -> tuple[Any, Any]:
    """Return the all-to-all rates of a chip and of a torus lane, reduced by uneven load."""
    all_to_all = inner.all_to_all
    lane = None if inner.torus is None else inner.lane
    if not inner.balanced:
        load_balance = input_values[f"{prior}.load_balance"]
        all_to_all = link_rate(all_to_all, load_balance)
        lane = None if lane is None else link_rate(lane, load_balance)
    return all_to_all, lane


def _signalled_doubling(input_values: Settings, part: str) -> Doubling:
    ranks = ranks_of_a_chip(input_values[f"{part}.cores"], input_values[f"{part}.cores_per_device"])
    return Doubling(input_values[f"{part}.dma_signal"], ranks)


def _domain_of(input_values: Settings, chip: str) -> FabricScope:
    """Return the scale-up domain of chips without a system.

    One switch joins the chips, or a wire joins each pair of them.
    """
    part = f"parts.{chip}"
    rate = input_values[f"{part}.scale_up_bandwidth"]
    return FabricScope(
        scope="world",
        chips=input_values[f"{part}.scale_up_domain"],
        injection=rate,
        all_to_all=rate,
        hops_mean=1.0,
        hops_worst=1.0,
        balanced=True,
        mesh=input_values[f"{part}.point_to_point"],
    )


def links_of_chips(
    input_values: Settings,
    chip: str,
    family: str,
    route: Route,
    library: CollectiveLibrary,
    signalled: bool,
) -> Links:
    """Return the links of chips without a system: scale-up domain and network.

    Args:
        input_values: Inputs by path; arrays describe many chips at once.
        chip: Id of the chip.
        family: Family whose efficiencies and latencies apply.
        route: Scale-out route between worlds.
        library: Collective library on the links.
        signalled: Whether the transfers of collectives signal each other.

    """
    reduces = input_values[f"parts.{chip}.in_network_reduction"]
    return chip_links(
        input_values,
        chip,
        family,
        [_domain_of(input_values, chip)],
        route,
        reduces,
        library,
        signalled=signalled,
    )
