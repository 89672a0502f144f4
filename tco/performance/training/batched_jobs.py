"""Many jobs at once: the quickest plan that fits of each, jobs of one structure being asked
together as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tco.core.types import AnyArray, Quantity
from tco.performance.layer.chip_model import Machine
from tco.performance.training.job import TrainingJob
from tco.performance.training.plans import PlanBlock, TrainingPlan
from tco.performance.training.schedule import micro_batch, micro_batch_shape, training_rate
from tco.performance.training.search import recompute_sharding_plans

FIELDS = (
    "tensor",
    "context",
    "pipeline",
    "data",
    "expert",
    "order",
    "micro_batch",
    "interleave",
    "sequence_parallel",
    "overlap",
    "offload",
)


class Candidates(NamedTuple):
    """Plans of one schedule, a column for each field, and the choices open to each: recomputation
    and sharding.
    """

    schedule: str
    plans: AnyArray  # (plans, fields)
    levels: tuple[str, ...]
    sharding: tuple[tuple[int, int], ...]
    open_levels: AnyArray  # (plans, levels)
    open_sharding: AnyArray  # (plans, sharding)


def candidates(blocks: list[PlanBlock]) -> list[Candidates]:
    """Return the blocks of a plan space with numeric choices written out.

    Args:
        blocks: Blocks of plans, each of one schedule.

    Returns:
        Candidates of each block; every choice of recomputation and sharding is open to every plan.

    """
    found = []
    for block in blocks:
        own = np.array(
            [
                (p, o, f)
                for p in block.sequence_parallel
                for o in block.overlap
                for f in block.offload
            ]
        )
        plans = np.concatenate(
            [np.repeat(block.rows, len(own), axis=0), np.tile(own, (len(block.rows), 1))], axis=1
        )
        ones = [
            np.ones((len(plans), len(choices)), dtype=bool)
            for choices in (block.recompute, block.sharding)
        ]
        found.append(
            Candidates(block.schedule, plans, block.recompute, tuple(block.sharding), *ones)
        )
    return found


def concatenate_candidates(parts: list[Candidates]) -> Candidates:
    """Return candidates of one schedule as one table of plans.

    Each plan keeps the choices that are open to it.

    Args:
        parts: Candidates to join, at least one, all of the same schedule.

    Returns:
        Plans of all parts in order, with the sorted choices of all parts.

    """
    levels, sharding = (
        tuple(sorted({one for part in parts for one in getattr(part, name)}))
        for name in ("levels", "sharding")
    )

    def spread(own: tuple[Any, ...], every: tuple[Any, ...], plans: int) -> AnyArray:
        return np.tile(np.array([one in own for one in every]), (plans, 1))

    return Candidates(
        parts[0].schedule,
        np.concatenate([part.plans for part in parts]),
        levels,
        sharding,
        np.concatenate([spread(part.levels, levels, len(part.plans)) for part in parts]),
        np.concatenate([spread(part.sharding, sharding, len(part.plans)) for part in parts]),
    )


class Timed(NamedTuple):
    """Every choice of recomputation and sharding of some plans: times, memory and whether they fit;
    the last axis is that of the plans.
    """

    choices: list[tuple[str, int, int]]
    times: AnyArray  # (choices, ..., plans)
    held: AnyArray
    fits: AnyArray


def token_rate(
    batch: Quantity, sequence: Quantity, seconds: Quantity, evaluated: Quantity
) -> Quantity:
    """Return the tokens per second of jobs from their step times.

    Args:
        batch: Sequences of a step.
        sequence: Tokens of a sequence.
        seconds: Time of a step, in s.
        evaluated: Sequences evaluated per sequence trained.

    """
    return training_rate(batch, sequence, seconds, evaluated)


def candidate_step_times(job: TrainingJob, machine: Machine, found: Candidates) -> Timed:
    """Return the step times of plans with each of their choices.

    Parameters under fit give sets of times in front of the plans.

    Args:
        job: Training job, whose values may be arrays.
        machine: Chip model of the job.
        found: Plans, with the choices open to each.

    Returns:
        Times in s and memory in bytes, shape (choices, ..., plans), and whether the plans fit. Time
        and memory are infinite where a choice is not open to a plan.

    """
    base = TrainingPlan(**dict(zip(FIELDS, found.plans.T, strict=True)), schedule=found.schedule)
    micro = micro_batch(job, machine, micro_batch_shape(base))
    made = list(recompute_sharding_plans(job, machine, base, micro, found.levels, found.sharding))
    shape = np.broadcast_shapes(
        *(np.shape(one.time) for _, one, _ in made), np.shape(machine.memory)
    )

    def stack_choices(values: Iterable[Any]) -> AnyArray:
        return np.stack([np.broadcast_to(value, shape) for value in values])

    names = [(plan.recompute, plan.zero, plan.hybrid) for plan, _, _ in made]
    possible = stack_choices(open_to(found, *name) for name in names)
    times, held = (
        stack_choices(one.time for _, one, _ in made),
        stack_choices(one.held for _, one, _ in made),
    )
    return Timed(
        names,
        np.where(possible, times, np.inf),
        np.where(possible, held, np.inf),
        possible & stack_choices(fits for _, _, fits in made),
    )


def open_to(found: Candidates, level: str, zero: int, hybrid: int) -> AnyArray:
    """Say for every plan whether a choice is open to it."""
    return np.asarray(
        found.open_levels[:, found.levels.index(level)]
        & found.open_sharding[:, found.sharding.index((zero, hybrid))]
    )
