"""`tco inputs`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "variant")
def inputs(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file, or a system's id.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="Show inputs alone whose path has all of these words.")] = None,
) -> None:
    """List what a scenario depends on, by the paths that --set takes: value, range, kind and source."""
    from tco.cli.emit import Answer
    from tco.cli.load import evaluate_all
    from tco.foundation.errors import DataError
    from tco.outputs.document import document
    from tco.outputs.given import HEADER, given_rows, given_table, rows_with

    catalogue, (result,) = evaluate_all([scenario], given.data, given.settings, given.variant, priced=False)
    every = given_rows(result)
    rows = rows_with(every, words or [])
    if not rows:
        raise DataError(
            f"no input of {result.scenario} has {' and '.join(map(repr, words or []))} in its path; `tco inputs {result.scenario}` lists all"
        )
    content = {"scenario": result.scenario, "inputs": [dict(zip(HEADER, row, strict=True)) for row in rows]}
    given.emit(Answer(lambda: document("inputs", catalogue, content), lambda: [given_table(result, rows)], HEADER, rows, result.notes))
