"""`tco perf`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "plan", "set", "variant")
def perf(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file, or the id of a system or a chip.")],
) -> None:
    """Show the best parallel plan, what it reaches, and its time by operator and by bound."""
    from tco.cli.load import performing
    from tco.outputs.performance import performance_answer

    given.emit(performance_answer(*performing(scenario, given)))
