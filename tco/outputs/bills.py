"""Bills of materials: the table, the rows and the document of `tco bom`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.catalog.systems import System
from tco.economics.rebates import Rebate
from tco.foundation.provenance import SOURCED
from tco.hardware.bill import Bill, BillLine
from tco.outputs.document import number
from tco.outputs.table import Table, significant

HEADER = ("path", "part", "quantity", "unit_price_usd", "extended_usd", "power_w", "kind", "directness", "source", "included_in")


def bill_cells(line: BillLine) -> list[Any]:
    """Return the raw cells of a line."""
    return [
        line.path,
        line.part,
        line.quantity,
        line.unit_price,
        line.extended,
        line.power,
        line.kind,
        line.directness,
        ";".join(line.sources),
        line.included_in,
    ]


def bill_table(system: System, bill: Bill, rebates: Sequence[Rebate], date: str) -> Table:
    """Return the bill of one world, indented as the tree."""
    rows: list[Sequence[str]] = []
    for line in bill.lines:
        depth = line.path.count("/")
        price = "included" if line.included_in else significant(line.unit_price)
        extended = "" if line.included_in else ("" if line.kind in SOURCED else "~") + significant(line.extended)
        kind = "" if line.included_in else line.kind + (" (own)" if line.overlay else "")
        rows.append(("  " * depth + line.part, significant(line.quantity, 6), price, extended, significant(line.power), kind, line.directness))
    rows.append(("WHOLE WORLD", "", "", significant(bill.price, 5), significant(bill.power, 5), "", ""))
    chips = system.chips
    below = [
        f"{significant(float(bill.price) / chips, 5)} USD and {significant(float(bill.power) / chips)} W a chip "
        f"({chips:g} chips, {system.racks:g} racks). "
        "~ based on an estimate or an assumption."
    ]
    for rebate in rebates:
        part = float(rebate.value) / float(rebate.spend) if float(rebate.spend) else 0.0
        below.append(f"Rebate {rebate.supplier}: {significant(rebate.value)} USD, {part * 100:.3g} % of {significant(rebate.spend)}. {rebate.note}")
    above = [f"{system.owner_pays} | prices of {date} | {variants(system)}".rstrip(" |")]
    return Table(("part", "quantity", "unit USD", "USD", "W", "kind", "how direct"), rows, system.name, above, below, "lrrrrll")


def variants(system: System) -> str:
    """Return the variants in force, as the options that choose them."""
    return " ".join(f"{key}={value}" for key, value in system.variant.items())


def bill_document(system: System, bill: Bill, rebates: Sequence[Rebate]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    lines = []
    for line in bill.lines:
        cells = dict(zip(HEADER, bill_cells(line), strict=True)) | {"own": line.overlay}
        for name in ("quantity", "unit_price_usd", "extended_usd", "power_w"):
            cells[name] = number(cells[name])
        lines.append(cells)
    rebate = sum(float(r.value) for r in rebates)
    return {
        "system": system.id,
        "variant": system.variant,
        "lines": lines,
        "quantity_by_part": {part: number(quantity) for part, quantity in sorted(system.quantity.items())},
        "rebates": [{"path": r.path, "supplier": r.supplier, "usd": number(r.value), "kind": r.kind, "note": r.note} for r in rebates],
        "totals": {
            "price_usd": number(bill.price),
            "rebate_usd": number(rebate),
            "net_usd": number(float(bill.price) - rebate),
            "power_w": number(bill.power),
            "chips": number(system.chips),
            "racks": number(system.racks),
        },
    }
