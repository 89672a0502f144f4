"""Batch sizes and best serving plans per draw, from a compiled program.

A program of pools in balance has all plans on an axis of their own, those that decode on the first
and those that read prompts on the second, and takes the batch as an input. A plan that decodes is
better than another if at the other's rate it still is in time: so the best one of a draw is found
by asking every plan once at the batch it would need, and solving the few that could be better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.compile.execute import ScheduleRunner, best_rows, kernel_outputs, taken
from tco.compile.inverse import largest_within
from tco.compile.lower import BATCH, BATCH_PATH, ArithmeticKernel
from tco.core.inputs import Readable
from tco.core.types import AnyArray, JsonObject
from tco.models.architecture import Architecture
from tco.performance.layer.chip_model import Machine
from tco.performance.serving import passes
from tco.performance.serving import result as served
from tco.performance.serving.batches import SLOWEST
from tco.performance.serving.plans import SEQUENCES, ServingPlan, attention_chips, request_of
from tco.performance.serving.record import ServingResult

Names = Mapping[str, int]  # places of results by their names
DECODE, PREFILL = 0, 1  # axes of plans
# by which a batch is enlarged to see how a step grows, and the least power of it
STEP, LEAST = (
    1.2,
    0.05,
)
# pilot draws that lie at the centre of all ranges: what has none lies at its middle and at both
# ends
CENTRES = 3
NEAR = 0.1  # share by which a plan may lie below the best
SHARE = 2  # times as few pilot draws as there are speeds, for each of these
# plans, those that are the best most often, one of which a draw is given first
FIRST = np.arange(4)
# share by which a plan of a pilot draw may be late with a batch that would be as good as another's:
# it may be earlier across a step
SPARE = 0.1
STEPS = 0.015  # the same of every draw, for a step next to the batch
# of a batch that is just in time, which are tried too
BELOW = np.array([[0.996], [0.986], [0.977], [0.941]])
HALVES = 8  # of the way between, towards the last batch before a step
EXACTLY = 1e-9  # share of a target that may be missed by rounding
# shares by which a loaded plan may lie below the best that is as quick for a user: in the base
# case, from which draws lie far off, and in one of several draws
BASE_FRONTIER, FRONTIER = 0.6, 0.2
# of memory and of the longest wait: a draw may need more or leave less than the base case
MEMORY_SHARES, WAIT_SHARES = (1.1, 1.0, 0.9), (2.0, 1.0, 0.5, 0.25)
# tokens/s a user that are asked for; none: those of the workload in every draw
Speeds = Sequence[float | None]
OWN: Speeds = (None,)


class Chosen(NamedTuple):
    """Chosen plans, batch and met targets of each draw.

    `rows` are the places of the plans, `batch` the sequences of an attention group.
    """

    rows: dict[int, Any]
    batch: Any
    meets: Any


def traced(
    machine: Machine, model: Architecture, input_values: Readable, plans: ServingPlan
) -> tuple[ServingResult, JsonObject]:
    """Return a serving workload on plans, and beside its rates what a choice among them rests
    on.
    """
    serving_result = served.evaluate_serving_plan(machine, model, input_values, plans)
    targets = {
        "interactivity": input_values["workload.interactivity"],
        "longest wait": input_values["workload.ttft"],
        "memory": machine.memory,
    }
    if plans.engines is not None:
        targets["offline"] = input_values["workload.offline"]
        rate_targets = {
            rate_name: serving_result.rates[rate_name]
            for rate_name in (
                "output_tokens_per_s_per_chip",
                "tokens_per_s_per_user",
                "ttft_s",
                "tpot_s",
            )
        }
        return serving_result, targets | rate_targets | {"needed": serving_result.needed}
    request, decode, prefill = (
        request_of(input_values),
        serving_result.decode,
        serving_result.prefill,
    )
    return serving_result, targets | {
        "token": decode.per_token,  # type: ignore[union-attr]
        "step": decode.time,  # type: ignore[union-attr]
        "tokens": passes.decode_rate(
            plans.decode.sequences,
            attention_chips(plans.decode),
            decode.per_token,  # type: ignore[union-attr]
        ),
        "held": decode.memory,  # type: ignore[union-attr]
        "prompt": prefill.until_read,  # type: ignore[union-attr]
        "prompts": passes.prefill_rate(
            request.prompt,
            attention_chips(plans.prefill),
            prefill.per_prompt,  # type: ignore[union-attr]
        ),
        "prompts held": prefill.memory,  # type: ignore[union-attr]
    }


class DrawBlock:
    """Draws of a kernel's inputs."""

    def __init__(
        self,
        kernel: ArithmeticKernel,
        name_places: Names,
        drawn: Mapping[str, AnyArray],
        count: int,
    ) -> None:
        self.kernel, self.names, self.count = kernel, name_places, count
        self.values = kernel.values(drawn)

    def keep(self, *result_places: int) -> None:
        """Compute what stands in some places in every draw, for what comes after."""
        missing = [
            result_place
            for result_place in dict.fromkeys(result_places)
            if result_place not in self.values
        ]
        self.values.update(
            zip(missing, kernel_outputs(self.kernel, missing, self.values, self.count), strict=True)
        )

    def __getitem__(self, result_names: tuple[str, ...]) -> list[Any]:
        """Return results that do not rest on a batch."""
        result_places = [self.names[result_name] for result_name in result_names]
        self.keep(*result_places)
        return [self.values[result_place] for result_place in result_places]


