"""Choice of plan and batch in each draw, from a compiled program of all serving plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.compile.execute import best_rows
from tco.compile.inverse import largest_within
from tco.compile.lower import ArithmeticKernel
from tco.core.types import AnyArray
from tco.performance.serving.decode_plan_solver import DecodePlanSolver, Hints, room
from tco.performance.serving.draw_results import (
    ROUNDING,
    BatchResponse,
    DrawBlock,
    Positions,
    allowed_token_time,
    quickest_first,
    wait_or_inf,
)
from tco.performance.serving.loaded_plans import best_loaded_plans, rates_under_load
from tco.performance.serving.plans import SEQUENCES, ServingPlan, attention_chips

DECODE, PREFILL = 0, 1  # axes of plans
# the exponent by which a token's time grows is measured on a batch larger by this factor
BATCH_FACTOR, LEAST_POWER = 1.2, 0.05
FIRST_BATCH, FIRST_POWER = 16.0, 0.5  # from which the batch of the base case is solved
# pilot draws at the centre of all ranges: at the middle, and at both ends of what has no range
CENTRES = 3
NEAR = 0.1  # share by which a plan may lie below the best of a centre and still be looked at
# share by which a plan of a pilot draw may miss the best rate and is solved nevertheless: it may be
# the best across a step of tiles
PILOT_SPARE = 0.1
PILOT_SHARE = 2  # at other speeds every n-th pilot draw is solved: this many times the speeds
LIKELY_ROWS = np.arange(4)  # plans of which one is solved first; the most frequent ones lead
# tokens/s per user; None for the workload's own in each draw
Speeds = Sequence[float | None]
OWN_SPEED: Speeds = (None,)


class Chosen(NamedTuple):
    """Plan and batch of each draw."""

    rows: dict[int, Any]  # plan of each draw, by axis
    batch: Any  # sequences of an attention group
    meets: Any  # whether the plan meets all targets


def decode_attention_chips(plans: ServingPlan) -> AnyArray:
    """Return the chips that share the attention of a sequence, of every decode plan."""
    return np.ravel(attention_chips(plans.decode)) * 1.0


def best_plans_per_draw(
    block: DrawBlock,
    plans: ServingPlan,
    hints: Hints | None,
    speeds: Speeds = OWN_SPEED,
    likely_rows: AnyArray = LIKELY_ROWS,
    spare: float = 0.0,
    spacing: int = 1,
) -> list[Chosen]:
    """Return the best plan and batch of each draw, at each speed.

    Args:
        block: Draws of the inputs.
        plans: Serving plans, with an array over plans on each axis.
        hints: Batches and rates in the base case; None where the load gives the batch.
        speeds: Speeds in tokens/s per user.
        likely_rows: Decode plans of which one is solved first.
        spare: Share by which a plan may miss the best rate and is solved nevertheless.
        spacing: Every n-th draw is solved beyond the first speed.

    """
    draws = [
        np.arange(0, block.count, spacing if speed_index else 1)
        for speed_index in range(len(speeds))
    ]
    if hints is None:
        return [
            _choose_loaded_plans(block, speed, speed_draws)
            for speed, speed_draws in zip(speeds, draws, strict=True)
        ]
    solver = DecodePlanSolver(block, decode_attention_chips(plans), hints, speeds, draws)
    choices = []
    for decode, speed_draws in zip(solver.solve(likely_rows, spare), draws, strict=True):
        step_time = BatchResponse(block, "step", decode.plan_rows, speed_draws)(decode.batch)
        prefill_rows, is_read_in_time = _best_prefill_by_draw(block, step_time, speed_draws)
        rows = {DECODE: decode.plan_rows, PREFILL: prefill_rows}
        choices.append(Chosen(rows, decode.batch, decode.in_time & is_read_in_time))
    return choices


def fixed_choice(batch: float, count: int) -> Chosen:
    """Return the only plan with one batch for all draws, whether or not they meet the targets."""
    only = np.zeros(count, dtype=int)
    return Chosen({DECODE: only, PREFILL: only}, np.full(count, batch), np.ones(count, dtype=bool))


def _choose_loaded_plans(block: DrawBlock, speed: float | None, draws: AnyArray) -> Chosen:
    """Return the choice among plans whose batch follows from the load."""
    plan_rows, meets = best_loaded_plans(block, speed)
    return Chosen({DECODE: plan_rows[draws]}, np.full(len(draws), np.nan), meets[draws])


def _best_prefill_by_draw(
    block: DrawBlock, step_time: AnyArray, draws: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Return the best prefill plan of each draw, and whether the first token comes in time."""
    rate, time, needed, memory, wait = (
        result[..., draws] if result.ndim and result.shape[-1] == block.count else result
        for result in block["prompts", "prompt", "prompts held", "memory", "longest wait"]
    )
    fits = needed <= memory
    is_in_time = time + step_time <= wait_or_inf(wait) * (1 + ROUNDING)
    return best_rows(rate, quickest_first(time, fits), fits & is_in_time, len(step_time))


