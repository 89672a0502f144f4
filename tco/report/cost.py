"""Cost tables of a scenario: cost lines and payments by month.

`tco price` prints the cost lines; `tco price --cash-flow` prints the payments by month.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import part_label
from tco.comparison.cash_flow import DEBT, INCOME, Book, Money
from tco.core.provenance import SOURCED
from tco.core.types import JsonObject
from tco.cost.cash_flows import Flow, Payment
from tco.cost.ledger import directness_of
from tco.report.assumptions import (
    DELIVERY,
    SHARES,
    available_words,
    kinds_in_sentence,
    missing_notes,
    premise,
    training_job_words,
)
from tco.report.ranges import base_case_words, figures
from tco.report.record import Answer, Document, Maybe, Member, Record, record_of
from tco.report.table import ESTIMATE_NOTE, Table, fixed_digits, significant
from tco.scenario.metrics import CHIP_HOUR
from tco.scenario.result import Result

if TYPE_CHECKING:
    from tco.sampling.median import DrawnMetric

COLUMNS = ("once", "recurring", "income", "debt")
# A line with the result it is of: how direct its sources are is told by the inputs of the result.
LINE = Record(
    Record(
        "path",
        "asset",
        Member("usd", float | None, unit="USD"),
        Member("usd_per_chip_hour", float, unit="USD/chip/h"),
        "kind",
    ).read_via("0"),
    Member("directness", read=lambda pair: directness_of(pair[0], pair[1].inputs)),
    Member("sources", [str], "0.sources"),
    Member("own", bool, "0.overlay", csv=False),
)


class PricedScenario(NamedTuple):
    """A result, with its payments by month where they were asked for."""

    result: Result
    money: Money | None
    range: DrawnMetric | None  # of the cost per chip-hour


def cost_line_records(scenario_result: Result) -> list[tuple[Flow, Result]]:
    """Pair the cost lines of `scenario_result` with `scenario_result`."""
    return [(line, scenario_result) for line in scenario_result.lines]


def _price_notes(scenario_result: Result) -> list[str]:
    return [*scenario_result.notes, *scenario_result.ages.notes, *scenario_result.ages.hour_notes]


def _result_state(scenario_result: Result) -> JsonObject:
    # loaded here, as only the document has the state by which another answer is compared with it
    from tco.regression.state import state_of

    return state_of(scenario_result)


PRICE = Document(
    "price",
    Record(
        "scenario",
        "system",
        Member("lines", [LINE], cost_line_records),
        Member("metrics", {str: float | None}),
        SHARES,
        DELIVERY,
        Member(
            "notes",
            [str],
            lambda scenario_result: [
                *missing_notes(scenario_result),
                *_price_notes(scenario_result),
            ],
        ),
    ).read_via("result"),
    Member("range", Maybe(figures("p10", "p50", "p90"))),
    Member("cash_flow", [Payment], "money.payments", optional=True),
    Member("money", Money, optional=True),
    Member("books", [Book], "money.books", optional=True),
    Member("money_notes", [str], "money.notes", optional=True),
    Member("state", dict, lambda priced: _result_state(priced.result)),
)


def price_answer(
    catalogue: Catalogue,
    scenario_result: Result,
    money: Money | None,
    drawn: DrawnMetric | None,
) -> Answer:
    """Answer with a scenario's cost by line, or by month.

    Args:
        catalogue: Catalogue of the scenario.
        scenario_result: Result of the scenario.
        money: Payments by month; None shows the cost lines.
        drawn: Percentiles of the cost per chip-hour over draws; None without draws.

    """
    notes = [*_price_notes(scenario_result), *(money.notes if money else ())]
    csv_rows = (
        (record_of(Payment), money.payments)
        if money
        else (LINE, cost_line_records(scenario_result))
    )
    return PRICE.answer(
        catalogue,
        PricedScenario(scenario_result, money, drawn),
        lambda: [
            _payment_table(scenario_result, money) if money else cost_table(scenario_result, drawn)
        ],
        csv_rows,
        notes,
        of=scenario_result.context,
    )


def cost_table(scenario_result: Result, drawn: DrawnMetric | None = None) -> Table:
    """Tabulate the cost lines of a scenario by class of asset, the largest first."""
    line_names = _line_names(scenario_result.lines)
    sources = _source_numbers(scenario_result.lines)
    line_rows: list[Sequence[str]] = []
    chip_hour = float(scenario_result.metrics[CHIP_HOUR])
    for asset in dict.fromkeys(line.asset for line in scenario_result.lines):
        lines = sorted(
            (line for line in scenario_result.lines if line.asset == asset),
            key=lambda line: -abs(float(line.usd_per_chip_hour)),
        )
        line_rows.append((asset.upper(), *_sum_cells(lines, chip_hour), "", ""))
        line_rows += [
            (
                f"  {line_names[line.path]}",
                *_sum_cells([line], chip_hour),
                line.kind + " (own)" * line.overlay,
                ", ".join(str(sources[source]) for source in line.sources),
            )
            for line in lines
        ]
    _, hourly, share = _sum_cells(scenario_result.lines, chip_hour)
    line_rows.append(("COST PER CHIP-HOUR", "", hourly, share, "", ""))
    mark = "~" if hourly.startswith("~") else ""
    gross, used = (
        fixed_digits(scenario_result.metrics[metric])
        for metric in ("tco_gross_usd_per_chip_hour", "tco_usd_per_used_chip_hour")
    )
    below = [
        *training_job_words([scenario_result]),
        f"Cost per chip-hour before rebates {mark}{gross} USD. Cost per used chip-hour (hours that "
        f"chips are up and used) {mark}{used} USD.",
        f"bought, USD: for one scale-up domain of {scenario_result.metrics['chips']:g} chips.",
        "kind: how the price is known; a derived one is computed from its sources.",
        f"Sources: {', '.join(f'{number} {source}' for source, number in sources.items())}.",
        _source_sentences(scenario_result),
        *available_words(scenario_result),
    ]
    header = ("", "bought, USD", "USD/chip-hour", "share, %", "kind", "sources")
    above = [premise(scenario_result), base_case_words(scenario_result, CHIP_HOUR, drawn)]
    return Table(header, line_rows, scenario_result.title, above, below, "lrrrll")


def _source_sentences(scenario_result: Result) -> str:
    """Return which shares of price and terms are sourced, and what of the price is first-hand."""
    shares, sentences = scenario_result.shares, []
    if shares.get("hardware"):
        first_hand = shares.get("directness", {}).get("first-hand", 0.0)
        sentences.append(
            f"Shares of the hardware price: {kinds_in_sentence(scenario_result, 'hardware')}; "
            f"makers or sellers state {first_hand * 100:.0f} % first-hand."
        )
    if shares.get("terms"):
        sentences.append(
            f"Shares of the cost of terms and site: {kinds_in_sentence(scenario_result, 'terms')}."
        )
    return " ".join([*sentences, ESTIMATE_NOTE])


def _line_names(lines: Sequence[Flow]) -> dict[str, str]:
    """Return a name in words for each cost line by path, with its assembly where two share it."""
    line_names: dict[str, str] = {}
    for line in lines:
        *assemblies, part = line.path.split("/")[1:] or [line.path]
        is_shared = sum(flow.path.split("/")[-1] == part for flow in lines) > 1
        name = part_label(part)
        line_names[line.path] = f"{name} in {assemblies[-1]}" if is_shared and assemblies else name
    return line_names


def _source_numbers(lines: Sequence[Flow]) -> dict[str, int]:
    """Number the sources of the lines in the order of the table."""
    assets = list(dict.fromkeys(line.asset for line in lines))
    ordered = sorted(
        lines, key=lambda line: (assets.index(line.asset), -abs(float(line.usd_per_chip_hour)))
    )
    sources = dict.fromkeys(source for line in ordered for source in line.sources)
    return {source: number for number, source in enumerate(sources, 1)}


def _sum_cells(lines: Sequence[Flow], chip_hour: float) -> tuple[str, str, str]:
    """Sum the purchase, USD, the cost per chip-hour and its share of the total, %."""
    hourly = sum(float(line.usd_per_chip_hour) for line in lines)
    purchases = [float(line.usd) for line in lines if line.usd is not None]
    mark = "" if all(line.kind in SOURCED for line in lines) else "~"
    return (
        significant(sum(purchases)) if purchases else "",
        f"{mark}{hourly:.4f}",
        f"{hourly / chip_hour * 100:.1f}" if chip_hour else "",
    )


def _payment_table(scenario_result: Result, money: Money) -> Table:
    """Tabulate the payments by year of operation and kind, USD; income is negative."""
    recurring = {line.path for line in scenario_result.lines if line.recurs}
    kinds = {INCOME: "income", DEBT: "debt"} | dict.fromkeys(recurring, "recurring")
    years: dict[int, dict[str, float]] = {}
    for payment in money.payments:
        sums = years.setdefault(-(-payment.month // 12), {})
        kind = kinds.get(payment.line, "once")
        sums[kind] = sums.get(kind, 0.0) + float(payment.usd)
    columns = [
        kind
        for kind in COLUMNS
        if kind in ("once", "recurring") or any(kind in sums for sums in years.values())
    ]
    before = "0" if min(payment.month for payment in money.payments) >= 0 else "-11-0"
    year_rows: list[Sequence[str]] = []
    paid = 0.0
    for year, sums in sorted(years.items()):
        total = sum(sums.values())
        paid += total
        amounts = (*(sums.get(kind, 0.0) for kind in columns), total, paid)
        months = f"{12 * year - 11}-{12 * year}" if year != 0 else before
        year_rows.append((months, *map(significant, amounts)))
    header = ("months", *columns, "sum", "so far")
    below = list(_payment_sentences(scenario_result, money))
    return Table(
        header,
        year_rows,
        scenario_result.title,
        [premise(scenario_result)],
        below,
        "l" + "r" * (len(header) - 1),
    )


def _payment_sentences(scenario_result: Result, money: Money) -> Iterator[str]:
    """Yield the sentences below the payment table, from pay-back to interest."""
    yield (
        f"USD of one scale-up domain of {scenario_result.metrics['chips']:g} chips, not "
        "discounted. What comes in is negative: rebates, resale, income, loans; "
        "what outlives the operation comes in at its end for what keeps its yearly charge."
    )
    token_cost = money.break_even_usd_per_million_output_tokens
    tokens = (
        "" if token_cost is None else f", or {fixed_digits(token_cost)} per million output tokens"
    )
    hour = fixed_digits(money.break_even_usd_per_used_chip_hour)
    yield f"Paid back with interest at {hour} USD per used chip-hour{tokens}."
    if money.npv_usd is not None:
        month = money.payback_month
        payback = "never paid back" if month is None else f"paid back by month {month}"
        rate, equity_rate = (
            "none" if irr is None else f"{irr * 100:.1f} %"
            for irr in (money.irr_per_year, money.equity_irr_per_year)
        )
        has_debt = any(payment.line == DEBT for payment in money.payments)
        equity = f", of equity {equity_rate}" if has_debt else ""
        yield (
            f"Net present value {significant(money.npv_usd)} USD, {payback}; internal rate of "
            f"return {rate}{equity}."
        )
    if money.break_even_utilisation is not None:
        yield (
            "At the rent stated, owning pays from a utilisation of "
            f"{money.break_even_utilisation * 100:.0f} %."
        )
    if money.market_rent_usd_per_chip_hour is not None:
        month = money.renting_costs_as_much_by_month
        rent = significant(money.market_rent_usd_per_chip_hour)
        yield (
            f"Rented at {rent} USD per chip-hour, committed, the chips would have cost as much as "
            f"owning them has {'never within its life' if month is None else f'by month {month}'}, "
            "without interest."
        )
    if money.delay_usd_per_rack_month is not None:
        yield f"A month's delay costs {significant(money.delay_usd_per_rack_month)} USD per rack."
    if money.carrying_usd > 0:
        yield (
            f"{significant(money.working_capital_usd)} USD are paid before the first month of "
            f"operation; interest on it until then is {significant(money.carrying_usd)}."
        )
