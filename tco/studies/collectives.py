"""A collective by every algorithm of a fabric, and over a range of sizes: times, their parts, and rates as nccl-tests counts them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tco.fabric.algorithms import Timing
from tco.fabric.costs import algorithm_bandwidth, bus_factor
from tco.foundation.errors import DataError

PARTS = ("start", "ends", "steps", "reduction", "wire", "chunks")  # what the time of an algorithm consists of
PASSES = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}


def bus_bandwidth(operation: str, ranks: int, size: float, seconds: float) -> float:
    """Return the bus bandwidth in GB/s as nccl-tests defines it."""
    factor = float(bus_factor(ranks, PASSES[operation])) if operation in PASSES else 1.0
    return factor * float(algorithm_bandwidth(size, seconds)) / 1e9


class Measured(NamedTuple):
    """One algorithm at one size: its time and the parts of it, in microseconds, and its rates."""

    size: float
    algorithm: str
    time_us: float
    rate: float
    bus: float
    chosen: bool
    parts: dict[str, float]

    @property
    def row(self) -> list[Any]:
        """Return the cells of a row, as the header names them."""
        return [self.size, self.algorithm, self.time_us, self.rate, self.bus, "yes" if self.chosen else "", *self.parts.values()]


def parts_of(timing: Timing, ends: float) -> dict[str, float]:
    """Return what a time consists of, in microseconds: trips to memory are a part of the start as the engine counts it."""
    start, stepping, latency, wire, time = (float(value) * 1e6 for value in (timing.start, timing.stepping, timing.latency, timing.wire, timing.time))
    ends *= 1e6
    parts = (start - ends, ends, stepping - start, latency - stepping, wire, time - latency - wire)
    return {name: max(0.0, round(part, 9)) for name, part in zip(PARTS, parts, strict=True)}


def candidate_rows(operation: str, ranks: int, size: float, timings: Mapping[str, Timing], ends: float) -> list[Measured]:
    """Return every algorithm at a size, the quickest first."""
    rows: list[Measured] = []
    for name, timing in sorted(timings.items(), key=lambda item: float(item[1].time)):
        time = float(timing.time)
        bus = bus_bandwidth(operation, ranks, size, time)
        rows.append(Measured(size, name, time * 1e6, size / time / 1e9, bus, not rows, parts_of(timing, ends)))
    return rows


def doublings(first: float, last: float) -> list[float]:
    """Return the sizes from one to another, each twice the one before; an end below the start raises `DataError`."""
    if not 0 < first <= last:
        raise DataError(f"--to: {last:g} bytes is below --size, {first:g} bytes")
    return [first * 2**step for step in range(math.floor(math.log2(last / first) + 1e-9) + 1)]
