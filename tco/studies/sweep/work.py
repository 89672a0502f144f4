"""Numbered pieces of work, each a function of its number: done in this process, by others of this machine, or by those of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from tco.foundation.arithmetic import agree, arithmetic
from tco.foundation.errors import DataError, UsageError
from tco.studies.sweep.ground import Ground

TRIM, MMAP = (-1, 2**28), (-3, 2**25)  # options of mallopt with bytes: what may lie free, and what is asked of the system by itself
Make = Callable[[int], Any]
Figures = tuple[float | None, ...]


class Piece(NamedTuple):
    """A piece of work that is done."""

    number: int
    made: Any
    arithmetic: str  # of who made it


class Witness(NamedTuple):
    """A few figures of a study, to which those who compute otherwise are held."""

    ask: Callable[[], Figures]
    figures: Figures
    arithmetic: str

    def refuse_other_figures(self) -> None:
        """Refuse to compute where another numpy or other instructions make other figures."""
        if arithmetic() != self.arithmetic and not agree(self.ask(), self.figures):
            raise DataError(f"a worker with {arithmetic()} computes other figures than {self.arithmetic}; install the same on all")


class Progress(NamedTuple):
    """How far a study is."""

    cases: int
    found: int  # in the folder when it began
    made: int  # since
    partitions: int  # of which there are ...
    finished: int


def done_by(
    workers: int | None, cluster: str | None, ground: Callable[[], Ground], ask: Callable[[], Figures], make: Make, numbers: Iterable[int]
) -> Iterator[Piece]:
    """Yield what was made of each number, as it is made: by so many workers of this machine, or by those of a scheduler.

    `ask` gives some figures of the study, in which workers with another arithmetic must agree.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: expected one or more")
    if workers is not None and cluster is not None:
        raise UsageError("--workers starts workers on this machine, --cluster takes those of a scheduler: give one of them")
    if workers is None and cluster is None:
        keep_memory()
        return (Piece(number, make(number), arithmetic()) for number in numbers)
    from tco.studies.sweep.cluster import made_on

    return made_on(workers, cluster, ground(), Witness(ask, ask(), arithmetic()), make, numbers)


def on_ground(ground: Ground, witness: Witness, make: Make, number: int) -> Piece:
    """Make a piece, as a worker does: one that came late has not been asked yet what it runs."""
    ground.refuse_stranger()
    witness.refuse_other_figures()
    keep_memory()
    return Piece(number, make(number), arithmetic())


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