class BatchResponse:
    """A result as a function of the batch: of some rows of plans in every draw, or of pairs of a
    plan and a draw.
    """

    def __init__(
        self, block: DrawBlock, result_name: str, plan_rows: Any, draws: AnyArray | None = None
    ) -> None:
        kernel = self.kernel = block.kernel
        self.place, self.batch = block.names[result_name], kernel.inputs[BATCH_PATH]
        block.keep(
            *[
                border_place
                for border_place in kernel.before(BATCH, [self.place])
                if border_place != self.batch
            ]
        )
        schedule = kernel.schedule([self.place], [*block.values, self.batch])
        rests = [leaf_place for leaf_place in schedule.leaves if leaf_place != self.batch]
        self.run = ScheduleRunner(
            schedule,
            taken(kernel, block.values, rests, plan_rows, draws),
            block.count if draws is None else len(draws),
        )

    def __call__(self, batch: AnyArray, pair_indices: AnyArray | None = None) -> AnyArray:
        """Return the result at a batch for each of the pairs, or for those in some places alone; at
        several, row by row.
        """
        (batch_result,) = self.run(pair_indices, {self.batch: batch})
        return np.broadcast_to(batch_result, batch.shape)


class Hints(NamedTuple):
    """Batch, growth exponent and rate of decode plans in the base case.

    `batch` is the batch in time, and a step grows by its power `power`. Arrays are speeds by plans.
    """

    batch: AnyArray
    power: AnyArray
    rate: AnyArray


def decode_attention_chips(plans: ServingPlan) -> AnyArray:
    """Return the chips that share the attention of a sequence, of every plan that decodes."""
    return np.ravel(attention_chips(plans.decode)) * 1.0


def best_plans_per_draw(
    block: DrawBlock,
    plans: ServingPlan,
    hints: Hints | None,
    speeds: Speeds = OWN,
    begin: AnyArray = FIRST,
    spare: float = 0.0,
    share: int = 1,
) -> list[Chosen]:
    """Return the best of some plans in draws at each speed, with the batch that meets it.

    Of one plan it is that one. Beyond the first speed one of `share` draws is looked at.
    """
    draws = [_draws_at(block, speed_index, share) for speed_index in range(len(speeds))]
    if hints is None:
        return [
            _choose_loaded_engines(block, speed, speed_draws)
            for speed, speed_draws in zip(speeds, draws, strict=True)
        ]
    chosen_plans = []
    for decode_rows, batch, quick, speed_draws in zip(
        *_solve_decode_plans(
            block, decode_attention_chips(plans), hints, speeds, begin, spare, draws
        ),
        draws,
        strict=True,
    ):
        ready, soon = _best_prefill_by_draw(
            block, BatchResponse(block, "step", decode_rows, speed_draws)(batch), speed_draws
        )
        chosen_plans.append(Chosen({DECODE: decode_rows, PREFILL: ready}, batch, quick & soon))
    return chosen_plans


