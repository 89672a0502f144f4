"""`tco baseline | diff`: what moved, and why."""

from __future__ import annotations

from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import (
    CommandRequest,
    command,
    name_argument,
)
from tco.core.errors import DataError, TcoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tco.core.types import JsonMapping, JsonObject
    from tco.regression.drift import Rule, Shift
    from tco.scenario.result import Result

NAMED_VALUES = 3  # own values that an error names

group = typer.Typer(
    cls=Listing,
    no_args_is_help=True,
    help="Cost regression: keep results, and say what moved since and why.",
)
app.add_typer(group, name="baseline")
Name = Annotated[
    str,
    typer.Argument(
        help="Name of the baseline, a file in reports/baselines/ of the current folder."
    ),
]


@command(group, "set")
def save(request: CommandRequest, name: Name, scenarios: list[str] | None = None) -> None:
    """Keep the results of scenarios under a name.

    Results that it already keeps of other scenarios stay.
    """
    from tco.core.files import is_there
    from tco.cost.price_dates import newest_price
    from tco.evaluation.evaluation import HEADLINE
    from tco.regression.baseline import (
        baseline_path,
        load_baseline,
        refuse_own_states,
        save_baseline,
    )
    from tco.regression.state import state_of
    from tco.report.baseline import saved_answer

    scenario_names, path = list(scenarios or HEADLINE), baseline_path(name)
    if is_there(path):
        # a file that is no baseline is refused before anything is evaluated
        refuse_own_states(path, load_baseline(path), scenario_names)
    catalogue, scenario_results = request.evaluated(scenario_names)
    states = {
        scenario: state_of(scenario_result)
        for scenario, scenario_result in zip(scenario_names, scenario_results, strict=True)
    }
    for state in states.values():
        if state["data_hash"] == catalogue.once("hash", catalogue.hash):
            state["data_date"] = newest_price(catalogue)
    # before the states are redacted, which ends the redaction of this request
    drawn_figures = {} if request.redact else _drawn_figures(request, scenario_names)
    saved_states = _redact_states(request, states)
    stayed = save_baseline(path, saved_states, drawn_figures)
    request.emit(saved_answer(catalogue, name, saved_states, stayed, bool(drawn_figures)))


def _drawn_figures(request: CommandRequest, scenario_names: Sequence[str]) -> JsonObject:
    """Return the drawn figures of a comparison; none for a single scenario."""
    if len(scenario_names) < 2:
        return {}
    from tco.comparison.confidence import confidence_of
    from tco.evaluation.evaluation import evaluate_each
    from tco.evaluation.side_by_side import compare_results
    from tco.regression.drift import stakes_of

    evaluations = evaluate_each(scenario_names, request.data, request.settings, refuse=False)
    comparison = compare_results([evaluation.result for evaluation in evaluations])
    return stakes_of(confidence_of(evaluations, comparison.baseline))


def _redact_states(request: CommandRequest, states: dict[str, JsonObject]) -> dict[str, JsonObject]:
    """Return the states that a baseline stores, under `--redact` without own values."""
    if not request.redact:
        return states
    from tco.cli.redaction import redact_states, release_answer

    # the rest of the answer is names
    request.redact = False
    redacted: dict[str, JsonObject] = release_answer(
        {scenario_name: state | {"withheld": []} for scenario_name, state in states.items()},
        redact_states,
    )
    return redacted


@command(group, "set", forms=("github", "junit"))
def check(
    request: CommandRequest,
    name: Name,
    threshold: str = "1e-9",
    max_increase: str | None = None,
    metrics: list[str] | None = None,
) -> None:
    """Compare today's results with the kept ones, and fail if any moved.

    It exits with 1 and says why, step by step, if any metric moved. Without --metric every metric
    counts, and so do the figures of the draws; --metric METRIC gates on one.

    What is asked:
        threshold (LIMIT): Change, either way, that counts as a move: 2%, 0.02, or 0.05USD.
        max_increase (LIMIT): How much worse a metric may get: costs up, rates down. What gets
            better never fails then.

    """
    try:
        _check_baseline(request, name, threshold, max_increase, metrics)
    except TcoError as error:
        _annotate_error(request, name, error)
        raise


