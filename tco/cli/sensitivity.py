"""`tco sensitivity`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "hold", "variant")
def sensitivity(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    metric: Annotated[str, typer.Option("--metric", metavar="METRIC", help="The metric whose drivers are asked for.")] = (
        "usd_per_million_output_tokens"
    ),
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="SCENARIO", help="What a ratio is relative to, gb200-nvl72 unless named.")
    ] = None,
    sobol: Annotated[
        bool, typer.Option("--sobol", help="Add Sobol indices: shares of the variance with all inputs drawn together, the plan held (--hold).")
    ] = False,
    samples: Annotated[int, typer.Option("--samples", metavar="N", help="Rows of a Sobol sample, a power of two.")] = 1024,
    seed: Annotated[int, typer.Option("--seed", metavar="S", min=0, help="Of the sample.")] = 0,
) -> None:
    """Show what drives a metric: every input at its P5 and P95, and the three estimates most worth finding out."""
    from tco.cli.emit import Answer
    from tco.outputs.document import document
    from tco.outputs.sensitivities import HEADER, sensitivity_document, sensitivity_notes, sensitivity_rows, sensitivity_table
    from tco.studies.sensitivity import sensitivity as asked

    found = asked(
        scenario,
        metric,
        given.data,
        given.settings,
        given.variant,
        baseline=baseline,
        hold=given.texts["hold"],
        sobol=samples if sobol else None,
        seed=seed,
    )
    own = found.sides[0]
    given.emit(
        Answer(
            lambda: document("sensitivity", own.catalogue, sensitivity_document(found)),
            lambda: [sensitivity_table(found)],
            HEADER,
            sensitivity_rows(found),
            [*own.result.notes, *sensitivity_notes(found)],
        )
    )
