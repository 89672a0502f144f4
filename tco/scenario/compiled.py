"""Compiled structures: scenarios traced once into a program, and run for any number of draws.

The structures of one scenario that have the same plans share a program. A step that they have in
common is computed once for all draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.compile.execute import best_rows, evaluate_partitions, keep_memory, kernel_outputs
from tco.compile.lower import BATCH_PATH, ArithmeticKernel
from tco.compile.program import Program
from tco.core.types import AnyArray, FloatArray, JsonMapping
from tco.performance.serving.plans import ServingPlan
from tco.scenario import candidate_plans
from tco.scenario.recording import METRIC

if TYPE_CHECKING:
    from tco.performance.serving.decode_plan_solver import Hints

FRONTIER_DRAWS = 8  # pilot draws in which loaded plans near the frontier are searched


class DrawGroup(NamedTuple):
    """Draws of one structure, and where a program has the structure's results."""

    draws: AnyArray  # indices of the draws
    step_indices: list[dict[str, int]]  # by result; an entry per training plan, else one entry


class DrawResults(NamedTuple):
    """Results of draws, each a number for all draws or an array of shape (draws,)."""

    metrics: dict[str, FloatArray]
    meets: Any  # whether memory suffices and the targets are met
    batch: Any  # sequences of an attention group; nan without one


class PlanCandidates(NamedTuple):
    """Serving plans that draws choose among."""

    rows: dict[int, AnyArray]  # rows of the plans, by axis of plans
    hints: Hints | None  # None where the load gives the batch