def _check_baseline(
    request: CommandRequest,
    baseline_name: str,
    threshold: str,
    max_increase: str | None,
    metrics: Sequence[str] | None,
) -> None:
    """Answer what moved since a baseline."""
    from tco.regression.baseline import (
        baseline_path,
        load_baseline,
        load_stakes,
        refuse_own_states,
        unguarded_scenarios,
    )
    from tco.regression.drift import (
        checked_metrics,
        drifts,
        largest_move,
        missing_own_values,
        parse_rule,
        refuse_unchecked_metrics,
    )
    from tco.report.drift import drift_answer, passed_text

    rule = parse_rule(threshold, max_increase, metrics)
    path = baseline_path(baseline_name)
    states, stakes = load_baseline(path), load_stakes(path)
    refuse_own_states(path, states)
    catalogue, scenario_results = request.evaluated(list(states))
    result_by_name = dict(zip(states, scenario_results, strict=True))
    missing = missing_own_values(states, result_by_name, request.catalogue_of)
    settings_words = request.words([], None)  # while the request still masks own values
    withheld = _withheld_metrics(request, result_by_name)
    for scenario, state in states.items():
        state["withheld"] = sorted({*state.get("withheld", ()), *withheld[scenario]})
    drifted = drifts(states, result_by_name, request.catalogue_of, rule)
    checked = {
        scenario: [metric for metric in metric_values if metric in rule.metrics]
        for scenario, metric_values in checked_metrics(states).items()
    }
    refuse_unchecked_metrics(path, metrics or (), states, checked, drifted)
    shifted: list[Shift] = []
    if max_increase is None and not metrics and not any(withheld.values()):
        shifted = _shifted_figures(request, stakes, result_by_name, rule)
    # figures of the draws are saved of several scenarios together
    scenario_names = list(states)
    if drifted and not shifted:
        scenario_names = list(dict.fromkeys(drift.scenario for drift in drifted))
    accept = join(["tco", "baseline", "save", baseline_name, *scenario_names, *settings_words])
    missing_notes = _missing_notes(path, missing, accept)
    if missing_notes and not drifted and not shifted:
        raise DataError(missing_notes[0])
    notes = [*_unchecked_notes(states, rule), *missing_notes]
    unguarded = unguarded_scenarios()
    passed = passed_text(checked, rule, largest_move(states, result_by_name, rule))
    answer = drift_answer(
        catalogue, baseline_name, checked, drifted, shifted, notes, unguarded, accept, passed
    )
    request.emit(answer, [*drifted, *shifted])


def _shifted_figures(
    request: CommandRequest,
    stakes: JsonMapping,
    scenario_results: Mapping[str, Result],
    rule: Rule,
) -> list[Shift]:
    """Return the drawn figures of a baseline that moved; none where it keeps none."""
    from tco.regression.drift import shifts

    if not stakes:
        return []
    drawn = {scenario for scenarios in stakes.values() for scenario in scenarios}
    drawn_names = [
        scenario_name
        for scenario_name, scenario_result in scenario_results.items()
        if scenario_result.scenario in drawn
    ]
    return shifts(stakes, _drawn_figures(request, drawn_names), rule.threshold)


def _unchecked_notes(states: Mapping[str, JsonMapping], rule: Rule) -> list[str]:
    from tco.catalog.labels import count_with_noun

    counts = {
        scenario: sum(metric in rule.metrics for metric in state["withheld"])
        for scenario, state in states.items()
    }
    return [
        f"{scenario}: {count_with_noun(count, 'metric')} of own values withheld and not checked"
        for scenario, count in counts.items()
        if count
    ]


