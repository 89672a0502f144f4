"""A serving workload asked for many values together: the plan each of them gets among some candidates, its batch solved for the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tco.foundation.values import Readable
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine
from tco.performance.serving.answer import ServingResult
from tco.performance.serving.batches import time_allowed, with_batch
from tco.performance.serving.phases import PassResult, decode, decode_rate, prefill, prefill_rate, reading_time
from tco.performance.serving.plans import (
    DecodePlan,
    PrefillPlan,
    ServingPlan,
    attention_chips,
    decoding,
    engines_of_world,
    filling,
    plan_axes,
    reading,
)
from tco.performance.serving.requests import Request, request_of
from tco.performance.serving.search import decode_axes


def every_plan(machine: Machine, model: Architecture, values: Readable) -> ServingPlan:
    """Return all plans of both phases, each axis a column."""
    request = request_of(values)
    if request.offline or values.exists("workload.concurrency"):
        both = filling(plan_axes(model, machine.links, 0), machine.links)
        return ServingPlan(columns_of(both), both)
    return ServingPlan(columns_of(decode_axes(machine, model, request)), plan_axes(model, machine.links, request.prompt))


def columns_of(axes: PrefillPlan) -> DecodePlan:
    """Return how engines divide as plans to decode on, the batch of none of them known."""
    return decoding(axes, np.ones(np.shape(axes.chips)))


def distinct(found: Sequence[ServingPlan]) -> ServingPlan:
    """Return the plans that some values got, each axis a column."""

    def columns(plans: list[PrefillPlan]) -> PrefillPlan:
        table = np.unique(np.concatenate([np.stack(plan) for plan in plans], axis=1), axis=1)
        return PrefillPlan(*(axis[:, None] for axis in table))

    return ServingPlan(columns_of(columns([reading(one.decode) for one in found])), columns([one.prefill for one in found]))


def put_together(found: Sequence[tuple[Any, ServingPlan]]) -> ServingPlan:
    """Return the plans of values in their order, of pieces that say which values they are of; a plan that is the same for all of a piece is one."""
    order = np.argsort(np.concatenate([places for places, _ in found]))
    plans = [plan for _, plan in found]

    def axis(*parts: Any) -> Any:
        return np.concatenate([np.broadcast_to(part, len(places)) for part, (places, _) in zip(parts, found, strict=True)])[order]

    decode = DecodePlan(*map(axis, *(one.decode for one in plans)))
    prefill = PrefillPlan(*map(axis, *(one.prefill for one in plans)))
    return ServingPlan(decode, prefill, None if plans[0].engines is None else axis(*(one.engines for one in plans)))


def part_of(plans: ServingPlan, places: Any) -> ServingPlan:
    """Return the plans of some of many values."""
    decode, prefill = ([axis[places] for axis in part] for part in (plans.decode, plans.prefill))
    return ServingPlan(DecodePlan(*decode), PrefillPlan(*prefill), None if plans.engines is None else plans.engines[places])


def plan_held(machine: Machine, model: Architecture, values: Readable, plan: ServingPlan) -> ServingPlan:
    """Return a plan with the batch that each value allows; with requests in flight the batch follows from them."""
    if plan.engines is not None:
        return plan
    return plan._replace(decode=with_batch(machine, model, plan.decode, request_of(values), values))


def plan_of_each(machine: Machine, model: Architecture, values: Readable, plans: ServingPlan) -> ServingPlan:
    """Return the plan that each value gets: plans are columns, values rows, and each axis of the answer has one number for each value."""
    request = request_of(values)
    if request.offline or values.exists("workload.concurrency"):
        return loaded_of_each(machine, model, values, plans, request)
    asked = with_batch(machine, model, plans.decode, request, values)
    step = decode(machine, model, asked, request)
    rate = decode_rate(asked.sequences, attention_chips(asked), step.per_token)
    one = best_of(asked, rate, step.per_token, step.per_token <= time_allowed(values) * (1 + 1e-9), step.memory <= machine.memory)
    ready = prefill(machine, model, plans.prefill, request)
    time = reading_time(ready.time, ready.per_prompt)
    rate = prefill_rate(request.prompt, attention_chips(plans.prefill), ready.per_prompt)
    other = best_of(plans.prefill, rate, time, time <= longest_wait(values), ready.memory <= machine.memory)
    return ServingPlan(one, other)


def loaded_of_each(machine: Machine, model: Architecture, values: Readable, plans: ServingPlan, request: Request) -> ServingPlan:
    """Return the engines that each value gets with some requests in flight; they fill a world."""
    from tco.performance.serving.loaded import under_load  # most workloads have pools of their own

    axes = plans.prefill
    every = ServingPlan(columns_of(axes), axes, engines_of_world(machine.links, axes.chips))
    made = under_load(machine, model, every, request, values)
    soon = request.offline | (made.rates["ttft_s"] <= longest_wait(values))
    quick = request.offline | (made.rates["tokens_per_s_per_user"] * (1 + 1e-9) >= values["workload.interactivity"])
    score, slow = made.rates["output_tokens_per_s_per_chip"], made.rates["tpot_s"]
    one: DecodePlan = best_of(every.decode, score, slow, soon & quick, made.fits)
    return ServingPlan(one, reading(one), engines_of_world(machine.links, one.chips))


def longest_wait(values: Readable) -> Any:
    """Return the longest time to the first token; zero asks for none."""
    limit = np.asarray(values["workload.ttft"])
    return np.where(limit > 0, limit, np.inf)


def best_of(plans: Any, score: Any, time: Any, meets: Any, fits: Any) -> Any:
    """Return the plan with the best score in each column: of those that fit and meet the target, else the quickest that fits."""
    score, time, meets, fits = np.broadcast_arrays(score, time, meets, fits)
    chosen = np.where(fits & meets, score, np.where(fits, -time, -np.inf)).argmax(axis=0)
    columns = np.arange(len(chosen))

    def taken(axis: Any) -> Any:
        table = np.broadcast_to(axis, score.shape)
        return table[chosen, columns]

    return plans._make(taken(axis) for axis in plans)


def meets_targets(machine: Machine, values: Readable, found: ServingResult) -> Any:
    """Say where a workload fits memory, gives each user the speed asked for, and the first token in time."""
    if found.decode is None or found.prefill is None:
        return False
    first = found.rates["ttft_s"] if found.fits is not None else reading_time(found.prefill.time, found.prefill.per_prompt)
    fits = found.fits if found.fits is not None else fits_in(machine, found.decode) & fits_in(machine, found.prefill)
    quick = found.rates["tokens_per_s_per_user"] * (1 + 1e-9) >= values["workload.interactivity"]
    return fits & quick & (first <= longest_wait(values))


def fits_in(machine: Machine, made: PassResult) -> Any:
    """Say where a pass fits memory."""
    return made.memory <= machine.memory
