"""Cost tables of a scenario: cost lines and payments by month.

`tco price` prints the cost lines; `tco price --cash-flow` prints the payments by month.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tco.catalog import Catalogue
from tco.comparison.cash_flow import DEBT, INCOME, Money
from tco.core.provenance import SOURCED
from tco.core.types import JsonObject
from tco.cost.cash_flows import Flow
from tco.cost.ledger import directness_of
from tco.report.assumptions import (
    SHARES,
    WAITING,
    available_words,
    bill_dates,
    kinds_in_words,
    missing_notes,
    premise,
)
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant
from tco.scenario.result import Result

# A line with the result it is of: how direct its sources are is told by the inputs of the result.
LINE = Record(
    Record(
        *("path", "asset"),
        Member("usd", float | None, unit="USD"),
        Member("usd_per_chip_hour", float, unit="USD/chip/h"),
        "kind",
    ).read_via("0"),
    Member("directness", read=lambda one: directness_of(one[0], one[1].inputs)),
    Member("sources", [str], lambda one: list(one[0].sources)),
    Member("own", bool, "0.overlay", csv=False),
)
PAYMENT = Record(Member("month", int), Member("usd", float), "line")
MONEY = Record(
    Member("npv_usd", float | None, "npv"),
    Member("irr_per_year", float | None, "irr"),
    Member("equity_irr_per_year", float | None, "equity_irr"),
    Member("payback_month", int | None, "payback"),
    Member("break_even_usd_per_used_chip_hour", float, "break_even_hour"),
    Member("break_even_usd_per_million_output_tokens", float | None, "break_even_tokens"),
    Member("break_even_utilisation", float | None),
    Member("market_rent_usd_per_chip_hour", float | None, "market_rent"),
    Member("renting_costs_as_much_by_month", int | None, "turns"),
    Member("delay_usd_per_rack_month", float | None, "delay_cost"),
    Member("working_capital_usd", float, "tied_up"),
    Member("carrying_usd", float, "carrying"),
)
BOOK = Record(
    Member("year", int),
    Member("straight_line_usd", float, "straight_line"),
    Member("declining_usd", float, "declining"),
)


def kept_state(result: Result) -> JsonObject:
    """Return the state of a result, by which another answer is held against it."""
    from tco.regression.state import state_of  # only the document has it

    return state_of(result)


PRICE = Document(
    "price",
    Record("scenario", "system").read_via("0"),
    Member("lines", [LINE], lambda found: cost_line_records(found[0])),
    Member("metrics", {str: float | None}, "0.metrics"),
    Member(
        "shares",
        SHARES,
        lambda found: {
            name: found[0].shares[name] for name in ("hardware", "terms") if name in found[0].shares
        },
    ),
    Member("directness", {str: float}, lambda found: found[0].shares.get("directness", {})),
    Member("bill_dates", {str: float}, lambda found: bill_dates(found[0])),
    Member("hall_cooling", str | None, "0.hall_cooling"),
    WAITING.read_via("0"),
    Member(
        "notes",
        [str],
        lambda found: [
            *missing_notes(found[0]),
            *found[0].notes,
            *found[0].ages.notes,
            *found[0].ages.hour_notes,
        ],
    ),
    Member("cash_flow", [PAYMENT], "1.payments", optional=True),
    Member("money", MONEY, "1", optional=True),
    Member("books", [BOOK], "1.books", optional=True),
    Member("money_notes", [str], "1.notes", optional=True),
    Member("state", dict, lambda found: kept_state(found[0])),
)


def cost_line_records(result: Result) -> list[tuple[Flow, Result]]:
    """Return the cost lines of `result`, paired with `result`."""
    return [(line, result) for line in result.lines]


def price_answer(catalogue: Catalogue, result: Result, money: Money | None) -> Answer:
    """Return the answer on a scenario's cost by line, or by month.

    Args:
        catalogue: Catalogue of the scenario.
        result: Result of the scenario.
        money: Payments by month; None shows the cost lines.

    """
    notes = [
        *result.notes,
        *result.ages.notes,
        *result.ages.hour_notes,
        *(money.notes if money else ()),
    ]
    rows = (PAYMENT, money.payments) if money else (LINE, cost_line_records(result))
    return PRICE.answer(
        catalogue,
        (result, money),
        lambda: [payment_table(result, money) if money else cost_table(result)],
        rows,
        notes,
        of=result.context,
    )


def cost_table(result: Result) -> Table:
    """Return the cost lines of one scenario by class of asset with its sum and its share, the
    largest line first within each.
    """
    rows: list[Sequence[str]] = []
    whole = float(result.metrics["tco_usd_per_chip_hour"])
    order = list(dict.fromkeys(line.asset for line in result.lines))
    for asset in order:
        lines = sorted(
            (line for line in result.lines if line.asset == asset),
            key=lambda line: -abs(float(line.usd_per_chip_hour)),
        )
        rows.append((asset.upper(), *sums(lines, whole), "", ""))
        for line in lines:
            own = " (own)" if line.overlay else ""
            rows.append(
                (
                    f"  {line.path.partition('/')[2] or line.path}",
                    *sums([line], whole),
                    line.kind + own,
                    ", ".join(line.sources),
                )
            )
    _, hourly, share = sums(result.lines, whole, 5)
    rows.append(("COST A CHIP-HOUR", "", hourly, share, "", ""))
    mark = "~" if hourly.startswith("~") else ""
    shares = result.shares.get("directness", {})
    # first-hand is always named
    direct = [
        f"{name} {share * 100:.0f} %"
        for name, share in shares.items()
        if share >= 0.005 or name == "first-hand"
    ]
    gross, used = (
        result.metrics["tco_gross_usd_per_chip_hour"],
        result.metrics["tco_usd_per_used_chip_hour"],
    )
    below = [
        f"Before rebates {mark}{significant(gross)}; a utilised chip-hour costs "
        f"{mark}{significant(used)}. "
        f"USD of one scale-up domain of {result.metrics['chips']:g} chips.",
        f"Sourced/estimated/assumed: hardware price {kinds_in_words(result, 'hardware')}, terms "
        f"and site {kinds_in_words(result, 'terms')}. "
        "~ based on an estimate or an assumption.",
        "How direct the sources of the hardware price are: "
        f"{', '.join(direct) or 'nothing is bought'}.",
        *available_words(result),
    ]
    return Table(
        ("", "USD", "USD/chip-hour", "%", "kind", "source"),
        rows,
        result.title,
        [premise(result)],
        below,
        "lrrrll",
    )


def sums(lines: Sequence[Flow], whole: float, digits: int = 4) -> tuple[str, str, str]:
    """Return purchase, cost per chip-hour and share of `lines` as text.

    The purchase is in USD, the share in per cent of `whole`. The cost per chip-hour is marked `~`
    where any line rests on an estimate.
    """
    hourly = sum(float(line.usd_per_chip_hour) for line in lines)
    bought = [float(line.usd) for line in lines if line.usd is not None]
    mark = "" if all(line.kind in SOURCED for line in lines) else "~"
    return (
        (significant(sum(bought)) if bought else ""),
        mark + significant(hourly, digits),
        f"{hourly / whole * 100:.1f}" if whole else "",
    )


COLUMNS = ("once", "recurring", "income", "debt")


def payment_table(result: Result, money: Money) -> Table:
    """Return the table of payments by year and kind, in USD.

    Rows are the time before operation begins and the years of operation. Income is negative.
    """
    recurring = {line.path for line in result.lines if line.recurs}
    kinds = {INCOME: "income", DEBT: "debt"} | dict.fromkeys(recurring, "recurring")
    years: dict[int, dict[str, float]] = {}
    for one in money.payments:
        paid_then = years.setdefault(-(-one.month // 12), {})
        kind = kinds.get(one.line, "once")
        paid_then[kind] = paid_then.get(kind, 0.0) + float(one.usd)
    columns = [
        kind
        for kind in COLUMNS
        if kind in ("once", "recurring") or any(kind in sums for sums in years.values())
    ]
    rows: list[Sequence[str]] = []
    paid = 0.0
    for year, sums in sorted(years.items()):
        paid += sum(sums.values())
        months = (
            f"{12 * year - 11}-{12 * year}"
            if year != 0
            else "0"
            if min(one.month for one in money.payments) >= 0
            else "-11-0"
        )
        rows.append(
            (
                months,
                *(
                    significant(value)
                    for value in (
                        *(sums.get(kind, 0.0) for kind in columns),
                        sum(sums.values()),
                        paid,
                    )
                ),
            )
        )
    header = ("months", *columns, "sum", "so far")
    return Table(
        header,
        rows,
        result.title,
        [premise(result)],
        list(lines_below(result, money)),
        "l" + "r" * (len(header) - 1),
    )


def lines_below(result: Result, money: Money) -> Iterator[str]:
    """Yield the sentences below the payment table, from pay-back to interest."""
    yield (
        f"USD of one scale-up domain of {result.metrics['chips']:g} chips, not discounted. "
        "What comes in is negative: rebates, resale, income, loans; "
        "what outlives the operation comes in at its end for what keeps its yearly charge."
    )
    tokens = (
        ""
        if money.break_even_tokens is None
        else f", or {significant(money.break_even_tokens)} a million output tokens"
    )
    yield (
        f"Paid back with interest at {significant(money.break_even_hour)} USD a utilised "
        f"chip-hour{tokens}."
    )
    if money.npv is not None:
        back = "never paid back" if money.payback is None else f"paid back by month {money.payback}"
        rate, equity = (
            "none" if one is None else f"{one * 100:.1f} %" for one in (money.irr, money.equity_irr)
        )
        lent = f", of equity {equity}" if any(one.line == DEBT for one in money.payments) else ""
        yield (
            f"Net present value {significant(money.npv)} USD, {back}; internal rate of return "
            f"{rate}{lent}."
        )
    if money.break_even_utilisation is not None:
        yield (
            "At the rent stated, owning pays from a utilisation of "
            f"{money.break_even_utilisation * 100:.0f} %."
        )
    if money.market_rent is not None:
        when = "never within its life" if money.turns is None else f"by month {money.turns}"
        rent = significant(money.market_rent)
        yield (
            f"Rented at {rent} USD a chip-hour, committed, the chips would have cost as much as "
            f"owning them has {when}, without interest."
        )
    if money.delay_cost is not None:
        yield f"A month's delay costs {significant(money.delay_cost)} USD a rack."
    if money.carrying > 0:
        interest = significant(money.carrying)
        yield (
            f"{significant(money.tied_up)} USD are paid before the first month of operation; "
            f"interest on it until then is {interest}."
        )
