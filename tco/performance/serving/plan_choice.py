"""The choice among plans of an engine: most tokens per chip that fit memory and meet the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.compile.inverse import largest_within
from tco.core.formula import somewhere
from tco.core.trace import untraced_value
from tco.core.types import Quantity
from tco.models.architecture import Architecture
from tco.performance.layer.chip_model import Machine
from tco.performance.layer.operators import Operator
from tco.performance.serving.batches import CLOSE, GRID, SLOWEST, Solved, solve_batches
from tco.performance.serving.passes import (
    PassResult,
    decode_pass,
    decode_rate,
    full_context,
    prefill_pool,
    prefill_rate,
    tokens_per_user,
)
from tco.performance.serving.plans import (
    DecodePlan,
    PlanIndex,
    PrefillPlan,
    ServingPlan,
    ServingWorkload,
    attention_chips,
    decode_plan_document,
    decoding_at,
    depths_of,
    layout_of,
    plan_at,
    plan_axes,
    quantity_at_plan,
)

if TYPE_CHECKING:
    from tco.performance.serving.closed_loop import Loaded


EQUAL = 1e-9  # share by which a plan must beat another to be better
PLACES = ("one-domain", "whole-world")  # of the experts within a world of several domains


class PlanChoice(NamedTuple):
    """The chosen plan, the numbers of plans tried and feasible, and the runner-up's margin."""

    plan: Any
    plans: int
    feasible: int
    margin: float | None
    plan_pass: Any = None  # the chosen plan's pass
    reason: str = ""  # why no plan fits
    best: Any = None  # best rate of each row of plans
    axes: Any = None  # plans that were tried
    plan_index: PlanIndex = (0, 0)  # index of the chosen plan among them

    def with_pass(self, pass_result: PassResult) -> PlanChoice:
        """Return the choice with the chosen plan's pass out of those of all."""
        return self._replace(plan_pass=pass_at(pass_result, self.plan_index))


def pass_at(pass_result: PassResult, plan_index: PlanIndex) -> PassResult:
    """Return the pass of a single plan out of many.

    Args:
        pass_result: Passes of all plans; arrays have a row and a column of the search by axis.
        plan_index: Row and column of the plan.

    """
    operators = [
        Operator(*(quantity_at_plan(operator_value, plan_index) for operator_value in operator))
        for operator in pass_result.operators
    ]
    time, memory, per_token, per_prompt = (
        quantity_at_plan(pass_value, plan_index)
        for pass_value in (
            pass_result.time,
            pass_result.memory,
            pass_result.per_token,
            pass_result.per_prompt,
        )
    )
    return PassResult(
        time,
        memory,
        operators,
        per_token,
        per_prompt,
        pass_result.single_prompt and pass_at(pass_result.single_prompt, plan_index),
    )


def choose_best(score: Any, fits: Any, meets: Any, axes: Any) -> PlanChoice:
    """Return the plan with the best score among those that fit memory and meet the target."""
    score, fits, meets = np.broadcast_arrays(score, fits, meets)
    feasible = fits & meets
    count = int(np.count_nonzero(feasible))
    if not count:
        return PlanChoice(None, score.size, 0, None)
    grid = np.where(feasible, score, 0.0)
    ranked = grid.ravel()
    best = int(ranked.argmax())
    margin = None
    if count > 1:
        second = np.partition(ranked, -2)[-2]
        margin = float(ranked[best] / second - 1)
    plan_index = divmod(best, score.shape[1])
    plan = plan_at(axes, plan_index)
    return PlanChoice(
        plan, score.size, count, margin, best=grid.max(axis=1), axes=axes, plan_index=plan_index
    )


def decode_axes(workload: ServingWorkload) -> PrefillPlan:
    """Return every way an engine that decodes may divide, each axis a column."""
    machine, model, request = workload
    return offered_axes(machine, model, full_context(request.prompt, request.answer))


def offered_axes(machine: Machine, model: Architecture, context: Quantity) -> PrefillPlan:
    """Return every way in which the machine's engine can divide its chips.

    Args:
        machine: Chip on its links, with the engine.
        model: Architecture of the model.
        context: Tokens of a sequence; zero leaves sequences whole.

    Returns:
        Plans, each axis an array of shape (plans, 1).

    """
    axes = plan_axes(model, machine.links, context)
    if machine.values.exists(f"performance.{machine.engine}.grouped_attention"):
        return axes
    group = attention_chips(axes)
    row_mask = ((group == 1) | (group == axes.chips / axes.pipeline_parallel))[:, 0]
    return PrefillPlan(*(axis[row_mask] for axis in axes))


