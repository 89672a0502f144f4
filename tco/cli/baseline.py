"""`tco baseline`: save, check, list, show."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import Given, command

group = typer.Typer(cls=Listing, no_args_is_help=True, help="Cost regression: keep results, and say what moved since and why.")
app.add_typer(group, name="baseline")
Name = Annotated[str, typer.Argument(help="Name of the baseline, a file in reports/baselines/ of the current folder.")]


class CheckForm(StrEnum):
    """How a check is printed."""

    table = "table"
    csv = "csv"
    json = "json"
    md = "md"
    github = "github"
    junit = "junit"


@command(group, "set")
def save(
    given: Given,
    name: Name,
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Left out: the four headline racks.")] = None,
) -> None:
    """Keep the results of scenarios under a name; those it already keeps of others stay."""
    from tco.chain.ages import newest_price
    from tco.cli.emit import Answer
    from tco.cli.load import HEADLINE, evaluate_all
    from tco.foundation.files import is_there
    from tco.outputs.document import document
    from tco.outputs.table import Table
    from tco.studies.baseline import baseline_path, load
    from tco.studies.baseline import save as keep
    from tco.studies.state import state_of

    names, path = list(scenarios or HEADLINE), baseline_path(name)
    if is_there(path):
        load(path)  # a file that is no baseline is found before anything is evaluated
    catalogue, results = evaluate_all(names, given.data, given.settings)
    states = {one: state_of(result) for one, result in zip(names, results, strict=True)}
    for state in states.values():
        if state["data_hash"] == catalogue.once("hash", catalogue.hash):
            state["data_date"] = newest_price(catalogue)
    stayed = keep(path, given.states(states))
    saved = [[one, str(path)] for one in names]
    content = {"name": name, "path": str(path), "scenarios": names, "stayed": stayed}
    below = [f"As they were: {', '.join(stayed)}."] if stayed else []
    given.emit(
        Answer(
            lambda: document("baseline-save", catalogue, content),
            lambda: [Table(("scenario", "kept in"), saved, below=below, align="ll")],
            ("scenario", "path"),
            saved,
        )
    )


@command(group, "set", forms=CheckForm)
def check(
    given: Given,
    name: Name,
    threshold: Annotated[str, typer.Option(metavar="LIMIT", help="Change, either way, that counts as a move: 2%, 0.02, or 0.05USD.")] = "1e-9",
    max_increase: Annotated[
        str | None, typer.Option(metavar="LIMIT", help="How much worse a metric may get: costs up, rates down. What gets better never fails then.")
    ] = None,
    metrics: Annotated[list[str] | None, typer.Option("--metric", metavar="METRIC", help="Look at this metric only. Repeatable.")] = None,
) -> None:
    """Compare today's results with the kept ones; exit 1 and say why, step by step, if any metric moved."""
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for, evaluate_all
    from tco.outputs.document import document
    from tco.outputs.drift import HEADER, drift_document, drift_rows, drift_table
    from tco.studies.baseline import baseline_path, drifts, load, rule_of, side_by_side

    rule = rule_of(threshold, max_increase, metrics)
    kept = load(baseline_path(name))
    catalogue, results = evaluate_all(list(kept), given.data, given.settings)
    found = drifts(kept, dict(zip(kept, results, strict=True)), lambda one: catalogue_for(one, given.data), rule)

    def junit() -> str:
        from tco.outputs.checks import to_junit

        checked = {one: [metric for metric in state["metrics"] if metric in rule.metrics] for one, state in side_by_side(kept).items()}
        return to_junit(name, checked, found)

    def github() -> str:
        from tco.outputs.checks import to_github

        return to_github(name, len(kept), found)

    given.emit(
        Answer(
            lambda: document("baseline-check", catalogue, drift_document(name, found)),
            lambda: [drift_table(name, len(kept), found)],
            HEADER,
            drift_rows(found),
            texts={"github": github, "junit": junit},
        )
    )
    if found:
        raise typer.Exit(1)


@command(group, name="list")
def list_baselines(given: Given) -> None:
    """List the baselines of the current folder, and what each keeps."""
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.table import Table
    from tco.studies.baseline import baseline_path, listed

    found = listed()
    rows = [[name, str(baseline_path(name)), kept if isinstance(kept, str) else ", ".join(kept)] for name, kept in found.items()]
    items = [
        {"id": name, "path": str(baseline_path(name)), **({"error": kept} if isinstance(kept, str) else {"scenarios": list(kept)})}
        for name, kept in found.items()
    ]
    given.emit(
        Answer(
            lambda: document("baseline-list", catalogue_for(None, given.data), {"items": items}),
            lambda: [Table(("baseline", "file", "scenarios"), rows, f"{len(rows)} baselines", align="lll")],
            ("id", "path", "scenarios"),
            rows,
        )
    )


@command(group, name="show")
def show_baseline(
    given: Given,
    name: Name,
    metrics: Annotated[list[str] | None, typer.Option("--metric", metavar="METRIC", help="Show this metric only. Repeatable.")] = None,
) -> None:
    """Show the metrics a baseline keeps, and by which program, on which data they were made."""
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.drift import KEPT_HEADER, kept_document, kept_rows, kept_table
    from tco.studies.baseline import baseline_path, known_metrics, load, side_by_side

    kept = side_by_side(load(baseline_path(name)))
    wanted = known_metrics(metrics)
    given.emit(
        Answer(
            lambda: document("baseline-show", catalogue_for(None, given.data), kept_document(name, kept, wanted)),
            lambda: [kept_table(name, kept, wanted)],
            KEPT_HEADER,
            kept_rows(kept, wanted),
        )
    )
