"""Answers of `tco collective` and `tco kernel`: the time of an operation and its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tco.catalog import Catalogue
from tco.core.types import JsonObject
from tco.report.assumptions import context_of_system
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, significant

if TYPE_CHECKING:
    from tco.comparison.operations import KernelAnswer, Measured
    from tco.performance.chip.engine_corrections import Correction
    from tco.scenario.resolved import ResolvedScenario

GIGA = 1e9

# ---------------------------------------------------------------- tco collective
BINARY_PREFIXES = ("B", "KiB", "MiB", "GiB", "TiB")


def _binary_size_text(size: float) -> str:
    power = math.floor(math.log2(max(size, 1)) / 10)
    power = max(0, min(len(BINARY_PREFIXES) - 1, power))
    return f"{significant(size / 1024**power)} {BINARY_PREFIXES[power]}"


def _choice_text(timed_algorithm: Measured) -> str:
    if timed_algorithm.chosen:
        return "yes"
    return "" if timed_algorithm.offered else "not offered"


SIZE = Member(
    "size_bytes",
    float,
    "size",
    "size",
    lambda timed_algorithm: _binary_size_text(timed_algorithm.size),
)
ALGORITHM = Member("algorithm", label="algorithm")
TIMES = Record(
    Member("time_us", float, label="us"),
    Member("algorithm_gb_per_s", float, "rate", "GB/s of the buffer"),
    Member("bus_gb_per_s", float, "bus", "bus GB/s"),
)
TIMED_ALGORITHM = Record(
    ALGORITHM,
    TIMES,
    Member("offered", bool),
    Member(
        "parts",
        {str: float},
        lambda timed_algorithm: {
            f"{part_name}_us": time for part_name, time in timed_algorithm.parts.items()
        },
    ),
)
COLLECTIVE = Document(
    *("collective", "system", "op"),
    Member("size_bytes", float),
    Member("ranks", int),
    *("library", "algorithm_library"),
    TIMED_ALGORITHM.read_via("candidates.0"),
    Member("in_step_us", float),
    Member("half_rate_bytes", float, optional=True),
    Member("candidates", [TIMED_ALGORITHM]),
    Member(
        "sizes",
        [Record(SIZE, TIMED_ALGORITHM)],
        lambda content: content["sizes"] or None,
        optional=True,
    ),
)


def collective_answer(
    inputs: ResolvedScenario,
    content: JsonObject,
    facts: Sequence[str],
    notes: Sequence[str],
) -> Answer:
    """Return every algorithm at a single size, or the chosen algorithm at several.

    Args:
        inputs: Scenario of the system.
        content: Timings under `sizes` or, at a single size, `candidates`, beside `op`, `size_bytes`
            and `ranks`.
        facts: Lines above the table of rates.
        notes: Notes of the answer.

    """
    timed_algorithms: list[Measured] = content["sizes"] or content["candidates"]
    name_columns, choice = Record(ALGORITHM), Member("chosen", label="chosen", show=_choice_text)
    if content["sizes"]:
        name_columns = Record(SIZE, ALGORITHM)
        choice = Member("chosen", label="", show=lambda _: "")
    parts = Record(
        *(
            Member(f"{part_name}_us", float, f"parts.{part_name}", part_name, "{:,.2f}")
            for part_name in timed_algorithms[0].parts
        )
    )
    flags = (
        Member("chosen", read=lambda timed_algorithm: "yes" * timed_algorithm.chosen),
        Member("offered", read=lambda timed_algorithm: "yes" * timed_algorithm.offered),
    )
    left = "l" * len(name_columns.members)
    below = [
        "call: what the caller of the library adds.",
        "ends: trips to HBM at both ends; reduction: what steps that add up take longer; chunks: "
        "cutting the buffer into pieces.",
        "Latencies and efficiencies are fitted for NVIDIA, priors with ranges for every other "
        "family.",
    ]

    def tables() -> list[Table]:
        rates = Record(name_columns, TIMES, choice).table(
            timed_algorithms, inputs.system.name, facts
        )
        times = Record(name_columns, parts).table(
            timed_algorithms, "The time in parts, us", (), below
        )
        align = left + "r" * len(parts.members)
        return [rates._replace(align=f"{left}rrrl"), times._replace(align=align)]

    csv_record = Record(SIZE, ALGORITHM, TIMES, *flags, parts)
    context = {content_key: content[content_key] for content_key in ("op", "size_bytes", "ranks")}
    return COLLECTIVE.answer(
        inputs.catalogue,
        content,
        tables,
        (csv_record, timed_algorithms),
        notes,
        of=context_of_system(inputs) | context,
    )


def collective_facts(
    best: Measured, ranks: int, half: float | None, step_time: float, correction: Correction | None
) -> list[str]:
    """Return lines on the best algorithm of a collective.

    Args:
        best: Algorithm with its time.
        ranks: Number of ranks.
        half: Bytes at which the algorithm reaches half of its rate; None for expert exchanges.
        step_time: Time inside an engine's step, in microseconds.
        correction: Correction of an engine's kernel; None without one.

    """
    facts = []
    if correction is not None:
        facts.append(
            f"as {correction.kernel} takes it, parts as physics has them; single shapes lie "
            f"{correction.spread:.0%} off"
        )
    if half is not None:
        facts.append(
            f"{best.algorithm} reaches half of its rate with {significant(half / 1e6, 3)} MB"
        )
    facts.append(
        f"inside an engine's step {significant(step_time)} us: "
        f"{significant(step_time - best.time_us)} more until the last of {ranks} ranks has come"
    )
    return facts


# ---------------------------------------------------------------- tco kernel
KERNEL_PART = Record(
    Member("part", read="0", label="part"),
    Member("time_us", float, lambda part: float(part[1]) * 1e6, "us"),
)


def _part_times(kernel: KernelAnswer) -> dict[str, float]:
    return {part_name: float(time) * 1e6 for part_name, time in kernel.kernel_time.parts.items()}


def _byte_rate(kernel: KernelAnswer) -> float:
    return float(kernel.kernel_time.bytes) / float(kernel.kernel_time.time) / GIGA


KERNEL = Document(
    "kernel",
    "chip",
    Member("op", read="operation"),
    Member("precision", read="form.stored"),
    Member("computed_as", read="form.computed_as"),
    Member("unpacked", bool, "form.unpacked"),
    "library",
    Member("shape", {str: float | bool}),
    Member("time_us", float, lambda kernel: float(kernel.kernel_time.time) * 1e6),
    "bound",
    Member("parts_us", {str: float}, _part_times),
    Member(
        "tile",
        Maybe([float]),
        lambda kernel: [kernel.cut.rows, kernel.cut.columns] if kernel.cut else None,
    ),
    Member("tiles", float | None, "cut.tiles"),
    Member("waves", float | None, "cut.waves"),
    Member("cores_per_tile", float | None, "cut.sharing"),
    Member("flop", float, "kernel_time.flops"),
    Member("bytes", float, "kernel_time.bytes"),
    Member("tflops", float, lambda kernel: kernel.rate / 1e12),
    Member("gb_per_s", float, _byte_rate),
    Member("share_of_peak", float, lambda kernel: kernel.rate / kernel.peak),
    Member("engine_factor", float | None, "factor"),
)


def kernel_answer(catalogue: Catalogue, kernel: KernelAnswer, notes: Sequence[str]) -> Answer:
    """Return the time of a kernel, and its parts.

    Args:
        catalogue: Catalogue of the chip.
        kernel: Kernel with its time and shape.
        notes: Notes of the answer.

    """
    parts = [*kernel.kernel_time.parts.items(), ("time", kernel.kernel_time.time)]
    below = ["Parts that run beside each other overlap: the time is less than their sum."]
    context = {"chip": kernel.chip, "op": kernel.operation, "precision": kernel.form.stored}
    return KERNEL.answer(
        catalogue,
        kernel,
        lambda: [KERNEL_PART.table(parts, kernel.chip, _kernel_facts(kernel), below)],
        (KERNEL_PART, parts),
        notes,
        of=context | kernel.shape,
    )


def _kernel_facts(kernel: KernelAnswer) -> list[str]:
    """Return lines on a kernel's shape, time, rate and binding bound."""
    form, cut, correction = kernel.form, kernel.cut, kernel.correction
    sides = ", ".join(
        f"{side_name} {str(side).lower() if isinstance(side, bool) else significant(side)}"
        for side_name, side in kernel.shape.items()
    )
    facts = [f"{kernel.operation} of {sides}; {form.stored}, library {kernel.library}"]
    if not form.is_native:
        unpacked = ", unpacked by the vector units" if form.unpacked else ""
        facts.append(f"computed as {form.computed_as}{unpacked}")
    facts.append(f"{significant(float(kernel.kernel_time.time) * 1e6)} us; {kernel.bound} binds")
    if float(kernel.kernel_time.flops):
        share = f"{kernel.rate / kernel.peak:.1%} of the peak"
        facts.append(f"{significant(kernel.rate / 1e12)} TFLOP/s, {share}")
    facts.append(f"{significant(_byte_rate(kernel))} GB/s")
    if correction and kernel.factor:
        chip = kernel.chip
        if correction.chip != chip:
            chip = "other chips, as no table of it is of this one"
        facts.append(
            f"{significant(kernel.factor, 3)} times as long as physics has it, by a table on "
            f"{chip}; single shapes lie {correction.spread:.0%} off"
        )
    if cut:
        cores = f", {significant(cut.sharing, 3)} cores to a tile" if cut.sharing > 1 else ""
        facts.append(
            f"{significant(cut.tiles)} tiles of {cut.rows:.0f} x {cut.columns:.0f} in "
            f"{significant(cut.waves)} waves{cores}"
        )
    return facts
