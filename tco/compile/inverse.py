"""The largest number whose time is no more than some time allowed, for many curves at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tco.core.types import AnyArray

# of a number on each of the curves in some places; none: on all
Times = Callable[[AnyArray, Any], AnyArray]

SOON = 2e-10  # share of the time allowed that is near enough
OVER = SOON / 4  # share that is aimed at within it, and by which a time may lie beyond the aim
# share of a number: so near to one that takes longer, across a step, it is large enough
CLOSE = 1e-5
STEPS = 5  # along a curve before it is asked whether it has a step of its own
LEAST = 1e-2  # of the slope expected, that a secant may have
ROUNDS = 60  # far more than it takes


def largest_within(
    times: Times,
    allowed: AnyArray,
    low: AnyArray,
    high: AnyArray,
    first: AnyArray,
    power: AnyArray,
) -> tuple[AnyArray, AnyArray]:
    """Return the largest numbers with a time within the allowed time.

    Times rise with the number: from `first`, which is tried first, by about as much as a `power` of
    the number there, evenly, but in steps where another tile or wave begins. The solution lies
    between the largest number in time and the smallest that is late. Along a smooth curve the
    tangent, a secant and inverse parabolas lead there; after these the method of Chandrupatla does,
    which halves the interval where three points tell of a step.

    Args:
        times: Gives times in s from numbers and the indices of their curves; None means all curves.
        allowed: Greatest time of each curve in s.
        low: Least number of each curve.
        high: Greatest number of each curve.
        first: Number of each curve that is tried first.
        power: Exponent of the time as a power of the number, of each curve.

    Returns:
        Numbers, and their times in s. A curve without a number in time gives its `low`. All arrays
        have shape (curves,).

    """
    aim = allowed * (1 - OVER)
    looked_at = partial(_time_beyond_aim, times, aim)
    newest = looked_at(np.minimum(np.maximum(first, low), high), None)
    best_points, curve_indices = newest.copy(), np.arange(len(aim))
    before, earlier, quick, slow = (
        np.stack([number, np.full(len(aim), np.nan)]) for number in (low, low, low, high)
    )
    for step in range(ROUNDS):
        late = newest[1] > OVER
        third = np.where(late, slow, quick) if step >= STEPS else newest
        np.copyto(slow, newest, where=late)
        np.copyto(quick, newest, where=~late)
        step_between = (slow[0] - quick[0] <= CLOSE * slow[0]) & ~(slow[1] - quick[1] <= 2 * CLOSE)
        going = ((newest[1] < -3 * OVER) | late) & ~step_between
        if not going.all():
            done, left = np.flatnonzero(~going), np.flatnonzero(going)
            best, worst = quick.take(done, axis=1), newest.take(done, axis=1)
            best_points[:, curve_indices[done]] = np.where(np.isnan(best[1]), worst, best)
            if not len(left):
                break
            curve_indices, power = curve_indices[left], power[left]
            newest, before, earlier, third, quick, slow = (
                points.take(left, axis=1)
                for points in (newest, before, earlier, third, quick, slow)
            )
        if step < STEPS:
            tried = _inside_bracket(_onward((newest, before, earlier), power), quick, slow)
        else:
            tried = across(newest, np.where(newest[1] > OVER, quick, slow), third)
        earlier, before = before, newest
        newest = looked_at(tried, None if len(curve_indices) == len(aim) else curve_indices)
    return best_points[0], (best_points[1] + 1) * aim


def _time_beyond_aim(times: Times, aim: AnyArray, number: AnyArray, curve_indices: Any) -> AnyArray:
    """Return numbers, and by what share their times lie beyond those aimed at."""
    curve_aim = aim if curve_indices is None else aim[curve_indices]
    return np.stack([number, times(number, curve_indices) / curve_aim - 1])


def _inside_bracket(onward: AnyArray, quick: AnyArray, slow: AnyArray) -> AnyArray:
    """Return numbers within their brackets, the middle of those that would try an end again."""
    tried: AnyArray = np.minimum(np.maximum(onward, quick[0]), slow[0])
    again = ((tried == quick[0]) & ~np.isnan(quick[1])) | ((tried == slow[0]) & ~np.isnan(slow[1]))
    tried[again] = ((quick[0] + slow[0]) / 2)[again]
    return tried


def _onward(points: tuple[AnyArray, AnyArray, AnyArray], power: AnyArray) -> AnyArray:
    """Return the number at which the aimed time is expected.

    A single point gives a step by a power of the number. Two points give a secant, and three points
    their inverse parabola.
    """
    (near, a), (before, b), (first, c) = points
    with np.errstate(divide="ignore", invalid="ignore"):
        # numbers a share of the time
        usual = near / (power * (1 + a))
        secant = (near - before) / (a - b)
        last = (before - first) / (b - c)
        step = a * np.where((secant > 0) & (secant < usual / LEAST), secant, usual)
        bend = a * b * (secant - last) / (a - c)
        smooth = (secant > 0) & (last > 0) & (np.abs(bend - a * secant) < 2 * np.abs(step))
        tried: AnyArray = np.where(smooth, near - a * secant + bend, near - step)
    return tried


def across(newest: AnyArray, opposite: AnyArray, third: AnyArray) -> AnyArray:
    """Return the next number to try, between the newest and the opposite bound.

    The method is that of Chandrupatla (1997).

    It is the root of the inverse parabola through three points where they lie on a smooth curve,
    else the middle; an end that is not known is tried itself.
    """
    (near, a), (far, b), (before, c) = newest, opposite, third
    root, smooth = inverse_parabola((near, far, before), (a, b, c))
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.minimum(0.5, CLOSE / 2 * np.maximum(far, near) / np.abs(far - near))
    tried: AnyArray = np.where(
        np.isnan(b),
        far,
        near + np.clip(np.where(smooth, root, 0.5), least, 1 - least) * (far - near),
    )
    return tried


def inverse_parabola(points: tuple[Any, Any, Any], off: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """Return the root share of an inverse parabola, and its validity.

    The parabola passes through three points. The root is a share of the way from the first point to
    the second. The validity is true where the root can be trusted.
    """
    (near, far, before), (a, b, c) = points, off
    with np.errstate(divide="ignore", invalid="ignore"):
        span_ratio, rise = (near - far) / (before - far), (a - b) / (c - b)
        smooth = (rise**2 < span_ratio) & ((1 - rise) ** 2 < 1 - span_ratio)
        root = a / (b - a) * c / (b - c) + (before - near) / (far - near) * a / (c - a) * b / (
            c - b
        )
    return root, smooth & np.isfinite(root)
