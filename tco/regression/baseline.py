"""Cost regression: keep the state of scenarios, and say which metric moved since, and why."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.catalogue import is_name
from tco.core.errors import DataError, UsageError, refuse_unknown, unknown
from tco.core.files import is_there, read_json, write_atomically
from tco.core.types import JsonMapping, JsonObject
from tco.core.units import convert, unit
from tco.regression.difference import (
    ChangeContribution,
    Move,
    changed_metrics,
    refuse_broken,
    state_of,
)
from tco.regression.waterfall import Waypoint, points, ratio_drift_steps, waterfall_steps
from tco.scenario.evaluate import usual_baseline
from tco.scenario.metrics import (
    AGAINST_BASELINE,
    METRICS,
    PRICED,
    is_worse,
    perf_per_tco,
    priced_by,
)

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.comparison.records import Confidence
    from tco.scenario.result import Result

FOLDER = Path("reports") / "baselines"
SCHEMA = "tco.baseline/2"
States = dict[str, JsonObject]
ROUNDING = 1e-9  # a relative change that is none


class Limit(NamedTuple):
    """Greatest allowed move of a metric, as a share or an amount.

    The limit is an amount where it has a unit, and else a share of the metric.
    """

    size: float
    unit: str = ""

    def allows(self, move: Move) -> bool:
        """Say whether a move stays within the limit; a metric that is measured in another unit may
        not move at all.
        """
        if move.old is None or move.new is None:
            return False
        most = self.amount(move.metric) if self.unit else self.size * abs(move.old)
        return abs(move.new - move.old) <= (ROUNDING * abs(move.old) if most is None else most)

    def amount(self, metric: str) -> float | None:
        """Return the amount in the unit of a metric: `USD` stands for USD/chip/h and USD/Mtoken
        alike.
        """
        whole = METRICS[metric].unit
        for target in (whole, whole.partition("/")[0]):
            try:
                return convert(self.size, self.unit, target)
            except DataError:
                continue
        return None


def parse_limit(text: str, option: str) -> Limit:
    """Return the limit that a text states; any other text raises `UsageError`."""
    wrong = UsageError(
        f"{option} {text!r}: expected a share such as 2% or 0.02, or an amount such as 0.05USD"
    )
    found = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*", text)
    try:
        size = float(found[1]) if found else math.nan
        if found and found[2] not in ("", "%"):
            unit(found[2])
    except (ValueError, DataError):
        raise wrong from None
    if found is None or not math.isfinite(size) or ("%" in found[2] and found[2] != "%"):
        raise wrong
    return Limit(size / 100) if found[2] == "%" else Limit(size, found[2])


class Drift(NamedTuple):
    """One metric of one scenario that moved beyond the threshold, for the worse or not."""

    scenario: str
    move: Move
    worse: bool | None


class Rule(NamedTuple):
    """Rule that tells a drift from an allowed move.

    A drift is any move beyond the threshold. With a greatest increase, an improvement or a smaller
    worsening is no drift.
    """

    threshold: Limit = Limit(ROUNDING)
    max_increase: Limit | None = None
    metrics: tuple[str, ...] = tuple(METRICS)

    def broken(self, move: Move) -> bool:
        """Say whether a move is a drift."""
        if move.metric not in self.metrics or self.threshold.allows(move):
            return False
        worse = is_worse(move.metric, change_of(move))
        return (
            self.max_increase is None
            or worse is None
            or (worse and not self.max_increase.allows(move))
        )


def rule_of(threshold: str, max_increase: str | None, metrics: Sequence[str] | None) -> Rule:
    """Return the rule that option texts state.

    Args:
        threshold: Value of `--threshold`, a share such as 2% or an amount such as 0.05USD.
        max_increase: Value of `--max-increase` in the same form; None sets no greatest increase.
        metrics: Names of the metrics of the rule; None or an empty sequence takes all metrics.

    Raises:
        DataError: A metric is unknown.
        UsageError: A text is no limit, or a named metric is in another unit than a limit.

    """
    rule = Rule(
        parse_limit(threshold, "--threshold"),
        None if max_increase is None else parse_limit(max_increase, "--max-increase"),
        known_metrics(metrics),
    )
    for limit, option in ((rule.threshold, "--threshold"), (rule.max_increase, "--max-increase")):
        unfit = [
            name for name in metrics or () if limit and limit.unit and limit.amount(name) is None
        ]
        if unfit:
            raise UsageError(
                f"{option} is in {limit and limit.unit}, {unfit[0]} in "
                f"{METRICS[unfit[0]].unit or 'no unit'}"
            )
    return rule


def known_metrics(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named metrics, or all metrics without names.

    Args:
        names: Names of metrics; None or an empty sequence takes all metrics.

    Raises:
        DataError: A name is unknown.

    """
    refuse_unknown("metric", names or (), METRICS)
    return tuple(names or METRICS)


def change_of(move: Move) -> float:
    """Return by how much a metric moved; one that came counts as a gain, one that went as a
    loss.
    """
    if move.old is not None and move.new is not None:
        return move.new - move.old
    gain = -1.0 if is_worse(move.metric, 1.0) else 1.0
    return gain if move.old is None else -gain