class CompiledStructures:
    """Structures of a scenario with the same plans, compiled into one program.

    Args:
        plans: Serving plans of the structures: the only one, or all that a draw may choose. None
            for other workloads.

    """

    def __init__(self, plans: ServingPlan | None) -> None:
        self.plans = plans
        self.program = Program()
        self._kernels: dict[Any, ArithmeticKernel] = {}
        self._candidates: dict[Any, PlanCandidates] = {}
        self._base_case_hints: dict[Any, Hints | None] = {}

    def kernel(
        self, drawn_paths: frozenset[str], plan_rows: Mapping[int, FloatArray]
    ) -> ArithmeticKernel:
        """Return the kernel of all steps recorded so far.

        Args:
            drawn_paths: Inputs that vary between draws.
            plan_rows: Rows of the plans to keep, by axis of plans; empty keeps all plans.

        """
        all_plans_key = (drawn_paths,)
        kernel_key = drawn_paths, *((axis, rows.tobytes()) for axis, rows in plan_rows.items())
        if kernel_key not in self._kernels:
            if plan_rows and all_plans_key in self._kernels:
                kernel = self.kernel(drawn_paths, {}).of_rows(plan_rows)
            else:
                kernel = ArithmeticKernel(self.program, (*drawn_paths, BATCH_PATH), plan_rows)
            self._kernels[kernel_key] = kernel
        self._kernels[kernel_key].grow()
        return self._kernels[kernel_key]

    def candidates(
        self,
        drawn_paths: frozenset[str],
        step_indices: Mapping[str, int],
        pilots: Mapping[str, FloatArray],
        speeds: Sequence[float],
    ) -> PlanCandidates:
        """Return the serving plans that can be the best in some draw, found once.

        Args:
            drawn_paths: Inputs that vary between draws.
            step_indices: Index of the step of each result.
            pilots: Pilot draws by input path, in which the plans are compared.
            speeds: Speeds beside the workload's own, tokens/s per user.

        """
        from tco.performance.serving.plan_choice_compiled import DECODE, of_rows, promising

        pilot_hash = hash(b"".join([pilot_values.tobytes() for pilot_values in pilots.values()]))
        targets = tuple(targets_among(step_indices).values())
        candidates_key = drawn_paths, pilot_hash, tuple(speeds), targets
        if candidates_key not in self._candidates:
            plans: ServingPlan = self.plans  # type: ignore[assignment]
            frontier_rows: dict[int, AnyArray] = {}
            if plans.flight is not None and len(plans.flight) > candidate_plans.MAX_LOADED_PLANS:
                plan_count = len(plans.flight)
                frontier_rows[DECODE] = self._rows_near_frontier(
                    plan_count, drawn_paths, step_indices, pilots
                )
            kernel = self.kernel(drawn_paths, frontier_rows)
            positions = kernel_positions(kernel, step_indices)
            frontier_plans = of_rows(plans, frontier_rows)
            rows, hints = promising(kernel, positions, pilots, frontier_plans, speeds)
            if frontier_rows:
                rows = {axis: frontier_rows[axis][rows[axis]] for axis in rows}
            self._candidates[candidates_key] = PlanCandidates(rows, hints)
        return self._candidates[candidates_key]

    def _rows_near_frontier(
        self,
        plan_count: int,
        drawn_paths: frozenset[str],
        step_indices: Mapping[str, int],
        pilots: Mapping[str, FloatArray],
    ) -> AnyArray:
        """Return the rows of loaded plans near the frontier in some of the pilot draws."""
        from tco.performance.serving.loaded_plans import FRONTIER, loaded_plans, near_frontier
        from tco.performance.serving.plan_choice_compiled import DECODE

        pilot_count = len(next(iter(pilots.values())))
        spacing = max(pilot_count // FRONTIER_DRAWS, 1)
        drawn = {path: pilot_values[::spacing] for path, pilot_values in pilots.items()}
        targets = targets_among(step_indices)
        block_count = -(-plan_count // candidate_plans.MAX_LOADED_PLANS)
        blocks = []
        for rows in np.array_split(np.arange(plan_count), block_count):
            kernel = ArithmeticKernel(
                self.program, (*drawn_paths, BATCH_PATH), {DECODE: rows}, (), targets.values()
            )
            positions = kernel_positions(kernel, targets)
            blocks.append(loaded_plans(kernel, positions, drawn, len(rows)))
        return near_frontier(blocks, FRONTIER)

    def base_case_hints(
        self,
        kernel: ArithmeticKernel,
        positions: Mapping[str, int],
        plans: ServingPlan,
        speeds: tuple[float | None, ...],
    ) -> Hints | None:
        """Return hints for the choice of plan in the base case, found once.

        Args:
            kernel: Kernel of `plans`.
            positions: Position in the kernel of each result.
            plans: Serving plans to choose among.
            speeds: Speeds in tokens/s per user; None for the workload's own.

        """
        from tco.performance.serving.plan_choice_compiled import batch_hints

        hints_key = id(kernel), positions.get("token"), speeds
        if hints_key not in self._base_case_hints:
            traced_numbers = {
                path: np.array([self.program.leaves[self.program.inputs[path][0]]])
                for path in kernel.inputs
                if path != BATCH_PATH
            }
            self._base_case_hints[hints_key] = batch_hints(
                kernel, positions, traced_numbers, plans, speeds
            )
        return self._base_case_hints[hints_key]

    def run_without_serving(
        self, drawn: Mapping[str, FloatArray], groups: Sequence[DrawGroup], count: int
    ) -> DrawResults:
        """Return the results of draws whose workload serves no model.

        Args:
            drawn: Values of the inputs that vary between draws, shape (count,), by path.
            groups: Draws of each structure.
            count: Number of draws.

        """
        keep_memory()
        kernel = self.kernel(frozenset(drawn), {})
        step_values = kernel.values(drawn)
        first_indices = groups[0].step_indices[0]
        if "step" not in first_indices:  # no plan trains the model, or the rates are stated
            meets: Any = "no plan" not in first_indices
            partitions = [(group.step_indices[0], group.draws) for group in groups]
        else:
            meets = np.zeros(count, dtype=bool)
            partitions = []
            for group in groups:
                plan_rows, meets[group.draws] = _best_training_plans(kernel, group, step_values)
                partitions += [
                    (group.step_indices[plan_row], group.draws[plan_rows == plan_row])
                    for plan_row in np.unique(plan_rows)
                ]
        metric_positions = [
            metrics_among(kernel_positions(kernel, step_indices)) for step_indices, _ in partitions
        ]
        metrics = metrics_of_partitions(
            kernel, metric_positions, [draws for _, draws in partitions], step_values, count
        )
        return DrawResults(metrics, meets, np.nan)


def _best_training_plans(
    kernel: ArithmeticKernel, group: DrawGroup, step_values: Mapping[int, Any]
) -> tuple[AnyArray, AnyArray]:
    """Return the row of the best plan in each draw of a group, and whether the plan fits."""
    draw_count = len(group.draws)
    group_values = {
        position: step_value[group.draws] if np.ndim(step_value) else step_value
        for position, step_value in step_values.items()
    }
    positions = [
        kernel.made[step_indices[result_name]]
        for result_name in ("step", "held", "memory")
        for step_indices in group.step_indices
    ]
    outputs = kernel_outputs(kernel, positions, group_values, draw_count)
    full_outputs = np.stack([np.broadcast_to(output, draw_count) for output in outputs])
    step_time, used_bytes, memory = full_outputs.reshape(3, len(group.step_indices), -1)
    return best_rows(
        score=1 / step_time, fallback=-used_bytes, meets=used_bytes <= memory, count=draw_count
    )


def metrics_of_partitions(
    kernel: ArithmeticKernel,
    metric_positions: Sequence[Mapping[str, int]],
    draws_by_partition: Sequence[AnyArray],
    kernel_values: Mapping[int, Any],
    count: int,
) -> dict[str, FloatArray]:
    """Return the metrics of partitions of the draws, shape (count,), nan in other draws.

    Args:
        kernel: Arithmetic of the metrics.
        metric_positions: For each partition, the position in the kernel of each metric.
        draws_by_partition: For each partition, the indices of its draws.
        kernel_values: Known values of all draws, by position.
        count: Number of all draws.

    """
    partitions = [
        ([*positions.values()], draws)
        for positions, draws in zip(metric_positions, draws_by_partition, strict=True)
    ]
    # Where failures leave no productive hour, a cost is divided by zero and becomes infinite.
    with np.errstate(divide="ignore"):
        partition_outputs = evaluate_partitions(kernel, partitions, kernel_values, count)
    metric_arrays: dict[str, FloatArray] = {}
    for positions, draws, outputs in zip(
        metric_positions, draws_by_partition, partition_outputs, strict=True
    ):
        scatter_into(metric_arrays, dict(zip(positions, outputs, strict=True)), draws, count)
    for metric, array in metric_arrays.items():
        is_infinite = np.isinf(array)
        if is_infinite.any():
            metric_arrays[metric] = np.where(is_infinite, np.nan, array)
    return metric_arrays


def scatter_into(
    arrays_by_name: dict[str, FloatArray], part: JsonMapping, draws: AnyArray, count: int
) -> None:
    """Write the numbers of some draws into arrays of all draws.

    A new array is nan in the other draws.

    Args:
        arrays_by_name: Arrays of shape (count,) by name, changed in place.
        part: Numbers of the draws by name: an array, or one number for all of them.
        draws: Indices of the draws.
        count: Number of all draws.

    """
    for name, draw_numbers in part.items():
        if len(draws) == count:
            is_array = np.shape(draw_numbers) == (count,)
            arrays_by_name[name] = draw_numbers if is_array else np.full(count, draw_numbers)
        else:
            if name not in arrays_by_name:
                arrays_by_name[name] = np.full(count, np.nan)
            arrays_by_name[name][draws] = draw_numbers


def kernel_positions(kernel: ArithmeticKernel, step_indices: Mapping[str, int]) -> dict[str, int]:
    """Return the position in a kernel of each result of its program."""
    return {name: kernel.made[step_index] for name, step_index in step_indices.items()}


def metrics_among(indices: Mapping[str, int]) -> dict[str, int]:
    """Return the steps or positions of the metrics among results, by metric."""
    return {
        name.removeprefix(METRIC): index
        for name, index in indices.items()
        if name.startswith(METRIC)
    }


def targets_among(indices: Mapping[str, int]) -> dict[str, int]:
    """Return the steps or positions of the values that targets are judged by, among results."""
    return {name: index for name, index in indices.items() if not name.startswith(METRIC)}