def held_with(batch: float, count: int) -> Chosen:
    """Return one plan with one batch for all draws, whether or not they meet the target with it."""
    first = np.zeros(count, dtype=int)
    return Chosen(
        {DECODE: first, PREFILL: first}, np.full(count, batch), np.ones(count, dtype=bool)
    )


def _choose_loaded_engines(block: DrawBlock, speed: float | None, draws: AnyArray) -> Chosen:
    """Return the choice of engines with some requests in flight, whose batch follows from them."""
    score, slow, user, first, needed = block[
        "output_tokens_per_s_per_chip", "tpot_s", "tokens_per_s_per_user", "ttft_s", "needed"
    ]
    memory, wait, offline = block["memory", "longest wait", "offline"]
    # nobody waits for what runs offline
    meets = (offline > 0) | (
        (user * (1 + EXACTLY) >= _draw_target_speed(block, speed)) & (first <= _or_ever(wait))
    )
    fits = needed <= memory
    decode_rows, meets = best_rows(score, _quickest_first(slow, fits), fits & meets, block.count)
    return Chosen({DECODE: decode_rows[draws]}, np.full(len(draws), np.nan), meets[draws])


def _draws_at(block: DrawBlock, speed_index: int, share: int) -> AnyArray:
    """Return the draws that are looked at: all at the first speed, else one of `share`."""
    return np.arange(0, block.count, share if speed_index else 1)


def _best_prefill_by_draw(
    block: DrawBlock, step: AnyArray, draws: AnyArray
) -> tuple[AnyArray, AnyArray]:
    rate, time, needed_memory, memory, wait = (
        result[..., draws] if result.ndim and result.shape[-1] == block.count else result
        for result in block["prompts", "prompt", "prompts held", "memory", "longest wait"]
    )
    fits, soon = needed_memory <= memory, time + step <= _or_ever(wait) * (1 + EXACTLY)
    return best_rows(rate, _quickest_first(time, fits), fits & soon, len(step))


def _quickest_first(time: AnyArray, fits: AnyArray) -> AnyArray:
    return np.where(fits, -time, -np.inf)


def _or_ever(wait: Any) -> Any:
    return np.where(wait > 0, wait, np.inf)


def _draw_target_speed(block: DrawBlock, speed: float | None) -> Any:
    return block[("interactivity",)][0] if speed is None else speed


def _time_allowed(block: DrawBlock, speed: float | None) -> AnyArray:
    allowed_time: AnyArray = np.broadcast_to(
        1 / np.maximum(_draw_target_speed(block, speed), SLOWEST) * (1 + EXACTLY), block.count
    )
    return allowed_time


def room(block: DrawBlock, plans: int) -> AnyArray:
    """Return the sequences that memory holds beside the weights, of every plan in every draw."""
    decode_memory, none, (memory,) = (
        BatchResponse(block, "held", slice(None)),
        np.zeros((plans, block.count)),
        block[("memory",)],
    )
    empty = decode_memory(none)
    sequence_room: AnyArray = np.maximum(memory - empty, 0) / (decode_memory(none + 1) - empty)
    return sequence_room


