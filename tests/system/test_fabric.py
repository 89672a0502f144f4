"""Closed forms of scale-up fabrics agree with graph search, maximum flow and linear programs."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco import DataError
from tco.catalog.system_tree import System
from tco.fabric.topology import from_the_lanes, hops_apart, torus_of, whole_racks
from tests.catalogue import CATALOGUE, load_system
from tests.fabric_helpers import FabricScope, TorusSlice, fabric_scopes, slice_of
from tests.registry import read_rows
from tests.scenario_helpers import fabric_of, system_of
from tests.system.flows import Map, all_to_all, all_to_all_by_symmetry, flow_between_halves
from tests.system.graph import LARGEST_GRAPH, Node, build


def worlds() -> list[tuple[str, str]]:
    """Every shipped system with every generation of its switches."""
    world_cases = []
    for name in CATALOGUE.ids("systems"):
        branches = CATALOGUE.document("systems", name, "system")[1].get("variants", {})
        world_cases += [
            (name, option) for option in branches.get("switch", {"": {}}) if option != "default"
        ]
    return world_cases


WORLDS = worlds()
SCOPES = ("rack", "world")


def read(name: str, switch: str):
    """Return a system, its scopes by name, and what one lane of its graph carries."""
    inputs = system_of(name, {"switch": switch} if switch else {})
    values, system = inputs.values(), inputs.system
    scopes = {fabric_scope.scope: fabric_scope for fabric_scope in fabric_scopes(system, values)}
    if system.fabric["kind"] in ("torus", "two-level"):
        lane = values[f"parts.{system.chip}.lane_bandwidth"]
    else:
        lane = values[f"parts.{system.chip}.scale_up_bandwidth"]
        lane /= system.chips - 1 if system.fabric["kind"] == "mesh" else 1
    return system, scopes, lane


def symmetries(system: System, scope: str) -> list[Map]:
    """Maps of a graph onto itself that together carry every chip to every other, if it has such."""
    kind, chips = system.fabric["kind"], int(system.chips)
    if kind == "torus":
        part = part_of(system, scope)
        return [
            shift({axis + 1: size})
            for axis, size in enumerate(part.sizes)
            if closed_or_pair(part, axis)
        ]
    if kind == "mesh":
        return [shift({1: chips})]
    racks = whole_racks(system)
    swap = [shift({1: racks})] if scope == "world" and racks > 1 else []
    if kind != "two-level":  # star and two-star: the chips of a rack take turns, its switch stays
        return [shift({2: chips // racks}), *swap]
    in_tray, planes = int(system.fabric["chips_per_tray"]), int(system.fabric["planes"])
    turn = shift({3: in_tray})

    def next_position(node: Node) -> Node:
        """Every chip of a tray steps to the next position, and with it to the next plane."""
        return (*node[:2], (node[2] + 1) % planes) if node[0] == "plane-switch" else turn(node)

    trays = shift({2: chips // racks // in_tray})
    return [lambda node: node if node[0] == "plane-switch" else trays(node), next_position, *swap]


def part_of(system: System, scope: str) -> TorusSlice:
    """The slice of a torus that a scope is."""
    return slice_of(
        torus_of(system), math.ceil(system.chips / (max(1, system.racks) if scope == "rack" else 1))
    )


def closed_or_pair(part: TorusSlice, axis: int) -> bool:
    """Say whether every place of a dimension is like every other."""
    return part.closed[axis] or part.sizes[axis] < 3


def largest_uniform_rate(system: System, scope: str) -> float:
    """Return the best uniform rate.

    Positions of an open line differ, so every source has a flow of its own.
    """
    graph = build(system, scope)
    if system.fabric["kind"] == "torus":
        part = part_of(system, scope)
        if not all(closed_or_pair(part, axis) for axis in range(len(part.sizes))):
            return all_to_all(graph)
    return all_to_all_by_symmetry(graph, symmetries(system, scope))


def shift(steps: dict[int, int]) -> Map:
    """One step along some places of a node's name, each going round."""

    def move(node: Node) -> Node:
        return tuple(
            (part + 1) % steps[axis_index] if axis_index in steps else part
            for axis_index, part in enumerate(node)
        )

    return move


