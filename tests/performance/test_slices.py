"""Groups on part of a torus or across two stars agree with their graphs and with the whole.

Faster fabrics are never slower.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco import evaluate
from tco.fabric.links import links_for
from tco.fabric.torus import Torus, slices_of
from tests.catalogue import CATALOGUE
from tests.fabric_helpers import OPERATIONS, Links, TorusSlice, cheapest, rank_group, slice_of
from tests.scenario_helpers import dispatched, links_of, load_scenario, system_of
from tests.system.flows import all_to_all, flow_between_halves
from tests.system.graph import Graph

TORI = [
    name
    for name in CATALOGUE.ids("systems")
    if CATALOGUE.document("systems", name, "system")[1]["fabric"]["kind"] == "torus"
]
SIZES = [1e3, 1e5, 1e7, 1e9]


def links(name: str) -> tuple[Links, int]:
    """Return the links of a system's chips and their number."""
    return links_of(name), int(system_of(name).system.chips)


def graph_of(part: TorusSlice) -> Graph:
    """A slice's own links."""
    graph = Graph()
    for chip_position in itertools.product(*map(range, part.sizes)):
        for axis, size in enumerate(part.sizes):
            if chip_position[axis] < size - 1 or (part.closed[axis] and size > 2):
                graph.join(
                    ("chip", *chip_position),
                    (
                        "chip",
                        *chip_position[:axis],
                        (chip_position[axis] + 1) % size,
                        *chip_position[axis + 1 :],
                    ),
                    part.lanes[axis],
                )
    return graph


@st.composite
def parts(draw, most: int = 24) -> TorusSlice:
    sizes = tuple(
        draw(
            st.lists(st.integers(1, 6), min_size=1, max_size=3).filter(
                lambda sizes: 2 <= math.prod(sizes) <= most
            )
        )
    )
    closed = tuple(draw(st.booleans()) for _ in sizes)
    return TorusSlice(sizes, closed, tuple(float(draw(st.integers(1, 9))) for _ in sizes))


@settings(max_examples=40, deadline=None)
@given(parts())
def test_any_slice_against_its_graph(part):
    """Hops, lanes and the all-to-all rate of a slice are those of its graph.

    Hops are by breadth-first search, lanes of a chip by counting, the rate by a program with a
    flow for every source.
    """
    graph, chips = graph_of(part), part.chips
    mean, worst = graph.hops()
    assert part.hops_mean == pytest.approx(mean, rel=1e-12, abs=1e-12)
    assert part.hops_worst == worst
    widths = [sum(graph.links[chip].values()) for chip in graph.chips]
    assert part.injection == min(widths)
    assert part.mean_injection == pytest.approx(sum(widths) / chips)
    assert part.all_to_all * (chips - 1) / chips == pytest.approx(all_to_all(graph), rel=1e-7)


@settings(max_examples=20, deadline=None)
@given(parts())
def test_no_end_of_a_slice_takes_in_more_than_its_lanes(part):
    """Bucket rings over all dimensions cannot beat the flow into the worst-placed chip."""
    graph = graph_of(part)
    assert part.injection == min(
        flow_between_halves(graph, lambda node, chip=chip: node != chip) for chip in graph.chips
    )


@pytest.mark.parametrize("name", TORI)
def test_a_slice_that_is_the_whole_torus_changes_nothing(name):
    torus_links, chips = links(name)
    met = links_for(torus_links, rank_group(torus_links, chips))
    assert slice_of(torus_links.torus, chips) == TorusSlice(
        torus_links.torus.sizes, (True,) * len(torus_links.torus.sizes), torus_links.torus.lanes
    )
    assert float(met.inside) == pytest.approx(float(torus_links.inside), rel=1e-12)
    assert float(met.spread) == pytest.approx(float(torus_links.spread), rel=1e-12)
    assert float(met.latencies.step) == pytest.approx(float(torus_links.latencies.step), rel=1e-12)
    assert met.steps == sum(size - 1 for size in torus_links.torus.sizes)


