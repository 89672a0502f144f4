"""Largest flows of a graph of chips and switches: the oracle of `tco/fabric/topology.py`.

The uniform all-to-all rate is a maximum concurrent flow: every chip sends the same demand to every
other, all demands grow together until a link is full. `all_to_all` states it as one linear program
with a flow for every source. `all_to_all_by_symmetry` states the same for a graph whose symmetries
carry every chip to every other: an average of optimal flows over the symmetries is optimal too, so
one source's flow says it all, and its load on a link is the mean over the links the symmetries
carry it to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import maximum_flow

from tests.system.graph import Graph, Node

Map = Callable[[Node], Node]


def arcs_of(graph: Graph) -> list[tuple[Node, Node, float]]:
    """Both directions of every link with their lanes."""
    return [(a, b, width) for a, ends in graph.links.items() for b, width in ends.items()]


def all_to_all(graph: Graph) -> float:
    """Return the rate of a chip, in lanes, when all send alike to all others.

    The rate is exact: every source has a flow of its own.
    """
    return solve(graph, graph.chips, [[arc_index] for arc_index in range(len(arcs_of(graph)))], 1.0)


def all_to_all_by_symmetry(graph: Graph, symmetries: Iterable[Map]) -> float:
    """Return the same rate from the flow of one source.

    The symmetries must carry every chip to every other.
    """
    arcs = arcs_of(graph)
    arc_indices = {(a, b): arc_index for arc_index, (a, b, _) in enumerate(arcs)}
    chips = {chip: chip_index for chip_index, chip in enumerate(graph.chips)}
    orbits, reached = Union(len(arcs)), Union(len(chips))
    for move in symmetries:
        for (a, b), member_index in arc_indices.items():
            image = arc_indices[move(a), move(b)]  # a KeyError: not a symmetry
            assert arcs[member_index][2] == arcs[image][2], "the map changes the width of a link"
            orbits.join(member_index, image)
        for chip, member_index in chips.items():
            reached.join(member_index, chips[move(chip)])
    assert len(reached.groups()) == 1, "the symmetries leave chips apart"
    return solve(graph, graph.chips[:1], orbits.groups(), len(chips))


def solve(graph: Graph, sources: list[Node], orbits: list[list[int]], copies: float) -> float:
    """Maximise the common rate: flow conservation at each node, capacity for each class of arcs."""
    arcs, nodes = arcs_of(graph), {node: node_index for node_index, node in enumerate(graph.links)}
    flows, receiver_count = len(arcs), len(graph.chips) - 1
    tails = np.array([nodes[a] for a, _, _ in arcs])
    heads = np.array([nodes[b] for _, b, _ in arcs])
    is_chip = np.array([node[0] == "chip" for node in nodes])
    rows, columns, entries = [], [], []
    # what flows in less what flows out is the rate over the others; at the source it leaves
    for number, source in enumerate(sources):
        base, variable = number * len(nodes), number * flows
        for ends, sign in ((heads, 1.0), (tails, -1.0)):
            rows.append(base + ends)
            columns.append(variable + np.arange(flows))
            entries.append(np.full(flows, sign))
        rate_coefficients = np.where(is_chip, -1.0 / receiver_count, 0.0)
        rate_coefficients[nodes[source]] = 1.0
        rows.append(base + np.arange(len(nodes)))
        columns.append(np.full(len(nodes), len(sources) * flows))
        entries.append(rate_coefficients)
    shape = (len(sources) * len(nodes), len(sources) * flows + 1)
    conserve = coo_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape
    ).tocsr()
    class_of = np.empty(flows, dtype=int)
    for number, orbit in enumerate(orbits):
        class_of[orbit] = number
    share = np.array([copies / len(orbits[which]) for which in class_of])
    load = coo_matrix(
        (
            np.tile(share, len(sources)),
            (np.tile(class_of, len(sources)), np.arange(len(sources) * flows)),
        ),
        (len(orbits), shape[1]),
    )
    capacity = [arcs[orbit[0]][2] for orbit in orbits]
    goal = np.zeros(shape[1])
    goal[-1] = -1.0
    solution = linprog(
        goal,
        A_ub=load.tocsr(),
        b_ub=capacity,
        A_eq=conserve,
        b_eq=np.zeros(shape[0]),
        method="highs",
    )
    assert solution.status == 0, solution.message
    return -float(solution.fun)


class Union:
    """Classes of numbers that belong together."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, member: int) -> int:
        while self.parent[member] != member:
            self.parent[member] = self.parent[self.parent[member]]
            member = self.parent[member]
        return member

    def join(self, a: int, b: int) -> None:
        self.parent[self.find(a)] = self.find(b)

    def groups(self) -> list[list[int]]:
        members_by_root: dict[int, list[int]] = {}
        for member in range(len(self.parent)):
            members_by_root.setdefault(self.find(member), []).append(member)
        return list(members_by_root.values())


def flow_between_halves(graph: Graph, half: Callable[[Node], bool]) -> float:
    """Return the maximum flow, in lanes, from the chips of one half to the others.

    The narrowest cut may lie anywhere.
    """
    nodes = {node: node_index + 2 for node_index, node in enumerate(graph.links)}
    # widths of a third or a seventh of a lane group become whole numbers, which the algorithm takes
    scale = 840
    links = [(nodes[a], nodes[b], round(width * scale)) for a, b, width in arcs_of(graph)]
    without_end = sum(width for *_, width in links)
    links += [
        (0, nodes[chip], without_end) if half(chip) else (nodes[chip], 1, without_end)
        for chip in graph.chips
    ]
    tails, heads, widths = (np.array(column) for column in zip(*links, strict=True))
    matrix = csr_matrix((widths.astype(np.int32), (tails, heads)), (len(nodes) + 2, len(nodes) + 2))
    return maximum_flow(matrix, 0, 1).flow_value / scale
