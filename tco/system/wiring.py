"""Wiring checks of a system: chip lanes, switch ports and cable reach.

The fabric of a system's file states the lanes per chip, their switch and their cables. The tree of
the same file states the number of these parts. Where the two cannot both be true, the system is
refused with the arithmetic.
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

SWITCHLESS = ("torus", "mesh")  # fabrics whose chips are wired to each other
NOT_SCALE_UP = ("host", "nic")  # purposes of lanes that are no part of the scale-up fabric


def _wire_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the faults in a system's wiring, as messages.

    A fault is more lanes than the chip has, more ports than its switches have, or a link beyond its
    reach.
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
            beyond its reach, or a fault of the cards.

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
    stated = input_values.has(rate) or catalogue.has_part_value(system.chip, "scale_up_bandwidth")
    if system.chips > 1 and stated and somewhere(input_values[rate] <= 0):
        raise DataError(
            f"{rate} is 0, and nothing else joins the {system.chips:g} chips of {system.id} to a "
            "scale-up domain"
        )


def unstated(system: System, catalogue: Catalogue) -> Iterator[str]:
    """Yield messages on missing wiring data: the switch and the chip's lanes.

    A complete system states this data so that its wires can be judged.

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
    """Return the lanes of a chip by purpose, with spares.

    A torus has two links in most dimensions, a mesh one to every chip.
    """
    stated = {
        lane_purpose: lanes(system, lane_purpose)
        for lane_purpose in _fabric_section_table(system, "lanes")
    }
    kind = system.fabric.get("kind")
    if kind == "torus":
        links = dict(zip(AXES, (min(size - 1, 2) for size in sizes(system)), strict=False))
    else:
        links = (
            dict.fromkeys(stated.keys() - set(NOT_SCALE_UP), int(system.chips) - 1)
            if kind == "mesh"
            else {}
        )
    return {
        lane_purpose: lane_count * links.get(lane_purpose, 1)
        for lane_purpose, lane_count in stated.items()
    }


def scale_up(used: dict[str, float]) -> dict[str, float]:
    """Return the purposes that are part of the scale-up fabric."""
    return {
        lane_purpose: lane_count
        for lane_purpose, lane_count in used.items()
        if lane_purpose not in NOT_SCALE_UP
    }


def _chip_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the lanes that a chip lacks for its scale-up links and for its host and NICs."""
    used = used_lanes(system)
    inside = scale_up(used)
    for attribute, expected_lanes, what in (
        ("lanes", inside, "scale-up lanes"),
        ("serdes_lanes", used, "lanes in all"),
    ):
        path = f"parts.{system.chip}.{attribute}"
        if not (input_values.has(path) or catalogue.has_part_value(system.chip, attribute)):
            continue
        have, need = input_values.structure(path), sum(expected_lanes.values())
        if need > have:
            terms = " + ".join(
                f"{lane_purpose} {lane_count:g}"
                for lane_purpose, lane_count in expected_lanes.items()
            )
            yield f"fabric.lanes: {terms} = {need:g} {what}, a {system.chip} has {have:g}"


def _switch_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the ports its switches lack."""
    switch, kind = system.fabric.get("switch"), system.fabric.get("kind")
    if switch is None:
        return
    yield from _absent(system, catalogue, switch, "fabric.switch")
    have = input_values.structure(f"parts.{switch}.lanes")
    standing = system.quantity.get(switch, 0.0)
    if kind == "two-level":
        racks = whole_racks(system)
        port = count(system, "port_lanes")
        planes = count(system, "planes")
        on_plane, of_plane = system.chips / racks / planes, standing / racks / planes
        if on_plane * port > have:
            yield (
                f"{on_plane:g} chips a plane by x{port} are {on_plane * port:g} lanes, a "
                f"{switch} has {have:g}"
            )
        if of_plane * port < lanes(system, "plane"):
            yield (
                f"{of_plane:g} {switch} a plane by x{port} give a chip {of_plane * port:g} "
                f"lanes, fabric.lanes.plane is {lanes(system, 'plane'):g}"
            )
    elif kind in ("star", "two-star"):
        switch_lanes = sum(scale_up(used_lanes(system)).values())
        across = (
            fabric_number(system, "cross_share")
            if kind == "two-star" and whole_racks(system) > 1
            else 0.0
        )
        need = system.chips * switch_lanes * (1 + across)
        if need > standing * have * (1 + 1e-9):
            crossing = f", {across:g} of them once more to the other rack," if across else ""
            yield (
                f"{system.chips:g} chips by {switch_lanes:g} lanes{crossing} are {need:g}, "
                f"{standing:g} {switch} have {standing * have:g}"
            )


def _cable_faults(system: System, catalogue: Catalogue, input_values: Values) -> Iterator[str]:
    """Yield the links that are longer than their cable reaches."""
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
    """Return the size of every dimension of a torus, those of one place too."""
    torus_dimensions(system)  # refuses what is no list of sizes, or does not hold the chips
    return list(system.fabric["dims"])
