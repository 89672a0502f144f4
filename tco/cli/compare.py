"""`tco compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command

if TYPE_CHECKING:
    from tco.chain.result import Result


def halls_of(results: Sequence[Result]) -> list[dict[str, float | None] | None]:
    """Return what each system makes of the site's power; nothing where nobody states it."""
    from tco.chain.placement import SITE_POWER

    if not any(SITE_POWER in result.inputs for result in results):
        return []
    from tco.studies.hall import hall_of  # only a site that is filled asks for it

    return [hall_of(result) for result in results]


@command(app, "set")
def compare(
    given: Given,
    scenarios: Annotated[list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Names or files; none: the four headline racks.")] = None,
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario the others are held against.")] = None,
    hall: Annotated[str | None, typer.Option(metavar="POWER", help="Fill a site with each system, such as '20 MW' from the grid.")] = None,
    practice: Annotated[
        str | None, typer.Option(metavar="FAMILY", help="Put all chips under the practice of one family, such as nvidia; none: each its own.")
    ] = None,
) -> None:
    """Price and rate scenarios side by side."""
    from tco.chain.metrics import METRICS
    from tco.chain.placement import SITE_POWER
    from tco.cli.emit import Answer
    from tco.cli.load import HEADLINE, evaluate_all
    from tco.outputs.comparison import comparison_document, comparison_rows, comparison_table, hall_rows
    from tco.outputs.document import document
    from tco.studies.asking import compared

    wanted = given.settings | ({SITE_POWER: hall} if hall else {}) | ({} if practice is None else {"workload.practice": practice})
    catalogue, results = evaluate_all(scenarios or HEADLINE, given.data, wanted, refuse=False)
    base, results = compared(results, baseline)
    halls = halls_of(results)
    given.emit(
        Answer(
            lambda: document("compare", catalogue, comparison_document(results, base, halls)),
            lambda: [comparison_table(results, base, hall_rows(halls))],
            ("scenario", "system", *METRICS),
            comparison_rows(results),
            [f"{result.scenario}: {note}" for result in results for note in (*result.notes, *result.ages.notes)],
        ),
    )
