"""Material of a report: compared scenarios and every study that succeeds.

`material_of` makes it. A study that cannot be made leaves a note with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from tco.core.progress import stepped
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
COSTS = (*PRICED, "tco_usd_per_chip_hour")  # what scenarios are ranked by: the first they have


class Fabric(NamedTuple):
    """A system's scale-up fabric."""

    system: System
    scopes: Sequence[FabricScope]


class Material(NamedTuple):
    """All that a report tells of."""

    catalogue: Catalogue
    asked: Sequence[Evaluation]  # each held against the baseline
    baseline: str
    confidence: Confidence
    tornados: Sequence[Sensitivity]
    frontiers: Sequence[Frontier]
    fabrics: Sequence[Fabric]
    field: Map | None  # who is best wherever the two inputs may lie that decide the closest contest
    notes: Sequence[str]  # what could not be made, and why

    @property
    def results(self) -> list[Result]:
        """The results of the scenarios, in their order."""
        return [one.result for one in self.asked]

    @property
    def sure(self) -> Sequence[Sureness]:
        """Confidence in the comparison of every scenario with the baseline."""
        return self.confidence.sure


def material_of(
    names: Sequence[str], baseline: str | None, data: Path | None, settings: Mapping[str, str]
) -> Material:
    """Evaluate scenarios with their traces and make every possible study.

    Args:
        names: Ids and files of scenarios.
        baseline: Scenario that the other scenarios are held against; None takes the usual baseline.
        data: Folder of the option `--data`; None without.
        settings: Values by input path.

    Returns:
        Evaluations and studies of a report, with notes on the studies that cannot be made.

    Raises:
        DataError: A saved result holds no formulas, or the baseline is not among the scenarios.

    """
    asked = evaluate_each(names, data, settings, refuse=False, trace=True)
    for one in asked:
        if not one.result.nodes:
            raise DataError(
                f"{one.result.scenario}: a saved result holds no formulas, a report needs its "
                "scenario"
            )
    base, results = compare_results([one.result for one in asked], baseline)
    asked = [one._replace(result=result) for one, result in zip(asked, results, strict=True)]
    notes: list[str] = []
    tornados = [
        tornado
        for one in stepped(asked, lambda side: f"moving each input of {side.name} to its ends")
        if (
            tornado := _study_or_note(
                partial(_tornado_of, one, asked, base, data), one, "tornado", notes
            )
        )
    ]
    frontiers = _evaluation_frontiers(
        [one for one in asked if one.result.texts["workload.kind"] == "serving"], notes
    )
    fabrics = {(one.result.system, str(variant_of(one))): one for one in asked}
    scopes = [
        found
        for one in fabrics.values()
        if (found := _study_or_note(partial(fabric_of, one), one, "fabric", notes))
    ]
    field = _field_between(asked, tornados, data, settings, notes)
    return Material(
        catalogue_of(asked, data),
        asked,
        base,
        confidence_of(asked, base),
        tornados,
        frontiers,
        scopes,
        field,
        notes,
    )


def _study_or_note(
    make: Callable[[], T], asked: Evaluation, what: str, notes: list[str]
) -> T | None:
    """Return a study of a scenario, or a note why there is none."""
    try:
        return make()
    except DataError as error:
        notes.append(f"{asked.result.scenario}: no {what}, {error}")
        return None


def _tornado_of(
    one: Evaluation, asked: Sequence[Evaluation], baseline: str, data: Path | None
) -> Sensitivity:
    """Return the sensitivity analysis of a scenario against the baseline.

    The metric is the ratio to the baseline. For the baseline itself, or without a ratio, the metric
    is the cost.
    """
    base = next(each for each in asked if each.result.scenario == baseline)
    if one is not base and one.result.metrics[RATIO] is not None:
        return sensitivity(one.name, RATIO, data, one.settings, baseline=base.name)
    metric = next((name for name in COSTS if one.result.metrics[name] is not None), COSTS[-1])
    found = sensitivity(one.name, metric, data, one.settings)
    if found.centre is None:  # a tornado stands about a middle
        found.sides[0].metric(metric)
    return found


def _field_between(
    asked: Sequence[Evaluation],
    tornados: Sequence[Sensitivity],
    data: Path | None,
    settings: Mapping[str, str],
    notes: list[str],
) -> Map | None:
    """Return the map of the best scenario over two inputs.

    The inputs are the two that move the closest contest with the baseline most. The result is None
    without a contest, or where fewer than two inputs move it.
    """
    contests = [
        (abs(log(one.centre)), place)
        for place, one in enumerate(tornados)
        if one.metric == RATIO and one.centre
    ]
    if not contests:
        return None
    closest = tornados[min(contests)[1]]
    ranges = [
        swing.given
        for swing in closest.swings
        if swing.swing != 0
        and not any(side.decides_structure(swing.given.path) for side in closest.sides)
    ][:2]
    if len(ranges) < 2:
        return None
    ends = [
        (f"{given.low!r} {given.unit}".rstrip(), f"{given.high!r} {given.unit}".rstrip())
        for given in ranges
    ]
    cost = rated_by([evaluation.result for evaluation in asked])
    if cost is None:
        return None
    rated = [evaluation for evaluation in asked if evaluation.result.metrics[cost] is not None]
    make = partial(
        field_of,
        [evaluation.name for evaluation in rated],
        [given.path for given in ranges],
        cost,
        ends,
        data,
        settings,
    )
    return _study_or_note(make, rated[0], "map", notes)


def _evaluation_frontiers(asked: Sequence[Evaluation], notes: list[str]) -> list[Frontier]:
    """Return the frontiers of cost against interactivity, per system.

    The frontiers are compared with each other. A system without a frontier adds a note.
    """
    found = []
    for one in asked:
        pool = _study_or_note(
            partial(pool_of, one.catalogue, one.name, one.settings), one, "frontier", notes
        )
        if pool is not None:
            found.append(frontier_of(pool, pool, False))
            notes += [f"{one.name}: no frontier, {found[-1].reason}"] if found[-1].reason else []
    mark_cheapest(found)
    return found


def variant_of(one: Evaluation) -> Mapping[str, str]:
    """Return the variants of the system a scenario is of.

    Args:
        one: Evaluation of the scenario.

    Returns:
        Variants by key; empty where the result has no structure.

    """
    return one.result.structure.variant if one.result.structure else {}


def fabric_of(one: Evaluation) -> Fabric | None:
    """Return the fabric of the system a scenario is of; a chip alone has none."""
    if one.result.bill is None:
        return None
    inputs = system_inputs(one.catalogue, one.result.system, one.settings, variant_of(one))
    return Fabric(inputs.system, fabric_scopes(inputs.system, inputs.values()))
