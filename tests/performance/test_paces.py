"""Collectives of many sizes on one group take the times of each size by itself.

What is known once is not computed again.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tco import evaluate
from tco.core.formula import MANY
from tco.fabric.collective_rates import (
    Paces,
    evenly,
    paces_of,
    shortest_collective_time,
    undominated_algorithms,
)
from tco.fabric.links import known_of
from tests.fabric_helpers import Tokens, fastest_algorithm_time, rank_group, reach
from tests.registry import Known
from tests.scenario_helpers import links_of, recording

SYSTEMS = [
    "h100-hgx8",
    "gb200-nvl72",
    "trn2-nl32x2-3d",
    "trn3-nl72x2",
    "mi450x-ualoe72",
    "tpuv7-cube64",
]
RANKS = np.array([[2.0], [4.0], [8.0], [72.0], [144.0]])


@pytest.mark.parametrize("size_count", [40, MANY], ids=["few", "many"])
@pytest.mark.parametrize("operation", ["all-reduce", "all-gather", "dispatch", "combine"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_sizes_asked_together_take_as_long_as_each_asked_alone(
    catalogue, system, operation, size_count
):
    links, amounts = links_of(system), np.geomspace(1, 1e9, size_count)
    rank_reach, tokens = reach(links, rank_group(links, RANKS)), Tokens(1.0, 7168.0, 8.0)
    assert evenly(links, operation)
    expert = operation in ("dispatch", "combine")
    batched_times = shortest_collective_time(
        paces_of(rank_reach, operation, tokens if expert else 1.0), amounts[None]
    )
    fastest_times = fastest_algorithm_time(
        rank_reach, operation, tokens._replace(count=amounts[None]) if expert else amounts[None]
    )
    assert batched_times.shape == (len(RANKS), size_count)
    assert batched_times == pytest.approx(fastest_times, rel=1e-12)


@pytest.mark.parametrize("size_count", [2, 3, 17])
def test_one_group_takes_any_number_of_sizes(catalogue, size_count):
    """The algorithms of a plain group have an axis of their own, however many sizes are asked."""
    links, amounts = links_of("gb200-nvl72"), np.geomspace(1, 1e9, size_count)
    for operation in ("all-reduce", "all-gather"):
        paces = paces_of(reach(links, rank_group(links, 8.0)), operation, 1.0)
        assert shortest_collective_time(paces, amounts) == pytest.approx(
            [shortest_collective_time(paces, float(amount)) for amount in amounts], rel=1e-12
        )


@settings(max_examples=40)
@given(arrays(np.int8, (3, 5, 4), elements=st.integers(0, 8)), st.integers(0, 1000))
def test_algorithm_left_out_is_never_the_quickest(table, amount):
    paces = Paces(*table.astype(float))
    undominated = undominated_algorithms(paces)
    assert 0 < len(undominated) <= 5
    assert np.array_equal(
        shortest_collective_time(Paces(*(field[undominated] for field in paces)), amount),
        shortest_collective_time(paces, amount),
    )


def test_times_on_links_of_equal_numbers_are_reused(catalogue):
    known_links, same = (known_of(links_of("gb200-nvl72"), 1e-6) for _ in range(2))
    assert known_links is same
    assert known_of(links_of("gb200-nvl72"), 2e-6) is not known_links
    slower = links_of("gb200-nvl72", **{"parts.gb200-gpu.scale_up_bandwidth": "800 GB/s"})
    assert known_of(slower, 1e-6) is not known_links
    assert known_of(slower._replace(inside=np.ones(3)), 1e-6) is not known_of(
        slower._replace(inside=np.ones(3)), 1e-6
    )


def test_equal_numbers_are_computed_once_and_large_arrays_and_traces_are_not_kept():
    known_results, calls = Known(), []

    def compute():
        calls.append(1)
        return "found"

    assert [known_results.of(("a",), (2.0, np.ones(3)), compute) for _ in range(3)] == ["found"] * 3
    assert len(calls) == 1
    assert (
        known_results.of(("a",), (2.0, np.ones((3, 1))), compute)
        == known_results.of(("b",), (2.0, np.ones(3)), compute)
        == "found"
    )
    assert len(calls) == 3
    assert known_results.of(("a",), (np.ones(MANY + 1),), compute) is None
    with recording():
        assert known_results.of(("a",), (2.0,), compute) is None
    assert len(calls) == 3


def test_what_is_known_of_other_inputs_changes_no_answer(catalogue):
    first = evaluate("gb200-nvl72", catalogue=catalogue).metrics
    evaluate(
        "gb200-nvl72",
        {
            "parts.gb200-gpu.scale_up_bandwidth": "700 GB/s",
            "performance.nvidia.collective_wait": "9 us",
        },
        catalogue=catalogue,
    )
    assert evaluate("gb200-nvl72", catalogue=catalogue).metrics == first
