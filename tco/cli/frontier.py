"""`tco frontier`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Data, Form, Format, Output, Quiet, Settings, pairs


@app.command()
def frontier(
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Names or files of scenarios, or systems on the headline's terms.")],
    prefill: Annotated[
        list[str] | None,
        typer.Option("--prefill", metavar="SCENARIO", help="Read prompts on a pool of another system; find the best pair. Repeatable."),
    ] = None,
    settings: Settings = None,
    data: Data = None,
    form: Format = Form.table,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Show what interactivity costs: throughput per chip and dollars per million tokens of every plan that no other beats."""
    from tco.cli.emit import Answer, emit
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.frontiers import HEADER, frontier_document, frontier_rows, frontier_tables
    from tco.studies import asking

    found = asking.frontier(scenarios, prefill or (), pairs(settings, "--set"), data)
    emit(
        Answer(
            lambda: document("frontier", catalogue_for(scenarios[-1], data), frontier_document(found)),
            lambda: frontier_tables(found),
            HEADER,
            frontier_rows(found),
            [f"{one.decode.result.scenario}: {note}" for one in found for note in one.decode.result.notes],
        ),
        form.value,
        output,
        quiet,
    )
