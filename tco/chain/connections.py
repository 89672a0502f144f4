"""What joins the chips of a scenario: the scale-out network it buys, and the links its collectives meet."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tco.catalog.systems import System
from tco.chain.ownership import SIDECAR, holding_of, needs_sidecar
from tco.chain.stages import stage
from tco.economics.cost import cost_of_world
from tco.fabric.library import Library, family_library
from tco.fabric.links import PROTOCOLS, Links, Route, links_of
from tco.fabric.scopes import fabric_scopes, port_bandwidth
from tco.foundation.errors import DataError, unknown
from tco.foundation.provenance import period
from tco.foundation.trace import paused, plain
from tco.foundation.units import parse_quantity
from tco.foundation.values import Readable, Readings, Values
from tco.hardware.bill import Bill
from tco.hardware.network import (
    OPTICS,
    Network,
    NetworkLine,
    Plan,
    ReachError,
    converged,
    scale_out_network,
    summed,
    switch_part,
    switch_radix,
    tiers_needed,
)
from tco.performance.chip.formats import family_of

if TYPE_CHECKING:
    from tco.chain.inputs import Inputs


SWITCH = "cluster.switch"
CHEAPEST = "cheapest of "  # begins a list of switches, of which the one stands with which a chip-hour costs least


def switch_of(inputs: Inputs) -> str:
    """Return the switch of the cluster: the one that is named or that the structure holds, or of a list the cheapest, decided once."""
    asked = inputs.text(SWITCH)
    if asked.startswith(CHEAPEST):
        held = inputs.structure.texts.get(SWITCH) if inputs.structure is not None else None
        inputs.switches = asked.removeprefix(CHEAPEST)
        inputs.texts = inputs.texts | {SWITCH: held or cheapest_switch(inputs, inputs.switches)}
    return switch_part(inputs.text(SWITCH), inputs.catalogue.parts)


def cheapest_switch(inputs: Inputs, listed: str) -> str:
    """Return the switch of a list whose network adds least to a chip-hour, of those for sale at the scenario's date.

    Where hours are rented the price of the network decides. Of many values asked together their mean does; a chip alone has no network to
    price, and takes the last of the list.
    """
    sold = for_sale(inputs, listed)
    if inputs.system.bare:
        return sold[-1]
    readings, inputs.readings = inputs.readings, Readings()  # of those that are not bought nothing is decided
    values = inputs.values()

    def networks() -> dict[str, tuple[float, float]]:
        return {part: found for part in sold if (found := price_and_power(inputs, values, part)) is not None}

    def cheapest() -> str:
        found = stage("networks", inputs, values, networks, listed)
        by_price = sorted(found, key=lambda part: found[part][0])
        thrifty = [part for place, part in enumerate(by_price) if all(found[part][1] < found[other][1] for other in by_price[:place])]
        if len(thrifty) > 1 and not inputs.perspective.rents:  # more to buy, and less power: the hour tells
            many = (-1, *[1] * len(inputs.shape))
            hours = hours_of(inputs, values, *(one.reshape(many) for one in np.transpose([found[part] for part in thrifty])))
            return thrifty[int(np.argmin(hours.reshape(len(thrifty), -1).mean(axis=1)))]
        return next(iter(thrifty), sold[0])

    try:
        with paused():  # what is not bought leaves no trace
            chosen = stage("switch", inputs, values, cheapest, listed)
    finally:
        inputs.readings = readings
    inputs.compared += [f"parts.{part}.price" for part in sold]
    inputs.judged |= set(values.inputs)
    return chosen


def for_sale(inputs: Inputs, listed: str) -> list[str]:
    """Return the switches of a list that are for sale at the scenario's date, or all where none is."""
    catalogue, day = inputs.catalogue, period(inputs.date).last
    known = [switch_part(name.strip(), catalogue.parts) for name in listed.split(",")]
    return [part for part in known if min(row.begins for row in catalogue.part_rows[part, "price"]) <= day] or known