def _solve_decode_plans(
    block: DrawBlock,
    chips: AnyArray,
    hints: Hints,
    speeds: Speeds,
    begin: AnyArray,
    spare: float,
    draws: Sequence[AnyArray],
) -> tuple[list[AnyArray], list[AnyArray], list[AnyArray]]:
    """Return the plan that decodes in every draw at each speed, its batch, and whether it gives
    each user that speed.

    Some plans are looked at to begin with, and one of them is solved. A plan that is late with the
    batch that would make it as good, but for a share to `spare`, is not. Where none meets the
    target the quickest plan that fits decodes a single sequence. A case is one of the `draws` of a
    speed: those of all speeds are solved together.
    """
    plans, speed_count = len(chips), len(speeds)
    sizes = [len(speed_draws) for speed_draws in draws]
    draw, speed = np.concatenate(draws), np.repeat(np.arange(speed_count), sizes)
    all_cases, ends = np.arange(len(draw)), np.cumsum(sizes)
    allowed = np.concatenate(
        [
            _time_allowed(block, target_speed)[speed_draws]
            for target_speed, speed_draws in zip(speeds, draws, strict=True)
        ]
    )
    sequence_room = room(block, plans)
    fits, most = (
        draw_values[:, draw] if speed_count > 1 else draw_values
        for draw_values in (
            sequence_room >= 1,
            np.minimum(np.maximum(sequence_room, 1.0), float(SEQUENCES[-1])),
        )
    )
    chosen_rows, batch, rate = (
        np.zeros(len(draw), dtype=int),
        np.ones(len(draw)),
        np.zeros(len(draw)),
    )

    def times(plan_rows: Any, batches: AnyArray) -> AnyArray:
        """Return the time of a token of some plans, each with a batch in every case."""
        token = BatchResponse(block, "token", plan_rows)
        return np.concatenate(
            [
                token(speed_batches, speed_draws)
                for speed_batches, speed_draws in zip(
                    np.split(batches, ends[:-1], axis=1), draws, strict=True
                )
            ],
            axis=1,
        )

    def solve(plan_rows: AnyArray, which: AnyArray, first: AnyArray) -> None:
        """Give some plans to some cases, each with the largest batch in time, where that is better
        than what they have.
        """
        token = BatchResponse(
            block,
            "token",
            plan_rows,
            None if which is all_cases and speed_count == 1 else draw[which],
        )
        limit, most_of, power = (
            allowed[which],
            most[plan_rows, which],
            hints.power[speed[which], plan_rows],
        )
        solved_batch, time = largest_within(
            token, limit, np.ones(len(which)), most_of, first, power
        )
        gained = np.where(
            fits[plan_rows, which] & (time <= limit), solved_batch / chips[plan_rows] / time, 0.0
        )
        _back_off_from_tile_step(
            token,
            chips[plan_rows],
            solved_batch,
            gained,
            np.flatnonzero(gained > rate[which] * (1 - STEPS)),
        )
        better = np.flatnonzero(gained > rate[which])
        if which is not all_cases:
            # of several plans of a case the best comes last, and stays
            better = better[np.argsort(gained[better], kind="stable")]
        improved_cases = which[better]
        chosen_rows[improved_cases], batch[improved_cases], rate[improved_cases] = (
            plan_rows[better],
            solved_batch[better],
            gained[better],
        )

    def expected(
        power: AnyArray, tried: AnyArray, time: AnyArray, limit: AnyArray, largest: AnyArray
    ) -> AnyArray:
        """Return the batch that is expected to be just in time, from the time of another."""
        batch: AnyArray = np.clip(tried * (1 + (limit / time - 1) / power), 1.0, largest)
        return batch

    def by_speed(case_values: AnyArray) -> list[AnyArray]:
        return np.split(case_values, ends[:-1])

    if plans == 1:
        solve(chosen_rows, all_cases, np.minimum(hints.batch[speed, chosen_rows], most[0]))
        return by_speed(chosen_rows), by_speed(batch), by_speed(rate > 0)
    begin = begin[begin < plans]
    tried = np.minimum(hints.batch[:, begin].T[:, speed], most[begin])
    hoped = expected(
        hints.power[:, begin].T[:, speed], tried, times(begin[:, None], tried), allowed, most[begin]
    )
    best = np.where(fits[begin], hoped / chips[begin, None], 0.0).argmax(axis=0)
    first = begin[best]
    solve(first, all_cases, hoped[best, all_cases])
    least = rate * (1 - max(spare, STEPS))
    needed = np.clip(least * chips[:, None] * allowed, 1.0, most)
    time = times(slice(None), needed)
    could = fits & (time <= allowed) & ((needed < most) | (needed / chips[:, None] / time > least))
    could[first, all_cases] = False
    if could.any():
        plan_rows, which = np.nonzero(could)
        solve(
            plan_rows,
            which,
            expected(
                hints.power[speed[which], plan_rows],
                needed[could],
                time[could],
                allowed[which],
                most[could],
            ),
        )
    missed = np.flatnonzero(rate == 0)
    if len(missed):
        # with a single sequence it is the same at every speed
        lost, lost_index = np.unique(draw[missed], return_inverse=True)
        plan_rows, which = (
            index_grid.ravel()
            for index_grid in np.broadcast_arrays(np.arange(plans)[:, None], lost[None])
        )
        time = BatchResponse(block, "token", plan_rows, which)(np.ones(len(plan_rows))).reshape(
            plans, -1
        )
        chosen_rows[missed] = np.where(fits[:, lost], time, np.inf).argmin(axis=0)[lost_index]
    return by_speed(chosen_rows), by_speed(batch), by_speed(rate > 0)


