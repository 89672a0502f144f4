"""A kernel run for arrays of values, in pieces that stay in the cache."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import IO, Any

import numpy as np

from tco.compile.lower import ArithmeticKernel, Schedule
from tco.core.types import AnyArray, FloatArray

# numbers of one array: more do not stay in the cache, with fewer the calls cost more than the
# numbers
CELLS = 2**14
CORES = min(os.cpu_count() or 1, 4)  # that share work
SHARING = threading.Lock()  # held while they do, by the copies of this process too
# share of the draws beyond which all are computed: to pick what they rest on takes as long
MOST = 0.7
# options of mallopt with bytes: what may lie free, and what is asked of the system by itself
TRIM, MMAP = (
    (-1, 2**28),
    (-3, 2**25),
)
END_WITH_PARENT = 1  # the option of prctl
NONE: Mapping[int, FloatArray] = {}


@cache
def keep_memory() -> None:
    """Let the C library of Linux keep what arrays leave free.

    Without this setting the library gives memory back and fetches memory anew, which takes several
    times as long as the computation in the memory. The setting holds for the whole process.
    """
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for option, size in (TRIM, MMAP):
            library.mallopt(option, size)


def release_memory() -> None:
    """Collect garbage, and return free memory to the system."""
    import ctypes

    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def fork_map(make: Callable[[Any], Any], work_items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the index and the `make` result of each item of `work_items`.

    The order may differ from `work_items`. On Linux each core makes its share in a process of its
    own.
    Such a process is a copy of the calling process, knows all that is known there and ends with its
    share. Threads would wait for one another at each operation. A program that has threads is not
    copied. A copy makes no further copies, and a share that failed is made in the calling process.

    Args:
        make: Function of an item; its results can be pickled.
        work_items: Items to share out.

    Yields:
        Index of an item in `work_items`, and its result.

    """
    cores = (
        min(CORES, len(work_items))
        if sys.platform == "linux" and threading.active_count() == 1
        else 1
    )
    if cores < 2 or not SHARING.acquire(blocking=False):
        yield from enumerate(map(make, work_items))
        return
    try:
        copies: list[tuple[int, IO[bytes]]] = []
        try:
            # where the system refuses processes, or files in memory, this one makes their shares
            with contextlib.suppress(OSError, AttributeError):
                copies.extend(
                    _fork_worker(make, work_items[core::cores]) for core in range(1, cores)
                )
            for first in (0, *range(len(copies) + 1, cores)):
                for share_index, work_item in enumerate(work_items[first::cores]):
                    yield first + share_index * cores, make(work_item)
        except BaseException:  # nobody takes what the copies make
            for process, file in copies:
                os.kill(process, signal.SIGKILL)
                file.close()
            raise
        finally:
            failed = [os.waitpid(process, 0)[1] for process, _ in copies]
        for first, ((_, file), missing) in enumerate(zip(copies, failed, strict=True), 1):
            with file:
                file.seek(0)
                for share_index, work_item in enumerate(work_items[first::cores]):
                    yield (
                        first + share_index * cores,
                        make(work_item) if missing else pickle.load(file),
                    )
    finally:
        SHARING.release()


def _fork_worker(make: Callable[[Any], Any], work_items: Sequence[Any]) -> tuple[int, IO[bytes]]:
    """Return a process that computes the work items, and the memory file of its results."""
    file, failed, parent = os.fdopen(os.memfd_create("made"), "w+b"), 1, os.getpid()
    try:
        # from Python 3.12 on, of numpy's own threads, which stand still
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
    except OSError:
        file.close()
        raise
    if process:
        return process, file
    try:
        _end_with(parent)
        for work_item in work_items:
            pickle.dump(make(work_item), file, pickle.HIGHEST_PROTOCOL)
        file.flush()
        failed = 0
    finally:
        os._exit(failed)


