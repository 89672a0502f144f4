"""Collectives: the table, the rows and the document of `tco collective`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tco.outputs.table import Table, significant

HEADER = ("algorithm", "time_us", "algorithm_gb_per_s", "bus_gb_per_s", "chosen")
PASSES = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}


def bus_bandwidth(operation: str, ranks: int, size: float, seconds: float) -> float:
    """Return the bus bandwidth in GB/s as nccl-tests defines it."""
    from tco.performance.collectives import algorithm_bandwidth, bus_factor

    factor = float(bus_factor(ranks, PASSES[operation])) if operation in PASSES else 1.0
    return factor * float(algorithm_bandwidth(size, seconds)) / 1e9


def candidate_rows(operation: str, ranks: int, size: float, times: Mapping[str, Any]) -> list[list[Any]]:
    """Return the rows of every algorithm, the quickest first."""
    best = min(times, key=lambda name: float(times[name]))
    rows = []
    for name, seconds in sorted(times.items(), key=lambda item: float(item[1])):
        time = float(seconds)
        rows.append([name, time * 1e6, size / time / 1e9, bus_bandwidth(operation, ranks, size, time), "yes" if name == best else ""])
    return rows


def collective_table(title: str, facts: list[str], rows: list[list[Any]]) -> Table:
    """Return the table of `tco collective`."""
    shown = [(row[0], *(significant(cell) for cell in row[1:4]), row[4]) for row in rows]
    below = ["Latencies and efficiencies are fitted for NVIDIA, priors with ranges for every other family."]
    return Table(("algorithm", "us", "GB/s of the buffer", "bus GB/s", "chosen"), shown, title, facts, below, "lrrrl")


def collective_document(system: str, operation: str, size: float, ranks: int, rows: list[list[Any]]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    best = rows[0]
    return {
        "system": system,
        "op": operation,
        "size_bytes": size,
        "ranks": ranks,
        "time_us": best[1],
        "algorithm": best[0],
        "bus_gb_per_s": best[3],
        "candidates": [{"algorithm": row[0], "time_us": row[1], "bus_gb_per_s": row[3]} for row in rows],
    }
