"""A kernel run for arrays of values, in pieces that stay in the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tco.graph.kernel import Kernel

Array = np.ndarray[Any, Any]
CELLS = 2**11  # numbers of one array: more do not stay in the cache, with fewer the calls cost more than the numbers
NONE: Mapping[int, Array] = {}


def evaluated(
    kernel: Kernel, wanted: Sequence[int], values: Mapping[int, Any], count: int, places: Array | None = None, own: Mapping[int, Array] = NONE
) -> list[Any]:
    """Return what stands in some places of a kernel, from values of others: one number each, or `count` of them on the last axis.

    Of values that are so many those in some `places` alone are looked at, the values `own` being already of those.
    """
    schedule = kernel.schedule(wanted, values if not own else (*values, *own))
    piece = {place: own[place] if place in own else values[place] for place in schedule.leaves}
    whole = count if places is None else len(places)
    rows = max((value.size // value.shape[-1] for value in piece.values() if np.ndim(value) == 2), default=1)
    size = max(CELLS // rows, 1)
    many = [(place, value, place not in own) for place, value in piece.items() if np.ndim(value) and (place in own or value.shape[-1] == count)]
    if whole <= size * 1.5:
        if places is not None:
            piece.update([(place, value[..., places]) for place, value, picked in many if picked])
        return schedule.run(piece)
    found: list[Any] = []
    for start in range(0, whole, size):
        part: Any = slice(start, start + size)
        some = part if places is None else places[part]
        for place, value, picked in many:
            piece[place] = value[..., some if picked else part]
        made, width = schedule.run(piece), min(size, whole - start)
        if not found:
            found = [np.empty((*one.shape[:-1], whole)) if np.ndim(one) and one.shape[-1] == width else one for one in made]
        for every, one in zip(found, made, strict=True):
            if every is not one:
                every[..., part] = one
    return found


def taken(kernel: Kernel, values: Mapping[int, Any], places: Iterable[int], pairs: tuple[Any, Any] | None) -> dict[int, Any]:
    """Return values in some places: of all plans in all draws, or of pairs of them, the plan given by its row on each axis it lies on.

    Without draws the pairs are of all of them, one each.
    """
    if pairs is None:
        return {place: values[place] for place in places}
    rows, draws = pairs
    found: dict[int, Any] = {}
    for place in places:
        value = values[place]
        if np.ndim(value) == 1:
            found[place] = value if draws is None else value[draws]
        elif np.ndim(value):
            row = rows[kernel.axis(place)] if isinstance(rows, dict) else rows
            found[place] = value[row, 0 if value.shape[-1] == 1 else np.arange(value.shape[-1]) if draws is None else draws]
        else:
            found[place] = value
    return found


def apart(kernel: Kernel, asked: Sequence[tuple[Sequence[int], Any]], values: Mapping[int, Any], count: int) -> list[list[Any]]:
    """Return what stands in some places in some draws, for each of several that are asked so: what they have in common is computed in all draws."""
    lines = [{line[1] for line in kernel.schedule(wanted, values).lines} for wanted, _ in asked]
    times = Counter(place for own in lines for place in own)
    common: set[int] = set()
    for (wanted, _), own in zip(asked, lines, strict=True):
        met = {*wanted}.union(*(kernel.taken[place] for place in own if times[place] == 1))
        common |= {place for place in met if times[place] > 1}
    known = {**values, **dict(zip(order := sorted(common), evaluated(kernel, order, values, count), strict=True))}
    found = []
    for wanted, draws in asked:
        found.append(evaluated(kernel, wanted, known, count, draws if len(draws) < count else None))
    return found
