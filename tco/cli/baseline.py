"""`tco baseline save` and `tco baseline check`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import Listing, app
from tco.cli.options import Data, Form, Format, Output, Quiet, Settings, pairs

group = typer.Typer(cls=Listing, no_args_is_help=True, help="Cost regression: keep results, and say what moved since and why.")
app.add_typer(group, name="baseline")
Name = Annotated[str, typer.Argument(help="Name of the baseline, a file in reports/baselines/ of the current folder.")]


@group.command()
def save(
    name: Name,
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="None: the four headline racks.")] = None,
    settings: Settings = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Keep the results of scenarios under a name."""
    from tco.chain.scenario import compare
    from tco.cli.emit import Answer, emit
    from tco.cli.load import HEADLINE, evaluate_all
    from tco.outputs.document import document
    from tco.outputs.table import Table
    from tco.studies.baseline import baseline_path
    from tco.studies.baseline import save as keep
    from tco.studies.state import state_of

    names = list(scenarios or HEADLINE)
    path = baseline_path(name)
    catalogue, results = evaluate_all(names, data, pairs(settings, "--set"))
    compare(results)
    keep(path, {given: state_of(result) for given, result in zip(names, results, strict=True)})
    saved = [[given, str(path)] for given in names]
    emit(
        Answer(
            lambda: document("baseline-save", catalogue, {"name": name, "path": str(path), "scenarios": names}),
            lambda: [Table(("scenario", "kept in"), saved, align="ll")],
            ("scenario", "path"),
            saved,
        ),
        form.value,
        output,
        quiet,
    )


@group.command()
def check(
    name: Name,
    threshold: Annotated[float, typer.Option(min=0, help="Relative change, either way, that counts as a move.")] = 1e-9,
    max_increase: Annotated[float | None, typer.Option(min=0, help="Relative increase that is tolerated; decreases are not loosened.")] = None,
    settings: Settings = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Compare today's results with the kept ones; exit 1 and say why if any metric moved."""
    from tco.chain.scenario import compare
    from tco.cli.emit import Answer, emit
    from tco.cli.load import evaluate_all
    from tco.outputs.document import document
    from tco.outputs.drift import HEADER, drift_document, drift_rows, drift_table
    from tco.studies.baseline import baseline_path, drifts, load
    from tco.studies.state import state_of

    kept = load(baseline_path(name))
    catalogue, results = evaluate_all(list(kept), data, pairs(settings, "--set"))
    compare(results)
    found = drifts(kept, {given: state_of(result) for given, result in zip(kept, results, strict=True)}, threshold, max_increase)
    emit(
        Answer(
            lambda: document("baseline-check", catalogue, drift_document(name, found)),
            lambda: [drift_table(name, len(kept), found)],
            HEADER,
            drift_rows(found),
        ),
        form.value,
        output,
        quiet,
    )
    if found:
        raise typer.Exit(1)
