"""A collective by every algorithm of a fabric, and over a range of sizes: times, their parts, and rates as nccl-tests counts them."""

from __future__ import annotations

import math
from typing import NamedTuple

from tco.fabric.algorithms import Tokens, called, named, offered, reach, reported_bytes, ways
from tco.fabric.costs import algorithm_bandwidth, bus_factor
from tco.fabric.library import EXCHANGES
from tco.fabric.links import Group, Links, Timing
from tco.foundation.errors import DataError
from tco.foundation.values import Values
from tco.performance.layer.machine import WAITS
from tco.performance.layer.operators import waited_for

PARTS = ("call", "start", "ends", "steps", "reduction", "wire", "chunks")  # what the time of an algorithm consists of
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
    offered: bool  # by the library
    parts: dict[str, float]


def parts_of(timing: Timing, ends: float) -> dict[str, float]:
    """Return what a time consists of, in microseconds: trips to memory are a part of the start as the engine counts it."""
    start, stepping, latency, wire, time, call = (
        float(value) * 1e6 for value in (timing.start, timing.stepping, timing.latency, timing.wire, timing.time, timing.call)
    )
    ends *= 1e6
    parts = (call, start - ends, ends, stepping - start, latency - stepping, wire, time - latency - wire - call)
    return {name: max(0.0, round(part, 9)) for name, part in zip(PARTS, parts, strict=True)}


def candidate_rows(links: Links, operation: str, group: Group, size: float | Tokens, algorithm: str | None = None) -> list[Measured]:
    """Return every algorithm: the one asked for, or the quickest the library offers; then the others it offers, then the rest of the fabric's."""
    at = reach(links, group)
    found = ways(at, operation, size)
    open_ = offered(at, operation, found if algorithm is None else {algorithm: named(found, operation, algorithm)}, size)
    best = min(open_, key=lambda name: float(open_[name].time))
    rest = offered(at, operation, found, size)
    made = {name: rest[name] if name in rest else called(at, operation, way(), size) for name, way in found.items()}
    rows, moved = [], float(reported_bytes(at, size))
    for name, timing in sorted(made.items(), key=lambda item: (item[0] != best, item[0] not in rest, float(item[1].time))):
        time = float(timing.time)
        bus = bus_bandwidth(operation, group.ranks, moved, time)
        parts = parts_of(timing, float(links.latencies.ends) * float(timing.kernels))
        rows.append(Measured(moved, name, time * 1e6, moved / time / 1e9, bus, name == best, name in rest, parts))
    return rows


def in_a_step(values: Values, family: str, operation: str, ranks: float, links: Links, time: float) -> float:
    """Return the time of a collective inside an engine's step of mature software, where its ranks wait for the last of them."""
    waits = {name: values[f"performance.{family}.{name}"] for name in WAITS}
    name = "exchange_wait" if operation in (*EXCHANGES, "all-to-all") else "collective_wait"
    return float(waited_for(time, waits, name, ranks, links.world))


def limited(text: str) -> tuple[int, int]:
    """Return the groups a token may reach and all groups of experts, from a text such as 4/8."""
    drawn, slash, groups = text.partition("/")
    if not (slash and drawn.isdigit() and groups.isdigit() and 0 < int(drawn) <= int(groups)):
        raise DataError(f"--groups: {text!r}, expected D/G such as 4/8: a token reaches D of G groups of experts")
    return int(drawn), int(groups)


def doublings(first: float, last: float) -> list[float]:
    """Return the sizes from one to another, each twice the one before; an end below the start raises `DataError`."""
    if not 0 < first <= last:
        raise DataError(f"--to: {last:g} bytes is below --size, {first:g} bytes")
    return [first * 2**step for step in range(math.floor(math.log2(last / first) + 1e-9) + 1)]
