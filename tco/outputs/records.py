"""Results as plain tables for other programs: scenarios, inputs, bills, costs and sources, each column with its type and unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.chain.metrics import METRICS
from tco.chain.result import Result
from tco.outputs.bills import HEADER as BILL
from tco.outputs.bills import bill_cells
from tco.outputs.comparison import CONTEXT, comparison_rows
from tco.outputs.costs import HEADER as COST
from tco.outputs.costs import cost_rows

PURE = "1"  # the unit of a number without one
ROW_UNIT = "as the column unit says"
UNITS = {  # of the columns that are numbers and no metrics
    **dict.fromkeys(("hardware_sourced_share", "validated_rows", "anchored_rows", "quantity"), PURE),
    **{"unit_price_usd": "USD", "extended_usd": "USD", "power_w": "W"},
    **{"usd": "USD", "usd_per_chip_hour": "USD/chip/h", "value": ROW_UNIT, "low": ROW_UNIT, "high": ROW_UNIT},
    **{name: metric.unit or PURE for name, metric in METRICS.items()},
}
INPUT = ("scenario", "path", "value", "unit", "low", "high", "as_of", "kind", "source", "own")
TITLES = {
    "scenarios": "A row for each scenario: what it depends on, and every metric",
    "inputs": "Every input a scenario depends on, in the unit the formulas take",
    "bill": "Bills of materials of one scale-up domain, by leaves",
    "cost": "Cost lines, which sum to the cost of a chip-hour",
    "sources": "The sources that inputs, bills and costs name",
}


class Records(NamedTuple):
    """One table: its columns and its rows of texts, numbers and nothings."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def columns(self) -> Iterator[tuple[str, str | None, list[Any]]]:
        """Yield name, unit if it is one of numbers, and cells of every column."""
        for at, name in enumerate(self.header):
            yield name, UNITS.get(name), [row[at] for row in self.rows]


def records_of(results: Sequence[Result], catalogue: Catalogue) -> dict[str, Records]:
    """Return the tables of some results by name."""
    inputs = [[result.scenario, *row] for result in results for row in input_rows(result)]
    bill = [[result.scenario, *bill_cells(line)] for result in results if result.bill for line in result.bill.lines]
    cost = [[result.scenario, *row] for result in results for row in cost_rows(result)]
    named = {str(row[INPUT.index("source")]) for row in inputs}
    named |= {
        source for lines, at in ((bill, BILL.index("source")), (cost, COST.index("sources"))) for row in lines for source in row[at + 1].split(";")
    }
    sources = [[name, source.title, source.url, source.date] for name, source in sorted(catalogue.sources.items()) if name in named]
    return {
        "scenarios": Records(("scenario", "system", *METRICS, *CONTEXT), comparison_rows(results)),
        "inputs": Records(INPUT, inputs),
        "bill": Records(("scenario", *BILL), bill),
        "cost": Records(("scenario", *COST), cost),
        "sources": Records(("id", "title", "url", "date"), sources),
    }


def input_rows(result: Result) -> Iterator[list[Any]]:
    """Yield the inputs of a result, by path."""
    for path, given in sorted(result.inputs.items()):
        yield [path, given.value, given.unit, given.low, given.high, given.as_of, given.kind, given.source, "own" if given.overlay else ""]
