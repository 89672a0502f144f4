"""`tco inputs` and `tco metrics`: what may be set, and what may be asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import Given, command

metrics = typer.Typer(cls=Listing, no_args_is_help=True, help="The figures a result carries, which `explain`, `diff` and others name.")
app.add_typer(metrics, name="metrics")


@command(app, "set", "variant")
def inputs(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file, or a system's id.")],
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="Show inputs alone whose path has all of these words.")] = None,
) -> None:
    """List what a scenario depends on, by the paths that --set takes: value, range, kind and source."""
    from tco.cli.load import evaluate_all
    from tco.foundation.errors import DataError
    from tco.outputs.shelves import inputs_answer, stated

    catalogue, (result,) = evaluate_all([scenario], given.data, given.settings, given.variant, priced=False)
    rows = [row for row in stated(result) if all(word.lower() in row.path.lower() for word in words or ())]
    if not rows:
        raise DataError(
            f"no input of {result.scenario} has {' and '.join(map(repr, words or []))} in its path; `tco inputs {result.scenario}` lists all"
        )
    given.emit(inputs_answer(catalogue, result, rows))


@command(metrics, name="list")
def list_metrics(given: Given) -> None:
    """List all metrics: unit, which way is better, and what each is."""
    from tco.chain.metrics import METRICS, is_worse
    from tco.cli.load import catalogue_for
    from tco.outputs.shelves import list_answer

    better = {None: "", True: "less", False: "more"}
    items = [{"id": name, "unit": one.unit, "better": better[is_worse(name, 1.0)], "what": one.label} for name, one in METRICS.items()]
    given.emit(list_answer("metrics", catalogue_for(None, given.data), items))
