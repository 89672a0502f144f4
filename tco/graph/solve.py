"""The largest number whose time is no more than some time allowed, for many curves at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Times = Callable[[Array, Any], Array]  # of numbers on the curves of some places, of several on each row by row; none: on all

SOON = 1e-9  # share of the time allowed that is near enough
CLOSE = 1e-5  # share of a number: so near to one that takes longer, across a step, it is large enough
STEPS = 5  # along a curve before it is asked whether it has a step of its own
LEAST = 1e-2  # of the slope expected, that a secant may have
ROUNDS = 60  # far more than it takes
TRIES = 4  # numbers that are tried at once across a step: as many whatever other curves are left, so that no curve rests on others


def largest_within(times: Times, allowed: Array, low: Array, high: Array, first: Array, power: Array) -> tuple[Array, Array]:
    """Return the largest numbers from `low` to `high` whose time is no more than allowed, else `low`, and their times.

    Times rise with the number: from `first`, which is tried first, by about as much as a `power` of it there, evenly, but in steps where
    another tile or wave begins. Along a smooth curve the tangent, a secant and inverse parabolas lead there; what they do not settle is
    bracketed.
    """
    best = np.minimum(np.maximum(first, low), high)
    time = np.array(times(best, None))
    aim = allowed * (1 - SOON / 4)  # so far within the time allowed
    places = np.arange(len(best))
    met: list[tuple[Array, Array]] = []  # points before, and how far beyond the time aimed at they lie
    for _ in range(STEPS):
        near, its = best[places], time[places]
        left = np.flatnonzero(~settled(near, its, allowed[places], low[places], high[places]))
        if not len(left):
            return best, time
        if len(left) < len(places):
            places, near, its = places[left], near[left], its[left]
            met = [(one[left], off[left]) for one, off in met]
        off = its - aim[places]
        tried = np.minimum(np.maximum(onward(near, off, met, power[places] * its / near), low[places]), high[places])
        met = [(near, off), *met[:1]]
        best[places], time[places] = tried, times(tried, None if len(places) == len(best) else places)
    left = np.flatnonzero(~settled(best[places], time[places], allowed[places], low[places], high[places]))
    if len(left):
        places = places[left]
        (before, off), late = met[0], time[places] > allowed[places]
        best[places], time[places] = between(
            lambda x, some: times(x, places[some]),
            aim[places],
            (best[places], before[left], np.where(late, low[places], high[places])),
            (time[places], off[left] + aim[places]),
        )
    return best, time


def onward(near: Array, off: Array, known: list[tuple[Array, Array]], slope: Array) -> Array:
    """Return where the time aimed at is expected: by the slope, from two points by a secant, from three by the inverse parabola through them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if known:
            (before, off_before), *rest = known
            secant = (off - off_before) / (near - before)
            slope = np.where((secant > slope * LEAST) & np.isfinite(secant), secant, slope)
        found = near - off / slope
        if known and rest:
            ((first, off_first),) = rest
            a, b, c = off, off_before, off_first
            root = near * b * c / ((a - b) * (a - c)) + before * a * c / ((b - a) * (b - c)) + first * a * b / ((c - a) * (c - b))
            smooth = ((near - before) * (a - b) > 0) & ((before - first) * (b - c) > 0) & (np.abs(root - near) < 2 * np.abs(found - near))
            found = np.where(smooth, root, found)
    return found


def settled(number: Array, time: Array, allowed: Array, low: Array, high: Array) -> Array:
    """Say which numbers are the largest within the time allowed: just within it, or in time or late at an end."""
    quick = time <= allowed
    return np.where(quick, (time >= allowed * (1 - SOON)) | (number >= high), number <= low)


def between(
    times: Callable[[Array, Array], Array], aim: Array, points: tuple[Array, Array, Array], known: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the largest numbers in time, and their times, by Chandrupatla's method on arrays.

    `points` are the newest number, the one before, whose times are known, and the end on the other side of the time aimed at. Where three
    points lie on a smooth curve the inverse parabola through them is followed, elsewhere what is left is halved.
    """
    near, far, end = points
    off, off_far = known[0] / aim - 1, known[1] / aim - 1
    before, off_before = far, off_far.copy()
    across = (off <= 0) != (off_far <= 0)
    far = np.where(across, far, end)
    if not across.all():
        some = np.flatnonzero(~across)
        off_far[some] = times(end[some], some) / aim[some] - 1
    over, whole = SOON / 4, aim
    places: Array = np.arange(len(near))
    quick = np.where((off <= over) & (off_far <= over), near > far, off <= off_far)
    best: Array = np.where(quick, near, far)
    off_best: Array = np.where(quick, off, off_far)
    share = next_share((near, far, np.where(across, end, before)), (off, off_far, np.where(across, np.nan, off_before)))
    for _ in range(ROUNDS):
        going = ((off <= 0) != (off_far <= 0)) & (np.abs(far - near) > CLOSE * np.maximum(far, near))
        left = np.flatnonzero(going & ((off > over) | (off < -SOON)) & ((off_far > over) | (off_far < -SOON)))
        if not len(left):
            break
        if len(left) < len(places):
            places, near, far, off, off_far, aim, share = (one[left] for one in (places, near, far, off, off_far, aim, share))
        each = np.arange(len(places))
        even = np.broadcast_to(np.arange(1, TRIES)[:, None] / TRIES, (TRIES - 1, len(share)))
        shares = np.sort(np.vstack([even, share]), axis=0)
        tried = near + shares * (far - near)
        found = times(tried, places) / aim - 1
        all_points, offs = np.vstack([near, tried, far]), np.vstack([off, found, off_far])
        first = ((offs <= 0) != (offs[0] <= 0)).argmax(axis=0)  # beyond the time aimed at, seen from the nearest
        last = first == TRIES + 1
        new, old, third = np.where(last, first - 1, first), np.where(last, first, first - 1), np.where(last, first - 2, first + 1)
        near, far, before = all_points[new, each], all_points[old, each], all_points[third, each]
        off, off_far, off_before = offs[new, each], offs[old, each], offs[third, each]
        quick = off <= over
        best[places], off_best[places] = np.where(quick, near, far), np.where(quick, off, off_far)
        share = next_share((near, far, before), (off, off_far, off_before))
    return best, (off_best + 1) * whole


def next_share(points: tuple[Array, Array, Array], off: tuple[Array, Array, Array]) -> Array:
    """Return how far from the newest point towards the other side to look next: to the root of the inverse parabola, else half way."""
    (near, far, before), (a, b, c) = points, off
    with np.errstate(divide="ignore", invalid="ignore"):
        way, rise = (near - far) / (before - far), (a - b) / (c - b)
        root = a / (b - a) * c / (b - c) + (before - near) / (far - near) * a / (c - a) * b / (c - b)
        smooth = (rise**2 < way) & ((1 - rise) ** 2 < 1 - way) & np.isfinite(root)
        least = np.minimum(0.5, CLOSE / 2 * np.maximum(far, near) / np.abs(far - near))
    return np.clip(np.where(smooth, root, 0.5), least, 1 - least)
