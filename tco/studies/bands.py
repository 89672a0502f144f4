"""How sure a frontier is: at each of its points every input is drawn within its range, and each draw chooses its plan anew.

The draws are those of a comparison, and so is what is asked of them: the interactivity is the point's own, and the batch is solved for it
in each draw. The band of the plan that a workload chooses is the range `compare` gives it. A draw in which no plan reaches the
interactivity lies beyond the worse end of every metric. With `hold` the plan is the point's own in every draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.chain.draws import CELLS, Draws
from tco.studies.drawable import Drawable, drawable_of
from tco.studies.drawing import DRAWS, SEED, range_of
from tco.studies.moving import valued
from tco.studies.ranges import Array, Dice, settings_of

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
    pool, plan, frontier.hold = frontier.decode, frontier.held, hold
    drawn = drawable_of(pool.scenario, pool.catalogue, pool.settings, pool.result, hold)
    if not drawn.ranges:
        frontier.unsure = "no input of it has a range"
        return
    dice = Dice(pool.catalogue, SEED, 0, DRAWS)
    settings = settings_of(drawn.ranges, {path: dice.places(one) for path, one in drawn.ranges.items()})
    own = pool.values[ASKED]
    asked = np.array([own if point.chosen else point.tokens_per_s_per_user for point in frontier.points])
    for start in range(0, len(asked), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        if drawn.structure is not None:
            held = plan._replace(decode=repeated(plan.decode, part), prefill=repeated(plan.prefill, part))
            drawn = replace(drawn, structure=drawn.structure._replace(plan=held))
        frontier.bands += bands_in(evaluated(drawn, settings, asked[part]), len(asked[part]))
    if not hold:  # so few draws are weighed with every plan, as those of a comparison are
        for place in (place for place, point in enumerate(frontier.points) if point.chosen):
            (frontier.bands[place],) = bands_in(evaluated(drawn, settings, asked[place : place + 1]), 1)


def repeated(plan: Any, part: slice) -> Any:
    """Return some plans, each for all of its draws."""
    return plan._make(np.repeat(axis[part], DRAWS) for axis in plan)


def evaluated(drawn: Drawable, settings: Mapping[str, tuple[Array, str]], asked: Array) -> Draws:
    """Evaluate the draws of some points, one point after the other."""
    every = {path: (np.tile(many, len(asked)), unit) for path, (many, unit) in settings.items()}
    return drawn.evaluated(every | {ASKED: (np.repeat(asked, DRAWS), "token/s")})


def bands_in(made: Draws, points: int) -> list[Band]:
    """Return the bands of some points, whose draws stand one after the other."""
    draws = {metric: valued(made, metric).reshape(points, DRAWS) for metric in BANDED if made.metrics[metric] is not None}
    every = [{metric: many[place] for metric, many in draws.items()} for place in range(points)]
    return [Band({metric: range_of(metric, many) for metric, many in own.items()}, own) for own in every]
