"""Pairs of inputs that flip the order together, each within its own range, of those of which neither does alone.

Of some hundred inputs there are ten thousands of pairs. Were the logarithm of a ratio a sum over inputs, a pair would flip the order if what
both do alone comes to enough; those near enough are looked at, the strongest first, and only what the chain says of them is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tco.studies.drivers import CENTRE, places_of
from tco.studies.ranges import Array, Range

NEAR = 0.5  # of what is needed, that both do alone: together they may do twice as much
STILL = 1e-9  # relative change that is none
MOST = 256  # pairs that are looked at


class Pair(NamedTuple):
    """Two inputs that flip the order together."""

    paths: tuple[str, str]
    values: tuple[float, float]  # of both, in their units
    ratio: float  # there


def pairs_that_flip(ranges: Mapping[str, Range], ratios: Mapping[str, Array], together: Callable[[Mapping[str, Array]], Array]) -> list[Pair]:
    """Return the pairs that flip the order, the farthest across first; `ratios` are those of every input alone at P5, its value and P95.

    An input that decides how many of something there are is left out, since it changes what is held; so are pairs of inputs whose draws
    are the same, which cannot move apart.
    """
    centre = next(iter(ratios.values()))[CENTRE]
    if not np.isfinite(centre) or centre in (0, 1):
        return []
    side = 1.0 if centre > 1 else -1.0
    gains, far = {}, {}
    for path, many in ratios.items():
        known = np.isfinite(many) & (many > 0)
        if ranges[path].steps or ((many[[0, -1]] > 1) != (centre > 1)).any():
            continue
        gain = np.where(known, side * np.log(centre / np.where(known, many, centre)), -np.inf)
        if gain.max() > STILL:
            far[path] = float(places_of(ranges[path])[gain.argmax()])
            gains[path] = float(gain.max())
    names = sorted(gains, key=lambda path: (-gains[path], path))
    pairs = near_enough(ranges, names, np.array([gains[path] for path in names]), side * float(np.log(centre)))
    if not pairs:
        return []
    moved = {path: np.full(len(pairs), ranges[path].home) for path in dict.fromkeys(path for pair in pairs for path in pair)}
    for at, pair in enumerate(pairs):
        for path in pair:
            moved[path][at] = far[path]
    found = [
        Pair(pair, (float(ranges[pair[0]].at(np.array(far[pair[0]]))), float(ranges[pair[1]].at(np.array(far[pair[1]])))), float(ratio))
        for pair, ratio in zip(pairs, together(moved), strict=True)
        if np.isfinite(ratio) and (ratio > 1) != (centre > 1)
    ]
    return sorted(found, key=lambda one: (side * one.ratio, one.paths))


def near_enough(ranges: Mapping[str, Range], names: list[str], gains: Array, needed: float) -> list[tuple[str, str]]:
    """Return the pairs whose gains come near to what is needed, those that gain most first."""
    one, other = np.triu_indices(len(names), 1)
    both = gains[one] + gains[other]
    order = np.argsort(-both, kind="stable")
    order = order[both[order] >= NEAR * needed]
    pairs = ((names[one[at]], names[other[at]]) for at in order)
    return [pair for pair in pairs if ranges[pair[0]].leader != ranges[pair[1]].leader][:MOST]
