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

MOST_TIERS = 4  # largest number of tiers of a Clos
FRONTEND = "frontend"
# Attribute of a chip with its bandwidth into a network, by network.
NETWORKS = {"scale_out": "scale_out_bandwidth", FRONTEND: "frontend_bandwidth"}
# Keys of the table of a network in the file of a system.
TABLE_KEYS = ("nic", "below", "hosts", "converged")
IN_RACKS = "in_racks"  # key of the switches and cables of the network that the tree contains
# Designs: `tor` has copper to switches in the rack, `leaf` has optics from the NIC on.
DESIGNS = ("tor", "leaf")
# Part ids.
FIBRE = "fibre-link"
STRAND = "fibre-strand"
SHUFFLE = "shuffle-panel"
COPPER = "y-aec-400g"
CABLE_LENGTH = "cluster.cable_length"


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
    for radix in reversed(radices[:-1]):  # from the second highest tier to the lowest
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
    largest_reach = math.floor(clos_endpoints_by_radices([radix] * MOST_TIERS, oversubscription))
    raise ReachError(
        f"{chips:,.0f} endpoints do not fit a Clos of {MOST_TIERS} tiers of {radix:.0f}-port "
        f"switches: it reaches {largest_reach:,}; take slower ports or larger switches"
    )


@formula("byte/s")
def nic_bandwidth(nics: Pure, ports: Pure, port: BytePerSecond, chips: Pure) -> Quantity:
    """Bandwidth of a chip into a network, per direction: B = NICs x ports x port rate / chips."""
    return nics * ports * port / chips


class Cards(NamedTuple):
    """NICs of one network in one world."""

    part: str  # part id
    quantity: float


def cards_of(system: System, network: str) -> Cards | None:
    """Return the NICs that join a system's chips to a network.

    The table of the network names the part as `nic`, and optionally the assembly of the cards as
    `below`. `hosts` states how many cards of each such assembly serve the hosts. The front end has
    the cards of the hosts, and another network has the other cards.

    Args:
        system: The system, with its tree of parts.
        network: Name of the network, a key of `NETWORKS`.

    Returns:
        Part id of the NICs and their number in the tree; None where the system file names no NIC.

    Raises:
        DataError: The table of the network in the system file is malformed.

    """
    table = system.network.get(network)
    where = f"{system.where}: network.{network}"
    if table is None:
        return None
    if not isinstance(table, dict) or "nic" not in table:
        raise DataError(f'{where} is {table!r}, expected a table such as {{ nic = "connectx-7" }}')
    refuse_unknown("key", table, TABLE_KEYS, where)
    nic = table["nic"]
    below = table.get("below")
    hosts = table.get("hosts", 0)
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


