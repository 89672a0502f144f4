"""Tiers of a cluster's scale-out network, which its chips, ports and design decide."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING

from tco.catalog.system_tree import System
from tco.core.errors import DataError
from tco.core.inputs import Readable, Values
from tco.core.own_values import question_quantity
from tco.core.trace import untraced_value
from tco.system.scale_out_network import switch_radix, tiers_needed

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario


def network_design(system: System) -> str:
    """Return the place of a system's first network switches, `tor` or `leaf`.

    `tor` puts the switches in the racks. `leaf` has a leaf switch for the chips of every rank.
    """
    return str(system.network.get("first_tier", "leaf"))


def tiers_of(
    inputs: ResolvedScenario,
    input_values: Readable,
    switch: str,
    design: str,
    domain: float = 1,
    chips: float | None = None,
) -> int:
    """Return the tiers of switches up to the meeting point of traffic.

    Args:
        inputs: The scenario; its system and the port of its cluster decide.
        input_values: Inputs of the scenario by path.
        switch: Part id of the switch.
        design: Design of the network; `tor` has the first tier in the racks.
        domain: Chips of a domain, one of which takes part in the traffic.
        chips: Chips that the tiers join; None for all chips of the cluster.

    Raises:
        DataError: The port of the cluster is not a rate.

    """
    racks = (inputs.system.racks, inputs.system.chips) if design == "tor" else None
    tapering_path = "cluster.oversubscription"
    capacity_path = f"parts.{switch}.switch_capacity"
    further_arguments = (cluster_port_rate(inputs), racks, domain)
    if chips is not None:
        tapering = input_values.structure(tapering_path)
        capacity = input_values.structure(capacity_path)
        return _tiers_for(chips, tapering, capacity, *further_arguments)
    return input_values.decided(
        _tiers_for, "cluster.chips", tapering_path, capacity_path, rest=further_arguments
    )


def _tiers_for(
    chips: float,
    oversubscription: float,
    capacity: float,
    port: float,
    racks: tuple[float, float] | None,
    domain: float,
) -> int:
    """Return the number of tiers that join some chips.

    Args:
        chips: Chips to join.
        oversubscription: Ratio of the bandwidth below a tier to that above it.
        capacity: Bandwidth of a switch, byte/s.
        port: Rate of a logical port, byte/s.
        racks: Racks and chips of a scale-up domain whose racks have the first tier; the other tiers
            join these racks. None where the racks have no tier.
        domain: Chips of a domain, one of which takes part in the traffic.

    """
    radix = untraced_value(switch_radix(capacity, port))
    endpoints = max(math.ceil(chips / domain), 1) if domain > 1 else chips
    if racks is None:
        return tiers_needed(endpoints, radix, oversubscription)
    rack_count, chip_count = racks
    rack_endpoints = math.ceil(endpoints * rack_count / chip_count - 1e-9)
    if rack_endpoints <= 1:
        return 1
    return 1 + tiers_needed(rack_endpoints, radix, oversubscription)


def refuse_less_than_a_world(inputs: ResolvedScenario, input_values: Values) -> None:
    """Raise `DataError` if a cluster has fewer chips than its smallest unit.

    The unit is a scale-up domain, or a block where optical switches join blocks.
    """
    system = inputs.system
    unit_name, unit_chips = "one scale-up domain", system.chips
    block = system.fabric.get("block")
    if block:
        unit_name, unit_chips = "one block", math.prod(block)
    if input_values.decided(operator.lt, "cluster.chips", rest=(unit_chips * (1 - 1e-9),)):
        where = input_values.input("cluster.chips").where
        chips = input_values.structure("cluster.chips")
        raise DataError(
            f"{where}: cluster.chips is {chips:g}, but {unit_name} of {system.id} has "
            f"{unit_chips:g} chips; expected as many or more"
        )


def cluster_port_rate(inputs: ResolvedScenario) -> float:
    """Return the rate of a logical port of the cluster's network, in byte/s."""
    return port_rate(inputs.text("cluster.port"), "cluster.port")


def port_rate(rate_text: str, input_path: str) -> float:
    """Return a port rate in byte/s.

    Args:
        rate_text: The rate, such as 100G (100 Gb/s) or 50 GB/s.
        input_path: Input path that an error names.

    Raises:
        DataError: The text is not a rate above zero.

    """
    number_text, suffix = rate_text[:-1], rate_text[-1:]
    quantity_text = rate_text
    if suffix in "Gg" and number_text.replace(".", "").isdigit():
        quantity_text = f"{number_text} Gb/s"
    try:
        rate = question_quantity(quantity_text, "byte/s")
    except DataError as error:
        raise DataError(f"{input_path}={rate_text}: {error}") from None
    if not rate > 0:
        raise DataError(f"{input_path}={rate_text}: expected a rate above zero")
    return rate
