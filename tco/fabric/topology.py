"""The scale-up fabric: injection, hops, bisection and the uniform all-to-all rate, in closed form.

Bandwidths are per direction. A hop is one intermediate device, a switch or a forwarding chip; means
are over distinct pairs. Only active lanes count. Racks, trays, planes, dimensions and chips are
structure; lane rates are values. Tests hold the same figures to a graph.
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


LANED = ("torus", "two-level")  # fabrics told lane by lane, whose bandwidth follows
AXES = "xyzw"  # dimensions of a torus, as fabric.lanes names them


class FabricScope(NamedTuple):
    """One scope of the fabric: its chips, what the lanes give them, and what tells its kind."""

    scope: str
    chips: int
    injection: Quantity
    all_to_all: Quantity
    hops_mean: Quantity
    hops_worst: Quantity
    balanced: bool  # one path between any two chips: no load balancing needed
    bisection: Any = None
    lanes: Mapping[str, float] = {}
    crossing: Any = None  # bandwidth a chip has to other domains of the same world
    # what crosses passes the ports that serve the inside, and a switch in either domain
    shared: bool = False
    torus: Torus | None = None
    lane: Any = None  # bandwidth of a lane of the torus
    # chips of a tray and hops between them, where trays have links of their own
    tray: tuple[int, float] = (
        0,
        0.0,
    )
    # one where every chip is wired to every other; an array of ones and zeros for several fabrics
    mesh: Any = None


def fabric_scopes(system: System, input_values: Readable) -> list[FabricScope]:
    """Return rack and world of a system's scale-up fabric.

    The two scopes of a single rack are alike.

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
        DataError: The number is missing or is no number.

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

    The bandwidth is the rate at which a chip sends. Further quantities of the fabric depend on this
    bandwidth. The result is empty for a fabric without lanes.

    Args:
        system: The system with its chip and fabric.

    Returns:
        The rule by input path: the path of the chip's scale-up bandwidth, byte/s.

    Raises:
        DataError: The fabric section lacks a number of lanes, or its numbers do not fit the chips.

    """
    if system.fabric.get("kind") not in LANED:
        return {}
    part = f"parts.{system.chip}"
    return {
        f"{part}.scale_up_bandwidth": following(
            lanes_rate, _active_lanes(system), f"{part}.lane_bandwidth"
        )
    }


def lane_bandwidth(system: System, input_values: Readable) -> Any:
    """Return the rate of a lane: its share of what the chip sends at, which a user may set."""
    part = f"parts.{system.chip}"
    if system.fabric.get("kind") not in LANED:
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
        DataError: The key is missing, or its value is no whole number of 1 or more.

    """
    fabric_value = fabric_number(system, fabric_key)
    if fabric_value < 1 or fabric_value != int(fabric_value):
        raise DataError(
            f"{system.where}: fabric.{fabric_key} is {fabric_value:g}, expected a whole number of "
            "1 or more"
        )
    return int(fabric_value)


