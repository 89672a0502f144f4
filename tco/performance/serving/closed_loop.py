"""Engines under a fixed number of requests in flight: rates, and the search among plans.

The same chips read prompts and decode, or prompts have a pool of their own. Each request is
followed by the next one at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import sqrt
from tco.core.formula import formula, greatest, maximum, minimum, total
from tco.core.trace import scope, untraced_value
from tco.core.types import JsonObject, Quantity
from tco.core.units import Byte, PerSecond, Pure, Second, TokenPerChip
from tco.performance.deployment import deployed_rate
from tco.performance.serving import passes
from tco.performance.serving.passes import PassResult
from tco.performance.serving.plans import (
    ServingPlan,
    ServingWorkload,
    attention_chips,
)

ROUNDS = 5  # in which the batch of a pool that another one feeds settles


@formula("", source="little1961")
def requests_of_engine(concurrency: Pure, engines: Pure) -> Quantity:
    """Requests in flight of one of some equal engines: C / n."""
    return concurrency / engines


@formula("")
def sequences_held(memory: Byte, empty: Byte, sequence_memory: Byte) -> Quantity:
    """Sequences whose caches a chip's memory holds beside the weights: max(M - M_0, 0) / m."""
    return maximum(memory - empty, 0) / sequence_memory


@formula("")
def engine_room(group_sequences: Pure, groups: Pure) -> Quantity:
    """Sequences an engine's memory holds, at least one a group: g max(n, 1)."""
    return groups * maximum(group_sequences, 1)


@formula("", source="little1961")
def requests_of_room(room: Pure, engines: Pure) -> Quantity:
    """Requests in flight that fill some equal engines: g n."""
    return room * engines


@formula("")
def running_sequences(flight: Pure, room: Pure) -> Quantity:
    """Sequences that an engine runs at a time: min(C, R).

    Those beyond the room R in its memory wait.
    """
    return minimum(flight, room)


@formula("")
def group_sequences(running: Pure, groups: Pure) -> Quantity:
    """Sequences of an attention group in use: max(B / g, 1)."""
    return maximum(running / groups, 1)


@formula("", source="tco-calibration")
def prompts_together(
    budget: Pure, tokens: Pure, flight: Pure, groups: Pure, bunching: Pure
) -> Quantity:
    """Prompts of a group in one pass: min(b / T, 1 + x (max(C / g, 1) - 1)).

    The pass holds no more than its token budget b and the prompts that wait.
    """
    return minimum(budget / tokens, 1 + bunching * (maximum(flight / groups, 1) - 1))


@formula("")
def groups_in_use(groups: Pure, flight: Pure) -> Quantity:
    """Attention groups that have a prompt to read: min(g, max(C, 1))."""
    return minimum(groups, maximum(flight, 1))


@formula("s", source="tco-calibration")
def engine_prompt_time(batch_time: Second, filled: Pure) -> Quantity:
    """Engine time per prompt where some attention groups stand idle: t = t_batch / filled."""
    return batch_time / filled


@formula("s", source="tco-calibration")
def first_prompt_time(batch_time: Second, busy: Pure, groups: Pure, start: Second) -> Quantity:
    """Time of a request's own prompt and of work outside the engine: t = t_batch busy / g + start.

    busy / g is the share of groups with a prompt.
    """
    return batch_time * busy / groups + start


@formula("s", source="tco-calibration")
def waiting_for_prompts(running: Pure, prefill_time: Second) -> Quantity:
    """Prefill work of the other requests that one request meets: (B - 1) t_prefill."""
    return maximum(running - 1, 0) * prefill_time


@formula("", source="sglang-scheduler")
def interference_in_step(budget: Pure, tokens: Pure, flight: Pure, groups: Pure) -> Quantity:
    """Share of other prompts between a request's tokens: (1 - 1/n) / 2 of n passes.

    All requests start and end together, and prompts go first. A request that is read in the first
    pass waits for all others, one that is read last for none: n = max(C / g, 1) / max(b / T, 1), at
    least 1.
    """
    return (1 - minimum(maximum(budget / tokens, 1) / maximum(flight / groups, 1), 1)) / 2


@formula("s", source="tco-calibration")
def time_per_output_token(
    step: Second, waiting: Second, interference: Pure, output_tokens: Pure
) -> Quantity:
    """Time per output token: step + kappa waiting / output."""
    return step + interference * waiting / output_tokens


@formula("s", source="tco-calibration")
def first_token_time(first: Second, step: Second, waiting: Second, interference: Pure) -> Quantity:
    """Time to first token: first prefill + step / 2 + (1 - kappa) waiting."""
    return first + step / 2 + (1 - interference) * waiting


