"""Drift: metrics and drawn figures that moved since a baseline was saved, beyond a limit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.overlay import own_rows
from tco.core.errors import DataError, UsageError
from tco.core.types import JsonMapping, JsonObject
from tco.core.units import convert, unit
from tco.regression.attribution import (
    AppliedChange,
    attribute_change,
    changes_between_states,
    changes_of_ratio,
)
from tco.regression.baseline import States
from tco.regression.difference import (
    TOLERANCE,
    ChangeContribution,
    Move,
    Side,
    changed_metrics,
)
from tco.regression.state import holds_own_values, state_of
from tco.scenario.baseline_ratio import usual_baseline
from tco.scenario.metrics import (
    AGAINST_BASELINE,
    METRICS,
    PRICED,
    is_worse,
    perf_per_tco,
    priced_by,
    refuse_unknown_metrics,
)

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.comparison.records import Confidence
    from tco.scenario.result import Result

# share of a drawn figure by which the arithmetic of another processor may move it
DRAWN_TOLERANCE = 1e-3


class Limit(NamedTuple):
    """Greatest allowed move of a metric, as a share or an amount.

    The limit is an amount where it has a unit, and else a share of the metric.
    """

    size: float
    unit: str = ""

    def allows(self, move: Move) -> bool:
        """Say whether a move is within the limit; in another unit no move is."""
        if move.ends is None:
            return False
        old, new = move.ends
        most = self.amount(move.metric) if self.unit else self.size * abs(old)
        return abs(new - old) <= (TOLERANCE * abs(old) if most is None else most)

    def words(self) -> str:
        """Return the limit as text, with its unit or in per cent."""
        return f"{self.size:g} {self.unit}" if self.unit else f"{self.size * 100:g} %"

    def amount(self, metric: str) -> float | None:
        """Return the amount in the unit of a metric.

        `USD` stands for USD/chip/h and USD/Mtoken alike; None is no amount of the metric.
        """
        metric_unit = METRICS[metric].unit
        for target in (metric_unit, metric_unit.partition("/")[0]):
            try:
                return convert(self.size, self.unit, target)
            except DataError:
                continue
        return None


class Rule(NamedTuple):
    """Rule that tells a drift from an allowed move.

    A drift is any move beyond the threshold. With a greatest increase, an improvement or a smaller
    worsening is no drift.
    """

    threshold: Limit
    max_increase: Limit | None
    metrics: Sequence[str]

    def is_broken(self, move: Move) -> bool:
        """Say whether a move is a drift."""
        if move.metric not in self.metrics or self.threshold.allows(move):
            return False
        worse = _is_move_worse(move)
        if self.max_increase is None or worse is None:
            return True
        return worse and not self.max_increase.allows(move)


class Drift(NamedTuple):
    """One metric of one scenario that moved beyond the threshold, for the worse or not."""

    scenario: str
    move: Move
    worse: bool | None


class Shift(NamedTuple):
    """One drawn figure of one scenario that moved."""

    scenario: str
    tokens_per_s_per_user: float
    figure: str
    old: Side
    new: Side


def parse_rule(threshold: str, max_increase: str | None, metrics: Sequence[str] | None) -> Rule:
    """Parse the rule that option texts state.

    Args:
        threshold: Value of `--threshold`, a share such as 2% or an amount such as 0.05USD.
        max_increase: Value of `--max-increase` in the same form; None sets no greatest increase.
        metrics: Names of the metrics of the rule; None or an empty sequence takes all metrics.

    Raises:
        DataError: A metric is unknown.
        UsageError: A text is no limit, or a named metric is in another unit than a limit.

    """
    texts = {"--threshold": threshold, "--max-increase": max_increase}
    limits = {
        option: _parse_limit(limit_text, option)
        for option, limit_text in texts.items()
        if limit_text is not None
    }
    rule = Rule(limits["--threshold"], limits.get("--max-increase"), known_metrics(metrics))
    for option, limit in limits.items():
        for metric_name in metrics or ():
            if limit.unit and limit.amount(metric_name) is None:
                raise UsageError(
                    f"{option} is in {limit.unit}, {metric_name} in "
                    f"{METRICS[metric_name].unit or 'no unit'}"
                )
    return rule


def _parse_limit(limit_text: str, option: str) -> Limit:
    wrong = UsageError(
        f"{option} {limit_text!r}: expected a share such as 2% or 0.02, or an amount such as "
        "0.05USD"
    )
    match = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(%|[^%]*?)\s*", limit_text)
    if match is None:
        raise wrong
    number, suffix = match.groups()
    try:
        size = float(number)
        if suffix != "%":
            unit(suffix)
    except (ValueError, DataError):
        raise wrong from None
    if not math.isfinite(size):
        raise wrong
    if not suffix and size >= 1:
        percent = f"{size * 100:g}"
        raise UsageError(
            f"{option} {limit_text!r}: did you mean {size:g}%? A bare {size:g} is {percent} %; "
            f"write {percent}% if you mean that"
        )
    return Limit(size / 100) if suffix == "%" else Limit(size, suffix)


def known_metrics(metric_names: Sequence[str] | None) -> Sequence[str]:
    """Return the named metrics, or all metrics without names.

    Args:
        metric_names: Names of metrics; None or an empty sequence takes all metrics.

    Raises:
        DataError: A name is unknown.

    """
    refuse_unknown_metrics(metric_names or ())
    return metric_names or tuple(METRICS)


def _is_move_worse(move: Move) -> bool | None:
    if move.ends is not None:
        return is_worse(move.metric, move.ends[1] - move.ends[0])
    return None if is_worse(move.metric, 1.0) is None else move.new is None


def drifts(
    old: States,
    scenario_results: Mapping[str, Result],
    catalogue_of: Callable[[str], Catalogue],
    rule: Rule,
) -> list[Drift]:
    """Return the metrics that moved beyond a rule, with their steps.

    Args:
        old: States of the baseline by scenario.
        scenario_results: Results of today by scenario, for every scenario of `old` at least.
        catalogue_of: Gives the catalogue of a scenario by its name.
        rule: Tells a drift from an allowed move.

    Returns:
        Drifts in the order of `old`. A metric that `old` withholds is left out.

    """
    old_metrics = metrics_with_ratios(old)
    base = usual_baseline(list(old)) if old else ""

    @cache
    def changes_of(scenario_name: str) -> list[AppliedChange]:
        return changes_between_states(
            old[scenario_name],
            state_of(scenario_results[scenario_name]),
            catalogue_of(scenario_name),
        )

    def steps_of(scenario_name: str, move: Move, start: float) -> tuple[ChangeContribution, ...]:
        before = old_metrics[scenario_name]
        cost = priced_by(before) if move.metric in AGAINST_BASELINE else None
        changes = changes_of(scenario_name)
        if cost is not None:
            start_costs = before[cost], old_metrics[base][cost]
            changes = changes_of_ratio(changes, changes_of(base), start_costs, cost, move.metric)
        return tuple(
            _without_unused_formulas(step, cost or move.metric, scenario_results[scenario_name])
            for step in attribute_change(changes, move.metric, start)
        )

    drifted = []
    for scenario_name, move in _compared_moves(old, scenario_results):
        if rule.is_broken(move):
            steps = steps_of(scenario_name, move, move.ends[0]) if move.ends else ()
            drifted.append(Drift(scenario_name, move._replace(steps=steps), _is_move_worse(move)))
    return drifted


def _compared_moves(
    old: States, scenario_results: Mapping[str, Result]
) -> Iterator[tuple[str, Move]]:
    """Yield the scenario and the move of each metric that differs and is not withheld."""
    new = {
        scenario_name: state_of(scenario_result, fingerprints=False)
        for scenario_name, scenario_result in scenario_results.items()
    }
    old_metrics, new_metrics = metrics_with_ratios(old), metrics_with_ratios(new)
    base = old[usual_baseline(list(old))] if old else {}
    for scenario_name in old:
        for move in changed_metrics(old_metrics[scenario_name], new_metrics[scenario_name], 0.0):
            if not _is_withheld(move.metric, old[scenario_name], base):
                yield scenario_name, move


def largest_move(old: States, scenario_results: Mapping[str, Result], rule: Rule) -> Move | None:
    """Return the relatively largest move of the metrics of a rule.

    Args:
        old: States of the baseline by scenario.
        scenario_results: Results of today by scenario, for every scenario of `old` at least.
        rule: Names the metrics. With a greatest increase only moves for the worse count.

    Returns:
        The move; None where no metric has a relative change.

    """
    moves = [
        move
        for _, move in _compared_moves(old, scenario_results)
        if move.change is not None
        and move.metric in rule.metrics
        and (rule.max_increase is None or _is_move_worse(move))
    ]
    return max(moves, key=lambda move: abs(move.change or 0), default=None)


def missing_own_values(
    old: States,
    scenario_results: Mapping[str, Result],
    catalogue_of: Callable[[str], Catalogue],
) -> list[str]:
    """Return the paths of own values of a baseline that are not in force today.

    A value that is in force and that no result reads, as another part was chosen, does not count. A
    state that withholds metrics keeps only those that rest on no own value.

    Args:
        old: States of the baseline by scenario.
        scenario_results: Results of today by scenario, for every scenario of `old` at least.
        catalogue_of: Gives the catalogue of a scenario by its name.

    """
    missing: set[str] = set()
    for scenario_name, state in old.items():
        if not holds_own_values(state):
            continue
        today = scenario_results[scenario_name]
        unread = {path for path, _ in own_rows(catalogue_of(scenario_name))}
        unread |= set(today.origin.settings if today.origin else ())
        for path in state["own"]:
            own_input = today.inputs.get(path)
            in_force = path in unread if own_input is None else own_input.overlay
            if not in_force:
                missing.add(path)
    return sorted(missing)


def checked_metrics(states: Mapping[str, JsonMapping]) -> dict[str, list[str]]:
    """Return the metrics of states that a check compares, by scenario.

    Args:
        states: States by scenario; a metric that a state withholds is left out.

    """
    base = states[usual_baseline(list(states))] if states else {}
    return {
        scenario_name: [
            metric
            for metric in metric_values
            if not _is_withheld(metric, states[scenario_name], base)
        ]
        for scenario_name, metric_values in metrics_with_ratios(states).items()
    }


def refuse_unchecked_metrics(
    path: Path,
    metrics: Sequence[str],
    states: Mapping[str, JsonMapping],
    checked: Mapping[str, Sequence[str]],
    drifted: Sequence[Drift],
) -> None:
    """Refuse a named metric that is checked in no scenario of a baseline.

    Args:
        path: Path of the baseline file.
        metrics: Names of metrics that a check is asked for.
        states: States of the baseline by scenario.
        checked: Metrics that the check compares, by scenario.
        drifted: Drifts; a metric that is new today has one without a saved value.

    Raises:
        DataError: A metric is withheld, or the baseline does not keep it.

    """
    compared = {metric for scenario_metrics in checked.values() for metric in scenario_metrics}
    compared |= {drift.move.metric for drift in drifted}
    base = states[usual_baseline(list(states))] if states else {}
    for metric in metrics:
        if metric in compared:
            continue
        reason = f"keeps no {metric}"
        if any(_is_withheld(metric, state, base) for state in states.values()):
            reason = f"{metric} rests on your own values and is withheld"
        raise DataError(
            f"{path}: {reason}; nothing was checked. `tco baseline show {path.stem}` lists the "
            "metrics that it keeps; to check others, save and check without --redact"
        )


def _is_withheld(metric: str, state: JsonMapping, base: JsonMapping) -> bool:
    """Say whether a state withholds a metric, as it tells of the user's own values.

    A ratio to the baseline also tells of the baseline's values.
    """
    withheld, base_withheld = state.get("withheld", ()), base.get("withheld", ())
    return metric in withheld or (
        metric in AGAINST_BASELINE and not {*withheld, *base_withheld}.isdisjoint(PRICED)
    )


def _without_unused_formulas(
    step: ChangeContribution, metric: str, scenario_result: Result
) -> ChangeContribution:
    """Return a step without the changed formulas that the metric does not rest on."""
    if scenario_result.origin is None or not any(cause.kind == "formula" for cause in step.causes):
        return step
    used = scenario_result.origin.used_by(metric)
    causes = tuple(
        cause
        for cause in step.causes
        if cause.kind != "formula" or cause.new is None or cause.path in used
    )
    return step._replace(causes=causes or step.causes)


def metrics_with_ratios(states: Mapping[str, JsonMapping]) -> dict[str, dict[str, float]]:
    """Return the metrics of states with the ratios of each to the baseline scenario.

    Args:
        states: States by scenario; the baseline scenario is chosen among them.

    Returns:
        Values by metric and by scenario, with the metrics of `AGAINST_BASELINE` where both states
        have the cost.

    """
    metrics = {scenario_name: dict(state["metrics"]) for scenario_name, state in states.items()}
    base = dict(metrics[usual_baseline(list(states))]) if states else {}
    for metric_values in metrics.values():
        cost = priced_by(metric_values)
        if cost is not None and cost in base:
            ratio = float(perf_per_tco(base[cost], metric_values[cost]))
            metric_values.update(dict.fromkeys(AGAINST_BASELINE, ratio))
    return metrics


def stakes_of(confidence: Confidence) -> dict[str, dict[str, JsonObject]]:
    """Return the drawn figures of a comparison, by speed and scenario.

    The figures are the picks, the mean share of the best, the median cost, and P10, P50 and P90 of
    the ratio.

    Args:
        confidence: The comparison with its draws.

    Returns:
        Figures by name, by speed (text, in tokens/s per user) and by scenario. The median cost is
        in USD per million output tokens. A figure without a value is None.

    """
    picks = {
        speed: " and ".join(regime.picks) or None
        for regime in confidence.regimes
        for speed in regime.speeds
    }
    stakes: dict[str, dict[str, JsonObject]] = {}
    for point in confidence.curve:
        speed, ratios = point.tokens_per_s_per_user, point.range or {}
        stakes.setdefault(f"{speed:g}", {})[point.scenario] = {
            "choose": picks.get(speed),
            "share_of_best": (point.share_of_best or {}).get("mean"),
            "p50_usd": point.median_usd_per_million_output_tokens,
            **{quantile: ratios.get(quantile) for quantile in ("p10", "p50", "p90")},
        }
    return stakes


def shifts(old: JsonMapping, new: JsonMapping, limit: Limit) -> list[Shift]:
    """Return the drawn figures that moved beyond `limit`.

    A limit below `DRAWN_TOLERANCE` counts as `DRAWN_TOLERANCE`. At a step of plans, the arithmetic
    of another processor moves figures by that share.

    Args:
        old: Drawn figures of the baseline, as `stakes_of` returns them.
        new: Drawn figures of today in the same form.
        limit: Greatest allowed move as a share; an amount with a unit counts as a share of zero.

    Returns:
        Moves by speed, scenario and figure in the order of `old`. A figure that is only in `new` is
        left out.

    """
    size = max(0.0 if limit.unit else limit.size, DRAWN_TOLERANCE)
    shifted = []
    for speed, scenarios in old.items():
        for scenario_name, figures in scenarios.items():
            today = new.get(speed, {}).get(scenario_name, {})
            for figure, before in figures.items():
                after = today.get(figure)
                is_shifted = before != after
                if isinstance(before, float) and isinstance(after, float):
                    is_shifted = abs(after - before) > size * abs(before)
                if is_shifted:
                    shifted.append(Shift(scenario_name, float(speed), figure, before, after))
    return shifted
