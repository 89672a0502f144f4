"""Racks and what they are made of: the answers of `tco bom`, `fabric`, `network`, `collective` and `kernel`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tco.catalog import Catalogue
from tco.catalog.systems import System
from tco.fabric.scopes import Scope
from tco.foundation.provenance import SOURCED
from tco.hardware.bill import BillLine
from tco.hardware.network import Network
from tco.outputs.record import Answer, Document, Field, Maybe, Record
from tco.outputs.table import Table, significant

if TYPE_CHECKING:
    from tco.chain.bills import SystemBill
    from tco.studies.collectives import Measured
    from tco.studies.kernels import Asked

GIGA = 1e9


def weak(kind: str) -> str:
    """Return the mark of a number that rests on an estimate or an assumption."""
    return "" if kind in SOURCED else "~"


def variants(system: System) -> str:
    """Return the variants in force, as the options that choose them."""
    return " ".join(f"{key}={value}" for key, value in system.variant.items())


# ---------------------------------------------------------------- tco bom
def bill_price(line: BillLine) -> str:
    """Return the price of a line; nothing for what is in that of another."""
    return "" if line.included_in else weak(line.kind) + significant(line.extended)


BILL = Record(
    Field("path"),
    Field("part", label="part", show=lambda line: "  " * line.path.count("/") + line.part),
    Field("quantity", float, label="quantity", show=6, unit="1"),
    Field(
        *("unit_price_usd", float | None, lambda line: line.unit_price, "unit USD"),
        show=lambda line: "included" if line.included_in else significant(line.unit_price),
        unit="USD",
    ),
    Field("extended_usd", float | None, lambda line: line.extended, "USD", bill_price, "USD"),
    Field("power_w", float, lambda line: line.power, "W", unit="W"),
    Field("kind", label="kind", show=lambda line: "" if line.included_in else line.kind + " (own)" * line.overlay),
    Field("directness", label="how direct"),
    Field("source", read=lambda line: ";".join(line.sources)),
    Field("included_in", str | None),
    Field("own", bool, lambda line: line.overlay, csv=False),
)


def rebates_of(made: SystemBill) -> float:
    """Return the sum of the rebates."""
    return sum(float(rebate.value) for rebate in made.rebates)


REBATE = Record(
    Field("path"), Field("supplier"), Field("usd", float, lambda rebate: rebate.value), Field("kind"), Field("note")
)  # fmt: skip
TOTALS = Record(
    Field("price_usd", float, lambda made: made.bill.price),
    Field("rebate_usd", float, rebates_of),
    Field("net_usd", float, lambda made: float(made.bill.price) - rebates_of(made)),
    Field("power_w", float, lambda made: made.bill.power),
    Field("chips", float, lambda made: made.system.chips),
    Field("racks", float, lambda made: made.system.racks),
)
BOM = Document(
    "bom",
    Field("system", read=lambda made: made.system.id),
    Field("variant", {str: str}, lambda made: made.system.variant),
    Field("lines", [BILL], lambda made: made.bill.lines),
    Field("quantity_by_part", {str: float}, lambda made: dict(sorted(made.system.quantity.items()))),
    Field("rebates", [REBATE]),
    Field("totals", TOTALS, lambda made: made),
)


def bill_answer(catalogue: Catalogue, made: SystemBill) -> Answer:
    """Return the bill of one scale-up domain."""
    return BOM.answer(catalogue, made, lambda: [bill_table(made)], (BILL, made.bill.lines), made.notes)


def bill_table(made: SystemBill) -> Table:
    """Return the bill, indented as the tree."""
    system, bill = made.system, made.bill
    below = [
        f"{significant(float(bill.price) / system.chips, 5)} USD and {significant(float(bill.power) / system.chips)} W a chip "
        f"({system.chips:g} chips, {system.racks:g} racks). "
        "~ based on an estimate or an assumption."
    ]
    for rebate in made.rebates:
        part = float(rebate.value) / float(rebate.spend) if float(rebate.spend) else 0.0
        below.append(f"Rebate {rebate.supplier}: {significant(rebate.value)} USD, {part * 100:.3g} % of {significant(rebate.spend)}. {rebate.note}")
    whole = ("WHOLE WORLD", "", "", significant(bill.price, 5), significant(bill.power, 5), "", "")
    return BILL.table(bill.lines, system.name, [f"{system.owner_pays} | prices of {made.date} | {variants(system)}".rstrip(" |")], below, [whole])


# ---------------------------------------------------------------- tco fabric
SCOPE = Record(
    Field("scope", label="scope"),
    Field("chips", float, label="chips", show=5),
    Field("injection_gb_per_s", float, lambda scope: float(scope.injection) / GIGA, "injection", 5),
    Field("hops_mean", float, label="hops mean", show=5),
    Field("hops_worst", float, label="worst", show=5),
    Field("bisection_gb_per_s", float, lambda scope: float(scope.bisection) / GIGA, "bisection", 5),
    Field("all_to_all_gb_per_s", float, lambda scope: float(scope.all_to_all) / GIGA, "all-to-all", 5),
    Field("lanes", {str: float}, csv=False),
)
OVER = Field("injection_over_all_to_all", float, lambda scope: float(scope.injection) / float(scope.all_to_all), "injection / all-to-all", 3)
FABRIC = Document(
    "fabric",
    Field("system", read=lambda found: found[0].id),
    Field("variant", {str: str}, lambda found: found[0].variant),
    Field("kind", read=lambda found: found[0].fabric["kind"]),
    Field("scopes", [SCOPE], lambda found: found[1]),
)


def fabric_answer(catalogue: Catalogue, system: System, scopes: Sequence[Scope], notes: Sequence[str]) -> Answer:
    """Return what each scope of a scale-up fabric gives."""
    return FABRIC.answer(catalogue, (system, scopes), lambda: [fabric_table(system, scopes)], (SCOPE, scopes), notes)


def fabric_table(system: System, scopes: Sequence[Scope]) -> Table:
    """Return what each scope of the fabric gives, with its lanes and what all-to-all costs against injection."""
    below = [f"{s.scope}: lanes a chip " + ", ".join(f"{name} {count:g}" for name, count in s.lanes.items()) for s in scopes if s.lanes]
    below.append(
        "GB/s per direction and chip (bisection: whole scope). A hop is one intermediate device. Spare, host and NIC lanes carry none of it."
    )
    above = [variants(system)] if system.variant else []
    return (SCOPE + Record(OVER)).table(scopes, f"{system.name}: {system.fabric['kind']} fabric", above, below)


# ---------------------------------------------------------------- tco network
NETWORK_LINE = Record(
    Field("line", read=lambda line: line.name, label="line"),
    Field("part", label="part"),
    Field("quantity", float, label="quantity", show=7),
    Field("price_usd", float, lambda line: line.price, "USD", lambda line: weak(line.kind) + significant(line.price)),
    Field("power_w", float, lambda line: line.power, "W"),
    Field("kind", label="kind"),
    Field("source", read=lambda line: ";".join(line.sources)),
)
SWITCHES = Record(
    Field("tier", int, lambda line: int(line.name.rpartition("-")[2])), Field("part"), Field("count", float, lambda line: line.quantity)
)
DESIGN = Record(
    Field("switch"),
    Field("port_gb_per_s", float),
    Field("radix", float),
    Field("planes", float),
    Field("design"),
    Field("chips", int),
    Field("max_endpoints", int),
)


def counted(network: Network, *words: str) -> int:
    """Return how many of some kinds of parts a network has."""
    return round(sum(float(line.quantity) for line in network.lines if line.name.startswith(words)))


NETWORK = Document(
    "network",
    *DESIGN.within(lambda found: found[1]),
    Field("tiers", int, lambda found: found[0].tiers),
    Field("switches", [SWITCHES], lambda found: [line for line in found[0].lines if line.name.startswith("switches-tier")]),
    Field("links", int, lambda found: counted(found[0], "fibres")),
    Field("transceivers", int, lambda found: counted(found[0], "modules")),
    Field("cables", int, lambda found: counted(found[0], "copper", "fibres")),
    Field("lines", [NETWORK_LINE], lambda found: found[0].lines),
    Field("price_usd", float, lambda found: found[0].price),
    Field("power_w", float, lambda found: found[0].power),
)


def network_answer(catalogue: Catalogue, network: Network, design: dict[str, Any], facts: Sequence[str]) -> Answer:
    """Return the bill of a scale-out network, with what it reaches above it."""

    def tables() -> list[Table]:
        chips = design["chips"]
        each = f"{significant(float(network.price) / chips)} USD and {significant(float(network.power) / chips)} W a chip. ~ based on an estimate."
        whole = ("WHOLE NETWORK", "", "", significant(network.price, 5), significant(network.power, 5), "")
        return [NETWORK_LINE.table(network.lines, "Scale-out network", facts, [each], [whole])]

    return NETWORK.answer(catalogue, (network, design), tables, (NETWORK_LINE, network.lines))


# ---------------------------------------------------------------- tco collective
PARTS = ("call", "start", "ends", "steps", "reduction", "wire", "chunks")  # what the time of an algorithm consists of
BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def binary(size: float) -> str:
    """Return a size in bytes with a binary prefix."""
    power = max(0, min(len(BINARY) - 1, math.floor(math.log2(max(size, 1)) / 10)))
    return f"{significant(size / 1024**power)} {BINARY[power]}"


def mark(row: Measured) -> str:
    """Say of an algorithm whether it is chosen, or not offered by the library."""
    return "yes" if row.chosen else "" if row.offered else "not offered"


SIZE = Field("size_bytes", float, lambda row: row.size, "size", lambda row: binary(row.size))
NAMED = Field("algorithm", label="algorithm")
TIMES = Record(
    Field("time_us", float, label="us"),
    Field("algorithm_gb_per_s", float, lambda row: row.rate, "GB/s of the buffer"),
    Field("bus_gb_per_s", float, lambda row: row.bus, "bus GB/s"),
)
TIMED = Record(NAMED, *TIMES.fields, Field("offered", bool), Field("parts", {str: float}, lambda row: {f"{k}_us": v for k, v in row.parts.items()}))
TIMED_ROW = Record(
    SIZE,
    NAMED,
    *TIMES.fields,
    *(Field(name, read=lambda row, name=name: "yes" if getattr(row, name) else "") for name in ("chosen", "offered")),
    *(Field(f"{part}_us", float, lambda row, part=part: row.parts[part]) for part in PARTS),
)
SPLIT = Record(
    *(Field(part, float, None, part, lambda row, part=part: f"{row.parts[part]:,.2f}") for part in PARTS),
)
COLLECTIVE = Document(
    "collective",
    Field("system"),
    Field("op"),
    Field("size_bytes", float),
    Field("ranks", int),
    Field("library"),
    Field("algorithm_library"),
    *TIMED.within(lambda found: found["candidates"][0]),
    Field("half_rate_bytes", float, optional=True),
    Field("candidates", [TIMED]),
    Field("sizes", [Record(SIZE, *TIMED.fields)], lambda found: found["sizes"] or None, optional=True),
)


def collective_answer(catalogue: Catalogue, found: dict[str, Any], title: str, facts: Sequence[str], notes: Sequence[str]) -> Answer:
    """Return every algorithm at one size, or the chosen one at several."""
    rows, sweep = found["sizes"] or found["candidates"], bool(found["sizes"])
    names = Record(SIZE, NAMED) if sweep else Record(NAMED)
    left = "l" * len(names.fields)
    below = [
        "call: what the caller of the library adds.",
        "ends: trips to HBM at both ends; reduction: what steps that add up take longer; chunks: cutting the buffer into pieces.",
        "Latencies and efficiencies are fitted for NVIDIA, priors with ranges for every other family.",
    ]
    chosen = Field("chosen", str, None, "" if sweep else "chosen", lambda row: "" if sweep else mark(row))

    def tables() -> list[Table]:
        rates = (names + TIMES + Record(chosen)).table(rows, title, facts)
        split = (names + SPLIT).table(rows, "The time in parts, us", (), below)
        return [rates._replace(align=f"{left}rrrl"), split._replace(align=left + "r" * len(PARTS))]

    return COLLECTIVE.answer(catalogue, found, tables, (TIMED_ROW, rows), notes)


# ---------------------------------------------------------------- tco kernel
PART = Record(Field("part", read=lambda one: one[0], label="part"), Field("time_us", float, lambda one: float(one[1]) * 1e6, "us"))


def of_cut(name: str) -> Any:
    """Return what reads a figure of how a product is cut into tiles; none where it is not."""
    return lambda found: getattr(found.cut, name) if found.cut else None


KERNEL = Document(
    "kernel",
    Field("chip"),
    Field("op", read=lambda found: found.operation),
    Field("precision", read=lambda found: found.form.stored),
    Field("computed_as", read=lambda found: found.form.computed_as),
    Field("unpacked", bool, lambda found: found.form.unpacked),
    Field("library"),
    Field("shape", {str: float | bool}),
    Field("time_us", float, lambda found: float(found.made.time) * 1e6),
    Field("bound"),
    Field("parts_us", {str: float}, lambda found: {name: float(part) * 1e6 for name, part in found.made.parts.items()}),
    Field("tile", Maybe([float]), lambda found: [found.cut.rows, found.cut.columns] if found.cut else None),
    Field("tiles", float | None, of_cut("tiles")),
    Field("waves", float | None, of_cut("waves")),
    Field("cores_per_tile", float | None, of_cut("sharing")),
    Field("flop", float, lambda found: found.made.flops),
    Field("bytes", float, lambda found: found.made.bytes),
    Field("tflops", float, lambda found: found.rate / 1e12),
    Field("gb_per_s", float, lambda found: float(found.made.bytes) / float(found.made.time) / GIGA),
    Field("share_of_peak", float, lambda found: found.rate / found.peak),
)


def kernel_answer(catalogue: Catalogue, found: Asked, notes: Sequence[str]) -> Answer:
    """Return the time of a kernel, and the parts of it."""
    parts = [*found.made.parts.items(), ("time", found.made.time)]
    below = ["Parts that run beside each other overlap: the time is less than their sum."]
    return KERNEL.answer(catalogue, found, lambda: [PART.table(parts, found.chip, kernel_facts(found), below)], (PART, parts), notes)


def kernel_facts(found: Asked) -> list[str]:
    """Say what was timed and what binds it."""
    sides = ", ".join(f"{name} {significant(side) if not isinstance(side, bool) else str(side).lower()}" for name, side in found.shape.items())
    facts = [f"{found.operation} of {sides}; {found.form.stored}, library {found.library}"]
    if not found.form.own:
        facts.append(f"computed as {found.form.computed_as}{', unpacked by the vector units' if found.form.unpacked else ''}")
    time = float(found.made.time)
    facts.append(f"{significant(time * 1e6)} us; {found.bound} binds")
    if float(found.made.flops):
        facts.append(f"{significant(found.rate / 1e12)} TFLOP/s, {found.rate / found.peak:.1%} of the peak")
    facts.append(f"{significant(float(found.made.bytes) / time / GIGA)} GB/s")
    if found.cut:
        cut = found.cut
        shared = f", {significant(cut.sharing, 3)} cores to a tile" if cut.sharing > 1 else ""
        facts.append(f"{significant(cut.tiles)} tiles of {cut.rows:.0f} x {cut.columns:.0f} in {significant(cut.waves)} waves{shared}")
    return facts
