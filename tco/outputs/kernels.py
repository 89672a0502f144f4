"""Kernels: the table, the rows and the document of `tco kernel`."""

from __future__ import annotations

from typing import Any

from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.kernels import KernelAnswer

HEADER = ("part", "time_us")


def kernel_rows(found: KernelAnswer) -> list[list[Any]]:
    """Return the parts of a kernel's time, and the whole."""
    parts = [[name, float(part) * 1e6] for name, part in found.made.parts.items()]
    return [*parts, ["time", float(found.made.time) * 1e6]]


def kernel_document(found: KernelAnswer) -> dict[str, Any]:
    """Return the content of the JSON document."""
    time = float(found.made.time)
    return {
        "chip": found.chip,
        "op": found.operation,
        "precision": found.form.stored,
        "computed_as": found.form.computed_as,
        "unpacked": found.form.unpacked,
        "library": found.library,
        "shape": {name: side if isinstance(side, bool) else number(side) for name, side in found.shape.items()},
        "time_us": time * 1e6,
        "bound": found.bound,
        "parts_us": {name: float(part) * 1e6 for name, part in found.made.parts.items()},
        "tile": [number(found.cut.rows), number(found.cut.columns)] if found.cut else None,
        "tiles": number(found.cut.tiles) if found.cut else None,
        "waves": number(found.cut.waves) if found.cut else None,
        "cores_per_tile": number(found.cut.sharing) if found.cut else None,
        "flop": float(found.made.flops),
        "bytes": float(found.made.bytes),
        "tflops": found.rate / 1e12,
        "gb_per_s": float(found.made.bytes) / time / 1e9,
        "share_of_peak": found.rate / found.peak,
    }


def kernel_tables(found: KernelAnswer) -> list[Table]:
    """Return the table of `tco kernel`."""
    sides = ", ".join(f"{name} {significant(side) if not isinstance(side, bool) else str(side).lower()}" for name, side in found.shape.items())
    facts = [f"{found.operation} of {sides}; {found.form.stored}, library {found.library}"]
    if not found.form.own:
        facts.append(f"computed as {found.form.computed_as}{', unpacked by the vector units' if found.form.unpacked else ''}")
    time = float(found.made.time)
    facts.append(f"{significant(time * 1e6)} us; {found.bound} binds")
    if float(found.made.flops):
        facts.append(f"{significant(found.rate / 1e12)} TFLOP/s, {found.rate / found.peak:.1%} of the peak")
    facts.append(f"{significant(float(found.made.bytes) / time / 1e9)} GB/s")
    if found.cut:
        cut = found.cut
        shared = f", {significant(cut.sharing, 3)} cores to a tile" if cut.sharing > 1 else ""
        facts.append(f"{significant(cut.tiles)} tiles of {cut.rows:.0f} x {cut.columns:.0f} in {significant(cut.waves)} waves{shared}")
    rows = [[name, significant(value)] for name, value in kernel_rows(found)]
    below = ["Parts that run beside each other overlap: the time is less than their sum."]
    return [Table(["part", "us"], rows, found.chip, facts, below, "lr")]
