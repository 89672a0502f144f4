"""Engines in a closed loop: a fixed number of requests in flight, each followed at once by another.

An engine is a group of chips that holds the model's weights once. Either it prefills the prompts of
its own requests between decode steps, or prefill engines on other chips (`ServingPlan.readers`)
feed it. `loaded_engine_rates` returns the token rates and times of both kinds.

The equations of this module use the names of the arguments, or letters that the text below them
binds.
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
from tco.performance.serving.plans import ServingPlan, ServingWorkload, attention_chips

# Rounds of the fixed-point iteration for the batch of engines that others feed. Their number is
# fixed, as a recorded program cannot stop when the batch has settled.
ROUNDS = 5


@formula("", source="little1961")
def requests_per_engine(requests: Pure, engines: Pure) -> Quantity:
    """Requests in flight of each of some equal engines: requests / engines."""
    return requests / engines


@formula("", source="little1961")
def requests_of_engines(engine_requests: Pure, engines: Pure) -> Quantity:
    """Requests in flight of some equal engines together: engine_requests engines."""
    return engine_requests * engines


@formula("")
def sequence_capacity(memory: Byte, empty_memory: Byte, sequence_memory: Byte) -> Quantity:
    """Sequences of an attention group that fit memory: max(M - M_0, 0) / m.

    M is the memory of a chip, M_0 what the chip holds without sequences (`empty_memory`), and m its
    part of the caches of a sequence (`sequence_memory`).
    """
    return maximum(memory - empty_memory, 0) / sequence_memory


@formula("")
def engine_capacity(group_capacity: Pure, groups: Pure) -> Quantity:
    """Sequences that an engine's memory holds, at least one a group: groups max(c, 1).

    c is the capacity of an attention group (`group_capacity`).
    """
    return groups * maximum(group_capacity, 1)


@formula("")
def running_sequences(requests: Pure, capacity: Pure) -> Quantity:
    """Sequences that an engine runs at a time: min(requests, capacity).

    Requests beyond the capacity of its memory wait.
    """
    return minimum(requests, capacity)


@formula("")
def sequences_per_group(running: Pure, groups: Pure) -> Quantity:
    """Sequences of an attention group in use: max(running / groups, 1)."""
    return maximum(running / groups, 1)


@formula("", source="tco-calibration")
def prompts_per_pass(
    budget: Pure, tokens: Pure, requests: Pure, groups: Pure, bunching: Pure
) -> Quantity:
    """Prompts of a group in one pass: min(b / T, 1 + x (max(C / g, 1) - 1)).

    b is the token budget of a pass, T the tokens of a prompt, C the requests in flight of the
    engine, g its attention groups, and x the share of waiting prompts that join (`bunching`).
    """
    return minimum(budget / tokens, 1 + bunching * (maximum(requests / groups, 1) - 1))


@formula("")
def groups_in_use(groups: Pure, requests: Pure) -> Quantity:
    """Attention groups that have a prompt to prefill: min(groups, max(requests, 1))."""
    return minimum(groups, maximum(requests, 1))


@formula("s", source="tco-calibration")
def engine_prompt_time(group_prompt_time: Second, busy_groups: Pure) -> Quantity:
    """Engine time per prompt where some attention groups are idle: t_group / busy_groups."""
    return group_prompt_time / busy_groups


@formula("s", source="tco-calibration")
def first_prompt_time(
    pass_time: Second, busy_groups: Pure, groups: Pure, start: Second
) -> Quantity:
    """Time of a request's own prompt and of work outside the engine: t_pass b / groups + start.

    b / groups is the share of attention groups with a prompt (`busy_groups`).
    """
    return pass_time * busy_groups / groups + start


@formula("s", source="tco-calibration")
def waiting_for_prompts(running: Pure, prompt_time: Second) -> Quantity:
    """Time of the prompts of all other running requests: (running - 1) prompt_time."""
    return maximum(running - 1, 0) * prompt_time


@formula("", source="sglang-scheduler")
def interference_in_step(budget: Pure, tokens: Pure, requests: Pure, groups: Pure) -> Quantity:
    """Share of other prompts between a request's tokens: (1 - 1/n) / 2 of n passes.

    All requests start and end together, and prompts go first. A request that is prefilled in the
    first pass waits for all others, one in the last pass for none. The number of passes is
    n = max(C / g, 1) / max(b / T, 1), at least 1: C are the requests in flight, g the attention
    groups, b the token budget of a pass, and T the tokens of a prompt.
    """
    return (1 - minimum(maximum(budget / tokens, 1) / maximum(requests / groups, 1), 1)) / 2


@formula("s", source="tco-calibration")
def time_per_output_token(
    step_time: Second, waiting: Second, interference: Pure, output_tokens: Pure
) -> Quantity:
    """Time per output token: step_time + kappa waiting / output_tokens.

    kappa is the share of other prompts that run between a request's tokens (`interference`).
    """
    return step_time + interference * waiting / output_tokens


@formula("s", source="tco-calibration")
def first_token_time(
    prompt_time: Second, step_time: Second, waiting: Second, interference: Pure
) -> Quantity:
    """Time to first token: prompt_time + step_time / 2 + (1 - kappa) waiting.

    kappa is the share of other prompts that run between a request's tokens (`interference`).
    """
    return prompt_time + step_time / 2 + (1 - interference) * waiting


@formula("1/s", source="little1961")
def request_rate(
    running: Pure, first_token: Second, output_tokens: Pure, per_token: Second
) -> Quantity:
    """Requests per second of an engine: running / (TTFT + (O - 1) TPOT).

    TTFT is the time to first token, TPOT the time per output token, and O the output tokens.
    """
    return running / (first_token + (output_tokens - 1) * per_token)


@formula("s")
def prompt_interval(prompt_time: Second, engines: Pure, prefill_engines: Pure) -> Quantity:
    """Time between the prompts that each decode engine is fed: t n / n_p.

    t is the time of a prompt on a prefill engine, n the decode and n_p the prefill engines.
    """
    return prompt_time * engines / prefill_engines


@formula("1/s", source="little1961")
def fed_request_rate(rate: PerSecond, interval: Second, sharpness: Pure) -> Quantity:
    """Rate of an engine that others feed, both limits joined smoothly: (r^-p + t^p)^(-1/p).

    r is the rate of the engine, t the interval of its prompts, and p the sharpness.
    """
    fed = rate * interval
    return rate / (
        maximum(fed, 1) * (1 + (minimum(fed, 1) / maximum(fed, 1)) ** sharpness) ** (1 / sharpness)
    )


@formula("", source="little1961")
def decoding_sequences(rate: PerSecond, output_tokens: Pure, per_token: Second) -> Quantity:
    """Sequences that decode at a time: rate (output_tokens - 1) per_token."""
    return rate * (output_tokens - 1) * per_token


@formula("", source="tco-calibration")
def settled_batch(batch: Pure, target: Pure, most: Pure) -> Quantity:
    """Next guess of the batch, half way in logarithm: sqrt(batch min(max(target, 1), most))."""
    return sqrt(batch * minimum(maximum(target, 1), most))


@formula("s", source="little1961")
def wait_before_engine(requests: Pure, running: Pure, rate: PerSecond) -> Quantity:
    """Time that a request waits to run in an engine: max(requests - running, 0) / rate."""
    return maximum(requests - running, 0) / rate


@formula("token/s/chip", source="little1961")
def closed_loop_rate(
    rate: PerSecond, output_tokens: Pure, chips: Pure, steady: Pure, one_token: TokenPerChip = 1
) -> Quantity:
    """Output tokens per second and chip over a whole run: s rate output_tokens / chips.

    s is the rate of the run over that of its steady state (`steady`).
    """
    return steady * rate * output_tokens * one_token / chips


@formula("")
def prefill_time_share(rate: PerSecond, prompt_time: Second) -> Quantity:
    """Share of its time in which an engine prefills, at most one: rate prompt_time."""
    return minimum(rate * prompt_time, 1)


@formula("")
def chips_with_prefill(
    chips: Pure, engines: Pure, prefill_chips: Pure, prefill_engines: Pure
) -> Quantity:
    """Chips of a decode engine, and of the prefill engines per decode engine: N + N_p n_p / n.

    N and N_p are the chips of a decode and of a prefill engine, n and n_p the numbers of engines.
    """
    return chips + prefill_chips * prefill_engines / engines


@formula("")
def prefill_chip_share(
    prefill_chips: Pure, prefill_engines: Pure, engines: Pure, chips: Pure
) -> Quantity:
    """Share of the chips that prefill: N_p n_p / (n N_all).

    N_p are the chips of a prefill engine, n and n_p the numbers of decode and prefill engines, and
    N_all the chips per decode engine, those that prefill for it among them.
    """
    return prefill_chips * prefill_engines / engines / chips


class Loaded(NamedTuple):
    """Rates, passes and memory of engines under a load."""

    rates: JsonObject  # by metric
    decode: PassResult
    prefill: PassResult
    prefill_share: Quantity  # of the time of an engine, or of the chips
    running: Quantity  # sequences of an engine
    needed: Quantity  # bytes of a chip's memory with one sequence a group
    fits: Any  # whether memory holds the weights and one sequence a group


class _EngineMemory(NamedTuple):
    """Memory of a chip of an engine, in bytes, and the sequences that the engine holds."""

    empty: Quantity  # without sequences
    sequence: Quantity  # a chip's part of the caches of a sequence
    capacity: Quantity  # sequences of the engine


class _Load(NamedTuple):
    """Requests in flight, and the sequences that run."""

    requests: Quantity  # of a decode engine
    prefill_requests: Quantity  # of an engine that prefills
    running: Quantity  # sequences of a decode engine


class _Prefill(NamedTuple):
    """Prefill of the prompts of a load."""

    prefill_pass: PassResult
    groups: Quantity  # attention groups of an engine that prefills
    token_budget: Quantity  # of a pass
    prompt_time: Quantity  # engine time per prompt, s
    first_prompt: Quantity  # time of a request's own prompt, s


class _Loop(NamedTuple):
    """Decode pass and times of engines in a closed loop."""

    decode: PassResult
    per_token: Quantity  # s
    first_token: Quantity  # time to first token without the wait before the engine, s
    rate: Quantity  # requests/s of an engine


def loaded_engine_rates(workload: ServingWorkload, engines: ServingPlan) -> Loaded:
    """Return the rates of engines with some requests in flight.

    Args:
        workload: Requests, and the model and the machine that serve them.
        engines: Plans of the engines, and their numbers.

    """
    plan = engines.decode
    groups = plan.chips / attention_chips(plan)
    memory = _memory_of_engine(workload, engines)
    load = _load_of_engines(workload, engines, memory.capacity)
    prefill = _prefill_of_load(workload, engines, load)

    def decode_pass(sequences: Quantity) -> PassResult:
        group_plan = plan._replace(sequences=sequences_per_group(sequences, groups))
        return passes.decode_pass(workload, group_plan)

    if engines.readers is None:
        loop = _loop_with_prefill(workload, load, prefill, decode_pass)
        chips = plan.chips
        prefill_share = prefill_time_share(loop.rate, prefill.prompt_time)
    else:
        loop = _loop_fed_by_prefill(workload, engines, load, prefill, decode_pass)
        prefill_chips = engines.prefill.chips
        chips = chips_with_prefill(plan.chips, engines.engines, prefill_chips, engines.readers)
        prefill_share = prefill_chip_share(prefill_chips, engines.readers, engines.engines, chips)
    steady_share = workload.machine.shared("steady_share")
    output_rate = closed_loop_rate(loop.rate, workload.request.answer, chips, steady_share)
    with_one_sequence = total("with_one_sequence", [memory.empty, memory.sequence])
    prefill_memory = passes.prefill_memory(workload, engines.prefill)
    needed = greatest("memory_needed", [with_one_sequence, prefill_memory])
    return Loaded(
        rates=_rates_of_loop(workload, loop, output_rate, load),
        decode=loop.decode,
        prefill=prefill.prefill_pass,
        prefill_share=prefill_share,
        running=load.running,
        needed=needed,
        fits=untraced_value(needed) <= untraced_value(workload.machine.memory),
    )


def plan_under_load(engines: ServingPlan, loaded: Loaded) -> ServingPlan:
    """Return the engines with the whole sequences that run on each of their attention groups."""
    plan = engines.decode
    groups = plan.chips / attention_chips(plan)
    group_sequences = np.ceil(untraced_value(loaded.running) / groups - 1e-9)
    return engines._replace(decode=plan._replace(sequences=group_sequences))


def _memory_of_engine(workload: ServingWorkload, engines: ServingPlan) -> _EngineMemory:
    plan = engines.decode
    groups = plan.chips / attention_chips(plan)
    empty = passes.decode_memory(workload, plan._replace(sequences=0.0))
    sequence = passes.sequence_memory(workload, plan)
    group_capacity = sequence_capacity(workload.machine.memory, empty, sequence)
    return _EngineMemory(empty, sequence, engine_capacity(group_capacity, groups))


def _load_of_engines(workload: ServingWorkload, engines: ServingPlan, capacity: Quantity) -> _Load:
    """Return the load of each engine: as the plan or the workload states, or a full memory."""
    if engines.flight is not None:
        total_requests = requests_of_engines(engines.flight, engines.engines)
    elif workload.request.offline:
        total_requests = requests_of_engines(capacity, engines.engines)
    else:
        total_requests = workload.values["workload.concurrency"]
    requests = requests_per_engine(total_requests, engines.engines)
    running = running_sequences(requests, capacity)
    if engines.readers is None:
        return _Load(requests, prefill_requests=requests, running=running)
    prefill_requests = requests_per_engine(total_requests, engines.readers)
    return _Load(requests, prefill_requests, running)


def _prefill_of_load(workload: ServingWorkload, engines: ServingPlan, load: _Load) -> _Prefill:
    machine, plan = workload.machine, engines.prefill
    groups = plan.chips / attention_chips(plan)
    token_budget = machine.habit("token_budget")
    prompts = prompts_per_pass(
        token_budget,
        workload.request.prompt,
        load.prefill_requests,
        groups,
        machine.shared("prompt_bunching"),
    )
    prefill_pass = passes.evaluate_prefill(workload, plan, prompts)
    # engines that feed others are taken to have a prompt for every attention group
    busy_groups = groups_in_use(groups, load.requests) if engines.readers is None else groups
    first_prompt = first_prompt_time(
        prefill_pass.until_read,
        groups_in_use(groups, load.prefill_requests),
        groups,
        machine.shared("first_token_start"),
    )
    return _Prefill(
        prefill_pass=prefill_pass,
        groups=groups,
        token_budget=token_budget,
        prompt_time=engine_prompt_time(prefill_pass.per_prompt, busy_groups),
        first_prompt=first_prompt,
    )


def _loop_with_prefill(
    workload: ServingWorkload,
    load: _Load,
    prefill: _Prefill,
    decode_pass: Callable[[Quantity], PassResult],
) -> _Loop:
    """Return the loop of engines that prefill their own prompts between decode steps."""
    machine, request = workload.machine, workload.request
    decode = decode_pass(load.running)
    waiting = waiting_for_prompts(load.running, prefill.prompt_time)
    prefill_first_path = f"performance.{machine.engine}.prefill_first"
    if request.equal_lengths and workload.values.exists(prefill_first_path):
        interference = interference_in_step(
            prefill.token_budget, request.prompt, load.requests, prefill.groups
        )
    else:
        interference = machine.habit("prefill_interference")
    per_token = time_per_output_token(decode.per_token, waiting, interference, request.answer)
    first_token = first_token_time(prefill.first_prompt, decode.per_token, waiting, interference)
    rate = request_rate(load.running, first_token, request.answer, per_token)
    return _Loop(decode, per_token, first_token, rate)


def _loop_fed_by_prefill(
    workload: ServingWorkload,
    engines: ServingPlan,
    load: _Load,
    prefill: _Prefill,
    decode_pass: Callable[[Quantity], PassResult],
) -> _Loop:
    """Return the loop of engines that prefill engines feed.

    The batch sets the step time, the step time the rate, and the rate the batch. Each round starts
    from the batch of the round before, and the first from all running sequences.
    """
    output_tokens = workload.request.answer
    batch = load.running
    for round_number in range(1, ROUNDS + 1):
        with scope(f"round-{round_number}"):
            decode = decode_pass(batch)
            per_token = decode.per_token
            # no prompt runs on the chips that decode
            first_token = first_token_time(
                prefill.first_prompt, per_token, waiting=0.0, interference=1.0
            )
            interval = prompt_interval(prefill.prompt_time, engines.engines, engines.readers)
            unfed_rate = request_rate(load.running, first_token, output_tokens, per_token)
            sharpness = workload.machine.shared("pool_sharpness")
            rate = fed_request_rate(unfed_rate, interval, sharpness)
            target = decoding_sequences(rate, output_tokens, per_token)
            batch = settled_batch(batch, target, load.running)
    return _Loop(decode, per_token, first_token, rate)


def _rates_of_loop(
    workload: ServingWorkload, loop: _Loop, output_rate: Quantity, load: _Load
) -> JsonObject:
    """Return the rates and times of engines in a loop, as deployed, by metric."""
    machine, request = workload.machine, workload.request
    if machine.deployed is not None:
        output_rate = deployed_rate(output_rate, machine.deployed)
    input_rate = passes.input_rate(output_rate, request.prompt, request.answer)
    wait = wait_before_engine(load.requests, load.running, loop.rate)
    return {
        "output_tokens_per_s_per_chip": output_rate,
        "input_tokens_per_s_per_chip": input_rate,
        "tokens_per_s_per_user": passes.tokens_per_user(loop.per_token),
        "ttft_s": total("time_to_first_token_in_flight", [loop.first_token, wait]),
        "tpot_s": loop.per_token,
    }