def _back_off_from_tile_step(
    token: BatchResponse, chips: AnyArray, batch: AnyArray, rate: AnyArray, near: AnyArray
) -> None:
    """Put fewer sequences in the place of the largest batches in time, near the best, where they
    make more: a tile or wave less.
    """
    most = above = batch[near]
    fewer = np.maximum(most * BELOW, 1.0)
    tried_rates = fewer / chips[near] / token(fewer, near) if len(near) else fewer
    for size, tried_rate in zip(fewer, tried_rates, strict=True):
        more = tried_rate > rate[near]
        batch[near[more]], rate[near[more]] = size[more], tried_rate[more]
    near, above = near[batch[near] < most], above[batch[near] < most]
    # what is made rises up to the step and falls across it
    for _ in range(HALVES if len(near) else 0):
        middle = (batch[near] + above) / 2
        tried_rate = middle / chips[near] / token(middle, near)
        more = tried_rate > rate[near]
        batch[near], rate[near] = (
            np.where(more, middle, batch[near]),
            np.where(more, tried_rate, rate[near]),
        )
        above = np.where(more, above, middle)


def hinted(
    kernel: ArithmeticKernel,
    name_places: Names,
    centre: Mapping[str, AnyArray],
    plans: ServingPlan,
    speeds: Speeds = OWN,
) -> Hints | None:
    """Return the batch, growth exponent and rate of plans at `centre`.

    Args:
        kernel: Compiled formulas.
        name_places: Places of the kernel's results by name.
        centre: Inputs by name in the single draw of the base case.
        plans: Serving plans, with an array over plans on each axis.
        speeds: Requested speeds in tokens/s per user; None for the speed of the workload.

    Returns:
        Arrays of shape (speeds, plans); None where no batch is solved for.

    """
    if "needed" in name_places:
        return None
    chips = decode_attention_chips(plans)
    block, count, speed_count = DrawBlock(kernel, name_places, centre, 1), len(chips), len(speeds)
    sequence_room = np.tile(room(block, count)[:, 0], speed_count)
    allowed = np.repeat(np.concatenate([_time_allowed(block, speed) for speed in speeds]), count)
    token = BatchResponse(
        block,
        "token",
        np.tile(np.arange(count), speed_count),
        np.zeros(speed_count * count, dtype=int),
    )
    most, first, power = (
        np.clip(sequence_room, 1.0, float(SEQUENCES[-1])),
        np.full(speed_count * count, 16.0),
        np.full(speed_count * count, 0.5),
    )
    batch, time = largest_within(token, allowed, np.ones(speed_count * count), most, first, power)
    power = np.clip(np.log(token(batch * STEP) / time) / np.log(STEP), LEAST, 1.0)
    rate = np.where(
        (sequence_room >= 1) & (time <= allowed), batch / np.tile(chips, speed_count) / time, 0.0
    )
    return Hints(*(case_values.reshape(speed_count, count) for case_values in (batch, power, rate)))


