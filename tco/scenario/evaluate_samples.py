"""Evaluation of a scenario for arrays of inputs: draws of ranges, or the cases of a sweep.

Every draw has its own structure and its best plan. Draws are grouped by structure, and each group
is evaluated as arrays. Under a fixed plan all draws share plan and structure. The batch of a plan
is solved for the target speed, unless the batch is fixed as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.catalog import Catalogue, load_catalogue
from tco.compile.execute import keep_memory
from tco.core.elementwise import as_array
from tco.core.formula import finite
from tco.core.memory import LazySequence
from tco.core.types import AnyArray, Settings
from tco.performance.serving.plans import ServingPlan
from tco.scenario import metrics as joined
from tco.scenario.compiled import (
    CompiledStructures,
    DrawGroup,
    DrawResults,
    metrics_of_partitions,
    scatter_into,
)
from tco.scenario.document import Scenario
from tco.scenario.draw_case import Case, case_of_settings
from tco.scenario.draw_groups import (
    Grouping,
    StructureGroup,
    draws_by_structure,
    grouping_of,
    plans_for_missed_draws,
)
from tco.scenario.metric_arithmetic import (
    MetricArithmetic,
    Trace,
    TracedGroup,
    cached_arithmetics,
    metric_arithmetics,
    stated_arithmetic,
)
from tco.scenario.metrics import METRICS, OUTPUT_RATE
from tco.scenario.pilot_draws import pilot_draws
from tco.scenario.result import Result
from tco.scenario.scenario_programs import TracedStructure, structure_in
from tco.scenario.served_draws import ServingQuestion, serve_draws
from tco.scenario.structure import Structure

COST = "usd_per_million_output_tokens"
DRAWS_PER_CALL = 2**15  # draws that a study evaluates in one call


class Draws(NamedTuple):
    """Metrics, feasibility and structure of a scenario in every draw."""

    # metrics by name: nan in a draw without the metric, None where no draw has the metric
    metrics: dict[str, AnyArray | None]
    meets: AnyArray  # whether memory suffices and the targets are met
    sequences: AnyArray | None  # batch of an attention group; None in training
    structures: Sequence[Structure]  # structures of the draws, each once
    structure_of: AnyArray  # index of each draw's structure in that list
    # draws at other speeds, by tokens/s per user; they have few of the metrics
    by_speed: Mapping[float, Draws] = {}

    def part(self, which: slice) -> Draws:
        """Return some of the draws."""
        metrics = {
            metric_name: None if array is None else array[which]
            for metric_name, array in self.metrics.items()
        }
        sequences = None if self.sequences is None else self.sequences[which]
        draws_by_speed = {speed: draws.part(which) for speed, draws in self.by_speed.items()}
        return Draws(
            metrics,
            self.meets[which],
            sequences,
            self.structures,
            self.structure_of[which],
            draws_by_speed,
        )


@finite
def evaluate_draws(
    scenario: str | Path | Scenario,
    set: Settings,  # noqa: A002 - as in `evaluate`
    *,
    structure: Structure | None = None,
    hold: bool = False,
    catalogue: Catalogue | None = None,
    variant: Mapping[str, str] | None = None,
    solve: bool = True,
    speeds: Sequence[float] = (),
) -> Draws:
    """Evaluate a scenario for arrays of inputs, all of the same length.

    Each draw has its own structure, the best plan, and the batch that meets the target. A plan that
    is quicker than a speed of `speeds` may still be the best at that speed.

    Args:
        scenario: Id, file or document of the scenario.
        set: Settings by input path. An array of shape (draws,), with its unit or alone, is drawn.
        structure: Structure of an earlier result, which all draws hold; None decides anew.
        hold: Whether all draws share the plan and the structure that the scenario has under its
            settings of one value.
        catalogue: Documents, parts and rows; None loads the default catalogue.
        variant: Variants of the system by key; they replace those of the scenario.
        solve: Whether the batch of a held plan is solved for the target. If False the plan keeps
            its batch, even if the plan then misses the target.
        speeds: Further speeds of a serving workload, in tokens/s per user. Plans and batches are
            chosen for each speed.

    Raises:
        DataError: No setting is an array, the arrays differ in length, a path or value is not
            allowed, or arithmetic has no finite result.

    """
    case = case_of_settings(catalogue or load_catalogue(), scenario, set, structure, variant)
    programs = case.programs
    centre = None if structure is not None else programs.centre
    inputs = programs.inputs(structure or structure_in(programs.centre), case.drawn)
    input_values = inputs.values()
    case.check_values(inputs, input_values)
    if hold or centre is None:
        held_structure: Structure = inputs.structure  # type: ignore[assignment]
        grouping = grouping_of([StructureGroup(np.arange(case.count), held_structure)])
        return _evaluate_groups(case, grouping, None, solve, speeds)
    grouping = draws_by_structure(case, centre, inputs, input_values)
    return _evaluate_groups(case, grouping, centre, True, speeds)


def _evaluate_groups(
    case: Case,
    grouping: Grouping,
    centre: Result | None,
    solve: bool,
    speeds: Sequence[float],
) -> Draws:
    """Return the results of groups of draws, in the order of the draws.

    `centre` is the result with every input at its value; None where plan and structure are held.
    """
    structure_of: AnyArray = np.zeros(case.count, dtype=int)
    for group_index, draws in enumerate(grouping.draws):
        structure_of[draws] = group_index
    structures: Sequence[Structure] = LazySequence(
        lambda: [group.structure for group in grouping.find()]
    )
    with case.programs.lock:
        if _has_serving_plans(case, centre, grouping):
            results_by_speed = _serving_results(case, grouping, centre, solve, speeds)
        elif case.programs.own_inputs.kind == "stated":
            results_by_speed = [_results_at_stated_rates(case, grouping, centre)]
        else:
            results, structures = _results_without_serving(case, grouping.find(), structure_of)
            results_by_speed = [results]
    base_draws, *draws_at_speeds = [
        Draws(
            metrics={metric: results.metrics.get(metric) for metric in METRICS},
            meets=results.meets,
            sequences=None if np.isnan(results.batch).all() else results.batch,
            structures=structures,
            structure_of=structure_of,
        )
        for results in results_by_speed
    ]
    for draws_at_speed in draws_at_speeds:
        draws_at_speed.metrics[COST] = _cost_at(base_draws, draws_at_speed)
    draws_by_speed = dict(zip(speeds, draws_at_speeds, strict=True))
    _take_better_plans_of_higher_speeds(draws_by_speed)
    return base_draws._replace(by_speed=draws_by_speed)


def _cost_at(base_draws: Draws, draws_at_speed: Draws) -> AnyArray | None:
    hour_cost = base_draws.metrics["tco_usd_per_used_chip_hour"]
    rate = draws_at_speed.metrics[OUTPUT_RATE]
    if hour_cost is None or rate is None:
        return None
    return as_array(joined.usd_per_million(hour_cost, rate, 1.0))


def _take_better_plans_of_higher_speeds(draws_by_speed: dict[float, Draws]) -> None:
    """Replace the results of each speed where a plan of a higher speed makes more tokens.

    A plan that reaches the higher speed reaches the lower one too.
    """
    speeds = sorted(draws_by_speed, reverse=True)
    for higher_speed, lower_speed in itertools.pairwise(speeds):
        quicker, slower = draws_by_speed[higher_speed], draws_by_speed[lower_speed]
        quicker_rate, slower_rate = quicker.metrics[OUTPUT_RATE], slower.metrics[OUTPUT_RATE]
        if quicker_rate is None or slower_rate is None:
            continue
        is_better = quicker.meets & ~(slower.meets & (slower_rate >= quicker_rate))
        for metric, quicker_values in quicker.metrics.items():
            if quicker_values is not None:
                slower.metrics[metric][is_better] = quicker_values[is_better]  # type: ignore[index]
        slower.meets[is_better] = True


def _has_serving_plans(case: Case, centre: Result | None, grouping: Grouping) -> bool:
    """Return whether draws have a serving workload with plans, searched or held."""
    if centre is not None:
        return case.programs.own_inputs.kind == "serving"
    return isinstance(grouping.find()[0].structure.plan, ServingPlan)


def _results_without_serving(
    case: Case, groups: list[StructureGroup], structure_of: AnyArray
) -> tuple[DrawResults, list[Structure]]:
    """Return the results and the structures of draws of a workload that serves no model.

    Draws that no plan of their group fits get further plans, as a group of their own.
    `structure_of` is changed to the index of their structure.
    """
    draw_results = DrawResults({}, np.zeros(case.count, dtype=bool), np.full(case.count, np.nan))
    structures = [group.structure for group in groups]
    _run_programs(case, groups, draw_results)
    for group in groups:
        missed_draws = group.draws[~draw_results.meets[group.draws]]
        plans = plans_for_missed_draws(case, group, missed_draws) if len(missed_draws) else []
        if plans:
            structure_of[missed_draws] = len(structures)
            structures.append(group.structure)
            missed_group = StructureGroup(missed_draws, group.structure, plans)
            _run_programs(case, [missed_group], draw_results)
    return draw_results, structures


def _run_programs(case: Case, groups: list[StructureGroup], draw_results: DrawResults) -> None:
    """Write the results of groups into those of all draws, a program at a time."""
    groups_by_program: dict[int, tuple[CompiledStructures, list[DrawGroup]]] = {}
    for group, traced in zip(groups, _traced_structures(case, groups), strict=True):
        compiled = traced.compiled
        _, draw_groups = groups_by_program.setdefault(id(compiled), (compiled, []))
        draw_groups.append(DrawGroup(group.draws, traced.step_indices))
    for compiled, draw_groups in groups_by_program.values():
        draws = np.sort(np.concatenate([group.draws for group in draw_groups]))
        drawn = {path: array[draws] for path, (array, _) in case.drawn.items()}
        groups_among_draws = [
            group._replace(draws=np.searchsorted(draws, group.draws)) for group in draw_groups
        ]
        results = compiled.run_without_serving(drawn, groups_among_draws, len(draws))
        draw_results.meets[draws] = results.meets
        draw_results.batch[draws] = results.batch
        scatter_into(draw_results.metrics, _known_metrics(results), draws, case.count)


def _known_metrics(draw_results: DrawResults) -> dict[str, AnyArray]:
    return {
        metric_name: metric_values
        for metric_name, metric_values in draw_results.metrics.items()
        if metric_name in METRICS
    }


def _traced_structures(case: Case, groups: Sequence[StructureGroup]) -> list[TracedStructure]:
    """Return the program of each group of draws."""
    return [
        case.programs.traced_structure(
            case.at_one_value, group.structure, frozenset(case.drawn), group.plans or None
        )
        for group in groups
    ]


def _serving_results(
    case: Case,
    grouping: Grouping,
    centre: Result | None,
    solve: bool,
    speeds: Sequence[float],
) -> list[DrawResults]:
    """Return the results of draws of a serving workload, at its own speed and at `speeds`.

    Settings of one value are drawn inputs of the arithmetic, so that its cache holds for others.
    """
    keep_memory()
    input_arrays = case.input_arrays()
    drawn_paths = sorted(input_arrays)
    trace = _traced_groups(case, grouping)
    arithmetics = _cached_arithmetics(
        case, grouping, centre, drawn_paths, lambda: metric_arithmetics(trace, drawn_paths)
    )
    pilots, plan = None, None
    if centre is None:
        plan = grouping.find()[0].structure.plan
    else:
        read_paths = {leaf.path for arithmetic in arithmetics for leaf in arithmetic.leaves}
        pilots = pilot_draws(case, centre, read_paths)
        pilot_count = len(next(iter(pilots.values())))
        for path, number in case.numbers_set.items():
            pilots[path] = np.full(pilot_count, number)
    question = ServingQuestion(input_arrays, case.count, pilots, solve, speeds)
    results_by_speed = serve_draws(question, grouping.draws, plan, arithmetics, trace)
    return [results._replace(metrics=_known_metrics(results)) for results in results_by_speed]


def _results_at_stated_rates(case: Case, grouping: Grouping, centre: Result | None) -> DrawResults:
    """Return the results of draws of a workload whose rates are stated, so that it has no plan."""
    input_arrays = case.input_arrays()
    drawn_paths = sorted(input_arrays)
    trace = _traced_groups(case, grouping)
    (arithmetic,) = _cached_arithmetics(
        case, grouping, centre, drawn_paths, lambda: [stated_arithmetic(trace, drawn_paths)]
    )
    kernel = arithmetic.kernel
    metrics = metrics_of_partitions(
        kernel, arithmetic.metrics, grouping.draws, kernel.values(input_arrays), case.count
    )
    every_draw = np.ones(case.count, dtype=bool)
    return DrawResults(metrics, every_draw, np.full(case.count, np.nan))


def _traced_groups(case: Case, grouping: Grouping) -> Trace:
    """Return a function that gives the program of each group, traced once it is called."""
    return cache(
        lambda: [
            TracedGroup(traced.compiled, traced.step_indices[0])
            for traced in _traced_structures(case, grouping.find())
        ]
    )


def _cached_arithmetics(
    case: Case,
    grouping: Grouping,
    centre: Result | None,
    drawn_paths: Sequence[str],
    make: Callable[[], list[MetricArithmetic]],
) -> list[MetricArithmetic]:
    """Return the arithmetic of the metrics, from the programs or the disk cache where known.

    The disk cache has only the arithmetic of shipped scenarios and data.
    """
    arithmetic_key = repr((case.settings_key(centre), grouping.keys, drawn_paths))
    known_arithmetics = case.programs.arithmetics
    if arithmetic_key not in known_arithmetics:
        is_cacheable = case.programs.is_shipped and centre is not None
        known_arithmetics[arithmetic_key] = (
            cached_arithmetics([arithmetic_key.encode()], make) if is_cacheable else make()
        )
    arithmetics: list[MetricArithmetic] = known_arithmetics[arithmetic_key]
    return arithmetics
