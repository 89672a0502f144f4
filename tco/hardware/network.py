"""The scale-out network of a cluster: switches by tier, links, optics, cables and their power and price.

Two designs: `tor`, where the first tier stands in the rack and copper leads from the NICs to it, and `leaf`, where every link above
the NIC is optical, as in rail-optimised pods. Where a rack's tree already holds its top-of-rack switches and their cables, only
what lies above them is counted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tco.foundation.errors import DataError, unknown
from tco.foundation.formula import formula, total
from tco.foundation.provenance import worst
from tco.foundation.trace import scope
from tco.foundation.units import USD, Pure, Watt
from tco.foundation.values import Values
from tco.hardware.clos import edge_bandwidth, module_ends, tier_links, tier_switches, uplink_bandwidth

DESIGNS = ("tor", "leaf")
FIBRE, SHUFFLE, COPPER = "fibre-link", "shuffle-panel", "y-aec-400g"
OPTICS = ("optic-800g-dr8", "optic-800g-fr4", "optic-800g-zr")  # the shortest reach first


@formula(unit="USD", source="clos-fat-tree")
def network_price(number: Pure, unit_price: USD) -> Any:
    """Price of some switches, modules or fibres: n x unit price."""
    return number * unit_price


@formula(unit="W", source="clos-fat-tree")
def network_power(number: Pure, unit_power: Watt) -> Any:
    """Power of some switches or modules: n x unit power."""
    return number * unit_power


class NetworkLine(NamedTuple):
    """One kind of part of the network."""

    name: str
    part: str
    quantity: Any
    price: Any
    power: Any
    kind: str
    sources: tuple[str, ...]
    inputs: tuple[str, ...]  # paths its unit price rests on


class Plan(NamedTuple):
    """What is to be built. Bandwidths come from values; the rest is structure."""

    chips: Any
    nic: Any  # bandwidth of a chip
    switch: str  # part id
    tiers: int
    design: str = "tor"
    in_rack: bool = False  # the first tier and its copper belong to the racks' bills
    split: bool = False  # logical ports below the module's rate: links pass a shuffle
    span: float = 0.0  # metres of the links between the top tiers
    prefix: str = ""


@dataclass(slots=True)
class Network:
    """A network and its sums."""

    tiers: int
    lines: list[NetworkLine] = field(default_factory=list)
    price: Any = 0.0
    power: Any = 0.0


def switch_part(name: str, known: Collection[str]) -> str:
    """Return the part id of a switch named by its capacity ('12.8T' is `tor-12t8`) or by its id."""
    text = name.lower()
    part = "tor-" + text.removesuffix("t").replace(".", "t") + ("" if "." in text else "t")
    for candidate in (text, part):
        if candidate in known:
            return candidate
    raise unknown("switch", name, [*(f"{p[4:].replace('t', '.')}T" for p in known if p.startswith("tor-")), *known], "--switch")


def optic_for(values: Values, span: float) -> str:
    """Return the module with the shortest reach that covers a span; one beyond every reach raises `DataError`."""
    longest = 0.0
    for part in OPTICS:
        longest = values.structure(f"parts.{part}.reach")
        if span <= longest:
            return part
    raise DataError(f"a span of {span / 1000:g} km is beyond the reach of every optical module; {OPTICS[-1]} covers {longest / 1000:g} km")


def scale_out_network(values: Values, plan: Plan) -> Network:
    """Return switches by tier, links, modules and cables of a cluster's network."""
    if plan.design not in DESIGNS:
        raise unknown("network design", plan.design, DESIGNS)
    with scope(f"{plan.prefix}network"):
        return tier_by_tier(values, plan)


def tier_by_tier(values: Values, plan: Plan) -> Network:
    """Return the network of a known design, from the chips up."""
    oversubscription, capacity = values["cluster.oversubscription"], values[f"parts.{plan.switch}.switch_capacity"]
    down = edge_bandwidth(plan.chips, plan.nic)
    lines: list[NetworkLine] = []
    optical: dict[str, list[Any]] = {}
    if plan.design == "leaf":
        optical.setdefault(OPTICS[0], []).append(tier_links(down, values[f"parts.{OPTICS[0]}.port_bandwidth"]))
    elif not plan.in_rack:
        lines.append(network_line(values, plan, "copper-cables", COPPER, tier_links(down, values[f"parts.{COPPER}.port_bandwidth"])))
    for tier in range(1, plan.tiers + 1):
        with scope(f"tier-{tier}"):
            up: Any = uplink_bandwidth(down, oversubscription) if tier < plan.tiers else 0.0
            if tier > 1 or not plan.in_rack:
                lines.append(network_line(values, plan, f"switches-tier-{tier}", plan.switch, tier_switches(down, up, capacity)))
            if tier < plan.tiers:
                optic = optic_for(values, plan.span if tier == plan.tiers - 1 else 0.0)
                optical.setdefault(optic, []).append(tier_links(up, values[f"parts.{optic}.port_bandwidth"]))
        down = up
    links = [link for group in optical.values() for link in group]
    for optic, group in optical.items():
        lines.append(network_line(values, plan, f"modules-{optic.removeprefix('optic-')}", optic, module_ends(total("optical_links", group), 2)))
    if links:
        lines.append(network_line(values, plan, "fibres", FIBRE, total("fibres", links)))
        if plan.split:
            lines.append(network_line(values, plan, "shuffle", SHUFFLE, total("shuffled_links", links)))
    return summed(Network(plan.tiers, lines))


def summed(network: Network) -> Network:
    """Fill in the sums of a network's lines."""
    network.price = total("network_price", [line.price for line in network.lines])
    network.power = total("network_power", [line.power for line in network.lines])
    return network


def network_line(values: Values, plan: Plan, name: str, part: str, quantity: Any) -> NetworkLine:
    """Return one line of the network's bill."""
    price, power = f"parts.{part}.price", f"parts.{part}.power"
    given = values.input(price)
    with scope(name):
        extended, drawn = network_price(quantity, values[price]), network_power(quantity, values[power])
    return NetworkLine(plan.prefix + name, part, quantity, extended, drawn, worst([given.kind]), (given.source,), (price,))
