"""The largest batch of a decode plan that meets the target speed and fits memory.

Plans are discrete, the sequences of a group are not: where the target binds it is met, where memory
binds the memory is full. A search tries batches of a grid, and solves the plans that could still be
the best between the last one that meets the target and the next.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.compile.inverse import inverse_parabola
from tco.core.types import AnyArray, FloatArray
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.passes import PassResult, decode_pass
from tco.performance.serving.plans import (
    DecodePlan,
    ServingWorkload,
    attention_chips,
)

SLOWEST = 1e-9  # tokens a second that stand for a target of none

# batches of a search, between which those of the target are expected
GRID = 2.0 ** np.arange(11)[None]
MOST = 16  # plans of a search that are solved, those first of which most is expected
DOUBT = 0.15  # share by which more may be made of a plan than is expected of it
BESIDE = np.array(
    [1e-3, 3e-3, 6e-3, 12e-3, 24e-3, 36e-3, 48e-3, 6e-2, 72e-3, 84e-3, 96e-3, 0.12, 0.16, 0.24]
)
# of the batch expected, tried together
AROUND = np.concatenate([-BESIDE[::-1], [0.0], BESIDE])[None]
# whole tiles end at multiples of these: a batch that fills its last tile may make more than a
# larger one
WHOLE = 2.0 ** np.arange(8)[None]
# of a batch: time is nearly even between two as near as this, but for steps of tiles and waves
NARROW = 13e-3
# of the way across what is left, where a step lies between: tried together
BETWEEN = np.arange(1, 129)[None] / 128
# power of the batch by which the time of a token grows nowhere but across a step: it is even, or
# less than proportional
STEEP = 1.1
# share of the best rate by which a plan may lie below it, and make more at a smaller batch before a
# step
STEPS = 0.02
# of a batch that is just in time, among which its steps are looked for
BELOW = np.linspace(0.94, 1.0, 61)[None]
CLOSE = 25e-6  # of a batch: so near to one that takes longer, across a step, it is large enough
TRIES = 6  # one is the rule, and three where the best ends at a step
LEAST = 0.05  # power by which the time of a token grows with the batch


class Solved(NamedTuple):
    """Plans of a search that could be the best, each with the batch that just meets the target."""

    rows: FloatArray  # their places among the plans
    rate: FloatArray  # sequences a chip and second that are expected of them
    bound: FloatArray  # more than they could make
    batch: FloatArray  # at which that rate is expected
    # seen to meet it, and the next one that does not, or that fills the memory
    batches: tuple[FloatArray, FloatArray]
    power: FloatArray  # of the batch, by which the time of a token grows there
    # of the batches that were seen in time, the one that makes most, and how much
    best: tuple[FloatArray, FloatArray]


def solve_batches(
    workload: ServingWorkload,
    plan: DecodePlan,
    passed: PassResult,
    allowed: float,
    meets: FloatArray,
) -> Solved | None:
    """Return the possibly best plans with their largest batches; None without any beyond the grid.

    `plan` has batches in columns, the smallest first; `passed` is its pass, `meets` what of it fits
    memory and meets the time allowed.
    """
    likely = _likely_plans(workload.machine, plan, passed, allowed, meets)
    if likely is None:
        return None
    plan_rows, batch, power, bracket = likely
    low, high, quick, slow, ceiling, chips = bracket
    going = np.arange(len(plan_rows))
    near = np.column_stack(
        (batch[:, None] * (1 + AROUND), np.floor(batch[:, None] / WHOLE) * WHOLE)
    )
    tried = np.sort(np.clip(near, low[:, None], ceiling[:, None]), axis=1)
    best, most = low.copy(), low / quick / chips
    for _ in range(TRIES):
        plan_subset = _plans_at(plan, plan_rows[going])._replace(sequences=tried)
        token_times = np.broadcast_to(decode_pass(workload, plan_subset).per_token, tried.shape)
        _narrow_brackets(bracket, going, tried, token_times, allowed, (best, most))
        ends = np.minimum(high, ceiling)
        found_out = ends <= low * (1 + CLOSE)
        batch = np.where(
            found_out,
            low,
            np.minimum(low + _even_share(quick, slow, allowed) * (high - low), ceiling),
        )
        # the last before a step is quicker
        rate = np.maximum(
            np.maximum(batch / np.where(found_out, quick, allowed), low / quick) / chips, most
        )
        bound = ends / quick / chips
        step = (slow > quick * (high / low) ** STEEP) | (high > low * (1 + NARROW))
        going = np.flatnonzero(step & ~found_out & (bound >= rate.max()))
        if not len(going):
            break
        tried = low[going, None] + BETWEEN * (ends - low)[going, None]
    near = np.flatnonzero(np.maximum(rate, most) >= (1 - STEPS) * np.maximum(rate, most).max())
    plan_subset, best_near = _plans_at(plan, plan_rows[near]), (best[near], most[near])
    best[near], most[near] = _best_batch_before_step(
        workload, plan_subset, allowed, low[near], best_near
    )
    bound, power = np.maximum(bound, most), np.clip(power, LEAST, 1.0)
    return Solved(plan_rows, rate, bound, batch, (low, ends), power, (best, most))


class _Bracket(NamedTuple):
    """Batches of each plan between which its solution lies, with the times of a token there."""

    low: FloatArray
    high: FloatArray
    quick: FloatArray  # time at the low batch, s
    slow: FloatArray  # time at the high batch, s
    ceiling: FloatArray  # largest batch that may be
    chips: FloatArray  # of an attention group


def _plans_at(plan: DecodePlan, plan_rows: AnyArray) -> DecodePlan:
    return DecodePlan(
        *(axis[plan_rows] if np.ndim(axis) and len(axis) > 1 else axis for axis in plan)
    )


def _likely_plans(
    machine: Machine, plan: DecodePlan, passed: PassResult, allowed: float, meets: FloatArray
) -> tuple[AnyArray, FloatArray, FloatArray, _Bracket] | None:
    """Return the rows of plans that could be best, their batches, powers and brackets."""
    sizes = np.broadcast_to(plan.sequences, meets.shape)
    time = np.broadcast_to(passed.per_token, meets.shape)
    memory = np.broadcast_to(passed.memory, meets.shape)
    largest = meets.shape[1] - 1
    last = largest - np.argmax(meets[:, ::-1], axis=1)
    chips = np.broadcast_to(attention_chips(plan), (len(meets), 1))[:, 0]
    plan_indices = np.arange(len(meets))
    rate = np.where(
        meets.any(axis=1), sizes[plan_indices, last] / chips / time[plan_indices, last], 0.0
    )
    plan_rows = np.flatnonzero((rate > 0) & (last < largest))
    before = np.where(last > 0, last - 1, np.minimum(last + 2, largest))[plan_rows]
    last, after = last[plan_rows], last[plan_rows] + 1
    low, high, third_size = (sizes[plan_rows, column] for column in (last, after, before))
    quick, slow = time[plan_rows, last], time[plan_rows, after]
    less, more = memory[plan_rows, last], memory[plan_rows, after]
    with np.errstate(divide="ignore", invalid="ignore"):
        memory_batch = np.where(
            more > machine.memory,
            low + (machine.memory - less) / (more - less) * (high - low),
            high,
        )
        power = np.log(slow / quick) / np.log(high / low)
    ceiling = np.minimum(memory_batch, high)
    share, smooth = inverse_parabola(
        (low, high, third_size),
        (quick - allowed, slow - allowed, time[plan_rows, before] - allowed),
    )
    batch = np.minimum(
        low + np.where(smooth, share, _even_share(quick, slow, allowed)) * (high - low), ceiling
    )
    expected = np.maximum(batch / chips[plan_rows] / allowed, rate[plan_rows])
    likely = np.argsort(-expected, kind="stable")
    likely = likely[expected[likely] * (1 + DOUBT) >= expected.max(initial=rate.max())][:MOST]
    if not len(likely):
        return None
    bracket = (low, high, quick, slow, ceiling, chips[plan_rows])
    return (
        plan_rows[likely],
        batch[likely],
        power[likely],
        _Bracket._make(bound[likely] for bound in bracket),
    )


def _narrow_brackets(
    bracket: _Bracket,
    going: AnyArray,
    tried: FloatArray,
    token_times: FloatArray,
    allowed: float,
    best_batches: tuple[FloatArray, FloatArray],
) -> None:
    """Narrow the brackets of plans by the times of tried batches, and keep the best.

    Brackets and best batches are changed as they stand.
    """
    low, high, quick, slow, _, chips = bracket
    best, most = best_batches
    sizes = np.column_stack((low[going], tried, high[going]))
    times = np.column_stack((quick[going], token_times, slow[going]))
    batch_rates = np.where(times <= allowed, sizes / times, 0.0) / chips[going, None]
    row_indices, top = np.arange(len(going)), batch_rates.argmax(axis=1)
    better = batch_rates[row_indices, top] > most[going]
    best[going[better]], most[going[better]] = (
        sizes[row_indices, top][better],
        batch_rates[row_indices, top][better],
    )
    met = tried.shape[1] - np.argmax((times <= allowed)[:, -2::-1], axis=1)
    low[going], high[going], quick[going], slow[going] = (
        batch_values[row_indices, column_index]
        for batch_values in (sizes, times)
        for column_index in (met, met + 1)
    )


def _best_batch_before_step(
    workload: ServingWorkload,
    plan: DecodePlan,
    allowed: float,
    batch: FloatArray,
    best_so_far: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return each plan's batch with the highest rate, and that rate, also from smaller batches.

    The rate rises up to a tile step and falls across it: batches below tell which step is the best,
    those up to the next where it begins.
    """
    (best, most), chips, plan_indices = best_so_far, attention_chips(plan), np.arange(len(batch))
    tried = batch[:, None] * BELOW
    for _ in range(2):
        times = np.broadcast_to(
            decode_pass(workload, plan._replace(sequences=tried)).per_token,
            tried.shape,
        )
        batch_rates = np.where(times <= allowed, tried / times, 0.0) / chips
        top = batch_rates.argmax(axis=1)
        top_batch = tried[plan_indices, top]
        after = tried[plan_indices, np.minimum(top + 1, tried.shape[1] - 1)]
        better = batch_rates[plan_indices, top] > most
        best = np.where(better, top_batch, best)
        most = np.where(better, batch_rates[plan_indices, top], most)
        tried = top_batch[:, None] + BETWEEN * (after - top_batch)[:, None]
    return best, most


def _even_share(quick: Any, slow: Any, allowed: Any) -> Any:
    return np.clip(
        np.divide(allowed - quick, slow - quick, out=np.zeros_like(quick), where=slow > quick),
        0.0,
        1.0,
    )
