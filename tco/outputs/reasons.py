"""Why a comparison comes out as it does: what moves each regime, what to measure, and which measurements notice at all."""

from __future__ import annotations

from collections.abc import Sequence

from tco.outputs.curve import claim, flips_at, label, span, together
from tco.outputs.ranges import percent
from tco.outputs.record import Member, Record
from tco.outputs.table import Table
from tco.studies.comparison import Confidence, Measurement, Notice, Regime

MEASURED = {
    "kernels": "tco measure -o kernels.csv on a chip of {}",
    "collectives": "tco measure --kind collectives -o collectives.csv on chips of {}",
    "inference": "a serving run of this model with {}, published or your own (--anchor runs.csv)",
    "training": "a training run of this model with {}, published or your own (tco validate, tco calibrate)",
}
NOTICE = Record(
    Member("path", label="input", show=lambda one: label(one.path)),
    Member("kind", str | None, label="rows of", show=lambda one: one.kind or "none"),
    Member("rows", int, label="rows that notice", show=lambda one: f"{one.rows:,}" if one.rows else "none"),
    Member("error_low", float | None, "errors.0", "error at P5", "{:.4f}"),
    Member("error", float | None, "errors.1", "at its value", "{:.4f}"),
    Member("error_high", float | None, "errors.2", "at P95", "{:.4f}"),
)


def why_tables(found: Confidence) -> list[Table]:
    """Return what moves each regime, and the measurements that would narrow it most."""
    columns = ("what moves it, from its P5 to its P95", "tokens per dollar", "turns the order")
    return [Table(columns, driver_rows(one), heading(one), below=to_do(one), align="lrl") for one in found.regimes]


def heading(one: Regime) -> str:
    """Return what is said of a regime."""
    return f"{span(one)} tokens/s: {claim(one)}" if one.speeds else claim(one)


def driver_rows(one: Regime) -> list[tuple[str, str, str]]:
    """Return the inputs that move a regime."""
    return [
        (label(driver.path), "decides who meets it" if driver.swing is None else f"{driver.swing:+.2f}", flips_at(driver))
        for driver in together(one.drivers)
    ]


def to_do(one: Regime) -> list[str]:
    """Return the measurements that would narrow a regime's range most."""
    return [f"Would narrow it by {percent(each.narrows)}: {measured(each)}." for each in one.measurements]


def measured(one: Measurement) -> str:
    """Return a measurement in words."""
    return MEASURED[one.kind].format(one.owner)


def evidence_table(some: Sequence[Notice]) -> Table:
    """Return which rows would notice what moves the answer."""
    said = (
        "How far the error of the measured rows moves as each input goes from its P5 to its P95: the root mean square of log(predicted / measured)."
    )
    none = "none: no measured row would notice; its range is what is believed of it."
    return NOTICE.table(some, "Which measurements notice what moves the answer", [said], [none])