def _missing_notes(path: Path, missing: Sequence[str], accept: str) -> list[str]:
    from tco.catalog.labels import count_with_noun

    if not missing:
        return []
    named = ", ".join(missing[:NAMED_VALUES])
    if len(missing) > NAMED_VALUES:
        named += f" and {len(missing) - NAMED_VALUES} more"
    counted = count_with_noun(len(missing), "own value")
    return [
        f"{path}: rests on {counted} that this check lacks: {named}; add data/ or --set "
        f"again, or save the baseline without: {accept}"
    ]


def _withheld_metrics(
    request: CommandRequest, scenario_results: Mapping[str, Result]
) -> dict[str, list[str]]:
    """Return the metrics of today that rest on own values, by scenario; none but with `--redact`.

    They are not checked: whether one of them moved would tell of the values.
    """
    from tco.regression.state import state_of

    states = {
        scenario_name: state_of(scenario_result, fingerprints=False)
        for scenario_name, scenario_result in scenario_results.items()
    }
    redacted = _redact_states(request, states)
    return {scenario_name: state.get("withheld", []) for scenario_name, state in redacted.items()}


def _annotate_error(request: CommandRequest, baseline_name: str, error: TcoError) -> None:
    """Write an error in the form of a pipeline, beside its message."""
    from tco.cli.output import emit
    from tco.report.drift import ERROR_FORMS

    if request.form in ERROR_FORMS:
        emit(ERROR_FORMS[request.form](baseline_name, str(error)), request.texts["output"])


@command(group, name="list")
def list_baselines(request: CommandRequest) -> None:
    """List the baselines of the current folder, and what each keeps."""
    from tco.regression.baseline import baseline_scenarios
    from tco.report.baseline import baseline_list_answer

    request.emit(baseline_list_answer(request.catalogue, baseline_scenarios()))


@command(group, name="show")
def show_baseline(request: CommandRequest, name: Name, metrics: list[str] | None = None) -> None:
    """Show the metrics that a baseline keeps.

    The program and the data that made them are named.
    """
    from tco.regression.baseline import baseline_path, load_baseline, refuse_own_states
    from tco.regression.drift import known_metrics
    from tco.report.baseline import kept_answer

    path = baseline_path(name)
    states = load_baseline(path)
    refuse_own_states(path, states)
    request.emit(kept_answer(request.catalogue, name, states, known_metrics(metrics)))


@command(app, "set")
def diff(
    request: CommandRequest,
    a: Annotated[
        str,
        name_argument("scenarios"),
    ],
    b: Annotated[str | None, typer.Argument(show_default=False)] = None,
    exit_code: bool = False,
    metrics: list[str] | None = None,
    full: bool = False,
) -> None:
    """Show what changed between two scenarios or results, and why.

    --set applies to B only.

    Of two systems it says what each group of things adds to the cost as it becomes the other's:
    chip, network, site, energy, memory, software.

    Arguments:
        a (A): A scenario, a saved result, or the JSON of `tco price`.
        b (B): Another one, or A again with --set.

    What is shown:
        exit_code: Exit 1 if they differ.
        full: Of two systems list all metrics and inputs that differ, too.

    """
    from tco.evaluation.evaluation import HEADLINE
    from tco.regression.drift import known_metrics
    from tco.regression.result_difference import diff as compare_two
    from tco.report.difference import diff_answer
    from tco.scenario.metrics import METRICS

    if b is None:
        raise UsageError(
            f"B is missing: tco diff {a} {HEADLINE[-1]}, or what a setting changes: tco diff {a} "
            f"{a} --set PATH=VALUE"
        )
    if a in METRICS or b in METRICS:
        metric, scenario = (a, b) if a in METRICS else (b, a)
        raise UsageError(
            f"{metric} is a metric: tco diff {scenario} {HEADLINE[-1]} --metric {metric}"
        )
    if full:
        request.require_form("--full", "table", "md")
    named_metrics = known_metrics(metrics) if metrics else ()
    difference = compare_two(a, b, request.settings, request.data, next(iter(named_metrics), None))
    changes = [*difference.moves, *difference.causes] if exit_code else []
    answer = diff_answer(request.catalogue_of(a), a, b, difference, named_metrics, full)
    request.emit(answer, changes)
