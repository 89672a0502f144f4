"""The search for the quickest plan that fits: every formula on the sub-grid it depends on, only the
last sums on the whole grid.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tco.core.types import AnyArray, JsonObject, Quantity
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plans import Place, quantity_at_plan
from tco.performance.training.job import TrainingJob
from tco.performance.training.micro_batch import MicroBatchShape
from tco.performance.training.plans import (
    ALL_FREE,
    NUMBERS,
    Fixed,
    PlanBlock,
    TrainingPlan,
    chips_in_use,
    space,
)
from tco.performance.training.schedule import (
    AGAIN,
    Common,
    MicroBatch,
    data_stride,
    micro_batch,
    micro_batch_shape,
    pipeline,
)
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
    kept: int = 2  # so many of the quickest
    limit: float = np.inf  # that take less time than this

    def offer(self, candidate: Candidate) -> None:
        """Keep a candidate if it is among the quickest; of equals the first met stays."""
        self.top = sorted([*self.top, candidate], key=lambda c: c.seconds)[: self.kept]

    @property
    def bar(self) -> float:
        """The time a plan must beat to be kept."""
        return self.top[-1].seconds if len(self.top) == self.kept else self.limit


def search_training_plans(
    job: TrainingJob,
    machine: Machine,
    fixed: Fixed = ALL_FREE,
    kept: int = 2,
    limit: float = np.inf,
) -> TrainingSearchResult:
    """Search the plan space of a training job for the quickest plans.

    Args:
        job: Training job.
        machine: Chip model of the job.
        fixed: Axes of a plan with their allowed values; other axes are free.
        kept: Number of the quickest plans to keep.
        limit: Time of a step in s that a plan must beat.

    Returns:
        Quickest plans that fit, plan counts, and the time of the search as `seconds`; `best` is
        None where no plan fits and beats the limit.

    """
    began = time.perf_counter()
    found = TrainingSearchResult(kept=kept, limit=limit)
    for chips in chips_in_use(job, machine.links, fixed):
        some = replace(job, chips=chips)
        for block in space(some, machine.links.domain, fixed):
            search_block(some, machine, block, found)
    if not fixed.axes:
        found.top = [
            candidate._replace(plan=candidate.plan._replace(chosen=1)) for candidate in found.top
        ]
    if found.top:
        found.best = found.top[0].plan
    if len(found.top) > 1:
        found.runner_up, found.margin = (
            found.top[1].plan,
            found.top[1].seconds / found.top[0].seconds - 1,
        )
    found.seconds = time.perf_counter() - began
    return found


def search_block(
    job: TrainingJob, machine: Machine, block: PlanBlock, found: TrainingSearchResult
) -> None:
    """Search the plans of one block: distinct shapes first, then the rows in chunks, then sharding
    and recomputation.
    """
    choices = block.grid(block.rows[:1])
    shapes, index = distinct_micro_batch_shapes(block)
    tensor, context, expert, size, stride = (column.reshape(-1, 1, 1, 1) for column in shapes.T)
    split, overlap = choices.sequence_parallel, choices.overlap
    micro = micro_batch(
        job, machine, MicroBatchShape(tensor, context, expert, size, stride, split, overlap)
    )
    for start in range(0, len(block.rows), ROWS):
        chunk = slice(start, start + ROWS)
        plans = block.grid(block.rows[chunk])
        row_micro = micro_batch_per_row(micro, index[chunk], len(shapes))
        for plan, made, fits in recompute_sharding_plans(
            job, machine, plans, row_micro, block.recompute, block.sharding
        ):
            weigh(plan, made, fits, found)


class TimedPlans(NamedTuple):
    """Every choice of recomputation and sharding of the plans of some blocks; the last axis is that
    of the plans.
    """

    plan: TrainingPlan  # all of them, before any choice
    choices: list[tuple[str, int, int]]
    times: AnyArray  # (choices, ..., plans), s
    held: AnyArray  # bytes
    fits: AnyArray


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
    made = list(recompute_sharding_plans(job, machine, plans, micro, levels, sharding))
    choices = [(plan.recompute, plan.zero, plan.hybrid) for plan, _, _ in made]
    shape = np.broadcast_shapes(
        *(np.shape(step.time) for _, step, _ in made), np.shape(machine.memory)
    )

    def stack_choices(values: Iterable[Any]) -> AnyArray:
        return np.stack([np.broadcast_to(value, shape) for value in values])

    possible = stack_choices(
        np.repeat(
            [level in block.recompute and (zero, hybrid) in block.sharding for block in blocks],
            lengths,
        )
        for level, zero, hybrid in choices
    )
    times, held = (
        np.where(possible, stack_choices(values), np.inf)
        for values in ([step.time for _, step, _ in made], [step.held for _, step, _ in made])
    )
    return TimedPlans(
        plans, choices, times, held, possible & stack_choices(fits for _, _, fits in made)
    )


def recompute_sharding_plans(
    job: TrainingJob,
    machine: Machine,
    base: TrainingPlan,
    micro: MicroBatch,
    recompute: Sequence[str],
    sharding: Sequence[tuple[int, int]],
) -> Iterator[tuple[TrainingPlan, TrainingStep, Quantity]]:
    """Yield plans with each choice of recomputation and sharding, their steps, and whether they
    fit.
    """
    levels = {level: base._replace(recompute=level) for level in needed(recompute, job)}
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
                yield plans[level], steps[level], steps[level].held <= machine.memory
                continue
            less = kept_level(job)
            between = (steps[less].held > machine.memory) & (steps[WHOLE].held <= machine.memory)
            if not np.any(between):  # every plan fits as it is, or not at all
                yield plans[less]._replace(recompute=PARTIAL, share=0.0), steps[less], between
                continue
            made, plan = partial_step(
                job, machine, plans[less], micro, (steps[less], steps[WHOLE]), common
            )
            # beside those that compute none or all again
            yield (
                plan,
                made,
                (made.held <= machine.memory) & (plan.share > 0) & (plan.share < 1),
            )


def needed(levels: Sequence[str], job: TrainingJob) -> list[str]:
    """Return the levels of recomputation to evaluate: between two of them lies the partial one."""
    both = (kept_level(job), WHOLE) if PARTIAL in levels else ()
    return [level for level in AGAIN if level in (*levels, *both)]


def distinct_micro_batch_shapes(block: PlanBlock) -> tuple[AnyArray, AnyArray]:
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


def micro_batch_per_row(micro: MicroBatch, index: AnyArray, count: int) -> MicroBatch:
    """Return the times of the shapes as times of rows."""

    def take(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: take(inner) for name, inner in value.items()}
        if isinstance(value, tuple):
            return type(value)(*map(take, value))
        return value[index] if np.ndim(value) and len(value) == count else value

    return MicroBatch(*map(take, micro))


def weigh(plan: TrainingPlan, made: TrainingStep, fits: Any, found: TrainingSearchResult) -> None:
    """Count the plans of a grid and keep the best of those that fit."""
    shape = np.broadcast_shapes(np.shape(made.time), np.shape(made.held), np.shape(plan.tensor))
    size = int(np.prod(shape))
    found.plans += size
    feasible = int(np.count_nonzero(fits)) * (size // fits.size)
    if not feasible:
        least = int(np.argmin(made.held))
        if (need := float(made.held.flat[least])) < found.need:
            where = np.unravel_index(least, made.held.shape)
            found.need, found.leanest = need, plan_at_index(plan, where)
        return
    found.feasible += feasible
    times = np.where(np.broadcast_to(fits, shape), made.time, np.inf)
    for _ in range(found.kept):
        where = np.unravel_index(int(times.argmin()), times.shape)
        seconds = float(times[where])
        if seconds >= found.bar:
            return
        found.offer(Candidate(seconds, plan_at_index(plan, where)))
        times[where] = np.inf


def plan_at_index(plan: TrainingPlan, where: Place) -> TrainingPlan:
    """Return one plan of an array of plans, as plain numbers."""

    def plain_number(value: Any) -> Any:
        number = quantity_at_plan(value, where)
        return number.item() if isinstance(number, np.generic) else number

    return TrainingPlan(*map(plain_number, plan))
