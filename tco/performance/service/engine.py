"""An engine in a simulation: iteration times from tables of the step model, and its memory.

A step that decodes takes t(b, L) = a(b) + s(b) L with b sequences of L cached tokens on average, a
pass over c tokens of prompts t(c, k) = A(c) + B(c) k with k keys before each. Both come from the
step model, at two contexts; between batches and tokens of the table they lie on straight lines. An
iteration that does both runs its layers over c + b tokens, and reads the caches of the b sequences
beside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tco.core.trace import untraced_value
from tco.core.types import AnyArray
from tco.performance.chip.roofline import causal_keys
from tco.performance.serving import passes
from tco.performance.serving.closed_loop import engine_capacity, sequence_capacity
from tco.performance.serving.passes import reserved_context
from tco.performance.serving.plans import (
    DecodePlan,
    ServingWorkload,
    as_prefill_plan,
    attention_chips,
)

SHORT, LONG = 512.0, 16384.0  # tokens of the two contexts that times are asked at
# times as many sequences as of the mean length may find room, and of a group no more than these
SHORTER, MOST = (
    8.0,
    4096.0,
)
QUANTUM = 16  # tokens of prompts from one entry of a table to the next
SIZES = 2.0 ** np.arange(13)  # sequences of a group that the step model is asked at
TOKENS = QUANTUM * 2.0 ** np.arange(15)  # tokens of a pass


class Engine(NamedTuple):
    """Iteration times of an engine, in seconds, and its room in cached tokens and sequences."""

    base: list[float]  # of a step, by sequences of a group
    slope: list[float]  # the same, for a cached token of each sequence
    passes: list[float]  # of a pass over prompts, by quanta of tokens of a group
    keys: list[float]  # the same, for a key before each token
    groups: int  # attention groups
    budget: float  # tokens of prompts that a group reads in an iteration
    room: float  # tokens whose caches its memory holds
    foreseen: float  # share of the answers under way that has to find room before a prompt is read
    most: float  # sequences that it takes in at a time
    mixed: bool = True  # whether sequences decode in the iterations that read prompts

    def step_time(self, sequences: int, cached: float) -> float:
        """Return the time of a step of some sequences with so many cached tokens in all."""
        group_sequences = -(-sequences // self.groups)
        return self.base[group_sequences] + self.slope[group_sequences] * cached / sequences

    def pass_time(self, tokens: float, prior_keys: float, sequences: int, cached: float) -> float:
        """Return the time of an iteration that reads prompts beside decoding sequences.

        Each group reads `tokens`, with `prior_keys` keys before each token.
        """
        group_sequences = -(-sequences // self.groups)
        pass_index = min(int((tokens + group_sequences) / QUANTUM + 0.999), len(self.passes) - 1)
        decode_time = self.slope[group_sequences] * cached / sequences if sequences else 0.0
        return self.passes[pass_index] + self.keys[pass_index] * prior_keys + decode_time


def lines(
    short: AnyArray,
    long: AnyArray,
    near: float,
    far: float,
    sampled_sizes: AnyArray,
    table_sizes: AnyArray,
) -> tuple[list[float], list[float]]:
    """Interpolate base and slope of times at two contexts to all `table_sizes`."""
    slope = (long - short) / (far - near)
    base = np.maximum(short - slope * near, 0.0)
    return np.interp(table_sizes, sampled_sizes, base).tolist(), np.interp(
        table_sizes, sampled_sizes, slope
    ).tolist()


def engine_for_plan(
    workload: ServingWorkload,
    plan: DecodePlan,
    most: float = np.inf,
) -> Engine:
    """Return the engine of a decode plan, which also reads prompts.

    Args:
        workload: Machine, model, and request whose lengths in tokens size the caches.
        plan: The decode plan.
        most: Greatest number of sequences that the engine decodes at a time.

    Returns:
        Engine with times in s, by sequences of a group and by tokens of a pass.

    """
    machine, request = workload.machine, workload.request

    def habit(habit_name: str) -> float:
        return float(untraced_value(machine.habit(habit_name)))

    def step_times(length: float) -> AnyArray:
        decoded = request._replace(prompt=length, answer=0.0, cache_hit=None)
        batches = plan._replace(sequences=SIZES[None])
        return np.ravel(passes.decode_pass(workload._replace(request=decoded), batches).per_token)

    def prompt_times(length: float) -> AnyArray:
        read = request._replace(prompt=length, cache_hit=None)
        prompts = TOKENS[None] / length
        reading = workload._replace(request=read)
        return np.ravel(passes.evaluate_prefill(reading, prefill_plan, prompts).time)

    prefill_plan = as_prefill_plan(plan)
    budget = habit("token_budget") * float(prefill_plan.context_parallel)
    groups = max(int(plan.chips / attention_chips(plan)), 1)
    empty = passes.decode_memory(workload, plan._replace(sequences=0.0))
    sequence = passes.sequence_memory(workload, plan)
    room_per_chip = sequence_capacity(machine.memory, empty, sequence)
    sequences = float(untraced_value(engine_capacity(room_per_chip, groups)))
    context = reserved_context(request.prompt, request.answer, habit("answer_reserved"))
    room = sequences * float(untraced_value(context))
    largest = int(min(np.ceil(sequences * SHORTER / groups), MOST))
    steps = lines(step_times(SHORT), step_times(LONG), SHORT, LONG, SIZES, np.arange(largest + 1))
    near, far = (float(untraced_value(causal_keys(length))) for length in (SHORT, LONG))
    quanta = np.arange(int((budget + largest) / QUANTUM) + 2)
    prompt_passes = lines(
        prompt_times(SHORT), prompt_times(LONG), near, far, TOKENS / QUANTUM, quanta
    )
    foreseen = habit("answer_foreseen")
    mixed = not machine.values.exists(f"performance.{machine.engine}.prefill_first")
    limit = min(most, float(largest * groups))
    return Engine(*steps, *prompt_passes, groups, budget, room, foreseen, limit, mixed)
