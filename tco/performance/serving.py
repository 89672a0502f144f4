"""Serving: decode and prefill passes over arrays of plans, the plan under an interactivity target, and the rates that follow.

Prefill and decode run on pools of the same system, in the proportion the workload asks for; every chip counts. A plan is an
instance of `chips`, of which groups of `tensor_parallel` hold the attention; the experts are spread over all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tco.formula import formula, total
from tco.performance import requests as asked
from tco.performance.architecture import Architecture
from tco.performance.machine import Machine
from tco.performance.memory import cache_bytes, memory_in_use, weight_bytes
from tco.performance.operators import Operator, Pass, Shape
from tco.performance.requests import Request
from tco.trace import plain
from tco.units import Pure, Second, Token, TokenPerChip, TokenPerSecondPerChip

SEQUENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # per attention group
TENSOR_PARALLEL = (1, 2, 4, 8, 16)


class DecodePlan(NamedTuple):
    """Chips of an instance, tensor parallel of its attention groups, and sequences each group decodes. Numbers or arrays."""

    chips: Any
    tensor_parallel: Any
    sequences: Any


class PrefillPlan(NamedTuple):
    """Chips of an instance and tensor parallel of its attention groups, each of which works on one prompt."""

    chips: Any
    tensor_parallel: Any


@formula(unit="", source="tco-model")
def mean_context(input_tokens: Pure, output_tokens: Pure) -> Any:
    """Cached tokens a decode step meets on average: L = input + output / 2."""
    return input_tokens + output_tokens / 2


@formula(unit="", source="tco-model")
def full_context(input_tokens: Pure, output_tokens: Pure) -> Any:
    """Cached tokens of a sequence at its end: L = input + output."""
    return input_tokens + output_tokens


@formula(unit="", source="tco-model")
def causal_keys(input_tokens: Pure) -> Any:
    """Keys a query of a prompt sees on average under the causal mask: L = input / 2."""
    return input_tokens / 2


@formula(unit="token/s/chip", source="scaling-book")
def decode_rate(sequences: Pure, tensor_parallel: Pure, step_time: Second, one_token: TokenPerChip = 1) -> Any:
    """Output tokens per second and decoding chip: D = B / (tp t_step)."""
    return sequences / tensor_parallel * one_token / step_time


@formula(unit="token/s/chip", source="scaling-book")
def prefill_rate(input_tokens: Pure, tensor_parallel: Pure, prefill_time: Second, one_token: TokenPerChip = 1) -> Any:
    """Input tokens per second and prefilling chip: P = L / (tp t_prefill)."""
    return input_tokens / tensor_parallel * one_token / prefill_time


@formula(unit="token/s", source="scaling-book")
def tokens_per_user(step_time: Second, one_token: Token = 1) -> Any:
    """Tokens per second one user gets: 1 / t_step."""
    return one_token / step_time


@formula(unit="token/s/chip", source="scaling-book")
def output_rate(decode: TokenPerSecondPerChip, prefill: TokenPerSecondPerChip, input_tokens: Pure, output_tokens: Pure) -> Any:
    """Output tokens per second and chip of both pools: R = 1 / (1/D + (I/O)/P)."""
    return 1 / (1 / decode + input_tokens / output_tokens / prefill)


@formula(unit="token/s/chip", source="scaling-book")
def input_rate(output: TokenPerSecondPerChip, input_tokens: Pure, output_tokens: Pure) -> Any:
    """Input tokens per second and chip of both pools: R I/O."""
    return output * input_tokens / output_tokens


@formula(unit="", source="scaling-book")
def prefill_share(decode: TokenPerSecondPerChip, prefill: TokenPerSecondPerChip, input_tokens: Pure, output_tokens: Pure) -> Any:
    """Share of the chips that prefill: s = (I/O)/P / (1/D + (I/O)/P)."""
    return input_tokens / output_tokens / prefill / (1 / decode + input_tokens / output_tokens / prefill)


@formula(unit="s", source="tco-model")
def time_to_first_token(prefill_time: Second, step_time: Second) -> Any:
    """Time to the first token without queueing: t_prefill + t_step."""
    return prefill_time + step_time


class PassResult(NamedTuple):
    """One pass: its time, what it holds in HBM, and its operators."""

    time: Any
    memory: Any
    operators: list[Operator]
    per_token: Any = None  # time of one token of a sequence, in decode


def cached_numbers(model: Architecture, tensor_parallel: Any) -> tuple[Any, Any]:
    """Return the numbers one chip caches over all layers: those that grow with each token, and those a sequence keeps (windows, states)."""
    growing: Any = 0
    kept: Any = 0
    for attention, layers in model.attentions.items():
        # the latent cache is held whole by every tensor-parallel rank; key-value heads are split
        split = 1 if attention.latent else np.minimum(tensor_parallel, attention.kv_heads)
        numbers = layers * (attention.cached + attention.index_dim) / split
        if attention.window:
            kept = kept + numbers * attention.window
        else:
            growing = growing + numbers
    return growing, kept + sum(layers * mixer.held for mixer, layers in model.mixers.items()) / tensor_parallel


def caches_of(machine: Machine, model: Architecture, shape: Shape, context: Any) -> Any:
    """Return the caches of one chip."""
    growing, kept = cached_numbers(model, shape.tensor_parallel)
    return cache_bytes(shape.sequences, context, growing, kept, machine.cache_size)


def held_in_memory(machine: Machine, model: Architecture, shape: Shape, context: Any, offload: Any = None) -> Any:
    """Return the HBM a chip needs for its weights and its caches; experts come in whole numbers a group: 256 over 144 are two each.

    The share `offload` of the caches is kept in host memory.
    """
    whole = spread = 0.0
    for block in model.blocks:
        if block.feed_forward.experts:
            whole += block.layers * block.feed_forward.experts
            spread = spread + block.layers * np.ceil(block.feed_forward.experts / shape.expert_parallel) * shape.expert_parallel
    share = spread / whole if whole else 1.0
    experts = model.expert_parameters
    weights = weight_bytes(
        model.parameters - experts, experts * share, shape.tensor_parallel, shape.group, machine.attention_size, machine.expert_size
    )
    cache = caches_of(machine, model, shape, context)
    return memory_in_use(weights, cache if offload is None else asked.cache_in_hbm(cache, offload))


def decode(machine: Machine, model: Architecture, plan: DecodePlan, request: Request) -> PassResult:
    """One decode step of every plan."""
    keys = mean_context(request.prompt, request.answer)
    tokens = plan.sequences if request.drafts is None else asked.verified_tokens(plan.sequences, request.drafts)
    shape = Shape(plan.chips, plan.tensor_parallel, plan.chips, tokens, keys, plan.sequences, decode=True)
    operators = Pass(machine, model, shape).run(tokens)
    time = per_token = total("decode_step_time", [*(operator.time for operator in operators), machine.overhead])
    if request.drafts is not None:
        drafting = asked.drafting_time(time, request.drafts, request.draft_cost)
        operators.append(Operator("drafting", drafting, 1, 0.0, 0.0, machine.core, machine.bandwidth, drafting))
        time = per_token = total("drafted_step_time", [time, drafting])
    if request.offload is not None:
        moved = asked.cache_with_host(caches_of(machine, model, shape, keys), request.offload)
        exposed = asked.exposed_host_transfer(moved, request.host_link, time)
        operators.append(Operator("cache from host", exposed, 1, None, moved, None, request.host_link, 0.0, True))
        time = per_token = total("offloaded_step_time", [time, exposed])
    if request.drafts is not None:
        per_token = asked.time_per_token(time, asked.accepted_tokens(request.drafts, request.acceptance))
    context = full_context(request.prompt, request.answer)
    return PassResult(time, held_in_memory(machine, model, shape, context, request.offload), operators, per_token)


def prefill(machine: Machine, model: Architecture, plan: PrefillPlan, request: Request) -> PassResult:
    """One prompt through every plan; what a prefix cache holds is read, not computed."""
    fresh, keys, read = request.prompt, causal_keys(request.prompt), None
    if request.cache_hit is not None:
        fresh, read = asked.fresh_tokens(request.prompt, request.cache_hit), request.prompt
        keys = asked.keys_behind_prefix(request.prompt, fresh)
    shape = Shape(plan.chips, plan.tensor_parallel, plan.chips, fresh, keys, 1, decode=False, read=read)
    operators = Pass(machine, model, shape).run(1)
    time = total("prefill_time", [*(operator.time for operator in operators), machine.overhead])
    return PassResult(time, held_in_memory(machine, model, shape, request.prompt), operators)


# ---------------------------------------------------------------- plans and the choice among them
def divisors(number: int) -> list[int]:
    """Whole divisors, the smallest first."""
    return [d for d in range(1, number + 1) if number % d == 0]


def plan_axes(model: Architecture, world: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the pairs (chips, tensor parallel) of an instance inside one scale-up world, as two columns.

    A dense model has no experts to spread, so its instance is one tensor-parallel group.
    """
    heads = max(block.attention.heads for block in model.blocks)
    sparse = any(block.feed_forward.experts for block in model.blocks)
    pairs = [
        (chips, tensor)
        for chips in divisors(world)
        for tensor in (TENSOR_PARALLEL if sparse else (chips,))
        if chips % tensor == 0 and heads % tensor == 0
    ]
    table = np.array(pairs, dtype=float)
    return table[:, :1], table[:, 1:]


