"""How plans stand while inputs move: held, with the batch solved for the target, or chosen anew at every point.

Either gives a metric at the places of each input alone, and wherever some are moved together; of a ratio both sides are moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tco.chain.draws import evaluate_draws
from tco.chain.metrics import PERFORMANCE
from tco.foundation.errors import DataError
from tco.foundation.provenance import Input
from tco.studies.drawable import Drawable
from tco.studies.drivers import BESIDE, CENTRE, places_of
from tco.studies.knowing import first_order
from tco.studies.moving import moved, valued
from tco.studies.ranges import Dice, Range, ranges_of
from tco.studies.sides import Array, Side, joined

EVERY = 1.0  # share of the best rate that a plan may lie below it: at an end another plan may be far better than those near it
DRAWS = 8192  # from which the worth of knowing an input is told
OUTER = [0, CENTRE, -1]  # of the places of an input, those looked at when each point chooses its plan: P5, its value and P95


class Held:
    """The plan's axes and all else that was decided are held, the batch is solved for the target; a point that misses it has no value."""

    pairs = 1024

    def __init__(self, sides: Sequence[Side], metric: str, ranges: Mapping[str, Range], seed: int) -> None:
        self.metric, self.ranges = metric, ranges
        self.dice = Dice(sides[0].catalogue, seed, 0, DRAWS)
        drawables = [Drawable(side.scenario, side.catalogue, side.settings, side.centre.structure, ranges_of(side.centre)) for side in sides]
        self.moved = [moved(one, self.dice) for one in drawables]
        self.sides = sides

    def places(self, one: Range) -> Array:
        """Return the places of an input where it is moved alone."""
        return places_of(one)

    def ways(self) -> dict[str, Array]:
        """Return the metric at the places of each input; those of one that decides what exists are evaluated by themselves."""
        each = [one.ways(self.metric) or {} for one in self.moved]
        still = [np.full(BESIDE + 1, next(iter(ways.values()))[CENTRE]) for ways in each]
        found = {}
        for path, one in self.ranges.items():
            own = [ways.get(path, rest) for ways, rest in zip(each, still, strict=True)]
            if one.steps:
                own = [decided_anew(side, self.metric, path, way) for side, way in zip(self.sides, own, strict=True)]
            found[path] = np.asarray(joined(own))
        return found

    def together(self, places: Mapping[str, Array]) -> Array:
        """Return the metric where some inputs are moved together."""
        return np.asarray(joined([one.at(self.metric, places) for one in self.moved]))

    def shares(self) -> dict[str, float]:
        """Return the share of the metric's variance over draws of all inputs that knowing each takes away."""
        found = [valued(one.drawn, self.metric) for one in self.moved]
        if any(many is None for many in found):
            return {}
        return first_order(np.asarray(joined(found)), {path: self.dice.places(one) for path, one in self.ranges.items()})


class Anew:
    """Every point chooses its plan anew; one at which none meets the target has no value."""

    pairs = 32

    def __init__(self, sides: Sequence[Side], metric: str, ranges: Mapping[str, Range]) -> None:
        self.sides, self.metric, self.ranges = sides, metric, ranges

    def places(self, one: Range) -> Array:
        """Return the places of an input where it is moved alone."""
        return places_of(one)[OUTER]

    def ways(self) -> dict[str, Array]:
        """Return the metric at both ends of each input, and at its value between them."""
        count = 2 * len(self.ranges) + 1
        each = []
        for side in self.sides:
            inputs = side.centre.inputs
            own = {path: points(inputs[path], 2 * at + 1, count) for at, path in enumerate(self.ranges) if path in ranges_of(side.centre)}
            each.append(self.value(side, own, count))
        values = np.asarray(joined(each))
        return {path: values[[2 * at + 1, 0, 2 * at + 2]] for at, path in enumerate(self.ranges)}

    def together(self, places: Mapping[str, Array]) -> Array:
        """Return the metric where some inputs are moved together."""
        count, each = len(next(iter(places.values()))), []
        for side in self.sides:
            own = ranges_of(side.centre)
            each.append(self.value(side, {path: (own[path].at(many), own[path].unit) for path, many in places.items() if path in own}, count))
        return np.asarray(joined(each))

    def value(self, side: Side, moved: Mapping[str, tuple[Array, str]], count: int) -> Array:
        """Return the metric of one side, nan where no plan meets the target."""
        if not moved:
            return np.full(count, side.metric(side.centre, self.metric), dtype=float)
        values, met = replanned(side, self.metric, moved)
        return np.where(met, values, np.nan)


def decided_anew(side: Side, metric: str, path: str, way: Array) -> Array:
    """Return a metric at the places of an input with what it decides: at both its ends evaluated by themselves, between them it is its value."""
    if path not in side.centre.inputs:
        return way
    given, found = side.centre.inputs[path], np.full(len(way), way[CENTRE])
    for place, end in ((0, given.low), (-1, given.high)):
        found[place], _ = alone_at(side, metric, {path: (end, given.unit)}, side.centre.plan)
    return found


def replanned(side: Side, metric: str, moved: Mapping[str, tuple[Array, str]]) -> tuple[Array, Array]:
    """Return a metric for arrays of inputs with the plan chosen anew at every point, and whether the targets are met there."""
    count = len(next(iter(moved.values()))[0])

    def alone(place: int) -> tuple[float, bool]:
        settings = {path: (float(many[place]), unit) for path, (many, unit) in moved.items()}
        given = side.centre.inputs
        return alone_at(side, metric, {path: one for path, one in settings.items() if one != (given[path].value, given[path].unit)}, None)

    found: Any = np.full(count, np.nan)
    met = np.ones(count, dtype=bool)
    places: Sequence[int] = range(count)
    if side.centre.plan is not None:
        draws = evaluate_draws(side.scenario, {**side.settings, **moved}, replan=True, near=EVERY, catalogue=side.catalogue, variant=side.variant)
        found = draws.metrics[metric]
        if found is None:
            raise DataError(f"{metric} has no value for {side.scenario.name} at any end of an input")
        # what was weighed met the target at the centre; where none of it does all plans are searched
        places = np.flatnonzero(~draws.meets).tolist() if metric in PERFORMANCE else []
    for place in places:
        found[place], met[place] = alone(place)
    return found, met


def points(given: Input, at: int, count: int) -> tuple[Array, str]:
    """Return an input at every point: its low and high at two of them, its value at all others."""
    many = np.full(count, given.value, dtype=float)
    many[at : at + 2] = given.low, given.high
    return many, given.unit


def decides(side: Side, path: str) -> bool:
    """Say whether the number of an input decides what exists, so that its ends have structures of their own."""
    structure = side.centre.structure
    return structure is not None and not isinstance(structure.readings.get(path, True), bool)


def alone_at(side: Side, metric: str, settings: Mapping[str, Any], plan: Any) -> tuple[float, bool]:
    """Return a metric on a plan, without one on the best, all else decided anew, and whether it can be so."""
    try:
        value = side.evaluate(settings, plan=plan).metrics[metric]
    except DataError:
        value = None
    return (np.nan, False) if value is None else (float(value), True)
