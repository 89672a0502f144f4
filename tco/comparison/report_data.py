"""Material of a report: compared scenarios and every study that succeeds.

`material_of` makes it. A study that cannot be made leaves a note with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log
from pathlib import Path
from typing import NamedTuple, TypeVar

from tco.catalog import Catalogue
from tco.catalog.system_tree import System
from tco.comparison.confidence import confidence_of
from tco.comparison.frontier import frontier_of, mark_cheapest, pool_of
from tco.comparison.frontier_records import Frontier
from tco.comparison.maps import Map, field_of
from tco.comparison.records import Confidence, Sureness
from tco.core.errors import DataError
from tco.core.progress import with_progress
from tco.core.types import TextMapping
from tco.evaluation.evaluation import catalogue_of, evaluate_each
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import compare_results, rated_by
from tco.fabric.topology import FabricScope, fabric_scopes
from tco.sampling.sensitivity import Sensitivity, sensitivity
from tco.scenario.metrics import PRICED
from tco.scenario.resolve import system_inputs
from tco.scenario.result import Result

T = TypeVar("T")
RATIO = "perf_per_tco_vs_baseline"
# metrics that scenarios are ranked by: the first that has a value counts
COSTS = (*PRICED, "tco_usd_per_chip_hour")


class Fabric(NamedTuple):
    """A system's scale-up fabric."""

    system: System
    scopes: Sequence[FabricScope]


class Material(NamedTuple):
    """All that a report tells of."""

    catalogue: Catalogue
    evaluations: Sequence[Evaluation]  # each compared with the baseline
    baseline: str
    confidence: Confidence
    tornados: Sequence[Sensitivity]
    frontiers: Sequence[Frontier]
    fabrics: Sequence[Fabric]
    # cheapest scenario over the two inputs that move the closest contest with the baseline most
    field: Map | None
    notes: Sequence[str]  # what could not be made, and why

    @property
    def results(self) -> list[Result]:
        """The results of the scenarios, in their order."""
        return [evaluation.result for evaluation in self.evaluations]

    @property
    def sure(self) -> Sequence[Sureness]:
        """Confidence in the comparison of every scenario with the baseline."""
        return self.confidence.sure


def material_of(
    scenario_names: Sequence[str],
    baseline: str | None,
    data_folder: Path | None,
    settings: TextMapping,
) -> Material:
    """Evaluate scenarios with their traces and make every possible study.

    Args:
        scenario_names: Ids and files of scenarios.
        baseline: Scenario that the others are compared with; None takes the usual baseline.
        data_folder: Folder of the option `--data`; None without.
        settings: Values by input path.

    Returns:
        Evaluations and studies of a report, with notes on the studies that cannot be made.

    Raises:
        DataError: A saved result holds no formulas, or the baseline is not among the scenarios.

    """
    evaluations = evaluate_each(scenario_names, data_folder, settings, refuse=False, trace=True)
    _refuse_saved_results(evaluations)
    base, scenario_results = compare_results(
        [evaluation.result for evaluation in evaluations], baseline
    )
    evaluations = [
        evaluation._replace(result=scenario_result)
        for evaluation, scenario_result in zip(evaluations, scenario_results, strict=True)
    ]
    notes: list[str] = []
    tornados = _make_tornados(evaluations, base, data_folder, notes)
    serving = [
        evaluation
        for evaluation in evaluations
        if evaluation.result.texts["workload.kind"] == "serving"
    ]
    frontiers = _evaluation_frontiers(serving, notes)
    fabrics = _fabrics_of(evaluations, notes)
    field = _field_between(evaluations, tornados, data_folder, settings, notes)
    return Material(
        catalogue_of(evaluations, data_folder),
        evaluations,
        base,
        confidence_of(evaluations, base),
        tornados,
        frontiers,
        fabrics,
        field,
        notes,
    )


