"""Designs are compared by brute force over every plan, and by plain loops over small numbers."""

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
    (system_frontier,) = frontier([name], set=dict(settings))
    return system_frontier


@cache
def frontiers():
    """The headline's racks alone, and one that has another read its prompts."""
    return [*map(alone, HEADLINE), frontier(["gb200-nvl72"], ["trn3-nl72x2"])[-1]]


def figures_of_all_plans(system_frontier) -> dict[str, np.ndarray]:
    """The figures of every pair of plans that may run, from the whole grid."""
    decode, prefill = system_frontier.decode, system_frontier.prefill
    grid = evaluate_plan_grid(decode, prefill, system_frontier.separate)
    power = joined.power_of_both_pools(
        decode.evaluation.metric("facility_power_w_per_chip"),
        prefill.evaluation.metric("facility_power_w_per_chip"),
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
        axis: np.broadcast_to(axis_figures, grid.cost.shape)[fits]
        for axis, axis_figures in zip(AXES, figures, strict=True)
    }


def factor_ahead(axis: str, rival_figure, own_figure):
    """By which factor a figure is better than another."""
    return rival_figure / own_figure if axis in MORE_IS_BETTER else own_figure / rival_figure


@pytest.mark.thorough
def test_undominated_designs_beat_all_plans_and_the_others_are_beaten_by_the_named_one():
    all_designs, plan_grids = (
        designs_of(frontiers()),
        [figures_of_all_plans(system_frontier) for system_frontier in frontiers()],
    )
    assert len(all_designs) == sum(len(system_frontier.points) for system_frontier in frontiers())
    free = [design for design in all_designs if design.by is None]
    assert {design.frontier.decode.result.scenario for design in free} >= {
        "gb200-nvl72",
        "mi450x-ualoe72",
    }
    for design in free:
        for grid in plan_grids:
            leads = [
                factor_ahead(axis, grid[axis], own_figure)
                for axis, own_figure in zip(AXES, design.figures, strict=True)
            ]
            assert not np.any(np.minimum.reduce(leads) >= 1 + SHOWN)
    beaten = [design for design in all_designs if design.by is not None]
    assert len(beaten) > 50
    for beaten_design in beaten:
        assert all(
            beaten_design.by.frontier is not rival_design.frontier
            or beaten_design.by.point is not rival_design.point
            for rival_design in beaten
        )
        leads = [
            factor_ahead(axis, theirs, own_figure)
            for axis, theirs, own_figure in zip(
                AXES, beaten_design.by.figures, beaten_design.figures, strict=True
            )
        ]
        assert min(leads) > 1 - SHOWN
        assert max(leads) > 1
        changes = [
            theirs / own_figure - 1
            for theirs, own_figure in zip(
                beaten_design.by.figures, beaten_design.figures, strict=True
            )
        ]
        assert list(beaten_design.changes.values()) == pytest.approx(changes)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 4), min_size=3, max_size=3), min_size=1, max_size=12))
def test_beaten_designs_are_those_of_plain_loops(rows):
    def beats(first_row, second_row):
        return (
            all(a >= b for a, b in zip(first_row, second_row, strict=True))
            and first_row != second_row
        )

    free = [not any(beats(rival_row, row) for rival_row in rows) for row in rows]
    for row, by in zip(rows, beaten_by(np.array(rows, dtype=float)).tolist(), strict=True):
        better = [
            rival_row
            for rival_row, is_free in zip(rows, free, strict=True)
            if is_free and beats(rival_row, row)
        ]
        leads = [min(a - b for a, b in zip(rival_row, row, strict=True)) for rival_row in better]
        assert (by < 0) is (not leads)
        if leads:
            assert free[by]
            assert beats(rows[by], row)
            assert min(a - b for a, b in zip(rows[by], row, strict=True)) == max(leads)


def test_difference_below_the_printed_digits_is_none():
    ours, same, dearer = (
        [2.0, 100.0, 50.0, 4e5],
        [2.0, 100.001, 49.9999, 4e5],
        [2.01, 100.0, 50.0, 4e5],
    )
    assert beaten_by(merits([ours, same, dearer])).tolist() == [-1, -1, 0]


def test_designs_of_different_workloads_are_not_compared():
    """A rack that serves half the answer does less for its money."""
    together = [alone("gb200-nvl72"), alone("h200-hgx8", ("workload.output_tokens", "512"))]
    separate_designs = [
        design for system_frontier in together for design in designs_of([system_frontier])
    ]
    assert designs_of(together) == separate_designs
    same = alone("h200-hgx8")
    assert any(
        design.by is not None
        for design in designs_of([together[0], same])
        if design.frontier is same
    )
