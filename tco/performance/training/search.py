"""The search for the fastest feasible plan: each formula on the sub-grid that it depends on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tco.core.types import AnyArray, JsonObject, Quantity
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plans import PlanIndex, quantity_at_plan
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch import MicroBatchShape
from tco.performance.training.micro_batch_levels import (
    RELAUNCHED_SHARES,
    MicroBatch,
    data_stride,
    micro_batch,
    micro_batch_shape,
)
from tco.performance.training.plans import (
    ALL_FREE,
    NUMBERS,
    Fixed,
    PlanBlock,
    TrainingPlan,
    chips_in_use,
    space,
)
from tco.performance.training.schedule import Common, pipeline, training_rate
from tco.performance.training.step import (
    PARTIAL,
    WHOLE,
    TrainingStep,
    kept_level,
    partial_step,
    step,
)

ROWS = 2048  # of one chunk: its arrays stay in the cache


class Candidate(NamedTuple):
    """A plan and its step time."""

    seconds: float
    plan: TrainingPlan


@dataclass(slots=True)
class TrainingSearchResult:
    """Result of a training plan search: best plans, plan counts and time."""

    best: TrainingPlan | None = None
    runner_up: TrainingPlan | None = None
    margin: float | None = None  # how much slower the runner-up is
    leanest: TrainingPlan | None = None  # the plan that needs least memory
    need: float = np.inf  # bytes it needs
    plans: int = 0
    feasible: int = 0
    seconds: float = 0.0
    top: list[Candidate] = field(default_factory=list)
    count: int = 2  # so many of the quickest

    def offer(self, candidate: Candidate) -> None:
        """Keep a candidate if it is among the quickest; of equals the first met stays."""
        self.top = sorted([*self.top, candidate], key=lambda c: c.seconds)[: self.count]

    @property
    def bar(self) -> float:
        """The time a plan must beat to be kept."""
        return self.top[-1].seconds if len(self.top) == self.count else np.inf


def search_training_plans(
    job: TrainingJob, machine: Machine, fixed: Fixed = ALL_FREE, count: int = 2
) -> TrainingSearchResult:
    """Search the plan space of a training job for the quickest plans.

    Args:
        job: Training job.
        machine: Chip model of the job.
        fixed: Axes of a plan with their allowed values; other axes are free.
        count: Number of the quickest plans to keep.

    Returns:
        Quickest plans that fit, plan counts, and the time of the search as `seconds`; `best` is
        None where no plan fits.

    """
    began = time.perf_counter()
    search_result = TrainingSearchResult(count=count)
    for chips in chips_in_use(job, machine.links, fixed):
        sized_job = replace(job, chips=chips)
        for block in space(sized_job, machine.links.domain, fixed):
            _search_block(sized_job, machine, block, search_result)
    if not fixed.axes:
        search_result.top = [
            candidate._replace(plan=candidate.plan._replace(chosen=1))
            for candidate in search_result.top
        ]
    if search_result.top:
        search_result.best = search_result.top[0].plan
    if len(search_result.top) > 1:
        search_result.runner_up, search_result.margin = (
            search_result.top[1].plan,
            search_result.top[1].seconds / search_result.top[0].seconds - 1,
        )
    search_result.seconds = time.perf_counter() - began
    return search_result


def _search_block(
    job: TrainingJob, machine: Machine, block: PlanBlock, search_result: TrainingSearchResult
) -> None:
    """Search the plans of one block, chunk by chunk.

    A micro-batch is timed once for each of the distinct shapes of the rows.
    """
    choices = block.grid(block.rows[:1])
    shapes, index = _distinct_micro_batch_shapes(block)
    tensor, context, expert, size, stride = (column.reshape(-1, 1, 1, 1) for column in shapes.T)
    split, overlap = choices.sequence_parallel, choices.overlap
    micro = micro_batch(
        job, machine, MicroBatchShape(tensor, context, expert, size, stride, split, overlap)
    )
    for start in range(0, len(block.rows), ROWS):
        chunk = slice(start, start + ROWS)
        plans = block.grid(block.rows[chunk])
        row_micro = _micro_batch_per_row(micro, index[chunk], len(shapes))
        for plan, timed_step, fits in _recompute_sharding_plans(
            job, machine, plans, row_micro, block.recompute, block.sharding
        ):
            _weigh(plan, timed_step, fits, search_result)


class TimedPlans(NamedTuple):
    """Step times and memory of plans with each recomputation and sharding."""

    plan: TrainingPlan  # all of them, before any choice
    choices: list[tuple[str, int, int]]
    times: AnyArray  # (choices, ..., plans), s
    memory: AnyArray  # bytes
    fits: AnyArray

    def plan_with_choice(self, index: int, choice: int) -> TrainingPlan:
        """Return the plan at `index` with one recomputation and sharding."""
        recompute, zero, hybrid = self.choices[choice]
        plan = plan_at_index(self.plan, (index,))
        return plan._replace(recompute=recompute, zero=zero, hybrid=hybrid)


def job_token_rates(
    batch: Quantity, sequence: Quantity, step_time: Quantity, evaluated: Quantity
) -> Quantity:
    """Return the tokens per second of jobs from their step times.

    Args:
        batch: Sequences of a step.
        sequence: Tokens of a sequence.
        step_time: Time of a step, s.
        evaluated: Sequences evaluated per sequence trained.

    """
    return training_rate(batch, sequence, step_time, evaluated)


def time_blocks(job: TrainingJob, machine: Machine, blocks: Sequence[PlanBlock]) -> TimedPlans:
    """Return the step times of all plans of some blocks of one schedule, those of many jobs.

    Parameters under fit give sets of times in front of the plans.

    Args:
        job: Training jobs, whose values may be arrays with an entry for each plan.
        machine: Chip model of the jobs.
        blocks: Plans, those of each block in the order of its grid.

    Returns:
        Times, memory, and whether the plans fit. Time and memory are infinite where a block does
        not have a choice.

    """
    columns = zip(*(block.flat for block in blocks), strict=True)
    numbers: JsonObject = dict(zip(NUMBERS, map(np.concatenate, columns), strict=True))
    plans = TrainingPlan(**numbers, schedule=blocks[0].schedule)
    lengths = [block.grid_size for block in blocks]
    levels = sorted({level for block in blocks for level in block.recompute})
    sharding = sorted({sharding for block in blocks for sharding in block.sharding})
    micro = micro_batch(job, machine, micro_batch_shape(plans))
    timed_plans = list(_recompute_sharding_plans(job, machine, plans, micro, levels, sharding))
    choices = [(plan.recompute, plan.zero, plan.hybrid) for plan, _, _ in timed_plans]
    shape = np.broadcast_shapes(
        *(np.shape(step.time) for _, step, _ in timed_plans), np.shape(machine.memory)
    )

    def stack_choices(plan_values: Iterable[Any]) -> AnyArray:
        return np.stack([np.broadcast_to(plan_value, shape) for plan_value in plan_values])

    possible = stack_choices(
        np.repeat(
            [level in block.recompute and (zero, hybrid) in block.sharding for block in blocks],
            lengths,
        )
        for level, zero, hybrid in choices
    )
    times, memory = (
        np.where(possible, stack_choices(plan_values), np.inf)
        for plan_values in (
            [step.time for _, step, _ in timed_plans],
            [step.memory_in_use for _, step, _ in timed_plans],
        )
    )
    return TimedPlans(
        plans, choices, times, memory, possible & stack_choices(fits for _, _, fits in timed_plans)
    )


def _recompute_sharding_plans(
    job: TrainingJob,
    machine: Machine,
    base: TrainingPlan,
    micro: MicroBatch,
    recompute: Sequence[str],
    sharding: Sequence[tuple[int, int]],
) -> Iterator[tuple[TrainingPlan, TrainingStep, Quantity]]:
    """Yield plans with each recomputation and sharding, their steps, and whether they fit."""
    levels = {level: base._replace(recompute=level) for level in _needed_levels(recompute, job)}
    common = Common()
    pipes = {level: pipeline(job, machine, plan, micro, common) for level, plan in levels.items()}
    for zero, hybrid in sharding:
        plans = {level: plan._replace(zero=zero, hybrid=hybrid) for level, plan in levels.items()}
        steps = {
            level: step(job, machine, plan, micro, pipes[level], common)
            for level, plan in plans.items()
        }
        for level in recompute:
            if level != PARTIAL:
                yield plans[level], steps[level], steps[level].memory_in_use <= machine.memory
                continue
            less = kept_level(job)
            between = (steps[less].memory_in_use > machine.memory) & (
                steps[WHOLE].memory_in_use <= machine.memory
            )
            if not np.any(between):  # every plan fits as it is, or not at all
                yield plans[less]._replace(recompute=PARTIAL, share=0.0), steps[less], between
                continue
            timed_step, plan = partial_step(
                job, machine, plans[less], micro, (steps[less], steps[WHOLE]), common
            )
            # beside those that compute none or all again
            yield (
                plan,
                timed_step,
                (timed_step.memory_in_use <= machine.memory) & (plan.share > 0) & (plan.share < 1),
            )


def _needed_levels(levels: Sequence[str], job: TrainingJob) -> list[str]:
    both = (kept_level(job), WHOLE) if PARTIAL in levels else ()
    return [level for level in RELAUNCHED_SHARES if level in (*levels, *both)]


def _distinct_micro_batch_shapes(block: PlanBlock) -> tuple[AnyArray, AnyArray]:
    """Return the distinct shapes of the rows, and which of them each row has."""
    plan = block.grid(block.rows)
    stride = data_stride(plan) if np.any(plan.expert > 1) else np.ones_like(plan.expert)
    table = np.stack(
        [
            np.ravel(axis)
            for axis in (plan.tensor, plan.context, plan.expert, plan.micro_batch, stride)
        ],
        axis=1,
    )
    shapes, index = np.unique(table, axis=0, return_inverse=True)
    return shapes, index.reshape(-1)


def _micro_batch_per_row(micro: MicroBatch, index: AnyArray, count: int) -> MicroBatch:
    """Return the times of the shapes as times of rows."""

    def take(plan_value: Any) -> Any:
        if isinstance(plan_value, dict):
            return {field_name: take(inner) for field_name, inner in plan_value.items()}
        if isinstance(plan_value, tuple):
            return type(plan_value)(*map(take, plan_value))
        return plan_value[index] if np.ndim(plan_value) and len(plan_value) == count else plan_value

    return MicroBatch(*map(take, micro))


def _weigh(
    plan: TrainingPlan, timed_step: TrainingStep, fits: Any, search_result: TrainingSearchResult
) -> None:
    """Count the plans of a grid and keep the best of those that fit."""
    shape = np.broadcast_shapes(
        np.shape(timed_step.time), np.shape(timed_step.memory_in_use), np.shape(plan.tensor)
    )
    size = int(np.prod(shape))
    search_result.plans += size
    feasible = int(np.count_nonzero(fits)) * (size // fits.size)
    if not feasible:
        least = int(np.argmin(timed_step.memory_in_use))
        if (need := float(timed_step.memory_in_use.flat[least])) < search_result.need:
            where = np.unravel_index(least, timed_step.memory_in_use.shape)
            search_result.need, search_result.leanest = need, plan_at_index(plan, where)
        return
    search_result.feasible += feasible
    times = np.where(np.broadcast_to(fits, shape), timed_step.time, np.inf)
    for _ in range(search_result.count):
        where = np.unravel_index(int(times.argmin()), times.shape)
        seconds = float(times[where])
        if seconds >= search_result.bar:
            return
        search_result.offer(Candidate(seconds, plan_at_index(plan, where)))
        times[where] = np.inf


def plan_at_index(plan: TrainingPlan, where: PlanIndex) -> TrainingPlan:
    """Return one plan of an array of plans, as plain numbers."""

    def plain_number(plan_value: Any) -> Any:
        number = quantity_at_plan(plan_value, where)
        return number.item() if isinstance(number, np.generic) else number

    return TrainingPlan(*map(plain_number, plan))
