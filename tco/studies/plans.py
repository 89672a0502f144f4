"""A metric while inputs move: at both ends of each alone, wherever some are moved together, and over draws of all of them.

Every point chooses its plan anew, or all hold that of the scenario. Of a ratio both sides are moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tco.chain.draws import evaluate_draws
from tco.studies.drawable import drawable_of
from tco.studies.drivers import on_both
from tco.studies.knowing import first_order
from tco.studies.moving import moved, valued
from tco.studies.ranges import Dice, Range
from tco.studies.sides import Array, Side
from tco.studies.uncertainty import ratios

DRAWS = 2048  # from which the worth of knowing an input is told


class Moves:
    """The sides of a metric with their inputs moved; a point that misses the target has no value, of a ratio none, zero or no end."""

    def __init__(self, sides: Sequence[Side], metric: str, seed: int, hold: bool) -> None:
        self.metric = metric
        self.dice = Dice(sides[0].catalogue, seed, 0, DRAWS)
        self.sides = [moved(drawable_of(side.scenario, side.catalogue, side.settings, side.centre, hold, side.variant), self.dice) for side in sides]
        self.ranges: dict[str, Range] = {path: one for side in reversed(self.sides) for path, one in side.ranges.items()}

    def ways(self) -> dict[str, Array]:
        """Return the metric at the low, the value and the high of each input."""
        own, *baseline = (one.ways(self.metric) for one in self.sides)
        if not baseline:
            return own
        return {path: ratios(theirs, mine) for path, (mine, theirs) in on_both(self.ranges, own, baseline[0]).items()}

    def together(self, places: Mapping[str, Array]) -> Array:
        """Return the metric where some inputs are moved together."""
        return ratio_or_own([one.at(self.metric, places) for one in self.sides])

    def shares(self) -> dict[str, float]:
        """Return the share of the metric's variance over the draws that have it which knowing each input takes away."""
        found = ratio_or_own([valued(one.drawn, self.metric) for one in self.sides])
        known = np.where(found > 0, found, np.nan) if self.sides[1:] else found
        return first_order(known, {path: self.dice.places(one) for path, one in self.ranges.items()})


def ratio_or_own(values: Sequence[Array]) -> Array:
    """Return the metric that the user asked for: that of the scenario itself, or the ratio of the baseline's to it."""
    own, *baseline = values
    return ratios(baseline[0], own) if baseline else own


def replanned(side: Side, metric: str, settings: Mapping[str, tuple[Array, str]]) -> Array:
    """Return a metric for arrays of inputs with the plan chosen anew at every point, nan where none meets the target."""
    every = {**side.settings, **settings}
    return valued(evaluate_draws(side.scenario, every, catalogue=side.catalogue, variant=side.variant), metric)


def decides(side: Side, path: str) -> bool:
    """Say whether the number of an input decides what exists, so that its ends have structures of their own."""
    structure = side.centre.structure
    return structure is not None and not isinstance(structure.readings.get(path, True), bool)
