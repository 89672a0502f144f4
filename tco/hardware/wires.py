"""What wires allow: the lanes of a chip, the lanes and the number of its switches, the reach of its cables.

The fabric of a system's file states lanes a chip, the switch they end on and the cables they run through; the tree of the same file
holds so many of each. Where the two cannot both be true the system is refused, with the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tco.catalog import Catalogue
from tco.catalog.systems import System
from tco.errors import DataError, unknown
from tco.hardware.fabric import lanes, number, torus_dimensions
from tco.values import Values

NOT_SCALE_UP = ("host", "nic")  # purposes of lanes that are no part of the scale-up fabric


def wire_faults(system: System, catalogue: Catalogue, values: Values) -> Iterator[str]:
    """Yield what the wires cannot do: more lanes than the chip has, more ports than its switches, a link beyond its reach."""
    for faults in (chip_faults, switch_faults, cable_faults):
        yield from (f"{system.where}: {fault}" for fault in faults(system, catalogue, values))


def refuse_bad_wires(system: System, catalogue: Catalogue, values: Values) -> None:
    """Raise `DataError` with everything the wires cannot do."""
    faults = list(wire_faults(system, catalogue, values))
    if faults:
        raise DataError("; ".join(faults))


def used_lanes(system: System) -> dict[str, float]:
    """Return the lanes of one chip by purpose, spares included: a torus has two links in most dimensions, a mesh one to every chip."""
    stated = {name: lanes(system, name) for name in table(system, "lanes")}
    kind = system.fabric.get("kind")
    if kind == "torus":
        links = dict(zip("xyzw", (min(size - 1, 2) for size in sizes(system)), strict=False))
    else:
        links = dict.fromkeys(stated.keys() - set(NOT_SCALE_UP), int(system.chips) - 1) if kind == "mesh" else {}
    return {name: count * links.get(name, 1) for name, count in stated.items()}


def chip_faults(system: System, catalogue: Catalogue, values: Values) -> Iterator[str]:
    """Yield the lanes a chip lacks: for its scale-up links, and for those with its host and NICs."""
    used = used_lanes(system)
    inside = {name: count for name, count in used.items() if name not in NOT_SCALE_UP}
    for attribute, wanted, what in (("lanes", inside, "scale-up lanes"), ("serdes_lanes", used, "lanes in all")):
        have = known(catalogue, values, system.chip, attribute)
        need = sum(wanted.values())
        if have is not None and need > have:
            terms = " + ".join(f"{name} {count:g}" for name, count in wanted.items())
            yield f"fabric.lanes: {terms} = {need:g} {what}, a {system.chip} has {have:g}"


def switch_faults(system: System, catalogue: Catalogue, values: Values) -> Iterator[str]:
    """Yield the ports its switches lack."""
    switch, kind = system.fabric.get("switch"), system.fabric.get("kind")
    if switch is None:
        return
    yield from absent(system, catalogue, switch, "fabric.switch")
    have, standing = values.input(f"parts.{switch}.lanes").value, system.quantity.get(switch, 0.0) / system.racks
    chips, worlds = system.chips / system.racks, min(system.racks, 1.0)  # of one rack; half a rack may hold a whole world
    if kind == "two-level":
        port, planes, tray = (int(number(system, name)) for name in ("port_lanes", "planes", "chips_per_tray"))
        on_plane = chips / planes
        if on_plane * port > have:
            yield f"{on_plane:g} chips a plane by x{port} are {on_plane * port:g} lanes, a {switch} has {have:g}"
        reached, need = standing / planes * port, lanes(system, "plane")
        if reached < need:
            terms = f"{standing:g} {switch} a rack over {planes} planes by x{port}"
            yield f"{terms} are {reached:g} lanes for a chip, fabric.lanes.plane is {need:g} ({tray} chips a tray)"
    elif kind in ("star", "two-star"):
        used = {name: count for name, count in used_lanes(system).items() if name not in NOT_SCALE_UP}
        across = number(system, "cross_share") if kind == "two-star" and system.racks > 1 else 0.0
        need = chips * sum(used.values()) * (1 + across)
        if need > standing * have * (1 + 1e-9):
            terms = f"{chips * worlds:g} chips by {sum(used.values()):g} lanes" + (f" and {across:g} of them to the other rack" if across else "")
            yield f"{terms} are {need * worlds:g} lanes, {standing * worlds:g} {switch} have {standing * have * worlds:g}"


def cable_faults(system: System, catalogue: Catalogue, values: Values) -> Iterator[str]:
    """Yield the links that are longer than their cable reaches."""
    cables = table(system, "cable")
    for name, cable in cables.items():
        yield from absent(system, catalogue, cable, f"fabric.cable.{name}")
    for name, span in table(system, "span").items():
        if isinstance(span, bool) or not isinstance(span, (int, float)):
            raise DataError(f"{system.where}: fabric.span.{name} is {span!r}, expected a number of metres")
        if name not in cables:
            yield f"fabric.span.{name} states a length, fabric.cable.{name} no cable"
            continue
        reach = values.input(f"parts.{cables[name]}.reach").value
        if span > reach:
            yield f"fabric.span.{name}: {span:g} m is beyond the reach of {cables[name]} ({reach:g} m)"


def absent(system: System, catalogue: Catalogue, part: Any, key: str) -> Iterator[str]:
    """Yield that the tree holds none of a part the fabric names; a part nobody knows raises `DataError`."""
    if part not in catalogue.parts:
        raise unknown("part", str(part), catalogue.parts, f"{system.where}: {key}")
    if not system.quantity.get(part):
        yield f"{key} names {part}, of which the tree holds none"


def known(catalogue: Catalogue, values: Values, part: str, attribute: str) -> float | None:
    """Return a value the catalogue or the user states; None where nobody does."""
    path = f"parts.{part}.{attribute}"
    return values.input(path).value if values.has(path) or catalogue.has_part_value(part, attribute) else None


def table(system: System, name: str) -> dict[str, Any]:
    """Return a table of the fabric section; none is an empty one."""
    found = system.fabric.get(name, {})
    if not isinstance(found, dict):
        raise DataError(f"{system.where}: fabric.{name} is {found!r}, expected a table")
    return found


def sizes(system: System) -> list[int]:
    """Return the size of every dimension of a torus, those of one place too."""
    torus_dimensions(system)  # refuses what is no list of sizes, or does not hold the chips
    return list(system.fabric["dims"])
