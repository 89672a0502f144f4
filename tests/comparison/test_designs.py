"""Designs held against each other: by brute force over every plan of every system, and over small
numbers by plain loops.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco import frontier
from tco.comparison.designs import beaten_by, merits
from tests.performance.servers import serving as phases
from tests.scenario_helpers import HEADLINE, MORE_IS_BETTER
from tests.scenario_helpers import metrics as joined
from tests.study_helpers import AXES, designs_of, evaluate_plan_grid

SHOWN = 6e-4  # of a figure that is told at four digits


@cache
def alone(name, *settings):
    (found,) = frontier([name], set=dict(settings))
    return found


@cache
def frontiers():
    """The headline's racks alone, and one that has another read its prompts."""
    return [*map(alone, HEADLINE), frontier(["gb200-nvl72"], ["trn3-nl72x2"])[-1]]


def everything(found) -> dict[str, np.ndarray]:
    """The figures of every pair of plans that may run, from the whole grid."""
    decode, prefill = found.decode, found.prefill
    grid = evaluate_plan_grid(decode, prefill, found.separate)
    power = joined.power_of_both_pools(
        decode.asked.metric("facility_power_w_per_chip"),
        prefill.asked.metric("facility_power_w_per_chip"),
        grid.share,
    )
    figures = (
        grid.cost,
        grid.rate,
        phases.tokens_per_user(grid.step.per_token),
        joined.tokens_per_megawatt(grid.rate, power),
    )
    fits = np.isfinite(grid.cost)
    return {
        axis: np.broadcast_to(many, grid.cost.shape)[fits]
        for axis, many in zip(AXES, figures, strict=True)
    }


def ahead(axis: str, theirs, own):
    """By which factor a figure is better than another."""
    return theirs / own if axis in MORE_IS_BETTER else own / theirs


@pytest.mark.thorough
def test_no_plan_of_any_system_beats_a_free_design_and_every_other_is_beaten_by_what_is_named():
    found, every = designs_of(frontiers()), [everything(one) for one in frontiers()]
    assert len(found) == sum(len(one.points) for one in frontiers())
    free = [one for one in found if one.by is None]
    assert {design.frontier.decode.result.scenario for design in free} >= {
        "gb200-nvl72",
        "mi450x-ualoe72",
    }
    for design in free:
        for grid in every:
            leads = [
                ahead(axis, grid[axis], own) for axis, own in zip(AXES, design.figures, strict=True)
            ]
            assert not np.any(np.minimum.reduce(leads) >= 1 + SHOWN)
    beaten = [one for one in found if one.by is not None]
    assert len(beaten) > 50
    for one in beaten:
        assert all(
            one.by.frontier is not other.frontier or one.by.point is not other.point
            for other in beaten
        )
        leads = [
            ahead(axis, theirs, own)
            for axis, theirs, own in zip(AXES, one.by.figures, one.figures, strict=True)
        ]
        assert min(leads) > 1 - SHOWN
        assert max(leads) > 1
        changes = [
            theirs / own - 1 for theirs, own in zip(one.by.figures, one.figures, strict=True)
        ]
        assert list(one.changes.values()) == pytest.approx(changes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 4), min_size=3, max_size=3), min_size=1, max_size=12))
def test_beaten_by_plain_loops(rows):
    def beats(one, other):
        return all(a >= b for a, b in zip(one, other, strict=True)) and one != other

    free = [not any(beats(other, own) for other in rows) for own in rows]
    for own, by in zip(rows, beaten_by(np.array(rows, dtype=float)).tolist(), strict=True):
        better = [
            other
            for other, is_free in zip(rows, free, strict=True)
            if is_free and beats(other, own)
        ]
        leads = [min(a - b for a, b in zip(other, own, strict=True)) for other in better]
        assert (by < 0) is (not leads)
        if leads:
            assert free[by]
            assert beats(rows[by], own)
            assert min(a - b for a, b in zip(rows[by], own, strict=True)) == max(leads)


def test_a_difference_that_is_not_shown_is_none():
    ours, same, dearer = (
        [2.0, 100.0, 50.0, 4e5],
        [2.0, 100.001, 49.9999, 4e5],
        [2.01, 100.0, 50.0, 4e5],
    )
    assert beaten_by(merits([ours, same, dearer])).tolist() == [-1, -1, 0]


def test_designs_of_other_workloads_are_not_held_against_each_other():
    """A rack that serves half the answer does less for its money."""
    together = [alone("gb200-nvl72"), alone("h200-hgx8", ("workload.output_tokens", "512"))]
    apart = [one for found in together for one in designs_of([found])]
    assert designs_of(together) == apart
    same = alone("h200-hgx8")
    assert any(
        one.by is not None for one in designs_of([together[0], same]) if one.frontier is same
    )
