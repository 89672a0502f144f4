"""Timing: warm up an operation, call it long enough for the clock, and take the median.

What runs stands behind a small interface, so that the same clockwork times a GPU, a CPU, a group of
processes or a toy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

Shape = TypeVar("Shape")
Asked_contra = TypeVar("Asked_contra", contravariant=True)
MOST_ROUNDS = 2**20
SHORTEST_CLOCK = 1e-9  # seconds: what a clock that saw nothing is taken to have seen


class Operation(NamedTuple):
    """An operation ready to run: `run(rounds)` returns the seconds of so many rounds of calls.

    The call waits until all work has ended.
    """

    run: Callable[[int], float]
    calls: int = 1
    operands: Any = None  # what must outlive the runs, such as the operands a captured graph reads


class Backend(Protocol[Asked_contra]):
    """A machine that runs shapes; impossible ones raise `RuntimeError`, as for lack of memory."""

    def ready(self, shape: Asked_contra) -> Operation:
        """Return the operation of a shape, its operands in place."""

    def conditions(self) -> str:
        """Return machine conditions during the run, such as clock and power.

        The text is empty where the conditions are not known.
        """


@dataclass(frozen=True, slots=True)
class Effort:
    """Measurement time limits of a shape in seconds, and its run count.

    `shortest` is the least time of a run. `longest` is the most time of all runs.
    """

    shortest: float
    warm_up: float
    longest: float
    runs: int


FULL = Effort(shortest=0.01, warm_up=0.2, longest=2.0, runs=21)
QUICK = Effort(shortest=0.001, warm_up=0.002, longest=0.1, runs=5)
FEWEST_RUNS = 3


class CallTiming(NamedTuple):
    """Seconds of one call: median of the runs, and their P10 and P90."""

    seconds: float
    low: float
    high: float
    runs: int
    calls: int  # of one run


@dataclass(slots=True)
class Outcome(Generic[Shape]):
    """A shape with its timing, or with the reason why there is none."""

    shape: Shape
    timing: CallTiming | None = None
    conditions: str = ""
    failure: str = ""


def time_of(operation: Operation, effort: Effort) -> CallTiming:
    """Return the time of one call, without a first round, which may compile or tune."""
    operation.run(1)
    rounds, elapsed = 1, max(operation.run(1), SHORTEST_CLOCK)
    while elapsed < effort.shortest and rounds < MOST_ROUNDS:
        needed_rounds = math.ceil(rounds * effort.shortest / elapsed)
        rounds = min(max(2 * rounds, needed_rounds), MOST_ROUNDS)
        elapsed = max(operation.run(rounds), SHORTEST_CLOCK)
    warmed = 0.0
    while warmed < effort.warm_up:
        warmed += max(operation.run(rounds), SHORTEST_CLOCK)
    runs = max(FEWEST_RUNS, min(effort.runs, int(effort.longest / elapsed)))
    calls = rounds * operation.calls
    samples = [operation.run(rounds) / calls for _ in range(runs)]
    low, median, high = (float(percentile) for percentile in np.percentile(samples, (10, 50, 90)))
    return CallTiming(median, low, high, runs, calls)


def measure_shapes(
    backend: Backend[Shape], shapes: Iterable[Shape], effort: Effort
) -> Iterator[Outcome[Shape]]:
    """Yield the outcome of every shape in order; a shape that cannot run stops nothing."""
    for shape in shapes:
        try:
            timing = time_of(backend.ready(shape), effort)
        except RuntimeError as error:  # out of memory, or a format the machine does not compute
            reason = str(error).strip().splitlines()
            yield Outcome(shape, failure=reason[0] if reason else type(error).__name__)
            continue
        yield Outcome(shape, timing, backend.conditions())
