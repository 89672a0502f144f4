"""Draws of a serving scenario: plan and batch of each draw first, then its metrics.

The results of the workload in a draw are cached on disk. Their key is a hash of the arithmetic, of
its numbers and of the draws. A price is none of these, so draws under another price have the same
plans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.compile.execute import kernel_outputs, select_values
from tco.compile.lower import BATCH_PATH, ArithmeticKernel
from tco.core.shipped_arrays import code_hash, rounded_bytes, shipped_or_cached_arrays
from tco.core.types import AnyArray, FloatArray
from tco.scenario.compiled import (
    CompiledStructures,
    DrawResults,
    kernel_positions,
    metrics_of_partitions,
    scatter_into,
)
from tco.scenario.metric_arithmetic import MetricArithmetic, Trace, border_steps
from tco.scenario.metrics import OUTPUT_RATE

if TYPE_CHECKING:
    from tco.performance.serving.draw_results import DrawBlock
    from tco.performance.serving.plan_choice_compiled import Chosen
    from tco.performance.serving.plans import ServingPlan

# The first draws are cached by themselves, since questions with more draws begin with the same.
FIRST_DRAWS = 512
# Plans times draws that are evaluated together: their results fit in memory.
PLAN_DRAW_PAIRS = 2**17
# Files of the package whose code chooses plan and batch; a hash of them is part of the cache key.
CODE = (
    "compile/*.py",
    "core/elementwise.py",
    "performance/serving/decode_plan_solver.py",
    "performance/serving/draw_results.py",
    "performance/serving/loaded_plans.py",
    "performance/serving/plan_choice_compiled.py",
    "performance/serving/plans.py",
    "scenario/candidate_plans.py",
    "scenario/compiled.py",
    "scenario/served_draws.py",
)


class ServedDraws(NamedTuple):
    """Results of the workload on the plan and batch that each draw chose."""

    meets: Any  # whether memory suffices and the targets are met, shape (draws,)
    batch: Any  # sequences of an attention group, shape (draws,)
    workload: FloatArray  # results at the border of the workload, shape (results, draws)


@dataclass(frozen=True, slots=True)
class ServingQuestion:
    """Draws of a serving scenario, and the speeds at which they are evaluated."""

    drawn: Mapping[str, FloatArray]  # values of the inputs that vary, by path
    count: int  # number of draws
    # draws in which all plans are compared to find the promising ones; None where a plan is held
    pilots: Mapping[str, FloatArray] | None
    solve: bool  # whether the batch is solved for the target
    speeds: Sequence[float]  # beside the workload's own, tokens/s per user

    def part(self, draws: AnyArray) -> ServingQuestion:
        """Return the question for some of the draws."""
        drawn = {path: array[draws] for path, array in self.drawn.items()}
        return replace(self, drawn=drawn, count=len(draws))


def serve_draws(
    question: ServingQuestion,
    groups: Sequence[AnyArray],
    plan: Any,
    arithmetics: Sequence[MetricArithmetic],
    trace: Trace,
) -> list[DrawResults]:
    """Return the results of draws at the workload's own speed and at each other speed.

    Args:
        question: The draws and the speeds.
        groups: Indices of the draws of each structure.
        plan: Plan that the structure of all draws holds; None where each draw chooses.
        arithmetics: Arithmetic of the groups.
        trace: Gives the programs of the groups, where plans have to be chosen.

    """
    count, speeds = question.count, question.speeds
    results_by_speed = [
        DrawResults({}, np.empty(count, dtype=bool), np.empty(count)) for _ in (None, *speeds)
    ]
    for arithmetic in arithmetics:
        group_draws = [groups[group] for group in arithmetic.groups]
        draws = np.sort(np.concatenate(group_draws))
        part = question if len(draws) == count else question.part(draws)
        leader = arithmetics[arithmetic.leader]
        choice = ServingChoice(part, arithmetic, leader, plan, trace)
        positions = [np.searchsorted(draws, members) for members in group_draws]
        served_by_speed = choice.cached_results()
        for index, served in enumerate(served_by_speed):
            results = results_by_speed[index]
            is_own_speed = index == 0
            metrics = _metrics_of(arithmetic, part, served, positions, rate_only=not is_own_speed)
            results.meets[draws] = served.meets
            results.batch[draws] = served.batch
            scatter_into(results.metrics, metrics, draws, count)
    return results_by_speed


def _metrics_of(
    arithmetic: MetricArithmetic,
    question: ServingQuestion,
    served: ServedDraws,
    draws_by_group: Sequence[AnyArray],
    rate_only: bool,
) -> dict[str, FloatArray]:
    """Return the metrics of draws from the results of their workload, or the output rate alone."""
    border_rows = arithmetic.rate_rows if rate_only else range(len(arithmetic.border))
    border_values = {
        arithmetic.border[row]: array
        for row, array in zip(border_rows, served.workload, strict=True)
    }
    requested = arithmetic.metrics
    if rate_only:
        requested = [
            {metric: position for metric, position in positions.items() if metric == OUTPUT_RATE}
            for positions in arithmetic.metrics
        ]
    kernel = arithmetic.kernel
    kernel_values = kernel.values(question.drawn) | border_values
    return metrics_of_partitions(kernel, requested, draws_by_group, kernel_values, question.count)


class TracedChoice(NamedTuple):
    """Program in which plans are chosen, and its results."""

    compiled: CompiledStructures
    step_indices: Mapping[str, int]  # of the first group of draws
    leader_indices: Mapping[str, int]  # of the group whose pilot draws find the promising plans
    border_by_speed: list[list[int]]  # steps whose results are requested at each speed


class ServingChoice:
    """The choice of plan and batch for draws of serving, at the workload's own and other speeds.

    The choice depends on the workload alone, so draws under other prices have the same choice.

    Args:
        question: The draws and the speeds.
        arithmetic: Arithmetic of the groups of draws.
        leader: Arithmetic whose pilot draws find the promising plans.
        plan: Plan that the structure holds; None where each draw chooses.
        trace: Gives the programs of all groups.

    """

    def __init__(
        self,
        question: ServingQuestion,
        arithmetic: MetricArithmetic,
        leader: MetricArithmetic,
        plan: Any,
        trace: Trace,
    ) -> None:
        self.question = question
        self.arithmetic = arithmetic
        self.leader = leader
        self.plan = plan
        self.trace = trace

    def cached_results(self) -> list[ServedDraws]:
        """Return the results at each speed, from the disk cache where they are known.

        Draws that differ only in inputs that the workload does not read are evaluated once. The
        first draws are cached by themselves, so that a question with these alone finds them.
        """
        question = self.question
        if question.pilots is None:
            return self.results(question)
        leaves = [*self.arithmetic.leaves, *self.leader.leaves]
        read_paths = dict.fromkeys(leaf.path for leaf in leaves if leaf.path in question.drawn)
        columns = [question.drawn[path] for path in read_paths]
        first_draws, row_of_draw = distinct_draws(columns, question.count)
        results_of_all: list[ServedDraws] = []

        def serve(block: slice) -> list[ServedDraws]:
            """Serve a block of distinct draws; all of them where the first block is not cached."""
            if block.start is None:
                results_of_all.extend(self.results(question.part(first_draws)))
            if not results_of_all:
                return self.results(question.part(first_draws[block]))
            return [
                ServedDraws(*(array[..., block] for array in served)) for served in results_of_all
            ]

        blocks = []
        for block in (slice(FIRST_DRAWS), slice(FIRST_DRAWS, None)):
            if len(first_draws[block]):
                part = question.part(first_draws[block])
                blocks.append(self._from_cache(part, partial(serve, block)))
        results_by_speed = [
            _join_blocks(blocks_at_speed) for blocks_at_speed in zip(*blocks, strict=True)
        ]
        if len(first_draws) == question.count:
            return results_by_speed
        return [
            ServedDraws(
                meets=served.meets[row_of_draw],
                batch=served.batch[row_of_draw],
                workload=served.workload[:, row_of_draw],
            )
            for served in results_by_speed
        ]

    def _from_cache(
        self, question: ServingQuestion, serve: Callable[[], list[ServedDraws]]
    ) -> list[ServedDraws]:
        def make_arrays() -> list[AnyArray]:
            return [array for served in serve() for array in served]

        arrays = iter(shipped_or_cached_arrays(_code(), self._key(question), make_arrays))
        return [ServedDraws(*fields) for fields in zip(arrays, arrays, arrays, strict=True)]

    def _key(self, question: ServingQuestion) -> list[bytes]:
        """Return all that decides the results beside `CODE`: arithmetic, numbers and draws."""
        arithmetic, pilots = self.arithmetic, question.pilots or {}
        fields = arithmetic.identities, arithmetic.rate_rows, question.solve, tuple(question.speeds)
        key_parts = [repr(fields).encode(), repr(self.leader.identities).encode()]
        for leaf in sorted({*arithmetic.leaves, *self.leader.leaves}):
            key_parts.append(leaf.identity.encode())
            if leaf.path in question.drawn:
                key_parts.append(rounded_bytes(question.drawn[leaf.path]))
                key_parts.append(rounded_bytes(pilots[leaf.path]))
            else:
                key_parts.append(repr(leaf.number).encode())
        return key_parts

    @cached_property
    def traced(self) -> TracedChoice:
        """Program of the groups of draws, and the results that each speed requests."""
        traced_groups = self.trace()
        first_group = traced_groups[self.arithmetic.groups[0]]
        border = border_steps(traced_groups, self.arithmetic.groups)
        rate_border = [border[row] for row in self.arithmetic.rate_rows]
        return TracedChoice(
            compiled=first_group.compiled,
            step_indices=first_group.step_indices,
            leader_indices=traced_groups[self.leader.groups[0]].step_indices,
            border_by_speed=[border, *([rate_border] * len(self.question.speeds))],
        )

    def results(self, question: ServingQuestion) -> list[ServedDraws]:
        """Choose plan and batch of every draw, and return the results at each speed."""
        from tco.performance.serving import plan_choice_compiled
        from tco.performance.serving.draw_results import DrawBlock

        compiled, step_indices, leader_indices, border_by_speed = self.traced
        speeds = (*plan_choice_compiled.OWN_SPEED, *question.speeds)
        drawn_paths = frozenset(question.drawn)
        plans: ServingPlan = compiled.plans  # type: ignore[assignment]
        plan_rows, hints = dict[int, AnyArray](), None
        held_batch = np.nan
        if question.pilots is None:
            held_batch = self.plan.decode.sequences
        else:
            plan_rows, hints = compiled.candidates(
                drawn_paths, leader_indices, question.pilots, question.speeds
            )
            plans = plan_choice_compiled.of_rows(plans, plan_rows)
        kernel = compiled.kernel(drawn_paths, plan_rows)
        positions = kernel_positions(kernel, step_indices)
        hints = hints or compiled.base_case_hints(kernel, positions, plans, speeds)
        # A held plan under a stated load keeps its batch: nothing solves for one.
        keeps_batch = hints is None and question.pilots is None
        plan_count = len(plan_choice_compiled.decode_attention_chips(plans))
        blocks = []
        for draws in _draw_blocks(question.count, plan_count * len(speeds)):
            part = question if len(draws) == question.count else question.part(draws)
            block = DrawBlock(kernel, positions, part.drawn, part.count)
            if question.solve:
                choices = plan_choice_compiled.best_plans_per_draw(block, plans, hints, speeds)
            else:
                choice = plan_choice_compiled.fixed_choice(held_batch, part.count)
                choices = [choice] * len(speeds)
            blocks.append(
                [
                    _results_on_choice(
                        kernel, border, block, choice, held_batch if keeps_batch else None
                    )
                    for border, choice in zip(border_by_speed, choices, strict=True)
                ]
            )
        return [_join_blocks(blocks_at_speed) for blocks_at_speed in zip(*blocks, strict=True)]


@cache
def _code() -> bytes:
    package = Path(__file__).parents[1]
    return code_hash([file for pattern in CODE for file in sorted(package.glob(pattern))])


def _draw_blocks(draw_count: int, results_per_draw: int) -> list[AnyArray]:
    """Return the indices of draws in blocks whose results fit in memory."""
    draws_per_block = max(PLAN_DRAW_PAIRS // results_per_draw, 1)
    block_count = max(-(-draw_count // draws_per_block), 1)
    return np.array_split(np.arange(draw_count), block_count)


def _join_blocks(blocks: Sequence[ServedDraws]) -> ServedDraws:
    return ServedDraws(*(np.concatenate(arrays, axis=-1) for arrays in zip(*blocks, strict=True)))


def distinct_draws(columns: Sequence[FloatArray], count: int) -> tuple[AnyArray, AnyArray]:
    """Return the first draw of each distinct row of inputs, and the row of each draw.

    Args:
        columns: Arrays of shape (count,), one for each input.
        count: Number of draws.

    """
    table = np.column_stack(columns) if columns else np.zeros((count, 1))
    row_indices: dict[bytes, int] = {}
    row_of_draw = np.array(
        [row_indices.setdefault(input_row.tobytes(), len(row_indices)) for input_row in table]
    )
    return np.unique(row_of_draw, return_index=True)[1], row_of_draw


def _results_on_choice(
    kernel: ArithmeticKernel,
    border: Sequence[int],
    block: DrawBlock,
    choice: Chosen,
    kept_batch: float | None,
) -> ServedDraws:
    """Return the results at the border of the workload, on the plans and batches that draws chose.

    `kept_batch` replaces the batch of the choice in the results.
    """
    requested = [kernel.made[step] for step in border]
    batch = {kernel.inputs[BATCH_PATH]: choice.batch} if BATCH_PATH in kernel.inputs else {}
    needed = kernel.needed(requested, block.values.keys() | batch)
    known_positions = needed & block.values.keys() - batch.keys()
    kernel_values = select_values(kernel, block.values, known_positions, choice.rows) | batch
    outputs = kernel_outputs(kernel, requested, kernel_values, block.count)
    shape = block.count
    return ServedDraws(
        meets=np.broadcast_to(choice.meets, shape),
        batch=np.broadcast_to(choice.batch if kept_batch is None else kept_batch, shape),
        workload=np.array([np.broadcast_to(output, shape) for output in outputs]).reshape(
            -1, shape
        ),
    )