def _refuse_saved_results(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        if not evaluation.result.nodes:
            raise DataError(
                f"{evaluation.result.scenario}: a saved result holds no formulas, a report needs "
                "its scenario"
            )


def _study_or_note(
    make: Callable[[], T], evaluation: Evaluation, what: str, notes: list[str]
) -> T | None:
    """Return a study of a scenario, or a note why there is none."""
    try:
        return make()
    except DataError as error:
        notes.append(f"{evaluation.result.scenario}: no {what}, {error}")
        return None


def _fabrics_of(evaluations: Sequence[Evaluation], notes: list[str]) -> list[Fabric]:
    """Return the fabric of each system and variant; a system without one adds a note."""
    # the last scenario of each system and variant
    by_system = {
        (evaluation.result.system, str(variant_of(evaluation))): evaluation
        for evaluation in evaluations
    }
    fabrics = []
    for evaluation in by_system.values():
        fabric = _study_or_note(partial(fabric_of, evaluation), evaluation, "fabric", notes)
        if fabric is not None:
            fabrics.append(fabric)
    return fabrics


def _make_tornados(
    evaluations: Sequence[Evaluation], baseline: str, data_folder: Path | None, notes: list[str]
) -> list[Sensitivity]:
    """Return a tornado per scenario; a scenario without one adds a note."""
    tornados = []
    for evaluation in with_progress(
        evaluations, lambda side: f"moving each input of {side.name} to its ends"
    ):
        make = partial(_tornado_of, evaluation, evaluations, baseline, data_folder)
        tornado = _study_or_note(make, evaluation, "tornado", notes)
        if tornado is not None:
            tornados.append(tornado)
    return tornados


def _tornado_of(
    evaluation: Evaluation,
    evaluations: Sequence[Evaluation],
    baseline: str,
    data_folder: Path | None,
) -> Sensitivity:
    """Return the sensitivity analysis of a scenario against the baseline.

    The metric is the ratio to the baseline. For the baseline itself, or without a ratio, the metric
    is the cost. A cost without a value raises `DataError`.
    """
    base = next(candidate for candidate in evaluations if candidate.result.scenario == baseline)
    if evaluation is not base and evaluation.result.metrics[RATIO] is not None:
        return sensitivity(
            evaluation.name, RATIO, data_folder, evaluation.settings, baseline=base.name
        )
    metrics = evaluation.result.metrics
    priced = [metric for metric in COSTS if metrics[metric] is not None]
    metric = priced[0] if priced else COSTS[-1]
    tornado = sensitivity(evaluation.name, metric, data_folder, evaluation.settings)
    if tornado.centre is None:
        tornado.sides[0].metric(metric)  # raises the error that says why it has no value
    return tornado


def _field_between(
    evaluations: Sequence[Evaluation],
    tornados: Sequence[Sensitivity],
    data_folder: Path | None,
    settings: TextMapping,
    notes: list[str],
) -> Map | None:
    """Return the map of the cheapest scenario over two inputs.

    The inputs are the two that move the closest contest with the baseline most. In the closest
    contest the ratio is nearest to 1. The result is None without a contest, or where fewer than
    two inputs move it.
    """
    log_ratios = {
        tornado_index: abs(log(tornado.centre))
        for tornado_index, tornado in enumerate(tornados)
        if tornado.metric == RATIO and tornado.centre
    }
    if not log_ratios:
        return None
    closest = tornados[min(log_ratios, key=log_ratios.__getitem__)]
    ranges = [
        swing.input_record
        for swing in closest.swings
        if swing.swing != 0
        and not any(side.decides_structure(swing.input_record.path) for side in closest.sides)
    ][:2]
    if len(ranges) < 2:
        return None
    ends = [
        (
            f"{swing_input.low!r} {swing_input.unit}".rstrip(),
            f"{swing_input.high!r} {swing_input.unit}".rstrip(),
        )
        for swing_input in ranges
    ]
    cost = rated_by([evaluation.result for evaluation in evaluations])
    if cost is None:
        return None
    rated = [
        evaluation for evaluation in evaluations if evaluation.result.metrics[cost] is not None
    ]
    make = partial(
        field_of,
        [evaluation.name for evaluation in rated],
        [swing_input.path for swing_input in ranges],
        cost,
        ends,
        data_folder,
        settings,
    )
    return _study_or_note(make, rated[0], "map", notes)


def _evaluation_frontiers(evaluations: Sequence[Evaluation], notes: list[str]) -> list[Frontier]:
    """Return the frontiers of cost against interactivity, per system.

    The frontiers are compared with each other. A system without a frontier adds a note.
    """
    frontiers = []
    for evaluation in evaluations:
        pool = _study_or_note(
            partial(pool_of, evaluation.catalogue, evaluation.name, evaluation.settings),
            evaluation,
            "frontier",
            notes,
        )
        if pool is not None:
            frontier = frontier_of(pool, pool, False)
            frontiers.append(frontier)
            if frontier.reason:
                notes.append(f"{evaluation.name}: no frontier, {frontier.reason}")
    mark_cheapest(frontiers)
    return frontiers


def variant_of(evaluation: Evaluation) -> TextMapping:
    """Return the variants of a scenario's system.

    Args:
        evaluation: Evaluation of the scenario.

    Returns:
        Variants by key; empty where the result has no structure.

    """
    return evaluation.result.structure.variant if evaluation.result.structure else {}


def fabric_of(evaluation: Evaluation) -> Fabric | None:
    """Return the fabric of a scenario's system; a chip alone has none."""
    if evaluation.result.bill is None:
        return None
    inputs = system_inputs(
        evaluation.catalogue, evaluation.result.system, evaluation.settings, variant_of(evaluation)
    )
    return Fabric(inputs.system, fabric_scopes(inputs.system, inputs.values()))