def small(cases=WORLDS):
    """Worlds a graph can hold, in both scopes."""
    return [
        (*case, scope)
        for case in cases
        for scope in SCOPES
        if load_system(CATALOGUE, case[0]).chips <= LARGEST_GRAPH
    ]


each_graph = pytest.mark.parametrize(
    ("name", "switch", "scope"), small(), ids=lambda text: text or "-"
)


@each_graph
def test_hops_are_those_of_the_graph(name, switch, scope):
    system, scopes, _ = read(name, switch)
    mean, worst = build(system, scope).hops()
    assert float(scopes[scope].hops_mean) == pytest.approx(mean, rel=1e-12, abs=1e-12)
    assert float(scopes[scope].hops_worst) == worst
    if system.fabric["kind"] == "two-level":
        links = {
            node[1:]: links
            for node, links in build(system, scope).distances(("chip", 0, 0, 0)).items()
            if node[0] == "chip" and any(node[1:])
        }
        assert {coordinates: hops_apart(system, *coordinates) for coordinates in links} == {
            coordinates: link_count - 1 for coordinates, link_count in links.items()
        }
        for nowhere in (
            (-1, 0, 0),
            (0, -1, 0),
            (0, 0, -1),
            (whole_racks(system), 0, 0),
            (0, 0, int(system.fabric["chips_per_tray"])),
        ):
            with pytest.raises(DataError, match="has no chip at rack"):
                hops_apart(system, *nowhere)


@each_graph
def test_injection_is_the_lanes_that_leave_a_chip(name, switch, scope):
    system, scopes, lane = read(name, switch)
    graph = build(system, scope)
    # all alike but on an open line
    widths = [sum(graph.links[chip].values()) for chip in graph.chips]
    assert len(graph.chips) == scopes[scope].chips
    assert float(scopes[scope].injection) == pytest.approx(
        sum(widths) / len(widths) * lane, rel=1e-12
    )


@each_graph
def test_all_to_all_is_the_most_the_graph_carries(name, switch, scope):
    """The closed form is no bound only: some routing reaches it, and none does better."""
    system, scopes, lane = read(name, switch)
    assert float(scopes[scope].all_to_all) == pytest.approx(
        largest_uniform_rate(system, scope) * lane, rel=1e-7
    )


@each_graph
def test_bisection_is_the_flow_over_the_cut(name, switch, scope):
    system, scopes, lane = read(name, switch)
    graph = build(system, scope)
    flow = min(flow_between_halves(graph, half) for half in halves(system, scope))
    assert float(scopes[scope].bisection) == pytest.approx(flow * lane, rel=1e-9)


