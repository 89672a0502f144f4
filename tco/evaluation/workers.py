"""Numbered pieces of work, done in this process, by local workers or by a cluster.

All workers of a study must have the same environment: the program, and the data that each scenario
sees, by hash. Equal grounds compute the same bytes on one machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from tco import __version__
from tco.catalog import Catalogue
from tco.core.errors import DataError, TcoError, UsageError, library
from tco.core.files import data_directory
from tco.core.numeric_environment import agree, arithmetic

Folders = tuple[str, ...]  # folders of user data, each over the shipped data and those before


class StudyEnvironment(NamedTuple):
    """Program and data on which a study was started."""

    program: str  # version of the program, and hash of its code
    data: tuple[str, ...]  # hash of the data of each scenario
    folders: tuple[Folders, ...]  # data folders of each scenario

    def of_this_process(self) -> StudyEnvironment:
        """Return the environment of the process that calls, for the same folders."""
        return environment_of(self.folders)

    def difference_from(self, worker: StudyEnvironment) -> str | None:
        """Return the difference of a `worker` from the environment of the study, or None."""
        if worker.program != self.program:
            return f"runs tco {worker.program}, the study was begun by {self.program}"
        if worker.data != self.data:
            return (
                f"has data {' '.join(dict.fromkeys(worker.data))}, the study was begun on "
                f"{' '.join(dict.fromkeys(self.data))}"
            )
        return None


def environment_of(folders: tuple[Folders, ...]) -> StudyEnvironment:
    """Return this program's version and the data hashes of `folders`.

    Args:
        folders: Folders laid over the shipped data, a tuple for each scenario.

    Returns:
        Program and hashes, in the order of `folders`.

    """
    return StudyEnvironment(program(), tuple(data_hash(folder) for folder in folders), folders)


@cache
def program() -> str:
    """Return version and code hash of the running program: equal texts compute the same."""
    digest = hashlib.sha256()
    home = Path(__file__).resolve().parents[1]
    for path in sorted(home.rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"


@cache
def catalogue_on(folders: Folders, anchors: tuple[Any, ...]) -> Catalogue:
    """Return the catalogue with folders laid over the shipped data, read once.

    Args:
        folders: Paths of the folders, in the order of laying.
        anchors: Measured runs that move the answers of the catalogue.

    """
    folder_catalogue = Catalogue(Path(folder) for folder in folders)
    folder_catalogue.anchors = anchors
    return folder_catalogue


def data_hash(folders: Folders) -> str:
    """Return the hash of the data that a scenario sees here."""
    catalogue = catalogue_on(folders, ())
    return catalogue.once("hash", catalogue.hash)


def folders_of(catalogue: Catalogue) -> Folders:
    """Return the folders that are laid over the shipped data in a catalogue.

    Args:
        catalogue: The catalogue with all of its folders.

    Returns:
        Absolute paths, in the order of laying.

    """
    return tuple(
        str(folder.resolve()) for folder in catalogue.folders if folder != data_directory()
    )


PATIENCE = 10.0  # seconds a scheduler has to answer
ARRIVAL = 60.0  # seconds the first worker has to come
AHEAD = 3  # pieces handed out for each thread, so that no thread waits for its next piece
WORKERS_PER_CPU = 4
Make = Callable[[int], Any]  # computes the piece of work with a number
Figures = tuple[float | None, ...]  # metrics that show whether two machines compute alike


class Piece(NamedTuple):
    """A piece of work that is done."""

    number: int
    piece_result: Any
    arithmetic: str  # numpy version and CPU instructions of the process that computed it


class Progress(NamedTuple):
    """Progress of a study: numbers of cases and partitions."""

    cases: int  # cases of the study
    cases_before: int  # cases in the folder at the start of the run
    cases_made: int  # cases that this run has computed
    partitions: int  # partitions of the study
    finished: int  # partitions in the folder


def useful_workers(workers: int, pieces: int) -> int:
    """Return the workers that are started for some pieces: one each, and four per CPU at most."""
    return min(workers, pieces, WORKERS_PER_CPU * (os.cpu_count() or 1))


def run_pieces(
    workers: int | None,
    cluster: str | None,
    find_environment: Callable[[], StudyEnvironment],
    probe: Callable[[], Figures],
    make: Make,
    numbers: Sequence[int],
) -> Iterator[Piece]:
    """Yield a finished piece of work for each number of `numbers`.

    The work is done by `useful_workers` on this machine, by the workers of the scheduler
    `cluster`, or in this process where both are None.

    Args:
        workers: Largest number of workers on this machine.
        cluster: Address of a scheduler.
        find_environment: Returns program and data on which the study runs; called only for workers.
        probe: Returns figures of the study on which workers with another arithmetic must agree.
        make: Does the piece of work of a number.
        numbers: Numbers of the pieces.

    Raises:
        UsageError: Both `workers` and `cluster` are given, or `workers` is below 1.

    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: expected one or more")
    if workers is not None and cluster is not None:
        raise UsageError(
            "--workers starts workers on this machine, --cluster takes those of a scheduler: give "
            "one of them"
        )
    if workers is None and cluster is None:
        return (Piece(number, make(number), arithmetic()) for number in numbers)
    if not numbers:
        return iter(())
    if workers is not None:
        workers = useful_workers(workers, len(numbers))
    environment = find_environment()
    return _run_on_workers(
        workers,
        cluster,
        environment,
        partial(make_checked_piece, environment, probe, probe(), arithmetic(), make),
        numbers,
    )


