"""Draws of a serving scenario: plan and batch of each draw first, then its metrics.

What the workload comes to in a draw is cached under a hash of the arithmetic, the numbers and the
draws it rests on. A price is none of these, so draws under another price have the same plans. The
arithmetic of the metrics beyond the workload is cached by structure, with inputs as leaves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.compile.execute import kernel_outputs, select_values
from tco.compile.lower import BATCH_PATH, ArithmeticKernel
from tco.core.array_cache import cached_arrays, text_array
from tco.core.shipped_arrays import code_hash, rounded_bytes, shipped_or_cached_arrays
from tco.core.types import AnyArray, FloatArray, JsonObject
from tco.scenario.compiled import (
    METRIC,
    PAIRS,
    RATE,
    DrawResults,
    Lot,
    kernel_indices,
    metrics_of_partitions,
    scatter_into,
)

if TYPE_CHECKING:
    from tco.performance.serving.draw_results import DrawBlock
    from tco.performance.serving.plan_choice_compiled import Chosen
    from tco.performance.serving.plans import ServingPlan

FIRST_DRAWS = 512  # cached by themselves: questions with more draws begin with the same
# that chooses plans and batches for an arithmetic, in the package
CODE = (
    "compile/*.py",
    "core/elementwise.py",
    "performance/serving/decode_plan_solver.py",
    "performance/serving/draw_results.py",
    "performance/serving/loaded_plans.py",
    "performance/serving/plan_choice_compiled.py",
    "performance/serving/plans.py",
    "scenario/compiled.py",
    "scenario/served_draws.py",
)
# the program of each group of draws, and the places of its results there
Trace = Callable[[], Sequence[tuple[Lot, Mapping[str, int]]]]


class MetricArithmetic(NamedTuple):
    """Arithmetic from the workload to the metrics, for groups that choose plans together."""

    groups: list[int]  # places of the groups among those of the question
    # place of the first arithmetic on the same plans, whose pilot draws tell the promising ones
    leader: int
    identities: list[str]  # of the steps that the choice and the results of the workload are
    # inputs that these rest on: path, identity and number
    leaves: list[tuple[str, str, float]]
    rate_rows: list[int]  # which results of the workload the rate takes
    border: list[int]  # place of each result of the workload in the kernel; below zero without one
    metrics: list[dict[str, int]]  # place of each metric in the kernel, by group
    kernel: ArithmeticKernel

    def to_json(self) -> JsonObject:
        """Return the arithmetic as numbers and texts."""
        return {**self._asdict(), "kernel": self.kernel.to_json()}

    @classmethod
    def from_json(cls, fields: JsonObject) -> MetricArithmetic:
        """Return the arithmetic that `to_json` gave."""
        leaves = [(path, identity, number) for path, identity, number in fields["leaves"]]
        kernel = ArithmeticKernel.from_json(fields["kernel"])
        return cls(**{**fields, "leaves": leaves, "kernel": kernel})


class ServedDraws(NamedTuple):
    """Results of the workload on the plan and batch that draws chose.

    `workload` holds a row for each result of the workload, shape (results, draws).
    """

    meets: Any
    batch: Any
    workload: FloatArray


@dataclass(frozen=True, slots=True)
class ServingQuestion:
    """Draws of a serving scenario, and the speeds at which they are evaluated."""

    drawn: Mapping[str, FloatArray]  # values of the inputs that vary, by path
    count: int  # of the draws
    # draws that tell which plans can be the best; None where a plan is held
    pilots: Mapping[str, FloatArray] | None
    solve: bool  # whether the batch is solved for the target
    speeds: Sequence[float]  # beside the workload's own, tokens/s per user

    def part(self, which: AnyArray) -> ServingQuestion:
        """Return the question for some of the draws."""
        drawn = {path: array[which] for path, array in self.drawn.items()}
        return replace(self, drawn=drawn, count=len(which))


def serve_draws(
    question: ServingQuestion,
    groups: Sequence[AnyArray],
    plan: Any,
    arithmetics: Sequence[MetricArithmetic],
    trace: Trace,
) -> list[DrawResults]:
    """Return the results of draws at the workload's own and at other speeds.

    Args:
        question: The draws and the speeds.
        groups: Places of the draws of each structure.
        plan: Plan that the structure of all draws holds; None where each draw chooses.
        arithmetics: Arithmetic of the groups.
        trace: Gives the programs of the groups, where plans have to be chosen.

    """
    count, speeds = question.count, question.speeds
    speed_results = [
        DrawResults({}, np.empty(count, dtype=bool), np.empty(count)) for _ in (None, *speeds)
    ]
    for arithmetic in arithmetics:
        parts = [groups[index] for index in arithmetic.groups]
        which = np.sort(np.concatenate(parts))
        selected = question if len(which) == count else question.part(which)
        choices = ServingChoice(
            selected, arithmetic, arithmetics[arithmetic.leader], plan, trace
        ).cached()
        draws = [_positions_in(which, part) for part in parts]
        for index, (speed_result, choice) in enumerate(zip(speed_results, choices, strict=True)):
            metrics = _metrics_of(arithmetic, selected, choice, draws, RATE if index else "")
            speed_result.meets[which], speed_result.batch[which] = choice.meets, choice.batch
            scatter_into(speed_result.metrics, metrics, which, count)
    return speed_results


def _positions_in(which: AnyArray, draws: AnyArray) -> AnyArray:
    members = draws[(draws >= which[0]) & (draws <= which[-1])]
    positions: AnyArray = np.searchsorted(which, members)
    return positions


def _metrics_of(
    arithmetic: MetricArithmetic,
    selected: ServingQuestion,
    choice: ServedDraws,
    draws: Sequence[AnyArray],
    only: str,
) -> dict[str, FloatArray]:
    """Return the metrics of draws from what their workload comes to, or one metric `only`."""
    kernel, count = arithmetic.kernel, selected.count
    border_rows = arithmetic.rate_rows if only else range(len(arithmetic.border))
    kernel_values = kernel.values(selected.drawn) | {
        arithmetic.border[border_row]: array
        for border_row, array in zip(border_rows, choice.workload, strict=True)
    }
    requested = [
        {
            metric_name: position
            for metric_name, position in positions.items()
            if not only or metric_name == only
        }
        for positions in arithmetic.metrics
    ]
    return metrics_of_partitions(kernel, requested, draws, kernel_values, count)


# ---------------------------------------------------------------- arithmetic of the metrics
def metric_arithmetics(trace: Trace, drawn: Sequence[str]) -> list[MetricArithmetic]:
    """Return the arithmetic of groups of draws, those together whose plans are chosen together."""
    traced = trace()
    alike: dict[Any, list[int]] = {}
    for index, (lot, step_names) in enumerate(traced):
        choice_key = id(lot), tuple(sorted(_targets(step_names).items()))
        alike.setdefault(choice_key, []).append(index)
    first: dict[int, int] = {}
    leaders = [first.setdefault(lot, position) for position, (lot, _) in enumerate(alike)]
    return [
        _arithmetic_of(indices, leader, traced, drawn)
        for indices, leader in zip(alike.values(), leaders, strict=True)
    ]


def _arithmetic_of(
    indices: list[int],
    leader: int,
    traced: Sequence[tuple[Lot, Mapping[str, int]]],
    drawn: Sequence[str],
) -> MetricArithmetic:
    program = traced[indices[0]][0].program
    metrics = [_metric_places(traced[index][1]) for index in indices]
    border = _border(traced, indices)
    requested = {position for positions in metrics for position in positions.values()}
    full = ArithmeticKernel(program, drawn, {}, border, requested)
    kernel, place_of = full.pruned([full.made[position] for position in requested])
    steps = [*dict(sorted(_targets(traced[indices[0]][1]).items())).values(), *border]
    leaves = sorted(
        (program.path_of[leaf], program.identity(leaf).hex(), program.input_number(leaf))
        for leaf in program.path_of.keys() & program.dependencies(steps)
        if program.path_of[leaf] != BATCH_PATH
    )
    rates = {positions[RATE] for positions in metrics if RATE in positions}
    rate_border = {*program.workload_border(rates, BATCH_PATH)}
    return MetricArithmetic(
        indices,
        leader,
        [program.identity(step).hex() for step in steps],
        leaves,
        [border_row for border_row, position in enumerate(border) if position in rate_border],
        [place_of.get(full.made[position], -1) for position in border],
        [
            {
                metric_name: place_of[full.made[position]]
                for metric_name, position in positions.items()
            }
            for positions in metrics
        ],
        kernel,
    )


def _targets(step_names: Mapping[str, int]) -> dict[str, int]:
    return {
        step_name: position
        for step_name, position in step_names.items()
        if not step_name.startswith(METRIC)
    }


def _metric_places(step_names: Mapping[str, int]) -> dict[str, int]:
    return {
        step_name.removeprefix(METRIC): position
        for step_name, position in step_names.items()
        if step_name.startswith(METRIC)
    }


def _border(traced: Sequence[tuple[Lot, Mapping[str, int]]], indices: Sequence[int]) -> list[int]:
    """Return the places of the workload's results that metrics take, in an order of their own."""
    program = traced[indices[0]][0].program
    positions = {
        position for index in indices for position in _metric_places(traced[index][1]).values()
    }
    return sorted(program.workload_border(positions, BATCH_PATH), key=program.identity)


