"""The batch at the speed asked for, between the batches of a search: plans are discrete, the sequences of a group are not.

A search tries batches in steps of a quarter or less. The plans that could still be the best are solved between the last batch that
meets the target and the next: memory grows evenly with the batch, time nearly so, and a few false positions settle it, the side that stays
counting half so that the last ones lie within the target.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine
from tco.performance.serving.phases import PassResult, decode
from tco.performance.serving.plans import DecodePlan, attention_chips
from tco.performance.serving.requests import Request

ROUNDS = 3  # time is nearly even between two batches of a search
MOST = 8  # plans solved, those first that could gain most
INSIDE = 2e-5  # how far within the time allowed a batch is aimed at

Array = np.ndarray[Any, Any]


def solved(
    machine: Machine, model: Architecture, request: Request, plan: DecodePlan, made: PassResult, allowed: float, meets: Array
) -> tuple[Array, DecodePlan] | None:
    """Return the rows of plans that could be the best and the sequences each may decode, in columns; None where no row gains.

    `plan` has batches in columns, the smallest first; `made` is its pass, `meets` what of it fits memory and meets the time allowed.
    """
    sizes = np.broadcast_to(plan.sequences, meets.shape)
    time, memory = np.broadcast_to(made.per_token, meets.shape), np.broadcast_to(made.memory, meets.shape)
    last = meets.shape[1] - 1 - np.argmax(meets[:, ::-1], axis=1)
    chips = np.broadcast_to(attention_chips(plan), (len(meets), 1))[:, 0]
    rows = np.arange(len(meets))
    rate = np.where(meets.any(axis=1), sizes[rows, last] / chips / time[rows, last], 0.0)
    bound = np.where(last < meets.shape[1] - 1, rate * sizes[rows, np.minimum(last + 1, meets.shape[1] - 1)] / sizes[rows, last], rate)
    kept = np.flatnonzero((rate > 0) & (last < meets.shape[1] - 1) & (bound >= rate.max()))
    if not len(kept):
        return None
    kept = kept[np.argsort(-bound[kept], kind="stable")][:MOST]
    low, high = sizes[kept, last[kept]], sizes[kept, last[kept] + 1]
    quick, slow = time[kept, last[kept]], time[kept, last[kept] + 1]
    less, more = memory[kept, last[kept]], memory[kept, last[kept] + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        held = np.where(more > machine.memory, low + (machine.memory - less) / (more - less) * (high - low), high)
    some = DecodePlan(*(np.asarray(axis)[kept] if np.shape(axis)[:1] == (len(meets),) else axis for axis in plan))
    ceiling, best, wanted = np.minimum(held, high), low, allowed * (1 - INSIDE)
    under, over = wanted - quick, np.maximum(slow - wanted, INSIDE * allowed)
    for _ in range(ROUNDS):
        tried = np.minimum(low + under / (under + over) * (high - low), ceiling)
        found = np.ravel(decode(machine, model, some._replace(sequences=tried[:, None]), request).per_token)
        quick_enough = found <= allowed
        best = np.where(quick_enough, tried, best)
        low, under = np.where(quick_enough, tried, low), np.where(quick_enough, np.maximum(wanted - found, 0.0), under / 2)
        high, over = np.where(quick_enough, high, tried), np.where(quick_enough, over, np.maximum(found - wanted, 0.0))
    return kept, some._replace(sequences=best[:, None])