@formula("1/s", source="little1961")
def request_rate(running: Pure, first: Second, output_tokens: Pure, per_token: Second) -> Quantity:
    """Requests per second of an engine: B / (TTFT + (O - 1) TPOT)."""
    return running / (first + (output_tokens - 1) * per_token)


@formula("s")
def pool_time(prompt_time: Second, engines: Pure, readers: Pure) -> Quantity:
    """Time between the prompts that a pool of readers hands to each engine: t n / n_p."""
    return prompt_time * engines / readers


@formula("1/s", source="little1961")
def fed_request_rate(rate: PerSecond, pool: Second, sharpness: Pure) -> Quantity:
    """Rate of an engine that a pool feeds, both limits joined smoothly: (r^-p + t^p)^(-1/p)."""
    fed = rate * pool
    return rate / (
        maximum(fed, 1) * (1 + (minimum(fed, 1) / maximum(fed, 1)) ** sharpness) ** (1 / sharpness)
    )


@formula("", source="little1961")
def decoding_sequences(rate: PerSecond, output_tokens: Pure, per_token: Second) -> Quantity:
    """Sequences that decode at a time: rate (O - 1) TPOT."""
    return rate * (output_tokens - 1) * per_token


@formula("", source="tco-calibration")
def settled_batch(batch: Pure, target: Pure, most: Pure) -> Quantity:
    """Next guess of the running batch, half way in logarithm: sqrt(B min(max(target, 1), most))."""
    return sqrt(batch * minimum(maximum(target, 1), most))


@formula("s", source="little1961")
def wait_before_engine(flight: Pure, running: Pure, rate: PerSecond) -> Quantity:
    """Time a request waits for a place in an engine: max(C - B, 0) / r."""
    return maximum(flight - running, 0) / rate


@formula("token/s/chip", source="little1961")
def closed_loop_rate(
    rate: PerSecond, output_tokens: Pure, chips: Pure, steady: Pure, one_token: TokenPerChip = 1
) -> Quantity:
    """Output tokens per second and chip of a closed loop as measured over its run: s r O / N."""
    return steady * rate * output_tokens * one_token / chips


@formula("")
def time_reading(rate: PerSecond, prompt_time: Second) -> Quantity:
    """Share of its time an engine reads prompts: r t, at most one."""
    return minimum(rate * prompt_time, 1)


@formula("")
def chips_apart(chips: Pure, engines: Pure, reading: Pure, readers: Pure) -> Quantity:
    """Chips for each engine that decodes, those that read for it among them: N + N_p n_p / n."""
    return chips + reading * readers / engines


@formula("")
def share_reading(reading: Pure, readers: Pure, engines: Pure, chips: Pure) -> Quantity:
    """Share of the chips that read prompts: N_p n_p / (n N_all)."""
    return reading * readers / engines / chips


class Loaded(NamedTuple):
    """Rates, passes and memory of engines under a load."""

    rates: JsonObject
    decode: PassResult
    prefill: PassResult
    prefill_share: Quantity
    running: Quantity  # sequences of an engine
    needed: Any  # HBM of a chip with one sequence a group
    fits: Any  # whether weights and one sequence a group fit


def loaded_engine_rates(
    workload: ServingWorkload,
    engines: ServingPlan,
) -> Loaded:
    """Return the rates of engines with some requests in flight."""
    machine, request = workload.machine, workload.request
    plan, before = engines.decode, engines.prefill
    groups, reading = plan.chips / attention_chips(plan), before.chips / attention_chips(before)
    start, steady = machine.shared("first_token_start"), machine.shared("steady_share")
    # what memory holds
    empty = passes.decode_memory(workload, plan._replace(sequences=0.0))
    sequence_memory = passes.sequence_memory(workload, plan)
    room = engine_room(sequences_held(machine.memory, empty, sequence_memory), groups)
    total_requests = _requests_of_load(workload, engines, room)
    flight = requests_of_engine(total_requests, engines.engines)
    running = running_sequences(flight, room)
    arriving = (
        flight if engines.readers is None else requests_of_engine(total_requests, engines.readers)
    )
    budget = machine.habit("token_budget")
    together = prompts_together(
        budget, request.prompt, arriving, reading, machine.shared("prompt_bunching")
    )
    prefill = passes.evaluate_prefill(workload, before, together)
    filled = groups_in_use(reading, flight) if engines.readers is None else reading
    prompt_time = engine_prompt_time(prefill.per_prompt, filled)
    first = first_prompt_time(prefill.until_read, groups_in_use(reading, arriving), reading, start)

    def step_of(size: Quantity) -> PassResult:
        return passes.decode_pass(workload, plan._replace(sequences=group_sequences(size, groups)))

    if engines.readers is None:
        meeting = (budget, flight, reading)
        loop = _loop_that_reads(workload, step_of, running, first, prompt_time, meeting)
        chips, share = plan.chips, time_reading(loop.rate, prompt_time)
    else:
        loop = _loop_fed_by_pool(workload, engines, step_of, running, first, prompt_time)
        chips = chips_apart(plan.chips, engines.engines, before.chips, engines.readers)
        share = share_reading(before.chips, engines.readers, engines.engines, chips)
    output = closed_loop_rate(loop.rate, request.answer, chips, steady)
    rates = _rates_of_loop(workload, loop, output, flight, running)
    prefill_memory = passes.prefill_memory(workload, before)
    needed = greatest(
        "memory_needed", [total("with_one_sequence", [empty, sequence_memory]), prefill_memory]
    )
    return Loaded(
        rates,
        loop.decode,
        prefill,
        share,
        running,
        needed,
        untraced_value(needed) <= untraced_value(machine.memory),
    )


