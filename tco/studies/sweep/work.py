"""Numbered pieces of work, each a function of its number: done in this process, by others of this machine, or by those of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from tco.foundation.errors import UsageError
from tco.studies.sweep.ground import Ground

TRIM, MMAP = (-1, 2**28), (-3, 2**25)  # options of mallopt with bytes: what may lie free, and what is asked of the system by itself
Make = Callable[[int], Any]


class Progress(NamedTuple):
    """How far a study is."""

    cases: int
    found: int  # in the folder when it began
    made: int  # since
    partitions: int  # of which there are ...
    finished: int


def done_by(workers: int | None, cluster: str | None, ground: Callable[[], Ground], make: Make, numbers: Iterable[int]) -> Iterator[tuple[int, Any]]:
    """Yield numbers with what was made of each, as they are made: by so many workers of this machine, or by those of a scheduler."""
    if workers is not None and workers < 1:
        raise UsageError(f"--workers {workers}: expected one or more")
    if workers is not None and cluster is not None:
        raise UsageError("--workers starts workers on this machine, --cluster takes those of a scheduler: give one of them")
    if workers is None and cluster is None:
        keep_memory()
        return ((number, make(number)) for number in numbers)
    from tco.studies.sweep.cluster import made_on

    return made_on(workers, cluster, ground(), make, numbers)


def on_ground(ground: Ground, make: Make, number: int) -> Any:
    """Make a piece, as a worker does: one that came late has not been asked yet what it runs."""
    ground.refuse_stranger()
    keep_memory()
    return make(number)


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