def whole_racks(system: System) -> int:
    """Return the racks of a fabric of two tiers, 1 or 2.

    A world of half a rack counts as a rack.

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
    """One layer of switches that every chip reaches on every lane."""
    rate, chips = input_values[f"parts.{system.chip}.scale_up_bandwidth"], int(system.chips)
    return [
        FabricScope(
            "world",
            chips,
            rate,
            rate,
            1.0,
            1.0,
            True,
            lanes_rate(chips / 2, rate),
            dict(system.fabric.get("lanes", {})),
        )
    ]


def _two_star(system: System, input_values: Readable) -> list[FabricScope]:
    """Two racks of switches, each chip on those of its own rack, the switches paired across."""
    rate = input_values[f"parts.{system.chip}.scale_up_bandwidth"]
    chips = int(system.chips)
    racks = whole_racks(system)
    if racks == 1:
        return star(system, input_values)
    across = lanes_rate(fabric_number(system, "cross_share"), rate)
    inside = chips // racks
    world = least("world_all_to_all", [rate, cut_all_to_all(chips, across, racks)])
    mean = ((inside - 1) * 1.0 + (chips - inside) * 2.0) / (chips - 1)
    wires = dict(system.fabric.get("lanes", {}))
    return [
        FabricScope(
            "rack", inside, rate, rate, 1.0, 1.0, True, lanes_rate(inside / 2, rate), wires
        ),
        FabricScope(
            "world",
            chips,
            rate,
            world,
            mean,
            2.0,
            True,
            lanes_rate(inside, across),
            wires,
            crossing=across,
            shared=True,
        ),
    ]


def mesh(system: System, input_values: Readable) -> list[FabricScope]:
    """Every chip wired to every other."""
    chips, rate = int(system.chips), input_values[f"parts.{system.chip}.scale_up_bandwidth"]
    link = lanes_rate(1 / (chips - 1), rate)
    wires = dict(system.fabric.get("lanes", {}))
    return [
        FabricScope(
            "world",
            chips,
            rate,
            rate,
            0.0,
            0.0,
            True,
            lanes_rate((chips / 2) ** 2, link),
            wires,
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

    They are the whole torus, and the slice of a rack where it spans several.
    """
    rate, full_torus = lane_bandwidth(system, input_values), torus_of(system)

    def extent(scope_name: str, chips: int) -> FabricScope:
        part = slice_of(full_torus, chips)
        spanned = [
            (size, n, lanes_rate(width, rate))
            for size, n, width in zip(part.sizes, part.directions, part.lanes, strict=True)
            if size > 1
        ]
        return FabricScope(
            scope_name,
            part.chips,
            lanes_rate(part.mean_injection, rate),
            least(
                f"{scope_name}_all_to_all",
                [slice_all_to_all(size, n, link, part.chips) for size, n, link in spanned],
            ),
            part.hops_mean,
            float(part.hops_worst),
            False,
            least(
                f"{scope_name}_bisection",
                [slice_cut(size, n, link, part.chips) for size, n, link in spanned],
            ),
            dict(system.fabric["lanes"]),
            torus=full_torus,
            lane=rate,
        )

    rack = [extent("rack", math.ceil(system.chips / system.racks))] if system.racks > 1 else []
    return [*rack, extent("world", int(system.chips))]


def torus_of(system: System) -> Torus:
    """Return the structure of a torus, with the block of its optical switches.

    They close multiples of the block into tori of their own.
    """
    dimensions, block = torus_dimensions(system), system.fabric.get("block", [])
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
        tuple(size for size, _ in dimensions), tuple(width for _, width in dimensions), tuple(block)
    )


def _two_level(system: System, input_values: Readable) -> list[FabricScope]:
    """Return the scopes of trays, switch planes of a rack, and direct links between two racks."""
    rate = lane_bandwidth(system, input_values)
    racks, chips = whole_racks(system), int(system.chips)
    inside = chips // racks
    tray_chips = count(system, "chips_per_tray")
    planes = count(system, "planes")
    if inside % tray_chips or tray_chips % planes or tray_chips < 2:
        raise DataError(
            f"{system.where}: {inside} chips a rack do not divide into trays of {tray_chips} over "
            f"{planes} planes"
        )
    plane, tray = (
        lanes_rate(lanes(system, lane_medium), rate) for lane_medium in ("plane", "tray")
    )
    injection = lanes_rate(lanes(system, "plane") + lanes(system, "tray"), rate)
    in_rack = {lane_medium: lanes(system, lane_medium) for lane_medium in ("tray", "plane")}
    spare = (
        {"plane_spare": lanes(system, "plane_spare")}
        if "plane_spare" in system.fabric["lanes"]
        else {}
    )
    hops = fabric_number(system, "tray_hops")
    mean, worst = two_level_hops(1, inside, tray_chips, planes, hops)
    rate_of = partial(_two_level_rates, inside, tray_chips, planes, plane, tray, bool(hops))
    rate_inside = least("rack_all_to_all", rate_of(1))
    cut, trays = lanes_rate(inside / 2, plane), (tray_chips, hops)
    rack = FabricScope(
        "rack", inside, injection, rate_inside, mean, worst, False, cut, in_rack | spare, tray=trays
    )
    if racks == 1:
        return [rack]
    cross = lanes_rate(lanes(system, "cross_rack"), rate)
    world = FabricScope(
        "world",
        chips,
        input_values[f"parts.{system.chip}.scale_up_bandwidth"],
        least("world_all_to_all", [*rate_of(racks), cut_all_to_all(chips, cross, racks)]),
        *two_level_hops(racks, inside, tray_chips, planes, hops),
        False,
        lanes_rate(inside, cross),
        in_rack | {"cross_rack": lanes(system, "cross_rack")} | spare,
        crossing=cross,
        tray=trays,
    )
    return [rack, world]


