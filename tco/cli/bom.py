"""`tco bom`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "variant")
def bom(
    given: Given,
    system: Annotated[str, typer.Argument(help="A system's id; `tco systems list` shows them.")],
) -> None:
    """Show the bill of materials of one scale-up domain."""
    from tco.chain.bills import bill_of_system
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.outputs.bills import HEADER, bill_cells, bill_document, bill_table
    from tco.outputs.document import document

    catalogue = catalogue_for(None, given.data)
    made = bill_of_system(catalogue, system, given.settings, given.variant)
    given.emit(
        Answer(
            lambda: document("bom", catalogue, bill_document(made.system, made.bill, made.rebates)),
            lambda: [bill_table(made.system, made.bill, made.rebates, made.date)],
            HEADER,
            [bill_cells(line) for line in made.bill.lines],
            made.notes,
        ),
    )
