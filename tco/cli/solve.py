"""`tco solve`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "variant")
def solve(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    vary: Annotated[str, typer.Option("--vary", metavar="PATH", help="The input to move.")],
    until: Annotated[
        str, typer.Option("--until", metavar="METRIC=VALUE", help="The target: METRIC=VALUE, METRIC=+10%, or METRIC=SCENARIO for that scenario's.")
    ],
    start: Annotated[str | None, typer.Option("--from", metavar="X", help="Where to begin to look; a thirtieth of today's unless given.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="Y", help="Where to end; thirty times today's unless given.")] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="SCENARIO", help="What a ratio is held against, gb200-nvl72 unless named.")
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Hold today's plan; it is chosen anew otherwise.")] = False,
) -> None:
    """Find the value of an input at which a metric reaches a target: the break-even."""
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.solutions import HEADER, solution_document, solution_rows, solution_table
    from tco.studies.solve import solve as asked

    found = asked(scenario, vary, until, (start, end), given.data, given.settings, given.variant, baseline=baseline, hold=hold)
    given.emit(
        Answer(
            lambda: document("solve", catalogue_for(scenario, given.data), solution_document(found)),
            lambda: [solution_table(found)],
            HEADER,
            solution_rows(found),
            found.notes,
        )
    )