def _requests_of_load(workload: ServingWorkload, engines: ServingPlan, room: Quantity) -> Quantity:
    """Return the requests in flight of all engines: as stated, or what fills the memory."""
    if engines.flight is not None:
        return requests_of_room(engines.flight, engines.engines)
    if workload.request.offline:
        return requests_of_room(room, engines.engines)
    concurrency: Quantity = workload.values["workload.concurrency"]
    return concurrency


class _Loop(NamedTuple):
    """Decode pass and times of engines whose requests follow each other at once."""

    decode: PassResult
    per_token: Quantity
    inside: Quantity  # time to first token in the engine
    rate: Quantity  # requests/s of an engine


def _rates_of_loop(
    workload: ServingWorkload,
    loop: _Loop,
    output: Quantity,
    flight: Quantity,
    running: Quantity,
) -> JsonObject:
    """Return the rates and times of engines in a loop, as deployed, by metric."""
    if workload.machine.deployed is not None:
        output = deployed_rate(output, workload.machine.deployed)
    return {
        "output_tokens_per_s_per_chip": output,
        "input_tokens_per_s_per_chip": passes.input_rate(
            output, workload.request.prompt, workload.request.answer
        ),
        "tokens_per_s_per_user": passes.tokens_per_user(loop.per_token),
        "ttft_s": total(
            "time_to_first_token_in_flight",
            [loop.inside, wait_before_engine(flight, running, loop.rate)],
        ),
        "tpot_s": loop.per_token,
    }


def _loop_that_reads(
    workload: ServingWorkload,
    step_of: Callable[[Quantity], PassResult],
    running: Quantity,
    first: Quantity,
    prompt_time: Quantity,
    meeting: tuple[Quantity, Quantity, Quantity],
) -> _Loop:
    """Return the loop of engines that read their prompts between decode steps.

    `meeting` has the token budget, the requests in flight and the groups that read.
    """
    request = workload.request
    budget, flight, reading = meeting
    decode = step_of(running)
    waiting = waiting_for_prompts(running, prompt_time)
    in_step = request.equal_lengths and workload.values.exists(
        f"performance.{workload.machine.engine}.prefill_first"
    )
    interference = (
        interference_in_step(budget, request.prompt, flight, reading)
        if in_step
        else workload.machine.habit("prefill_interference")
    )
    per_token = time_per_output_token(decode.per_token, waiting, interference, request.answer)
    inside = first_token_time(first, decode.per_token, waiting, interference)
    return _Loop(
        decode, per_token, inside, request_rate(running, inside, request.answer, per_token)
    )


def _loop_fed_by_pool(
    workload: ServingWorkload,
    engines: ServingPlan,
    step_of: Callable[[Quantity], PassResult],
    running: Quantity,
    first: Quantity,
    prompt_time: Quantity,
) -> _Loop:
    """Return the loop of engines that another pool feeds, their batch settled in rounds."""
    size = running
    for number in range(1, ROUNDS + 1):
        with scope(f"round-{number}"):
            decode = step_of(size)
            per_token = decode.per_token
            inside = first_token_time(first, per_token, 0.0, 1.0)
            pool = pool_time(prompt_time, engines.engines, engines.readers)
            rate = fed_request_rate(
                request_rate(running, inside, workload.request.answer, per_token),
                pool,
                workload.machine.shared("pool_sharpness"),
            )
            size = settled_batch(
                size, decoding_sequences(rate, workload.request.answer, per_token), running
            )
    return _Loop(decode, per_token, inside, rate)


def plan_under_load(engines: ServingPlan, loaded: Loaded) -> ServingPlan:
    """Return the engines with the whole sequences that run on each of their attention groups."""
    plan = engines.decode
    groups = plan.chips / attention_chips(plan)
    return engines._replace(
        decode=plan._replace(sequences=np.ceil(untraced_value(loaded.running) / groups - 1e-9))
    )
