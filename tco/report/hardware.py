"""Racks and what they are made of: the answers of `tco bom`, `fabric`, `network`, `collective` and
`kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tco.catalog import Catalogue
from tco.catalog.system_tree import System
from tco.core.types import JsonObject
from tco.fabric.topology import FabricScope
from tco.report.assumptions import context_of_system
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, significant, weak
from tco.system.scale_out_network import Network

if TYPE_CHECKING:
    from tco.comparison.operations import KernelAnswer, Measured
    from tco.scenario.evaluate import SystemBill
    from tco.scenario.resolved import ResolvedScenario

GIGA = 1e9


def variants(system: System) -> str:
    """Return the variants in force, as the options that choose them."""
    return " ".join(f"{key}={value}" for key, value in system.variant.items())


# ---------------------------------------------------------------- tco bom
BILL = Record(
    "path",
    Member("part", label="part", show=lambda line: "  " * line.path.count("/") + line.part),
    Member("quantity", float, label="quantity", show=6, unit="1"),
    Member(
        *("unit_price_usd", float | None, lambda line: line.unit_price, "unit USD"),
        show=lambda line: "included" if line.included_in else significant(line.unit_price),
        unit="USD",
    ),
    Member(
        "extended_usd",
        float | None,
        "extended",
        "USD",
        lambda line: "" if line.included_in else weak(line.kind) + significant(line.extended),
        "USD",
    ),
    Member("power_w", float, "power", "W", unit="W"),
    Member(
        "kind",
        label="kind",
        show=lambda line: "" if line.included_in else line.kind + " (own)" * line.overlay,
    ),
    Member("directness", label="how direct"),
    Member("source", read=lambda line: ";".join(line.sources)),
    Member("included_in", str | None),
    Member("own", bool, "overlay", csv=False),
)


def total_rebates(made: SystemBill) -> float:
    """Return the sum of the rebates."""
    return sum(float(rebate.value) for rebate in made.rebates)


REBATE = Record("path", "supplier", Member("usd", float, "value"), "kind", "note")
TOTALS = Record(
    Member("price_usd", float, "bill.price"),
    Member("rebate_usd", float, total_rebates),
    Member("net_usd", float, lambda made: float(made.bill.price) - total_rebates(made)),
    Member("power_w", float, "bill.power"),
    Member("chips", float, "system.chips"),
    Member("racks", float, "system.racks"),
)
BOM = Document(
    "bom",
    Member("system", read="system.id"),
    Member("variant", {str: str}, "system.variant"),
    Member("lines", [BILL], "bill.lines"),
    Member(
        "quantity_by_part", {str: float}, lambda made: dict(sorted(made.system.quantity.items()))
    ),
    Member("rebates", [REBATE]),
    Member("totals", TOTALS, lambda made: made),
)


def bill_answer(catalogue: Catalogue, made: SystemBill) -> Answer:
    """Return the bill of one scale-up domain.

    Args:
        catalogue: Catalogue of the bill.
        made: Bill of a system without a workload.

    """
    return BOM.answer(
        catalogue,
        made,
        lambda: [bill_table(made)],
        (BILL, made.bill.lines),
        [*made.notes, *made.unguarded],
        of=context_of_system(made.inputs),
    )


def bill_table(made: SystemBill) -> Table:
    """Return the bill, indented as the tree."""
    system, bill = made.system, made.bill
    below = [
        f"{significant(float(bill.price) / system.chips, 5)} USD and "
        f"{significant(float(bill.power) / system.chips)} W a chip "
        f"({system.chips:g} chips, {system.racks:g} racks). "
        "~ based on an estimate or an assumption."
    ]
    for rebate in made.rebates:
        part = float(rebate.value) / float(rebate.spend) if float(rebate.spend) else 0.0
        below.append(
            f"Rebate {rebate.supplier}: {significant(rebate.value)} USD, {part * 100:.3g} % of "
            f"{significant(rebate.spend)}. {rebate.note}"
        )
    whole = ("WHOLE WORLD", "", "", significant(bill.price, 5), significant(bill.power, 5), "", "")
    return BILL.table(
        bill.lines,
        system.name,
        [f"{system.owner_pays} | prices of {made.date} | {variants(system)}".rstrip(" |")],
        below,
        [whole],
    )


# ---------------------------------------------------------------- tco fabric
SCOPE = Record(
    Member("scope", label="scope"),
    Member("chips", float, label="chips", show=5),
    Member(
        "injection_gb_per_s", float, lambda scope: float(scope.injection) / GIGA, "injection", 5
    ),
    Member("hops_mean", float, label="hops mean", show=5),
    Member("hops_worst", float, label="worst", show=5),
    Member(
        "bisection_gb_per_s", float, lambda scope: float(scope.bisection) / GIGA, "bisection", 5
    ),
    Member(
        "all_to_all_gb_per_s", float, lambda scope: float(scope.all_to_all) / GIGA, "all-to-all", 5
    ),
    Member("lanes", {str: float}, csv=False),
)
OVER = Member(
    "injection_over_all_to_all",
    float,
    lambda scope: float(scope.injection) / float(scope.all_to_all),
    "injection / all-to-all",
    3,
)
FABRIC = Document(
    "fabric",
    Member("system", read="0.id"),
    Member("variant", {str: str}, "0.variant"),
    Member("kind", read="0.fabric.kind"),
    Member("scopes", [SCOPE], "1"),
)


def fabric_answer(
    inputs: ResolvedScenario, scopes: Sequence[FabricScope], notes: Sequence[str]
) -> Answer:
    """Return the answer on bandwidth and hops of each fabric scope.

    Args:
        inputs: Scenario of the system.
        scopes: Scopes of the fabric.
        notes: Notes of the answer.

    """
    system, of = inputs.system, context_of_system(inputs)
    return FABRIC.answer(
        inputs.catalogue,
        (system, scopes),
        lambda: [fabric_table(system, scopes)],
        (SCOPE, scopes),
        notes,
        of=of,
    )


def fabric_table(system: System, scopes: Sequence[FabricScope]) -> Table:
    """Return the table of bandwidth and hops of each fabric scope.

    The table also gives the ratio of injection to all-to-all bandwidth, and the lanes of each
    scope.
    """
    below = [
        f"{s.scope}: lanes a chip "
        + ", ".join(f"{name} {count:g}" for name, count in s.lanes.items())
        for s in scopes
        if s.lanes
    ]
    below.append(
        "GB/s per direction and chip (bisection: whole scope). A hop is one intermediate device. "
        "Spare, host and NIC lanes carry none of it."
    )
    above = [variants(system)] if system.variant else []
    return Record(SCOPE, OVER).table(
        scopes, f"{system.name}: {system.fabric['kind']} fabric", above, below
    )


# ---------------------------------------------------------------- tco network
NETWORK_LINE = Record(
    Member("line", read="name", label="line"),
    Member("part", label="part"),
    Member("quantity", float, label="quantity", show=7),
    Member(
        "price_usd", float, "price", "USD", lambda line: weak(line.kind) + significant(line.price)
    ),
    Member("power_w", float, "power", "W"),
    Member("kind", label="kind"),
    Member("source", read=lambda line: ";".join(line.sources)),
)
SWITCHES = Record(
    Member("tier", int, lambda line: int(line.name.rpartition("-")[2])),
    "part",
    Member("count", float, "quantity"),
)
DESIGN = Record(
    "switch",
    *(Member(name, float) for name in ("port_gb_per_s", "radix", "planes")),
    "design",
    Member("chips", int),
    Member("max_endpoints", int),
)


def network_part_count(network: Network, *words: str) -> int:
    """Return the count of network parts whose name starts with `words`."""
    return round(sum(float(line.quantity) for line in network.lines if line.name.startswith(words)))


NETWORK = Document(
    "network",
    DESIGN.read_via("1"),
    Member("tiers", int, "0.tiers"),
    Member(
        "switches",
        [SWITCHES],
        lambda found: [line for line in found[0].lines if line.name.startswith("switches-tier")],
    ),
    Member("links", int, lambda found: network_part_count(found[0], "fibres")),
    Member("transceivers", int, lambda found: network_part_count(found[0], "modules")),
    Member("cables", int, lambda found: network_part_count(found[0], "copper", "fibres")),
    Member("lines", [NETWORK_LINE], "0.lines"),
    Member("price_usd", float, "0.price"),
    Member("power_w", float, "0.power"),
)


def network_answer(
    catalogue: Catalogue, network: Network, design: JsonObject, facts: Sequence[str]
) -> Answer:
    """Return the bill of a scale-out network, with its facts above the table.

    Args:
        catalogue: Catalogue of the bill.
        network: Network with its lines, price (USD) and power (W).
        design: Figures of the design by name; `chips` is the number of chips.
        facts: Lines above the table.

    """

    def tables() -> list[Table]:
        chips = design["chips"]
        each = (
            f"{significant(float(network.price) / chips)} USD and "
            f"{significant(float(network.power) / chips)} W a chip. ~ based on an estimate."
        )
        whole = (
            "WHOLE NETWORK",
            "",
            "",
            significant(network.price, 5),
            significant(network.power, 5),
            "",
        )
        return [NETWORK_LINE.table(network.lines, "Scale-out network", facts, [each], [whole])]

    return NETWORK.answer(catalogue, (network, design), tables, (NETWORK_LINE, network.lines))


# ---------------------------------------------------------------- tco collective
BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def binary(size: float) -> str:
    """Return a size in bytes with a binary prefix."""
    power = max(0, min(len(BINARY) - 1, math.floor(math.log2(max(size, 1)) / 10)))
    return f"{significant(size / 1024**power)} {BINARY[power]}"


def algorithm_choice_text(row: Measured) -> str:
    """Say of an algorithm whether it is chosen, or not offered by the library."""
    return "yes" if row.chosen else "" if row.offered else "not offered"


SIZE = Member("size_bytes", float, "size", "size", lambda row: binary(row.size))
NAMED = Member("algorithm", label="algorithm")
TIMES = Record(
    Member("time_us", float, label="us"),
    Member("algorithm_gb_per_s", float, "rate", "GB/s of the buffer"),
    Member("bus_gb_per_s", float, "bus", "bus GB/s"),
)
TIMED = Record(
    NAMED,
    TIMES,
    Member("offered", bool),
    Member("parts", {str: float}, lambda row: {f"{k}_us": v for k, v in row.parts.items()}),
)
COLLECTIVE = Document(
    *("collective", "system", "op"),
    Member("size_bytes", float),
    Member("ranks", int),
    *("library", "algorithm_library"),
    TIMED.read_via("candidates.0"),
    Member("in_step_us", float),
    Member("half_rate_bytes", float, optional=True),
    Member("candidates", [TIMED]),
    Member("sizes", [Record(SIZE, TIMED)], lambda found: found["sizes"] or None, optional=True),
)


def collective_answer(
    inputs: ResolvedScenario,
    found: JsonObject,
    title: str,
    facts: Sequence[str],
    notes: Sequence[str],
) -> Answer:
    """Return every algorithm at a single size, or the chosen algorithm at several.

    Args:
        inputs: Scenario of the system.
        found: Timings under `sizes` or, at a single size, `candidates`, beside `op`, `size_bytes`
            and `ranks`.
        title: Title of the table of rates.
        facts: Lines above the table of rates.
        notes: Notes of the answer.

    """
    rows, sweep = found["sizes"] or found["candidates"], bool(found["sizes"])
    parts = list(rows[0].parts)  # what a time consists of
    names = Record(SIZE, NAMED) if sweep else Record(NAMED)
    flags = (
        Member("chosen", read=lambda row: "yes" * row.chosen),
        Member("offered", read=lambda row: "yes" * row.offered),
    )
    chosen = Member(
        "chosen",
        str,
        None,
        "" if sweep else "chosen",
        lambda row: "" if sweep else algorithm_choice_text(row),
    )
    split = Record(
        *(Member(f"{part}_us", float, f"parts.{part}", part, "{:,.2f}") for part in parts)
    )
    row = Record(SIZE, NAMED, TIMES, *flags, split)
    left = "l" * len(names.members)
    below = [
        "call: what the caller of the library adds.",
        "ends: trips to HBM at both ends; reduction: what steps that add up take longer; chunks: "
        "cutting the buffer into pieces.",
        "Latencies and efficiencies are fitted for NVIDIA, priors with ranges for every other "
        "family.",
    ]

    def tables() -> list[Table]:
        rates = Record(names, TIMES, chosen).table(rows, title, facts)
        times = Record(names, split).table(rows, "The time in parts, us", (), below)
        return [rates._replace(align=f"{left}rrrl"), times._replace(align=left + "r" * len(parts))]

    of = context_of_system(inputs) | {name: found[name] for name in ("op", "size_bytes", "ranks")}
    return COLLECTIVE.answer(inputs.catalogue, found, tables, (row, rows), notes, of=of)


# ---------------------------------------------------------------- tco kernel
PART = Record(
    Member("part", read="0", label="part"),
    Member("time_us", float, lambda one: float(one[1]) * 1e6, "us"),
)


KERNEL = Document(
    "kernel",
    "chip",
    Member("op", read="operation"),
    Member("precision", read="form.stored"),
    Member("computed_as", read="form.computed_as"),
    Member("unpacked", bool, "form.unpacked"),
    "library",
    Member("shape", {str: float | bool}),
    Member("time_us", float, lambda found: float(found.made.time) * 1e6),
    "bound",
    Member(
        "parts_us",
        {str: float},
        lambda found: {name: float(part) * 1e6 for name, part in found.made.parts.items()},
    ),
    Member(
        "tile",
        Maybe([float]),
        lambda found: [found.cut.rows, found.cut.columns] if found.cut else None,
    ),
    Member("tiles", float | None, "cut.tiles"),
    Member("waves", float | None, "cut.waves"),
    Member("cores_per_tile", float | None, "cut.sharing"),
    Member("flop", float, "made.flops"),
    Member("bytes", float, "made.bytes"),
    Member("tflops", float, lambda found: found.rate / 1e12),
    Member(
        "gb_per_s", float, lambda found: float(found.made.bytes) / float(found.made.time) / GIGA
    ),
    Member("share_of_peak", float, lambda found: found.rate / found.peak),
    Member("engine_factor", float | None, "factor"),
)


def kernel_answer(catalogue: Catalogue, found: KernelAnswer, notes: Sequence[str]) -> Answer:
    """Return the time of a kernel, and its parts.

    Args:
        catalogue: Catalogue of the chip.
        found: Kernel with its time and shape.
        notes: Notes of the answer.

    """
    parts = [*found.made.parts.items(), ("time", found.made.time)]
    below = ["Parts that run beside each other overlap: the time is less than their sum."]
    of = {"chip": found.chip, "op": found.operation, "precision": found.form.stored, **found.shape}
    return KERNEL.answer(
        catalogue,
        found,
        lambda: [PART.table(parts, found.chip, kernel_facts(found), below)],
        (PART, parts),
        notes,
        of=of,
    )


def kernel_facts(found: KernelAnswer) -> list[str]:
    """Return lines on a kernel's shape, time, rate and binding bound."""
    sides = ", ".join(
        f"{name} {significant(side) if not isinstance(side, bool) else str(side).lower()}"
        for name, side in found.shape.items()
    )
    facts = [f"{found.operation} of {sides}; {found.form.stored}, library {found.library}"]
    if not found.form.is_native:
        facts.append(
            "computed as "
            f"{found.form.computed_as}{', unpacked by the vector units' if found.form.unpacked else ''}"
        )
    time = float(found.made.time)
    facts.append(f"{significant(time * 1e6)} us; {found.bound} binds")
    if float(found.made.flops):
        facts.append(
            f"{significant(found.rate / 1e12)} TFLOP/s, {found.rate / found.peak:.1%} of the peak"
        )
    facts.append(f"{significant(float(found.made.bytes) / time / GIGA)} GB/s")
    if found.correction and found.factor:
        chip = (
            found.chip
            if found.correction.chip == found.chip
            else "other chips, as no table of it is of this one"
        )
        spread = f"single shapes lie {found.correction.spread:.0%} off"
        facts.append(
            f"{significant(found.factor, 3)} times as long as physics has it, by a table on "
            f"{chip}; {spread}"
        )
    if found.cut:
        cut = found.cut
        shared = f", {significant(cut.sharing, 3)} cores to a tile" if cut.sharing > 1 else ""
        facts.append(
            f"{significant(cut.tiles)} tiles of {cut.rows:.0f} x {cut.columns:.0f} in "
            f"{significant(cut.waves)} waves{shared}"
        )
    return facts
