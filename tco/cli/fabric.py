"""`tco fabric`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "variant")
def fabric(
    given: Given,
    system: Annotated[str, typer.Argument(help="A system's id; `tco systems list` shows them.")],
) -> None:
    """Show what the scale-up fabric gives: injection, hops, bisection, all-to-all."""
    from tco.chain.inputs import system_inputs
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.fabric.scopes import fabric_scopes
    from tco.foundation.values import as_number
    from tco.outputs.document import document
    from tco.outputs.fabrics import HEADER, fabric_document, fabric_table, scope_cells

    catalogue = catalogue_for(None, given.data)
    inputs = system_inputs(catalogue, system, given.settings, given.variant)
    values = inputs.values(as_number)
    scopes = fabric_scopes(inputs.system, values)
    notes = [f"{path} is set, but this fabric does not rest on it" for path in inputs.unused(values)]
    given.emit(
        Answer(
            lambda: document("fabric", catalogue, fabric_document(inputs.system, scopes)),
            lambda: [fabric_table(inputs.system, scopes)],
            HEADER,
            [scope_cells(scope) for scope in scopes],
            notes,
        ),
    )