def choose_decode(
    workload: ServingWorkload,
    interactivity: float,
    axes: PrefillPlan | None = None,
    sequences: Any = None,
) -> PlanChoice:
    """Choose the decode plan with the most tokens per chip at `interactivity` or faster.

    `interactivity` is in tokens/s per user. Only plans of `axes` are tried, or all.
    """
    machine = workload.machine
    depths = depths_of(workload)
    plan = decoding_at(
        axes or decode_axes(workload),
        GRID if sequences is None else sequences,
        depths,
    )
    decode_result = decode_pass(workload, plan)
    fits, fast = (
        decode_result.memory <= machine.memory,
        tokens_per_user(decode_result.per_token) >= interactivity,
    )
    rate = decode_rate(plan.sequences, attention_chips(plan), decode_result.per_token)
    choice = choose_best(rate, fits, fast, plan)
    if choice.plan is None:
        return choice._replace(
            reason=_too_slow(plan, decode_result, fits, interactivity, machine)
            if somewhere(fits)
            else memory_shortfall_reason(decode_result.memory, machine)
        )
    if sequences is not None:
        return choice.with_pass(decode_result)
    return _at_the_target(workload, interactivity, plan, decode_result, fits & fast, choice)


def _at_the_target(
    workload: ServingWorkload,
    interactivity: float,
    plan: Any,
    decode_result: PassResult,
    meets: Any,
    choice: PlanChoice,
) -> PlanChoice:
    """Return the best plan with a batch that just meets the target or fills the memory.

    The batch lies between those of the search. Plans are solved in the order of their expected
    rates. A plan may fall short of its own, far where the time jumps between batches: the next are
    solved until none can be better.
    """
    shape = np.broadcast_shapes(np.shape(meets), np.shape(plan.sequences))
    allowed = 1 / max(interactivity, SLOWEST)
    solved_plans = solve_batches(
        workload, plan, decode_result, allowed, np.broadcast_to(meets, shape)
    )
    rate, best_row = float(choice.best.max()), -1
    if solved_plans is None or solved_plans.rate.max() < rate:
        return choice.with_pass(decode_result)
    best = choice.best.copy()
    best[solved_plans.rows] = np.maximum(best[solved_plans.rows], solved_plans.rate)
    for candidate_index in np.argsort(-solved_plans.rate, kind="stable").tolist():
        plan_row = int(solved_plans.rows[candidate_index])
        if solved_plans.bound[candidate_index] <= rate * (1 + CLOSE):
            continue
        timely_plan, timely_pass = _just_in_time(
            workload,
            allowed,
            plan_at(plan, (plan_row, 0)),
            solved_plans,
            candidate_index,
        )
        best[plan_row] = float(
            decode_rate(timely_plan.sequences, attention_chips(timely_plan), timely_pass.per_token)
        )
        if best[plan_row] > rate * (1 + EQUAL):
            rate, best_row = best[plan_row], plan_row
            choice = choice._replace(plan=timely_plan, plan_pass=timely_pass)
    if best_row < 0:
        return choice.with_pass(decode_result)
    other_rates = np.delete(best, best_row)
    if len(other_rates) and other_rates.max() > 0:
        choice = choice._replace(margin=max(rate / float(other_rates.max()) - 1, 0.0))
    return choice._replace(best=best)


def _just_in_time(
    workload: ServingWorkload,
    allowed: float,
    decode_plan: DecodePlan,
    solved_plans: Solved,
    candidate_index: int,
) -> tuple[DecodePlan, PassResult]:
    """Return a plan with its largest batch in time, or a smaller, faster one, and its pass."""
    passes = dict[float, PassResult]()

    def times(batches: Any, _: Any) -> Any:
        """Return the time of a token with each of some batches."""
        sizes = np.ravel(batches).tolist()
        passes.update(
            [
                (batch, decode_pass(workload, decode_plan._replace(sequences=batch)))
                for batch in sizes
            ]
        )
        return np.array([passes[batch].per_token for batch in sizes]).reshape(np.shape(batches))

    low, high, first, power = (
        side[candidate_index : candidate_index + 1]
        for side in (*solved_plans.batches, solved_plans.batch, solved_plans.power)
    )
    batch = float(largest_within(times, np.array([allowed]), low, high, first, power)[0][0])
    fullest, most = (float(side[candidate_index]) for side in solved_plans.best)
    if most > batch / float(attention_chips(decode_plan)) / passes[batch].per_token * (1 + EQUAL):
        batch = fullest
    decode_plan = decode_plan._replace(sequences=batch)
    return decode_plan, passes.get(batch) or decode_pass(workload, decode_plan)


