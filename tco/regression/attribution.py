"""Attribution: why a metric moved, by changing one thing at a time, all earlier changes kept.

From one state to another the earlier one is first evaluated with its own inputs by today's program:
what differs then is a formula or the tree, not an input. Then inputs change one by one, by path;
then texts, such as the model; and what is left is the system, or its variant. At each step the plan
is the best one: where another is chosen, that counts with the change that brought it. What a step
adds to a metric depends on the order, the sum of all steps does not: it is the drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tco.core.errors import TcoError
from tco.core.types import JsonMapping
from tco.regression.difference import (
    ChangeCause,
    ChangeContribution,
    StateDifference,
    compare_states,
    differs,
    value_in_unit_or_text,
)
from tco.regression.state import quantities_by_path, reevaluate_state, setting_text
from tco.scenario.metrics import perf_per_tco

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.chain import Chain
    from tco.scenario.result import Result


Evaluated = TypeVar("Evaluated", "Chain", "Result")
ROUNDING = 1e-11  # relative, of the digits that files keep
# stages of a walk between states, in their order
PROGRAM, INPUT, TEXT, SYSTEM = range(4)
FIT = "tco-calibration"  # source of fitted values
CODE = ChangeCause("code", "")  # cause that neither a fingerprint nor a quantity names


class Waypoint(NamedTuple):
    """A change on a walk, and the metrics after it, all earlier changes kept."""

    causes: tuple[ChangeCause, ...]
    # values that the change puts in place, by path
    settings: Mapping[str, str] = {}
    # stage and path, the same for a change of several scenarios
    order: tuple[int, str] = (SYSTEM, "")
    # none where the values do not go together
    metrics: Mapping[str, float | None] = {}


def attribute_change(
    waypoints: Sequence[Waypoint], metric: str, start: float, tolerance: float | None = ROUNDING
) -> tuple[ChangeContribution, ...]:
    """Attribute the change of a metric to the changes of a walk.

    A change after which the metric has no value counts with the change that follows.

    Args:
        waypoints: Changes in their order.
        metric: Name of the metric.
        start: Value before the first change.
        tolerance: Relative move that is no step; None makes every change a step.

    Returns:
        Steps from `start` to the value of the last waypoint.

    """
    steps: list[ChangeContribution] = []
    causes: tuple[ChangeCause, ...] = ()
    settings: dict[str, str] = {}
    metric_value = start
    for waypoint in waypoints:
        end = waypoint.metrics.get(metric)
        if end is not None and tolerance is not None and not differs(metric_value, end, tolerance):
            continue
        causes += waypoint.causes
        settings |= waypoint.settings
        if end is not None:
            steps.append(ChangeContribution(causes, metric_value, float(end), settings))
            causes, settings, metric_value = (), {}, float(end)
    if steps and (last_value := waypoints[-1].metrics.get(metric)) is not None:
        steps[-1] = steps[-1]._replace(end=float(last_value))
    return tuple(steps)


def evaluate_in_turn(
    changes: Iterable[Waypoint],
    settings: dict[str, str],
    evaluate: Callable[[dict[str, str]], Evaluated],
) -> Iterator[tuple[Waypoint, Evaluated | None]]:
    """Evaluate after each change, all earlier changes kept.

    Args:
        changes: Changes in their order.
        settings: Values before the first change, by path; each change is put in place here.
        evaluate: Evaluates all values by path.

    Yields:
        A change with the metrics after it, and the evaluation; None and no metrics where the values
        do not go together.

    """
    for change in changes:
        settings |= change.settings
        try:
            evaluation = evaluate(settings)
        except TcoError:
            yield change, None
        else:
            yield change._replace(metrics=evaluation.metrics), evaluation


def state_waypoints(old: JsonMapping, new: JsonMapping, catalogue: Catalogue) -> list[Waypoint]:
    """Return the walk from one state to another.

    Args:
        old: State before the changes.
        new: State after the changes.
        catalogue: Catalogue of today.

    """
    difference = compare_states(old, new)
    settings = {path: setting_text(*quantity) for path, quantity in old["inputs"].items()}
    walk = evaluate_in_turn(
        [Waypoint((), order=(PROGRAM, "")), *_setting_changes(difference, new, catalogue)],
        settings | old["texts"],
        partial(reevaluate_state, old, catalogue=catalogue),
    )
    start, today = next(walk)
    if today is None:
        # nothing of the earlier state can be evaluated any more
        causes = (*difference.inputs, *_program_causes(difference))
        return [Waypoint(causes, metrics=new["metrics"])]
    program = compare_states(old, {**new, "quantities": quantities_by_path(today.bill)})
    remainder = difference.system or difference.variant or difference.quantities or [CODE]
    return [
        start._replace(causes=_program_causes(program)),
        *(waypoint for waypoint, _ in walk),
        Waypoint(tuple(remainder), metrics=new["metrics"]),
    ]


def _setting_changes(
    difference: StateDifference, new: JsonMapping, catalogue: Catalogue
) -> Iterator[Waypoint]:
    for cause in difference.inputs:
        # an input of one side only may belong to one of two systems
        if cause.new is not None and not (difference.system and cause.old is None):
            input_text = setting_text(*new["inputs"][cause.path])
            causes = (_attribute_cause_to_fit(cause, catalogue),)
            yield Waypoint(causes, {cause.path: input_text}, (INPUT, cause.path))
    for cause in difference.texts:
        if cause.new is not None:
            yield Waypoint((cause,), {cause.path: str(cause.new)}, (TEXT, cause.path))


def _attribute_cause_to_fit(cause: ChangeCause, catalogue: Catalogue) -> ChangeCause:
    """Return a cause as one of the program's fit where the calibration has the new value."""
    family, _, parameter_name = cause.path.partition("performance.")[2].partition(".")
    if (family, parameter_name) not in catalogue.calibration_rows:
        return cause
    fit = catalogue.practice(family, parameter_name)
    fit_value = value_in_unit_or_text(fit.stated_quantity or (fit.value, fit.unit), cause.unit)
    # another source is a vendor, or a prior
    if fit.source != FIT or fit.overlay or differs(cause.new, fit_value, ROUNDING):
        return cause
    return cause._replace(kind="fit")