@dataclass(slots=True)
class Choice:
    """The plan chosen among many: how many there were, how many fit, and how far the runner-up lies behind."""

    plan: Any
    plans: int
    feasible: int
    margin: float | None
    reason: str = ""  # why none fits


def choose(score: Any, fits: Any, meets: Any, axes: Any, make: Any) -> Choice:
    """Return the plan with the best score among those that fit memory and meet the target."""
    score, fits, meets = np.broadcast_arrays(score, fits, meets)
    feasible = fits & meets
    count = int(np.count_nonzero(feasible))
    if not count:
        return Choice(None, score.size, 0, None)
    ranked = np.where(feasible, score, -np.inf).ravel()
    best = int(ranked.argmax())
    margin = None
    if count > 1:
        second = np.partition(ranked, -2)[-2]
        margin = float(ranked[best] / second - 1)
    where = np.unravel_index(best, score.shape)
    return Choice(make(*(float(np.broadcast_to(axis, score.shape)[where]) for axis in axes)), score.size, count, margin)


def choose_decode(machine: Machine, model: Architecture, world: int, request: Request, interactivity: float) -> Choice:
    """Search the decode plans for the most tokens per chip at no less than `interactivity` tokens/s a user."""
    chips, tensor = plan_axes(model, world)
    plan = DecodePlan(chips, tensor, np.array([SEQUENCES], dtype=float))
    result = decode(machine, model, plan, request)
    fits, fast = result.memory <= machine.memory, tokens_per_user(result.per_token) >= interactivity
    choice = choose(decode_rate(plan.sequences, plan.tensor_parallel, result.per_token), fits, fast, plan, DecodePlan)
    if choice.plan is None:
        choice.reason = shortfall(result, machine, fits, interactivity)
    return choice


