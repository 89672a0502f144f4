"""`tco frontier`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "hold")
def frontier(
    given: Given,
    scenarios: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Names or files of scenarios, or systems on the headline's terms.")],
    prefill: Annotated[
        list[str] | None,
        typer.Option("--prefill", metavar="SCENARIO", help="Read prompts on a pool of another system; find the best pair. Repeatable."),
    ] = None,
    pareto: Annotated[
        bool,
        typer.Option("--pareto", help="Hold all designs against each other: cost, throughput, interactivity and power; name what beats what."),
    ] = False,
    ranges: Annotated[bool, typer.Option("--range", help="Draw the inputs within their ranges at every point: P10 to P90 along it.")] = False,
) -> None:
    """Show what interactivity costs: throughput per chip and dollars per million tokens of every plan that no other beats."""
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.frontiers import frontier_document, frontier_header, frontier_rows, frontier_tables, unsure_words
    from tco.studies import frontier as study

    found = study.frontier(scenarios, prefill or (), given.settings, given.data, ranges, given.texts["hold"])
    catalogue = catalogue_for(scenarios[-1], given.data)
    notes = [f"{one.decode.result.scenario}: {note}" for one in found for note in (*filter(None, [unsure_words(one)]), *one.decode.result.notes)]
    if not pareto:
        given.emit(
            Answer(
                lambda: document("frontier", catalogue, frontier_document(found)),
                lambda: frontier_tables(found),
                frontier_header(found),
                frontier_rows(found),
                notes,
            )
        )
        return
    from tco.outputs import designs as shown
    from tco.studies.designs import designs_of

    designs = designs_of(found)
    given.emit(
        Answer(
            lambda: document("frontier", catalogue, frontier_document(found) | shown.designs_document(designs)),
            lambda: shown.design_tables(found, designs),
            shown.design_header(found),
            shown.design_rows(designs),
            notes,
        )
    )
