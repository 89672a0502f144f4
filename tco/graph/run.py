"""A kernel run for arrays of values, in pieces that stay in the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tco.graph.kernel import Kernel, Schedule

Array = np.ndarray[Any, Any]
CELLS = 2**13  # numbers of one array: more do not stay in the cache, with fewer the calls cost more than the numbers
MOST = 0.7  # share of the draws beyond which all are computed: to pick what they rest on takes as long
TRIM, MMAP = (-1, 2**28), (-3, 2**25)  # options of mallopt with bytes: what may lie free, and what is asked of the system by itself
NONE: Mapping[int, Array] = {}


@cache
def keep_memory() -> None:
    """Let the C library of Linux keep what arrays leave free.

    It gives it back and fetches it anew, which takes several times as long as what is computed in the memory.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, size in (TRIM, MMAP):
            library.mallopt(option, size)


class Run:
    """A schedule for some values: its results for `count` draws on the last axis, or some of them, with values that come with each call."""

    def __init__(self, schedule: Schedule, values: Mapping[int, Any], count: int) -> None:
        self.schedule, self.count = schedule, count
        self.values = {place: values[place] for place in schedule.leaves if place in values}
        self.many = [(place, value) for place, value in self.values.items() if value.ndim and value.shape[-1] == count]
        self.rows = rows_of(self.values.values())

    def __call__(self, draws: Array | None = None, own: Mapping[int, Array] = NONE) -> list[Any]:
        """Return the results in all draws, or in some; one number each, or as many as there are draws. The values `own` are already of those."""
        if draws is not None and len(draws) > MOST * self.count:
            every = {place: np.ones((*value.shape[:-1], self.count)) for place, value in own.items()}
            for place, value in own.items():
                every[place][..., draws] = value
            return [one[..., draws] if one.ndim and one.shape[-1] == self.count else one for one in self(None, every)]
        whole = self.count if draws is None else len(draws)
        size = max(CELLS // max(self.rows, rows_of(own.values())), 1)
        if whole <= size * 1.5:
            size = whole
        piece, found = dict(self.values), list[Any]()
        for start in range(0, whole, size) if whole else (0,):
            part = slice(start, start + size)
            if draws is not None:
                piece.update([(place, value.take(draws[part], axis=-1)) for place, value in self.many])
            elif size < whole:
                piece.update([(place, value[..., part]) for place, value in self.many])
            piece.update([(place, value[..., part]) for place, value in own.items()])
            made, width = self.schedule.run(piece), min(size, whole - start)
            if width == whole:
                return made
            if not found:
                found = [np.empty((*one.shape[:-1], whole)) if one.ndim and one.shape[-1] == width else one for one in made]
            for every, one in zip(found, made, strict=True):
                if every is not one:
                    every[..., part] = one
        return found


def rows_of(values: Iterable[Any]) -> int:
    """Return how many plans, or tries, the largest of some values has on its first axis."""
    return max([len(value) for value in values if value.ndim == 2], default=1)


def evaluated(kernel: Kernel, wanted: Sequence[int], values: Mapping[int, Any], count: int, draws: Array | None = None) -> list[Any]:
    """Return what stands in some places of a kernel, from values of others, in all of `count` draws or in some."""
    return Run(kernel.schedule(wanted, values), values, count)(draws)


def taken(kernel: Kernel, values: Mapping[int, Any], places: Iterable[int], rows: Any, draws: Array | None = None) -> dict[int, Any]:
    """Return values in some places: of a slice of the plans in all draws, or of pairs of a plan, by its row on each axis, and a draw.

    Without draws the pairs are of all of them, one each.
    """
    found: dict[int, Any] = {}
    for place in places:
        value = values[place]
        if value.ndim == 1:
            value = value if draws is None else value.take(draws)
        elif value.ndim:
            row, wide = rows[kernel.axis(place)] if isinstance(rows, dict) else rows, value.shape[-1]
            if isinstance(row, slice):
                value = value[row]
            else:
                value = value.take(row if wide == 1 else row * wide + (np.arange(wide) if draws is None else draws))
        found[place] = value
    return found


def apart(kernel: Kernel, asked: Sequence[tuple[Sequence[int], Any]], values: Mapping[int, Any], count: int) -> list[list[Any]]:
    """Return what stands in some places in some draws, for each of several that are asked so: what they have in common is computed in all draws."""
    order = kernel.common([wanted for wanted, _ in asked], values)
    known = {**values, **dict(zip(order, evaluated(kernel, order, values, count), strict=True))}
    found = []
    for wanted, draws in asked:
        found.append(evaluated(kernel, wanted, known, count, draws if len(draws) < count else None))
    return found
