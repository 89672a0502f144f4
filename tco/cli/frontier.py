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
    from tco.cli.load import catalogue_for
    from tco.outputs.frontiers import frontier_answer
    from tco.studies import frontier as study
    from tco.studies.designs import designs_of

    found = study.frontier(scenarios, prefill or (), given.settings, given.data, ranges, given.texts["hold"])
    given.emit(frontier_answer(catalogue_for(scenarios[-1], given.data), found, designs_of(found) if pareto else None))
