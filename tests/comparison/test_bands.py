"""Bands along a frontier: the range of a comparison where the workload stands, the point itself
where nothing is drawn, each plan as if alone.
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
    (found,) = frontier([name], set=dict(settings), ranges=True, hold=hold)
    return found


@pytest.mark.thorough
def test_the_band_where_the_workload_stands_is_the_range_of_a_comparison():
    rows = document("compare", TRN3, GB200)["rows"]
    for row in rows:
        found = banded(row["scenario"])
        (band,) = (
            band for band, point in zip(found.bands, found.points, strict=True) if point.chosen
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
def test_a_band_that_is_held_is_that_of_the_point_s_own_plan():
    """Each point is asked alone, on its plan; where nothing is moved every draw is the point."""
    found = banded(GB200, hold=True)
    result = found.decode.result
    ranges = {path: one for path, one in beliefs_of(result).items() if not one.steps}
    dice = Dice(CATALOGUE, SEED, 0, DRAWS)
    drawn = settings_of(
        ranges, {path: dice.correlated_deviates(one) for path, one in ranges.items()}
    )
    still = settings_of(ranges, {path: np.full(2, one.home) for path, one in ranges.items()})
    for place in range(3):
        decode, prefill = (
            pool._replace(**{axis: float(many[place]) for axis, many in pool._asdict().items()})
            for pool in found.held[:2]
        )
        held = result.structure._replace(plan=found.held._replace(decode=decode, prefill=prefill))
        speed = found.points[place].tokens_per_s_per_user
        alone, point = (
            tco.evaluate_draws(
                GB200,
                many | {ASKED: (np.full(count, speed), "token/s")},
                structure=held,
                catalogue=CATALOGUE,
            )
            for many, count in ((drawn, DRAWS), (still, 2))
        )
        assert np.array_equal(found.bands[place].meets, alone.meets)
        assert point.meets.all()
        for metric in BANDED:
            assert found.bands[place].draws[metric][alone.meets] == pytest.approx(
                alone.metrics[metric][alone.meets], rel=1e-12
            ), metric
            assert point.metrics[metric] == pytest.approx(
                getattr(found.points[place], metric), rel=1e-6
            ), metric


@pytest.mark.thorough
@pytest.mark.parametrize("place", [3, 20, -1])
def test_points_together_are_what_each_is_alone(place):
    found = banded(TRN3)
    ranges, dice = beliefs_of(found.decode.result), Dice(CATALOGUE, SEED, 0, DRAWS)
    drawn = settings_of(
        ranges, {path: dice.correlated_deviates(one) for path, one in ranges.items()}
    )
    target = {ASKED: f"{found.points[place].tokens_per_s_per_user!r} token/s"}
    alone = tco.evaluate_draws(TRN3, drawn | target, catalogue=CATALOGUE)
    band = found.bands[place]
    assert alone.meets.sum() > 0
    assert (band.meets == alone.meets).mean() > 0.99
    both = band.meets & alone.meets
    for metric in BANDED:
        assert (
            np.mean(np.abs(band.draws[metric][both] / alone.metrics[metric][both] - 1) > 2e-3)
            < 0.02
        ), metric


@pytest.mark.thorough
def test_a_workload_that_no_plan_meets_has_bands_too():
    found = banded(GB200, (ASKED, "4000 token/s"))
    assert found.chosen is None
    assert len(found.bands) == len(found.points) > 10


@pytest.mark.thorough
def test_the_share_of_draws_in_which_a_design_is_beaten():
    some = [one for one in designs_of([banded(TRN3), banded(GB200)]) if one.by is not None]
    assert len(some) > 20
    for one in some[::5]:
        own, theirs = (side.frontier.bands[side.place] for side in (one, one.by))
        either = beaten = 0
        for draw in range(DRAWS):
            if own.meets[draw] or theirs.meets[draw]:
                either += 1
                if not (own.meets[draw] and theirs.meets[draw]):
                    beaten += theirs.meets[draw]
                    continue
                cost, rate, _, power = (
                    (theirs.draws.get(axis), own.draws.get(axis)) for axis in AXES
                )
                beaten += (
                    cost[0][draw] <= cost[1][draw]
                    and rate[0][draw] >= rate[1][draw]
                    and power[0][draw] >= power[1][draw]
                )
        assert one.chance == pytest.approx(beaten / either)


def test_pairs_of_pools_are_not_drawn():
    with pytest.raises(UsageError, match="no pairs of them"):
        frontier([GB200], [TRN3], ranges=True)
