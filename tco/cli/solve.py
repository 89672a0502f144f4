"""`tco solve`."""

from __future__ import annotations

from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "hold", "variant")
def solve(
    given: Given,
    scenario: Annotated[str, typer.Argument(help="A scenario's name or file.")],
    vary: Annotated[list[str], typer.Option("--vary", metavar="PATH", help="The input to move, or terms.date; of two, a map says who wins where.")],
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="METRIC=VALUE",
            help="The target: METRIC=VALUE, METRIC=+10%, or METRIC=SCENARIO for that scenario's; of a map METRIC=SCENARIO,...",
        ),
    ],
    start: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="X",
            help="Where to begin to look, such as '96 GB', for each; unless given a thirtieth of today's, of two inputs a third, of a date its own.",
        ),
    ] = None,
    end: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="Y", help="Where to end, for each; unless given thirty times today's, of two inputs three times, of a date two years on."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="SCENARIO", help="What a ratio is relative to, gb200-nvl72 unless named.")
    ] = None,
) -> None:
    """Find the value of an input at which a metric reaches a target: the break-even. Of two inputs, map who wins where."""
    from tco.foundation.errors import UsageError

    for option, some in (("--from", start), ("--to", end)):
        if some and len(some) != len(vary):
            raise UsageError(f"{option} is given {len(some)} times and --vary {len(vary)}, expected one for each or none")
    ends = [(start[at] if start else None, end[at] if end else None) for at in range(len(vary))]
    if len(vary) > 1:
        if baseline or given.texts["hold"]:
            raise UsageError("--baseline and --hold go with one --vary: a map compares scenarios, each with its own best plan")
        mapped(scenario, vary, until, ends, given)
        return
    from tco.cli.load import catalogue_for
    from tco.outputs.solutions import solution_answer
    from tco.studies.solve import solve as asked

    found = asked(scenario, vary[0], until, ends[0], given.data, given.settings, given.variant, baseline=baseline, hold=given.texts["hold"])
    given.emit(solution_answer(catalogue_for(scenario, given.data), found))


def mapped(scenario: str, vary: list[str], until: str, ends: list[tuple[str | None, str | None]], given: Given) -> None:
    """Print who wins where over two inputs."""
    from tco.cli.load import catalogue_for
    from tco.foundation.errors import UsageError
    from tco.outputs.solutions import map_answer
    from tco.studies.maps import map_of
    from tco.studies.solve import is_number, target_of

    if len(vary) > 2:
        raise UsageError(f"--vary is given {len(vary)} times, expected one input or two")
    metric, words = target_of(until)
    if is_number(words):
        raise UsageError(f"--until {until}: of two inputs a map says which scenario wins: expected METRIC=SCENARIO,...")
    names = list(dict.fromkeys([scenario, *(one.strip() for one in words.split(","))]))
    found = map_of(names, vary, metric, ends, given.settings, given.data, given.variant)
    given.emit(map_answer(catalogue_for(scenario, given.data), found))
