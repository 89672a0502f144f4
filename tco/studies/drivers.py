"""What an answer rests on most: each input moved alone through its range, with what that makes of the performance per cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tco.chain.metrics import perf_per_tco
from tco.studies.beliefs import P75, P95, STEPS
from tco.studies.ranges import Array, Range
from tco.studies.sureness import Driver

BESIDE = 4  # places of an input but that of its value
CENTRE = 2  # of the places at which an input is looked at: that of its value
NAMED = 3  # inputs an answer names
FINE = 17  # places between two, once the ratio is known to pass one there
Closer = Callable[[str, Array], Array]  # an input and places of it -> the ratio there


def places_of(one: Range) -> Array:
    """Return the places at which an input is looked at: P5, its value, P95, and one on either side between (P25 and P75 about a median)."""
    home = one.home
    return np.array([-P95, home - (home + P95) * P75 / P95, home, home + (P95 - home) * P75 / P95, P95])


def one_at_a_time(ranges: Mapping[str, Range]) -> dict[str, Array]:
    """Return the places of every input where each is moved alone: all at their values first, then each at the other places."""
    beside = {path: np.delete(places_of(one), CENTRE) for path, one in ranges.items()}
    found = {path: np.full(1 + BESIDE * len(ranges), one.home) for path, one in ranges.items()}
    for at, path in enumerate(ranges):
        found[path][1 + at * BESIDE :][:BESIDE] = beside[path]
    return found


def ways(paths: Sequence[str], costs: Array) -> dict[str, Array]:
    """Return the costs at the places of each input, of those in the order of `one_at_a_time`."""
    beside = costs[1:].reshape(len(paths), BESIDE)
    return dict(zip(paths, np.insert(beside, CENTRE, costs[0], axis=1), strict=True))


def drivers_of(ranges: Mapping[str, Range], own: Mapping[str, Array], baseline: Mapping[str, Array], closer: Closer | None = None) -> list[Driver]:
    """Return the inputs that move the performance per cost most.

    An input that only one of the two rests on leaves the other where it is. A place that misses the target has no cost, and the swing
    ends at the last that has one.
    """
    still = [np.full(BESIDE + 1, next(iter(costs.values()))[CENTRE]) for costs in (own, baseline)]
    found = {}
    for path in ranges:
        ratios = perf_per_tco(baseline.get(path, still[1]), own.get(path, still[0]))
        known = ratios[np.isfinite(ratios)]
        if len(known) > 1 and known[-1] != known[0]:
            found[path] = (float(known[-1] - known[0]), ratios)
    most = sorted(found.items(), key=lambda item: (-abs(item[1][0]), item[0]))[:NAMED]
    return [
        Driver(path, swing, flip(ranges[path], ratios, closer), ranges[path].unit, ranges[path].value, ranges[path].shown)
        for path, (swing, ratios) in most
    ]


def flip(one: Range, ratios: Array, closer: Closer | None = None) -> float | None:
    """Return where a ratio passes one, nearest to the input's value.

    Between two places its logarithm is taken to be a line, which near a target that is just met it is not: there it is looked at `closer`.
    """
    sides, places = [], places_of(one)
    for step in (-1, 1):
        for near in (CENTRE, CENTRE + step):
            far = near + step
            if np.isfinite(ratios[[near, far]]).all() and (ratios[far] > 1) != (ratios[near] > 1):
                sides.append(places[far] if one.shape == STEPS else passed(places[[near, far]], ratios[[near, far]], one.path, closer))
                break
    return float(one.at(np.array(min(sides, key=lambda place: abs(place - one.home))))) if sides else None


def passed(ends: Array, ratios: Array, path: str, closer: Closer | None) -> float:
    """Return the place between two ends at which a ratio passes one."""
    if closer is not None:
        between = np.linspace(ends[0], ends[1], FINE)
        found = closer(path, between)
        if np.isfinite(found).all():
            first = int(np.argmax((found > 1) != (found[0] > 1)))
            ends, ratios = between[[first - 1, first]], found[[first - 1, first]]
    above, below = np.log(ratios)
    return float(ends[0] + above / (above - below) * (ends[1] - ends[0]))