def cheapest_switches(inputs: Inputs, values: Values) -> tuple[list[str], Any] | None:
    """Return the switches a cluster may have and which of them is the cheapest in each of many draws; nothing where one is named."""
    switch_of(inputs)
    if not inputs.switches or inputs.system.bare:
        return None
    sold = for_sale(inputs, inputs.switches)
    networks: list[Network | None] = []
    for part in sold:
        try:
            networks.append(design_network(inputs, values, part))
        except ReachError:
            networks.append(None)
    never = np.full(inputs.shape, np.inf)
    prices = np.stack([never if one is None else np.broadcast_to(one.price, inputs.shape) for one in networks])
    if inputs.perspective.rents:
        return sold, prices.argmin(axis=0)
    powers = np.stack([never if one is None else np.broadcast_to(one.power, inputs.shape) for one in networks])
    return sold, hours_of(inputs, values, prices, powers).argmin(axis=0)


def price_and_power(inputs: Inputs, values: Values, switch: str) -> tuple[float, float] | None:
    """Return price and power of the network of a switch; none where it has too few ports for the cluster."""
    try:
        network = design_network(inputs, values, switch)
    except ReachError:
        return None
    return float(np.mean(network.price)), float(np.mean(network.power))


def hours_of(inputs: Inputs, values: Values, prices: Any, powers: Any) -> Any:
    """Return what networks of some prices and powers add to a chip-hour: the cost of a world of which nothing else is bought."""
    sidecar = SIDECAR if needs_sidecar(inputs) else None
    network = Network(1, [NetworkLine("whole", "", 1, prices, powers, "derived", (), ())], prices, powers)
    cost = cost_of_world(
        values, Bill([], 0.0, 0.0), network, [], inputs.system.chips, inputs.text("site.tenure"), 1.0, sidecar, holding_of(inputs, values)
    )
    return cost.per_chip_hour


def design_network(inputs: Inputs, values: Values, switch: str | None = None) -> Network:
    """Return the scale-out network of the scenario's cluster, with as many tiers as its size needs, and its frontend.

    It is built of the switch of the cluster, or of another that is named.
    """
    switch = switch or switch_of(inputs)
    chip, port = f"parts.{inputs.system.chip}", port_of(inputs)
    chips, design = values["cluster.chips"], network_design(inputs.system)
    tiers = tiers_of(inputs, values, switch, design)
    split = values.decided(operator.gt, f"parts.{OPTICS[0]}.port_bandwidth", rest=(port,))
    back = Plan(chips, values[f"{chip}.scale_out_bandwidth"], switch, tiers, design, design == "tor", split)
    network = scale_out_network(values, back)
    frontend = values.unless_zero(f"{chip}.frontend_bandwidth")
    if frontend is not None:
        shared = converged(inputs.system)
        levels = tiers if shared else tiers_of(inputs, values, switch, "leaf")
        front = Plan(chips, frontend, switch, levels, "tor", shared, split, prefix="frontend-")
        network = summed(tiers, [*network.lines, *scale_out_network(values, front).lines])
    return network


def refuse_less_than_a_world(inputs: Inputs, values: Values) -> None:
    """Refuse a cluster of fewer chips than come together: those of a world, or of a block where optical switches join blocks."""
    system = inputs.system
    block = system.fabric.get("block")
    least, what = (math.prod(block), "one block") if block else (system.chips, "one scale-up domain")
    if values.decided(operator.lt, "cluster.chips", rest=(least * (1 - 1e-9),)):
        where, chips = values.input("cluster.chips").where, values.structure("cluster.chips")
        raise DataError(f"{where}: cluster.chips is {chips:g}, but {what} of {system.id} has {least:g} chips; expected as many or more")


