"""Published figures of others, each beside the figure that the chain computes.

A file of `scenarios/published/` is a scenario on the terms that its source states, with a row for
each figure. A row may change the system and the settings of the file. `FigureSchema` of
`tco/catalog/schema.py` holds the keys of a row. Its `kind` says what the figure tests:

- `arithmetic`: the prices are those that the source states.
- `own-source`: rows of the catalogue are made of the figure.
- `power`: the figure is in watts.
- `ratio`: the figure is a ratio of two prices, which no level of prices moves.
- `independent`: the prices of the catalogue are compared with a price of others.

An independent figure may miss, and its row then gives a reason. All others must agree. A figure
that its row calls independent becomes `same-publisher` where prices of its own publisher, or prices
solved from figures of this publisher, carry at least `MOVING_SHARE` of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog.statements import ReproducedFigure, published_rows, read_statement
from tco.core.errors import refuse_unknown, unknown
from tco.core.types import JsonObject
from tco.core.units import convert
from tco.cost.cash_flows import payments
from tco.scenario.document import Scenario, load_scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.metrics import METRICS

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.cost.cash_flows import Flow
    from tco.scenario.result import Result
    from tco.system.bill import Bill, BillLine

INDEPENDENT, RELATED = "independent", "same-publisher"
KINDS = ("arithmetic", "own-source", INDEPENDENT, "power", "ratio", RELATED)
# share of a figure that prices must carry to move it: half as much again of this share is a tenth
# of the figure, the largest tolerance of a figure that must agree
MOVING_SHARE = 0.2
PRICE_ENDINGS = ("price", "cost", "usd_per_mw", "rent")  # of the names of inputs that are prices
BOUGHT = ("servers", "network", "storage")  # classes of assets that the IT price is of


class PublishedRow(NamedTuple):
    """A row of a published file, and the scenario that it changes."""

    catalogue: Catalogue
    scenario: Scenario
    where: str  # file and position
    cells: JsonObject

    def result(self) -> Result:
        """Evaluate the scenario with the system, the variant and the settings of the row.

        Raises:
            DataError: The system, a variant or a setting of the row is unknown.

        """
        changed = self.scenario._replace(
            system=self.cells["system"],
            variant=self.cells.get("variant", self.scenario.variant),
            settings=self.scenario.settings | self.cells.get("set", {}),
        )
        return evaluate(changed, catalogue=self.catalogue)


class Publication(NamedTuple):
    """The figures of one file."""

    name: str
    figures: list[ReproducedFigure]

    def findings(self) -> Iterator[str]:
        """Yield a text for every figure that misses without a valid reason."""
        for figure in self.figures:
            may_miss = figure.kind in (INDEPENDENT, RELATED)
            if figure.ok or (may_miss and figure.reason):
                continue
            stated = (
                f"{figure.low:g} to {figure.high:g}"
                if figure.tolerance is None
                else f"{figure.published:g} within {figure.tolerance:.0%}"
            )
            mute = ", and no reason is given" if may_miss else ""
            yield (
                f"{self.name}: {figure.metric} of {figure.system} is {figure.computed}, published "
                f"{stated}{mute}"
            )


# ---------------------------------------------------------------- metrics of lines
def _capital(flow: Flow) -> float:
    return float(flow.usd or 0.0)


def _yearly(flow: Flow) -> float:
    return float(flow.amount) if flow.recurs else 0.0


def _total_paid(flow: Flow) -> float:
    # all lives of the line, without interest
    return float(sum(payment.usd for payment in payments(flow)))


def _chip_hour(flow: Flow) -> float:
    return float(flow.usd_per_chip_hour)


def _extended_price(line: BillLine) -> float:
    return float(line.extended or 0.0)


def _one_domain(_: Result) -> float:
    return 1.0


def _domain_chips(scenario_result: Result) -> float:
    return float(scenario_result.metrics["chips"] or 0)


def _domain_share(scenario_result: Result) -> float:
    return _domain_chips(scenario_result) / float(scenario_result.inputs["cluster.chips"].value)


def _domain_watts(metric: str) -> Callable[[Result], float]:
    return lambda scenario_result: (
        _domain_chips(scenario_result) * float(scenario_result.metrics[metric] or 0)
    )


Divisor = Callable[["Result"], float]
# of cost lines: unit, what of each line is summed, and what the sum is divided by
COST_METRICS: dict[str, tuple[str, Callable[[Flow], float], Divisor]] = {
    "usd": ("USD", _capital, _one_domain),
    "usd_per_chip": ("USD/chip", _capital, _domain_chips),
    "usd_per_chip_hour": ("USD/chip/h", _chip_hour, _one_domain),
    "usd_per_facility_w": ("USD/W", _capital, _domain_watts("peak_facility_power_w_per_chip")),
    "usd_per_it_w": ("USD/W", _capital, _domain_watts("it_power_w_per_chip")),
    "cluster_usd": ("USD", _capital, _domain_share),
    "cluster_usd_per_year": ("USD/year", _yearly, _domain_share),
    "cluster_usd_paid": ("USD", _total_paid, _domain_share),
}
# of parts of the bill of materials, or of all parts
BILL_METRICS: dict[str, tuple[str, Callable[[BillLine], float], Divisor]] = {
    "bill_usd": ("USD", _extended_price, _one_domain),
    "bill_usd_per_chip": ("USD/chip", _extended_price, _domain_chips),
    "bill_w_per_chip": ("W/chip", lambda line: float(line.power), _domain_chips),
}


def _computed_value_and_unit(
    scenario_result: Result, published_row: PublishedRow
) -> tuple[float | None, str]:
    """Return the computed value that a row asks for, and its unit.

    Raises:
        DataError: The metric, a cost line or a part of the bill is unknown.

    """
    metric = published_row.cells["metric"]
    if metric in METRICS and "lines" not in published_row.cells:
        return scenario_result.metrics[metric], METRICS[metric].unit
    if metric in scenario_result.inputs:
        return float(scenario_result.inputs[metric].value), scenario_result.inputs[metric].unit
    if metric in BILL_METRICS and scenario_result.bill is not None:
        unit, bill_amount, divisor = BILL_METRICS[metric]
        amounts = map(bill_amount, _chosen_parts(scenario_result.bill, published_row))
    elif metric in COST_METRICS:
        unit, cost_amount, divisor = COST_METRICS[metric]
        amounts = map(cost_amount, _chosen_lines(scenario_result, published_row))
    else:
        raise unknown(
            "metric", metric, [*METRICS, *COST_METRICS, *BILL_METRICS], published_row.where
        )
    return sum(amounts) / divisor(scenario_result), unit


def _chosen_parts(bill: Bill, published_row: PublishedRow) -> list[BillLine]:
    known_parts = {line.part for line in bill.lines}
    parts = published_row.cells.get("parts", known_parts)
    refuse_unknown("part of the bill", parts, known_parts, published_row.where)
    return [line for line in bill.lines if line.part in parts]


def _chosen_lines(scenario_result: Result, published_row: PublishedRow) -> list[Flow]:
    """Return the cost lines at or below the paths that a row names, or all lines.

    Raises:
        DataError: A path has no line.

    """
    if "lines" not in published_row.cells:
        return list(scenario_result.lines)
    chosen: list[Flow] = []
    for path in published_row.cells["lines"]:
        below = [line for line in scenario_result.lines if f"{line.path}/".startswith(f"{path}/")]
        if not below:
            raise unknown(
                "cost line",
                path,
                [line.path for line in scenario_result.lines],
                published_row.where,
            )
        chosen += below
    return chosen


def priced_amounts(
    scenario_result: Result, published_row: PublishedRow
) -> list[tuple[float, tuple[str, ...]]]:
    """Return the summands of a figure, each with the paths of the inputs that price it.

    Only shares of the sum have a meaning: the amounts are USD, USD per chip-hour, or 1 for a figure
    that is itself an input.
    """
    metric = published_row.cells["metric"]
    if metric in scenario_result.inputs:
        return [(1.0, (metric,))]
    if metric in BILL_METRICS and scenario_result.bill is not None:
        return [
            (_extended_price(line), line.inputs)
            for line in _chosen_parts(scenario_result.bill, published_row)
        ]
    flows = _chosen_lines(scenario_result, published_row)
    if "hour" in metric:
        return [(_chip_hour(flow), flow.inputs) for flow in flows]
    return [
        (_capital(flow), flow.inputs)
        for flow in flows
        if not flow.recurs and (flow.asset in BOUGHT or not metric.startswith("capex"))
    ]


def _publishers_of_prices(scenario_result: Result, published_row: PublishedRow) -> tuple[str, ...]:
    """Return the publishers whose prices carry a share of at least `MOVING_SHARE` of a figure.

    A price belongs to the publisher that states it, and to those from whose figures it was solved.
    """
    catalogue = published_row.catalogue
    amounts = priced_amounts(scenario_result, published_row)
    sums: dict[str, float] = {}
    for amount, paths in amounts:
        sources: set[str] = set()
        for path in paths:
            if path in scenario_result.inputs and path.rpartition(".")[2].endswith(PRICE_ENDINGS):
                price = scenario_result.inputs[path]
                sources |= {price.source, *price.solved_from.split(";")}
        publishers = map(catalogue.publisher, sources & catalogue.sources.keys())
        for publisher in set(publishers):
            sums[publisher] = sums.get(publisher, 0.0) + amount
    threshold = MOVING_SHARE * sum(amount for amount, _ in amounts)
    return tuple(
        sorted(publisher_name for publisher_name, amount in sums.items() if amount >= threshold)
    )


# ---------------------------------------------------------------- a file
def read_published(catalogue: Catalogue, publication_name: str) -> Iterator[PublishedRow]:
    """Yield the rows of a published file.

    Args:
        catalogue: Holds the published files and their scenarios.
        publication_name: Name of the file, a key of `catalogue.published`.

    """
    scenario = load_scenario(catalogue, f"published/{publication_name}")
    for where, cells in published_rows(catalogue, publication_name):
        yield PublishedRow(catalogue, scenario, where, cells)


def publication(
    catalogue: Catalogue, publication_name: str, kind: str | None = None
) -> Publication:
    """Return the computed figures of a published file.

    Args:
        catalogue: Holds the published files and their scenarios.
        publication_name: Name of the file, a key of `catalogue.published`.
        kind: Kind of figure to return; None for all kinds.

    Raises:
        DataError: A row names an unknown metric, system, part or cost line, or states no range.

    """
    # a related figure is one that its row calls independent
    stated_kind = INDEPENDENT if kind == RELATED else kind
    figures = [
        evaluate_published_figure(published_row)
        for published_row in read_published(catalogue, publication_name)
        if kind is None or published_row.cells["kind"] == stated_kind
    ]
    return Publication(
        publication_name, [figure for figure in figures if kind in (None, figure.kind)]
    )


def evaluate_published_figure(published_row: PublishedRow) -> ReproducedFigure:
    """Return a published figure beside its computed value.

    The key `over` of the row names the system whose figure is the divisor.

    Raises:
        DataError: The row states no range, or names an unknown metric, part or cost line.

    """
    cells, scenario_result = published_row.cells, published_row.result()
    metric, unit, computed = _computed_figure(scenario_result, published_row)
    statement = read_statement(cells, published_row.where)
    publisher = published_row.catalogue.publisher(cells["source"])
    rests_on = _publishers_of_prices(scenario_result, published_row)
    is_related = cells["kind"] == INDEPENDENT and publisher in rests_on
    return ReproducedFigure(
        RELATED if is_related else cells["kind"],
        scenario_result.scenario,
        scenario_result.system,
        metric,
        unit,
        *statement,
        computed,
        cells["source"],
        cells.get("note", ""),
        cells.get("reason", ""),
        computed is not None and statement.agrees(computed),
        publisher,
        rests_on,
    )


def _computed_figure(
    scenario_result: Result, published_row: PublishedRow
) -> tuple[str, str, float | None]:
    """Return the metric of a row in words, the unit of the publication, and the computed value."""
    cells = published_row.cells
    computed_value, native_unit = _computed_value_and_unit(scenario_result, published_row)
    metric, unit = cells["metric"], cells.get("unit", native_unit)
    if "over" in cells:
        divisor_row = published_row._replace(cells=cells | {"system": cells["over"]})
        divisor, _ = _computed_value_and_unit(divisor_row.result(), divisor_row)
        computed_value = computed_value / divisor if computed_value and divisor else None
        metric, unit, native_unit = f"{metric} over that of {cells['over']}", "", ""
    if chosen_names := [*cells.get("lines", ()), *cells.get("parts", ())]:
        metric = f"{metric} of {', '.join(chosen_names)}"
    if computed_value is not None:
        computed_value /= convert(1.0, unit, native_unit)
    return metric, unit, computed_value
