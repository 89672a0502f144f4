"""Each input moved alone to both ends of its range: what that makes of a metric, and where it flips the order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tco.studies.beliefs import P95, STEPS
from tco.studies.ranges import Array, Range
from tco.studies.verdict import Driver

CENTRE = 1  # of the places at which an input is looked at, P5, its value and P95: that of its value
NAMED = 3  # inputs an answer names
FINE = 17  # places from the value to an end, once the order is known to turn between them
Together = Callable[[Mapping[str, Array]], Array]  # places of some inputs, moved together -> the ratio there


def places_of(one: Range) -> Array:
    """Return the places at which an input is looked at: P5, its value, P95."""
    return np.array([-P95, one.home, P95])


def one_at_a_time(ranges: Mapping[str, Range]) -> dict[str, Array]:
    """Return every input where each is moved alone: all at their values first, then each at its low and its high."""
    found = {path: np.full(1 + 2 * len(ranges), one.value, dtype=float) for path, one in ranges.items()}
    for at, (path, one) in enumerate(ranges.items()):
        found[path][1 + 2 * at :][:2] = one.low, one.high
    return found


def ways(paths: Sequence[str], found: Array) -> dict[str, Array]:
    """Return a metric at the low, the value and the high of each input, of those in the order of `one_at_a_time`."""
    ends = found[1:].reshape(len(paths), 2)
    return {path: np.array([low, found[0], high]) for path, (low, high) in zip(paths, ends, strict=True)}


def on_both(ranges: Mapping[str, Range], own: Mapping[str, Array], baseline: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
    """Return what a scenario and its baseline come to at the places of each input of either; what one does not rest on leaves it where it is."""
    still = [np.full(3, next(iter(costs.values()))[CENTRE]) for costs in (own, baseline)]
    return {path: (own.get(path, still[0]), baseline.get(path, still[1])) for path in ranges}


def drivers_of(ranges: Mapping[str, Range], ratios: Mapping[str, Array], together: Together) -> list[Driver]:
    """Return the inputs that move the performance per cost most, those first at an end of which only one of the two meets the target."""
    swings = {path: swing_of(many) for path, many in ratios.items()}
    most = sorted((path for path, swing in swings.items() if swing), key=lambda path: (-abs(swings[path]), path))[:NAMED]
    flips = flips_of(ranges, {path: ratios[path] for path in most}, together)
    return [
        Driver(path, swings[path] if np.isfinite(swings[path]) else None, flips.get(path), ranges[path].unit, ranges[path].value, ranges[path].shown)
        for path in most
    ]


def swing_of(ratios: Array) -> float:
    """Return how far a ratio moves from the low of an input to its high: without end where it is without, or where it is a tie at one of them."""
    low, high = ratios[[0, -1]]
    if low == high or (np.isnan(low) and np.isnan(high)):
        return 0.0
    return float(high - low) if np.isfinite(high) and np.isfinite(low) else np.inf


def flips_of(ranges: Mapping[str, Range], ratios: Mapping[str, Array], together: Together) -> dict[str, float]:
    """Return where the order turns, nearest to its value, of the inputs at whose low or high it is not what it is at their values.

    Between value and end all are looked at closely, in one pass; of an input that decides how many of something there are it turns at the end.
    """
    turned = [(path, far) for path, many in ratios.items() for far in (0, -1) if (many[far] > 1) != (many[CENTRE] > 1)]
    smooth = [(path, far) for path, far in turned if ranges[path].shape != STEPS]
    found = [(path, float(places_of(ranges[path])[far])) for path, far in turned if ranges[path].shape == STEPS]
    if smooth:
        moved = {path: np.full((len(smooth), FINE), ranges[path].home) for path, _ in smooth}
        for row, (path, far) in enumerate(smooth):
            moved[path][row] = np.linspace(ranges[path].home, places_of(ranges[path])[far], FINE)
        looked = together({path: many.ravel() for path, many in moved.items()}).reshape(len(smooth), FINE)
        found += [(path, passed(moved[path][row], looked[row])) for row, (path, _) in enumerate(smooth)]
    nearest = sorted(found, key=lambda one: -abs(one[1] - ranges[one[0]].home))
    return {path: float(ranges[path].at(np.array(place))) for path, place in nearest}


def passed(places: Array, ratios: Array) -> float:
    """Return the first place at which a ratio passes one; between two of them its logarithm is taken to be a line."""
    crossed = (ratios > 1) != (ratios[0] > 1)
    if not crossed.any():
        return float(places[-1])
    first = int(np.argmax(crossed))
    (low, high), here = places[[first - 1, first]], ratios[[first - 1, first]]
    if not (np.isfinite(here) & (here > 0)).all():
        return float((low + high) / 2)
    above, below = np.log(here)
    return float(low + above / (above - below) * (high - low))
