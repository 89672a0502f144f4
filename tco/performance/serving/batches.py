"""The batch of a decode plan, solved for the target: the most sequences an attention group may decode at the speed asked for.

A search takes batches from a grid, so that a plan either meets the target or fails it. Among many values asked together each has a
batch of its own, a continuous number between one and the largest of the grid: where the target binds it is met, where memory binds
the memory is full, and a plan that fails the target with a single sequence decodes that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tco.foundation.values import Readable, Subset
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine
from tco.performance.serving.closed_loop import sequences_held
from tco.performance.serving.phases import decode, decode_memory
from tco.performance.serving.plans import SEQUENCES, DecodePlan
from tco.performance.serving.requests import Request

SOON, CLOSE = 1e-4, 1e-3  # near enough: to the time asked for, or to a larger batch that takes longer
ROUNDS = 40  # far more than it takes
SHRINKS = 0.75  # values are looked at without the settled ones once no more than this share is left
SLOWEST = 1e-9  # tokens a second that stand for a target of none

Array = np.ndarray[Any, Any]


def with_batch(machine: Machine, model: Architecture, plan: DecodePlan, request: Request, values: Readable) -> DecodePlan:
    """Return a plan with the largest batch that fits and decodes no slower than asked for; plans are columns, values rows or both."""
    wanted = time_allowed(values)
    empty, one = (decode_memory(machine, model, plan._replace(sequences=size), request) for size in (0.0, 1.0))
    most = np.minimum(np.maximum(sequences_held(machine.memory, empty, one - empty), 1.0), float(SEQUENCES[-1]))
    steps = Steps(machine, model, plan, request)
    return plan._replace(sequences=largest_within(steps.times, wanted, np.ones_like(most), most))


def time_allowed(values: Readable) -> Any:
    """Return the time a token may take at the speed asked for."""
    return 1 / np.maximum(values["workload.interactivity"], SLOWEST)


class Steps:
    """Decode steps of a plan at any batches, of those values that are still looked at."""

    def __init__(self, machine: Machine, model: Architecture, plan: DecodePlan, request: Request) -> None:
        self.whole = self.left = (machine, plan._replace(sequences=1.0), request)
        self.model = model
        self.places: Array | None = None  # of the values that are left; none: all

    def times(self, sequences: Any, wanted: Array | None) -> Any:
        """Return the time of a token at some batches for the values that are wanted; the others' are not to be looked at."""
        if wanted is None:
            return self.of(sequences)
        kept = wanted.shape[-1] if self.places is None else len(self.places)
        if np.count_nonzero(wanted) <= SHRINKS * kept:
            self.places = np.flatnonzero(wanted)
            self.left = part_of(self.whole, self.places)
        if self.places is None:
            return self.of(sequences)
        found = np.zeros(sequences.shape)
        found[..., self.places] = self.of(sequences[..., self.places])
        return found

    def of(self, sequences: Any) -> Any:
        """Return the time of a token at some batches of the values that are left."""
        machine, plan, request = self.left
        return decode(machine, self.model, plan._replace(sequences=sequences), request).per_token


def part_of(value: Any, places: Array) -> Any:
    """Return what holds of some of many values: arrays and whatever holds them, what all share as it is."""
    if isinstance(value, np.ndarray):
        return value[..., places] if value.ndim and value.shape[-1] > 1 else value
    if isinstance(value, Readable):
        return Subset(value, lambda one: part_of(one, places))
    if isinstance(value, dict):
        return {name: part_of(one, places) for name, one in value.items()}
    if isinstance(value, tuple):
        parts = [part_of(one, places) for one in value]
        return type(value)._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value


def largest_within(time_of: Callable[[Any, Array | None], Any], wanted: Any, low: Any, high: Any) -> Any:
    """Return the largest number from `low` to `high` whose time is no more than wanted; `low` where even that takes longer.

    Times rise with the number, in steps where another tile or wave begins. Chandrupatla's method on arrays: where three points lie on a
    smooth curve the inverse parabola through them is followed, elsewhere what is left is halved, so that no step costs many rounds.
    """
    slow = time_of(high, None)
    if np.all(slow <= wanted):
        return high
    quick = time_of(low, None)
    low, high, quick, slow, wanted = (np.array(one) for one in np.broadcast_arrays(low, high, quick / wanted - 1, slow / wanted - 1, wanted))
    between = (quick <= 0) & (slow > 0)
    near, far, before = high, low, low  # the newest point, the nearest on the other side, and the one before
    off, off_far, off_before = slow, quick, quick  # how far their times lie beyond what is wanted
    share = np.clip(np.divide(slow, slow - quick, out=np.full(low.shape, 0.5), where=between), 0.05, 0.95)  # of the way to the other side
    looked_at = between
    for _ in range(ROUNDS):
        apart = np.abs(far - near) / np.maximum(far, near)
        looked_at = looked_at & (apart > CLOSE) & (np.where(off <= 0, off, off_far) < -SOON)
        if not looked_at.any():
            break
        tried = np.where(looked_at, near + share * (far - near), near)
        found = time_of(tried, looked_at.any(axis=tuple(range(looked_at.ndim - 1)))) / wanted - 1
        crossed = looked_at & ((found <= 0) != (off <= 0))
        before, off_before = np.where(crossed, far, near), np.where(crossed, off_far, off)
        far, off_far = np.where(crossed, near, far), np.where(crossed, off, off_far)
        near, off = tried, np.where(looked_at, found, off)
        share = next_share((near, far, before), (off, off_far, off_before))
    best = np.where(off <= 0, near, far)
    return np.where(between, best, np.where(slow <= 0, high, low))


def next_share(points: tuple[Any, Any, Any], off: tuple[Any, Any, Any]) -> Any:
    """Return how far from the newest point towards the other side to look next: to the inverse parabola's root, else half way."""
    (near, far, before), (a, b, c) = points, off
    with np.errstate(divide="ignore", invalid="ignore"):
        way, rise = (near - far) / (before - far), (a - b) / (c - b)
        smooth = (rise**2 < way) & ((1 - rise) ** 2 < 1 - way)
        root = a / (b - a) * c / (b - c) + (before - near) / (far - near) * a / (c - a) * b / (c - b)
        least = np.minimum(0.5, CLOSE / 2 * np.maximum(far, near) / np.abs(far - near))
    share = np.where(smooth & np.isfinite(root), root, 0.5)
    return np.clip(share, least, 1 - least)
