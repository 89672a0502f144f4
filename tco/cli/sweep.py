"""`tco sweep`."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from tco.cli import app
from tco.cli.options import Given, command

STOPPED = 130  # the exit code of what Ctrl-C ends


@command(app, "set", usual=("data", "form", "quiet", "redact"))
def sweep(
    given: Given,
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A TOML file, or the name of a shipped study.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder of the cases, or a URL such as s3://...")],
    workers: Annotated[int | None, typer.Option(metavar="N", help="Worker processes on this machine; none: this process alone.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The workers of a Dask scheduler, tcp://HOST:8786.")] = None,
    max_cases: Annotated[int, typer.Option(metavar="N", help="Refuse a study of more cases.")] = 100_000_000,
) -> None:
    """Run a study over many cases, grids, ranges and draws, and write them as Parquet; resumes after interruption.

    The figures that its answer states are held against the cases: exit 1 names those that are no longer today's. With --set, or data of your
    own, the question is another, and none is held.
    """
    from tco.cli.emit import Answer
    from tco.foundation.streams import tell
    from tco.outputs.document import document
    from tco.outputs.progress import Bar
    from tco.outputs.sweeps import header, rows, sweep_document, sweep_tables
    from tco.studies.sweep.answer import checks
    from tco.studies.sweep.ground import catalogue_on
    from tco.studies.sweep.run import summary
    from tco.studies.sweep.run import sweep as run

    keep_own(given, study)
    try:
        with Bar(given.quiet) as bar:
            asked = partial(run, study, output, workers=workers, cluster=cluster, max_cases=max_cases)
            found = asked(set=given.settings, data=given.data, tell=bar.tell)
    except KeyboardInterrupt:
        tell("stopped; what is finished is kept, and the same command goes on from there")
        raise SystemExit(STOPPED) from None
    said, answer = summary(found), checks(found)
    given.emit(
        Answer(
            lambda: document("sweep", catalogue_on(found.job.sources[0].folders), sweep_document(found, said, answer)),
            lambda: sweep_tables(found, said, answer),
            header(found, said),
            rows(found, said),
            found.notes,
        )
    )
    if not all(one.holds for one in answer):
        raise typer.Exit(1)


def keep_own(given: Given, study: str) -> None:
    """Refuse to write cases that are to keep own values back: they are made of them. Nothing of one's own is in a shipped study."""
    if not given.texts["redact"]:
        return
    from pathlib import Path

    from tco.cli.keeping import shown
    from tco.foundation.errors import UsageError
    from tco.studies.sweep.study import shipped_studies

    if study not in shipped_studies() or given.data or given.settings or Path("data").is_dir():
        raise UsageError("--redact: the cases of a sweep are made of your own values and cannot withhold them; run a shipped study without any")
    shown({})
    given.texts["redact"] = False  # nothing is left to keep back
