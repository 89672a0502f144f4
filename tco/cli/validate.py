"""`tco validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Data, Form, Format, Output, Quiet, Settings, pairs


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Measured kernels, collectives, training or serving.")],
    kind: Annotated[str | None, typer.Option(help="kernels, collectives, training or inference; none: guessed from the header.")] = None,
    against: Annotated[str | None, typer.Option(metavar="COLUMN", help="Score only the rows predicted as this column.")] = None,
    max_error: Annotated[float | None, typer.Option(min=0, help="Exit 1 if the median error (a fraction) is larger.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Also give every row: in JSON as rows, in CSV instead of the scores.")] = False,
    settings: Settings = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Hold predictions against measurements, each row predicted from its own stated configuration."""
    from tco.cli.emit import Answer, emit
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.validations import SCORES, row_cells, validation_document, validation_tables
    from tco.scenario import plain_inputs
    from tco.studies.validation.run import validate as score
    from tco.values import as_number

    catalogue = catalogue_for(None, data)
    inputs = plain_inputs(catalogue, pairs(settings, "--set"))
    values = inputs.values(as_number)
    found = score(file, catalogue, values, kind, against)
    values.check_given(inputs.is_known)
    header = list(found.rows.columns) if rows else ["group", "member", *SCORES]
    cells = row_cells(found.rows) if rows else [["all", "", found.card["scored"], *(found.card[name] for name in SCORES[1:])]]
    if not rows:
        cells = [*cells, *([group, key, *(one[n] for n in SCORES)] for group, parts in found.card["by"].items() for key, one in parts.items())]
    emit(
        Answer(
            lambda: document("validate", catalogue, validation_document(str(file), found.kind, found.card, found.rows if rows else None)),
            lambda: validation_tables(file.name, found.kind, found.card),
            header,
            cells,
        ),
        form.value,
        output,
        quiet,
    )
    error = found.card["median_ape"]
    if max_error is not None and (error is None or error > max_error):
        raise typer.Exit(1)
