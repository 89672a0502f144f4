"""How sure a frontier is: at each of its points every input is drawn within its range, the point's plan held.

The draws are those of a comparison, and so is what is asked of them: the interactivity is the point's own, and the batch is solved for it
in each draw. The band of the plan that a workload chooses is the range `compare` gives it. A draw that does not reach the interactivity
with a single sequence has no price; it is counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.chain.draws import CELLS, Draws, evaluate_draws
from tco.studies.drawing import DRAWS, SEED, SHOWN
from tco.studies.frontier import Frontier
from tco.studies.ranges import Array, Dice, ranges_of, settings_of
from tco.studies.uncertainty import spread

BANDED = ("usd_per_million_output_tokens", "usd_per_million_tokens", "output_tokens_per_s_per_chip", "tokens_per_s_per_facility_mw")
ASKED = "workload.interactivity"
AT_ONCE = CELLS // DRAWS  # points


class Band(NamedTuple):
    """What the draws say of one point."""

    ranges: dict[str, dict[str, float] | None]  # P10, P50 and P90 of each metric, of the draws that reach the interactivity
    draws: dict[str, Array]  # every draw of each metric; nan where one does not

    @property
    def meets(self) -> Array:
        """Whether a draw reaches the interactivity."""
        return np.isfinite(self.draws[BANDED[0]])


def add_bands(frontier: Frontier) -> None:
    """Draw the inputs of a frontier at each of its points, those of both pools one system."""
    if not frontier.points or frontier.held is None:
        return
    ranges, plan = ranges_of(frontier.decode.result), frontier.held
    if not ranges:
        frontier.unsure = "no input of it has a range"
        return
    dice = Dice(frontier.decode.catalogue, SEED, 0, DRAWS)
    drawn = settings_of(ranges, {path: dice.places(one) for path, one in ranges.items()})
    own = frontier.decode.values[ASKED]
    asked = np.array([own if point.chosen else point.tokens_per_s_per_user for point in frontier.points])
    for start in range(0, len(asked), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        held = plan._replace(decode=repeated(plan.decode, part), prefill=repeated(plan.prefill, part))
        made = evaluated(frontier, held, drawn, asked[part])
        frontier.bands += bands_in(made, len(asked[part]))


def repeated(plan: Any, part: slice) -> Any:
    """Return some plans, each for all of its draws."""
    return plan._make(np.repeat(axis[part], DRAWS) for axis in plan)


def evaluated(frontier: Frontier, held: Any, drawn: dict[str, tuple[Array, str]], asked: Array) -> Draws:
    """Evaluate the draws of some points, one point after the other."""
    pool = frontier.decode
    settings = {path: (np.tile(many, len(asked)), unit) for path, (many, unit) in drawn.items()}
    settings[ASKED] = np.repeat(asked, DRAWS), "token/s"
    if pool.result.structure is None:
        raise ValueError("a pool that was not evaluated has no structure")
    structure = pool.result.structure._replace(plan=held)
    return evaluate_draws(pool.scenario, {**pool.settings, **settings}, structure=structure, catalogue=pool.catalogue)


def bands_in(made: Draws, points: int) -> list[Band]:
    """Return the bands of some points, whose draws stand one after the other."""
    known = {metric: many for metric in BANDED if (many := made.metrics[metric]) is not None}
    draws = {metric: np.where(made.meets, many, np.nan).reshape(points, DRAWS) for metric, many in known.items()}
    found = []
    for place in range(points):
        own = {metric: many[place] for metric, many in draws.items()}
        every = {metric: spread(many) for metric, many in own.items()}
        found.append(Band({metric: None if one is None else {at: one[at] for at in SHOWN} for metric, one in every.items()}, own))
    return found
