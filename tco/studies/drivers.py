"""What an answer rests on most: each input moved alone through its range, with what that makes of the performance per cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tco.chain.metrics import perf_per_tco
from tco.studies.ranges import P75, P95, Array, Range

PLACES = np.array([-P95, -P75, 0.0, P75, P95])  # where an input is looked at: P5, P25, its value, P75 and P95
CENTRE = 2
BESIDE = np.delete(PLACES, CENTRE)
NAMED = 3  # inputs an answer names


class Driver(NamedTuple):
    """An input that moves the performance per cost of a scenario."""

    path: str
    swing: float  # of the ratio to the baseline, from the input's P5 to its P95
    flips_at: float | None  # where in between the ratio passes one; none where it does not
    unit: str
    value: float
    shown: tuple[float, str] | None  # value and unit as the catalogue writes them


def one_at_a_time(paths: Sequence[str]) -> dict[str, Array]:
    """Return the places of every input where each is moved alone: all at their values first, then each at the other places."""
    found = {path: np.zeros(1 + len(BESIDE) * len(paths)) for path in paths}
    for at, path in enumerate(paths):
        found[path][1 + at * len(BESIDE) :][: len(BESIDE)] = BESIDE
    return found


def ways(paths: Sequence[str], costs: Array) -> dict[str, Array]:
    """Return the costs at the places of each input, of those in the order of `one_at_a_time`."""
    beside = costs[1:].reshape(len(paths), len(BESIDE))
    return dict(zip(paths, np.insert(beside, CENTRE, costs[0], axis=1), strict=True))


def drivers_of(ranges: Mapping[str, Range], own: Mapping[str, Array], baseline: Mapping[str, Array]) -> list[Driver]:
    """Return the inputs that move the performance per cost most.

    An input that only one of the two rests on leaves the other where it is. A place that misses the target has no cost, and the swing
    ends at the last that has one.
    """
    still = [np.full(len(PLACES), next(iter(costs.values()))[CENTRE]) for costs in (own, baseline)]
    found = {}
    for path in ranges:
        ratios = perf_per_tco(baseline.get(path, still[1]), own.get(path, still[0]))
        known = ratios[np.isfinite(ratios)]
        if len(known) > 1 and known[-1] != known[0]:
            found[path] = (float(known[-1] - known[0]), ratios)
    most = sorted(found.items(), key=lambda item: (-abs(item[1][0]), item[0]))[:NAMED]
    return [
        Driver(path, swing, flip(ranges[path], ratios), ranges[path].unit, ranges[path].value, ranges[path].shown) for path, (swing, ratios) in most
    ]


def flip(one: Range, ratios: Array) -> float | None:
    """Return where a ratio passes one, nearest to the input's value.

    Between two places its logarithm is taken to be a line: at the place that is returned the ratio is one to a few per cent.
    """
    sides = []
    for step in (-1, 1):
        for near in (CENTRE, CENTRE + step):
            far = near + step
            if np.isfinite(ratios[[near, far]]).all() and (ratios[far] > 1) != (ratios[near] > 1):
                above, below = np.log(ratios[near]), np.log(ratios[far])
                sides.append(PLACES[far] if one.steps else PLACES[near] + above / (above - below) * (PLACES[far] - PLACES[near]))
                break
    return float(one.at(np.array(min(sides, key=abs)))) if sides else None