def _two_level_rates(
    inside: int,
    tray_chips: int,
    planes: int,
    plane: Quantity,
    tray: Quantity,
    tray_switched: bool,
    racks: int,
) -> list[Quantity]:
    """Return the all-to-all rate that each group of lanes allows.

    Balanced routing reaches the least of them.

    Traffic to other trays passes a plane once. Traffic to other planes passes the tray once, to a
    chip on the right plane; without a tray switch only the links to those chips serve. The chips of
    one's own tray and plane may be reached either way.
    """
    per_plane, chips = tray_chips // planes, racks * inside
    other_trays = inside - tray_chips
    other_planes = inside - inside // planes
    plane_neighbours = per_plane - 1
    to_planes = (
        tray if tray_switched else lanes_rate((tray_chips - per_plane) / (tray_chips - 1), tray)
    )
    rates = [served_rate(plane, racks * other_trays, chips)] if other_trays else []
    if planes > 1:
        rates.append(served_rate(to_planes, racks * other_planes, chips))
    if plane_neighbours:
        shared = tray if tray_switched else lanes_rate(plane_neighbours / (tray_chips - 1), tray)
        served = other_trays + plane_neighbours + (other_planes if tray_switched else 0)
        rates.append(served_rate(total("plane_and_tray", [plane, shared]), racks * served, chips))
    return rates


def two_level_hops(
    racks: int, in_rack: int, tray_chips: int, planes: int, tray_hops: float
) -> tuple[float, float]:
    """Return the mean and the most devices between two chips of a two-level fabric.

    The fabric looks the same from every chip.
    """
    chip_positions = itertools.product(
        range(racks), range(in_rack // tray_chips), range(tray_chips)
    )
    hop_counts = [
        _hops_of_place(*chip_position, planes, tray_hops)
        for chip_position in chip_positions
        if any(chip_position)
    ]
    return sum(hop_counts) / len(hop_counts), max(hop_counts)


def _hops_of_place(rack: int, tray: int, position: int, planes: int, tray_hops: float) -> float:
    one_plane = position % planes == 0
    in_tray_hops = 0.0 if not position else min(tray_hops, 1.0) if one_plane else tray_hops
    inside = in_tray_hops if not tray else 1.0 if one_plane else 2.0 + tray_hops
    return inside + (1.0 if rack and (tray or position) else 0.0)


def hops_apart(system: System, rack: int, tray: int, position: int) -> float:
    """Return the devices between two chips of a two-level fabric.

    The way begins at the first chip of the system.

    Args:
        system: A system with a two-level fabric.
        rack: Rack of the other chip, from 0.
        tray: Tray of the other chip in its rack, from 0.
        position: Position of the other chip in its tray, from 0.

    Returns:
        Intermediate devices (switches or forwarding chips) on the way.

    Raises:
        DataError: The fabric is of another kind or incomplete, or no chip has this place.

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
    return _hops_of_place(rack, tray, position, planes, fabric_number(system, "tray_hops"))


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
        DataError: The lanes of a port are no whole number of 1 or more.

    """
    if "port_lanes" not in system.fabric:
        return None
    return lanes_rate(count(system, "port_lanes"), lane_bandwidth(system, input_values))
