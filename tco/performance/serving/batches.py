"""The batch of a decode plan, solved for the target: the most sequences an attention group may decode at the speed asked for.

Plans are discrete, the sequences of a group are not: where the target binds it is met, where memory binds the memory is full. A search
tries batches of a grid, and solves the plans that could still be the best between the last one that meets the target and the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine
from tco.performance.serving.phases import PassResult, decode
from tco.performance.serving.plans import DecodePlan, attention_chips
from tco.performance.serving.requests import Request

SOON, CLOSE = 1e-4, 1e-3  # near enough: to the time asked for, or to a larger batch that takes longer
ROUNDS = 40  # far more than it takes
SLOWEST = 1e-9  # tokens a second that stand for a target of none

MOST = 8  # plans of a search that are solved, those first that could gain most
AROUND = np.array([[-24e-3, -12e-3, -6e-3, -3e-3, -1e-3, 0.0, 1e-3, 3e-3, 6e-3, 12e-3, 24e-3]])  # of the batch expected, tried together
NARROW = 13e-3  # of a batch: time is nearly even between two as near as this, but for steps of tiles and waves
TRIES = 4  # one is the rule
DOUBT = 0.08  # share by which a batch between two of the grid may miss what is expected of it
EXACTLY = 2e-5  # of the time asked for: the batch of the plan that is chosen

Array = np.ndarray[Any, Any]


class Bracket(NamedTuple):
    """What is known of the times of two batches, and the one between them that is expected to meet the target, if one is."""

    quick: Any
    slow: Any
    first: Any = None


class Solved(NamedTuple):
    """Plans of a search that could be the best, each with the batch that just meets the target."""

    rows: Array  # their places among the plans
    rate: Array  # sequences a chip and second that are expected of them
    batch: Array  # at which they are
    batches: tuple[Array, Array]  # seen to meet it, and the next one that does not, or that fills the memory
    times: tuple[Array, Array]  # of a token with either; none is known with a batch that fills the memory


def solved(
    machine: Machine, model: Architecture, request: Request, plan: DecodePlan, made: PassResult, allowed: float, meets: Array
) -> Solved | None:
    """Return the plans that could be the best with the batch each may decode; None where no batch beyond the grid is to be gained.

    `plan` has batches in columns, the smallest first; `made` is its pass, `meets` what of it fits memory and meets the time allowed.
    """
    sizes = np.broadcast_to(plan.sequences, meets.shape)
    time, memory = np.broadcast_to(made.per_token, meets.shape), np.broadcast_to(made.memory, meets.shape)
    largest = meets.shape[1] - 1
    last = largest - np.argmax(meets[:, ::-1], axis=1)
    chips = np.broadcast_to(attention_chips(plan), (len(meets), 1))[:, 0]
    every = np.arange(len(meets))
    rate = np.where(meets.any(axis=1), sizes[every, last] / chips / time[every, last], 0.0)
    bound = np.where(last < largest, rate * sizes[every, np.minimum(last + 1, largest)] / sizes[every, last], rate)
    rows = np.flatnonzero((rate > 0) & (last < largest) & (bound >= rate.max()))
    if not len(rows):
        return None
    rows = rows[np.argsort(-bound[rows], kind="stable")][:MOST]
    before, last, after = np.where(last > 0, last - 1, np.minimum(last + 2, largest))[rows], last[rows], last[rows] + 1
    low, high, beside = sizes[rows, last], sizes[rows, after], sizes[rows, before]
    quick, slow = time[rows, last], time[rows, after]
    less, more = memory[rows, last], memory[rows, after]
    with np.errstate(divide="ignore", invalid="ignore"):
        held = np.where(more > machine.memory, low + (machine.memory - less) / (more - less) * (high - low), high)
    ceiling, wanted = np.minimum(held, high), allowed * (1 - EXACTLY / 4)
    share, smooth = inverse_parabola((low, high, beside), (quick - wanted, slow - wanted, time[rows, before] - wanted))
    batch = np.minimum(low + np.where(smooth, share, even_share(quick, slow, wanted)) * (high - low), ceiling)
    places, tries = np.arange(len(rows)), np.ones((len(meets), AROUND.shape[1]))  # all plans are asked: what is known of their groups holds
    rate = batch / chips[rows] / allowed
    for _ in range(TRIES if np.count_nonzero(rate >= (1 - DOUBT) * rate.max()) > 1 else 0):
        tried = np.clip(batch[:, None] * (1 + AROUND), low[:, None], ceiling[:, None])
        tries[rows] = tried
        found = np.broadcast_to(decode(machine, model, plan._replace(sequences=tries), request).per_token, tries.shape)[rows]
        sizes, times = np.column_stack((low, tried, high)), np.column_stack((quick, found, slow))
        met = tried.shape[1] - np.argmax((times <= allowed)[:, -2::-1], axis=1)
        low, high, quick, slow = sizes[places, met], sizes[places, met + 1], times[places, met], times[places, met + 1]
        full = low >= ceiling
        batch = np.where(full, low, np.minimum(low + even_share(quick, slow, wanted) * (high - low), ceiling))
        rate = batch / chips[rows] / np.where(full, quick, allowed)
        best = rate.argmax()
        if full[best] or high[best] <= low[best] * (1 + NARROW):
            break
    return Solved(rows, rate, batch, (low, np.minimum(high, ceiling)), (quick, np.where(ceiling < high, np.nan, slow)))


def even_share(quick: Any, slow: Any, wanted: Any) -> Any:
    """Return how far from the quick to the slow the wanted time lies, time rising evenly between them."""
    return np.clip(np.divide(wanted - quick, slow - quick, out=np.zeros_like(quick), where=slow > quick), 0.0, 1.0)


def largest_within(
    time_of: Callable[[Any, Array | None], Any],
    wanted: Any,
    low: Any,
    high: Any,
    known: Bracket | None = None,
    soon: float = SOON,
    close: float = CLOSE,
) -> Any:
    """Return the largest number from `low` to `high` whose time is no more than wanted, and less by a share `soon` at most; else `low`.

    Times rise with the number, in steps where another tile or wave begins. Chandrupatla's method on arrays: where three points lie on a
    smooth curve the inverse parabola through them is followed, elsewhere what is left is halved, so that no step costs many rounds.
    `known` are their times, where they are known, and the number to try first.
    """
    slow = time_of(high, None) if known is None else known.slow
    if np.all(slow <= wanted):
        return high
    quick = time_of(low, None) if known is None else known.quick
    over = soon / 4  # what is aimed at lies so far within the time wanted
    aim = wanted * (1 - over)
    low, high, quick, slow, aim = (np.array(one) for one in np.broadcast_arrays(low, high, quick / aim - 1, slow / aim - 1, aim))
    between = (quick <= 0) & (slow > over)
    near, far, before = high, low, low  # the newest point, the nearest on the other side, and the one before
    off, off_far, off_before = slow, quick, quick  # how far their times lie beyond what is aimed at
    if known is None or known.first is None:
        share = np.clip(np.divide(slow, slow - quick, out=np.full(low.shape, 0.5), where=between), 0.05, 0.95)  # of the way to the other side
    else:
        share = (high - known.first) / (high - low)
    looked_at: Any = between & (quick < -soon)
    for _ in range(ROUNDS):
        if not looked_at.any():
            break
        tried = np.where(looked_at, near + share * (far - near), near)
        found = time_of(tried, looked_at.any(axis=tuple(range(looked_at.ndim - 1)))) / aim - 1
        crossed = looked_at & ((found <= 0) != (off <= 0))
        before, off_before = np.where(crossed, far, near), np.where(crossed, off_far, off)
        far, off_far = np.where(crossed, near, far), np.where(crossed, off, off_far)
        near, off = tried, np.where(looked_at, found, off)
        apart = np.abs(far - near) > close * np.maximum(far, near)
        looked_at = looked_at & apart & ((off > over) | (off < -soon)) & ((off_far > over) | (off_far < -soon))
        share = next_share((near, far, before), (off, off_far, off_before), close)
    best = np.where((off <= over) & ((off_far > over) | (near > far)), near, far)
    return np.where(between, best, np.where(slow <= over, high, low))


def next_share(points: tuple[Any, Any, Any], off: tuple[Any, Any, Any], close: float) -> Any:
    """Return how far from the newest point towards the other side to look next: to the inverse parabola's root, else half way."""
    root, smooth = inverse_parabola(points, off)
    near, far, _ = points
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.minimum(0.5, close / 2 * np.maximum(far, near) / np.abs(far - near))
    return np.clip(np.where(smooth, root, 0.5), least, 1 - least)


def inverse_parabola(points: tuple[Any, Any, Any], off: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """Return how far from the first point towards the second the inverse parabola through three has its root, and where that is to be trusted."""
    (near, far, before), (a, b, c) = points, off
    with np.errstate(divide="ignore", invalid="ignore"):
        way, rise = (near - far) / (before - far), (a - b) / (c - b)
        smooth = (rise**2 < way) & ((1 - rise) ** 2 < 1 - way)
        root = a / (b - a) * c / (b - c) + (before - near) / (far - near) * a / (c - a) * b / (c - b)
    return root, smooth & np.isfinite(root)
