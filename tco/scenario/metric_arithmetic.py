"""Arithmetic from the results of a workload to the metrics, cached by structure.

The inputs are leaves of the arithmetic, so it holds for draws of any values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tco.compile.lower import BATCH_PATH, ArithmeticKernel
from tco.core.array_cache import cached_arrays, text_array
from tco.core.types import AnyArray, JsonObject
from tco.scenario.compiled import CompiledStructures, metrics_among, targets_among
from tco.scenario.metrics import METRICS, OUTPUT_RATE


class TracedGroup(NamedTuple):
    """Program of a group of draws, and the index of the step of each result."""

    compiled: CompiledStructures
    step_indices: Mapping[str, int]


# Traces all groups of draws when it is first called.
Trace = Callable[[], Sequence[TracedGroup]]


class WorkloadLeaf(NamedTuple):
    """Input that the choice of plans and the results of the workload depend on."""

    path: str
    identity: str  # hash of its place in the arithmetic
    number: float  # value in the base case


class MetricArithmetic(NamedTuple):
    """Arithmetic of groups of draws that choose their plans together.

    The metrics take the results of the workload at its border.
    """

    groups: list[int]  # indices of the groups
    # index of the first arithmetic on the same plans, whose pilot draws find the promising plans
    leader: int
    identities: list[str]  # hashes of the steps that choose plans and that compute the border
    leaves: list[WorkloadLeaf]
    rate_rows: list[int]  # which results at the border the output rate takes
    # position in the kernel of each result at the border; -1 where no metric takes it
    border: list[int]
    metrics: list[dict[str, int]]  # by group, the position in the kernel of each metric
    kernel: ArithmeticKernel

    def to_json(self) -> JsonObject:
        """Return the arithmetic as numbers and texts."""
        return {**self._asdict(), "kernel": self.kernel.to_json()}

    @classmethod
    def from_json(cls, fields: JsonObject) -> MetricArithmetic:
        """Return the arithmetic that `to_json` gave."""
        leaves = [WorkloadLeaf(*leaf) for leaf in fields["leaves"]]
        kernel = ArithmeticKernel.from_json(fields["kernel"])
        return cls(**{**fields, "leaves": leaves, "kernel": kernel})


def cached_arithmetics(
    cache_key: Sequence[bytes], make: Callable[[], list[MetricArithmetic]]
) -> list[MetricArithmetic]:
    """Return the cached arithmetic of a question, or make and cache it."""

    def make_arrays() -> list[AnyArray]:
        return [text_array(json.dumps([arithmetic.to_json() for arithmetic in make()]))]

    (packed,) = cached_arrays(cache_key, make_arrays)
    return [MetricArithmetic.from_json(fields) for fields in json.loads(packed.tobytes())]


def metric_arithmetics(trace: Trace, drawn_paths: Sequence[str]) -> list[MetricArithmetic]:
    """Return the arithmetic of a serving workload, one for all groups on the same targets.

    Args:
        trace: Gives the traced groups.
        drawn_paths: Paths of the inputs that stay leaves.

    """
    traced_groups = trace()
    groups_by_targets: dict[tuple[int, object], list[int]] = {}
    for index, (compiled, step_indices) in enumerate(traced_groups):
        targets_key = id(compiled), tuple(sorted(targets_among(step_indices).items()))
        groups_by_targets.setdefault(targets_key, []).append(index)
    first_by_program: dict[int, int] = {}
    arithmetics = []
    for position, ((program_id, _), groups) in enumerate(groups_by_targets.items()):
        leader = first_by_program.setdefault(program_id, position)
        arithmetics.append(_arithmetic_of_groups(groups, leader, traced_groups, drawn_paths))
    return arithmetics


def stated_arithmetic(trace: Trace, drawn_paths: Sequence[str]) -> MetricArithmetic:
    """Return the arithmetic of groups of draws whose rates are stated, so that no plan is chosen.

    Args:
        trace: Gives the traced groups.
        drawn_paths: Paths of the inputs that stay leaves.

    """
    traced_groups = trace()
    metric_steps = []
    for group in traced_groups:
        steps = metrics_among(group.step_indices)
        metric_steps.append({metric: steps[metric] for metric in METRICS if metric in steps})
    program = traced_groups[0].compiled.program
    requested = {step for steps in metric_steps for step in steps.values()}
    full_kernel = ArithmeticKernel(program, drawn_paths, {}, (), requested)
    kernel, pruned_positions = full_kernel.pruned([full_kernel.made[step] for step in requested])
    return MetricArithmetic(
        groups=[*range(len(traced_groups))],
        leader=0,
        identities=[],
        leaves=[],
        rate_rows=[],
        border=[],
        metrics=[
            {metric: pruned_positions[full_kernel.made[step]] for metric, step in steps.items()}
            for steps in metric_steps
        ],
        kernel=kernel,
    )


def _arithmetic_of_groups(
    groups: list[int],
    leader: int,
    traced_groups: Sequence[TracedGroup],
    drawn_paths: Sequence[str],
) -> MetricArithmetic:
    first_group = traced_groups[groups[0]]
    program = first_group.compiled.program
    metric_steps = [metrics_among(traced_groups[group].step_indices) for group in groups]
    border = border_steps(traced_groups, groups)
    requested = {step for steps in metric_steps for step in steps.values()}
    full_kernel = ArithmeticKernel(program, drawn_paths, {}, border, requested)
    kernel, pruned_positions = full_kernel.pruned([full_kernel.made[step] for step in requested])
    target_steps = dict(sorted(targets_among(first_group.step_indices).items())).values()
    workload_steps = [*target_steps, *border]
    leaves = sorted(
        WorkloadLeaf(
            program.path_of[leaf], program.identity(leaf).hex(), program.input_number(leaf)
        )
        for leaf in program.path_of.keys() & program.dependencies(workload_steps)
        if program.path_of[leaf] != BATCH_PATH
    )
    rate_steps = {steps[OUTPUT_RATE] for steps in metric_steps if OUTPUT_RATE in steps}
    rate_border = {*program.workload_border(rate_steps, BATCH_PATH)}
    return MetricArithmetic(
        groups=groups,
        leader=leader,
        identities=[program.identity(step).hex() for step in workload_steps],
        leaves=leaves,
        rate_rows=[row for row, step in enumerate(border) if step in rate_border],
        border=[pruned_positions.get(full_kernel.made[step], -1) for step in border],
        metrics=[
            {metric: pruned_positions[full_kernel.made[step]] for metric, step in steps.items()}
            for steps in metric_steps
        ],
        kernel=kernel,
    )


def border_steps(traced_groups: Sequence[TracedGroup], groups: Sequence[int]) -> list[int]:
    """Return the steps of the workload whose results the metrics take.

    Their order depends on the arithmetic alone, so that it is the same in every process.

    Args:
        traced_groups: All groups of draws.
        groups: Indices of groups that share a program.

    """
    program = traced_groups[groups[0]].compiled.program
    metric_steps = {
        step
        for group in groups
        for step in metrics_among(traced_groups[group].step_indices).values()
    }
    return sorted(program.workload_border(metric_steps, BATCH_PATH), key=program.identity)
