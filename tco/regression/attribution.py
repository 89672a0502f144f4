"""Attribution: why a metric moved, by making one change at a time and keeping all earlier changes.

The changes lead from an old state to a new state in the stages that `ChangeStage` lists. At each
change the plan is the best one: where another plan is chosen, its effect counts with the change
that brought it. What a change adds to a metric depends on the order of the changes. The sum of all
contributions does not: it is the drift of the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import partial
from itertools import groupby
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
FIT = "tco-calibration"  # source of fitted values
CODE = ChangeCause("code", "")  # cause that neither a fingerprint nor a quantity names


class ChangeStage(IntEnum):
    """Stages of the changes between two states, in their order."""

    PROGRAM = 0  # the old state with its own inputs, evaluated by today's program
    INPUT = 1  # inputs, one by one
    TEXT = 2  # texts, such as the model, one by one
    SYSTEM = 3  # all that is left: the system or its variant


class AppliedChange(NamedTuple):
    """A change, and the metrics after it and all earlier changes."""

    causes: tuple[ChangeCause, ...]
    settings: Mapping[str, str] = {}  # values that the change sets, by path
    stage: ChangeStage = ChangeStage.SYSTEM
    path: str = ""  # of the input or text that changes
    # empty where the values do not go together
    metrics: Mapping[str, float | None] = {}

    @property
    def order(self) -> tuple[ChangeStage, str]:
        """Key of the order of changes, equal for the same change of two scenarios."""
        return self.stage, self.path


def attribute_change(
    changes: Sequence[AppliedChange], metric: str, start: float, tolerance: float | None = ROUNDING
) -> tuple[ChangeContribution, ...]:
    """Attribute the change of a metric to the changes in their order.

    A change after which the metric has no value counts with the change that follows.

    Args:
        changes: Changes in their order.
        metric: Name of the metric.
        start: Value before the first change.
        tolerance: A change that moves the metric by no more, relative, contributes nothing; None
            makes every change a contribution.

    Returns:
        Contributions that lead from `start` to the value after the last change.

    """
    # The contributions lead from `start` to `metric_value`. The pending causes and settings came
    # after them, and no value of the metric has followed yet.
    contributions: list[ChangeContribution] = []
    pending_causes: tuple[ChangeCause, ...] = ()
    pending_settings: dict[str, str] = {}
    metric_value = start
    for change in changes:
        new_value = change.metrics.get(metric)
        if new_value is None:
            pending_causes += change.causes
            pending_settings |= change.settings
        elif tolerance is None or differs(metric_value, new_value, tolerance):
            contributions.append(
                ChangeContribution(
                    causes=pending_causes + change.causes,
                    start=metric_value,
                    end=float(new_value),
                    settings={**pending_settings, **change.settings},
                )
            )
            pending_causes, pending_settings, metric_value = (), {}, float(new_value)
    if contributions and (last_value := changes[-1].metrics.get(metric)) is not None:
        # moves within the tolerance after the last contribution
        contributions[-1] = contributions[-1]._replace(end=float(last_value))
    return tuple(contributions)


def evaluate_in_turn(
    changes: Iterable[AppliedChange],
    settings: Mapping[str, str],
    evaluate: Callable[[dict[str, str]], Evaluated],
) -> Iterator[tuple[AppliedChange, Evaluated | None]]:
    """Evaluate after each change, all earlier changes kept.

    Args:
        changes: Changes in their order, without metrics.
        settings: Values before the first change, by path.
        evaluate: Evaluates all values by path.

    Yields:
        Change with the metrics after it, and the evaluation. Where the values do not go together,
        the change has no metrics and the evaluation is None.

    """
    values = dict(settings)
    for change in changes:
        values = {**values, **change.settings}
        evaluation = _evaluate_or_none(evaluate, values)
        if evaluation is None:
            yield change, None
        else:
            yield change._replace(metrics=evaluation.metrics), evaluation


def _evaluate_or_none(
    evaluate: Callable[[dict[str, str]], Evaluated], settings: dict[str, str]
) -> Evaluated | None:
    """Return the evaluation of values; None where they do not go together."""
    try:
        return evaluate(settings)
    except TcoError:
        return None


def changes_between_states(
    old: JsonMapping, new: JsonMapping, catalogue: Catalogue
) -> list[AppliedChange]:
    """Return the changes that lead from one state to another, in their order.

    Args:
        old: State before the changes.
        new: State after the changes.
        catalogue: Catalogue of today.

    """
    difference = compare_states(old, new)
    settings = {path: setting_text(*quantity) for path, quantity in old["inputs"].items()}
    settings |= old["texts"]
    evaluate = partial(reevaluate_state, old, catalogue=catalogue)
    today = _evaluate_or_none(evaluate, settings)
    if today is None:
        # today's program cannot evaluate the old state at all
        causes = (*difference.inputs, *_program_causes(difference))
        return [AppliedChange(causes, metrics=new["metrics"])]
    program_difference = compare_states(old, {**new, "quantities": quantities_by_path(today.bill)})
    setting_changes = _setting_changes(difference, new, catalogue)
    remainder = difference.system or difference.variant or difference.quantities or [CODE]
    return [
        AppliedChange(
            _program_causes(program_difference), stage=ChangeStage.PROGRAM, metrics=today.metrics
        ),
        *(change for change, _ in evaluate_in_turn(setting_changes, settings, evaluate)),
        AppliedChange(tuple(remainder), metrics=new["metrics"]),
    ]


def _setting_changes(
    difference: StateDifference, new: JsonMapping, catalogue: Catalogue
) -> Iterator[AppliedChange]:
    for cause in difference.inputs:
        # an input of one side only may belong to one of two systems
        if cause.new is not None and not (difference.system and cause.old is None):
            input_text = setting_text(*new["inputs"][cause.path])
            causes = (_attribute_cause_to_fit(cause, catalogue),)
            yield AppliedChange(causes, {cause.path: input_text}, ChangeStage.INPUT, cause.path)
    for cause in difference.texts:
        if cause.new is not None:
            yield AppliedChange(
                (cause,), {cause.path: str(cause.new)}, ChangeStage.TEXT, cause.path
            )


def _attribute_cause_to_fit(cause: ChangeCause, catalogue: Catalogue) -> ChangeCause:
    """Return a cause as one of the program's fit where the calibration has the new value."""
    family, _, parameter_name = cause.path.partition("performance.")[2].partition(".")
    if (family, parameter_name) not in catalogue.calibration_rows:
        return cause
    fit = catalogue.practice(family, parameter_name)
    fit_value = value_in_unit_or_text(fit.stated_quantity or (fit.value, fit.unit), cause.unit)
    # a value of another source is a vendor's, or a prior
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


