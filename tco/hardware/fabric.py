"""The scale-up fabric: injection, hops, bisection and the uniform all-to-all rate, in closed form.

Bandwidths are per direction. A hop is one intermediate device (a switch or a forwarding chip). Only active lanes count. Numbers
of racks, trays, planes and chips are structure; lane rates are values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tco.catalog.systems import System
from tco.errors import DataError
from tco.formula import formula
from tco.units import BytePerSecond, Pure
from tco.values import Values


@formula(unit="byte/s", source="tco-model")
def lane_group_bandwidth(lanes: Pure, lane_bandwidth: BytePerSecond) -> Any:
    """Bandwidth of a bundle of lanes per direction: B = lanes x lane rate."""
    return lanes * lane_bandwidth


@formula(unit="byte/s", source="dally2004")
def two_level_rack_all_to_all(chips: Pure, chips_per_tray: Pure, plane: BytePerSecond, tray: BytePerSecond, crossing: Pure) -> Any:
    """Uniform all-to-all rate a chip reaches in one rack of trays and switch planes.

    R = min(B_X (n-1)/(n-c), B_P (n-1)/((c-1) + crossing (n-c)(c-1)/c)); crossing is 1 where a plane reaches only one chip
    of each tray, so that traffic to another plane passes the tray as well, and 0 where one switch reaches the whole rack.
    """
    over_planes = plane * (chips - 1) / (chips - chips_per_tray)
    over_tray = tray * (chips - 1) / ((chips_per_tray - 1) + crossing * (chips - chips_per_tray) * (chips_per_tray - 1) / chips_per_tray)
    return np.minimum(over_planes, over_tray)


@formula(unit="byte/s", source="dally2004")
def cut_all_to_all(chips: Pure, crossing_bandwidth: BytePerSecond, groups: Pure) -> Any:
    """All-to-all rate that the cut between equal groups allows: R = B_c (N-1)/(N (g-1)/g)."""
    return crossing_bandwidth * (chips - 1) / (chips * (groups - 1) / groups)


@formula(unit="byte/s", source="tco-model")
def slower_rate(rack_rate: BytePerSecond, world_rate: BytePerSecond) -> Any:
    """The rate of a path through two parts of a fabric: R = min(R_1, R_2)."""
    return np.minimum(rack_rate, world_rate)


@dataclass(slots=True)
class Tier:
    """One scope of the fabric as collectives see it: its chips, the rate a chip injects, and what all-to-all reaches."""

    scope: str
    chips: int
    injection: Any
    all_to_all: Any
    hops: float  # mean intermediate devices over distinct pairs
    balanced: bool  # one path only: no load balancing needed


def lanes(system: System, name: str) -> float:
    """Return the active lanes of a chip on one medium."""
    try:
        return float(system.fabric["lanes"][name])
    except KeyError:
        raise DataError(f"{system.where}: fabric.lanes.{name} is missing") from None


def fabric_tiers(system: System, values: Values) -> list[Tier]:
    """Return the scopes of a system's scale-up fabric, the smaller first."""
    kind = system.fabric.get("kind")
    if kind == "star":
        rate = values[f"parts.{system.chip}.scale_up_bandwidth"]
        return [Tier("world", int(system.chips), rate, rate, 1.0, True)]
    if kind == "two-level":
        return two_level_tiers(system, values)
    raise DataError(f"{system.where}: fabric.kind {kind!r} is not one of star, two-level")


def two_level_tiers(system: System, values: Values) -> list[Tier]:
    """Return rack and world of a fabric of trays, switch planes and direct links between paired racks."""
    rate = values[f"parts.{system.chip}.lane_bandwidth"]
    racks, chips = int(system.racks), int(system.chips)
    in_rack, tray_chips, planes = chips // racks, int(system.fabric["chips_per_tray"]), int(system.fabric["planes"])
    plane, tray, cross = (lane_group_bandwidth(lanes(system, name), rate) for name in ("plane", "tray", "cross_rack"))
    # `crossing` is the share of the other-tray traffic that must first change planes on the tray
    rack_rate = two_level_rack_all_to_all(in_rack, tray_chips, plane, tray, 1.0 if planes > 1 else 0.0)
    world_rate = slower_rate(rack_rate, cut_all_to_all(chips, cross, racks))
    inside = lane_group_bandwidth(lanes(system, "plane") + lanes(system, "tray"), rate)
    world = values[f"parts.{system.chip}.scale_up_bandwidth"]
    tray_hops = float(system.fabric["tray_hops"])
    return [
        Tier("rack", in_rack, inside, rack_rate, mean_hops(1, in_rack, tray_chips, planes, tray_hops), False),
        Tier("world", chips, world, world_rate, mean_hops(racks, in_rack, tray_chips, planes, tray_hops), False),
    ]


def mean_hops(racks: int, in_rack: int, tray_chips: int, planes: int, tray_hops: float) -> float:
    """Mean intermediate devices between distinct chips of a two-level fabric: counted exactly over the classes of pairs.

    Inside a tray a pair is `tray_hops` switches apart, or one plane switch if that is nearer and both are on one plane.
    In another tray it is one switch on the same plane; on another plane the tray link and its chip are passed as well. The
    other rack adds the paired chip.
    """
    per_plane = tray_chips / planes  # chips of one tray that share a plane
    trays = in_rack // tray_chips
    same_tray = min(tray_hops, 1.0) * (per_plane - 1) + tray_hops * (tray_chips - per_plane)
    other_tray = (trays - 1) * (per_plane * 1.0 + (tray_chips - per_plane) * (1.0 + 1.0 + tray_hops))
    inside = same_tray + other_tray  # sum over the other chips of the own rack
    across = (racks - 1) * (inside + (in_rack - 1))  # every pair but the direct one passes the paired chip
    return (inside + across) / (racks * in_rack - 1)