@pytest.mark.parametrize("name", TORI)
def test_a_slice_is_never_slower_than_the_whole(name):
    """A group that tiles the torus is never slower than all chips at the same bytes per rank.

    The bytes are what a rank sends when all talk to all, and its part when all gather or
    reduce.
    """
    torus_links, chips = links(name)
    for ranks, rank_bytes in itertools.product(
        [n for n in range(2, chips) if chips % n == 0], SIZES
    ):
        assert cheapest(torus_links, "all-to-all", ranks, rank_bytes) <= cheapest(
            torus_links, "all-to-all", chips, rank_bytes
        ) * (1 + 1e-9)
        for operation in ("all-gather", "reduce-scatter", "all-reduce"):
            assert cheapest(torus_links, operation, ranks, rank_bytes * ranks) <= cheapest(
                torus_links, operation, chips, rank_bytes * chips
            ) * (1 + 1e-9)
        assert dispatched(torus_links, ranks, rank_bytes, 8, 7168.0) <= dispatched(
            torus_links, chips, rank_bytes, 8, 7168.0
        ) * (1 + 1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3).filter(lambda sizes: math.prod(sizes) > 1),
    st.data(),
)
def test_any_tiling_slice_exchanges_no_slower(sizes, data):
    torus = Torus(tuple(sizes), tuple(float(data.draw(st.integers(1, 64))) for _ in sizes))
    chips = math.prod(sizes)
    ranks = data.draw(st.sampled_from([n for n in range(2, chips + 1) if chips % n == 0]))
    part = slice_of(torus, ranks)
    assert part.chips == ranks
    assert part.all_to_all >= slice_of(torus, chips).all_to_all


def test_rings_close_where_a_slice_spans_the_torus_or_switches_close_them():
    torus = Torus((16, 16), (1.0, 1.0))
    assert slice_of(torus, 32) == TorusSlice((8, 4), (False, False), (1.0, 1.0))
    assert slice_of(torus, 128).closed == (True, False)
    pod = Torus((16, 24, 24), (1.0, 1.0, 1.0), (4, 4, 4))
    assert slice_of(pod, 64) == TorusSlice((4, 4, 4), (True, True, True), (1.0, 1.0, 1.0))
    assert slice_of(pod, 32).closed == (False, False, False)
    assert slice_of(pod, 40).chips >= 40


def test_groups_of_several_sizes_are_arrays():
    torus = Torus((4, 4, 4), (2.0, 2.0, 1.0))
    slices = slices_of(torus, np.array([[1.0], [4.0], [64.0]]))
    assert slices.chips.tolist() == [[2], [4], [64]]
    assert slices_of(torus, 4).steps == slices.steps[1, 0]


# ---------------------------------------------------------------- the order of fabrics
@pytest.mark.parametrize("operation", OPERATIONS)
def test_two_joined_stars_are_never_quicker_than_one(operation):
    single_star, two = links("gb200-nvl72")[0], links("gb200-nvl36x2")[0]
    for ranks, size in itertools.product((2, 8, 36, 37, 48, 64, 72, 144), SIZES):
        assert cheapest(two, operation, ranks, size) >= cheapest(
            single_star, operation, ranks, size
        ) * (1 - 1e-9)


def test_experts_over_two_joined_stars_are_never_quicker():
    single_star, two = links("gb200-nvl72")[0], links("gb200-nvl36x2")[0]
    for ranks, tokens in itertools.product((2, 8, 36, 48, 72), (1, 16, 128, 4096)):
        assert dispatched(two, ranks, tokens, 8, 7168.0) >= dispatched(
            single_star, ranks, tokens, 8, 7168.0
        ) * (1 - 1e-9)


def served(system: str) -> float:
    """Output tokens a chip of the headline's workload on another system."""
    return float(
        evaluate(load_scenario(CATALOGUE, "gb200-nvl72")._replace(system=system)).metrics[
            "output_tokens_per_s_per_chip"
        ]
    )


def test_two_joined_stars_serve_no_better_than_one():
    assert served("gb200-nvl36x2") < served("gb200-nvl72")


def test_a_pod_serves_no_worse_than_one_of_its_cubes():
    assert served("tpuv7-pod9216") >= served("tpuv7-cube64") * (1 - 1e-9)
