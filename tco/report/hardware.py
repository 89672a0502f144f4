"""Answers of `tco bom`, `fabric` and `network`: what racks and networks are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tco.catalog import Catalogue
from tco.catalog.labels import count_with_noun, part_label
from tco.catalog.system_tree import System
from tco.core.types import JsonObject
from tco.cost.ownership import BUILT_UP, SELLING_PRICE
from tco.fabric.topology import FabricScope
from tco.report.assumptions import context_of_system
from tco.report.ranges import rounded_percent
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import ESTIMATE_NOTE, Table, significant, weak
from tco.system.scale_out_network import Network, NetworkLine

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario
    from tco.scenario.system_bill import SystemBill

KILO, GIGA = 1e3, 1e9
BITS = 8  # of a byte


# ---------------------------------------------------------------- tco bom
BILL = Record(
    "path",
    Member(
        "part", label="part", show=lambda line: "  " * line.path.count("/") + part_label(line.part)
    ),
    Member("quantity", float, label="quantity", show=6, unit="1"),
    Member(
        "unit_price_usd",
        float | None,
        "unit_price",
        "unit USD",
        lambda line: "included" if line.included_in else significant(line.unit_price),
        "USD",
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


def _total_rebates(rack: SystemBill) -> float:
    return sum(float(rebate.value) for rebate in rack.rebates)


# by what the owner pays for a system
PRICE_WORDS = {BUILT_UP: "at the builder's own cost", SELLING_PRICE: "at the vendor's price"}
BOM = Document(
    "bom",
    Member("system", read="system.id"),
    Member("variant", {str: str}, "system.variant"),
    Member("lines", [BILL], "bill.lines"),
    Member(
        "quantity_by_part", {str: float}, lambda rack: dict(sorted(rack.system.quantity.items()))
    ),
    Member("rebates", [Record("path", "supplier", Member("usd", float, "value"), "kind", "note")]),
    Member(
        "totals",
        Record(
            Member("price_usd", float, "bill.price"),
            Member("rebate_usd", float, _total_rebates),
            Member("net_usd", float, lambda rack: float(rack.bill.price) - _total_rebates(rack)),
            Member("power_w", float, "bill.power"),
            Member("chips", float, "system.chips"),
            Member("racks", float, "system.racks"),
        ),
        lambda rack: rack,
    ),
)


def bill_answer(rack: SystemBill) -> Answer:
    """Return the bill of one scale-up domain.

    Args:
        rack: Bill of a system without a workload.

    """
    return BOM.answer(
        rack.inputs.catalogue,
        rack,
        lambda: [_bill_table(rack)],
        (BILL, rack.bill.lines),
        [*rack.notes, *rack.unguarded],
        of=context_of_system(rack.inputs),
    )


def _bill_table(rack: SystemBill) -> Table:
    """Return the bill, indented as the tree."""
    system, bill = rack.system, rack.bill
    basis = PRICE_WORDS[system.owner_pays]
    above = f"{basis} | prices of {rack.date} | {system.variant_text}".rstrip(" |")
    racks = f"{system.racks:g} rack{'' if system.racks == 1 else 's'}"
    below = [
        f"{significant(float(bill.price) / system.chips, 5)} USD and "
        f"{significant(float(bill.power) / system.chips)} W per chip "
        f"({system.chips:g} chips, {racks}). {ESTIMATE_NOTE}",
        f"Servers only; network, storage and hall: tco price {system.id}.",
    ]
    for rebate in rack.rebates:
        spend = float(rebate.spend)
        share = float(rebate.value) / spend if spend else 0.0
        below.append(
            f"Rebate {rebate.supplier}: {significant(rebate.value)} USD, {share * 100:.3g} % of "
            f"{significant(spend)}. {rebate.note}"
        )
    sums = [significant(bill.price, 5), significant(bill.power, 5)]
    last = ["WHOLE SCALE-UP DOMAIN", "", "", *sums, "", ""]
    return BILL.table(bill.lines, system.name, [above], below, [last])


# ---------------------------------------------------------------- tco fabric
SCOPES = {"rack": "rack", "world": "scale-up domain"}
SCOPE = Record(
    Member("scope", label="scope", show=lambda scope: SCOPES[scope.scope]),
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
INJECTION_RATIO = Member(
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
    system = inputs.system
    return FABRIC.answer(
        inputs.catalogue,
        (system, scopes),
        lambda: [fabric_table(system, scopes)],
        (SCOPE, scopes),
        notes,
        of=context_of_system(inputs),
    )


def fabric_table(system: System, scopes: Sequence[FabricScope]) -> Table:
    """Return the table of bandwidth and hops of each fabric scope.

    The table also gives the ratio of injection to all-to-all bandwidth, and the lanes of each
    scope.
    """
    below = [
        f"Lanes per chip, {SCOPES[scope.scope]}: "
        + ", ".join(f"{lane_name} {count:g}" for lane_name, count in scope.lanes.items())
        for scope in scopes
        if scope.lanes
    ]
    below.append(
        "GB/s per direction and chip (bisection: whole scope). A hop is one intermediate device. "
        "Spare, host and NIC lanes carry none of it."
    )
    above = [system.variant_text] if system.variant else []
    title = f"{system.name}: {system.fabric['kind']} fabric"
    return Record(SCOPE, INJECTION_RATIO).table(scopes, title, above, below)


# ---------------------------------------------------------------- tco network
LINE_WORDS = {
    "copper-cables": "copper cables to tier 1",
    "fibres": "fibre links",
    "fibre-length": "fibre strands, km",
    "shuffle": "fibre shuffle panels",
}


def _part_words(line: NetworkLine) -> str:
    if line.name.startswith("modules-"):  # the part says which
        return "optical modules"
    return LINE_WORDS.get(line.name, line.name.replace("switches-tier-", "switches of tier "))


def _quantity_text(line: NetworkLine) -> str:
    quantity = float(line.quantity)
    return f"{quantity / KILO if line.name == 'fibre-length' else quantity:,.0f}"


NETWORK_LINE = Record(
    Member("line", read="name", label="what", show=_part_words),
    Member("part", label="part"),
    Member("quantity", float, label="quantity", show=_quantity_text),
    Member(
        "price_usd", float, "price", "USD", lambda line: weak(line.kind) + significant(line.price)
    ),
    Member("power_w", float, "power", "kW", lambda line: significant(float(line.power) / KILO)),
    Member("kind", label="source of price"),
    Member("source", read=lambda line: ";".join(line.sources)),
)
SWITCHES = Record(
    Member("tier", int, lambda line: int(line.name.rpartition("-")[2])),
    "part",
    Member("count", float, "quantity"),
)
DESIGN = Record(
    "switch",
    *(Member(member_name, float) for member_name in ("port_gb_per_s", "radix", "planes")),
    "design",
    Member("chips", int),
    Member("max_endpoints", int),
)


def _count_member(count_key: str, *name_prefixes: str) -> Member:
    """Return the count of the parts in lines whose name starts with one of `name_prefixes`."""

    def part_count(answer: tuple[Network, JsonObject]) -> int:
        lines = answer[0].lines
        return round(
            sum(float(line.quantity) for line in lines if line.name.startswith(name_prefixes))
        )

    return Member(count_key, int, part_count)


NETWORK = Document(
    "network",
    DESIGN.read_via("1"),
    Member("tiers", int, "0.tiers"),
    Member(
        "switches",
        [SWITCHES],
        lambda answer: [line for line in answer[0].lines if line.name.startswith("switches-tier")],
    ),
    _count_member("links", "fibres"),
    _count_member("transceivers", "modules"),
    _count_member("cables", "copper", "fibres"),
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
        facts: Further lines above the table.

    """

    def tables() -> list[Table]:
        chips, price, power = design["chips"], float(network.price), float(network.power)
        optics = sum(float(line.price) for line in network.lines if line.name.startswith(OPTICS))
        per_chip = f"Per chip: {significant(price / chips)} USD and {significant(power / chips)} W."
        if optics:
            share = rounded_percent(optics / price)
            per_chip += f" Optical modules and fibre are {share} of the price."
        below = [
            per_chip,
            "source of price: an estimate (~) is this program's own; derived is computed from "
            "published prices.",
        ]
        mark = max((weak(line.kind) for line in network.lines), default="")
        last = [
            "whole network",
            "",
            "",
            mark + significant(price, 5),
            significant(power / KILO, 5),
            "",
        ]
        tiers = count_with_noun(network.tiers, "tier")
        title = f"Scale-out network of {chips:,} chips: {tiers} of switches"
        above = [*_design_sentences(network, design), *facts]
        return [NETWORK_LINE.table(network.lines, title, above, below, [last])]

    return NETWORK.answer(catalogue, (network, design), tables, (NETWORK_LINE, network.lines))


OPTICS = ("modules", "fibre", "shuffle")
REACHED_BY = {
    "tor": "Copper cables join the chips to tier 1, which stands in their racks.",
    "leaf": "Optical modules join the chips to tier 1, which stands outside their racks.",
}


def _design_sentences(network: Network, design: JsonObject) -> list[str]:
    """Return sentences on ports and planes, on the switches and their reach, and on tier 1."""
    port, planes = f"{design['port_gb_per_s'] * BITS:g} Gb/s", design["planes"]
    tiers = count_with_noun(network.tiers, "tier")
    ports = f"Each chip has one port of {port}."
    if planes > 1:
        ports = (
            f"Each chip has {planes:g} ports of {port}. Each port leads into a network of its own, "
            "a plane."
        )
    return [
        ports,
        f"Each switch ({design['switch']}) has {design['radix']:.0f} ports of {port}. "
        f"{tiers} of such switches can join up to {design['max_endpoints']:,} chips.",
        REACHED_BY[design["design"]],
    ]
