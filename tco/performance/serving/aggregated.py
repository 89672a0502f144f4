"""Aggregated serving: the same chips read prompts and decode, for a number of requests in flight (a closed loop).

Each request is followed by the next one at once. Prompts of the others land partly between the tokens of a request, partly before
its first one; batch, time per token and rate then follow in closed form. Requests beyond what memory holds wait before the engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula, total
from tco.foundation.units import PerSecond, Pure, Second, TokenPerChip
from tco.foundation.values import Values
from tco.models.architecture import Architecture
from tco.performance.chip.machine import Machine
from tco.performance.serving import closed_loop as loop
from tco.performance.serving import phases
from tco.performance.serving.phases import PassResult
from tco.performance.serving.plans import DecodePlan, PrefillPlan, attention_chips, plan_axes
from tco.performance.serving.requests import Request
from tco.performance.serving.search import Choice, choose_best, shortfall


@formula(unit="s", source="tco-calibration")
def engine_prompt_time(batch_time: Second, filled: Pure) -> Any:
    """Engine time of one prompt where each attention group reads one and some groups stand idle: t = t_batch / filled."""
    return batch_time / filled


@formula(unit="s", source="tco-calibration")
def first_prompt_time(batch_time: Second, busy: Pure, start: Second) -> Any:
    """Time of a request's own prompt and what lies outside the engine: t_batch x share of groups with a prompt + start."""
    return batch_time * busy + start


@formula(unit="token/s/chip", source="little1961")
def closed_loop_rate(rate: PerSecond, output_tokens: Pure, chips: Pure, steady: Pure, one_token: TokenPerChip = 1) -> Any:
    """Output tokens per second and chip of a closed loop as measured over its run: s r O / N."""
    return steady * rate * output_tokens * one_token / chips


@formula(unit="", source="tco-model")
def time_reading(rate: PerSecond, prompt_time: Second) -> Any:
    """Share of its time an engine reads prompts: r t, at most one."""
    return np.minimum(rate * prompt_time, 1)


@formula(unit="s", source="little1961")
def wait_before_engine(concurrency: Pure, share: Pure, running: Pure, rate: PerSecond) -> Any:
    """Time a request waits for a place in an engine with a share of those in flight: max(C s - B, 0) / r."""
    return np.maximum(concurrency * share - running, 0) / rate


def read_on(plan: DecodePlan) -> PrefillPlan:
    """Return the plan prompts are read on: that of the engine."""
    return PrefillPlan(*plan[:-1])


def evaluate(
    machine: Machine, model: Architecture, plan: DecodePlan, request: Request, values: Values
) -> tuple[dict[str, Any], PassResult, PassResult]:
    """Return the rates of every plan with its sequences in flight, and its two passes."""
    practice = f"performance.{machine.family}"
    groups = plan.chips / attention_chips(plan)
    running = plan.sequences * groups
    filled = np.minimum(groups, np.maximum(running, 1))
    decode = phases.decode(machine, model, plan._replace(sequences=np.maximum(plan.sequences, 1)), request)
    prefill = phases.prefill(machine, model, read_on(plan), request)
    one = engine_prompt_time(prefill.time, filled)
    first = first_prompt_time(prefill.time, filled / groups, values[f"{practice}.first_token_start"])
    interference = values[f"{practice}.prefill_interference"]
    waiting = loop.waiting_for_prompts(running, one, 1)
    per_token = loop.time_per_output_token(decode.per_token, waiting, interference, request.answer)
    inside = loop.first_token_time(first, decode.time, waiting, interference)
    rate = loop.request_rate(running, inside, request.answer, per_token, one)
    before = wait_before_engine(values["workload.concurrency"], plan.chips / machine.links.world, running, rate)
    output = closed_loop_rate(rate, request.answer, plan.chips, values[f"{practice}.steady_share"])
    rates = {
        "output_tokens_per_s_per_chip": output,
        "input_tokens_per_s_per_chip": phases.input_rate(output, request.prompt, request.answer),
        "tokens_per_s_per_user": phases.tokens_per_user(per_token),
        "ttft_s": total("time_to_first_token_in_flight", [inside, before]),
        "tpot_s": per_token,
        "prefill_share": time_reading(rate, one),
    }
    return rates, decode, prefill


def choose(machine: Machine, model: Architecture, request: Request, values: Values) -> Choice:
    """Search the engines of one world for the most tokens per chip, the requests in flight spread evenly over them."""
    axes = plan_axes(model, machine.links, 0)  # prompts and answers share a layout: sequences stay whole
    flight = values["workload.concurrency"] / machine.links.world * attention_chips(axes)
    empty = phases.decode_memory(machine, model, DecodePlan(*axes, 0.0), request)
    one = phases.decode_memory(machine, model, DecodePlan(*axes, 1.0), request) - empty
    plan = DecodePlan(*axes, np.minimum(flight, np.floor(np.maximum((machine.memory - empty) / one, 0))))
    held = empty + one <= machine.memory
    with np.errstate(divide="ignore", invalid="ignore"):  # where not one sequence fits
        rates, decode, _ = evaluate(machine, model, plan, request, values)
    limit, interactivity = values["workload.ttft"] or np.inf, values["workload.interactivity"]
    soon, quick = rates["ttft_s"] <= limit, rates["tokens_per_s_per_user"] >= interactivity
    found = choose_best(np.nan_to_num(rates["output_tokens_per_s_per_chip"]), held, soon & quick, plan, decode)
    if found.plan is None:
        best = float(np.max(np.where(held, rates["tokens_per_s_per_user"], 0)))
        reason = (
            shortfall(empty + one, machine)
            if not np.any(held)
            else f"{values['workload.concurrency']:g} requests in flight get at most {best:.1f} tokens/s a user, {interactivity:g} are asked for"
            if not np.any(held & quick)
            else f"no engine gives the first token within {limit:g} s at {values['workload.concurrency']:g} requests in flight"
        )
        return found._replace(reason=reason)
    return found