def choose_prefill(
    workload: ServingWorkload,
    ttft: float,
    axes: PrefillPlan | None,
) -> PlanChoice:
    """Choose the prefill plan with the most tokens per chip that reads a prompt within `ttft`.

    `ttft` is in seconds; infinity sets no limit. Only plans of `axes` are tried, or all.
    """
    machine = workload.machine
    plan = axes or offered_axes(machine, workload.model, workload.request.prompt)
    prefill_result = prefill_pool(workload, plan)
    time = prefill_result.until_read
    fits, soon = prefill_result.memory <= machine.memory, time <= ttft
    choice = choose_best(
        prefill_rate(workload.request.prompt, attention_chips(plan), prefill_result.per_prompt),
        fits,
        soon,
        plan,
    )
    if choice.plan is None:
        late = (
            f"the quickest prefill takes {float(np.min(np.where(fits, time, np.inf))):.3g} s, "
            f"workload.ttft leaves {max(ttft, 0):.3g} s for it"
        )
        return choice._replace(
            reason=late
            if somewhere(fits)
            else memory_shortfall_reason(prefill_result.memory, machine)
        )
    return choice.with_pass(prefill_result)


class LoadedChoice(NamedTuple):
    """Best plan of a search among engines with requests in flight."""

    choice: PlanChoice
    plan: ServingPlan | None  # None where no plan meets its targets
    loaded: Loaded | None  # rates of the plan


def choose_under_load(workload: ServingWorkload, plans: ServingPlan) -> LoadedChoice:
    """Search plans, a row each, for the most tokens per chip with their requests in flight."""
    from tco.performance.serving.closed_loop import loaded_engine_rates, plan_under_load

    rated = rate_under_load(workload, plans)
    axes = plans.decode._replace(sequences=np.ones(rated.fits.shape))
    choice = choose_best(rated.rate, rated.fits, rated.meets, axes)
    if choice.plan is None:
        reason = _why_none_under_load(workload.machine, rated, plans)
        return LoadedChoice(choice._replace(reason=reason), plan=None, loaded=None)
    plan = _plan_in_row(plans, choice.plan_index[0])
    loaded = loaded_engine_rates(workload, plan)
    return LoadedChoice(choice, plan_under_load(plan, loaded), loaded)


class RatedPlans(NamedTuple):
    """Plans with their requests in flight, a row each: rates, and promises that they keep."""

    loaded: Loaded
    rate: Any  # output tokens/s a chip
    fits: Any  # the memory
    quick: Any  # whether each user gets the speed that is asked for
    meets: Any  # whether the first token comes in time, too
    limits: tuple[float, float]  # seconds to the first token, tokens/s per user


def rate_under_load(
    workload: ServingWorkload,
    plans: ServingPlan,
) -> RatedPlans:
    """Return the rates of plans with their requests in flight, and which keep the promises.

    Nobody waits for what runs offline. Where plans differ in their drafts alone, and none keeps
    the promises, all count.
    """
    from tco.performance.serving.closed_loop import loaded_engine_rates

    input_values = workload.values
    loaded = loaded_engine_rates(workload, plans)
    limit, interactivity = (
        (np.inf, 0.0)
        if workload.request.offline
        else (input_values["workload.ttft"] or np.inf, input_values["workload.interactivity"])
    )
    quick = loaded.rates["tokens_per_s_per_user"] >= interactivity
    meets = quick & (loaded.rates["ttft_s"] <= limit)
    plan_count = len(plans.decode.chips)
    only_drafts = (
        plans.flight is None and plan_count == len(depths_of(workload)) and not np.any(meets)
    )
    columns = (
        loaded.rates["output_tokens_per_s_per_chip"],
        loaded.fits,
        quick,
        meets | only_drafts,
    )
    rate, fits, quick, meets = (np.broadcast_to(column, (plan_count, 1)) for column in columns)
    return RatedPlans(loaded, rate, fits, quick, meets, (limit, interactivity))


