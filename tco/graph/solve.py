"""The largest number whose time is no more than some time allowed, for many curves at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Times = Callable[[Array, Any], Array]  # of numbers on the curves of some places; none: on all

SOON = 1e-6  # share of the time allowed that is near enough
CLOSE = 1e-4  # share of a number: so near to one that takes longer, across a step, it is large enough
ROUNDS = 60  # far more than it takes


def largest_within(times: Times, allowed: Array, low: Array, high: Array, first: Array) -> tuple[Array, Array]:
    """Return the largest numbers from `low` to `high` whose time is no more than allowed, else `low`, and their times; `first` is tried first.

    Times rise with the number, in steps where another tile or wave begins. Chandrupatla's method on arrays: where three points lie on a
    smooth curve the inverse parabola through them is followed, elsewhere what is left is halved, so that no step costs many rounds.
    """
    over = SOON / 4  # what is aimed at lies so far within the time allowed
    aim = whole = allowed * (1 - over)
    near = np.minimum(np.maximum(first, low), high)
    off = times(near, None) / aim - 1
    far = np.where(off > over, low, high)
    off_far = times(far, None) / aim - 1
    best, off_best = np.where(off > over, far, near), np.where(off > over, off_far, off)
    further = (off <= over) & (off_far <= over)  # even the largest is in time
    best[further], off_best[further] = high[further], off_far[further]
    places = np.flatnonzero(((off > over) != (off_far > over)) & ((off < -SOON) | (off > over)) & ((off_far < -SOON) | (off_far > over)))
    near, far, off, off_far, aim = (one[places] for one in (near, far, off, off_far, aim))
    before, off_before = far, off_far
    share = np.clip(off / (off - off_far), 0.05, 0.95)
    for _ in range(ROUNDS):
        if not len(places):
            break
        tried = near + share * (far - near)
        found = times(tried, places) / aim - 1
        crossed = (found <= 0) != (off <= 0)
        before, off_before = np.where(crossed, far, near), np.where(crossed, off_far, off)
        far, off_far = np.where(crossed, near, far), np.where(crossed, off, off_far)
        near, off = tried, found
        quick = off <= over
        best[places], off_best[places] = np.where(quick, near, far), np.where(quick, off, off_far)
        left = np.flatnonzero(
            (np.abs(far - near) > CLOSE * np.maximum(far, near)) & ((off > over) | (off < -SOON)) & ((off_far > over) | (off_far < -SOON))
        )
        if len(left) < len(places):
            places, near, far, before, off, off_far, off_before, aim = (
                one[left] for one in (places, near, far, before, off, off_far, off_before, aim)
            )
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