def halves(system: System, scope: str):
    """Return the cuts that a closed form stands for.

    They go through the middle of each ring, between racks, or else between any two halves.
    """
    kind, chips = system.fabric["kind"], int(system.chips)
    if kind == "torus":
        sizes = part_of(system, scope).sizes
        return [
            lambda node, axis_index=axis_index, size=size: node[axis_index + 1] < size // 2
            for axis_index, size in enumerate(sizes)
            if size > 1
        ]
    if kind == "mesh":
        return [lambda node: node[1] < chips // 2]
    if scope == "world" and whole_racks(system) > 1:
        return [lambda node: node[1] == 0]
    inside = chips // whole_racks(system)
    if kind == "two-level":
        trays = inside // int(system.fabric["chips_per_tray"])
        return [lambda node: node[2] < trays // 2]
    return [lambda node: node[2] < inside // 2]


@pytest.mark.parametrize(
    ("name", "switch", "scope"),
    [
        ("trn2-nl16", "", "world"),
        ("trn2-4x4x2", "", "world"),
        ("trn1-16", "", "world"),
        ("mi300x-8", "", "world"),
        ("h100-hgx8", "", "world"),
    ]
    + [("trn3-nl32x2", generation, "rack") for generation in ("gen1", "gen2", "gen3")]
    + [
        ("trn3-nl32x2", "gen1", "world"),
        ("trn3-nl32x2", "gen2", "world"),
        ("trn3-nl72x2", "gen3", "rack"),
    ],
)
def test_the_program_with_a_flow_for_every_source_agrees(name, switch, scope):
    """The shortcut by symmetry against the program without it."""
    system, scopes, lane = read(name, switch)
    assert float(scopes[scope].all_to_all) == pytest.approx(
        all_to_all(build(system, scope)) * lane, rel=1e-7
    )


# ---------------------------------------------------------------- fabrics that no catalogue holds
def fabric_system(kind: str, chips: int, racks: float = 1, **fabric) -> System:
    """A system that is all fabric."""
    return System(
        "made",
        "Made",
        "x",
        "",
        "",
        "",
        "",
        racks,
        {},
        {},
        {"kind": kind, **fabric},
        {},
        (),
        {},
        "made.toml",
        {},
        [],
        {"x": chips},
    )


def scopes_of(system: System) -> list[FabricScope]:
    """The scopes of a fabric whose lanes carry one byte a second each, or whose chips send one."""
    plain = {"parts.x.lane_bandwidth": 1.0, "parts.x.scale_up_bandwidth": 1.0}
    return fabric_scopes(
        system,
        plain | {path: rule(plain.__getitem__) for path, rule in from_the_lanes(system).items()},
    )


@st.composite
def tori(draw, most: int = 64) -> System:
    dims = draw(
        st.lists(st.integers(1, 7), min_size=1, max_size=4).filter(
            lambda dims: 2 <= math.prod(dims) <= most
        )
    )
    width = st.integers(1, 64)
    return fabric_system(
        "torus",
        math.prod(dims),
        dims=dims,
        lanes={axis: draw(width) for axis in "xyzw"[: len(dims)]},
    )


@settings(max_examples=60)
@given(tori())
def test_rates_of_any_torus_are_those_of_its_graph(system):
    graph, (_, world) = build(system), scopes_of(system)
    mean, worst = graph.hops()
    assert world.hops_mean == pytest.approx(mean, rel=1e-12, abs=1e-12)
    assert world.hops_worst == worst
    assert world.injection == sum(graph.links[graph.chips[0]].values())
    assert world.bisection == min(
        flow_between_halves(graph, half) for half in halves(system, "world")
    )
    assert world.all_to_all == pytest.approx(
        all_to_all_by_symmetry(graph, symmetries(system, "world")), rel=1e-7
    )


@settings(max_examples=12)
@given(tori(most=16))
def test_rates_of_a_small_torus_are_those_of_a_flow_for_every_source(system):
    _, world = scopes_of(system)
    assert world.all_to_all == pytest.approx(all_to_all(build(system)), rel=1e-7)


@pytest.mark.parametrize("dims", [[2, 2], [4], [4, 2], [2, 2, 2], [4, 3], [6, 2]], ids=str)
def test_no_half_of_a_torus_is_cut_off_more_cheaply(dims):
    """Over every way to halve the chips, one dimension being even."""
    system = fabric_system("torus", math.prod(dims), dims=dims, lanes=dict.fromkeys("xyzw", 1))
    graph, (_, world) = build(system), scopes_of(system)
    cuts = (
        flow_between_halves(graph, set(half).__contains__)
        for half in itertools.combinations(graph.chips, len(graph.chips) // 2)
    )
    even = [size for size in dims if size % 2 == 0]
    assert world.bisection == min(cuts) or max(even) < max(dims)


@st.composite
def two_levels(draw) -> System:
    in_tray = draw(st.sampled_from((2, 4, 6)))
    planes = draw(st.sampled_from([count for count in (1, 2, 3, 4, 6) if in_tray % count == 0]))
    trays, racks = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    lanes = {name: draw(st.integers(1, 64)) for name in ("tray", "plane", "cross_rack")}
    shape = {
        "chips_per_tray": in_tray,
        "planes": planes,
        "tray_hops": draw(st.integers(0, 1)),
        "lanes": lanes,
    }
    return fabric_system("two-level", racks * trays * in_tray, racks, **shape)


@settings(max_examples=150)
@given(two_levels())
def test_rates_of_any_two_level_fabric_are_those_of_its_graph(system):
    """Whichever lanes are scarce: those of trays, planes or between racks."""
    for scope in scopes_of(system):
        graph = build(system, scope.scope)
        mean, worst = graph.hops()
        assert scope.hops_mean == pytest.approx(mean, rel=1e-12)
        assert scope.hops_worst == worst
        assert scope.all_to_all == pytest.approx(
            all_to_all_by_symmetry(graph, symmetries(system, scope.scope)), rel=1e-7
        )


@settings(max_examples=30)
@given(st.integers(2, 20), st.fractions(min_value="1/20", max_value=2, max_denominator=20))
def test_rates_of_any_two_joined_stars_are_those_of_their_graph(in_rack, share):
    system = fabric_system("two-star", 2 * in_rack, 2, cross_share=float(share))
    for scope in scopes_of(system):
        graph = build(system, scope.scope)
        mean, worst = graph.hops()
        assert scope.hops_mean == pytest.approx(mean, rel=1e-12)
        assert scope.hops_worst == worst
        assert scope.all_to_all == pytest.approx(
            all_to_all_by_symmetry(graph, symmetries(system, scope.scope)), rel=1e-7
        )


def test_every_pair_of_a_mesh_is_joined():
    assert build(fabric_system("mesh", 8)).hops() == (0, 0)


# ---------------------------------------------------------------- published and hand-made figures,
# by the graphs themselves
ROWS = read_rows("topologies.csv")


def figure(row: dict[str, str]) -> float:
    """Return the figure of a row from its graph, in lanes, links or devices."""
    shape = json.loads(row["fabric"])
    system = fabric_system(shape.pop("kind"), shape.pop("chips"), shape.pop("racks", 1), **shape)
    graph = build(system)
    mean, worst = graph.hops()
    leaving = sum(graph.links[graph.chips[0]].values())
    return {
        "all_to_all": lambda: all_to_all_by_symmetry(graph, symmetries(system, "world")),
        "bisection": lambda: min(
            flow_between_halves(graph, half) for half in halves(system, "world")
        ),
        "diameter": lambda: worst + 1,
        "injection_both_ways": lambda: 2 * leaving * len(graph.chips),
        "mean_distance": lambda: mean + 1,
        "mean_hops": lambda: mean,
        "neighbours": lambda: len(graph.links[graph.chips[0]]),
    }[row["figure"]]()


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["figure"] != "pairs"], ids=lambda row: row["id"]
)
def test_golden_figure(row):
    assert figure(row) * float(row["lane"]) == pytest.approx(
        float(row["expected"]), rel=float(row["tolerance"])
    )


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["figure"] == "pairs"], ids=lambda row: row["id"]
)
def test_golden_pairs(row, catalogue):
    """A pair each way for every lane of every chip, as the tree holds them."""
    system = load_system(catalogue, "gb200-nvl72")
    lanes = system.fabric["lanes"]["nvlink"]
    assert lanes * 2 == float(row["lane"])
    assert (
        json.loads(row["fabric"])["chips"] * lanes * 2
        == float(row["expected"])
        == system.quantity["nvlink-cable"]
    )


