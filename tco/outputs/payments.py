"""The payments of one scenario month by month: the table, the rows and the document of `tco price --cash-flow`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.chain.result import Result
from tco.economics.flows import Payment, cash_flow
from tco.outputs.comparison import premise
from tco.outputs.document import number
from tco.outputs.table import Table, significant

HEADER = ("month", "usd", "line")


def payments_of(result: Result) -> list[Payment]:
    """Return the payments of every line that may be shown."""
    return cash_flow(line.flow for line in result.lines)


def payment_rows(result: Result) -> list[list[Any]]:
    """Return the CSV rows."""
    return [[one.month, one.usd, one.line] for one in payments_of(result)]


def payment_document(result: Result) -> dict[str, Any]:
    """Return what the JSON document adds."""
    return {"cash_flow": [{"month": one.month, "usd": number(one.usd), "line": one.line} for one in payments_of(result)]}


def payment_table(result: Result) -> Table:
    """Return what is paid before operation begins and in each of its years: what recurs apart from purchases, rebates and resale."""
    recurring = {line.path for line in result.lines if line.flow.recurs}
    years: dict[int, list[float]] = {}
    for one in payments_of(result):
        sums = years.setdefault(-(-one.month // 12), [0.0, 0.0])
        sums[one.line in recurring] += float(one.usd)
    rows: list[Sequence[str]] = []
    paid = 0.0
    for year, sums in sorted(years.items()):
        paid += sum(sums)
        months = f"{12 * year - 11}-{12 * year}" if year > 0 else "0"
        rows.append((months, *(significant(value) for value in (*sums, sum(sums), paid))))
    below = [f"USD of one world of {result.metrics['chips']:g} chips, not discounted. Rebates and resale come in and are negative."]
    return Table(("months", "once", "recurring", "sum", "so far"), rows, result.title, [premise(result)], below, "lrrrr")
