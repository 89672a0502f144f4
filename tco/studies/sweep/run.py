"""A study run: the partitions that its folder lacks, made one by one, here or by workers."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from tco.foundation.arithmetic import mixed
from tco.foundation.errors import TcoError, UsageError, library
from tco.studies.sweep.folder import MANIFEST, Folder, claim, manifest, name_of
from tco.studies.sweep.job import Job, figures_of, job_of
from tco.studies.sweep.partition import table_of
from tco.studies.sweep.study import read_study
from tco.studies.sweep.work import Progress, done_by

MAX_CASES = 100_000_000
COMPRESSION = "zstd"  # of numbers that hardly repeat it is the smallest for the time


class Sweep(NamedTuple):
    """A study whose cases are in a folder."""

    job: Job
    folder: str
    progress: Progress
    notes: list[str]

    def to_frame(self) -> Any:
        """Return the cases as a pandas data frame, as `pandas.read_parquet` of the folder does."""
        import pandas as pd

        return pd.read_parquet(self.folder)


def sweep(
    study: str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    max_cases: int = MAX_CASES,
    set: Mapping[str, str] | None = None,  # noqa: A002 - the name users know from the command line
    data: Path | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Run a study and write its cases to a folder as Parquet: a shipped study by name, a TOML file, or the same as a table.

    A folder that holds some of the cases is gone on with; one of another study, other data or another version raises `UsageError`. The
    partitions are made in this process, by so many `workers` of this machine, or by those of a Dask `cluster` (`tcp://host:8786`); the
    bytes are the same where numpy and its instructions are, else the figures to 1e-9, with a note. `tell` is called after each with how far it
    is. Interrupted or killed, nothing finished is lost.
    """
    asked = read_study(study)
    library("pyarrow", "Parquet", "sweep")  # before anything is written
    job = job_of(asked._replace(settings={**asked.settings, **(set or {})}), data)
    layout, place = job.layout, Folder(str(folder))
    if layout.cases > max_cases:
        raise UsageError(f"{asked.where}: has {layout.cases:,} cases, more than the {max_cases:,} that --max-cases allows")
    held, kinds = claim(place, job)
    found = sum(layout.cases_in(number) for number in held if number < layout.partitions)
    progress = Progress(layout.cases, found, 0, layout.partitions, len(held))
    if tell is not None:
        tell(progress)
    missing = (number for number in range(layout.partitions) if number not in held)
    try:
        for made, _, arithmetic in done_by(workers, cluster, lambda: job.ground, partial(figures_of, job), partial(make, job, place.place), missing):
            if place.lacks(name_of(made)):
                raise UsageError(f"{place.place}: a worker has written where it cannot be seen from here; name a folder that all share, or a URL")
            if arithmetic not in kinds:
                kinds.add(arithmetic)
                place.write(MANIFEST, manifest(job, kinds))
            progress = progress._replace(made=progress.made + layout.cases_in(made), finished=progress.finished + 1)
            if tell is not None:
                tell(progress)
    except TcoError as error:
        if not progress.finished:
            raise
        kept = f"{progress.finished:,} of {progress.partitions:,} files are finished and kept, run again to go on"
        raise type(error)(f"{error}; {kept}") from None
    place.clear()
    return Sweep(job, place.place, progress, mixed(kinds))


def make(job: Job, place: str, number: int) -> None:
    """Make one partition and write it to its folder."""
    parquet = library("pyarrow.parquet", "Parquet", "sweep")

    table, _ = table_of(job, number)
    stream = io.BytesIO()
    repeated = ["scenario", *(axis.path for axis in job.axes)]
    parquet.write_table(table, stream, compression=COMPRESSION, use_dictionary=repeated, write_statistics=True)
    folder_at(place).write(name_of(number), stream.getvalue())


folder_at = lru_cache(maxsize=4)(Folder)  # one connection to a store serves all of a worker's partitions


# ---------------------------------------------------------------- what it comes to
FEW = 40  # cases that are shown one by one
MANY = 2_000_000  # cases beyond which they are only counted: reading them takes as long as the program may take to answer


class Span(NamedTuple):
    """What a metric runs through in the cases of a scenario."""

    scenario: str
    metric: str
    cases: int  # that have it
    low: float
    median: float
    high: float


class Summary(NamedTuple):
    """How many cases were kept, and what is shown of them."""

    rows: int
    shown: Any  # a data frame of all, where they are few
    spans: list[Span]


def summary(found: Sweep) -> Summary:
    """Return what a finished sweep comes to."""
    dataset = library("pyarrow.dataset", "Parquet", "sweep")

    parts = dataset.dataset(found.folder, format="parquet", filesystem=None)
    rows = parts.count_rows()
    if rows > MANY:
        return Summary(rows, None, [])
    if rows <= FEW:
        return Summary(rows, found.to_frame(), [])
    report = list(found.job.study.report)
    frame = parts.to_table(columns=["scenario", *report]).to_pandas()
    spans = []
    for scenario in found.job.study.scenarios:
        mine = frame[frame["scenario"] == scenario]
        for metric in report:
            many = mine[metric].dropna()
            if len(many):
                spans.append(Span(scenario, metric, len(many), float(many.min()), float(many.median()), float(many.max())))
    return Summary(rows, None, spans)
