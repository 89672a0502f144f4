"""A study run: the partitions that its folder lacks, made one by one, here or by workers."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tco.foundation.errors import DataError, TcoError, UsageError
from tco.studies.sweep.folder import Folder, claim, name_of
from tco.studies.sweep.job import Job, data_hash, job_of, program
from tco.studies.sweep.partition import table_of
from tco.studies.sweep.study import read_study

MAX_CASES = 100_000_000
TRIM, MMAP = (-1, 2**28), (-3, 2**25)  # options of mallopt with bytes: what may lie free, and what is asked of the system by itself
COMPRESSION = "zstd"  # of numbers that hardly repeat it is the smallest for the time


class Progress(NamedTuple):
    """How far a sweep is."""

    cases: int
    found: int  # in the folder when it began
    made: int  # since
    partitions: int  # of which there are ...
    finished: int


class Sweep(NamedTuple):
    """A study whose cases are in a folder."""

    job: Job
    folder: str
    progress: Progress

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
    bytes are the same. `tell` is called after each with how far it is. Interrupted or killed, nothing finished is lost.
    """
    asked = read_study(study)
    job = job_of(asked._replace(settings={**asked.settings, **(set or {})}), data)
    layout, place = job.layout, Folder(str(folder))
    if layout.cases > max_cases:
        raise UsageError(f"{asked.where}: has {layout.cases:,} cases, more than the {max_cases:,} that --max-cases allows")
    held = claim(place, job)
    found = sum(layout.cases_in(number) for number in held if number < layout.partitions)
    progress = Progress(layout.cases, found, 0, layout.partitions, len(held))
    if tell is not None:
        tell(progress)
    missing = (number for number in range(layout.partitions) if number not in held)
    try:
        for made in made_by(workers, cluster, job, place, missing):
            progress = progress._replace(made=progress.made + layout.cases_in(made), finished=progress.finished + 1)
            if tell is not None:
                tell(progress)
    except TcoError as error:
        if not progress.finished:
            raise
        kept = f"{progress.finished:,} of {progress.partitions:,} files are finished and kept, run again to go on"
        raise type(error)(f"{error}; {kept}") from None
    place.clear()
    return Sweep(job, place.place, progress)


def made_by(workers: int | None, cluster: str | None, job: Job, folder: Folder, numbers: Iterable[int]) -> Iterator[int]:
    """Yield the numbers of partitions as they are made."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: expected one or more")
    if workers is not None and cluster is not None:
        raise UsageError("--workers starts workers on this machine, --cluster takes those of a scheduler: give one of them")
    if workers is None and cluster is None:
        return (make(job, folder.place, number, folder) for number in numbers)
    from tco.studies.sweep.cluster import made_on

    return made_on(workers, cluster, job, folder, numbers)


def make(job: Job, place: str, number: int, folder: Folder | None = None) -> int:
    """Make one partition and write it to its folder."""
    from pyarrow import parquet

    refuse_stranger(job)
    keep_memory()
    table, _ = table_of(job, number)
    stream = io.BytesIO()
    repeated = ["scenario", *(axis.path for axis in job.axes)]
    parquet.write_table(table, stream, compression=COMPRESSION, use_dictionary=repeated, write_statistics=True)
    (folder or Folder(place)).write(name_of(number), stream.getvalue())
    return number


@cache
def keep_memory() -> None:
    """Let the C library of Linux keep what arrays leave free.

    It gives it back and fetches it anew; a worker of Dask does so at once, which takes twice as long as what is computed in the memory.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, size in (TRIM, MMAP):
            library.mallopt(option, size)


def refuse_stranger(job: Job) -> None:
    """Refuse to compute for a program or on data other than those that run here: the cases would be others."""
    if (why := why_stranger(job, standing(job))) is not None:
        raise DataError(f"a worker {why}; install the same on all")


def standing(job: Job) -> tuple[str, tuple[str, ...]]:
    """Return the program that runs here and the hashes of the data that each scenario sees."""
    baseline = [] if job.baseline is None or job.baseline in job.sources else [job.baseline]
    return program(), tuple(data_hash(one.folders) for one in (*job.sources, *baseline))


def why_stranger(job: Job, other: tuple[str, tuple[str, ...]]) -> str | None:
    """Say what differs, if anything does."""
    if other[0] != job.program:
        return f"runs tco {other[0]}, the study was begun by {job.program}"
    if other[1] != job.data:
        return f"has data {' '.join(dict.fromkeys(other[1]))}, the study was begun on {' '.join(dict.fromkeys(job.data))}"
    return None