def cached_arithmetics(
    cache_key: Sequence[bytes], make: Callable[[], list[MetricArithmetic]]
) -> list[MetricArithmetic]:
    """Return the cached arithmetic of a question, or make and cache it."""

    def make_arrays() -> list[AnyArray]:
        return [text_array(json.dumps([arithmetic.to_json() for arithmetic in make()]))]

    (packed,) = cached_arrays(cache_key, make_arrays)
    return [MetricArithmetic.from_json(fields) for fields in json.loads(packed.tobytes())]


# ---------------------------------------------------------------- plan and batch of draws
class ServingChoice:
    """The choice of plan and batch for draws of serving, at the workload's own and other speeds.

    It rests on the workload alone, so that draws under other prices have the same choice.

    Args:
        question: The draws and the speeds.
        arithmetic: Arithmetic of the groups of draws.
        leader: Arithmetic whose pilot draws tell the promising plans.
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
        self.question, self.arithmetic, self.leader = question, arithmetic, leader
        self.plan, self.trace = plan, trace

    def cached(self) -> list[ServedDraws]:
        """Return the results at each speed, from the disk cache where they are known.

        Draws that differ only in inputs the workload does not read are looked at once. The first
        draws are cached by themselves, so that a question with these alone has them.
        """
        if self.question.pilots is None:
            return self.served(self.question)
        question, drawn = self.question, self.question.drawn
        leaves = [*self.arithmetic.leaves, *self.leader.leaves]
        read = dict.fromkeys(path for path, _, _ in leaves if path in drawn)
        first, position = distinct_draws([drawn[path] for path in read], question.count)
        served_together: list[ServedDraws] = []

        def serve(block: slice) -> list[ServedDraws]:
            """Serve a block of draws; all at once where the first are not known."""
            if not block.start:
                served_together.extend(self.served(question.part(first)))
            if not served_together:
                return self.served(question.part(first[block]))
            return [
                ServedDraws(*(array[..., block] for array in served)) for served in served_together
            ]

        parts = [
            self._cached(question.part(first[block]), partial(serve, block))
            for block in (slice(FIRST_DRAWS), slice(FIRST_DRAWS, None))
            if len(first[block])
        ]
        speed_draws = [_joined(same) for same in zip(*parts, strict=True)]
        if len(first) == question.count:
            return speed_draws
        return [
            ServedDraws(
                served.meets[position], served.batch[position], served.workload[:, position]
            )
            for served in speed_draws
        ]

    def _cached(
        self, selected: ServingQuestion, serve: Callable[[], list[ServedDraws]]
    ) -> list[ServedDraws]:
        def make_arrays() -> list[AnyArray]:
            return [array for served in serve() for array in served]

        arrays = iter(shipped_or_cached_arrays(_code(), self._key(selected), make_arrays))
        return [ServedDraws(*fields) for fields in zip(arrays, arrays, arrays, strict=True)]

    def _key(self, selected: ServingQuestion) -> list[bytes]:
        """Return all that the choice rests on beside `CODE`: arithmetic, numbers and draws."""
        arithmetic, pilots = self.arithmetic, selected.pilots or {}
        fields = arithmetic.identities, arithmetic.rate_rows, selected.solve, tuple(selected.speeds)
        choice_key = [repr(fields).encode(), repr(self.leader.identities).encode()]
        for path, identity, number in sorted({*arithmetic.leaves, *self.leader.leaves}):
            choice_key.append(identity.encode())
            if path in selected.drawn:
                choice_key += [rounded_bytes(selected.drawn[path]), rounded_bytes(pilots[path])]
            else:
                choice_key.append(repr(number).encode())
        return choice_key

    @cached_property
    def traced(self) -> tuple[Lot, Mapping[str, int], Mapping[str, int], list[list[int]]]:
        """Program, names of the first group and of the leader, and the results wanted by speed."""
        traced, indices = self.trace(), self.arithmetic.groups
        lot, step_names = traced[indices[0]]
        leading = traced[self.leader.groups[0]][1]
        border = _border(traced, indices)
        at_rate = [border[border_row] for border_row in self.arithmetic.rate_rows]
        return lot, step_names, leading, [border, *([at_rate] * len(self.question.speeds))]

    def served(self, selected: ServingQuestion) -> list[ServedDraws]:
        """Choose plan and batch of every draw, and return the results at each speed."""
        from tco.performance.serving import plan_choice_compiled
        from tco.performance.serving.draw_results import DrawBlock

        lot, step_names, leading, borders = self.traced
        every_speed = (*plan_choice_compiled.OWN_SPEED, *selected.speeds)
        plans: ServingPlan = lot.plans  # type: ignore[assignment]
        plan_rows, hints = dict[int, FloatArray](), None
        paths = frozenset(selected.drawn)
        if selected.pilots is not None:
            plan_rows, hints = lot.promising(paths, leading, selected.pilots, selected.speeds)
            plans = plan_choice_compiled.of_rows(plans, plan_rows)
        kernel = lot.kernel(paths, plan_rows)
        positions = kernel_indices(kernel, step_names)
        held_batch = np.nan if selected.pilots is not None else self.plan.decode.sequences
        begin = hints or lot.hints(kernel, positions, plans, every_speed)
        chips = plan_choice_compiled.decode_attention_chips(plans)
        most = max(PAIRS // (len(chips) * len(every_speed)), 1)
        is_solved = begin is not None or selected.pilots is not None
        blocks = []
        for which in np.array_split(np.arange(selected.count), max(-(-selected.count // most), 1)):
            part = selected if len(which) == selected.count else selected.part(which)
            block = DrawBlock(kernel, positions, part.drawn, part.count)
            chosen = (
                plan_choice_compiled.best_plans_per_draw(block, plans, begin, every_speed)
                if selected.solve
                else [plan_choice_compiled.fixed_choice(held_batch, part.count)] * len(every_speed)
            )
            blocks.append(
                [
                    _on_choice(kernel, border, block, choice, None if is_solved else held_batch)
                    for border, choice in zip(borders, chosen, strict=True)
                ]
            )
        return [_joined(same) for same in zip(*blocks, strict=True)]


@cache
def _code() -> bytes:
    package = Path(__file__).parents[1]
    return code_hash([file for pattern in CODE for file in sorted(package.glob(pattern))])


def _joined(blocks: Sequence[ServedDraws]) -> ServedDraws:
    return ServedDraws(*(np.concatenate(arrays, axis=-1) for arrays in zip(*blocks, strict=True)))


def distinct_draws(columns: Sequence[FloatArray], count: int) -> tuple[AnyArray, AnyArray]:
    """Return the first draw of each distinct row of inputs, and each draw's place among these.

    Args:
        columns: Arrays of shape (count,), one for each input.
        count: Number of draws.

    """
    table = np.column_stack(columns) if columns else np.zeros((count, 1))
    place_of: dict[bytes, int] = {}
    positions = np.array(
        [place_of.setdefault(input_row.tobytes(), len(place_of)) for input_row in table]
    )
    return np.unique(positions, return_index=True)[1], positions


def _on_choice(
    kernel: ArithmeticKernel,
    border: Sequence[int],
    block: DrawBlock,
    choice: Chosen,
    held_batch: float | None,
) -> ServedDraws:
    """Return results of the workload on the plans and batches that draws chose."""
    requested = [kernel.made[position] for position in border]
    batch = {kernel.inputs[BATCH_PATH]: choice.batch} if BATCH_PATH in kernel.inputs else {}
    needed = kernel.needed(requested, block.values.keys() | batch)
    rests = needed & block.values.keys() - batch.keys()
    kernel_values = select_values(kernel, block.values, rests, choice.rows) | batch
    outputs = kernel_outputs(kernel, requested, kernel_values, block.count)
    shape = block.count
    return ServedDraws(
        np.broadcast_to(choice.meets, shape),
        np.broadcast_to(choice.batch if held_batch is None else held_batch, shape),
        np.array([np.broadcast_to(output, shape) for output in outputs]).reshape(-1, shape),
    )
