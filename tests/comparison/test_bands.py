"""Bands along a frontier are the ranges that a comparison gives for each plan.

Where nothing is drawn the band is the point itself. Points together have the bands that each has by
itself.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import tco
from tco import UsageError, frontier
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.study_helpers import AXES, DRAWS, SEED, Dice, beliefs_of, designs_of, settings_of

ASKED = "workload.interactivity"

TRN3, GB200 = "trn3-nl72x2", "gb200-nvl72"
BANDED = (
    "usd_per_million_output_tokens",
    "usd_per_million_tokens",
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_facility_mw",
)


@cache
def banded(name, *settings, hold=False):
    (banded_frontier,) = frontier([name], set=dict(settings), ranges=True, hold=hold)
    return banded_frontier


@pytest.mark.thorough
def test_the_band_where_the_workload_stands_is_the_range_of_a_comparison():
    rows = document("compare", TRN3, GB200)["rows"]
    for row in rows:
        banded_frontier = banded(row["scenario"])
        (band,) = (
            band
            for band, point in zip(banded_frontier.bands, banded_frontier.points, strict=True)
            if point.chosen
        )
        for metric in BANDED:
            ours, theirs = band.ranges[metric], row["range"][metric]
            assert ours.get("reason") == theirs.get("reason")
            for end in ("p10", "p50", "p90"):
                # as test_sureness
                assert ours[end] == (
                    None if theirs[end] is None else pytest.approx(theirs[end], rel=0.05)
                ), metric
        assert band.meets.mean() == row["share_of_draws_that_meet_the_target"]


@pytest.mark.thorough
def test_band_with_held_plans_is_that_of_the_plan_of_the_point():
    """Each point is asked alone, on its plan; where nothing is moved every draw is the point."""
    banded_frontier = banded(GB200, hold=True)
    result = banded_frontier.decode.result
    ranges = {path: belief for path, belief in beliefs_of(result).items() if not belief.steps}
    dice = Dice(CATALOGUE, SEED, 0, DRAWS)
    drawn = settings_of(
        ranges, {path: dice.correlated_deviates(belief) for path, belief in ranges.items()}
    )
    still = settings_of(ranges, {path: np.full(2, belief.home) for path, belief in ranges.items()})
    for point_index in range(3):
        decode, prefill = (
            pool._replace(
                **{
                    axis: float(axis_values[point_index])
                    for axis, axis_values in pool._asdict().items()
                }
            )
            for pool in banded_frontier.point_plans[:2]
        )
        held_structure = result.structure._replace(
            plan=banded_frontier.point_plans._replace(decode=decode, prefill=prefill)
        )
        speed = banded_frontier.points[point_index].tokens_per_s_per_user
        point_draws, point = (
            tco.evaluate_draws(
                GB200,
                input_draws | {ASKED: (np.full(count, speed), "token/s")},
                structure=held_structure,
                catalogue=CATALOGUE,
            )
            for input_draws, count in ((drawn, DRAWS), (still, 2))
        )
        assert np.array_equal(banded_frontier.bands[point_index].meets, point_draws.meets)
        assert point.meets.all()
        for metric in BANDED:
            assert banded_frontier.bands[point_index].draws[metric][
                point_draws.meets
            ] == pytest.approx(point_draws.metrics[metric][point_draws.meets], rel=1e-12), metric
            assert point.metrics[metric] == pytest.approx(
                getattr(banded_frontier.points[point_index], metric), rel=1e-6
            ), metric


@pytest.mark.thorough
@pytest.mark.parametrize("point_index", [3, 20, -1])
def test_points_together_have_the_bands_that_each_has_by_itself(point_index):
    banded_frontier = banded(TRN3)
    ranges, dice = beliefs_of(banded_frontier.decode.result), Dice(CATALOGUE, SEED, 0, DRAWS)
    drawn = settings_of(
        ranges, {path: dice.correlated_deviates(belief) for path, belief in ranges.items()}
    )
    target = {ASKED: f"{banded_frontier.points[point_index].tokens_per_s_per_user!r} token/s"}
    point_draws = tco.evaluate_draws(TRN3, drawn | target, catalogue=CATALOGUE)
    band = banded_frontier.bands[point_index]
    assert point_draws.meets.sum() > 0
    assert (band.meets == point_draws.meets).mean() > 0.99
    both = band.meets & point_draws.meets
    for metric in BANDED:
        assert (
            np.mean(np.abs(band.draws[metric][both] / point_draws.metrics[metric][both] - 1) > 2e-3)
            < 0.02
        ), metric


@pytest.mark.thorough
def test_a_workload_that_no_plan_meets_has_bands_too():
    banded_frontier = banded(GB200, (ASKED, "4000 token/s"))
    assert banded_frontier.chosen is None
    assert len(banded_frontier.bands) == len(banded_frontier.points) > 10


@pytest.mark.thorough
def test_the_share_of_draws_in_which_a_design_is_beaten():
    beaten_designs = [
        design for design in designs_of([banded(TRN3), banded(GB200)]) if design.by is not None
    ]
    assert len(beaten_designs) > 20
    for design in beaten_designs[::5]:
        design_band, theirs = (
            side.frontier.bands[side.point_index] for side in (design, design.by)
        )
        either = beaten = 0
        for draw in range(DRAWS):
            if design_band.meets[draw] or theirs.meets[draw]:
                either += 1
                if not (design_band.meets[draw] and theirs.meets[draw]):
                    beaten += theirs.meets[draw]
                    continue
                cost, rate, _, power = (
                    (theirs.draws.get(axis), design_band.draws.get(axis)) for axis in AXES
                )
                beaten += (
                    cost[0][draw] <= cost[1][draw]
                    and rate[0][draw] >= rate[1][draw]
                    and power[0][draw] >= power[1][draw]
                )
        assert design.chance == pytest.approx(beaten / either)


def test_pairs_of_pools_are_not_drawn():
    with pytest.raises(UsageError, match="no pairs of them"):
        frontier([GB200], [TRN3], ranges=True)
