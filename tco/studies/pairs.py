"""Pairs of inputs that flip the order together, each within its own range, of those of which neither does alone.

Of some hundred inputs there are ten thousands of pairs. Were the logarithm of a ratio a sum over inputs, a pair would flip the order if what
both do alone comes to enough; those near enough are looked at, the strongest first, and only what the chain says of them is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from tco.studies.ranges import Array, Range

NEAR = 0.5  # of what is needed, that both do alone: together they may do twice as much
STILL = 1e-9  # relative change that is none


class Policy(Protocol):
    """How plans stand while inputs move."""

    pairs: int  # that are looked at, at most

    def places(self, one: Range, /) -> Array:
        """Return the places of an input where it is moved alone, its value in their middle."""

    def together(self, places: Mapping[str, Array], /) -> Array:
        """Return the ratio where some inputs are moved together."""


class Pair(NamedTuple):
    """Two inputs that flip the order together."""

    paths: tuple[str, str]
    values: tuple[float, float]  # of both, in their units
    ratio: float  # there


def pairs_that_flip(ranges: Mapping[str, Range], ratios: Mapping[str, Array], policy: Policy) -> list[Pair]:
    """Return the pairs that flip the order, the farthest across first; `ratios` are those of every input alone at its places.

    An input that decides how many of something there are is left out, since it changes what is held; so are pairs of inputs whose draws
    are the same, which cannot move apart.
    """
    first = next(iter(ratios.values()))
    middle = len(first) // 2
    centre = first[middle]
    if not np.isfinite(centre) or centre == 1:
        return []
    side = 1.0 if centre > 1 else -1.0
    gains, far = {}, {}
    for path, many in ratios.items():
        known = np.isfinite(many)
        if ranges[path].steps or ((many[known] > 1) != (centre > 1)).any():
            continue
        gain = np.where(known, side * np.log(centre / np.where(known, many, centre)), -np.inf)
        if gain.max() > STILL:
            far[path] = int(gain.argmax())
            gains[path] = float(gain.max())
    names = sorted(gains, key=lambda path: (-gains[path], path))
    pairs = near_enough(ranges, names, np.array([gains[path] for path in names]), side * float(np.log(centre)), policy.pairs)
    if not pairs:
        return []
    # both at their farthest, and should that miss the target each a step back
    near = {path: place + (place < middle) - (place > middle) for path, place in far.items()}
    tries = [[(far[a], far[b]) for a, b in pairs], [(far[a], near[b]) for a, b in pairs], [(near[a], far[b]) for a, b in pairs]]
    spots = {path: policy.places(ranges[path]) for path in dict.fromkeys(path for pair in pairs for path in pair)}
    moved = {path: np.full(len(tries) * len(pairs), places[middle]) for path, places in spots.items()}
    for turn, places in enumerate(tries):
        for at, (pair, both) in enumerate(zip(pairs, places, strict=True), turn * len(pairs)):
            for path, spot in zip(pair, both, strict=True):
                moved[path][at] = spots[path][spot]
    there = policy.together(moved).reshape(len(tries), len(pairs))
    across = np.where(np.isfinite(there), -side * np.log(np.where(np.isfinite(there), there, 1.0)), -np.inf)
    best = across.argmax(axis=0)
    found = []
    for at, (a, b) in enumerate(pairs):
        ratio = float(there[best[at], at])
        if np.isfinite(ratio) and (ratio > 1) != (centre > 1):
            values = [float(ranges[path].at(np.array(spots[path][spot]))) for path, spot in zip((a, b), tries[best[at]][at], strict=True)]
            found.append((-float(across[best[at], at]), Pair((a, b), (values[0], values[1]), ratio)))
    return [pair for _, pair in sorted(found, key=lambda one: (one[0], one[1].paths))]


def near_enough(ranges: Mapping[str, Range], names: list[str], gains: Array, needed: float, most: int) -> list[tuple[str, str]]:
    """Return the pairs whose gains come near to what is needed, those that gain most first."""
    one, other = np.triu_indices(len(names), 1)
    both = gains[one] + gains[other]
    order = np.argsort(-both, kind="stable")
    order = order[both[order] >= NEAR * needed]
    pairs = ((names[one[at]], names[other[at]]) for at in order)
    return [pair for pair in pairs if ranges[pair[0]].leader != ranges[pair[1]].leader][:most]
