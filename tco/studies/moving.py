"""A scenario with its inputs drawn together, and with each moved alone to both ends of its range.

Every point chooses its plan anew, or all hold that of the scenario; either way the batch is solved for the target, and what misses it has
no performance and no cost of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tco.chain.draws import Draws
from tco.chain.metrics import PERFORMANCE
from tco.studies.drawable import Drawable
from tco.studies.drivers import one_at_a_time, ways
from tco.studies.ranges import Array, Dice, Range, settings_of


class Moved(NamedTuple):
    """A scenario in many draws, and at both ends of each of its inputs."""

    asked: Drawable
    drawn: Draws
    alone: Draws

    @property
    def ranges(self) -> dict[str, Range]:
        """The inputs that move it."""
        return self.asked.ranges

    def ways(self, metric: str) -> dict[str, Array]:
        """Return a metric at the low, the value and the high of each input, nan where it has none."""
        return ways(list(self.ranges), valued(self.alone, metric))

    def centre(self, metric: str) -> float:
        """Return a metric with every input at its value."""
        return float(valued(self.alone, metric)[0])

    def at(self, metric: str, places: Mapping[str, Array]) -> Array:
        """Return a metric where some of the inputs are moved to some places, together."""
        own = {path: many for path, many in places.items() if path in self.ranges}
        if not own:
            return np.full(len(next(iter(places.values()))), self.centre(metric))
        return valued(self.asked.evaluated(settings_of(self.ranges, own)), metric)


def valued(draws: Draws, metric: str) -> Array:
    """Return a metric of some draws, nan where there is none or it rests on a target that is missed."""
    many = draws.metrics[metric]
    if many is None:
        return np.full(len(draws.meets), np.nan)
    return np.where(draws.meets, many, np.nan) if metric in PERFORMANCE else many


def moved(asked: Drawable, dice: Dice) -> Moved:
    """Evaluate a scenario in all draws of some dice, and with every input moved alone."""
    alone = {path: (many, asked.ranges[path].unit) for path, many in one_at_a_time(asked.ranges).items()}
    return Moved(asked, asked.drawn(dice), asked.evaluated(alone))