def choose_prefill(machine: Machine, model: Architecture, world: int, request: Request, ttft: float) -> Choice:
    """Search the prefill plans for the most tokens per chip at no more than `ttft` seconds a prompt (zero: no limit)."""
    plan = PrefillPlan(*plan_axes(model, world))
    result = prefill(machine, model, plan, request)
    fits, soon = result.memory <= machine.memory, result.time <= (ttft or np.inf)
    choice = choose(prefill_rate(request.prompt, plan.tensor_parallel, result.time), fits, soon, plan, PrefillPlan)
    if choice.plan is None:
        choice.reason = (
            shortfall(result, machine, fits, 0)
            if not np.any(fits)
            else f"the quickest prefill takes {float(np.min(result.time)):.3g} s, more than the {ttft:g} s allowed"
        )
    return choice


def shortfall(result: PassResult, machine: Machine, fits: Any, interactivity: float) -> str:
    """Say why no plan is feasible: what is short, and by how much."""
    if not np.any(fits):
        need, have = float(np.min(result.memory)), plain(machine.memory)
        return f"the model does not fit: the leanest plan needs {need / 1e9:.1f} GB a chip, {have / 1e9:.1f} GB are usable"
    quickest = float(np.min(np.where(np.broadcast_to(fits, np.shape(result.time)), result.per_token, np.inf)))
    return f"the quickest plan that fits gives {1 / quickest:.1f} tokens/s a user, {interactivity:g} are asked for"