def baseline_path(name: str, folder: Path = FOLDER) -> Path:
    """Return the path of a baseline file.

    Args:
        name: Name of the baseline, a single path step that does not begin with a dot.
        folder: Folder of the baselines.

    Raises:
        DataError: The name cannot be the name of a file.

    """
    if not is_name(name) or name.startswith("."):
        raise DataError(f"{name!r} is no name for a baseline; expected letters, digits and dashes")
    return folder / f"{name}.json"


ELSEWHERE = 1e-3  # share of a figure of draws


class Shift(NamedTuple):
    """A figure of the answer that is drawn, and what became of it."""

    scenario: str
    tokens_per_s_per_user: float
    figure: str
    old: float | str | None
    new: float | str | None


def stakes_of(found: Confidence) -> dict[str, dict[str, JsonObject]]:
    """Return the drawn figures of a comparison, by speed and scenario.

    The figures are the picks, the mean share of the best, the median cost, and P10, P50 and P90 of
    the ratio.

    Args:
        found: The comparison with its draws.

    Returns:
        Figures by name, by speed (text, in tokens/s per user) and by scenario. The median cost is
        in USD per million output tokens. A figure without a value is None.

    """
    picks = {
        speed: " and ".join(regime.picks) or None
        for regime in found.regimes
        for speed in regime.speeds
    }
    stakes: dict[str, dict[str, JsonObject]] = {}
    for one in found.curve:
        speed = one.tokens_per_s_per_user
        own = {
            "choose": picks.get(speed),
            "share_of_best": (one.share_of_best or {}).get("mean"),
            "p50_usd": one.median_usd_per_million_output_tokens,
        }
        stakes.setdefault(f"{speed:g}", {})[one.scenario] = own | {
            at: (one.range or {}).get(at) for at in ("p10", "p50", "p90")
        }
    return stakes


def shifts(old: JsonMapping, new: JsonMapping, limit: Limit) -> list[Shift]:
    """Return the drawn figures that moved beyond `limit`.

    A limit below `ELSEWHERE` counts as `ELSEWHERE`. At a step of plans, the arithmetic of another
    processor moves figures by that share.

    Args:
        old: Drawn figures of the baseline, as `stakes_of` returns them.
        new: Drawn figures of today in the same form.
        limit: Greatest allowed move as a share; an amount with a unit counts as a share of zero.

    Returns:
        Moves by speed, scenario and figure in the order of `old`. A figure that is only in `new` is
        left out.

    """
    size = max(0.0 if limit.unit else limit.size, ELSEWHERE)
    found = []
    for speed, some in old.items():
        for name, figures in some.items():
            now = new.get(speed, {}).get(name, {})
            for figure, was in figures.items():
                is_ = now.get(figure)
                both = isinstance(was, float) and isinstance(is_, float)
                if was != is_ and not (both and abs(is_ - was) <= size * abs(was)):
                    found.append(Shift(name, float(speed), figure, was, is_))
    return found


def stakes_in(path: Path) -> JsonObject:
    """Return the drawn figures of a baseline file.

    Args:
        path: Path of the baseline file.

    Returns:
        Figures by speed and scenario, as `stakes_of` returns them. The table is empty where the
        baseline was saved without draws.

    Raises:
        DataError: The file cannot be read as JSON, or the table is malformed.

    """
    kept = read_json(path, "a baseline").get("stakes", {})
    if not (
        isinstance(kept, dict)
        and all(
            isinstance(one, dict) and all(isinstance(each, dict) for each in one.values())
            for one in kept.values()
        )
    ):
        raise DataError(
            f"{path}: stakes: expected tables by speed and scenario; save the baseline again"
        )
    return kept


def save_baseline(path: Path, states: Mapping[str, JsonMapping], stakes: JsonMapping) -> list[str]:
    """Write states of scenarios into a baseline file.

    States of the same scenarios are replaced; states of all other scenarios stay. The file has a
    value a line, so that a change is a small diff. A file that is no baseline stays unchanged.

    Args:
        path: Path of the baseline file; its folder is made where absent.
        states: State by scenario.
        stakes: Drawn figures, as `stakes_of` returns them. The drawn figures of the file are
            replaced; an empty table removes all.

    Returns:
        Names of the scenarios of the file that are not in `states`.

    Raises:
        DataError: The file exists and is no baseline of this version.
        UsageError: The folder cannot be made, or the file cannot be written.

    """
    kept = load(path) if is_there(path) else {}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: cannot be made ({error.strerror})") from None
    text = json.dumps(
        {
            "schema": SCHEMA,
            "scenarios": {**kept, **states},
            **({"stakes": stakes} if stakes else {}),
        },
        indent=1,
        ensure_ascii=False,
        allow_nan=False,
    )
    write_atomically(path, text + "\n")
    return [name for name in kept if name not in states]


