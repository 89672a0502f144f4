"""How sure a frontier is: at each of its points every input is drawn within its range, and each draw chooses its plan anew.

The draws are those of a comparison, and so is what is asked of them: the interactivity is the point's own, and the batch is solved for it
in each draw. The band of the plan that a workload chooses is the range `compare` gives it. A draw in which no plan reaches the
interactivity lies beyond the worse end of every metric. With `hold` the plan is the point's own in every draw.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.chain.draws import CELLS, Draws, Many
from tco.performance.serving.plans import DecodePlan, PrefillPlan, ServingPlan
from tco.studies.curve import DRAWS, SEED, range_of
from tco.studies.ranges import Array, Dice
from tco.studies.response import Response, response_of, valued

if TYPE_CHECKING:
    from tco.studies.frontier import Frontier

BANDED = ("usd_per_million_output_tokens", "usd_per_million_tokens", "output_tokens_per_s_per_chip", "tokens_per_s_per_facility_mw")
ASKED = "workload.interactivity"
AT_ONCE = CELLS // DRAWS  # points


class Band(NamedTuple):
    """What the draws say of one point."""

    ranges: dict[str, dict[str, Any] | None]  # P10, P50 and P90 of each metric, with the reason where one is none
    draws: dict[str, Array]  # every draw of each metric; nan where one does not reach the interactivity

    @property
    def meets(self) -> Array:
        """Whether a draw reaches the interactivity."""
        return np.isfinite(self.draws[BANDED[0]])


def add_bands(frontier: Frontier, hold: bool) -> None:
    """Draw the inputs of a frontier at each of its points, those of both pools one system."""
    if not frontier.points or frontier.held is None:
        return
    pool, frontier.hold = frontier.decode, hold
    response = response_of(pool.asked, hold)
    if not response.ranges:
        frontier.unsure = "no input of it has a range"
        return
    dice = Dice(response.catalogue, SEED, 0, DRAWS)
    draws = dice.settings(response.ranges)
    speeds = np.array([pool.values[ASKED] if point.chosen else point.tokens_per_s_per_user for point in frontier.points])
    alone = [place for place, point in enumerate(frontier.points) if hold or point.chosen]
    bands: dict[int, Band] = {}
    for start in range(0, len(speeds) if not hold else 0, AT_ONCE):
        bands |= enumerate(bands_in(at_speeds(response, draws, speeds[start : start + AT_ONCE])), start)
    for place in alone:  # so few draws are weighed with every plan, as those of a comparison are, or each has a plan of its own
        own = replace(response, structure=response.structure and response.structure._replace(plan=plan_at(frontier.held, place)))
        (bands[place],) = bands_in(at_speeds(own, draws, speeds[place : place + 1]))
    frontier.bands = [bands[place] for place in range(len(speeds))]


def plan_at(plans: ServingPlan, place: int) -> ServingPlan:
    """Return the plan of one point."""
    decode, prefill = ([float(axis[place]) for axis in pool] for pool in (plans.decode, plans.prefill))
    return ServingPlan(DecodePlan(*decode), PrefillPlan(*prefill))


def at_speeds(response: Response, draws: Many, speeds: Array) -> Draws:
    """Evaluate the draws at some interactivities, one after the other."""
    every = {path: (np.tile(many, len(speeds)), unit) for path, (many, unit) in draws.items()}
    return response.at(every | {ASKED: (np.repeat(speeds, DRAWS), "token/s")})


def bands_in(made: Draws) -> list[Band]:
    """Return the bands of some points, whose draws stand one after the other."""
    points = len(made.meets) // DRAWS
    draws = {metric: valued(made, metric).reshape(points, DRAWS) for metric in BANDED if made.metrics[metric] is not None}
    every = [{metric: many[place] for metric, many in draws.items()} for place in range(points)]
    return [Band({metric: range_of(metric, many) for metric, many in own.items()}, own) for own in every]
