"""Evaluate a serving workload: choose the plans of prefill and decode, and return their rates.

Three cases differ in how prefill and decode share the chips:

- A fleet runs a prefill and a decode pool in the best proportion (`_balanced_pools`).
- A workload with stated requests in flight, or offline, runs engines in a closed loop
  (`tco.performance.serving.closed_loop`), on the plans that the user's axes allow.
- Another operator runs engines in a closed loop on the plans of its class
  (`tco.performance.serving.classes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tco.core.errors import DataError
from tco.core.inputs import Readable
from tco.performance.deployment import FLEET, deployed_rate
from tco.performance.layer.chip_model import Machine, model_format_notes
from tco.performance.serving import passes
from tco.performance.serving.disaggregation import PoolBalance
from tco.performance.serving.passes import PassResult
from tco.performance.serving.plan_choice import (
    LoadedChoice,
    PlanChoice,
    choose_decode,
    choose_prefill,
    choose_under_load,
    offered_axes,
)
from tco.performance.serving.plans import (
    ServingPlan,
    ServingWorkload,
    as_prefill_plan,
    attention_chips,
    decoding_at,
    depths_of,
    engines_of_world,
    filling,
    notes_on_request,
)
from tco.performance.serving.record import ServingResult

if TYPE_CHECKING:
    from tco.performance.serving.fixed_axes import AxesGiven

Choices = dict[str, PlanChoice]  # by phase, "prefill" and "decode"
Recall = Callable[[Callable[[], Choices]], Choices]  # runs a search, or returns its earlier result


def evaluate_serving(
    workload: ServingWorkload,
    plan: ServingPlan | Mapping[str, str] | None,
    recall: Recall,
) -> ServingResult:
    """Evaluate a serving workload with a stated plan or the best plan.

    Args:
        workload: Requests, and the model and the machine that serve them.
        plan: Plan of an earlier evaluation, or plan axes by key as a user gives them, which narrow
            the search; None searches all plans.
        recall: Returns the choices of a search of all plans, made anew or remembered.

    Returns:
        The rates of the plan; a search that finds no plan returns the reason.

    Raises:
        DataError: The axes that a user gives are unknown or allow no plan.

    """
    if isinstance(plan, ServingPlan):
        return evaluate_serving_plan(workload, plan)
    axes = None
    if plan is not None:
        from tco.performance.serving.fixed_axes import axes_given  # most answers give no axes

        axes = axes_given(workload.machine, workload.model, plan)
    serving_result = _search_serving_plans(workload, axes, recall)
    if serving_result.plan is None and plan is not None:
        plan_text = ",".join(f"{axis_key}={axis_text}" for axis_key, axis_text in plan.items())
        raise DataError(f"--plan {plan_text}: {serving_result.reason}")
    if serving_result.plan is not None:
        serving_result.plan = serving_result.plan._replace(stated=plan is not None)
    serving_result.notes = [
        *([axes.beyond] if axes is not None and axes.beyond else []),
        *_notes_on_workload(workload),
    ]
    return serving_result


def _search_serving_plans(
    workload: ServingWorkload, axes: AxesGiven | None, recall: Recall
) -> ServingResult:
    """Search the plans of some axes, or all, under the workload's targets."""
    deployer = workload.machine.deployer
    if axes is None and deployer is not None and deployer.name != FLEET:
        from tco.performance.serving.classes import chosen_in_class  # a fleet starts without it

        return _loaded_result(workload.machine, chosen_in_class(workload))
    if workload.request.offline or workload.values.exists("workload.concurrency"):
        return _search_under_stated_load(workload, axes)

    def search() -> Choices:
        return _choose_pools(workload, axes)

    choices = recall(search) if axes is None else search()
    decode, prefill = choices["decode"], choices["prefill"]
    reasons = [
        f"no {phase} plan: {choice.reason}"
        for phase, choice in choices.items()
        if choice.plan is None
    ]
    if reasons:
        return ServingResult(plan=None, choices=choices, reason="; ".join(reasons))
    plan = ServingPlan(decode=decode.plan, prefill=prefill.plan)
    return _balanced_pools(workload, plan, decode.plan_pass, prefill.plan_pass, choices)


def _choose_pools(workload: ServingWorkload, axes: AxesGiven | None) -> Choices:
    """Return the choice of a plan for each phase, of all plans or of those of some axes."""
    decode_axes = prefill_axes = sequences = None
    if axes is not None:
        decode_axes, prefill_axes, sequences = axes.decode, axes.prefill, axes.sequences
    # a stated batch is the answer at whatever speed it gives, so it has no target
    target_speed = workload.values["workload.interactivity"] if sequences is None else 0.0
    decode = choose_decode(workload, target_speed, decode_axes, sequences)
    decode_step_time = 0.0 if decode.plan_pass is None else decode.plan_pass.time
    longest_prefill = _longest_prefill(workload.values, decode_step_time)
    prefill = choose_prefill(workload, longest_prefill, prefill_axes)
    return {"decode": decode, "prefill": prefill}