def _program_causes(difference: StateDifference) -> tuple[ChangeCause, ...]:
    """Return the causes of a change that no input explains.

    The causes are the version, formulas by name and quantities of the tree. The data hash counts
    only where neither formulas nor quantities differ.
    """
    tree, formulas = difference.quantities, difference.shared_formulas
    if not tree and not formulas and not difference.system:
        formulas = difference.formulas
    data_causes = [] if tree or formulas else difference.data
    return (*difference.versions, *data_causes, *formulas, *tree) or (CODE,)


def ratio_waypoints(
    waypoints: Sequence[Waypoint],
    base_waypoints: Sequence[Waypoint],
    start_costs: tuple[float, float],
    cost: str,
    metric: str,
) -> list[Waypoint]:
    """Return the walk of a ratio to the baseline: a change of both scenarios is one change.

    Args:
        waypoints: Walk of the scenario.
        base_waypoints: Walk of the baseline scenario.
        start_costs: Cost of the scenario and of the baseline scenario before the walk.
        cost: Name of the metric whose ratio is taken.
        metric: Name of the ratio.

    """
    costs = list(start_costs)
    changes = sorted(
        (waypoint.order, side, waypoint)
        for side, walk in enumerate((waypoints, base_waypoints))
        for waypoint in walk
    )
    ratio_walk = []
    for order, group in groupby(changes, itemgetter(0)):
        causes: dict[ChangeCause, None] = {}
        for _, side, waypoint in group:
            causes |= dict.fromkeys(waypoint.causes)
            costs[side] = waypoint.metrics.get(cost) or costs[side]
        ratio = float(perf_per_tco(costs[1], costs[0]))
        ratio_walk.append(Waypoint(tuple(causes), order=order, metrics={metric: ratio}))
    return ratio_walk
