"""`tco bom`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Data, Form, Format, Output, Quiet, Redact, Settings, Variants, pairs


@app.command()
def bom(
    system: Annotated[str, typer.Argument(help="A system's id; `tco systems list` shows them.")],
    settings: Settings = None,
    variant: Variants = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
    redact: Redact = False,
) -> None:
    """Show the bill of materials of one scale-up world."""
    from tco.chain.scenario import bill_of_system
    from tco.cli.emit import Answer, emit
    from tco.cli.load import catalogue_for
    from tco.outputs.bills import HEADER, bill_cells, bill_document, bill_table
    from tco.outputs.document import document

    catalogue = catalogue_for(None, data)
    made = bill_of_system(catalogue, system, pairs(settings, "--set"), pairs(variant, "--variant"))
    emit(
        Answer(
            lambda: document("bom", catalogue, bill_document(made.system, made.bill, made.rebates, redact)),
            lambda: [bill_table(made.system, made.bill, made.rebates, made.date, redact)],
            HEADER,
            [bill_cells(line, redact) for line in made.bill.lines],
            made.notes,
        ),
        form.value,
        output,
        quiet,
    )
