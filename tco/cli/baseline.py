"""`tco baseline | diff`: what moved, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import CommandRequest, Metrics, Scenarios, command, name_argument
from tco.core.errors import UsageError
from tco.core.types import JsonObject

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
def save(given: CommandRequest, name: Name, scenarios: Scenarios = None) -> None:
    """Keep the results of scenarios under a name; those it already keeps of others stay."""
    from tco.core.files import is_there
    from tco.cost.price_dates import newest_price
    from tco.evaluation.evaluation import HEADLINE
    from tco.regression.baseline import baseline_path, load
    from tco.regression.baseline import save_baseline as keep
    from tco.regression.difference import state_of
    from tco.report.regression import saved_answer

    names, path = list(scenarios or HEADLINE), baseline_path(name)
    if is_there(path):
        load(path)  # a file that is no baseline is found before anything is evaluated
    catalogue, results = given.evaluated(names)
    states = {one: state_of(result) for one, result in zip(names, results, strict=True)}
    for state in states.values():
        if state["data_hash"] == catalogue.once("hash", catalogue.hash):
            state["data_date"] = newest_price(catalogue)
    stayed = keep(
        path,
        redact_baseline_states(given, states),
        {} if given.redact else baseline_choice_statistics(given, names),
    )
    given.emit(saved_answer(catalogue, name, str(path), names, stayed))


def baseline_choice_statistics(given: CommandRequest, names: list[str]) -> JsonObject:
    """Return statistics of the draws of a comparison of `names`.

    The result is empty for a single scenario.
    """
    if len(names) < 2:
        return {}
    from tco.comparison.confidence import confidence_of
    from tco.comparison.records import compare_results
    from tco.evaluation.evaluation import evaluate_each
    from tco.regression.baseline import stakes_of

    asked = evaluate_each(names, given.data, given.settings, refuse=False)
    return stakes_of(confidence_of(asked, compare_results([one.result for one in asked]).baseline))


def redact_baseline_states(
    given: CommandRequest, states: dict[str, JsonObject]
) -> dict[str, JsonObject]:
    """Return the states that a baseline stores, redacted under `--redact`.

    Without `--redact` the result is all of `states`. With `--redact` the result leaves out whatever
    reveals own values.
    """
    if not given.redact:
        return states
    from tco.cli.redaction import alike_states, release_answer

    given.redact = False  # what is left to say are names
    kept: dict[str, JsonObject] = release_answer(
        {name: state | {"withheld": []} for name, state in states.items()}, alike_states
    )
    return kept


@command(group, "set", forms=("github", "junit"))
def check(
    given: CommandRequest,
    name: Name,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="LIMIT", help="Change, either way, that counts as a move: 2%, 0.02, or 0.05USD."
        ),
    ] = "1e-9",
    max_increase: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="How much worse a metric may get: costs up, rates down. What gets better never "
            "fails then.",
        ),
    ] = None,
    metrics: Metrics = None,
) -> None:
    """Compare today's results with the kept ones; exit 1 and say why, step by step, if any metric
    moved.
    """
    from tco.regression.baseline import (
        baseline_path,
        drifts,
        load,
        rule_of,
        shifts,
        stakes_in,
        with_baseline_ratios,
    )
    from tco.report.regression import drift_answer

    rule = rule_of(threshold, max_increase, metrics)
    kept = load(baseline_path(name))
    catalogue, results = given.evaluated(list(kept))
    found = drifts(kept, dict(zip(kept, results, strict=True)), given.catalogue_of, rule)
    checked = {
        one: [metric for metric in state["metrics"] if metric in rule.metrics]
        for one, state in with_baseline_ratios(kept).items()
    }
    stakes = stakes_in(baseline_path(name)) if max_increase is None and not metrics else {}
    drawn = [
        asked
        for asked, one in zip(kept, results, strict=True)
        if any(one.scenario in some for some in stakes.values())
    ]
    moved = (
        shifts(stakes, baseline_choice_statistics(given, drawn), rule.threshold) if stakes else []
    )
    given.emit(drift_answer(catalogue, name, checked, found, moved))
    if found or moved:
        raise typer.Exit(1)


@command(group, name="list")
def list_baselines(given: CommandRequest) -> None:
    """List the baselines of the current folder, and what each keeps."""
    from tco.regression.baseline import baseline_path, baseline_scenarios
    from tco.report.regression import baseline_list_answer

    given.emit(
        baseline_list_answer(
            given.catalogue,
            {name: (str(baseline_path(name)), kept) for name, kept in baseline_scenarios().items()},
        )
    )


@command(group, name="show")
def show_baseline(given: CommandRequest, name: Name, metrics: Metrics = None) -> None:
    """Show the metrics a baseline keeps, and by which program, on which data they were made."""
    from tco.regression.baseline import baseline_path, known_metrics, load, with_baseline_ratios
    from tco.report.regression import kept_answer

    kept = with_baseline_ratios(load(baseline_path(name)))
    given.emit(kept_answer(given.catalogue, name, kept, known_metrics(metrics)))


@command(app, "set")
def diff(
    given: CommandRequest,
    a: Annotated[
        str,
        name_argument("scenarios", "A scenario, a saved result, or the JSON of `tco price`.", "A"),
    ],
    b: Annotated[
        str | None,
        typer.Argument(metavar="B", help="Another one, or A again with --set.", show_default=False),
    ] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 if they differ.")] = False,
    metrics: Metrics = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Of two systems list all metrics and inputs that differ, too."),
    ] = False,
) -> None:
    """Show what changed between two scenarios or results, and why, step by step. --set applies to B
    only.

    Of two systems it says what each group of things adds to the cost as it becomes the other's:
    chip, network, site, energy, memory, software.
    """
    from tco.evaluation.evaluation import HEADLINE
    from tco.regression.baseline import known_metrics
    from tco.regression.waterfall import diff as differing
    from tco.report.regression import diff_answer
    from tco.scenario.metrics import METRICS

    if b is None:
        raise UsageError(
            f"B is missing: tco diff {a} {HEADLINE[-1]}, or what a setting changes: tco diff {a} "
            f"{a} --set PATH=VALUE"
        )
    if a in METRICS or b in METRICS:
        metric, other = (a, b) if a in METRICS else (b, a)
        raise UsageError(f"{metric} is a metric: tco diff {other} {HEADLINE[-1]} --metric {metric}")
    wanted = known_metrics(metrics) if metrics else ()
    found = differing(a, b, given.settings, given.data, next(iter(wanted), None))
    given.emit(diff_answer(given.catalogue_of(a), a, b, found, wanted, full))
    if exit_code and (found.moves or found.causes):
        raise typer.Exit(1)
