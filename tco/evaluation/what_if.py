"""Notes on settings without effect, and what-if checks of fixed plans.

A setting may have no effect because the answer does not read its input. The input may also be read
to check or to choose, and the choice stays. Or it enters a formula in which another side binds. A
fixed plan may no longer fit memory, meet its target, or follow the input that decided it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING

from tco.core.errors import DataError
from tco.core.inputs import Values
from tco.core.trace import Node, walk
from tco.core.types import Settings
from tco.evaluation.side_by_side import rated_by
from tco.performance.serving.record import ServingResult
from tco.scenario.choices import DOCUMENTS, TEXTS
from tco.scenario.metrics import PERFORMANCE
from tco.scenario.result import Result
from tco.scenario.workload import job_on, server_of, workload_kind

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import ScenarioFunction
    from tco.scenario.resolved import ResolvedScenario

GB = 1e9
CHIP_HOUR = "tco_usd_per_chip_hour"
UNMOVED = "does not move the base-case cost"  # what the note on a setting says
BY_MONTH = "money."  # inputs of the money by month, and of what a hall earns


def notes_on_idle_settings(
    scenario_result: Result, paths: Iterable[str], function: ScenarioFunction
) -> list[str]:
    """Return a note on each setting that is read and moves no metric.

    Args:
        scenario_result: Result of the function at its settings.
        paths: Paths of the settings that are tried.
        function: The scenario with all of its settings.

    """
    reasons = {
        path: _why_idle(path, scenario_result, function) for path in paths if path not in DOCUMENTS
    }
    return [
        f"{path} is set, but moves no metric here: {why}" for path, why in reasons.items() if why
    ]


def _why_idle(path: str, scenario_result: Result, function: ScenarioFunction) -> str:
    """Return the reason that a setting changes no metric, or empty text.

    The text is empty where the setting changes a metric, equals the value without it, or already
    has a note. It is also empty where there is no answer without the setting.
    """
    if path in TEXTS and path not in scenario_result.texts:
        return "nothing in this answer reads it"
    if any(note.startswith(f"{path} is set") for note in scenario_result.notes):
        return ""
    without = function.without(path)
    fixed = without._replace(structure=scenario_result.structure)
    try:
        if path not in TEXTS and _moves_metric(scenario_result, fixed):
            return ""
        unset = without.result({})
    except DataError:  # there is no answer without it
        return ""
    if _metrics_differ(scenario_result, unset) or _has_same_value(path, scenario_result, unset):
        return ""
    if path.startswith(BY_MONTH):
        return "the money by month and the margin of a site rest on it, no metric does"
    if path in TEXTS:
        return "it is read to choose, and the choice stays"
    return _where_effect_ends(path, function._replace(structure=scenario_result.structure), fixed)


def _has_same_value(path: str, scenario_result: Result, unset: Result) -> bool:
    """Say whether an input has its value without being set, too."""
    if path in TEXTS:
        return scenario_result.texts[path] == unset.texts.get(path)
    # a choice may read an input under one of the two only
    stated, usual = (result.inputs.get(path) for result in (scenario_result, unset))
    return stated is not None and usual is not None and _is_equal(stated.value, usual.value)


def _moves_metric(scenario_result: Result, fixed: ScenarioFunction) -> bool:
    """Say whether a metric differs without a setting; the cost is looked at before the workload."""
    costs = fixed._replace(workload=False).result({}).metrics
    return any(
        not _is_equal(cost, scenario_result.metrics[metric_name])
        for metric_name, cost in costs.items()
        if cost is not None
    ) or _metrics_differ(scenario_result, fixed.result({}))


def _metrics_differ(scenario_result: Result, reference: Result) -> bool:
    return any(
        not _is_equal(metric_value, reference.metrics[metric_name])
        for metric_name, metric_value in scenario_result.metrics.items()
    )


def _is_equal(metric_value: float | None, reference: float | None) -> bool:
    """Say whether two values of a metric are equal but for rounding."""
    if metric_value is None or reference is None:
        return metric_value == reference
    return isclose(metric_value, reference, rel_tol=1e-12)


def _where_effect_ends(path: str, function: ScenarioFunction, without: ScenarioFunction) -> str:
    """Return the cell of the trace that the effect of a setting does not pass."""
    ends = _unmoved_cells(path, function, without)
    if not ends:
        return "it is read to check or to choose, and all that is chosen stays"
    more = f", as do {len(ends) - 1} more" if len(ends) > 1 else ""
    cell = f"{ends[0].id} stays {ends[0].value:.4g} {ends[0].unit}".rstrip()
    return f"it is read but does not bind: {cell}{more}"


def _metric_nodes(function: ScenarioFunction, metric: str | None) -> list[Node]:
    """Return the trace node of a metric, or of every metric."""
    nodes = function.result({}, trace=True).nodes
    return [node for name, node in nodes.items() if metric in (None, name)]


def _unmoved_cells(
    path: str, function: ScenarioFunction, without: ScenarioFunction, metric: str | None = None
) -> list[Node]:
    """Return the cells that read what a setting moves and stay as they are.

    Args:
        path: Path of the setting.
        function: The scenario with the setting, its structure fixed.
        without: The scenario without it, on the same structure.
        metric: Metric whose cells are looked at; None takes all metrics.

    """
    nodes, nodes_without = (
        {node.id: node for node in walk(*_metric_nodes(side, metric))}
        for side in (function, without)
    )
    changed = {
        node_id
        for node_id, node in nodes.items()
        if node.path == path
        or (node_id in nodes_without and not _is_equal(node.value, nodes_without[node_id].value))
    }
    return [
        node
        for node_id, node in nodes.items()
        if node_id not in changed and any(inner.id in changed for _, inner in node.inputs)
    ]


def binding_notes(
    scenario_result: Result, paths: Iterable[str], function: ScenarioFunction
) -> list[str]:
    """Return a note on each setting that moves no cost of work, with the input that binds.

    Args:
        scenario_result: Result of the function at its settings.
        paths: Paths of the settings that are tried.
        function: The scenario with all of its settings.

    """
    metric = rated_by([scenario_result])
    if metric is None or scenario_result.costless:
        return []
    notes = []
    for path in paths:
        if path not in scenario_result.inputs or _moves_cost(
            path, metric, scenario_result, function
        ):
            continue
        fixed = function._replace(structure=scenario_result.structure)
        cells = _unmoved_cells(path, fixed, fixed.without(path), metric)
        binding = {
            node.path: node
            for cell in cells
            for _, node in cell.inputs
            if node.path not in (None, path) and _is_equal(node.value, cell.value)
        }
        for binding_path, node in binding.items():
            input_value, unit = node.stated_quantity or (node.value, node.unit)
            notes.append(f"{path} {UNMOVED}: {binding_path} {input_value:.4g} {unit} binds")
    return notes


def _moves_cost(
    path: str, metric: str, scenario_result: Result, function: ScenarioFunction
) -> bool:
    """Say whether a setting moves a cost of work, on the same plan or by another plan."""
    cost, unset = scenario_result.metrics[metric], function.without(path)
    fixed = unset._replace(structure=scenario_result.structure)
    chip_hour = scenario_result.metrics[CHIP_HOUR]
    try:
        return (
            not _is_equal(fixed._replace(workload=False).result({}).metrics[CHIP_HOUR], chip_hour)
            or not _is_equal(fixed.result({}).metrics[metric], cost)
            or not _is_equal(unset.result({}).metrics[metric], cost)
        )
    except DataError:  # there is no answer without it
        return True


# ---------------------------------------------------------------- with all decisions fixed
def result_on_fixed_structure(
    scenario_result: Result, function: ScenarioFunction, what_if: Settings, trace: bool
) -> Result:
    """Evaluate a scenario with some inputs replaced and its structure fixed.

    A plan that no longer fits memory has no performance. A note says where an input only decides
    what is fixed, or where a target is missed.

    Args:
        scenario_result: Result of the function, which gives the structure.
        function: The scenario with its settings.
        what_if: Values of the replaced inputs by path.
        trace: Whether the result keeps its formulas.

    """
    fixed = function._replace(structure=scenario_result.structure)
    inputs = fixed.inputs(what_if)
    input_values = inputs.values()
    changed = fixed.result(what_if, trace)
    if changed.plan is not None and changed.structure is not None:
        needed, usable = _needed_and_usable_memory(inputs, input_values, changed)
        if needed > usable:
            reason = (
                f"the fixed plan needs {needed / GB:.1f} GB per chip, {usable / GB:.1f} GB "
                "are usable: --set chooses another"
            )
            return replace(
                changed,
                metrics=changed.metrics | dict.fromkeys(PERFORMANCE & changed.metrics.keys()),
                notes=[*changed.notes, reason],
                serving=workload_kind(inputs).without_plan(reason),
                bounds={},
                plan=None,
                structure=changed.structure._replace(plan=None),
            )
    deciding = []
    for path, setting in what_if.items():
        unchanged = {
            setting_path: setting_value
            for setting_path, setting_value in what_if.items()
            if setting_path != path
        }
        if not _metrics_differ(changed, fixed.result(unchanged)) and _metrics_differ(
            scenario_result, function.result({path: setting})
        ):
            deciding.append(path)
    set_notes = tuple(f"{path} is set" for path in deciding)
    changed.notes = [note for note in changed.notes if not note.startswith(set_notes)]
    changed.notes += [
        f"{path} moves nothing here: it decides the plan and the fixed choices; --set "
        f"{path} chooses again"
        for path in deciding
    ]
    remaining = [path for path in what_if if path not in deciding]
    replaced = fixed._replace(settings={**function.settings, **what_if})
    changed.notes += notes_on_idle_settings(changed, remaining, replaced)
    changed.notes += _missed_targets(input_values, changed)
    return changed


def _needed_and_usable_memory(
    inputs: ResolvedScenario, input_values: Values, scenario_result: Result
) -> tuple[float, float]:
    """Return needed and usable memory of the plan, in bytes per chip."""
    if isinstance(scenario_result.serving, ServingResult):
        machine, _ = server_of(inputs, input_values)
        passes = scenario_result.serving.phases().values()
        needed = max((float(phase.memory) for phase in passes), default=0.0)
        return needed, float(machine.memory)
    from tco.performance.training.result import train  # most scenarios serve

    job, machine, formats = job_on(inputs, input_values)
    step = train(job, machine, formats, scenario_result.plan)
    return float(step.hbm_bytes_used), float(machine.memory)


def _missed_targets(input_values: Values, scenario_result: Result) -> Iterator[str]:
    """Yield the targets that a fixed plan no longer meets."""
    for metric, path, sign, unit in (
        ("tokens_per_s_per_user", "workload.interactivity", 1, "tokens/s per user"),
        ("ttft_s", "workload.ttft", -1, "s"),
    ):
        metric_value = scenario_result.metrics[metric]
        target = 0.0 if metric_value is None else float(input_values[path])
        if (
            metric_value is not None
            and target
            and sign * metric_value < sign * target * (1 - sign * 1e-6)
        ):
            yield (
                f"the fixed plan gives {metric_value:.4g} {unit} where {path} asks for "
                f"{target:.4g}: --set chooses another"
            )