def make_checked_piece(
    environment: StudyEnvironment,
    probe: Callable[[], Figures],
    figures: Figures,
    study_arithmetic: str,
    make: Make,
    number: int,
) -> Piece:
    """Do a piece of work in a worker, after a check of what the worker runs.

    Every worker checks itself, as one that joins late was not checked at the start.

    Args:
        environment: Program and data of the study.
        probe: Returns figures of the study.
        figures: Figures that `probe` gave where the study was started.
        study_arithmetic: Arithmetic with which `figures` were computed.
        make: Does the piece of work of a number.
        number: Number of the piece.

    Raises:
        DataError: The worker has another program, other data, or an arithmetic with other figures.

    """
    if (why := environment.difference_from(environment.of_this_process())) is not None:
        raise DataError(f"a worker {why}; install the same on all")
    if arithmetic() != study_arithmetic and not agree(probe(), figures):
        raise DataError(
            f"a worker with {arithmetic()} computes other figures than {study_arithmetic}; install "
            "the same on all"
        )
    return Piece(number, make(number), arithmetic())


# ---------------------------------------------------------------- workers of Dask
def _run_on_workers(
    workers: int | None,
    cluster: str | None,
    environment: StudyEnvironment,
    make: Make,
    numbers: Iterable[int],
) -> Iterator[Piece]:
    """Yield pieces as workers finish them.

    A worker with another program or other data is refused by name.
    """
    with connected(workers, cluster) as client:
        # by address its environment, or the error that it raised
        answers = client.run(environment.of_this_process, on_error="return")
        for address, answer in sorted(answers.items()):
            if isinstance(answer, BaseException):
                why: str | None = f"cannot run this program ({type(answer).__name__}: {answer})"
            else:
                why = environment.difference_from(answer)
            if why is not None:
                raise DataError(f"the worker {address} {why}; install the same on all")
        yield from _hand_out(client, make, iter(numbers))


def _dask() -> Any:
    return library("distributed", "sharing work among processes", "cluster")


@contextlib.contextmanager
def connected(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """Yield a client of a scheduler, or of local workers that end with the client.

    Args:
        workers: Number of workers on this machine; None with a cluster.
        cluster: Address of a scheduler; None starts local workers.

    Raises:
        UsageError: The address is refused, or no scheduler answers, or no worker comes.

    """
    distributed = _dask()
    for logger_name in (
        "distributed",
        "distributed.worker",
        "distributed.scheduler",
        "distributed.nanny",
        "distributed.client",
        "tornado.application",
    ):
        logging.getLogger(logger_name).setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as open_resources, warnings.catch_warnings():
        # Dask warns of other versions of libraries; environment and figures are checked instead
        warnings.simplefilter("ignore")
        if cluster is None:
            local_cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                memory_limit=None,
                silence_logs=logging.CRITICAL,
            )
            address = open_resources.enter_context(local_cluster)
        else:
            address = cluster
            _refuse_unknown_scheme(distributed, cluster)
        try:
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError(
                f"--cluster {cluster}: no scheduler answers ({error or type(error).__name__}); "
                "expected tcp://HOST:8786 or tls://HOST:8786"
            ) from None
        open_resources.enter_context(client)
        try:
            client.wait_for_workers(1, timeout=ARRIVAL)
        except TimeoutError:
            raise UsageError(
                f"--cluster {cluster}: no worker came within {ARRIVAL:.0f} seconds"
            ) from None
        yield client


def _refuse_unknown_scheme(distributed: Any, address: str) -> None:
    """Refuse an address that Dask does not support, or TLS without its configuration."""
    scheme, colons, _ = address.partition("://")
    known_backends = sorted(import_module("distributed.comm.registry").backends)
    if colons and scheme not in known_backends:
        raise UsageError(
            f"--cluster {address}: no scheduler answers to the scheme {scheme!r}; expected one of "
            f"{', '.join(known_backends)}"
        )
    if (
        scheme == "tls"
        and distributed.Security().get_connection_args("client").get("ssl_context") is None
    ):
        missing_settings = ", ".join(
            f"DASK_DISTRIBUTED__COMM__TLS__{setting_name}"
            for setting_name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY")
        )
        raise UsageError(
            f"--cluster {address}: needs certificates in Dask's configuration: {missing_settings}"
        )


def _hand_out(client: Any, make: Make, numbers: Iterator[int]) -> Iterator[Piece]:
    """Yield finished pieces, and hand out `AHEAD` pieces per thread at a time.

    Dask gives the piece of a lost worker to another worker.
    """
    run = uuid4().hex[:8]

    def submit(number: int) -> Any:
        return client.submit(make, number, key=f"tco-{run}-{number}", pure=False)

    threads = max(sum(client.nthreads().values()), 1)
    waiting = _dask().as_completed(
        [submit(number) for number in islice(numbers, AHEAD * threads)], loop=client.loop
    )
    try:
        for future in waiting:
            yield _worker_result(future)
            for number in islice(numbers, 1):  # the next piece, if there is one
                waiting.add(submit(number))
    finally:
        client.cancel(list(waiting.futures), force=True)


def _worker_result(future: Any) -> Any:
    """Return the result of a worker's future.

    Errors of this program pass unchanged. Raises `UsageError` where the scheduler is lost, or where
    workers die repeatedly over a piece of the work.
    """
    try:
        return future.result()
    except TcoError:
        raise
    except _dask().KilledWorker as error:
        raise UsageError(
            f"workers died again and again over one piece of the work ({error})"
        ) from None
    except Exception as error:
        if type(error).__name__ in ("CancelledError", "FutureCancelledError", "CommClosedError"):
            raise UsageError("the scheduler is lost") from None
        raise