# ---------------------------------------------------------------- order
def lanes_of(system: System) -> list[str]:
    return list(system.fabric["lanes"])


@settings(max_examples=60)
@given(st.one_of(tori(), two_levels()), st.data())
def test_more_lanes_never_lower_a_rate(system, data):
    before = scopes_of(system)[-1]
    name = data.draw(st.sampled_from(lanes_of(system)))
    more = {
        **system.fabric["lanes"],
        name: system.fabric["lanes"][name] + data.draw(st.integers(1, 64)),
    }
    wider = replace(system, fabric={**system.fabric, "lanes": more})
    after = scopes_of(wider)[-1]
    for rate in ("all_to_all", "bisection"):
        assert getattr(after, rate) >= getattr(before, rate)


@each_graph
def test_faster_lanes_raise_every_rate_alike(name, switch, scope):
    chip = load_system(CATALOGUE, name).chip
    variant = {"switch": switch} if switch else {}
    rates = []
    for factor in (1, 2):
        plain = system_of(name, variant).values()
        stated = [
            path
            for path in ("lane_bandwidth", "scale_up_bandwidth")
            if CATALOGUE.has_part_value(chip, path)
        ]
        doubled = {
            f"parts.{chip}.{path}": f"{plain[f'parts.{chip}.{path}'] * factor!r} byte/s"
            for path in stated
        }
        inputs = system_of(name, variant, **doubled)
        fabric_scope = next(
            candidate for candidate in fabric_of(inputs) if candidate.scope == scope
        )
        rates.append([fabric_scope.injection, fabric_scope.bisection, fabric_scope.all_to_all])
    assert rates[1] == pytest.approx([2 * rate for rate in rates[0]], rel=1e-12)
