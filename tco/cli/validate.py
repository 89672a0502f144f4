"""`tco validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.foundation.values import Values


@command(app, "set")
def validate(
    given: Given,
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured kernels, collectives, training or serving.")],
    kind: Annotated[str | None, typer.Option(help="kernels, collectives, training or inference; left out: guessed from the header.")] = None,
    against: Annotated[str | None, typer.Option(metavar="COLUMN", help="Score only the rows predicted as this column.")] = None,
    max_error: Annotated[float | None, typer.Option(min=0, help="Exit 1 if the median error (a fraction) is larger.")] = None,
    alias: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="What names in the rows mean: name,part or name,model.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Also give every row: in JSON as rows, in CSV instead of the scores.")] = False,
    envelopes: Annotated[
        bool, typer.Option("--envelopes", help="Compare the best plan with the published runs of each chip, model, formats and lengths instead.")
    ] = False,
    back_test: Annotated[
        bool, typer.Option("--back-test", help="Compare the rows with the P10 to P90 each chip would have been given had nobody measured it.")
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Also write KIND.csv, KIND.md and a scatter KIND.png there.")] = None,
) -> None:
    """Compare predictions with measurements, each row predicted from its own stated configuration."""
    from tco.chain.inputs import plain_inputs
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import UsageError
    from tco.foundation.values import as_number
    from tco.outputs.validations import validation_answer, write_report
    from tco.studies.validation.run import validate as score

    if max_error is not None and not max_error >= 0:
        raise UsageError(f"--max-error {max_error}: expected a fraction such as 0.1")
    catalogue = catalogue_for(None, given.data)
    inputs = plain_inputs(catalogue, given.settings)
    values = inputs.values(as_number)
    if back_test:
        held_against_ranges(file, catalogue, given)
        return
    if envelopes:
        held_against_runs(file, catalogue, values, given)
        return
    found = score(file, catalogue, values, kind, against, alias)
    values.check_given(inputs.is_known)
    if report is not None:
        write_report(found, file.name, report)
    given.emit(validation_answer(catalogue, file, found, rows))
    error = found.card["median_ape"]
    if max_error is not None and (error is None or error > max_error):
        raise typer.Exit(1)


def held_against_runs(file: Path, catalogue: Catalogue, values: Values, given: Given) -> None:
    """Print how the best plans stand against the published runs of a file."""
    from tco.foundation.errors import UsageError
    from tco.outputs.validations import envelopes_answer
    from tco.studies.validation.envelopes import against_runs
    from tco.studies.validation.measured import read_measured

    kind, table = read_measured(file)
    if kind != "inference":
        raise UsageError(f"--envelopes: {file} holds {kind}, expected serving runs")
    found, whole = against_runs(table, catalogue, values)
    given.emit(envelopes_answer(catalogue, file, found, whole))


def held_against_ranges(file: Path, catalogue: Catalogue, given: Given) -> None:
    """Print what share of a file's rows lies inside the ranges that other chips would have given them."""
    from tco.outputs.validations import back_test_answer
    from tco.studies.validation.back_test import DRAWS, back_test

    given.emit(back_test_answer(catalogue, file, back_test(file, catalogue, given.settings), DRAWS))