# ---------------------------------------------------------------- plans to choose among
def batch_hints(
    kernel: ArithmeticKernel,
    positions: Positions,
    centre: Mapping[str, AnyArray],
    plans: ServingPlan,
    speeds: Speeds = OWN_SPEED,
) -> Hints | None:
    """Return the batch, growth exponent and rate of plans at `centre`.

    Args:
        kernel: Compiled formulas.
        positions: Positions of the kernel's results by name.
        centre: Inputs by path in the single draw of the base case.
        plans: Serving plans, with an array over plans on each axis.
        speeds: Requested speeds in tokens/s per user; None for the speed of the workload.

    Returns:
        Arrays of shape (speeds, plans); None where no batch is solved for.

    """
    if "needed" in positions:
        return None
    chips = decode_attention_chips(plans)
    shape = len(speeds), len(chips)
    cases = len(speeds) * len(chips)
    block = DrawBlock(kernel, positions, centre, 1)
    sequence_room = np.tile(room(block, len(chips))[:, 0], len(speeds))
    allowed = np.repeat([allowed_token_time(block, speed)[0] for speed in speeds], len(chips))
    plan_rows = np.tile(np.arange(len(chips)), len(speeds))
    token = BatchResponse(block, "token", plan_rows, np.zeros(cases, dtype=int))
    batch, time = largest_within(
        token,
        allowed,
        np.ones(cases),
        np.clip(sequence_room, 1.0, float(SEQUENCES[-1])),
        np.full(cases, FIRST_BATCH),
        np.full(cases, FIRST_POWER),
    )
    power = np.log(token(batch * BATCH_FACTOR) / time) / np.log(BATCH_FACTOR)
    is_in_time = (sequence_room >= 1) & (time <= allowed)
    rate = np.where(is_in_time, batch / chips[plan_rows] / time, 0.0)
    return Hints(
        batch.reshape(shape), np.clip(power, LEAST_POWER, 1.0).reshape(shape), rate.reshape(shape)
    )


def promising(
    kernel: ArithmeticKernel,
    positions: Positions,
    pilots: Mapping[str, AnyArray],
    plans: ServingPlan,
    speeds: Sequence[float] = (),
) -> tuple[dict[int, AnyArray], Hints | None]:
    """Return the plans to choose among, and their hints.

    They are the best plans of the pilot draws, and those near the best at a centre of the ranges.

    Args:
        kernel: Compiled formulas of all plans.
        positions: Positions of the kernel's results by name.
        pilots: Pilot draws of the inputs by path.
        plans: Serving plans, with an array over plans on each axis.
        speeds: Speeds beside the workload's own, tokens/s per user.

    Returns:
        Rows of the plans by axis, those first that are the best most often; and hints for them,
        None where no batch is solved for.

    """
    all_speeds = (*OWN_SPEED, *speeds)
    hints, near_masks = _near_the_best_at_centres(kernel, positions, pilots, plans, all_speeds)
    block = DrawBlock(kernel, positions, pilots, len(next(iter(pilots.values()))))
    likely_rows = LIKELY_ROWS
    if hints is not None:
        best_rates = np.maximum(hints.rate.max(axis=1, keepdims=True), ROUNDING)
        shares_of_best = (hints.rate / best_rates).max(axis=0)
        likely_rows = np.argsort(-shares_of_best, kind="stable")[: len(LIKELY_ROWS)]
        near_masks[DECODE] |= _fastest_single_request_plans(block, len(near_masks[DECODE]))
    spacing = max(PILOT_SHARE * len(speeds), 1)
    choices = best_plans_per_draw(
        block, plans, hints, all_speeds, likely_rows, PILOT_SPARE, spacing
    )
    rows_by_axis = {}
    for axis, is_near in near_masks.items():
        chosen_rows = np.concatenate([choice.rows[axis] for choice in choices])
        wins = np.bincount(chosen_rows, minlength=len(is_near))
        candidate_rows = np.flatnonzero(is_near | (wins > 0))
        order = np.argsort(-wins[candidate_rows], kind="stable")
        rows_by_axis[axis] = candidate_rows[order]
    if hints is None:
        return rows_by_axis, None
    return rows_by_axis, Hints(*(hint_array[:, rows_by_axis[DECODE]] for hint_array in hints))