def changes_of_ratio(
    changes: Sequence[AppliedChange],
    base_changes: Sequence[AppliedChange],
    start_costs: tuple[float, float],
    cost: str,
    metric: str,
) -> list[AppliedChange]:
    """Return the changes of a scenario and of its baseline, with their cost ratio after each.

    A change of both scenarios is one change. Where the scenario has no cost after a change, the
    ratio has no value.

    Args:
        changes: Changes of the scenario.
        base_changes: Changes of the baseline scenario.
        start_costs: Cost of the scenario and of the baseline before the first change.
        cost: Name of the metric whose ratio is taken.
        metric: Name of the ratio.

    """
    scenario_cost, base_cost = start_costs
    sided_changes = [(change, False) for change in changes]
    sided_changes += [(change, True) for change in base_changes]
    sided_changes.sort(key=lambda sided_change: sided_change[0].order)
    ratio_changes = []
    for (stage, path), group in groupby(sided_changes, lambda sided_change: sided_change[0].order):
        causes: dict[ChangeCause, None] = {}
        for change, is_baseline in group:
            causes |= dict.fromkeys(change.causes)
            new_cost = change.metrics.get(cost)
            if new_cost is None:
                continue
            if is_baseline:
                base_cost = new_cost
            else:
                scenario_cost = new_cost
        metrics = {metric: float(perf_per_tco(base_cost, scenario_cost))} if scenario_cost else {}
        ratio_changes.append(AppliedChange(tuple(causes), stage=stage, path=path, metrics=metrics))
    return ratio_changes