def _end_with(parent: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before this was asked for
        os._exit(1)


class ScheduleRunner:
    """A schedule with its values, to compute results of all or some of `count` draws.

    Draws are on the last axis. Each call may bring values.
    """

    def __init__(self, schedule: Schedule, kernel_values: Mapping[int, Any], count: int) -> None:
        self.schedule, self.count = schedule, count
        self.values = {
            position: kernel_values[position]
            for position in schedule.leaves
            if position in kernel_values
        }
        self.many = {
            position: leaf_value
            for position, leaf_value in self.values.items()
            if leaf_value.ndim and leaf_value.shape[-1] == count
        }
        self.rows = _candidate_count(self.values.values())
        self.few: tuple[FloatArray, ScheduleRunner] | None = (
            # where each draw stands among those asked for last, below zero elsewhere, and their own
            # run
            None
        )

    def __call__(
        self, draws: FloatArray | None = None, call_values: Mapping[int, FloatArray] = NONE
    ) -> list[Any]:
        """Return the results in all draws or in the given ones: a number each, or one per draw.

        The values `call_values` are already those of the given draws. Further subsets are picked
        from the previous one.
        """
        if draws is None or len(draws) == self.count:
            return self.evaluate_all_draws(call_values)
        if len(draws) > MOST * self.count:
            full_values = {
                position: np.ones((*call_value.shape[:-1], self.count))
                for position, call_value in call_values.items()
            }
            for position, call_value in call_values.items():
                full_values[position][..., draws] = call_value
            return [
                output[..., draws] if output.ndim and output.shape[-1] == self.count else output
                for output in self.evaluate_all_draws(full_values)
            ]
        if self.few is None or self.few[0][draws].min(initial=0) < 0:
            draw_indices = np.full(self.count, -1)
            draw_indices[draws] = np.arange(len(draws))
            picked = {
                position: leaf_value.take(draws, axis=-1)
                for position, leaf_value in self.many.items()
            }
            self.few = draw_indices, ScheduleRunner(self.schedule, self.values | picked, len(draws))
        draw_indices, run = self.few
        return run(draw_indices[draws], call_values)

    def evaluate_all_draws(self, call_values: Mapping[int, FloatArray]) -> list[Any]:
        """Return the results in all draws, computed piece by piece."""
        size = max(CELLS // max(self.rows, _candidate_count(call_values.values())), 1)
        leaves, leaf_values = self.schedule.leaves, {**self.values, **call_values}
        registers = [leaf_values[position] for position in leaves]
        if self.count <= size * 1.5:
            return self.schedule.run(registers)

        varying = [
            register
            for register, position in enumerate(leaves)
            if position in self.many or position in call_values
        ]
        pieces = []
        for start in range(0, self.count, size):
            part = registers.copy()
            for register in varying:
                part[register] = registers[register][..., start : start + size]
            pieces.append(self.schedule.run(part))
        return [
            np.concatenate(same, axis=-1) if same[0].ndim and same[0].shape[-1] == size else same[0]
            for same in zip(*pieces, strict=True)
        ]


def _candidate_count(kernel_values: Iterable[Any]) -> int:
    return max(
        [len(kernel_value) for kernel_value in kernel_values if kernel_value.ndim == 2], default=1
    )


def best_rows(
    score: AnyArray, fallback: AnyArray, meets: AnyArray, count: int
) -> tuple[AnyArray, AnyArray]:
    """Return the plan of each draw with the best score among those that meet its targets.

    Args:
        score: Score of each plan in each draw, above zero.
        fallback: Score below zero, which chooses where no plan meets the targets.
        meets: Whether each plan meets the targets.
        count: Number of draws. Arrays have shape (plans or 1, draws or 1), or (draws,).

    Returns:
        Rows of the plans, and whether they meet the targets, shape (draws,).

    """
    arrays = score, fallback, meets
    plan_count = max(np.shape(array)[0] if np.ndim(array) == 2 else 1 for array in arrays)
    score, fallback, meets = (np.broadcast_to(array, (plan_count, count)) for array in arrays)
    chosen = np.where(meets, score, fallback).argmax(axis=0)
    return chosen, meets[chosen, np.arange(count)]


def kernel_outputs(
    kernel: ArithmeticKernel,
    targets: Sequence[int],
    kernel_values: Mapping[int, Any],
    count: int,
    draws: FloatArray | None = None,
) -> list[Any]:
    """Return kernel values at the places `targets`, computed from known `kernel_values`.

    Args:
        kernel: Operations of a program.
        targets: Places of the results.
        kernel_values: Known values by place, with draws on the last axis.
        count: Number of draws of `kernel_values`.
        draws: Indices of the draws to compute; None computes all draws.

    Returns:
        An array per place, with draws on the last axis where the value varies between draws.

    """
    return ScheduleRunner(kernel.schedule(targets, kernel_values), kernel_values, count)(draws)


def select_values(
    kernel: ArithmeticKernel,
    kernel_values: Mapping[int, Any],
    positions: Iterable[int],
    plan_rows: Any,
    draws: FloatArray | None = None,
) -> dict[int, Any]:
    """Return kernel values at given places for chosen plans and draws.

    A slice of plans keeps all draws. Other rows belong to pairs of a plan and a draw.

    Args:
        kernel: Operations of a program, with the axis of plans of each place.
        kernel_values: Known values by place: scalars, shape (draws,), or shape (plans, draws or 1).
        positions: Places to take.
        plan_rows: Slice of plans, or an array with the row of each pair; arrays by axis for several
            axes.
        draws: Index of the draw of each pair; None pairs each draw in turn.

    Returns:
        Values by place, with an axis of plans for a slice, and of shape (pairs,) for pairs.

    """
    taken_values: dict[int, Any] = {}
    for position in positions:
        kernel_value = kernel_values[position]
        if kernel_value.ndim == 1:
            kernel_value = kernel_value if draws is None else kernel_value.take(draws)
        elif kernel_value.ndim:
            axis_rows = (
                plan_rows[kernel.axis(position)] if isinstance(plan_rows, dict) else plan_rows
            )
            wide = kernel_value.shape[-1]
            if isinstance(axis_rows, slice):
                kernel_value = kernel_value[axis_rows]
            else:
                kernel_value = kernel_value.take(
                    axis_rows
                    if wide == 1
                    else axis_rows * wide + (np.arange(wide) if draws is None else draws)
                )
        taken_values[position] = kernel_value
    return taken_values


def evaluate_partitions(
    kernel: ArithmeticKernel,
    partitions: Sequence[tuple[Sequence[int], Any]],
    kernel_values: Mapping[int, Any],
    count: int,
) -> list[list[Any]]:
    """Return kernel values for each request of places and draws.

    Values common to the requests are computed in all draws.

    Args:
        kernel: Operations of a program.
        partitions: Places of the results and indices of the draws, per request.
        kernel_values: Known values by place, with draws on the last axis.
        count: Number of draws of `kernel_values`.

    Returns:
        A list per request with an array per place, draws on the last axis.

    """
    order = kernel.common([targets for targets, _ in partitions], kernel_values)
    known_values = {
        **kernel_values,
        **dict(zip(order, kernel_outputs(kernel, order, kernel_values, count), strict=True)),
    }
    partition_outputs = []
    for targets, draws in partitions:
        partition_outputs.append(
            kernel_outputs(
                kernel, targets, known_values, count, draws if len(draws) < count else None
            )
        )
    return partition_outputs
