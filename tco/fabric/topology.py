"""The scale-up fabric: injection, hops, bisection and the uniform all-to-all rate, in closed form.

Bandwidths are per direction. A hop is one intermediate device, a switch or a forwarding chip. Means
are over distinct pairs of chips. Only active lanes count. The numbers of racks, trays, planes,
dimensions and chips are fixed; only lane rates may vary. Tests compare the figures with a graph.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tco.catalog.system_tree import System
from tco.core.errors import DataError, refuse_unknown
from tco.core.formula import formula, least, total
from tco.core.inputs import Readable, Rule, following
from tco.core.trace import scope
from tco.core.types import Quantity, is_finite_number
from tco.core.units import BytePerSecond, Pure
from tco.fabric.collective_costs import lanes_rate
from tco.fabric.torus import Torus, slice_all_to_all, slice_cut, slice_of


@formula("byte/s")
def rate_of_a_lane(bandwidth: BytePerSecond, lanes: Pure) -> Quantity:
    """Rate of one of some equal lanes: B_lane = B / n."""
    return bandwidth / lanes


@formula("byte/s", source="dally2004")
def served_rate(bandwidth: BytePerSecond, destinations: Pure, chips: Pure) -> Quantity:
    """Uniform all-to-all rate of a chip: R = B (N-1) / k.

    Its traffic to k of the other chips shares a bandwidth B.
    """
    return bandwidth * (chips - 1) / destinations


@formula("byte/s", source="dally2004")
def cut_all_to_all(chips: Pure, crossing_bandwidth: BytePerSecond, groups: Pure) -> Quantity:
    """All-to-all rate that the cut between equal groups allows: R = B_c (N-1)/(N (g-1)/g)."""
    return crossing_bandwidth * (chips - 1) / (chips * (groups - 1) / groups)


# Kinds of fabric whose files state lanes, from which the bandwidth of a chip follows.
KINDS_WITH_LANES = ("torus", "two-level")
AXES = "xyzw"  # dimensions of a torus, as `fabric.lanes` names them


class Tray(NamedTuple):
    """Tray with links between its chips."""

    chips: int = 0  # zero where trays have no links of their own
    hops: float = 0.0  # between two chips of the tray


class FabricScope(NamedTuple):
    """One scope of the fabric, with rates in byte/s per chip and direction."""

    scope: str  # `rack` or `world`
    chips: int
    injection: Quantity  # rate at which a chip sends
    all_to_all: Quantity  # rate of a chip that talks to all others
    hops_mean: Quantity
    hops_worst: Quantity
    balanced: bool  # one path joins any two chips, so that no routing spreads the load
    bisection: Any = None  # bandwidth between two halves of the scope
    lanes: Mapping[str, float] = {}  # lanes of a chip by medium
    crossing: Any = None  # bandwidth of a chip to other domains of the same world
    # Whether traffic to other domains uses the ports that serve the inside, and crosses a switch in
    # both domains.
    shared: bool = False
    torus: Torus | None = None
    lane: Any = None  # bandwidth of a lane of the torus
    tray: Tray = Tray()
    # One where a wire joins every pair of chips, otherwise zero; an array for several fabrics.
    mesh: Any = None


def fabric_scopes(system: System, input_values: Readable) -> list[FabricScope]:
    """Return rack and world of a system's scale-up fabric.

    The two scopes of a single rack differ only in name.

    Args:
        system: The system; `system.fabric` names the kind of the fabric.
        input_values: Inputs by path, for the bandwidths of the lanes in byte/s.

    Returns:
        Two scopes, rack first. Bandwidths are in byte/s per chip and direction.

    Raises:
        DataError: The kind is unknown, or the system has too few chips for that kind.

    """
    kind = str(system.fabric.get("kind"))
    refuse_unknown("fabric.kind", [kind], KINDS, system.where)
    if system.chips < 2 and kind != "star":
        raise DataError(
            f"{system.where}: a {kind} joins two chips or more, the tree holds {system.chips:g} "
            f"{system.chip}"
        )
    with scope("fabric"):
        scopes = KINDS[kind](system, input_values)
    return [scopes[0]._replace(scope="rack"), scopes[-1]._replace(scope="world")]


def lanes(system: System, lane_medium: str) -> float:
    """Return the active lanes of a chip on one medium.

    Args:
        system: The system whose `fabric.lanes` states the number.
        lane_medium: Medium or dimension, a key of `fabric.lanes`.

    Raises:
        DataError: The number is missing or not numeric.

    """
    try:
        return float(system.fabric["lanes"][lane_medium])
    except (KeyError, TypeError, ValueError):
        raise DataError(
            f"{system.where}: fabric.lanes.{lane_medium} is missing; expected a number of lanes"
        ) from None


def _active_lanes(system: System) -> float:
    if system.fabric.get("kind") == "torus":
        return slice_of(torus_of(system), int(system.chips)).injection
    return sum(
        lanes(system, lane_medium)
        for lane_medium in ("tray", "plane", "cross_rack")[: 1 + whole_racks(system)]
    )


def from_the_lanes(system: System) -> dict[str, Rule]:
    """Return the rule that derives scale-up bandwidth from a chip's lanes.

    The bandwidth is the rate at which a chip sends. The result is empty for a fabric whose file
    states no lanes.

    Args:
        system: The system with its chip and fabric.

    Returns:
        The rule by input path: the path of the chip's scale-up bandwidth, byte/s.

    Raises:
        DataError: The fabric section lacks a number of lanes, or its numbers do not fit the chips.

    """
    if system.fabric.get("kind") not in KINDS_WITH_LANES:
        return {}
    part = f"parts.{system.chip}"
    return {
        f"{part}.scale_up_bandwidth": following(
            lanes_rate, _active_lanes(system), f"{part}.lane_bandwidth"
        )
    }


def lane_bandwidth(system: System, input_values: Readable) -> Any:
    """Return the rate of a lane, byte/s.

    Where the file states lanes it is an equal share of the scale-up bandwidth, which a user may
    set.
    """
    part = f"parts.{system.chip}"
    if system.fabric.get("kind") not in KINDS_WITH_LANES:
        return input_values[f"{part}.lane_bandwidth"]
    return rate_of_a_lane(input_values[f"{part}.scale_up_bandwidth"], _active_lanes(system))


def fabric_number(system: System, fabric_key: str) -> float:
    """Return a number the fabric section states.

    Args:
        system: The system with its fabric section.
        fabric_key: Key of the fabric section.

    Raises:
        DataError: The key is missing or holds no number.

    """
    fabric_value = system.fabric.get(fabric_key)
    if not is_finite_number(fabric_value):
        raise DataError(
            f"{system.where}: fabric.{fabric_key} is {fabric_value!r}, expected a number"
        )
    return float(fabric_value)


def count(system: System, fabric_key: str) -> int:
    """Return a whole number of one or more that the fabric section states.

    Args:
        system: The system with its fabric section.
        fabric_key: Key of the fabric section.

    Raises:
        DataError: The key is missing, or its value is not a whole number of 1 or more.

    """
    fabric_value = fabric_number(system, fabric_key)
    if fabric_value < 1 or fabric_value != int(fabric_value):
        raise DataError(
            f"{system.where}: fabric.{fabric_key} is {fabric_value:g}, expected a whole number of "
            "1 or more"
        )
    return int(fabric_value)


def whole_racks(system: System) -> int:
    """Return the number of racks of a fabric with two tiers, 1 or 2.

    A world of half a rack counts as one rack.

    Args:
        system: The system with its racks and chips.

    Raises:
        DataError: The racks are neither 1 nor 2, or do not have equal numbers of chips.

    """
    racks = max(1.0, system.racks)
    if racks not in (1, 2) or system.chips % racks:
        kind = system.fabric.get("kind")
        raise DataError(
            f"{system.where}: a {kind} fabric joins one rack or two equal ones, here are "
            f"{system.chips:g} chips in {racks:g} racks"
        )
    return int(racks)


def star(system: System, input_values: Readable) -> list[FabricScope]:
    """Return the scope of one layer of switches that every chip reaches on every lane."""
    rate = input_values[f"parts.{system.chip}.scale_up_bandwidth"]
    lanes_by_medium = dict(system.fabric.get("lanes", {}))
    return [_switch_layer("world", int(system.chips), rate, lanes_by_medium)]


def _switch_layer(
    scope_name: str, chips: int, rate: Quantity, lanes_by_medium: Mapping[str, float]
) -> FabricScope:
    """Return the scope of chips that all reach each other over one switch."""
    return FabricScope(
        scope=scope_name,
        chips=chips,
        injection=rate,
        all_to_all=rate,
        hops_mean=1.0,
        hops_worst=1.0,
        balanced=True,
        bisection=lanes_rate(chips / 2, rate),
        lanes=lanes_by_medium,
    )


def _two_star(system: System, input_values: Readable) -> list[FabricScope]:
    """Return the scopes of two racks with paired switches; a chip reaches those of its rack."""
    rate = input_values[f"parts.{system.chip}.scale_up_bandwidth"]
    chips = int(system.chips)
    racks = whole_racks(system)
    if racks == 1:
        return star(system, input_values)
    crossing = lanes_rate(fabric_number(system, "cross_share"), rate)
    rack_chips = chips // racks
    world_all_to_all = least("world_all_to_all", [rate, cut_all_to_all(chips, crossing, racks)])
    lanes_by_medium = dict(system.fabric.get("lanes", {}))
    rack = _switch_layer("rack", rack_chips, rate, lanes_by_medium)
    world = FabricScope(
        scope="world",
        chips=chips,
        injection=rate,
        all_to_all=world_all_to_all,
        hops_mean=((rack_chips - 1) * 1.0 + (chips - rack_chips) * 2.0) / (chips - 1),
        hops_worst=2.0,
        balanced=True,
        bisection=lanes_rate(rack_chips, crossing),
        lanes=lanes_by_medium,
        crossing=crossing,
        shared=True,
    )
    return [rack, world]


def mesh(system: System, input_values: Readable) -> list[FabricScope]:
    """Return the scope of chips with a wire between each pair."""
    chips = int(system.chips)
    rate = input_values[f"parts.{system.chip}.scale_up_bandwidth"]
    link = lanes_rate(1 / (chips - 1), rate)
    return [
        FabricScope(
            scope="world",
            chips=chips,
            injection=rate,
            all_to_all=rate,
            hops_mean=0.0,
            hops_worst=0.0,
            balanced=True,
            bisection=lanes_rate((chips / 2) ** 2, link),
            lanes=dict(system.fabric.get("lanes", {})),
            mesh=1.0,
        )
    ]


def torus_dimensions(system: System) -> list[tuple[int, float]]:
    """Return size and lanes per link of torus dimensions above size 1.

    Args:
        system: The system; `fabric.dims` states sizes and `fabric.lanes` lanes by axis.

    Returns:
        Pairs (size, lanes per link), in the order of the axes x, y, z and w.

    Raises:
        DataError: The sizes are missing or do not multiply to the chips, or lanes are missing.

    """
    sizes = system.fabric.get("dims")
    if (
        not isinstance(sizes, list)
        or len(sizes) > len(AXES)
        or not all(isinstance(size, int) and size > 0 for size in sizes)
    ):
        raise DataError(
            f"{system.where}: fabric.dims is {sizes!r}, expected the sizes of at most {len(AXES)} "
            "dimensions, such as [4, 4, 4]"
        )
    if math.prod(sizes) != system.chips:
        raise DataError(
            f"{system.where}: a torus of {' x '.join(map(str, sizes))} holds {math.prod(sizes)} "
            f"chips, the tree holds {system.chips:g}"
        )
    return [
        (size, lanes(system, axis)) for size, axis in zip(sizes, AXES, strict=False) if size > 1
    ]


def torus(system: System, input_values: Readable) -> list[FabricScope]:
    """Return the scopes of a torus, whose chips forward for each other.

    The last scope is the whole torus. The slice of a rack precedes it if the torus spans several
    racks.
    """
    rate = lane_bandwidth(system, input_values)
    full_torus = torus_of(system)

    def scope_of(scope_name: str, chips: int) -> FabricScope:
        torus_slice = slice_of(full_torus, chips)
        dimensions = [
            (size, links, lanes_rate(width, rate))
            for size, links, width in zip(
                torus_slice.sizes, torus_slice.directions, torus_slice.lanes, strict=True
            )
            if size > 1
        ]
        return FabricScope(
            scope=scope_name,
            chips=torus_slice.chips,
            injection=lanes_rate(torus_slice.mean_injection, rate),
            all_to_all=least(
                f"{scope_name}_all_to_all",
                [slice_all_to_all(*dimension, torus_slice.chips) for dimension in dimensions],
            ),
            hops_mean=torus_slice.hops_mean,
            hops_worst=float(torus_slice.hops_worst),
            balanced=False,
            bisection=least(
                f"{scope_name}_bisection",
                [slice_cut(*dimension, torus_slice.chips) for dimension in dimensions],
            ),
            lanes=dict(system.fabric["lanes"]),
            torus=full_torus,
            lane=rate,
        )

    world_chips = int(system.chips)
    if system.racks > 1:
        rack_chips = math.ceil(system.chips / system.racks)
        return [scope_of("rack", rack_chips), scope_of("world", world_chips)]
    return [scope_of("world", world_chips)]


def torus_of(system: System) -> Torus:
    """Return the sizes and lanes of a system's torus, and the block of its optical switches.

    The switches can join any multiple of the block to a torus.

    Args:
        system: The system; `fabric.block` states the chips of a block by dimension.

    Raises:
        DataError: The block or the dimensions are invalid.

    """
    dimensions = torus_dimensions(system)
    block = system.fabric.get("block", [])
    if not isinstance(block, list) or (
        block
        and (
            len(block) != len(dimensions)
            or not all(isinstance(size, int) and size > 0 for size in block)
        )
    ):
        raise DataError(
            f"{system.where}: fabric.block is {block!r}, expected a size for each of the "
            f"{len(dimensions)} dimensions, such as [4, 4, 4]"
        )
    return Torus(
        sizes=tuple(size for size, _ in dimensions),
        lanes=tuple(width for _, width in dimensions),
        block=tuple(block),
    )


def _two_level(system: System, input_values: Readable) -> list[FabricScope]:
    """Return the scopes of trays, switch planes of a rack, and direct links between two racks."""
    rate = lane_bandwidth(system, input_values)
    racks = whole_racks(system)
    chips = int(system.chips)
    rack_chips = chips // racks
    tray_chips = count(system, "chips_per_tray")
    planes = count(system, "planes")
    if rack_chips % tray_chips or tray_chips % planes or tray_chips < 2:
        raise DataError(
            f"{system.where}: {rack_chips} chips a rack do not divide into trays of {tray_chips} "
            f"over {planes} planes"
        )
    plane_rate, tray_rate = (
        lanes_rate(lanes(system, lane_medium), rate) for lane_medium in ("plane", "tray")
    )
    injection = lanes_rate(lanes(system, "plane") + lanes(system, "tray"), rate)
    rack_lanes = {lane_medium: lanes(system, lane_medium) for lane_medium in ("tray", "plane")}
    spare_lanes = {}
    if "plane_spare" in system.fabric["lanes"]:
        spare_lanes["plane_spare"] = lanes(system, "plane_spare")
    tray = Tray(chips=tray_chips, hops=fabric_number(system, "tray_hops"))
    rates_over = partial(
        _two_level_rates, rack_chips, tray_chips, planes, plane_rate, tray_rate, bool(tray.hops)
    )
    hops_mean, hops_worst = two_level_hops(1, rack_chips, tray_chips, planes, tray.hops)
    rack = FabricScope(
        scope="rack",
        chips=rack_chips,
        injection=injection,
        all_to_all=least("rack_all_to_all", rates_over(racks=1)),
        hops_mean=hops_mean,
        hops_worst=hops_worst,
        balanced=False,
        bisection=lanes_rate(rack_chips / 2, plane_rate),
        lanes=rack_lanes | spare_lanes,
        tray=tray,
    )
    if racks == 1:
        return [rack]
    crossing = lanes_rate(lanes(system, "cross_rack"), rate)
    hops_mean, hops_worst = two_level_hops(racks, rack_chips, tray_chips, planes, tray.hops)
    world = FabricScope(
        scope="world",
        chips=chips,
        injection=input_values[f"parts.{system.chip}.scale_up_bandwidth"],
        all_to_all=least(
            "world_all_to_all", [*rates_over(racks=racks), cut_all_to_all(chips, crossing, racks)]
        ),
        hops_mean=hops_mean,
        hops_worst=hops_worst,
        balanced=False,
        bisection=lanes_rate(rack_chips, crossing),
        lanes=rack_lanes | {"cross_rack": lanes(system, "cross_rack")} | spare_lanes,
        crossing=crossing,
        tray=tray,
    )
    return [rack, world]


def _two_level_rates(
    rack_chips: int,
    tray_chips: int,
    planes: int,
    plane_rate: Quantity,
    tray_rate: Quantity,
    tray_switched: bool,
    racks: int,
) -> list[Quantity]:
    """Return the all-to-all rate that each group of lanes allows, byte/s.

    Balanced routing reaches the lowest of these rates.

    Traffic to other trays crosses a plane once. Traffic to other planes crosses the tray once, to a
    chip on the target plane. Without a tray switch it can use only the links to such chips. Traffic
    within a tray and plane can cross either the plane or the tray.
    """
    chips = racks * rack_chips
    chips_per_plane = tray_chips // planes  # in one tray
    other_trays = rack_chips - tray_chips  # chips of a rack in other trays
    other_planes = rack_chips - rack_chips // planes  # chips of a rack on other planes
    neighbours = chips_per_plane - 1  # chips on the same tray and plane
    rates = []
    if other_trays:
        rates.append(served_rate(plane_rate, racks * other_trays, chips))
    if planes > 1:
        link_share = (tray_chips - chips_per_plane) / (tray_chips - 1)
        to_planes = tray_rate if tray_switched else lanes_rate(link_share, tray_rate)
        rates.append(served_rate(to_planes, racks * other_planes, chips))
    if neighbours:
        link_share = neighbours / (tray_chips - 1)
        to_neighbours = tray_rate if tray_switched else lanes_rate(link_share, tray_rate)
        served = other_trays + neighbours + (other_planes if tray_switched else 0)
        both_rates = total("plane_and_tray", [plane_rate, to_neighbours])
        rates.append(served_rate(both_rates, racks * served, chips))
    return rates


def two_level_hops(
    racks: int, in_rack: int, tray_chips: int, planes: int, tray_hops: float
) -> tuple[float, float]:
    """Return the mean and the largest number of devices between two chips of a two-level fabric.

    The fabric looks the same from every chip, so distances from the first chip suffice.
    """
    chip_positions = itertools.product(
        range(racks), range(in_rack // tray_chips), range(tray_chips)
    )
    hop_counts = [
        _hops_from_first_chip(*chip_position, planes, tray_hops)
        for chip_position in chip_positions
        if any(chip_position)
    ]
    return sum(hop_counts) / len(hop_counts), max(hop_counts)


def _hops_from_first_chip(
    rack: int, tray: int, position: int, planes: int, tray_hops: float
) -> float:
    is_same_plane = position % planes == 0
    if tray:
        hops_in_rack = 1.0 if is_same_plane else 2.0 + tray_hops
    elif position:
        hops_in_rack = min(tray_hops, 1.0) if is_same_plane else tray_hops
    else:
        hops_in_rack = 0.0
    # The first chips of two racks are linked directly; from another chip one chip forwards.
    crossing_hops = 1.0 if rack and (tray or position) else 0.0
    return hops_in_rack + crossing_hops


def hops_apart(system: System, rack: int, tray: int, position: int) -> float:
    """Return the devices between the first chip of a two-level fabric and another chip.

    Args:
        system: A system with a two-level fabric.
        rack: Rack of the other chip, from 0.
        tray: Tray of the other chip in its rack, from 0.
        position: Position of the other chip in its tray, from 0.

    Returns:
        Number of intermediate devices, which are switches or forwarding chips.

    Raises:
        DataError: The fabric is of another kind or incomplete, or no chip has this position.

    """
    if system.fabric.get("kind") != "two-level":
        raise DataError(
            f"{system.where}: chips stand at no place of a tray, the fabric is no two-level one"
        )
    racks = whole_racks(system)
    tray_chips = count(system, "chips_per_tray")
    planes = count(system, "planes")
    if not (
        0 <= rack < racks
        and 0 <= tray < system.chips / racks / tray_chips
        and 0 <= position < tray_chips
    ):
        raise DataError(
            f"{system.id} has no chip at rack {rack:g}, tray {tray:g}, position {position:g}"
        )
    return _hops_from_first_chip(rack, tray, position, planes, fabric_number(system, "tray_hops"))


KINDS: dict[str, Callable[[System, Readable], list[FabricScope]]] = {
    "star": star,
    "two-star": _two_star,
    "mesh": mesh,
    "torus": torus,
    "two-level": _two_level,
}


def port_bandwidth(system: System, input_values: Readable) -> Any:
    """Return the bandwidth of a switch port for lanes of a chip.

    Args:
        system: The system; `fabric.port_lanes` states the lanes of a port.
        input_values: Inputs by path, for the bandwidth of a lane in byte/s.

    Returns:
        Bandwidth in byte/s per direction; None where the file states no lanes of a port.

    Raises:
        DataError: The lanes of a port are not a whole number of 1 or more.

    """
    if "port_lanes" not in system.fabric:
        return None
    return lanes_rate(count(system, "port_lanes"), lane_bandwidth(system, input_values))
