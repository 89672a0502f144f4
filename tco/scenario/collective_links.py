"""Links that the collectives of a scenario use, within and between scale-up domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tco.core.errors import refuse_unknown
from tco.core.inputs import Readable, Values
from tco.fabric.libraries import CollectiveLibrary, family_library
from tco.fabric.links import PROTOCOLS, Links, Route, chip_links
from tco.fabric.topology import fabric_scopes, port_bandwidth
from tco.performance.chip.families import family_of
from tco.scenario.memo import stage
from tco.scenario.network_choice import switch_of
from tco.scenario.network_tiers import network_design, tiers_of

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario


def links_of_system(
    inputs: ResolvedScenario, input_values: Readable, library: CollectiveLibrary | None = None
) -> Links:
    """Return the links between the chips of the scenario's system.

    Args:
        inputs: The scenario.
        input_values: Inputs of the scenario by path.
        library: Collective library; None for the library of the chip family.

    """
    family = family_of(inputs.catalogue, inputs.system.chip)
    chosen_library = library or family_library(inputs.catalogue, family)

    def links() -> Links:
        return _links_under_library(inputs, input_values, chosen_library)

    if not isinstance(input_values, Values):  # measured rows need their links only once
        return links()
    return stage("links", inputs, input_values, links, chosen_library)


def _links_under_library(
    inputs: ResolvedScenario, input_values: Readable, library: CollectiveLibrary
) -> Links:
    system = inputs.system
    scopes = fabric_scopes(system, input_values)
    if scopes[-1].torus or scopes[0].chips == scopes[-1].chips:
        scopes = scopes[-1:]  # a torus has no scope of racks: a rack is one slice among others
    family = family_of(inputs.catalogue, system.chip)
    route = route_of(inputs, input_values)
    attribute = "in_network_reduction"
    switches_reduce = inputs.catalogue.has_part_value(
        system.chip, attribute
    ) and input_values.exists(f"parts.{system.chip}.{attribute}")
    has_dma_signal = inputs.catalogue.has_part_value(system.chip, "dma_signal")
    return chip_links(
        input_values,
        system.chip,
        family,
        scopes,
        route,
        switches_reduce,
        library,
        signalled=has_dma_signal,
        port=port_bandwidth(system, input_values),
    )


def route_of(inputs: ResolvedScenario, input_values: Readable) -> Route:
    """Return the route between scale-up domains.

    The chips of one rank share a leaf switch and the tiers above it.
    """
    design = network_design(inputs.system)
    domain = inputs.system.chips if design == "leaf" else 1
    tiers = tiers_of(inputs, input_values, switch_of(inputs), design, domain)
    return Route(design, tiers, protocol(inputs.text("cluster.network")))


def protocol(network: str) -> str:
    """Return the parameter of a step of a network's protocol.

    Args:
        network: Name of the network, a key of `PROTOCOLS`.

    Raises:
        DataError: The network is unknown.

    """
    refuse_unknown("network", [network], PROTOCOLS, "cluster.network")
    return PROTOCOLS[network]
