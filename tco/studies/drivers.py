"""Each input moved alone through its range: where it is looked at, what that makes of a metric, and where it flips the order."""

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


def ends_of(values: Array) -> tuple[float, float]:
    """Return what a metric is at the low and at the high of an input; where the target is missed there, at the last place before that meets it."""
    known = values[np.isfinite(values)]
    return (float(known[0]), float(known[-1])) if len(known) else (float("nan"), float("nan"))


def ratios_of(ranges: Mapping[str, Range], own: Mapping[str, Array], baseline: Mapping[str, Array]) -> dict[str, Array]:
    """Return the performance per cost at the places of each input; one that only one of the two rests on leaves the other where it is."""
    still = [np.full(BESIDE + 1, next(iter(costs.values()))[CENTRE]) for costs in (own, baseline)]
    return {path: perf_per_tco(baseline.get(path, still[1]), own.get(path, still[0])) for path in ranges}


def drivers_of(ranges: Mapping[str, Range], own: Mapping[str, Array], baseline: Mapping[str, Array], closer: Closer | None = None) -> list[Driver]:
    """Return the inputs that move the performance per cost most."""
    found = {}
    for path, ratios in ratios_of(ranges, own, baseline).items():
        low, high = ends_of(ratios)
        if high != low and np.isfinite(high):
            found[path] = (high - low, ratios)
    most = sorted(found.items(), key=lambda item: (-abs(item[1][0]), item[0]))[:NAMED]
    return [
        Driver(path, swing, flip(ranges[path], ratios, places_of(ranges[path]), closer), ranges[path].unit, ranges[path].value, ranges[path].shown)
        for path, (swing, ratios) in most
    ]


def flip(one: Range, ratios: Array, places: Array, closer: Closer | None = None) -> float | None:
    """Return where a ratio that is known at some places of an input, its value in their middle, passes one nearest to that value.

    Between two places its logarithm is taken to be a line, which near a target that is just met it is not: there it is looked at `closer`.
    """
    sides, centre = [], len(places) // 2
    for step in (-1, 1):
        for far in range(centre + step, len(places) if step > 0 else -1, step):
            near = far - step
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
