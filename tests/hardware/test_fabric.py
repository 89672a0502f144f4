"""The scale-up fabric: published counts, breadth-first search on the graph of the wires, and linear programming of the traffic."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from tco.catalog import load_catalogue
from tco.errors import DataError
from tco.hardware.fabric import cut_all_to_all, fabric_scopes, ring_all_to_all, two_level_rack_all_to_all
from tco.hardware.topology import LARGEST_GRAPH, build
from tco.scenario import system_inputs
from tco.values import as_number


def scopes_of(name, variant=None):
    inputs = system_inputs(load_catalogue(), name, {}, variant or {})
    return inputs.system, fabric_scopes(inputs.system, inputs.values(as_number))


COUNTED = [  # system, switch generation, scope, GB/s injected, hops mean and worst, GB/s of bisection, GB/s of all-to-all; each way
    ("trn2-nl16", None, "world", 512, 1.13, 3, 1024, 240),
    ("trn2-nl32x2-3d", None, "world", 640, 2.05, 5, 2048, 126),
    ("trn2-4x4x16", None, "world", 640, 5.02, 11, 2048, 31.9),
    ("trn3-nl32x2", "gen1", "rack", 1024, 1.45, 2, 8192, 529),
    ("trn3-nl32x2", "gen1", "world", 1152, 1.92, 3, 4096, 252),
    ("trn3-nl32x2", "gen2", "rack", 1024, 0.97, 1, 8192, 529),
    ("trn3-nl72x2", "gen1", "rack", 1024, 2.44, 3, 18432, 534.6),
    ("trn3-nl72x2", "gen1", "world", 1152, 2.92, 4, 9216, 254.2),
    ("trn3-nl72x2", "gen2", "world", 1152, 2.44, 4, 9216, 254.2),
    ("trn3-nl72x2", "gen3", "rack", 1024, 1.00, 1, 18432, 534.6),
    ("gb200-nvl72", None, "world", 900, 1, 1, 32400, 900),
    ("mi450x-ualoe72", None, "world", 1800, 1, 1, 64800, 1800),
    ("tpuv7-cube64", None, "world", 600, 2.05, 5, 3200, 197),
]


@pytest.mark.parametrize(("name", "generation", "scope", "injection", "mean", "worst", "cut", "rate"), COUNTED)
def test_counted_figures(name, generation, scope, injection, mean, worst, cut, rate):
    _, scopes = scopes_of(name, {"switch": generation} if generation else None)
    found = next(one for one in scopes if one.scope == scope)
    assert found.injection / 1e9 == pytest.approx(injection, rel=0.005)
    assert found.hops_mean == pytest.approx(mean, abs=0.0051)
    assert found.hops_worst == worst
    assert found.bisection / 1e9 == pytest.approx(cut, rel=0.005)
    assert found.all_to_all / 1e9 == pytest.approx(rate, rel=0.003)


def variants_of(name):
    """The default and every variant of the fabric by itself."""
    branches = load_catalogue().document("systems", name, "system")[1].get("variants", {})
    options = [(key, option) for key, found in branches.items() for option in found if option != "default" and "fabric" in found[option]]
    return [{}, *({key: option} for key, option in options)]


ALL = [(name, variant) for name in load_catalogue().ids("systems") for variant in variants_of(name)]


@pytest.mark.parametrize(("name", "variant"), ALL, ids=[f"{name} {variant or ''}" for name, variant in ALL])
def test_hops_are_those_of_the_graph(name, variant):
    system, scopes = scopes_of(name, variant)
    if system.chips > LARGEST_GRAPH:
        with pytest.raises(DataError, match="too many for a graph"):
            build(system)
        return
    for scope in scopes:
        graph = build(system, scope.scope)
        assert len(graph.chips) == scope.chips
        assert graph.hops() == pytest.approx((scope.hops_mean, scope.hops_worst), rel=1e-12)


@pytest.mark.parametrize(("name", "variant"), ALL, ids=[f"{name} {variant or ''}" for name, variant in ALL])
def test_no_fabric_beats_its_bounds(name, variant):
    """All-to-all is bound by injection, and by the bisection: half the traffic of half the chips crosses it."""
    _, scopes = scopes_of(name, variant)
    for scope in scopes:
        n = scope.chips
        assert 0 < scope.all_to_all <= scope.injection * (1 + 1e-12)
        assert scope.all_to_all * (n / 2) * (n / 2) / (n - 1) <= scope.bisection * (1 + 1e-9)
        assert 0 <= scope.hops_mean <= scope.hops_worst


# ---------------------------------------------------------------- the traffic itself, by linear programming
def concurrent_rate(nodes, links, chips):
    """The rate at which every chip can send evenly to all others: the largest concurrent flow of one commodity a source."""
    edges = [(a, b, width) for (a, b), width in links.items()]
    edges += [(b, a, width) for a, b, width in edges]
    number, place = len(edges), {node: index for index, node in enumerate(nodes)}
    rows, columns, values, right = [], [], [], []
    row = 0
    for index, source in enumerate(chips):
        for node in nodes:
            if node == source:
                continue
            for edge, (a, b, _) in enumerate(edges):
                if place[b] == place[node]:
                    rows, columns, values = [*rows, row], [*columns, index * number + edge], [*values, 1.0]
                elif place[a] == place[node]:
                    rows, columns, values = [*rows, row], [*columns, index * number + edge], [*values, -1.0]
            if node in chips:  # each destination takes an even part of the rate
                rows, columns, values = [*rows, row], [*columns, len(chips) * number], [*values, -1.0 / (len(chips) - 1)]
            right.append(0.0)
            row += 1
    balance = coo_matrix((values, (rows, columns)), shape=(row, len(chips) * number + 1))
    flat = np.arange(len(chips) * number)
    capacity = coo_matrix((np.ones(flat.size), (flat % number, flat)), shape=(number, flat.size + 1))
    goal = np.zeros(flat.size + 1)
    goal[-1] = -1
    done = linprog(goal, A_ub=capacity.tocsr(), b_ub=[width for *_, width in edges], A_eq=balance.tocsr(), b_eq=right, method="highs")
    assert done.status == 0
    return -done.fun


TORI = [((4, 4), (128, 128)), ((3, 3), (100, 100)), ((2, 4), (64, 100)), ((5, 3), (100, 60)), ((2, 2, 4), (128, 128, 64))]


@pytest.mark.parametrize(("dims", "width"), TORI)
def test_a_torus_carries_what_the_closed_form_says(dims, width):
    chips = list(itertools.product(*map(range, dims)))
    links = {}
    for place, (axis, size) in itertools.product(chips, enumerate(dims)):
        other = (*place[:axis], (place[axis] + 1) % size, *place[axis + 1 :])
        if size > 2 or place[axis] == 0:
            links[place, other] = width[axis]
    closed = min(ring_all_to_all(size, link, math.prod(dims)) for size, link in zip(dims, width, strict=True))
    assert concurrent_rate(chips, links, chips) == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize(
    ("trays", "tray_chips", "planes", "plane", "tray"),
    [(4, 2, 1, 512, 512), (4, 2, 2, 512, 512), (3, 3, 3, 300, 400), (3, 3, 1, 300, 200), (4, 3, 3, 400, 150)],
)
def test_a_rack_of_trays_and_planes_carries_what_the_closed_form_says(trays, tray_chips, planes, plane, tray):
    """Chips joined inside their tray by one switch, and each to a plane: one plane for all, or one for each place of a tray."""
    chips = [("chip", t, c) for t in range(trays) for c in range(tray_chips)]
    links = {(chip, ("plane", chip[2] % planes)): plane for chip in chips} | {(chip, ("tray", chip[1])): tray for chip in chips}
    nodes = [*chips, *(("plane", p) for p in range(planes)), *(("tray", t) for t in range(trays))]
    closed = two_level_rack_all_to_all(len(chips), tray_chips, plane, tray, 1.0 if planes > 1 else 0.0)
    reached = concurrent_rate(nodes, links, chips)
    assert reached >= closed * (1 - 1e-6), "the closed form promises more than the wires carry"
    if planes > 1:
        assert reached == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize(("groups", "inside", "across"), [(2, 4, 128.0), (2, 6, 100.0), (3, 3, 90.0)])
def test_a_cut_carries_what_the_closed_form_says(groups, inside, across):
    """Racks without bounds of their own, each chip with one link of its own across for every other rack."""
    chips = [("chip", g, c) for g in range(groups) for c in range(inside)]
    hubs = [("hub", g) for g in range(groups)]
    links = {(chip, ("hub", chip[1])): 1e6 for chip in chips}
    links |= {(("chip", a, c), ("chip", b, c)): across / (groups - 1) for a, b in itertools.combinations(range(groups), 2) for c in range(inside)}
    assert concurrent_rate([*chips, *hubs], links, chips) == pytest.approx(cut_all_to_all(len(chips), across, groups), rel=1e-6)
