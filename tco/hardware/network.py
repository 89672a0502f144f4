"""The scale-out network: a folded Clos sized for a cluster, with its switches, links and optics.

A switch of capacity C split into ports of rate p has the radix k = C / p. A NIC faster than a port spreads over parallel planes, so
the number of endpoints is set by the port rate alone. Where the first tier stands in the rack (top-of-rack switches, copper to the
NICs) it belongs to the rack's bill; only what lies above it is counted here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tco.errors import DataError
from tco.formula import ceil_ratio, formula, total
from tco.provenance import worst
from tco.units import USD, BytePerSecond, Pure, Watt
from tco.values import Values

OPTIC = "optic-800g-dr8"
FIBRE = "fibre-link"
MOST_TIERS = 4


@formula(unit="", source="clos-fat-tree")
def clos_endpoints(radix: Pure, tiers: Pure) -> Any:
    """Largest non-blocking folded Clos of one switch radix: n = 2 (k/2)^tiers."""
    return 2 * (radix / 2) ** tiers


@formula(unit="", source="clos-fat-tree")
def switch_radix(capacity: BytePerSecond, port: BytePerSecond) -> Any:
    """Logical ports of a switch: k = C / p."""
    return np.floor(capacity / port + 1e-9)


@formula(unit="byte/s", source="clos-fat-tree")
def edge_bandwidth(chips: Pure, nic: BytePerSecond) -> Any:
    """Bandwidth all NICs offer the first tier: B = chips x NIC rate."""
    return chips * nic


@formula(unit="byte/s", source="clos-fat-tree")
def uplink_bandwidth(downlink: BytePerSecond, oversubscription: Pure) -> Any:
    """Bandwidth a tier sends up: B_up = B_down / oversubscription."""
    return downlink / oversubscription


@formula(unit="", source="clos-fat-tree")
def tier_switches(downlink: BytePerSecond, uplink: BytePerSecond, capacity: BytePerSecond) -> Any:
    """Switches of a tier that carries some bandwidth down and up: n = ceil((B_down + B_up) / C)."""
    return ceil_ratio(downlink + uplink, capacity)


@formula(unit="", source="clos-fat-tree")
def tier_links(bandwidth: BytePerSecond, module: BytePerSecond) -> Any:
    """Optical links that carry a bandwidth: n = ceil(B / module rate)."""
    return ceil_ratio(bandwidth, module)


@formula(unit="USD", source="clos-fat-tree")
def network_price(number: Pure, unit_price: USD) -> Any:
    """Price of some switches, modules or fibres: n x unit price."""
    return number * unit_price


@formula(unit="W", source="clos-fat-tree")
def network_power(number: Pure, unit_power: Watt) -> Any:
    """Power of some switches or modules: n x unit power."""
    return number * unit_power


@formula(unit="", source="clos-fat-tree")
def module_ends(links: Pure, ends: Pure) -> Any:
    """Optical modules of some links: one at each optical end."""
    return links * ends


@dataclass(slots=True)
class NetworkLine:
    """One kind of part of the network."""

    name: str
    part: str
    quantity: Any
    price: Any
    power: Any
    kind: str
    sources: tuple[str, ...]


@dataclass(slots=True)
class Network:
    """A network and its sums."""

    tiers: int
    lines: list[NetworkLine]
    price: Any
    power: Any


def switch_part(name: str) -> str:
    """Return the part id of a switch named by its capacity: '12.8T' is `switch-12t8`."""
    return "tor-" + name.lower().removesuffix("t").replace(".", "t") + ("" if "." in name else "t")


def tiers_needed(chips: float, radix: float) -> int:
    """Return the fewest tiers that hold `chips` endpoints; a size no sensible Clos reaches raises `DataError`."""
    for tiers in range(1, MOST_TIERS + 1):
        reach = radix if tiers == 1 else 2 * (radix / 2) ** tiers
        if chips <= reach:
            return tiers
    most = math.floor(2 * (radix / 2) ** MOST_TIERS)
    raise DataError(
        f"cluster.chips: {chips:,.0f} endpoints do not fit a Clos of {MOST_TIERS} tiers of {radix:.0f}-port switches, which reaches {most:,}"
    )


def scale_out_network(values: Values, chip: str, switch: str, tiers: int, in_rack: bool) -> Network:
    """Return the network of a cluster above its racks: switches by tier, links, optics and fibres."""
    part = switch_part(switch)
    capacity, module = values[f"parts.{part}.switch_capacity"], values[f"parts.{OPTIC}.port_bandwidth"]
    oversubscription = values["cluster.oversubscription"]
    down = edge_bandwidth(values["cluster.chips"], values[f"parts.{chip}.scale_out_bandwidth"])
    lines: list[NetworkLine] = []
    links: list[Any] = []
    modules: list[Any] = []
    if not in_rack:
        first = tier_links(down, module)
        links.append(first)
        modules.append(module_ends(first, 2))
    for tier in range(1, tiers + 1):
        up = uplink_bandwidth(down, oversubscription) if tier < tiers else 0.0
        if tier > 1 or not in_rack:
            lines.append(network_line(values, f"switches-tier-{tier}", part, tier_switches(down, up, capacity)))
        if tier < tiers:
            between = tier_links(up, module)
            links.append(between)
            modules.append(module_ends(between, 2))
        down = up
    lines.append(network_line(values, "optical-modules", OPTIC, total("optical_modules", modules)))
    lines.append(network_line(values, "fibres", FIBRE, total("optical_links", links)))
    return Network(tiers, lines, total("network_price", [x.price for x in lines]), total("network_power", [x.power for x in lines]))


def network_line(values: Values, name: str, part: str, quantity: Any) -> NetworkLine:
    """Return one line of the network's bill."""
    price, power = f"parts.{part}.price", f"parts.{part}.power"
    given = [values.input(price)]
    return NetworkLine(
        name,
        part,
        quantity,
        network_price(quantity, values[price]),
        network_power(quantity, values[power]),
        worst([g.kind for g in given]),
        tuple(g.source for g in given),
    )
