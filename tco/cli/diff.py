"""`tco diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set")
def diff(
    given: Given,
    a: Annotated[str, typer.Argument(metavar="A", help="A scenario, a saved result, or the JSON of `tco price`.")],
    b: Annotated[str | None, typer.Argument(metavar="B", help="Another one, or A again with --set.", show_default=False)] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 if they differ.")] = False,
    metrics: Annotated[list[str] | None, typer.Option("--metric", metavar="METRIC", help="Show the steps of this metric. Repeatable.")] = None,
) -> None:
    """Show what changed between two scenarios or results, and why, step by step. --set applies to B only."""
    from tco.chain.metrics import METRICS
    from tco.cli.emit import Answer
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import UsageError
    from tco.outputs.document import document
    from tco.outputs.drift import DIFF_HEADER, diff_document, diff_rows, diff_table
    from tco.studies.baseline import known_metrics
    from tco.studies.evaluation import HEADLINE
    from tco.studies.waterfall import between, state_at

    if b is None:
        raise UsageError(f"B is missing: tco diff {a} {HEADLINE[-1]}, or what a setting changes: tco diff {a} {a} --set PATH=VALUE")
    if a in METRICS or b in METRICS:
        metric, other = (a, b) if a in METRICS else (b, a)
        raise UsageError(f"{metric} is a metric: tco diff {other} {HEADLINE[-1]} --metric {metric}")
    wanted = known_metrics(metrics) if metrics else ()
    before, after = state_at(a, given.data), state_at(b, given.data, given.settings)
    found = between(before, after, catalogue_for(a, given.data))
    given.emit(
        Answer(
            lambda: document("diff", catalogue_for(None, given.data), diff_document(a, b, found.moves, found.causes)),
            lambda: [diff_table(a, b, found.moves, found.causes, wanted)],
            DIFF_HEADER,
            diff_rows(found.moves, found.causes),
        )
    )
    if exit_code and (found.moves or found.causes):
        raise typer.Exit(1)
