"""A study's run: it computes the partitions that its folder lacks, here or by workers.

A file is complete or does not exist. A partition is written under a name that begins with `_`,
which readers pass over, brought to the disk, and then renamed in one step. Local folders are
written directly, any other place (`s3://...`, `gs://...`) through fsspec.

The manifest holds the SHA-256 of each partition. A partition with another SHA-256 is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from tco.core.errors import TcoError, UsageError, library
from tco.core.files import open_regular_file
from tco.core.numeric_environment import agree, arithmetic, mixed_arithmetic_notes
from tco.core.types import JsonMapping, is_whole_number
from tco.evaluation.workers import Figures, Piece, Progress, run_pieces, useful_workers
from tco.sweeps.job import SweepJob, fingerprint_metrics, partition_table, prepare_sweep
from tco.sweeps.study import read_study

MANIFEST = "_study.json"
SCHEMA = "tco.sweep-study/1"
BEGIN, END = "part-", ".parquet"
UNFINISHED = "_unfinished-"
DAMAGED_PARTS_NAMED = 3  # damaged partitions that a note names


class Folder:
    """A place that holds the partitions of one study."""

    def __init__(self, folder_location: str) -> None:
        self.place = self.root = (
            folder_location if "://" in folder_location else os.path.abspath(folder_location)
        )
        self.remote: Any = None
        if "://" in folder_location:
            with self.access():
                self.remote, self.root = filesystem(folder_location)

    @contextlib.contextmanager
    def access(self, verb: str = "written") -> Iterator[None]:
        """Turn what a place refuses into an error for its user."""
        try:
            yield
        except (TcoError, KeyboardInterrupt):
            raise
        except OSError as error:
            raise UsageError(
                f"{self.place}: cannot be {verb} ({error.strerror or error})"
            ) from None
        except Exception as error:
            if self.remote is None and "://" not in self.place:
                raise
            # each store has errors of its own
            raise UsageError(
                f"{self.place}: cannot be {verb} ({type(error).__name__}: {error})"
            ) from None

    def make(self) -> None:
        """Make the folder, if it is not there."""
        with self.access():
            if self.remote is not None:
                self.remote.makedirs(self.root, exist_ok=True)
            else:
                os.makedirs(self.place, exist_ok=True)

    def names(self) -> list[str]:
        """Return the names of the files in the folder."""
        with self.access():
            if self.remote is not None:
                self.remote.invalidate_cache(self.root)
                return [
                    str(path).rstrip("/").rpartition("/")[2]
                    for path in self.remote.ls(self.root, detail=False)
                ]
            return os.listdir(self.place)

    def lacks(self, file_name: str) -> bool:
        """Say whether a local folder lacks a file; all workers see what is written to a URL."""
        return self.remote is None and not os.path.exists(os.path.join(self.place, file_name))

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self.access("read"):
            if self.remote is not None:
                content: bytes = self.remote.cat_file(f"{self.root}/{name}")
                return content
            with open_regular_file(os.path.join(self.place, name)) as stream:
                return stream.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file such that it is whole or not there, whenever the program is killed."""
        unfinished = f"{UNFINISHED}{name}-{uuid4().hex[:12]}"
        with self.access():
            if self.remote is not None:
                self.remote.pipe_file(f"{self.root}/{unfinished}", content)
                self.remote.mv(f"{self.root}/{unfinished}", f"{self.root}/{name}")
                return
            path, final = os.path.join(self.place, unfinished), os.path.join(self.place, name)
            try:
                with open(path, "xb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(path, final)
            except FileNotFoundError:
                # another run of the same study may have written it and cleared the unfinished file
                if not os.path.exists(final):
                    raise
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                raise
            _flush_names(self.place)

    def clear(self) -> None:
        """Remove what killed runs left unfinished."""
        for file_name in self.names():
            if file_name.startswith(UNFINISHED):
                with contextlib.suppress(OSError):
                    if self.remote is not None:
                        self.remote.rm_file(f"{self.root}/{file_name}")
                    else:
                        os.unlink(os.path.join(self.place, file_name))


def filesystem(folder_location: str) -> tuple[Any, str]:
    """Return the filesystem and the inner path of the URL `folder_location`.

    An unknown protocol or a missing library raises `UsageError`.
    """
    fsspec = library("fsspec", folder_location, "cluster")
    try:
        file_system, root = fsspec.url_to_fs(folder_location)
    except (ImportError, ValueError) as error:  # no such protocol, or one whose library is missing
        raise UsageError(f"{folder_location}: cannot be written ({error})") from None
    return file_system, root.rstrip("/")


def _flush_names(folder: str) -> None:
    """Bring the names of a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---------------------------------------------------------------- of one study
def _partition_file_name(number: int) -> str:
    return f"{BEGIN}{number:06d}{END}"


def _partition_number(file_name: str, partitions: int) -> int | None:
    digits = file_name.removeprefix(BEGIN).removesuffix(END)
    if not is_whole_number(digits) or len(digits) > len(str(MAX_CASES)):
        return None
    number = int(digits)
    return number if number < partitions and file_name == _partition_file_name(number) else None


class Manifest:
    """Manifest of a study's folder: the study, its arithmetic, and the SHA-256 of each part."""

    def __init__(self, folder: Folder, job: SweepJob) -> None:
        self.folder, self.job = folder, job
        self.arithmetics = {arithmetic()}
        self.checksums: dict[str, str] = {}  # by file name

    def add_part(self, number: int, checksum: str, made_with: str) -> None:
        """Record a finished partition."""
        self.checksums[_partition_file_name(number)] = checksum
        self.arithmetics.add(made_with)
        self.write()

    @cached_property
    def figures(self) -> Figures:
        """Metrics by which another arithmetic is compared with this one."""
        return fingerprint_metrics(self.job)

    def write(self) -> None:
        """Write the manifest as JSON; equal machines write equal bytes."""
        job, layout = self.job, self.job.layout
        content = {
            "schema": SCHEMA,
            "program": job.environment.program,
            "data": list(job.environment.data),
            "inputs": job.inputs_hash,
            "study": dict(job.study.document),
            "set": dict(job.study.settings),
            "cases": layout.cases,
            "partitions": layout.partitions,
            "arithmetic": sorted(self.arithmetics),
            "figures": list(self.figures),
            "columns": [{"name": column_name, "unit": unit} for column_name, unit in job.columns],
            "sha256": dict(sorted(self.checksums.items())),
        }
        manifest_text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
        self.folder.write(MANIFEST, f"{manifest_text}\n".encode())

    def read(self) -> None:
        """Read arithmetics and checksums; a folder of anything else raises `UsageError`."""
        try:
            content = json.loads(self.folder.read(MANIFEST))
            data_hashes, program, inputs = content["data"], content["program"], content["inputs"]
            if inputs != self.job.inputs_hash:
                raise UsageError(self._refusal(_why_another(self.job, program, data_hashes)))
            arithmetics, figures = set(content["arithmetic"]), content["figures"]
            checksums = dict(content["sha256"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(
                f"{self.folder.place}/{MANIFEST}: is no study's; expected a new or empty folder, "
                "or one of this study"
            ) from None
        if arithmetic() not in arithmetics and not agree(figures, self.figures):
            makers = " and ".join(sorted(arithmetics))
            raise UsageError(
                self._refusal(f"with other figures by {makers}, this is {arithmetic()}")
            )
        self.arithmetics, self.checksums = arithmetics, checksums

    def _refusal(self, why: str) -> str:
        return f"{self.folder.place}: was made {why}; name another folder"


def _why_another(job: SweepJob, program: str, data_hashes: Any) -> str:
    """Return the difference between a study's folder and this study."""
    environment = job.environment
    if program != environment.program:
        return f"by tco {program}, this is {environment.program}"
    if data_hashes != list(environment.data):
        before, today = (
            " ".join(dict.fromkeys(hashes)) for hashes in (data_hashes, environment.data)
        )
        return f"on data {before}, today's is {today}"
    return "for another study, or the same with other settings or scenarios"


class ClaimedFolder(NamedTuple):
    """An output folder that belongs to a study."""

    manifest: Manifest
    intact: set[int]  # numbers of the partitions whose checksum is right
    damaged: list[str]  # file names of the other partitions


def _claim_output_folder(folder: Folder, job: SweepJob) -> ClaimedFolder:
    """Claim a new, an empty or an unfinished folder for a study.

    Any other folder raises `UsageError`. A partition is intact if its SHA-256 is right.
    """
    folder.make()
    file_names = sorted(folder.names())
    manifest = Manifest(folder, job)
    begun = MANIFEST in file_names
    if begun:
        manifest.read()
    parts = [file_name for file_name in file_names if not file_name.startswith((".", "_"))]
    partitions = job.layout.partitions if begun else 0
    numbers = {file_name: _partition_number(file_name, partitions) for file_name in parts}
    if strange := [file_name for file_name, number in numbers.items() if number is None]:
        raise UsageError(
            f"{folder.place}: holds other files ({strange[0]}), expected a new or empty folder, "
            "or one of this study"
        )
    if not begun:
        manifest.write()
    checksums = {
        file_name: checksum
        for file_name in parts
        if (checksum := checksum_of(folder.read(file_name))) == manifest.checksums.get(file_name)
    }
    manifest.checksums = checksums
    intact_partitions = {
        number
        for file_name, number in numbers.items()
        if number is not None and file_name in checksums
    }
    return ClaimedFolder(
        manifest,
        intact_partitions,
        [file_name for file_name in parts if file_name not in checksums],
    )


def checksum_of(content: bytes) -> str:
    """Return the SHA-256 of a file's content as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _damage_notes(part_names: list[str]) -> list[str]:
    """Return a note on parts that were made again."""
    if not part_names:
        return []
    if len(part_names) == 1:
        return [f"{part_names[0]} was made again: its SHA-256 is not the one in {MANIFEST}"]
    listed = ", ".join(part_names[:DAMAGED_PARTS_NAMED]) + (
        ", ..." if len(part_names) > DAMAGED_PARTS_NAMED else ""
    )
    return [
        f"{len(part_names)} parts were made again, because their SHA-256 is not the one in "
        f"{MANIFEST}: {listed}"
    ]


def _worker_notes(workers: int | None, missing: int) -> list[str]:
    """Return a note on workers that had nothing to do and were not started."""
    started = workers if workers is None else useful_workers(workers, missing)
    if started == workers:
        return []
    return [
        f"--workers {workers}: {started} started, one for each of the {missing:,} missing files "
        "and at most four per CPU"
    ]


MAX_CASES = 100_000_000
COMPRESSION = "zstd"  # of numbers that hardly repeat it is the smallest for the time


class Sweep(NamedTuple):
    """A study whose cases are in a folder."""

    job: SweepJob
    folder: str
    progress: Progress
    notes: list[str]

    def dataset(self) -> Any:
        """Return the cases as a pyarrow dataset, from a local folder or a URL."""
        dataset = library("pyarrow.dataset", "Parquet", "sweep")
        output_folder = folder_at(self.folder)
        with output_folder.access("read"):
            return dataset.dataset(
                output_folder.root, format="parquet", filesystem=output_folder.remote
            )

    def to_frame(self) -> Any:
        """Return the cases as a pandas data frame, as `pandas.read_parquet` of the folder does."""
        return self.dataset().to_table().to_pandas()


def sweep(
    study: str | Path | JsonMapping,
    folder: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    max_cases: int = MAX_CASES,
    set: Mapping[str, str] | None = None,  # noqa: A002 - the name users know from the command line
    data: Path | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> Sweep:
    """Run a study and write its cases to a folder as Parquet.

    A folder with a part of the cases is completed, and a run that is killed loses nothing finished.
    Figures are equal bytes on equal numpy and processor instructions, else they agree to 1e-9.

    Args:
        study: Name of a shipped study, path of a TOML file, or the document as a table.
        folder: Path or URL of the output folder.
        workers: Number of workers here; None leaves the work to this process or the cluster.
        cluster: Address of a Dask scheduler, such as `tcp://host:8786`.
        max_cases: Largest number of cases that may be run.
        set: Settings by input path, which replace the settings of the study.
        data: Folder of further user data; None without a further folder.
        tell: Function that gets the progress at the start and after each partition.

    Returns:
        Study with its folder, progress and notes.

    Raises:
        UsageError: Another study, data or version, too many cases, or no pyarrow.
        DataError: The study is unknown or wrong.

    """
    parsed_study = read_study(study)
    library("pyarrow", "Parquet", "sweep")  # before anything is written
    settings = {**parsed_study.settings, **(set or {})}
    job = prepare_sweep(parsed_study._replace(settings=settings), data)
    layout, output_folder = job.layout, Folder(str(folder))
    if layout.cases > max_cases:
        raise UsageError(
            f"{parsed_study.where}: has {layout.cases:,} cases, more than the {max_cases:,} that "
            "--max-cases allows"
        )
    manifest, intact_partitions, damaged = _claim_output_folder(output_folder, job)
    finished_cases = sum(map(layout.cases_in, intact_partitions))
    progress = Progress(layout.cases, finished_cases, 0, layout.partitions, len(intact_partitions))
    if tell is not None:
        tell(progress)
    missing = [number for number in range(layout.partitions) if number not in intact_partitions]
    make = partial(_write_partition, job, output_folder.place)
    measure = partial(fingerprint_metrics, job)
    pieces = run_pieces(workers, cluster, lambda: job.environment, measure, make, missing)
    progress = _record_pieces(pieces, manifest, job, progress, tell)
    output_folder.clear()
    notes = [
        *mixed_arithmetic_notes(manifest.arithmetics),
        *_damage_notes(damaged),
        *_worker_notes(workers, len(missing)),
    ]
    return Sweep(job, output_folder.place, progress, notes)


def _record_pieces(
    pieces: Iterator[Piece],
    manifest: Manifest,
    job: SweepJob,
    progress: Progress,
    tell: Callable[[Progress], None] | None,
) -> Progress:
    """Add partitions to the manifest as they are made, and return the progress at the end."""
    try:
        for piece in pieces:
            _record_partition(manifest, piece)
            progress = progress._replace(
                cases_made=progress.cases_made + job.layout.cases_in(piece.number),
                finished=progress.finished + 1,
            )
            if tell is not None:
                tell(progress)
    except TcoError as error:
        if not progress.finished:
            raise
        resume_hint = (
            f"{progress.finished:,} of {progress.partitions:,} files are finished and kept, "
            "run again to go on"
        )
        raise type(error)(f"{error}; {resume_hint}") from None
    return progress


def _record_partition(manifest: Manifest, piece: Piece) -> None:
    """Add a partition to the manifest; one that its folder lacks raises `UsageError`."""
    if manifest.folder.lacks(_partition_file_name(piece.number)):
        raise UsageError(
            f"{manifest.folder.place}: a worker has written where it cannot be seen from here; "
            "name a folder that all share, or a URL"
        )
    manifest.add_part(piece.number, piece.piece_result, piece.arithmetic)


def _write_partition(job: SweepJob, folder_location: str, number: int) -> str:
    """Make one partition, write it to its folder and return its SHA-256."""
    parquet = library("pyarrow.parquet", "Parquet", "sweep")

    table, _ = partition_table(job, number)
    stream = io.BytesIO()
    repeated = ["scenario", *(axis.path for axis in job.axes)]
    parquet.write_table(
        table,
        stream,
        compression=COMPRESSION,
        use_dictionary=repeated,
        write_statistics=True,
        write_page_checksum=True,
    )
    content = stream.getvalue()
    folder_at(folder_location).write(_partition_file_name(number), content)
    return checksum_of(content)


# All partitions of a worker share one connection to a store.
folder_at = lru_cache(maxsize=4)(Folder)


# ---------------------------------------------------------------- summary of a finished sweep
MOST_CASES_SHOWN = 40  # most cases that a summary shows one by one
# Most cases that are read for the ranges of metrics; more take too long to read.
MOST_CASES_READ = 2_000_000


class Span(NamedTuple):
    """Range of a metric over the cases of a scenario."""

    scenario: str
    metric: str
    cases: int  # number of cases in which the metric has a value
    low: float
    median: float
    high: float


class Summary(NamedTuple):
    """Number of kept cases of a sweep, with table or metric ranges."""

    rows: int
    frame: Any  # pandas data frame of up to `MOST_CASES_SHOWN` cases; None for more
    spans: list[Span]  # ranges of the metrics; empty if there is a data frame


def summarise_sweep(finished_sweep: Sweep) -> Summary:
    """Return the case count of a finished sweep with its metric ranges.

    Up to `MOST_CASES_SHOWN` cases a data frame replaces the ranges. Above `MOST_CASES_READ` cases
    the summary has the count alone.

    Args:
        finished_sweep: Sweep whose cases are in its folder.

    Raises:
        UsageError: pyarrow is missing.

    """
    parts = finished_sweep.dataset()
    case_count = parts.count_rows()
    if case_count > MOST_CASES_READ:
        return Summary(case_count, None, [])
    if case_count <= MOST_CASES_SHOWN:
        return Summary(case_count, finished_sweep.to_frame(), [])
    report = list(finished_sweep.job.study.report)
    frame = parts.to_table(columns=["scenario", *report]).to_pandas()
    spans = []
    for scenario in finished_sweep.job.study.scenarios:
        scenario_rows = frame[frame["scenario"] == scenario]
        for metric in report:
            metric_values = scenario_rows[metric].dropna()
            if len(metric_values):
                spans.append(
                    Span(
                        scenario,
                        metric,
                        len(metric_values),
                        float(metric_values.min()),
                        float(metric_values.median()),
                        float(metric_values.max()),
                    )
                )
    return Summary(case_count, None, spans)