def _search_under_stated_load(workload: ServingWorkload, axes: AxesGiven | None) -> ServingResult:
    """Search the plans of some axes, or all, at the workload's stated requests in flight."""
    machine = workload.machine
    decode_axes = engines = readers = None
    if axes is not None:
        decode_axes, engines, readers = axes.decode, axes.engines, axes.readers
    if decode_axes is None:
        decode_axes = filling(offered_axes(machine, workload.model, 0), machine.links)
    decode = decoding_at(decode_axes, 1.0, depths_of(workload))
    prefill = as_prefill_plan(decode)  # without prefill engines the same chips do both
    if axes is not None and readers is not None:
        longest_prefill = _longest_prefill(workload.values, 0.0)
        choice = choose_prefill(workload, longest_prefill, axes.prefill)
        if choice.plan is None:
            reason = f"no prefill plan: {choice.reason}"
            return ServingResult(plan=None, choices={"prefill": choice}, reason=reason)
        prefill = choice.plan
    if engines is None:
        engines = engines_of_world(machine.links, decode.chips)
    plans = ServingPlan(decode, prefill, engines, readers)
    return _loaded_result(machine, choose_under_load(workload, plans))


def _loaded_result(machine: Machine, best: LoadedChoice) -> ServingResult:
    """Return the result of a search among engines with requests in flight."""
    choices = {"decode": best.choice}
    if best.plan is None or best.loaded is None:
        reason = f"no plan: {best.choice.reason}"
        return ServingResult(plan=None, choices=choices, reason=reason)
    return ServingResult(
        plan=best.plan,
        rates=best.loaded.rates,
        prefill_share=best.loaded.prefill_share,
        decode=best.loaded.decode,
        prefill=best.loaded.prefill,
        choices=choices,
        links=machine.links,
        waits=machine.waits,
    )


def _longest_prefill(input_values: Readable, decode_step_time: float) -> float:
    """Return the seconds that a prefill may take under the target; inf without a target.

    The time to first token is that of the prefill and of the first decode step.
    """
    target_time = input_values["workload.ttft"]
    return target_time - decode_step_time if target_time else np.inf


def evaluate_serving_plan(workload: ServingWorkload, plan: ServingPlan) -> ServingResult:
    """Evaluate a serving workload with a plan, without a search.

    Args:
        workload: Requests, and the model and the machine that serve them.
        plan: Plan of the decode and prefill chips.

    """
    machine = workload.machine
    if plan.engines is not None:
        from tco.performance.serving.closed_loop import loaded_engine_rates  # seldom

        loaded = loaded_engine_rates(workload, plan)
        serving_result = ServingResult(
            plan=plan,
            rates=loaded.rates,
            prefill_share=loaded.prefill_share,
            decode=loaded.decode,
            prefill=loaded.prefill,
            links=machine.links,
            waits=machine.waits,
            fits=loaded.fits,
            needed=loaded.needed,
        )
    else:
        decode = passes.decode_pass(workload, plan.decode)
        prefill = passes.prefill_pool(workload, plan.prefill)
        serving_result = _balanced_pools(workload, plan, decode, prefill, choices={})
    serving_result.notes = _notes_on_workload(workload)
    return serving_result


def _notes_on_workload(workload: ServingWorkload) -> list[str]:
    return [*model_format_notes(workload.machine), *notes_on_request(workload.request)]


def _balanced_pools(
    workload: ServingWorkload,
    plan: ServingPlan,
    decode: PassResult,
    prefill: PassResult,
    choices: Choices,
) -> ServingResult:
    """Return the serving result of a prefill and a decode pool in the best proportion.

    The smooth minimum that joins the rates of both pools is as sharp as that of a closed loop.
    """
    machine = workload.machine
    prompt, answer = workload.request.prompt, workload.request.answer
    sharpness = machine.shared("pool_sharpness")
    decode_rate = passes.decode_rate(
        plan.decode.sequences, attention_chips(plan.decode), decode.per_token
    )
    prefill_rate = passes.prefill_rate(prompt, attention_chips(plan.prefill), prefill.per_prompt)
    output_rate = passes.output_rate(decode_rate, prefill_rate, prompt, answer, sharpness)
    if machine.deployed is not None:
        output_rate = deployed_rate(output_rate, machine.deployed)
    rates = {
        "output_tokens_per_s_per_chip": output_rate,
        "input_tokens_per_s_per_chip": passes.input_rate(output_rate, prompt, answer),
        "tokens_per_s_per_user": passes.tokens_per_user(decode.per_token),
        "ttft_s": passes.time_to_first_token(prefill.until_read, decode.time),
        "tpot_s": decode.per_token,
    }
    return ServingResult(
        plan=plan,
        rates=rates,
        prefill_share=passes.prefill_share(decode_rate, prefill_rate, prompt, answer, sharpness),
        decode=decode,
        prefill=prefill,
        choices=choices,
        links=machine.links,
        waits=machine.waits,
        balance=PoolBalance(prompt, answer, sharpness),
        deployed=machine.deployed,
    )
