"""Collectives: the table, the rows and the document of `tco collective`."""

from __future__ import annotations

import math
from typing import Any

from tco.outputs.table import Table, significant
from tco.studies.collectives import PARTS, Measured

HEADER = ("size_bytes", "algorithm", "time_us", "algorithm_gb_per_s", "bus_gb_per_s", "chosen", "offered", *(f"{part}_us" for part in PARTS))
BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def binary(size: float) -> str:
    """Return a size in bytes with a binary prefix."""
    power = max(0, min(len(BINARY) - 1, math.floor(math.log2(max(size, 1)) / 10)))
    return f"{significant(size / 1024**power)} {BINARY[power]}"


def collective_tables(title: str, facts: list[str], rows: list[Measured], sweep: bool) -> list[Table]:
    """Return the tables of `tco collective`, every algorithm at one size or the chosen one at several: rates, then what the times consist of."""
    names = ["size", "algorithm"] if sweep else ["algorithm"]
    named = [[binary(row.size), row.algorithm] if sweep else [row.algorithm] for row in rows]
    left = "l" * len(names)
    rates = [
        [*name, significant(row.time_us), significant(row.rate), significant(row.bus), "" if sweep else mark(row)]
        for name, row in zip(named, rows, strict=True)
    ]
    parts = [[*name, *(f"{part:,.2f}" for part in row.parts.values())] for name, row in zip(named, rows, strict=True)]
    below = [
        "call: what the caller of the library adds.",
        "ends: trips to HBM at both ends; reduction: what steps that add up take longer; chunks: cutting the buffer into pieces.",
        "Latencies and efficiencies are fitted for NVIDIA, priors with ranges for every other family.",
    ]
    return [
        Table([*names, "us", "GB/s of the buffer", "bus GB/s", "" if sweep else "chosen"], rates, title, facts, [], f"{left}rrrl"),
        Table([*names, *PARTS], parts, "The time in parts, us", [], below, left + "r" * len(PARTS)),
    ]


def mark(row: Measured) -> str:
    """Say of an algorithm whether it is chosen, or not offered by the library."""
    return "yes" if row.chosen else "" if row.offered else "not offered"


def described(row: Measured) -> dict[str, Any]:
    """Return an algorithm as the JSON document shows it."""
    parts = {f"{name}_us": part for name, part in row.parts.items()}
    return {
        "algorithm": row.algorithm,
        "time_us": row.time_us,
        "algorithm_gb_per_s": row.rate,
        "bus_gb_per_s": row.bus,
        "offered": row.offered,
        "parts": parts,
    }


def collective_document(
    system: str, operation: str, ranks: int, library: str, by: str, half: float | None, rows: list[Measured], sweep: list[Measured]
) -> dict[str, Any]:
    """Return the content of the JSON document: the algorithms at the size asked for, `by` whom the best is, and the best at each further size."""
    best = rows[0]
    return {
        "system": system,
        "op": operation,
        "size_bytes": best.size,
        "ranks": ranks,
        "library": library,
        "algorithm_library": by,
        **described(best),
        **({} if half is None else {"half_rate_bytes": half}),
        "candidates": [described(row) for row in rows],
        **({"sizes": [{"size_bytes": row.size, **described(row)} for row in sweep]} if sweep else {}),
    }