def tiers_of(inputs: Inputs, values: Readable, switch: str, design: str, domain: float = 1, chips: float | None = None) -> int:
    """Return the tiers of switches up to the one where the traffic of the cluster, or of some chips, meets: of each domain one chip's."""
    racks = (inputs.system.racks, inputs.system.chips) if design == "tor" else None
    tapering, capacity, rest = "cluster.oversubscription", f"parts.{switch}.switch_capacity", (port_of(inputs), racks, domain)
    if chips is not None:
        return tiers_for(chips, values.structure(tapering), values.structure(capacity), *rest)
    return values.decided(tiers_for, "cluster.chips", tapering, capacity, rest=rest)


def tiers_for(chips: float, oversubscription: float, capacity: float, port: float, racks: tuple[float, float] | None, domain: float) -> int:
    """Return the tiers that hold some chips: a first tier that stands in the racks ends there, and joins the others rack by rack."""
    radix, ends = plain(switch_radix(capacity, port)), max(math.ceil(chips / domain), 1) if domain > 1 else chips
    if racks is not None:
        ends = math.ceil(ends * racks[0] / racks[1] - 1e-9)
        return 1 if ends <= 1 else 1 + tiers_needed(ends, radix, oversubscription)
    return tiers_needed(ends, radix, oversubscription)


def port_of(inputs: Inputs) -> float:
    """Return the rate of the ports of the cluster's switches."""
    return port_rate(inputs.text("cluster.port"), "cluster.port")


def network_design(system: System) -> str:
    """Return where the first switches of a system's network stand: in the racks, or one leaf for the chips of each rank."""
    return str(system.network.get("first_tier", "leaf"))


def route_of(inputs: Inputs, values: Readable) -> Route:
    """Return the way between scale-up domains: with a leaf for each rank, only the chips of that rank share its tiers."""
    design = network_design(inputs.system)
    tiers = tiers_of(inputs, values, switch_of(inputs), design, inputs.system.chips if design == "leaf" else 1)
    return Route(design, tiers, protocol(inputs.text("cluster.network")))


def protocol(network: str) -> str:
    """Return the parameter of practice that holds a step of a network's protocol; an unknown one raises `DataError`."""
    if network not in PROTOCOLS:
        raise unknown("network", network, PROTOCOLS, "cluster.network")
    return PROTOCOLS[network]


def links_of_system(inputs: Inputs, values: Readable, library: Library | None = None) -> Links:
    """Return what the chips of the scenario's system meet when they communicate, by the library of their family or another."""
    chosen = library or family_library(inputs.catalogue, family_of(inputs.catalogue, inputs.system.chip))
    if not isinstance(values, Values):  # of measured rows, which are asked once
        return links_met(inputs, values, chosen)
    return stage("links", inputs, values, lambda: links_met(inputs, values, chosen), chosen)


def links_met(inputs: Inputs, values: Readable, library: Library) -> Links:
    """Return what the chips of a system meet by a library."""
    system = inputs.system
    scopes = fabric_scopes(system, values)
    if scopes[-1].torus or scopes[0].chips == scopes[-1].chips:
        scopes = scopes[-1:]  # a rack of a torus is one slice among others
    family, route = family_of(inputs.catalogue, system.chip), route_of(inputs, values)
    switches = "in_network_reduction"
    reduces = inputs.catalogue.has_part_value(system.chip, switches) and values.exists(f"parts.{system.chip}.{switches}")
    signalled = inputs.catalogue.has_part_value(system.chip, "dma_signal")
    return links_of(values, system.chip, family, scopes, route, reduces, library, signalled=signalled, port=port_bandwidth(system, values))


def port_rate(text: str, key: str) -> float:
    """Return a port rate in byte/s, such as 100G or 50 GB/s; what is none raises `DataError` with its key."""
    try:
        number = text[:-1] if text[-1:] in "Gg" and text[:-1].replace(".", "").isdigit() else ""
        rate = parse_quantity(f"{number} Gb/s" if number else text, "byte/s")
    except DataError as error:
        raise DataError(f"{key}={text}: {error}") from None
    if not rate > 0:
        raise DataError(f"{key}={text}: expected a rate above zero")
    return rate
