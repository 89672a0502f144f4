"""What joins the chips of a scenario: the scale-out network it buys, and the links its collectives meet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tco.catalog.systems import System
from tco.fabric.library import Library, family_library
from tco.fabric.links import PROTOCOLS, Links, Route, Tier, links_of
from tco.fabric.scopes import crossing_bandwidth, fabric_scopes, lane_bandwidth, port_bandwidth, shares_ports, torus_of, tray_of
from tco.foundation.errors import DataError, unknown
from tco.foundation.trace import plain
from tco.foundation.units import parse_quantity
from tco.foundation.values import Readable, Values
from tco.hardware.clos import switch_radix, tiers_needed
from tco.hardware.network import OPTICS, Network, Plan, scale_out_network, summed, switch_part
from tco.hardware.nics import converged
from tco.performance.chip.families import family_of

if TYPE_CHECKING:
    from tco.chain.inputs import Inputs


def design_network(inputs: Inputs, values: Values) -> Network:
    """Return the scale-out network of the scenario's cluster, with as many tiers as its size needs, and its frontend."""
    chip, (switch, port, radix) = f"parts.{inputs.system.chip}", switches_of(inputs, values)
    chips, design = values["cluster.chips"], network_design(inputs.system)
    ends, oversubscription = values.structure("cluster.chips"), values.structure("cluster.oversubscription")
    tiers = tiers_of(inputs.system, design, ends, radix, oversubscription)
    split = port < values.structure(f"parts.{OPTICS[0]}.port_bandwidth")
    back = Plan(chips, values[f"{chip}.scale_out_bandwidth"], switch, tiers, design, design == "tor", split)
    network = scale_out_network(values, back)
    frontend = values.unless_zero(f"{chip}.frontend_bandwidth")
    if frontend is not None:
        shared = converged(inputs.system)
        levels = tiers if shared else tiers_needed(ends, radix, oversubscription)
        front = Plan(chips, frontend, switch, levels, "tor", shared, split, prefix="frontend-")
        network = summed(Network(tiers, [*network.lines, *scale_out_network(values, front).lines]))
    return network


def refuse_less_than_a_world(inputs: Inputs, values: Values) -> None:
    """Refuse a cluster of fewer chips than come together: those of a world, or of a block where optical switches join blocks."""
    system, chips = inputs.system, values.structure("cluster.chips")
    block = system.fabric.get("block")
    least, what = (math.prod(block), "one block") if block else (system.chips, "one scale-up domain")
    if chips < least * (1 - 1e-9):
        where = values.input("cluster.chips").where
        raise DataError(f"{where}: cluster.chips is {chips:g}, but {what} of {system.id} has {least:g} chips; expected as many or more")


def tiers_of(system: System, design: str, chips: float, radix: float, oversubscription: float) -> int:
    """Return the tiers that hold some chips: a first tier that stands in the racks ends there, and joins the others rack by rack."""
    if design != "tor":
        return tiers_needed(chips, radix, oversubscription)
    racks = math.ceil(chips * system.racks / system.chips - 1e-9)
    return 1 if racks <= 1 else 1 + tiers_needed(racks, radix, oversubscription)


def switches_of(inputs: Inputs, values: Readable) -> tuple[str, float, float]:
    """Return the switch of the cluster, the rate of its ports, and how many it has."""
    switch = switch_part(inputs.text("cluster.switch"), inputs.catalogue.parts)
    port = port_rate(inputs.text("cluster.port"), "cluster.port")
    return switch, port, plain(switch_radix(values.structure(f"parts.{switch}.switch_capacity"), port))


def network_design(system: System) -> str:
    """Return where the first switches of a system's network stand: in the racks, or one leaf for the chips of each rank."""
    return str(system.network.get("first_tier", "leaf"))


def route_of(inputs: Inputs, values: Readable) -> Route:
    """Return the way between scale-up domains: with a leaf for each rank, only the chips of that rank share its tiers."""
    design, chips = network_design(inputs.system), values.structure("cluster.chips")
    return Route(design, tiers_between(inputs, values, design, chips, inputs.system.chips), protocol(inputs.text("cluster.network")))


def tiers_between(inputs: Inputs, values: Readable, design: str, chips: float, domain: float) -> int:
    """Return the tiers of switches up to the one where the traffic of some chips meets, which stand in worlds of so many."""
    _, _, radix = switches_of(inputs, values)
    ends = math.ceil(chips / domain) if design == "leaf" else chips
    return tiers_of(inputs.system, design, max(ends, 1), radix, values.structure("cluster.oversubscription"))


def protocol(network: str) -> str:
    """Return the parameter of practice that holds a step of a network's protocol; an unknown one raises `DataError`."""
    if network not in PROTOCOLS:
        raise unknown("network", network, PROTOCOLS, "cluster.network")
    return PROTOCOLS[network]


def links_of_system(inputs: Inputs, values: Readable, library: Library | None = None) -> Links:
    """Return what the chips of the scenario's system meet when they communicate, by the library of their family or another."""
    system = inputs.system
    scopes = fabric_scopes(system, values)
    torus = torus_of(system) if system.fabric.get("kind") == "torus" else None
    if torus or scopes[0].chips == scopes[-1].chips:
        scopes = scopes[-1:]  # a rack of a torus is one slice among others
    crossing, shared = crossing_bandwidth(system, values), shares_ports(system)
    lane = lane_bandwidth(system, values) if torus else None
    beyond = (crossing, shared, torus, lane, port_bandwidth(system, values), tray_of(system))
    mesh = 1.0 if system.fabric.get("kind") == "mesh" else None
    tiers = [Tier(s.scope, s.chips, s.injection, s.all_to_all, s.hops_mean, s.hops_worst, s.balanced, *beyond, mesh) for s in scopes]
    family, route = family_of(inputs.catalogue, system.chip), route_of(inputs, values)
    switches = "in_network_reduction"
    reduces = inputs.catalogue.has_part_value(system.chip, switches) and values.exists(f"parts.{system.chip}.{switches}")
    signalled = inputs.catalogue.has_part_value(system.chip, "dma_signal")
    return links_of(values, system.chip, family, tiers, route, reduces, library or family_library(inputs.catalogue, family), signalled=signalled)


def port_rate(text: str, key: str) -> float:
    """Return a port rate in byte/s; what is none raises `DataError` with its key."""
    try:
        rate = parse_quantity(port_text(text), "byte/s")
    except DataError as error:
        raise DataError(f"{key}={text}: {error}") from None
    if not rate > 0:
        raise DataError(f"{key}={text}: expected a rate above zero")
    return rate


def port_text(text: str) -> str:
    """Return a port rate as a quantity: '100G' is '100 Gb/s'."""
    return f"{text[:-1]} Gb/s" if text[-1:] in "Gg" and text[:-1].replace(".", "").isdigit() else text
