"""The scale-up fabric as a graph of chips, switches and lanes, built from the system's own file.

It is the oracle of the closed forms: hops by breadth-first search, rates by linear programming.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field

from tco import DataError
from tco.catalog.system_tree import System
from tco.fabric.topology import count, fabric_number, lanes, torus_of, whole_racks
from tco.fabric.torus import slice_of

LARGEST_GRAPH = 1024  # chips; a larger world is judged by its closed forms alone
Node = tuple[object, ...]


@dataclass(slots=True)
class Graph:
    """Undirected links between nodes, each with its lanes. A chip's node begins with 'chip'."""

    links: dict[Node, dict[Node, float]] = field(default_factory=dict)

    def join(self, a: Node, b: Node, width: float) -> None:
        """Add a link of some lanes, or widen the one that is there."""
        for near_end, far_end in ((a, b), (b, a)):
            ends = self.links.setdefault(near_end, {})
            ends[far_end] = ends.get(far_end, 0.0) + width

    @property
    def chips(self) -> list[Node]:
        """The accelerators."""
        return [node for node in self.links if node[0] == "chip"]

    def distances(self, start: Node) -> dict[Node, int]:
        """Return the links on the shortest path to every node."""
        path_lengths, queue = {start: 0}, deque([start])
        while queue:
            node = queue.popleft()
            for neighbour in self.links[node]:
                if neighbour not in path_lengths:
                    path_lengths[neighbour] = path_lengths[node] + 1
                    queue.append(neighbour)
        return path_lengths

    def hops(self) -> tuple[float, int]:
        """Return mean and worst intermediate devices over distinct pairs of chips."""
        counts = [
            links - 1
            for chip in self.chips
            for target_node, links in self.distances(chip).items()
            if target_node[0] == "chip" and target_node != chip
        ]
        return sum(counts) / len(counts), max(counts)


def build(system: System, scope: str = "world") -> Graph:
    """Return the graph of a system's rack or world."""
    kind = system.fabric.get("kind")
    if system.chips > LARGEST_GRAPH:
        raise DataError(
            f"{system.where}: {system.chips:g} chips are too many for a graph; the closed forms "
            "hold for any size"
        )
    graph = Graph()
    racks = 1 if scope == "rack" or kind in ("torus", "mesh") else whole_racks(system)
    if kind == "torus":
        add_torus(graph, system, scope)
    elif kind == "two-level":
        add_two_level(graph, system, racks)
    elif kind == "mesh":
        for a, b in itertools.combinations(range(int(system.chips)), 2):
            graph.join(("chip", a), ("chip", b), 1.0)
    else:  # star, two-star: the switches of a rack act as one
        per_rack = int(system.chips) // whole_racks(system)
        for rack, chip in itertools.product(range(racks), range(per_rack)):
            graph.join(("chip", rack, chip), ("switch", rack), 1.0)
        if kind == "two-star" and racks > 1:
            graph.join(
                ("switch", 0), ("switch", 1), fabric_number(system, "cross_share") * per_rack
            )
    return graph


def add_torus(graph: Graph, system: System, scope: str) -> None:
    """Join every chip of the torus to its neighbours in each dimension.

    The torus may be the slice that is one rack.
    """
    torus = torus_of(system)
    shared = (
        math.ceil(system.chips / system.racks)
        if scope == "rack" and system.racks > 1
        else int(system.chips)
    )
    sizes, closed, widths = slice_of(torus, shared)
    for coordinates in itertools.product(*(range(size) for size in sizes)):
        for axis, (size, width) in enumerate(zip(sizes, widths, strict=True)):
            neighbour = (
                *coordinates[:axis],
                (coordinates[axis] + 1) % size,
                *coordinates[axis + 1 :],
            )
            if coordinates[axis] < size - 1 or (closed[axis] and size > 2):
                graph.join(("chip", *coordinates), ("chip", *neighbour), width)


def add_two_level(graph: Graph, system: System, racks: int) -> None:
    """Join chips inside a tray, to switches of their plane, and to their pair in the other rack."""
    tray_chips, planes = count(system, "chips_per_tray"), count(system, "planes")
    trays = int(system.chips) // whole_racks(system) // tray_chips
    tray_lanes, plane_lanes = lanes(system, "tray"), lanes(system, "plane")
    for rack, tray in itertools.product(range(racks), range(trays)):
        chips = [("chip", rack, tray, position) for position in range(tray_chips)]
        if fabric_number(system, "tray_hops"):
            for chip in chips:
                graph.join(chip, ("tray-switch", rack, tray), tray_lanes)
        else:
            for a, b in itertools.combinations(chips, 2):
                graph.join(a, b, tray_lanes / (tray_chips - 1))
        for position, chip in enumerate(chips):
            graph.join(chip, ("plane-switch", rack, position % planes), plane_lanes)
            for other_rack in range(rack + 1, racks):
                graph.join(chip, ("chip", other_rack, tray, position), lanes(system, "cross_rack"))