def _near_the_best_at_centres(
    kernel: ArithmeticKernel,
    positions: Positions,
    pilots: Mapping[str, AnyArray],
    plans: ServingPlan,
    speeds: Speeds,
) -> tuple[Hints | None, dict[int, AnyArray]]:
    """Return hints at the first centre, and by axis which plans are near the best at a centre."""
    first_hints, near_masks = None, dict[int, AnyArray]()
    for hints, rates in _rates_at_centres(kernel, positions, pilots, plans, speeds):
        first_hints = first_hints or hints
        for axis, axis_rates in rates.items():
            best = axis_rates.max(axis=1, keepdims=True)
            best[1:][best[1:] == 0] = np.inf  # at a speed that no plan reaches none is near
            is_near = (axis_rates >= (1 - NEAR) * best).any(axis=0)
            near_masks[axis] = near_masks[axis] | is_near if axis in near_masks else is_near
    return first_hints, near_masks


def _rates_at_centres(
    kernel: ArithmeticKernel,
    positions: Positions,
    pilots: Mapping[str, AnyArray],
    plans: ServingPlan,
    speeds: Speeds,
) -> Iterator[tuple[Hints | None, dict[int, AnyArray]]]:
    """Yield hints and the rates of plans by axis at each distinct centre of the pilot draws."""
    for pilot_index in range(CENTRES):
        centre = {
            path: pilot_values[pilot_index : pilot_index + 1]
            for path, pilot_values in pilots.items()
        }
        if pilot_index and all(
            (centre_values == pilots[path][0]).all() for path, centre_values in centre.items()
        ):
            continue  # as the first centre
        block = DrawBlock(kernel, positions, centre, 1)
        hints = batch_hints(kernel, positions, centre, plans, speeds)
        if hints is None:
            yield None, {DECODE: rates_under_load(block, plans, speeds)}
            continue
        rate, time, needed, memory, wait = block[
            "prompts", "prompt", "prompts held", "memory", "longest wait"
        ]
        is_ready = (time <= wait_or_inf(wait)) & (needed <= memory)
        prefill_rates = np.reshape(np.where(is_ready, rate, 0.0), (1, -1))
        yield hints, {DECODE: hints.rate, PREFILL: prefill_rates}


def _fastest_single_request_plans(block: DrawBlock, plans: int) -> AnyArray:
    """Return which plans are the quickest with a single sequence in some draw."""
    single_batch = np.ones((plans, block.count))
    token_time = BatchResponse(block, "token", slice(None))(single_batch)
    fastest = np.where(room(block, plans) >= 1, token_time, np.inf).argmin(axis=0)
    return np.isin(np.arange(plans), fastest)


def of_rows(plans: ServingPlan, axis_rows: Mapping[int, AnyArray]) -> ServingPlan:
    """Return some of the plans on each axis; all plans without rows.

    Args:
        plans: Serving plans, with an array over plans on each axis.
        axis_rows: Rows of the plans that stay, by axis.

    """

    def select_rows(part: Any, axis: int) -> Any:
        selected = axis_rows[axis]
        return part._make(
            np.take(column, selected, axis=axis)
            if np.ndim(column) and np.shape(column)[axis] > 1
            else column
            for column in part
        )

    if not axis_rows:
        return plans
    if PREFILL not in axis_rows:
        return plans.in_rows(axis_rows[DECODE])
    decode, prefill = select_rows(plans.decode, DECODE), select_rows(plans.prefill, PREFILL)
    return plans._replace(decode=decode, prefill=prefill)
