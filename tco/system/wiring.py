"""Wiring checks of a system: chip lanes, switch ports and cable reach.

The file of a system states the lanes per chip, their switch and their cables in its fabric section.
The tree of the same file states the number of these parts. An error shows the arithmetic where the
two contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tco.catalog import Catalogue
from tco.catalog.system_tree import System
from tco.core.errors import DataError, unknown
from tco.core.formula import somewhere
from tco.core.inputs import Values
from tco.core.memory import once_per_owner
from tco.core.types import JsonObject, is_finite_number
from tco.fabric.topology import AXES, count, fabric_number, lanes, torus_dimensions, whole_racks
from tco.system.scale_out_network import nic_faults

SWITCHLESS = ("torus", "mesh")  # kinds of fabric with direct links between chips
NOT_SCALE_UP = ("host", "nic")  # purposes of lanes outside the scale-up fabric


def _wire_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the faults in a system's wiring, as messages.

    A fault is more lanes than the chip has, more ports than its switches have, or a link longer
    than the reach of its cable.
    """
    for faults in (
        _chip_faults(system, catalogue, input_values),
        _switch_faults(system, catalogue, input_values),
        _cable_faults(system, catalogue, input_values),
        system.once("faults of cards", lambda: list(nic_faults(system))),
    ):
        yield from (f"{system.where}: {fault}" for fault in faults)


def refuse_bad_wires(system: System, catalogue: Catalogue, input_values: Values) -> None:
    """Raise `DataError` with all faults in a system's wiring.

    Args:
        system: System with its fabric.
        catalogue: Holds the parts.
        input_values: Values of the inputs by path.

    Raises:
        DataError: There are more lanes than the chip has, more ports than the switches have, a link
            longer than the reach of its cable, or a fault of the cards.

    """
    faults = list(_wire_faults(system, catalogue, input_values))
    if faults:
        raise DataError("; ".join(faults))


def refuse_unjoined(system: System, catalogue: Catalogue, input_values: Values) -> None:
    """Raise `DataError` for a scale-up domain of several chips without bandwidth.

    Args:
        system: System with the chips of a scale-up domain.
        catalogue: Holds the parts.
        input_values: Values of the inputs by path.

    Raises:
        DataError: The domain has several chips, and a stated scale-up bandwidth is 0.

    """
    rate = f"parts.{system.chip}.scale_up_bandwidth"
    is_stated = input_values.has(rate) or catalogue.has_part_value(
        system.chip, "scale_up_bandwidth"
    )
    if system.chips > 1 and is_stated and somewhere(input_values[rate] <= 0):
        raise DataError(
            f"{rate} is 0, and nothing else joins the {system.chips:g} chips of {system.id} to a "
            "scale-up domain"
        )


def unstated(system: System, catalogue: Catalogue) -> Iterator[str]:
    """Yield a message for each missing datum that the checks of the wiring need.

    The data are the switch, the lanes of the fabric and the lanes of the chip.

    Args:
        system: System with its fabric.
        catalogue: Holds the parts.

    """
    if system.fabric.get("kind") not in SWITCHLESS and "switch" not in system.fabric:
        yield (
            f"{system.where}: fabric.switch is missing; it names the part of the tree that the "
            "chips' lanes end on"
        )
    used = _fabric_section_table(system, "lanes")
    required_attributes = ["lanes", *(["serdes_lanes"] if set(NOT_SCALE_UP) & used.keys() else [])]
    for attribute in required_attributes:
        if not catalogue.has_part_value(system.chip, attribute):
            yield (
                f"{system.where}: parts.{system.chip}.{attribute} is missing, by which "
                "fabric.lanes are judged"
            )
    if not used:
        yield f"{system.where}: fabric.lanes is missing: the lanes of one chip by purpose"


@once_per_owner
def used_lanes(system: System) -> dict[str, float]:
    """Return the lanes of a chip by purpose, including spare lanes.

    In a torus the file states the lanes of one link, and a chip has one or two links in a
    dimension. In a mesh the file states the lanes to one other chip.
    """
    stated_lanes = {
        lane_purpose: lanes(system, lane_purpose)
        for lane_purpose in _fabric_section_table(system, "lanes")
    }
    kind = system.fabric.get("kind")
    links: dict[str, int] = {}  # by purpose
    if kind == "torus":
        links = dict(zip(AXES, (min(size - 1, 2) for size in sizes(system)), strict=False))
    elif kind == "mesh":
        links = dict.fromkeys(scale_up(stated_lanes), int(system.chips) - 1)
    return {
        lane_purpose: lane_count * links.get(lane_purpose, 1)
        for lane_purpose, lane_count in stated_lanes.items()
    }


def scale_up(used: dict[str, float]) -> dict[str, float]:
    """Return the lanes of the scale-up fabric, by purpose."""
    return {
        lane_purpose: lane_count
        for lane_purpose, lane_count in used.items()
        if lane_purpose not in NOT_SCALE_UP
    }


