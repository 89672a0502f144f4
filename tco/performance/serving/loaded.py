"""Engines under a number of requests in flight: rates of plans, or of measured rows, and the search among plans.

The same chips read prompts and decode, or prompts have a pool of their own. Each request is followed by the next one at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.foundation.formula import greatest, total
from tco.foundation.trace import plain, scope
from tco.foundation.values import Readable
from tco.models.architecture import Architecture
from tco.performance.layer.machine import Machine
from tco.performance.serving import closed_loop as loop
from tco.performance.serving import phases
from tco.performance.serving.phases import PassResult
from tco.performance.serving.plans import ServingPlan, attention_chips
from tco.performance.serving.requests import Request

ROUNDS = 5  # in which the batch of a pool that another one feeds settles


class Loaded(NamedTuple):
    """What engines reach under a load."""

    rates: dict[str, Any]
    decode: PassResult
    prefill: PassResult
    prefill_share: Any
    running: Any  # sequences of an engine
    needed: Any  # HBM of a chip with one sequence a group
    fits: Any  # whether weights and one sequence a group fit


def under_load(machine: Machine, model: Architecture, engines: ServingPlan, request: Request, values: Readable) -> Loaded:
    """Return the rates of engines with some requests in flight."""
    plan, before = engines.decode, engines.prefill
    groups, reading = plan.chips / attention_chips(plan), before.chips / attention_chips(before)
    start, steady = machine.shared("first_token_start"), machine.shared("steady_share")
    interference = machine.habit("prefill_interference")
    # what memory holds
    empty = phases.decode_memory(machine, model, plan._replace(sequences=0.0), request)
    one = phases.sequence_memory(machine, model, plan, request)
    room = loop.engine_room(loop.sequences_held(machine.memory, empty, one), groups)
    every = loop.requests_of_room(room, engines.engines) if request.offline else values["workload.concurrency"]
    flight = loop.requests_of_engine(every, engines.engines)
    running = loop.running_sequences(flight, room)
    # prompts
    arriving = flight if engines.readers is None else loop.requests_of_engine(every, engines.readers)
    together = loop.prompts_together(machine.habit("token_budget"), request.prompt, arriving, reading, machine.shared("prompt_bunching"))
    prefill = phases.prefill(machine, model, before, request, together)
    filled = loop.groups_in_use(reading, flight) if engines.readers is None else reading
    prompt_time = loop.engine_prompt_time(prefill.per_prompt, filled)
    first = loop.first_prompt_time(phases.reading_time(prefill.time, prefill.per_prompt), loop.groups_in_use(reading, arriving), reading, start)

    def step_of(size: Any) -> PassResult:
        return phases.decode(machine, model, plan._replace(sequences=loop.group_sequences(size, groups)), request)

    if engines.readers is None:
        decode = step_of(running)
        waiting = loop.waiting_for_prompts(running, prompt_time)
        per_token = loop.time_per_output_token(decode.per_token, waiting, interference, request.answer)
        inside = loop.first_token_time(first, decode.per_token, waiting, interference)
        rate = loop.request_rate(running, inside, request.answer, per_token)
        chips, share = plan.chips, loop.time_reading(rate, prompt_time)
    else:
        pool, size = loop.pool_time(prompt_time, engines.engines, engines.readers), running
        for number in range(1, ROUNDS + 1):
            with scope(f"round-{number}"):
                decode = step_of(size)
                per_token = decode.per_token
                inside = loop.first_token_time(first, per_token, 0.0, 1.0)
                rate = loop.fed_request_rate(loop.request_rate(running, inside, request.answer, per_token), pool, machine.shared("pool_sharpness"))
                size = loop.settled_batch(size, loop.decoding_sequences(rate, request.answer, per_token), running)
        chips = loop.chips_apart(plan.chips, engines.engines, before.chips, engines.readers)
        share = loop.share_reading(before.chips, engines.readers, engines.engines, chips)
    output = loop.closed_loop_rate(rate, request.answer, chips, steady)
    rates = {
        "output_tokens_per_s_per_chip": output,
        "input_tokens_per_s_per_chip": phases.input_rate(output, request.prompt, request.answer),
        "tokens_per_s_per_user": phases.tokens_per_user(per_token),
        "ttft_s": total("time_to_first_token_in_flight", [inside, loop.wait_before_engine(flight, running, rate)]),
        "tpot_s": per_token,
    }
    held = phases.prefill_memory(machine, model, before, request)
    needed = greatest("memory_needed", [total("with_one_sequence", [empty, one]), held])
    return Loaded(rates, decode, prefill, share, running, needed, plain(needed) <= plain(machine.memory))


def plan_under_load(engines: ServingPlan, made: Loaded) -> ServingPlan:
    """Return the engines with the whole sequences that run on each of their attention groups."""
    plan = engines.decode
    groups = plan.chips / attention_chips(plan)
    return engines._replace(decode=plan._replace(sequences=np.ceil(plain(made.running) / groups - 1e-9)))
