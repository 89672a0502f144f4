"""The scale-out network of a cluster: NICs, switches, links, optics, cables, power, price."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.system_tree import System, is_part_count
from tco.core.elementwise import elementwise_maximum, floor
from tco.core.errors import DataError, refuse_unknown, unknown
from tco.core.formula import ceil_ratio, formula, total
from tco.core.inputs import Rule, Values, following
from tco.core.memory import once_per_owner
from tco.core.trace import scope, untraced_value
from tco.core.types import Quantity
from tco.core.units import BytePerSecond, Metre, Pure
from tco.system.bill import extended_power, extended_price

MOST_TIERS = 4


@formula("", source="clos-fat-tree")
def clos_endpoints(radix: Pure, tiers: Pure) -> Quantity:
    """Largest non-blocking folded Clos of one switch radix: n = 2 (k/2)^tiers."""
    return 2 * (radix / 2) ** tiers


@formula("", source="clos-fat-tree")
def grown_reach(reach: Pure, radix: Pure, oversubscription: Pure) -> Quantity:
    """Endpoints after one more tier below: n' = n k s / (1 + s).

    s is downlink over uplink bandwidth; at s = 1 the factor is k/2.
    """
    return reach * radix * oversubscription / (1 + oversubscription)


@formula("", source="clos-fat-tree")
def switch_radix(capacity: BytePerSecond, port: BytePerSecond) -> Quantity:
    """Logical ports of a switch: k = C / p."""
    return floor(capacity / port + 1e-9)


@formula("", source="clos-fat-tree")
def network_planes(nic: BytePerSecond, port: BytePerSecond) -> Quantity:
    """Parallel planes a NIC spreads over: NIC rate / port rate, at least one."""
    return elementwise_maximum(nic / port, 1)


@formula("byte/s", source="clos-fat-tree")
def edge_bandwidth(chips: Pure, nic: BytePerSecond) -> Quantity:
    """Bandwidth all NICs offer the first tier: B = chips x NIC rate."""
    return chips * nic


@formula("byte/s", source="clos-fat-tree")
def uplink_bandwidth(downlink: BytePerSecond, oversubscription: Pure) -> Quantity:
    """Bandwidth a tier sends up: B_up = B_down / oversubscription."""
    return downlink / oversubscription


@formula("", source="clos-fat-tree")
def tier_switches(
    downlink: BytePerSecond, uplink: BytePerSecond, capacity: BytePerSecond
) -> Quantity:
    """Switches of a tier, by its bandwidth down and up: n = ceil((B_down + B_up) / C)."""
    return ceil_ratio(downlink + uplink, capacity)


@formula("", source="clos-fat-tree")
def tier_links(bandwidth: BytePerSecond, module: BytePerSecond) -> Quantity:
    """Links whose modules carry a bandwidth: n = ceil(B / module rate)."""
    return ceil_ratio(bandwidth, module)


@formula("", source="clos-fat-tree")
def module_ends(links: Pure, ends: Pure) -> Quantity:
    """Optical modules of some links, one at each optical end: n = links x ends."""
    return links * ends


def clos_endpoints_by_radices(radices: Sequence[float], oversubscription: float) -> float:
    """Return the endpoints of a Clos with stated switch radices.

    Args:
        radices: Ports of a switch by tier, the lowest tier first.
        oversubscription: Bandwidth down over bandwidth up at every switch below the top tier.

    """
    reach: Quantity = radices[-1]
    for radix in reversed(radices[:-1]):  # from the tier below the top down
        reach = grown_reach(reach, radix, oversubscription)
    return float(untraced_value(reach))


class ReachError(DataError):
    """Error of more endpoints than a Clos of `MOST_TIERS` tiers reaches."""


def tiers_needed(chips: float, radix: float, oversubscription: float = 1.0) -> int:
    """Return the fewest tiers of a Clos that hold `chips` endpoints.

    Args:
        chips: Endpoints to join.
        radix: Ports of a switch, equal on all tiers.
        oversubscription: Bandwidth down over bandwidth up at every switch below the top tier.

    Raises:
        ReachError: More than `MOST_TIERS` tiers would be needed.

    """
    for tiers in range(1, MOST_TIERS + 1):
        if chips <= clos_endpoints_by_radices([radix] * tiers, oversubscription) * (1 + 1e-9):
            return tiers
    most = math.floor(clos_endpoints_by_radices([radix] * MOST_TIERS, oversubscription))
    raise ReachError(
        f"{chips:,.0f} endpoints do not fit a Clos of {MOST_TIERS} tiers of {radix:.0f}-port "
        f"switches: it reaches {most:,}; take slower ports or larger switches"
    )


FRONTEND = "frontend"
# attribute of a chip that states its bandwidth, by network
NETWORKS = {"scale_out": "scale_out_bandwidth", FRONTEND: "frontend_bandwidth"}
KEYS = ("nic", "below", "hosts", "converged")  # of the table of a network in a system file
IN_RACKS = "in_racks"  # switches and cables of the scale-out network that the tree holds


@formula("byte/s")
def nic_bandwidth(nics: Pure, ports: Pure, port: BytePerSecond, chips: Pure) -> Quantity:
    """Bandwidth of a chip into a network, per direction: B = NICs x ports x port rate / chips."""
    return nics * ports * port / chips


class Cards(NamedTuple):
    """The NICs of one network: which part, and how many in one world."""

    part: str
    quantity: float


def cards_of(system: System, network: str) -> Cards | None:
    """Return the NICs that join a system's chips to a network.

    The table of the network names the part, `nic`, and optionally the assembly that has the cards,
    `below`. With `hosts` each such assembly uses as many of its cards for the hosts: those are the
    cards of the front end, and any other network has the rest.

    Args:
        system: The system, with its tree of parts.
        network: Name of the network, a key of `NETWORKS`.

    Returns:
        Part id of the NICs and their number in the tree; None where the system file names no NIC.

    Raises:
        DataError: The table of the network in the system file is malformed.

    """
    stated, where = system.network.get(network), f"{system.where}: network.{network}"
    if stated is None:
        return None
    if not isinstance(stated, dict) or "nic" not in stated:
        raise DataError(f'{where} is {stated!r}, expected a table such as {{ nic = "connectx-7" }}')
    refuse_unknown("key", stated, KEYS, where)
    nic, below, hosts = stated["nic"], stated.get("below"), stated.get("hosts", 0)
    if below is not None and below not in system.quantity:
        raise unknown("part of the tree", str(below), system.quantity, f"{where}.below")
    if not is_part_count(hosts) or (hosts and below is None):
        raise DataError(
            f"{where}.hosts is {hosts!r}, expected how many of the cards in each assembly that "
            "`below` names"
        )
    all_cards = sum(
        leaf.quantity
        for leaf in system.leaves
        if leaf.part == nic and below in (None, leaf.parent.rpartition("/")[2])
    )
    host_cards = hosts * system.quantity.get(str(below), 0.0)
    if network == FRONTEND and hosts:
        return Cards(str(nic), host_cards)
    return Cards(str(nic), all_cards - host_cards)


@once_per_owner
def network_parts(system: System) -> frozenset[str]:
    """Return the parts of a system's scale-out network and front end.

    Args:
        system: The system, with its tree of parts.

    Returns:
        Part ids of the NICs, and of the switches and cables in the racks.

    Raises:
        DataError: The table of a network in the system file is malformed.

    """
    cards = [cards.part for network in NETWORKS if (cards := cards_of(system, network)) is not None]
    return frozenset([*cards, *system.network.get(IN_RACKS, ())])


def converged(system: System) -> bool:
    """Say whether the front end shares the scale-out switches in the racks.

    Args:
        system: The system, with its tree of parts.

    """
    return bool(system.network.get(FRONTEND, {}).get("converged", False))


def nic_faults(system: System) -> Iterator[str]:
    """Yield a sentence for each network part that the tree lacks.

    Args:
        system: The system, with its tree of parts.

    Raises:
        DataError: The table of networks has an unknown key, or a network is malformed.

    """
    network_keys = [f"network.{network_key}" for network_key in ("first_tier", IN_RACKS, *NETWORKS)]
    for network_key in system.network:
        refuse_unknown("key", [f"network.{network_key}"], network_keys, system.where)
    for network in NETWORKS:
        cards = cards_of(system, network)
        if cards is not None and cards.quantity <= 0:
            yield (
                f"network.{network} names {cards.part}, of which the tree holds none for the chips"
            )
    for part in system.network.get(IN_RACKS, ()):
        if not system.quantity.get(part):
            yield f"network.{IN_RACKS} names {part}, of which the tree holds none"


def from_the_tree(system: System, catalogue: Catalogue) -> dict[str, Rule]:
    """Return the rules for chip bandwidths from the NICs of the tree.

    A card without a port count is rated as a whole.

    Args:
        system: The system, with its tree of parts.
        catalogue: Says whether a card has a port count.

    Returns:
        Rules for the bandwidth per chip in byte/s, by input path; empty without NICs.

    Raises:
        DataError: The table of a network in the system file is malformed.

    """
    rules = {}
    for network, attribute in NETWORKS.items():
        if (cards := cards_of(system, network)) is not None:
            part = f"parts.{cards.part}"
            ports = f"{part}.ports" if catalogue.has_part_value(cards.part, "ports") else 1.0
            rule = following(
                nic_bandwidth, cards.quantity, ports, f"{part}.port_bandwidth", system.chips
            )
            rules[f"parts.{system.chip}.{attribute}"] = rule
    return rules


DESIGNS = ("tor", "leaf")  # copper to switches in the rack; optics from the NIC on
FIBRE, STRAND, SHUFFLE, COPPER = "fibre-link", "fibre-strand", "shuffle-panel", "y-aec-400g"
CABLE_LENGTH = "cluster.cable_length"


@formula("byte/s")
def bandwidth_share(bandwidth: BytePerSecond, share: Pure) -> Quantity:
    """Part of a bandwidth that takes one kind of link: B_s = B s."""
    return bandwidth * share


@formula("")
def fibre_metres(links: Pure, strands: Pure, length: Metre, metre: Metre = 1) -> Quantity:
    """Metres of strand in the cables of some links: n = links x strands x L / 1 m."""
    return links * strands * length / metre


class NetworkLine(NamedTuple):
    """One kind of part of the network."""

    name: str
    part: str  # part id
    quantity: Quantity
    price: Any  # USD of all of them
    power: Any  # W of all of them
    kind: str  # of the evidence for the unit price
    sources: tuple[str, ...]  # of the unit price
    inputs: tuple[str, ...]  # paths its unit price rests on


class LongLinks(NamedTuple):
    """Links of the top tiers that run between sites."""

    optic: str  # part id of the module
    share: float  # of the bandwidth between the top two tiers
    length: float  # metres


class NetworkDesign(NamedTuple):
    """Design of a scale-out network to be built."""

    chips: Quantity
    nic: Quantity  # bandwidth of a chip, byte/s
    switch: str  # part id
    optic: str  # part id of the module at both ends of a link
    tiers: int
    port: float  # byte/s of a logical port: links of faster modules pass a shuffle
    design: str = "tor"  # of `DESIGNS`
    in_rack: bool = False  # the first tier and its copper belong to the racks' bills
    long_links: LongLinks | None = None
    prefix: str = ""  # of the names of lines


class ClosSize(NamedTuple):
    """Size of a Clos."""

    chips: int  # that it joins
    radix: float  # ports of a switch
    tiers: int
    reach: int  # endpoints of its tiers


def clos_size(
    input_values: Values, switch: str, chips: int | None, port: float, tiers: int | None
) -> ClosSize:
    """Return the size of a Clos that joins some chips.

    Args:
        input_values: Inputs by path.
        switch: Part id of the switch.
        chips: Chips to join; None for as many as the tiers reach.
        port: Rate of a logical port in byte/s.
        tiers: Tiers of switches; None for as many as the chips need.

    Raises:
        DataError: The switch has fewer than two ports, or the tiers reach too few chips.

    """
    tapering = float(input_values["cluster.oversubscription"])
    radix = float(switch_radix(input_values[f"parts.{switch}.switch_capacity"], port))
    if radix < 2:
        raise DataError(f"{switch} has no two ports of {port * 8 / 1e9:g}G: {radix:.0f} ports")
    levels = tiers or (tiers_needed(chips, radix, tapering) if chips else 2)
    reach = int(clos_endpoints_by_radices([radix] * levels, tapering) + 1e-9)
    joined = chips or reach
    if joined > reach:
        raise DataError(
            f"{joined:,} chips do not fit {levels} tiers of {radix:.0f}-port switches, which reach "
            f"{reach:,}; `--tiers {levels + 1}` or slower ports"
        )
    return ClosSize(joined, radix, levels, reach)


class Network(NamedTuple):
    """A network and its sums."""

    tiers: int
    lines: list[NetworkLine]
    price: Any  # USD
    power: Any  # W


def switch_part(switch_name: str, known_parts: Collection[str]) -> str:
    """Return the part id of a switch named by capacity or id.

    The capacity '12.8T' names `tor-12t8`.

    Args:
        switch_name: Capacity or part id, in upper or lower case.
        known_parts: Part ids to choose among.

    Raises:
        DataError: No switch has the name.

    """
    lower_name = switch_name.lower()
    # 12.8T is tor-12t8, and 51T is tor-51t
    terabits, _, decimals = lower_name.removesuffix("t").partition(".")
    for candidate in (lower_name, f"tor-{terabits}t{decimals}"):
        if candidate in known_parts:
            return candidate
    capacities = [
        f"{part.removeprefix('tor-').replace('t', '.')}T"
        for part in known_parts
        if part.startswith("tor-")
    ]
    raise unknown("switch", switch_name, [*capacities, *known_parts], "--switch")


def optic_part(optic_name: str, known_parts: Collection[str]) -> str:
    """Return the part id of an optical module, with or without `optic-`.

    Args:
        optic_name: Part id of the module, or the rest of the id after `optic-`, in upper or lower
            case.
        known_parts: Part ids to choose among.

    Raises:
        DataError: No module has the name.

    """
    lower_name = optic_name.lower()
    for candidate in (lower_name, f"optic-{lower_name}"):
        if candidate in known_parts:
            return candidate
    raise unknown(
        "optical module",
        optic_name,
        [part for part in known_parts if part.startswith("optic-")],
        "cluster.optic",
    )


def optics_covering(input_values: Values, optics: Sequence[str], length: float) -> list[str]:
    """Return the modules that cover a length: of each rate the one with the shortest reach.

    Args:
        input_values: Inputs by path.
        optics: Part ids to choose among.
        length: Metres of the links.

    Raises:
        DataError: No module reaches as far.

    """
    reaches = {optic: input_values.structure(f"parts.{optic}.reach") for optic in optics}
    shortest: dict[float, str] = {}
    for optic in sorted(optics, key=lambda part: reaches[part]):
        if length <= reaches[optic]:
            shortest.setdefault(input_values.structure(f"parts.{optic}.port_bandwidth"), optic)
    if not shortest:
        longest = max(optics, key=lambda part: reaches[part])
        farthest = f"{longest} covers {reaches[longest] / 1000:g} km"
        raise DataError(
            f"a link of {length / 1000:g} km is beyond the reach of every optical module of "
            f"cluster.optic; {farthest}"
        )
    return list(shortest.values())


def scale_out_network(input_values: Values, plan: NetworkDesign) -> Network:
    """Return switches by tier, links, modules and cables of a cluster's network.

    Args:
        input_values: Inputs by path, with prices in USD and power in W of the parts.
        plan: Design of the network, with bandwidths in byte/s.

    Returns:
        Lines of the bill, with their price in USD and their power in W.

    Raises:
        DataError: The design is unknown.

    """
    refuse_unknown("network design", [plan.design], DESIGNS)
    with scope(f"{plan.prefix}network"):
        return _tier_by_tier(input_values, plan)


def _tier_by_tier(input_values: Values, plan: NetworkDesign) -> Network:
    """Return the network of a known design, from the chips up.

    `down` and `up` are the bandwidths in byte/s between a tier and what is below and above it.
    """
    oversubscription = input_values["cluster.oversubscription"]
    capacity = input_values[f"parts.{plan.switch}.switch_capacity"]
    down = edge_bandwidth(plan.chips, plan.nic)
    lines: list[NetworkLine] = []
    optical = OpticalLinks(input_values, plan)
    if plan.design == "leaf":
        optical.add(plan.optic, down)
    elif not plan.in_rack:
        lines.append(
            _network_line(
                input_values,
                plan,
                "copper-cables",
                COPPER,
                tier_links(down, input_values[f"parts.{COPPER}.port_bandwidth"]),
            )
        )
    for tier in range(1, plan.tiers + 1):
        with scope(f"tier-{tier}"):
            up: Quantity = uplink_bandwidth(down, oversubscription) if tier < plan.tiers else 0.0
            if tier > 1 or not plan.in_rack:
                lines.append(
                    _network_line(
                        input_values,
                        plan,
                        f"switches-tier-{tier}",
                        plan.switch,
                        tier_switches(down, up, capacity),
                    )
                )
            if tier < plan.tiers:
                optical.add_tier(up, between_sites=tier == plan.tiers - 1)
        down = up
    return network_totals(plan.tiers, [*lines, *optical.lines()])


class OpticalLinks:
    """The optical links of a network, by their modules and lengths.

    Args:
        input_values: Inputs by path, with price, power, rate and strands of modules.
        plan: Design of the network.

    """

    def __init__(self, input_values: Values, plan: NetworkDesign) -> None:
        self.values = input_values
        self.plan = plan
        self.links: dict[str, list[Any]] = {}  # numbers of links, by part id of the module
        self.metres: list[Quantity] = []  # of strand, for each number of links

    def add(self, optic: str, bandwidth: Quantity, length: float | None = None) -> None:
        """Add the links of one module that carry a bandwidth.

        Args:
            optic: Part id of the module.
            bandwidth: In byte/s.
            length: Metres of a link; None for those inside a hall.

        """
        part = f"parts.{optic}"
        links = tier_links(bandwidth, self.values[f"{part}.port_bandwidth"])
        self.links.setdefault(optic, []).append(links)
        metres = self.values[CABLE_LENGTH] if length is None else length
        self.metres.append(fibre_metres(links, self.values[f"{part}.strands"], metres))

    def add_tier(self, bandwidth: Quantity, between_sites: bool) -> None:
        """Add the links between two tiers, a share of them between sites."""
        long_links = self.plan.long_links if between_sites else None
        if long_links is None:
            self.add(self.plan.optic, bandwidth)
            return
        if long_links.share < 1:
            self.add(self.plan.optic, bandwidth_share(bandwidth, 1 - long_links.share))
        self.add(long_links.optic, bandwidth_share(bandwidth, long_links.share), long_links.length)

    def lines(self) -> list[NetworkLine]:
        """Return modules, fibres and shuffles as lines of the bill."""
        input_values, plan = self.values, self.plan
        lines = []
        shuffled = []
        for optic, links in self.links.items():
            ends = module_ends(total("optical_links", links), 2)
            lines.append(
                _network_line(
                    input_values, plan, f"modules-{optic.removeprefix('optic-')}", optic, ends
                )
            )
            if input_values.decided(
                operator.gt, f"parts.{optic}.port_bandwidth", rest=(plan.port,)
            ):
                shuffled += links
        if self.links:
            link_counts = [count for counts in self.links.values() for count in counts]
            lines.append(
                _network_line(input_values, plan, "fibres", FIBRE, total("fibres", link_counts))
            )
            lines.append(
                _network_line(
                    input_values, plan, "fibre-length", STRAND, total("fibre_length", self.metres)
                )
            )
        if shuffled:
            lines.append(
                _network_line(
                    input_values, plan, "shuffle", SHUFFLE, total("shuffled_links", shuffled)
                )
            )
        return lines


def network_totals(tiers: int, lines: list[NetworkLine]) -> Network:
    """Return a network with the sums of its lines.

    Args:
        tiers: Tiers of switches.
        lines: Lines of the bill, in USD and W.

    Returns:
        The lines, with the sum of their prices in USD and of their power in W.

    """
    price = total("network_price", [line.price for line in lines])
    power = total("network_power", [line.power for line in lines])
    return Network(tiers, lines, price, power)


def _network_line(
    input_values: Values, plan: NetworkDesign, line_name: str, part: str, quantity: Quantity
) -> NetworkLine:
    """Return one line of the network's bill."""
    price_path, power_path = f"parts.{part}.price", f"parts.{part}.power"
    kind, sources, _ = input_values.grounds((price_path,))
    with scope(line_name):
        price = extended_price(input_values[price_path], quantity)
        power = extended_power(input_values[power_path], quantity)
    return NetworkLine(
        plan.prefix + line_name, part, quantity, price, power, kind, sources, (price_path,)
    )
