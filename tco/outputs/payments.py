"""The money of one scenario month by month: the table, the rows and the document of `tco price --cash-flow`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tco.chain.result import Result
from tco.outputs.comparison import premise
from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.money import DEBT, INCOME, Money

HEADER = ("month", "usd", "line")
COLUMNS = ("once", "recurring", "income", "debt")


def payment_rows(money: Money) -> list[list[Any]]:
    """Return the CSV rows."""
    return [[one.month, one.usd, one.line] for one in money.payments]


def payment_document(money: Money) -> dict[str, Any]:
    """Return what the JSON document adds."""
    paid = [{"month": one.month, "usd": number(one.usd), "line": one.line} for one in money.payments]
    found = {
        "npv_usd": money.npv,
        "irr_per_year": money.irr,
        "equity_irr_per_year": money.equity_irr,
        "payback_month": money.payback,
        "break_even_usd_per_used_chip_hour": money.break_even_hour,
        "break_even_usd_per_million_output_tokens": money.break_even_tokens,
        "break_even_utilisation": money.break_even_utilisation,
        "market_rent_usd_per_chip_hour": money.market_rent,
        "renting_costs_as_much_by_month": money.turns,
        "delay_usd_per_rack_month": money.delay_cost,
        "working_capital_usd": money.tied_up,
        "carrying_usd": money.carrying,
    }
    books = [{"year": book.year, "straight_line_usd": book.straight_line, "declining_usd": book.declining} for book in money.books]
    return {"cash_flow": paid, "money": {name: number(value) for name, value in found.items()}, "books": books, "money_notes": money.notes}


def payment_table(result: Result, money: Money) -> Table:
    """Return what is paid before operation begins and in each of its years, by kind; what comes in is negative."""
    recurring = {line.path for line in result.lines if line.flow.recurs}
    kinds = {INCOME: "income", DEBT: "debt"} | dict.fromkeys(recurring, "recurring")
    years: dict[int, dict[str, float]] = {}
    for one in money.payments:
        sums = years.setdefault(-(-one.month // 12), {})
        kind = kinds.get(one.line, "once")
        sums[kind] = sums.get(kind, 0.0) + float(one.usd)
    columns = [kind for kind in COLUMNS if kind in ("once", "recurring") or any(kind in sums for sums in years.values())]
    rows: list[Sequence[str]] = []
    paid = 0.0
    for year, sums in sorted(years.items()):
        paid += sum(sums.values())
        months = f"{12 * year - 11}-{12 * year}" if year != 0 else "0" if min(one.month for one in money.payments) >= 0 else "-11-0"
        rows.append((months, *(significant(value) for value in (*(sums.get(kind, 0.0) for kind in columns), sum(sums.values()), paid))))
    header = ("months", *columns, "sum", "so far")
    return Table(header, rows, result.title, [premise(result)], list(lines_below(result, money)), "l" + "r" * (len(header) - 1))


def lines_below(result: Result, money: Money) -> Iterator[str]:
    """Yield what follows from the payments, a line each."""
    yield (
        f"USD of one scale-up domain of {result.metrics['chips']:g} chips, not discounted. "
        "What comes in is negative: rebates, resale, income, loans; "
        "what outlives the operation comes in at its end for what keeps its yearly charge."
    )
    tokens = "" if money.break_even_tokens is None else f", or {significant(money.break_even_tokens)} a million output tokens"
    yield f"Paid back with interest at {significant(money.break_even_hour)} USD a utilised chip-hour{tokens}."
    if money.npv is not None:
        back = "never paid back" if money.payback is None else f"paid back by month {money.payback}"
        rate, equity = ("none" if one is None else f"{one * 100:.1f} %" for one in (money.irr, money.equity_irr))
        lent = f", of equity {equity}" if any(one.line == DEBT for one in money.payments) else ""
        yield f"Net present value {significant(money.npv)} USD, {back}; internal rate of return {rate}{lent}."
    if money.break_even_utilisation is not None:
        yield f"At the rent stated, owning pays from a utilisation of {money.break_even_utilisation * 100:.0f} %."
    if money.market_rent is not None:
        when = "never within its life" if money.turns is None else f"by month {money.turns}"
        rent = significant(money.market_rent)
        yield f"Rented at {rent} USD a chip-hour, committed, the chips would have cost as much as owning them has {when}, without interest."
    if money.delay_cost is not None:
        yield f"A month's delay costs {significant(money.delay_cost)} USD a rack."
    if money.carrying > 0:
        interest = significant(money.carrying)
        yield f"{significant(money.tied_up)} USD are paid before the first month of operation; interest on it until then is {interest}."
