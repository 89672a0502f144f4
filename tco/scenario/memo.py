"""Stages of the chain: what one came to stands for as long as all that it read is what it was.

Studies ask for a scenario many times and change little in between: a price leaves what the chips do
as it was, a plan leaves what they cost. A stage reads quantities through `values` alone, so that
those it read are known. Which of them a scenario or a user gives may change from one answer to the
next; all others follow from the catalogue, the system, the documents and the texts. A trace, and
many values asked together, are always walked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tco.core.formula import in_use
from tco.core.inputs import Readings, Reads
from tco.core.provenance import Given, making

if TYPE_CHECKING:
    from tco.core.inputs import Values
    from tco.scenario.resolved import ResolvedScenario

T = TypeVar("T")
LAST = 8  # answers of a stage that are kept of one system


class Walked(NamedTuple):
    """Cached result of a stage, with its inputs and side effects."""

    rests: tuple[Any, ...]
    settings: dict[str, Given]  # settings among what it read
    stage_result: Any
    reads: Reads
    texts: dict[str, str]
    readings: Readings

    def holds(self, rests: tuple[Any, ...], settings: Mapping[str, Given]) -> bool:
        """Say whether the stage would give the same result under these settings.

        The settings that it read are unchanged, and no other is one that it would read.
        """
        inputs, derived, looked = self.reads
        used_settings, met = self.settings, 0
        for path, setting in settings.items():
            if path in inputs or path in looked or path in derived:
                if used_settings.get(path) != setting:
                    return False
                met += 1
        return met == len(used_settings) and rests == self.rests  # which takes longer


def exactly(hashed_value: Any) -> Any:
    """Return a hashable key that distinguishes equal values of different types.

    The printed output of such values differs, for example 8 and 8.0 in a plan.
    """
    if isinstance(hashed_value, tuple):
        return type(hashed_value), *map(exactly, hashed_value)
    return (
        (hashed_value.shape, hashed_value.dtype, hashed_value.tobytes())
        if isinstance(hashed_value, np.ndarray)
        else (type(hashed_value), hashed_value)
    )


def stage(
    stage_name: str,
    inputs: ResolvedScenario,
    input_values: Values,
    walk: Callable[[], T],
    *rests: Any,
) -> T:
    """Return `walk()`, or its cached result if all inputs are unchanged.

    `rests` holds the further values on which the result depends.
    """
    if in_use() is not None or inputs.shape:
        return walk()
    before = inputs.readings
    decided = tuple(before.items()), tuple(map(type, before.values()))
    rested = (
        inputs.scenario.documents,
        inputs.scenario.rebates,
        dict(inputs.texts),
        decided,
        making.get(),
        inputs.taken,
        exactly(rests),
    )
    walks_by_stage: dict[str, tuple[Walked, ...]] = inputs.system.cached_results.setdefault(
        "stages", {}
    )
    last = walks_by_stage.get(stage_name, ())
    current_walk = next(
        (cached for cached in last if cached.holds(rested, input_values.given)), None
    )
    if current_walk is None:
        current_walk = run_stage(inputs, input_values, walk, rested)
    else:
        input_values.take(current_walk.reads)
        before.take(current_walk.readings)
        inputs.texts_used |= current_walk.texts
    if not last or current_walk is not last[0]:
        walks_by_stage[stage_name] = (
            current_walk,
            *[cached for cached in last if cached is not current_walk][: LAST - 1],
        )
    stage_result: T = current_walk.stage_result
    return stage_result


def run_stage(
    inputs: ResolvedScenario, input_values: Values, walk: Callable[[], Any], rests: tuple[Any, ...]
) -> Walked:
    """Walk a stage, and note what it read."""
    live_readings = inputs.readings
    before = dict(inputs.readings)
    decisions = inputs.readings.decisions
    texts = inputs.texts_used
    live_readings.decisions, inputs.texts_used = {}, {}
    try:
        stage_result, reads = input_values.reads_of(walk)
    finally:
        decided, used = live_readings.decisions, inputs.texts_used
        live_readings.decisions, inputs.texts_used = decisions | decided, texts | used
    used_settings = {
        path: setting
        for path, setting in input_values.given.items()
        if path in reads.inputs or path in reads.looked or path in reads.derived
    }
    readings = {
        path: reading
        for path, reading in live_readings.items()
        if path not in before or reading is not before[path]
    }
    return Walked(rests, used_settings, stage_result, reads, used, Readings(readings, decided))
