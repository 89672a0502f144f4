"""`tco metrics`."""

from __future__ import annotations

import typer

from tco.cli import app
from tco.cli.help import Listing
from tco.cli.options import Given, command

group = typer.Typer(cls=Listing, no_args_is_help=True, help="The figures a result carries, which `explain`, `diff` and others name.")
app.add_typer(group, name="metrics")
HEADER = ("id", "unit", "better", "what")


@command(group, name="list")
def list_metrics(given: Given) -> None:
    """List all metrics: unit, which way is better, and what each is."""
    from tco.chain.metrics import METRICS, is_worse
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.outputs.document import document
    from tco.outputs.table import Table

    better = {None: "", True: "less", False: "more"}
    rows = [[name, one.unit, better[is_worse(name, 1.0)], one.label] for name, one in METRICS.items()]
    items = [dict(zip(HEADER, row, strict=True)) for row in rows]
    given.emit(
        Answer(
            lambda: document("metrics-list", catalogue_for(None, given.data), {"items": items}),
            lambda: [Table(HEADER, rows, f"{len(rows)} metrics", align="l" * len(HEADER))],
            HEADER,
            rows,
        )
    )