def load(path: Path) -> States:
    """Return the states of a baseline file by scenario.

    Args:
        path: Path of the baseline file.

    Raises:
        DataError: The file is missing, foreign, broken or of another version.

    """
    if not is_there(path):
        known = [found.stem for found in path.parent.glob("*.json")]
        if not known:
            raise DataError(
                f"{path.parent}: unknown baseline {path.stem!r}, as there is none; `tco baseline "
                "save` keeps the headline as one"
            )
        raise unknown("baseline", path.stem, known, str(path.parent))
    try:
        document = read_json(path, "a baseline")
    except DataError:
        raise DataError(f"{path}: is no baseline; `tco baseline save` writes one") from None
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA and str(found).startswith("tco.baseline/"):
        raise DataError(
            f"{path}: was saved by another version of tco ({found}, expected {SCHEMA}); move it "
            "away and save its scenarios again"
        )
    if found != SCHEMA or not isinstance(document.get("scenarios"), dict):
        raise DataError(f"{path}: is no baseline; `tco baseline save` writes one")
    states: States = document["scenarios"]
    for name, state in states.items():
        refuse_broken(state, f"{path}: {name}")
    return states


def is_metric_withheld(metric: str, state: JsonMapping, base: JsonMapping) -> bool:
    """Say whether a state keeps a metric back, as it tells of a person's own values; one against
    the baseline also tells of the baseline's.
    """
    kept_back = {*state.get("withheld", ())}
    return metric in kept_back or (
        metric in AGAINST_BASELINE
        and not kept_back.union(base.get("withheld", ())).isdisjoint(PRICED)
    )


def drifts(
    old: States, results: Mapping[str, Result], catalogue_of: Callable[[str], Catalogue], rule: Rule
) -> list[Drift]:
    """Return the metrics that moved beyond a rule, with their steps.

    Args:
        old: States of the baseline by scenario.
        results: Results of today by scenario, for every scenario of `old` at least.
        catalogue_of: Gives the catalogue of a scenario by its name.
        rule: Tells a drift from an allowed move.

    Returns:
        Drifts in the order of `old`. A metric that `old` withholds is left out.

    """
    new = {name: state_of(result, fingerprints=False) for name, result in results.items()}
    before, after = with_baseline_ratios(old), with_baseline_ratios(new)
    ways: dict[str, list[Waypoint]] = {}

    def waypoints_of(name: str) -> list[Waypoint]:
        if name not in ways:
            ways[name] = points(old[name], state_of(results[name]), catalogue_of(name))
        return ways[name]

    base = usual_baseline(list(old)) if old else ""
    found = []
    for name in old:
        for moved in filter(rule.broken, changed_metrics(before[name], after[name], 0.0)):
            if is_metric_withheld(moved.metric, old[name], old[base]):
                continue
            move = moved
            if move.old is not None and move.new is not None:
                start = before[name]["metrics"]
                cost = priced_by(start) if move.metric in AGAINST_BASELINE else None
                walked = (
                    waypoints_of(name)
                    if cost is None
                    else ratio_drift_steps(
                        waypoints_of(name),
                        waypoints_of(base),
                        (start, before[base]["metrics"]),
                        cost,
                        move.metric,
                    )
                )
                move = move._replace(
                    steps=tuple(
                        rested(step, cost or move.metric, results[name])
                        for step in waterfall_steps(walked, start, move.metric)
                    )
                )
            found.append(Drift(name, move, is_worse(move.metric, change_of(move))))
    return found


def rested(step: ChangeContribution, metric: str, result: Result) -> ChangeContribution:
    """Return a step without the changed formulas that the metric does not rest on."""
    if result.origin is None or not any(cause.kind == "formula" for cause in step.causes):
        return step
    used = result.origin.used_by(metric)
    kept = tuple(
        cause
        for cause in step.causes
        if cause.kind != "formula" or cause.new is None or cause.path in used
    )
    return step._replace(causes=kept or step.causes)


def with_baseline_ratios(states: States) -> States:
    """Return states with the ratios of each to the baseline scenario.

    Args:
        states: States by scenario; the baseline scenario is chosen among them.

    Returns:
        Copies by scenario, with the metrics of `AGAINST_BASELINE` added where both states have the
        cost.

    """
    if not states:
        return {}
    base = states[usual_baseline(list(states))]["metrics"]
    found = {}
    for name, state in states.items():
        own = state["metrics"]
        cost = priced_by(own)
        ratios = {
            metric: float(perf_per_tco(base[cost], own[cost]))
            for metric in AGAINST_BASELINE
            if cost is not None and cost in base
        }
        found[name] = {**state, "metrics": {**own, **ratios}}
    return found


def baseline_scenarios(folder: Path = FOLDER) -> dict[str, Sequence[str] | str]:
    """Return the scenarios of every baseline in a folder.

    Args:
        folder: Folder of the baselines.

    Returns:
        Names of the scenarios by baseline; the text of the error where a file cannot be loaded.

    """
    found: dict[str, Sequence[str] | str] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found[path.stem] = list(load(path))
        except DataError as error:
            found[path.stem] = str(error)
    return found
