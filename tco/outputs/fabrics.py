"""Scale-up fabrics: the table, the rows and the document of `tco fabric`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.catalog.systems import System
from tco.fabric.scopes import Scope
from tco.outputs.bills import variants
from tco.outputs.document import number
from tco.outputs.table import Table, significant

HEADER = ("scope", "chips", "injection_gb_per_s", "hops_mean", "hops_worst", "bisection_gb_per_s", "all_to_all_gb_per_s")


def scope_cells(scope: Scope) -> list[Any]:
    """Return the raw cells of a scope, bandwidths in GB/s."""
    giga = [float(value) / 1e9 for value in (scope.injection, scope.bisection, scope.all_to_all)]
    return [scope.scope, scope.chips, giga[0], float(scope.hops_mean), float(scope.hops_worst), giga[1], giga[2]]


def fabric_table(system: System, scopes: Sequence[Scope]) -> Table:
    """Return what each scope of the fabric gives, with its lanes and what all-to-all costs against injection."""
    rows = []
    for scope in scopes:
        cells = scope_cells(scope)
        over = cells[2] / cells[6]
        rows.append((scope.scope, *(significant(cell, 5) for cell in cells[1:]), significant(over, 3)))
    below = [f"{s.scope}: lanes a chip " + ", ".join(f"{name} {count:g}" for name, count in s.lanes.items()) for s in scopes if s.lanes]
    below.append(
        "GB/s per direction and chip (bisection: whole scope). A hop is one intermediate device. Spare, host and NIC lanes carry none of it."
    )
    columns = ("scope", "chips", "injection", "hops mean", "worst", "bisection", "all-to-all", "injection / all-to-all")
    return Table(columns, rows, f"{system.name}: {system.fabric['kind']} fabric", [variants(system)] if system.variant else [], below)


def fabric_document(system: System, scopes: Sequence[Scope]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    found = []
    for scope in scopes:
        cells = dict(zip(HEADER, scope_cells(scope), strict=True))
        found.append({name: cell if isinstance(cell, str) else number(cell) for name, cell in cells.items()} | {"lanes": scope.lanes})
    return {"system": system.id, "variant": system.variant, "kind": system.fabric["kind"], "scopes": found}