def _chip_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the lanes that a chip lacks for its scale-up links and for its host and NICs."""
    used = used_lanes(system)
    inside = scale_up(used)
    for attribute, needed_lanes, description in (
        ("lanes", inside, "scale-up lanes"),
        ("serdes_lanes", used, "lanes in all"),
    ):
        path = f"parts.{system.chip}.{attribute}"
        if not (input_values.has(path) or catalogue.has_part_value(system.chip, attribute)):
            continue
        available = input_values.structure(path)
        needed = sum(needed_lanes.values())
        if needed > available:
            terms = " + ".join(
                f"{lane_purpose} {lane_count:g}"
                for lane_purpose, lane_count in needed_lanes.items()
            )
            yield (
                f"fabric.lanes: {terms} = {needed:g} {description}, a {system.chip} has "
                f"{available:g}"
            )


def _switch_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the ports that the switches lack for the lanes of the chips."""
    switch = system.fabric.get("switch")
    if switch is None:
        return
    yield from _absent(system, catalogue, switch, "fabric.switch")
    switch_lanes = input_values.structure(f"parts.{switch}.lanes")
    kind = system.fabric.get("kind")
    if kind == "two-level":
        yield from _plane_faults(system, switch, switch_lanes)
    elif kind in ("star", "two-star"):
        yield from _star_faults(system, switch, switch_lanes)


def _plane_faults(system: System, switch: str, switch_lanes: float) -> Iterator[str]:
    """Yield the ports that the switches of a plane lack, and the lanes that reach no switch."""
    racks = whole_racks(system)
    port = count(system, "port_lanes")
    planes = count(system, "planes")
    plane_chips = system.chips / racks / planes
    plane_switches = system.quantity.get(switch, 0.0) / racks / planes
    if plane_chips * port > switch_lanes:
        yield (
            f"{plane_chips:g} chips a plane by x{port} are {plane_chips * port:g} lanes, a "
            f"{switch} has {switch_lanes:g}"
        )
    if plane_switches * port < lanes(system, "plane"):
        yield (
            f"{plane_switches:g} {switch} a plane by x{port} give a chip {plane_switches * port:g} "
            f"lanes, fabric.lanes.plane is {lanes(system, 'plane'):g}"
        )


def _star_faults(system: System, switch: str, switch_lanes: float) -> Iterator[str]:
    """Yield the ports that one layer of switches lacks for all chips."""
    switches = system.quantity.get(switch, 0.0)
    chip_lanes = sum(scale_up(used_lanes(system)).values())
    cross_share = 0.0
    if system.fabric.get("kind") == "two-star" and whole_racks(system) > 1:
        cross_share = fabric_number(system, "cross_share")
    needed = system.chips * chip_lanes * (1 + cross_share)
    if needed > switches * switch_lanes * (1 + 1e-9):
        crossing = f", {cross_share:g} of them once more to the other rack," if cross_share else ""
        yield (
            f"{system.chips:g} chips by {chip_lanes:g} lanes{crossing} are {needed:g}, "
            f"{switches:g} {switch} have {switches * switch_lanes:g}"
        )


def _cable_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the links that are longer than the reach of their cable."""
    cables = _fabric_section_table(system, "cable")
    for link_name, cable in cables.items():
        yield from _absent(system, catalogue, cable, f"fabric.cable.{link_name}")
    for link_name, span in _fabric_section_table(system, "span").items():
        if not is_finite_number(span):
            raise DataError(
                f"{system.where}: fabric.span.{link_name} is {span!r}, expected a number of metres"
            )
        if link_name not in cables:
            yield f"fabric.span.{link_name} states a length, fabric.cable.{link_name} no cable"
            continue
        reach = input_values.structure(f"parts.{cables[link_name]}.reach")
        if span > reach:
            yield (
                f"fabric.span.{link_name}: {span:g} m is beyond the reach of {cables[link_name]} "
                f"({reach:g} m)"
            )


def _absent(system: System, catalogue: Catalogue, part: Any, fabric_path: str) -> Iterator[str]:
    if part not in catalogue.parts:
        raise unknown("part", str(part), catalogue.parts, f"{system.where}: {fabric_path}")
    if not system.quantity.get(part):
        yield f"{fabric_path} names {part}, of which the tree holds none"


def _fabric_section_table(system: System, section_name: str) -> JsonObject:
    fabric_table = system.fabric.get(section_name, {})
    if not isinstance(fabric_table, dict):
        raise DataError(
            f"{system.where}: fabric.{section_name} is {fabric_table!r}, expected a table"
        )
    return fabric_table


def sizes(system: System) -> list[int]:
    """Return the size of every dimension of a torus, including dimensions of size 1.

    Raises:
        DataError: The sizes are missing or do not multiply to the chips.

    """
    torus_dimensions(system)  # checks the sizes
    return list(system.fabric["dims"])
