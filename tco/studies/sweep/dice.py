"""Draws that fill the ranges more evenly than chance: Latin hypercubes and Sobol sequences, each found from the number of the draw alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from tco.studies.ranges import GOLDEN, Array, Dice, mixed, uniform
from tco.studies.sweep.study import Draw

if TYPE_CHECKING:
    from tco.catalog import Catalogue

BITS = 30  # of a number of a Sobol sequence, and with them its longest: what the generator knows how to skip
ROUNDS = 4  # of a Feistel network: what follows is a random permutation (Luby and Rackoff 1988)
ENDS = 2.0**-54, 1 - 2.0**-53  # the lowest and highest share: beyond them a deviate is infinite


def dice_of(catalogue: Catalogue, draw: Draw, thrown: tuple[str, ...], start: int, stop: int) -> Dice:
    """Return the dice of some draws; `thrown` are all names that are drawn for, in one order."""
    if draw.method == "latin-hypercube":
        return Strata(catalogue, draw.seed, start, stop, draw.samples)
    if draw.method == "sobol":
        return Sequence(catalogue, draw.seed, start, stop, thrown)
    return Dice(catalogue, draw.seed, start, stop)


class Strata(Dice):
    """A Latin hypercube (McKay, Beckman and Conover 1979): of N draws of an input, one lies in each N-th of its probability."""

    def __init__(self, catalogue: Catalogue, seed: int, start: int, stop: int, samples: int) -> None:
        super().__init__(catalogue, seed, start, stop)
        self.draws, self.samples = np.arange(start, stop, dtype=np.uint64), samples

    def throw(self, name: str) -> Array:
        """Return the standard normal deviates of a name."""
        found = self.thrown.get(name)
        if found is None:
            key = mixed(mixed(self.seed) + np.uint64(crc32(name.encode())))
            within = uniform(mixed(key + (self.draws + np.uint64(1)) * GOLDEN))
            found = self.thrown[name] = deviates((permuted(self.draws, self.samples, mixed(key)) + within) / self.samples)
        return found


class Sequence(Dice):
    """A scrambled Sobol sequence: every name is a dimension of it."""

    def __init__(self, catalogue: Catalogue, seed: int, start: int, stop: int, names: tuple[str, ...]) -> None:
        super().__init__(catalogue, seed, start, stop)
        points = points_of(seed, len(names), start, stop)
        self.thrown = {name: deviates(points[:, place]) for place, name in enumerate(names)}


def permuted(places: Array, count: int, key: Array) -> Array:
    """Return where a random permutation of `count` takes some places: a Feistel network, walked until it is back inside."""
    half = np.uint64(max((count - 1).bit_length() + 1, 2) // 2)
    low = (np.uint64(1) << half) - np.uint64(1)
    found, outside = places.copy(), np.ones(len(places), dtype=bool)
    while outside.any():
        left, right = found[outside] >> half, found[outside] & low
        for turn in range(ROUNDS):
            left, right = right, left ^ (mixed(key + right * GOLDEN + np.uint64(turn)) & low)
        found[outside] = (left << half) | right
        outside[outside] = found[outside] >= count
    return found


def deviates(shares: Array) -> Array:
    """Return the standard normal deviates of shares of probability."""
    from scipy.special import ndtri

    found: Array = ndtri(np.clip(shares, *ENDS))
    return found


_engines = threading.local()  # the generator of a sequence goes on from where it stands: those of threads would meet


def points_of(seed: int, dimensions: int, start: int, stop: int) -> Array:
    """Return some points of a scrambled Sobol sequence."""
    import warnings

    from scipy.stats import qmc

    kept: dict[tuple[int, int], Any] = _engines.__dict__.setdefault("kept", {})
    engine = kept.get((seed, dimensions))
    if engine is None or engine.num_generated > start:
        kept.clear()
        engine = kept[seed, dimensions] = qmc.Sobol(dimensions, scramble=True, bits=BITS, seed=np.random.default_rng(seed))
    if engine.num_generated < start:
        engine.fast_forward(start - engine.num_generated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the first points are no power of two: of a piece of them that says nothing
        points: Array = engine.random(stop - start)
    return points
