"""A scenario with its inputs drawn together, and with each moved alone through its range, in one pass over arrays.

All moves hold the plan's axes and what else was decided, and solve the batch for the target; what misses the target has no performance and
no cost of it.
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
    """A scenario in many draws, and at the places of each of its inputs."""

    asked: Drawable
    drawn: Draws
    alone: Draws

    @property
    def ranges(self) -> dict[str, Range]:
        """The inputs that move it."""
        return self.asked.ranges

    def ways(self, metric: str) -> dict[str, Array] | None:
        """Return a metric at the places of each input; none where it has none."""
        found = valued(self.alone, metric)
        return None if found is None else ways(list(self.ranges), found)

    def at(self, metric: str, places: Mapping[str, Array]) -> Array:
        """Return a metric where some of the inputs are moved to some places, together."""
        own = {path: many for path, many in places.items() if path in self.ranges}
        count = len(next(iter(places.values())))
        found = valued(self.asked.evaluated(settings_of(self.ranges, own)), metric) if own else valued(self.alone, metric)
        if found is None:
            return np.full(count, np.nan)
        return found if own else np.full(count, found[0])


def valued(draws: Draws, metric: str) -> Array | None:
    """Return a metric of some draws, nan where it rests on a target that is missed."""
    many = draws.metrics[metric]
    return None if many is None else np.where(draws.meets, many, np.nan) if metric in PERFORMANCE else many


def moved(asked: Drawable, dice: Dice) -> Moved:
    """Evaluate a scenario in all draws of some dice, and with every input moved alone."""
    alone = one_at_a_time(asked.ranges)
    places = {path: np.concatenate([dice.places(one), alone[path]]) for path, one in asked.ranges.items()}
    made = asked.evaluated(settings_of(asked.ranges, places))
    return Moved(asked, part(made, slice(None, dice.count)), part(made, slice(dice.count, None)))


def part(draws: Draws, which: slice) -> Draws:
    """Return some of the draws."""
    return draws._replace(
        metrics={name: None if many is None else many[which] for name, many in draws.metrics.items()},
        meets=draws.meets[which],
        sequences=None if draws.sequences is None else draws.sequences[which],
        structure_of=draws.structure_of[which],
    )
