"""Rates and latencies of the links between a group of communicating chips.

The links form two tiers, with the latencies of the chip family. The inside tier is the smallest
scope that every link of the fabric serves alike: a rack, a server or a torus. The outside tier
joins such domains, by the lanes between paired racks or by the network. Group sizes are plain
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
from tco.fabric.topology import FabricScope
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


# of the network: the parameter of practice with its step; InfiniBand and RoCE are alike
PROTOCOLS = {
    "rdma": "network_step",
    "efa": "efa_step",
}


class Route(NamedTuple):
    """Scale-out route between worlds: network design, number of tiers and protocol.

    The tiers are counted up to the switch where both ends meet.
    """

    design: str
    tiers: int
    step: str = PROTOCOLS["rdma"]

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
    """Return a chip's rate and step latency on the scale-out network.

    They follow from those of its links and a single switch.
    """
    design = input_values[f"performance.network.{route.design}_efficiency"]
    passed = input_values["cluster.oversubscription"]
    rate = scale_out_rate(bandwidth, efficiency, design, passed, route.tiers - 1)
    return rate, step_over_hops(
        step, input_values["performance.network.switch_latency"], route.switches
    )


class Latencies(NamedTuple):
    """Latencies of a family at the clock of a chip."""

    start: Quantity  # with the trips to memory at both ends
    step: Quantity  # inside the domain
    far_step: Quantity  # to its farthest chip
    chunk: Quantity
    network_step: Quantity
    # to the chip or switch paired with one's own in another domain of the world
    crossing_step: Quantity
    in_network: Quantity
    direct_start: Quantity
    expert_kernel: Quantity
    ends: Quantity = 0.0  # trips to memory, as the starts and the kernel hold them
    reduction: Quantity = 0.0  # added to a step that adds up
    # to the farthest chip of the world, forwarded on the way
    forwarded_step: Quantity | None = None
    near_step: Any = None  # a step to a neighbour
    hop: Any = None  # what a device on the way adds


class Doubling(NamedTuple):
    """Step latency per doubling of a collective's ranks, and ranks per chip.

    It applies where transfer engines signal each other.
    """

    step: Quantity
    ranks: Quantity


class Links(NamedTuple):
    """Rates and latencies of a system's fabric and network, for groups of any size."""

    domain: int  # chips of the inside tier
    world: int  # chips that the outside tier joins without the network
    inside: Quantity  # rate of rings and trees
    direct: Quantity  # rate of kernels that reach peer memory directly
    # rate a chip reaches when all talk to all inside a domain through the library's channels
    pairwise: Quantity
    spread: Quantity  # the same by kernels that reach peer memory directly
    crossing: Quantity  # rate to other domains of the world
    network: Quantity  # rate to other worlds
    latencies: Latencies
    reduces: Quantity  # the switches add up: one or zero, or an array of them
    library: CollectiveLibrary  # what is offered on these links
    shared: bool = False  # lanes to other domains of the world are those that serve the inside
    torus: Torus | None = None  # a group that does not fill it takes a slice
    lane: Any = None  # rate of a lane of the torus in rings
    pairwise_lane: Any = None  # the same when all talk to all, through the library's channels
    exchange_lane: Any = None  # and by direct kernels
    # a slice: size, link rate and whether it is closed, of each dimension
    rings: tuple[tuple[Any, Quantity, Quantity], ...] = ()
    steps: Quantity = 0  # of bucket rings over all dimensions
    hops: Quantity = 0  # mean devices between two chips of a domain
    world_hops: Quantity = 0  # of a world
    pair_hops: Quantity = 0  # between the two chips that the lanes across the border join
    tray: tuple[int, float] = (0, 0.0)  # chips of a tray, and devices between them
    # one where a group that does not fill its domain leaves links idle
    mesh: Quantity | None = None
    board: Quantity = 1  # chips of a board
    copy_rate: Any = None  # of one core that copies tokens
    # where the steps of collectives are transfers that signal each other
    doubling: Doubling | None = None