def promising(
    kernel: ArithmeticKernel,
    name_places: Names,
    pilots: Mapping[str, AnyArray],
    plans: ServingPlan,
    speeds: Sequence[float] = (),
) -> tuple[dict[int, AnyArray], Hints | None]:
    """Return the rows of plans to choose among on each axis, and what is known of them: the best of
    some pilot draws, and those near it at a centre.

    They are those for the workload's own speed, and for others those of some of the draws.
    """
    all_speeds, near_masks, wins, first = (*OWN, *speeds), dict[int, Any](), dict[int, Any](), None
    for hints, rates in _rate_at_centres(kernel, name_places, pilots, plans, all_speeds):
        first = first or hints
        for axis, axis_rates in rates.items():
            most = axis_rates.max(axis=1, keepdims=True)
            # at a speed that no plan reaches none is near the best
            most[1:][most[1:] == 0] = np.inf
            near_masks[axis] = near_masks.get(axis, False) | (axis_rates >= (1 - NEAR) * most).any(
                axis=0
            )
    begin = FIRST
    if first is not None:  # to begin with those that are the best at the centre
        near_best = first.rate / np.maximum(first.rate.max(axis=1, keepdims=True), EXACTLY)
        begin = np.argsort(-near_best.max(axis=0), kind="stable")[: len(FIRST)]
    block = DrawBlock(kernel, name_places, pilots, len(next(iter(pilots.values()))))
    if first is not None:
        near_masks[DECODE] = near_masks[DECODE] | _fastest_single_request_plans(
            block, len(near_masks[DECODE])
        )
    for chosen in best_plans_per_draw(
        block, plans, first, all_speeds, begin, SPARE, max(SHARE * len(speeds), 1)
    ):
        for axis, near in near_masks.items():
            wins[axis] = wins.get(axis, 0) + np.bincount(chosen.rows[axis], minlength=len(near))
    rows_by_axis = {}
    for axis, near in near_masks.items():
        candidate_rows = np.flatnonzero(near | (wins[axis] > 0))
        rows_by_axis[axis] = candidate_rows[np.argsort(-wins[axis][candidate_rows], kind="stable")]
    return rows_by_axis, first and Hints(
        *(hint_array[:, rows_by_axis[DECODE]] for hint_array in first)
    )


