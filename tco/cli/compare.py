"""`tco compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set")
def compare(
    given: Given,
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Names or files; none: the four headline racks.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario the others are held against.")] = None,
    practice: Annotated[
        str | None, typer.Option(metavar="FAMILY", help="Put all chips under the practice of one family, such as nvidia; none: each its own.")
    ] = None,
) -> None:
    """Price and rate scenarios side by side."""
    from tco.chain.metrics import METRICS
    from tco.cli.emit import Answer
    from tco.cli.load import HEADLINE, evaluate_all
    from tco.outputs.comparison import comparison_document, comparison_rows, comparison_table
    from tco.outputs.document import document
    from tco.studies.asking import compared

    wanted = given.settings | ({} if practice is None else {"workload.practice": practice})
    catalogue, results = evaluate_all(scenarios or HEADLINE, given.data, wanted)
    base, results = compared(results, baseline)
    given.emit(
        Answer(
            lambda: document("compare", catalogue, comparison_document(results, base)),
            lambda: [comparison_table(results, base)],
            ("scenario", "system", *METRICS),
            comparison_rows(results),
            [f"{result.scenario}: {note}" for result in results for note in (*result.notes, *result.ages.notes)],
        ),
    )
