"""`tco uncertainty`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command


@command(app, "set", "hold")
def uncertainty(
    given: Given,
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Name or file of a scenario, or a system on the headline's terms.")],
    baseline: Annotated[str | None, typer.Option(metavar="NAME", help="The scenario it is compared with, on common draws.")] = None,
    samples: Annotated[int, typer.Option(metavar="N", help="How many draws.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="S", help="Other seeds give other draws, the same seed the same.")] = 0,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Worker processes on this machine, each with blocks of 32,768 draws; none: this process alone.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The workers of a Dask scheduler, tcp://HOST:8786.")] = None,
) -> None:
    """Say how sure the metrics are: draw every input within its range, and count how often the baseline is beaten."""
    from tco.outputs.progress import Bar
    from tco.outputs.uncertainties import uncertainty_answer
    from tco.studies import uncertainty as study

    with Bar(given.quiet or samples <= study.BLOCK) as bar:
        asked = partial(study.uncertainty, scenario, baseline, samples, seed, given.texts["hold"], given.settings, given.data)
        found = asked(workers=workers, cluster=cluster, tell=bar.tell)
    given.emit(uncertainty_answer(found))