def _rate_at_centres(
    kernel: ArithmeticKernel,
    name_places: Names,
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
            continue
        block, hints = (
            DrawBlock(kernel, name_places, centre, 1),
            hinted(kernel, name_places, centre, plans, speeds),
        )
        if hints is None:
            yield None, {DECODE: _rates_under_load(block, plans, speeds)}
            continue
        rate, time, needed_memory, memory, wait = block[
            "prompts", "prompt", "prompts held", "memory", "longest wait"
        ]
        prefill_rate = np.where((time <= _or_ever(wait)) & (needed_memory <= memory), rate, 0.0)
        yield hints, {DECODE: hints.rate, PREFILL: np.reshape(prefill_rate, (1, -1))}


LOADED_FIGURES = (
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_user",
    "ttft_s",
    "needed",
    "memory",
)


class LoadedPlans(NamedTuple):
    """Figures of plans with their requests in flight, of shape (plans, draws)."""

    rate: AnyArray  # tokens/s a chip
    user: AnyArray  # tokens/s
    first: AnyArray  # seconds until the first token
    needed: AnyArray  # bytes of memory
    memory: AnyArray  # bytes that a chip has
    wait: AnyArray  # seconds that the first token may take


def loaded_plans(
    kernel: ArithmeticKernel, name_places: Names, drawn: Mapping[str, AnyArray], plans: int
) -> LoadedPlans:
    """Return the figures of the loaded plans of a kernel in draws of its inputs."""
    count = len(next(iter(drawn.values())))
    block = DrawBlock(kernel, name_places, drawn, count)
    *figures, wait = block[(*LOADED_FIGURES, "longest wait")]
    return _figures_of_plans([*figures, _or_ever(wait)], (plans, count))


def _figures_of_plans(columns: Sequence[Any], shape: tuple[int, int]) -> LoadedPlans:
    return LoadedPlans(*(np.broadcast_to(column, shape) for column in columns))


def near_frontier_of_base_case(
    machine: Machine, model: Architecture, input_values: Readable, plans: ServingPlan
) -> ServingPlan:
    """Return the loaded plans near the frontier in the base case.

    The steps of a program hold a number of every plan, and those of all plans fill the memory.
    """
    _, targets = traced(machine, model, input_values, plans)
    columns = [*(targets[figure] for figure in LOADED_FIGURES), _or_ever(targets["longest wait"])]
    figures = _figures_of_plans(
        [np.reshape(column, (-1, 1)) for column in columns], (len(plans.flight), 1)
    )
    return of_rows(plans, {DECODE: near_frontier([figures], BASE_FRONTIER)})


def near_frontier(blocks: Sequence[LoadedPlans], share: float) -> AnyArray:
    """Return the rows of loaded plans near the best rate of those as quick for a user.

    Other draws slow all plans down or leave less memory, so that the best of those that read
    sooner and need less count as well.

    Args:
        blocks: Figures of consecutive plans.
        share: Part by which a rate may lie below the best.

    """
    plans = LoadedPlans(*map(np.concatenate, zip(*blocks, strict=True)))
    quickest = np.argsort(-plans.user, axis=0, kind="stable")
    is_near = np.zeros(len(quickest), dtype=bool)
    for memory_share in MEMORY_SHARES:
        fits = plans.needed <= memory_share * plans.memory
        for wait_share in WAIT_SHARES:
            reads_in_time = plans.first <= wait_share * plans.wait
            rates = np.where(fits & reads_in_time, plans.rate, 0.0)
            rates = np.take_along_axis(rates, quickest, axis=0)
            best = np.maximum.accumulate(rates, axis=0)
            is_near[quickest[(rates > 0) & (rates >= (1 - share) * best)]] = True
    return np.flatnonzero(is_near)


def _fastest_single_request_plans(block: DrawBlock, plans: int) -> AnyArray:
    single_batch = np.ones((plans, block.count))
    time_per_token = BatchResponse(block, "token", slice(None))(single_batch)
    fastest = np.where(room(block, plans) >= 1, time_per_token, np.inf).argmin(axis=0)
    return np.isin(np.arange(plans), fastest)


def _rates_under_load(block: DrawBlock, plans: ServingPlan, speeds: Speeds) -> AnyArray:
    """Return the rate of each plan with its requests in flight at each speed; zero of those that do
    not fit.

    Plans that differ in their requests in flight count where they keep the promises, or nearly do.
    """
    needed, memory, rate = block["needed", "memory", "output_tokens_per_s_per_chip"]
    fitting = np.where(needed <= memory, rate, 0.0)
    if plans.flight is None:
        return np.reshape(fitting, (1, -1))
    user, first, wait = block["tokens_per_s_per_user", "ttft_s", "longest wait"]
    soon = first <= _or_ever(wait) * (1 + NEAR)
    quick = [user * (1 + NEAR) >= _draw_target_speed(block, speed) for speed in speeds]
    return np.concatenate(
        [np.reshape(np.where(soon & enough, fitting, 0.0), (1, -1)) for enough in quick]
    )


def of_rows(plans: ServingPlan, axis_rows: Mapping[int, AnyArray]) -> ServingPlan:
    """Return some of the plans on each axis."""

    def select_rows(part: Any, axis: int) -> Any:
        chosen = axis_rows[axis]
        return part._make(
            np.take(plan_column, chosen, axis=axis)
            if np.ndim(plan_column) and np.shape(plan_column)[axis] > 1
            else plan_column
            for plan_column in part
        )

    if not axis_rows:
        return plans
    if PREFILL not in axis_rows:
        return plans.in_rows(axis_rows[DECODE])
    decode, prefill = select_rows(plans.decode, DECODE), select_rows(plans.prefill, PREFILL)
    return plans._replace(decode=decode, prefill=prefill)