def shares_scale_out_switches(system: System) -> bool:
    """Return whether the front end shares the scale-out switches in the racks.

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
        catalogue: States whether a card has a port count.

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
    kind: str  # kind of evidence for the unit price
    sources: tuple[str, ...]  # sources of the unit price
    inputs: tuple[str, ...]  # paths of the inputs that set the unit price


class LongLinks(NamedTuple):
    """Links of the top tiers that run between sites."""

    optic: str  # part id of the module
    share: float  # share of the bandwidth between the top two tiers
    length: float  # metres


class NetworkDesign(NamedTuple):
    """Design of a scale-out network to be built."""

    chips: Quantity
    nic: Quantity  # bandwidth of a chip, byte/s
    switch: str  # part id
    optic: str  # part id of the module at both ends of a link
    tiers: int
    port: float  # byte/s of a logical port; links of faster modules pass a shuffle
    design: str = "tor"  # member of `DESIGNS`
    in_rack: bool = False  # whether the bills of the racks contain the first tier and its copper
    long_links: LongLinks | None = None
    prefix: str = ""  # prefix of the names of lines


class ClosSize(NamedTuple):
    """Size of a Clos."""

    chips: int  # chips that the Clos joins
    radix: float  # ports of a switch
    tiers: int
    reach: int  # largest number of endpoints


def clos_size(
    input_values: Values, switch: str, chips: int | None, port: float, tiers: int | None
) -> ClosSize:
    """Return the size of a Clos that joins some chips.

    Args:
        input_values: Inputs by path.
        switch: Part id of the switch.
        chips: Chips to join; None for the largest number that the tiers reach.
        port: Rate of a logical port in byte/s.
        tiers: Tiers of switches; None for the fewest that the chips need, or 2 without chips.

    Raises:
        DataError: The switch has fewer than two ports, or the tiers reach too few chips.

    """
    oversubscription = float(input_values["cluster.oversubscription"])
    radix = float(switch_radix(input_values[f"parts.{switch}.switch_capacity"], port))
    if radix < 2:
        raise DataError(f"{switch} has no two ports of {port * 8 / 1e9:g}G: {radix:.0f} ports")
    if not tiers:
        tiers = tiers_needed(chips, radix, oversubscription) if chips else 2
    reach = int(clos_endpoints_by_radices([radix] * tiers, oversubscription) + 1e-9)
    joined_chips = chips or reach
    if joined_chips > reach:
        raise DataError(
            f"{joined_chips:,} chips do not fit {tiers} tiers of {radix:.0f}-port switches, which "
            f"reach {reach:,}; `--tiers {tiers + 1}` or slower ports"
        )
    return ClosSize(chips=joined_chips, radix=radix, tiers=tiers, reach=reach)


class Network(NamedTuple):
    """Bill of a network."""

    tiers: int
    lines: list[NetworkLine]
    price: Any  # USD
    power: Any  # W


def switch_part(switch_name: str, known_parts: Collection[str]) -> str:
    """Return the part id of a switch named by capacity or id.

    Args:
        switch_name: Capacity or part id, in upper or lower case. 12.8T is `tor-12t8`, and 51T is
            `tor-51t`.
        known_parts: Part ids to choose among.

    Raises:
        DataError: No switch has the name.

    """
    lower_name = switch_name.lower()
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
    """Return for each rate the module with the shortest reach that covers a length.

    Args:
        input_values: Inputs by path.
        optics: Part ids to choose among.
        length: Metres of the links.

    Raises:
        DataError: No module covers the length.

    """
    reaches = {optic: input_values.structure(f"parts.{optic}.reach") for optic in optics}
    optics_by_rate: dict[float, str] = {}
    for optic in sorted(optics, key=lambda part: reaches[part]):
        if length <= reaches[optic]:
            rate = input_values.structure(f"parts.{optic}.port_bandwidth")
            optics_by_rate.setdefault(rate, optic)
    if not optics_by_rate:
        longest = max(optics, key=lambda part: reaches[part])
        raise DataError(
            f"a link of {length / 1000:g} km is beyond the reach of every optical module of "
            f"cluster.optic; {longest} covers {reaches[longest] / 1000:g} km"
        )
    return list(optics_by_rate.values())


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
        return _network_by_tiers(input_values, plan)


def _network_by_tiers(input_values: Values, plan: NetworkDesign) -> Network:
    """Return the network, computed from the lowest tier to the highest."""
    oversubscription = input_values["cluster.oversubscription"]
    capacity = input_values[f"parts.{plan.switch}.switch_capacity"]
    downlink = edge_bandwidth(plan.chips, plan.nic)  # bandwidth below a tier, byte/s
    lines: list[NetworkLine] = []
    optical = OpticalLinks(input_values, plan)
    if plan.design == "leaf":
        optical.add(plan.optic, downlink)
    elif not plan.in_rack:
        lines.append(
            _network_line(
                input_values,
                plan,
                "copper-cables",
                COPPER,
                tier_links(downlink, input_values[f"parts.{COPPER}.port_bandwidth"]),
            )
        )
    for tier in range(1, plan.tiers + 1):
        with scope(f"tier-{tier}"):
            uplink: Quantity = 0.0  # bandwidth above the tier, byte/s
            if tier < plan.tiers:
                uplink = uplink_bandwidth(downlink, oversubscription)
            if tier > 1 or not plan.in_rack:
                lines.append(
                    _network_line(
                        input_values,
                        plan,
                        f"switches-tier-{tier}",
                        plan.switch,
                        tier_switches(downlink, uplink, capacity),
                    )
                )
            if tier < plan.tiers:
                optical.add_tier(uplink, between_sites=tier == plan.tiers - 1)
        downlink = uplink
    return network_totals(plan.tiers, [*lines, *optical.lines()])


class OpticalLinks:
    """Optical links of a network, by their modules.

    Args:
        input_values: Inputs by path, with price, power, rate and strands of modules.
        plan: Design of the network.

    """

    def __init__(self, input_values: Values, plan: NetworkDesign) -> None:
        self.values = input_values
        self.plan = plan
        self.link_counts: dict[str, list[Any]] = {}  # by part id of the module
        self.strand_metres: list[Quantity] = []  # one entry for each number of links

    def add(self, optic: str, bandwidth: Quantity, length: float | None = None) -> None:
        """Add the links of one module that carry a bandwidth.

        Args:
            optic: Part id of the module.
            bandwidth: Bandwidth of all these links, byte/s.
            length: Metres of a link; None for links inside a hall.

        """
        part = f"parts.{optic}"
        links = tier_links(bandwidth, self.values[f"{part}.port_bandwidth"])
        self.link_counts.setdefault(optic, []).append(links)
        metres = self.values[CABLE_LENGTH] if length is None else length
        self.strand_metres.append(fibre_metres(links, self.values[f"{part}.strands"], metres))

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
        input_values = self.values
        plan = self.plan
        lines = []
        shuffled = []  # numbers of links that pass a shuffle
        for optic, counts in self.link_counts.items():
            ends = module_ends(total("optical_links", counts), 2)
            lines.append(
                _network_line(
                    input_values, plan, f"modules-{optic.removeprefix('optic-')}", optic, ends
                )
            )
            if input_values.decided(
                operator.gt, f"parts.{optic}.port_bandwidth", rest=(plan.port,)
            ):
                shuffled += counts
        if self.link_counts:
            all_counts = [count for counts in self.link_counts.values() for count in counts]
            lines.append(
                _network_line(input_values, plan, "fibres", FIBRE, total("fibres", all_counts))
            )
            lines.append(
                _network_line(
                    input_values,
                    plan,
                    "fibre-length",
                    STRAND,
                    total("fibre_length", self.strand_metres),
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
    price_path = f"parts.{part}.price"
    kind, sources, _ = input_values.grounds((price_path,))
    with scope(line_name):
        price = extended_price(input_values[price_path], quantity)
        power = extended_power(input_values[f"parts.{part}.power"], quantity)
    return NetworkLine(
        name=plan.prefix + line_name,
        part=part,
        quantity=quantity,
        price=price,
        power=power,
        kind=kind,
        sources=sources,
        inputs=(price_path,),
    )
