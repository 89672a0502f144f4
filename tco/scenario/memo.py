"""Memoised stages of an evaluation, computed again only where something that they read changed.

Studies evaluate a scenario many times and change little in between: a price changes no plan, and a
plan changes no price. A stage reads numbers through `values` alone, so what it read is known. Its
result stays valid under three conditions:

- The documents, the texts, the readings and the explicit dependencies are equal.
- Every setting that it read is unchanged.
- No new setting replaces an input that it read.

All other inputs follow from these and the catalogue. A trace is never memoised, nor is an
evaluation of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tco.core.formula import in_use
from tco.core.inputs import Readings, Reads
from tco.core.provenance import Given, making

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tco.core.inputs import Values
    from tco.scenario.resolved import ResolvedScenario

StageValue = TypeVar("StageValue")
RESULTS_PER_STAGE = 8  # results kept of each stage of one system; the least recently used go first


class StageResult(NamedTuple):
    """Result of a stage, with all that it read."""

    dependencies: tuple[Any, ...]  # all that is compared whole, such as documents and texts
    settings: dict[str, Given]  # settings among the inputs that the stage read
    stage_value: Any
    reads: Reads
    texts: dict[str, str]  # inputs without a number that the stage read
    readings: Readings  # inputs that decided structure in the stage

    def is_valid(self, dependencies: tuple[Any, ...], settings: Mapping[str, Given]) -> bool:
        """Return whether the stage would compute the same again.

        Args:
            dependencies: Current dependencies, as `_collect_dependencies` gives them.
            settings: Current settings by input path.

        """
        unchanged_count = 0
        for path, setting in settings.items():
            if _is_read(self.reads, path):
                if self.settings.get(path) != setting:
                    return False
                unchanged_count += 1
        # The dependencies take longer to compare, so they come last.
        return unchanged_count == len(self.settings) and dependencies == self.dependencies


def stage(
    stage_name: str,
    inputs: ResolvedScenario,
    input_values: Values,
    compute: Callable[[], StageValue],
    *extra_dependencies: Any,
) -> StageValue:
    """Return `compute()`, or its earlier result if all that it read is unchanged.

    Args:
        stage_name: Name of the stage; results are kept by system and name.
        inputs: Inputs of the scenario. A reused result records its reads in them again.
        input_values: The only way by which `compute` reads numbers.
        compute: The stage.
        extra_dependencies: Other values that `compute` depends on, such as the plan.

    """
    if in_use() is not None or inputs.shape:
        return compute()
    dependencies = _collect_dependencies(inputs, extra_dependencies)
    results_by_stage: dict[str, tuple[StageResult, ...]]
    results_by_stage = inputs.system.cached_results.setdefault("stages", {})
    results = results_by_stage.get(stage_name, ())
    for result in results:
        if result.is_valid(dependencies, input_values.given):
            _record_reads(result, inputs, input_values)
            break
    else:
        result = run_stage(inputs, input_values, compute, dependencies)
    if not results or result is not results[0]:
        older_results = [candidate for candidate in results if candidate is not result]
        results_by_stage[stage_name] = (result, *older_results[: RESULTS_PER_STAGE - 1])
    stage_value: StageValue = result.stage_value
    return stage_value


def run_stage(
    inputs: ResolvedScenario,
    input_values: Values,
    compute: Callable[[], Any],
    dependencies: tuple[Any, ...],
) -> StageResult:
    """Return the result of `compute()`, with a log of what it read.

    Args:
        inputs: Inputs of the scenario.
        input_values: The only way by which `compute` reads numbers.
        compute: The stage.
        dependencies: Values that the result is kept under.

    """
    readings = inputs.readings
    earlier_readings = dict(readings)
    earlier_decisions, earlier_texts = readings.decisions, inputs.texts_used
    readings.decisions, inputs.texts_used = {}, {}
    try:
        stage_value, reads = input_values.reads_of(compute)
    finally:
        stage_decisions, stage_texts = readings.decisions, inputs.texts_used
        readings.decisions = earlier_decisions | stage_decisions
        inputs.texts_used = earlier_texts | stage_texts
    stage_readings = {
        path: reading
        for path, reading in readings.items()
        if path not in earlier_readings or reading is not earlier_readings[path]
    }
    return StageResult(
        dependencies=dependencies,
        settings={
            path: setting for path, setting in input_values.given.items() if _is_read(reads, path)
        },
        stage_value=stage_value,
        reads=reads,
        texts=stage_texts,
        readings=Readings(stage_readings, stage_decisions),
    )


def typed_key(key_value: Any) -> Hashable:
    """Return a hashable key of a value and its types.

    Equal values of different types, such as 8 and 8.0 in a plan, have different keys, as they
    print differently.
    """
    if isinstance(key_value, tuple):
        return (type(key_value), *map(typed_key, key_value))
    if isinstance(key_value, np.ndarray):
        return key_value.shape, key_value.dtype, key_value.tobytes()
    return type(key_value), key_value


def _record_reads(result: StageResult, inputs: ResolvedScenario, input_values: Values) -> None:
    input_values.take(result.reads)
    inputs.readings.take(result.readings)
    inputs.texts_used |= result.texts


def _collect_dependencies(
    inputs: ResolvedScenario, extra_dependencies: tuple[Any, ...]
) -> tuple[Any, ...]:
    readings = inputs.readings
    return (
        inputs.scenario.documents,
        inputs.scenario.rebates,
        dict(inputs.texts),
        tuple(readings.items()),
        tuple(map(type, readings.values())),
        making.get(),
        inputs.training_chips,
        typed_key(extra_dependencies),
    )


def _is_read(reads: Reads, path: str) -> bool:
    return path in reads.inputs or path in reads.looked or path in reads.derived