def known_of(links: Links, *waits: Any) -> Known:
    """Return the store of known results for groups on `links`.

    Equal numbers give the store of an earlier call. Arrays and traces give an empty store.

    Args:
        links: Rates and latencies of the fabric.
        *waits: Waits of the ranks for each other.

    """
    library = links.library
    hashable_library = library._replace(
        offers=id(library.offers),  # type: ignore[arg-type]
        formats=id(library.formats),  # type: ignore[arg-type]
        kernels=tuple(library.kernels.items()),  # type: ignore[arg-type]
    )
    return known_on((links._replace(library=hashable_library), *waits), library)


class RankGroup(NamedTuple):
    """Ranks of a collective, the domains they stand in, and how many stand in each."""

    ranks: Any
    domains: Any
    per_domain: Quantity
    worlds: Any = None  # that the domains belong to; none: as few as hold them


def rank_group(links: Links, ranks: Quantity) -> RankGroup:
    """Return the inside-tier domains, and ranks per domain, of consecutive ranks.

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
        Group over as few domains as hold the ranks, with the mean number of ranks per domain.

    """
    domains = ceil_ratio(ranks, per_domain)
    return RankGroup(ranks, domains, ranks / domains)


def strided(links: Links, stride: Any, ranks: Quantity) -> RankGroup:
    """Return a group whose ranks are each `stride` chips from the next.

    Args:
        links: Links that set the chips of a domain and of a world.
        stride: Chips from a rank to the next, a whole number or an array.
        ranks: Number of ranks.

    """
    inside, ranks_per_world = (
        np.gcd(stride * ranks, chips) // np.gcd(stride, chips)
        for chips in (links.domain, links.world)
    )
    return RankGroup(ranks, ranks // inside, inside, ranks // ranks_per_world)


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
    """Return the group of a single rank in each domain of `domains`.

    Args:
        domains: Group that stands in the domains.

    """
    return RankGroup(domains.domains, domains.domains, 1, domains.worlds)


def worlds_of(links: Links, group: RankGroup) -> Quantity:
    """Return the worlds a group stands in."""
    return (
        ceil_ratio(group.domains * links.domain, links.world)
        if group.worlds is None
        else group.worlds
    )


def links_for(links: Links, group: RankGroup) -> Links:
    """Return the links that a group meets.

    On a torus the group meets the links of its slice, on a mesh the links between its chips. Within
    a tray a step has the latency of a step to a neighbour. Elsewhere the group meets all links.

    Args:
        links: Links of the whole fabric.
        group: Ranks of a collective.

    """
    t = links.latencies
    if links.mesh is not None:
        rates = (links.inside, links.direct, links.pairwise, links.spread)
        inside, direct, pairwise, spread = (
            mesh_injection(rate, links.mesh, group.per_domain, links.domain) for rate in rates
        )
        return links._replace(inside=inside, direct=direct, pairwise=pairwise, spread=spread)
    if links.torus is None:
        if not links.tray[0]:
            return links
        step, far = (
            scope_latency(group.per_domain, links.tray[0], t.near_step, step)
            for step in (t.step, t.far_step)
        )
        return links._replace(latencies=t._replace(step=step, far_step=far))
    part = slices_of(links.torus, group.per_domain)
    size, directions, width = part.narrow
    rings = tuple(
        (ring, lanes_rate(lanes, links.lane), closed)
        for (ring, closed), lanes in zip(part.rings, links.torus.lanes, strict=True)
    )
    pairwise, spread = (
        slice_all_to_all(size, directions, lanes_rate(width, lane), part.chips)
        for lane in (links.pairwise_lane, links.exchange_lane)
    )
    return links._replace(
        inside=lanes_rate(part.injection, links.lane),
        pairwise=pairwise,
        spread=spread,
        latencies=t._replace(
            step=step_over_hops(t.near_step, t.hop, part.hops),
            far_step=step_over_hops(t.near_step, t.hop, part.farthest),
        ),
        rings=rings,
        steps=part.steps,
    )


def hops_between(links: Links, group: RankGroup) -> float | None:
    """Return the mean number of devices between the chips of a group.

    Args:
        links: Links of the whole fabric.
        group: Ranks of a collective.

    Returns:
        Number of devices; None where the group spans several worlds, between which the scale-out
        network runs.

    """
    if worlds_of(links, group) > 1:
        return None
    if group.domains > 1:
        return float(untraced_value(links.pair_hops if group.per_domain <= 1 else links.world_hops))
    if links.torus:
        return float(slices_of(links.torus, group.per_domain).hops)
    return links.tray[1] if group.per_domain <= links.tray[0] else float(untraced_value(links.hops))


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


SWITCHES_ACROSS = 2  # one in either domain


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
    prior, part = f"performance.{family}", f"parts.{chip}"
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
    launch = scaled("collective_start")
    ends = trips_to_memory(scaled("endpoint_latency"), input_values[f"{prior}.endpoint_in_memory"])
    return Latencies(
        start=total("start_with_ends", [launch, ends]),
        step=step_over_hops(near, hop, inner.hops_mean),
        far_step=step_over_hops(near, hop, inner.hops_worst),
        chunk=scaled("collective_chunk"),
        network_step=network_step,
        crossing_step=step_over_hops(near, hop, SWITCHES_ACROSS) if world.shared else near,
        in_network=input_values[f"{prior}.in_network_latency"],
        direct_start=total(
            "start_with_ends",
            [scaled_latency(launch, input_values[f"{prior}.direct_start_ratio"]), ends],
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
        reduces: Whether the switches add up: a flag, one or zero, or an array.
        library: Collective library on the links.
        signalled: Whether the steps of collectives are transfers with mutual signals.
        port: Bandwidth of the switch port that the lanes enter, byte/s; None where unknown.

    """
    inner, world, prior, part = tiers[0], tiers[-1], f"performance.{family}", f"parts.{chip}"
    efficiency = input_values[f"{prior}.link_efficiency"]
    direct = input_values[f"{prior}.direct_efficiency"]
    nic = input_values[f"{part}.scale_out_bandwidth"]
    step_latency = input_values[f"{prior}.{route.step}"]
    network, step = _network_of(input_values, route, nic, efficiency, step_latency)
    everyone, lane = _balanced_rates(input_values, prior, inner)
    return Links(
        domain=inner.chips,
        world=world.chips,
        inside=link_rate(inner.injection, efficiency),
        direct=link_rate(inner.injection, direct),
        pairwise=link_rate(everyone, efficiency),
        spread=link_rate(everyone, direct),
        crossing=network if world.crossing is None else link_rate(world.crossing, efficiency),
        network=network,
        latencies=_latencies_of(input_values, chip, family, inner, world, port, step),
        reduces=reduces,
        shared=world.shared,
        torus=inner.torus,
        lane=None if inner.torus is None else link_rate(inner.lane, efficiency),
        pairwise_lane=None if lane is None else link_rate(lane, efficiency),
        exchange_lane=None if lane is None else link_rate(lane, direct),
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
    """Return the rates of all-to-all and of a torus lane, as evenly as their links are loaded."""
    everyone, lane = inner.all_to_all, None if inner.torus is None else inner.lane
    if not inner.balanced:
        load_balance = input_values[f"{prior}.load_balance"]
        everyone = link_rate(everyone, load_balance)
        lane = None if lane is None else link_rate(lane, load_balance)
    return everyone, lane


def _signalled_doubling(input_values: Settings, part: str) -> Doubling:
    ranks = ranks_of_a_chip(input_values[f"{part}.cores"], input_values[f"{part}.cores_per_device"])
    return Doubling(input_values[f"{part}.dma_signal"], ranks)


def _domain_of(input_values: Settings, chip: str) -> FabricScope:
    """Return the scale-up domain of chips without a system, at their injection bandwidth.

    It has one switch, or a wire to every other chip.
    """
    part = f"parts.{chip}"
    rate = input_values[f"{part}.scale_up_bandwidth"]
    return FabricScope(
        "world",
        input_values[f"{part}.scale_up_domain"],
        rate,
        rate,
        1.0,
        1.0,
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
        signalled: Whether the steps of collectives are transfers with mutual signals.

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