def _plan_in_row(plans: ServingPlan, plan_row: int) -> ServingPlan:
    """Return the plan of a row."""

    def in_row(axis: Any) -> Any:
        if axis is None or not np.ndim(axis):
            return axis
        column = np.ravel(axis)
        return float(column[plan_row if len(column) > 1 else 0])

    decode, prefill = (
        DecodePlan(*map(in_row, plans.decode)),
        PrefillPlan(*map(in_row, plans.prefill)),
    )
    return plans._replace(
        decode=decode,
        prefill=prefill,
        engines=in_row(plans.engines),
        readers=in_row(plans.readers),
        flight=in_row(plans.flight),
    )


def _why_none_under_load(machine: Machine, rated: RatedPlans, plans: ServingPlan) -> str:
    """Return the reason that no plan meets its targets under load.

    The load is the number of requests in flight.
    """
    limit, interactivity = rated.limits
    if not somewhere(rated.fits):
        return memory_shortfall_reason(rated.loaded.needed, machine)
    load = (
        "one request or more"
        if plans.flight is not None
        else f"{untraced_value(machine.values['workload.concurrency']):g} requests"
    )
    if not somewhere(rated.fits & rated.quick):
        speeds = np.where(rated.fits, rated.loaded.rates["tokens_per_s_per_user"], 0)
        return (
            f"{load} in flight get at most {float(np.max(speeds)):.1f} tokens/s per user, "
            f"{interactivity:g} are asked for"
        )
    return f"no engine gives the first token within {limit:g} s at {load} in flight"


def memory_shortfall_reason(memory: Any, machine: Machine) -> str:
    """Say by how much the leanest plan is too large.

    Args:
        memory: Memory that the plans need, bytes per chip.
        machine: Chip with its usable memory.

    """
    need, have = float(np.min(memory)), untraced_value(machine.memory)
    return (
        f"the model does not fit: the leanest plan needs {need / 1e9:.1f} GB per chip, "
        f"{have / 1e9:.1f} GB are usable"
    )


def _too_slow(
    plan: DecodePlan, decode_result: PassResult, fits: Any, interactivity: float, machine: Machine
) -> str:
    """Return text on the quickest plan that fits but misses the speed.

    The text has the speed per user, the plan, and the rate per decoding chip.
    """
    times = np.where(
        np.broadcast_to(fits, np.shape(decode_result.time)), decode_result.per_token, np.inf
    )
    plan_index = divmod(int(times.argmin()), times.shape[1])
    nearest, quickest = plan_at(plan, plan_index), float(times[plan_index])
    rate = float(untraced_value(decode_rate(nearest.sequences, attention_chips(nearest), quickest)))
    axes = ", ".join(
        f"{axis_name} {axis_value}"
        for axis_name, axis_value in decode_plan_document(nearest, machine.links).items()
    )
    speeds = (
        f"the quickest plan that fits gives {1 / quickest:.1f} tokens/s per user, "
        f"{interactivity:g} are asked for"
    )
    return f"{speeds}; the nearest is {axes}, with {rate:.3g} tokens/s a decoding chip"


def decode_rate_with_experts(
    workload: ServingWorkload,
    interactivity: float,
    expert_placement: str,
) -> tuple[float, str]:
    """Return the best decode rate with the experts in a place.

    The plans lie within a single world.

    Args:
        workload: Requests, and the model and the machine that serve them.
        interactivity: Target speed of a user, tokens/s.
        expert_placement: Where the experts stand: `one-domain` or `whole-world`.

    Returns:
        Output tokens/s per decoding chip and an empty text, or zero and the reason without a plan.

    """
    links, axes = workload.machine.links, decode_axes(workload)
    lies = layout_of(axes, links)
    # the chips that experts are spread over
    inside = lies.stage / (lies.replicas * lies.copies) <= links.domain
    row_mask = (inside if expert_placement == PLACES[0] else ~inside) & (axes.chips <= links.world)
    placed_axes = PrefillPlan(*(axis[row_mask][:, None] for axis in axes))
    if not placed_axes.chips.size:
        return 0.0, "no plan lays its experts so"
    choice = choose_decode(workload, interactivity, placed_axes)
    if choice.plan is None:
        return 0.0, f"no decode plan: {choice.reason}"
    best_pass = decode_pass(workload, choice.plan)
    return float(
        decode_rate(choice.plan.sequences, attention_chips(choice.plan), best_pass.per_token)
    ), ""
