"""Figures that others have published, asked of the same chain that answers everything else.

A file of `scenarios/published/` is a scenario on the terms its source states, with a row for each
figure. Its `kind` says what it tests: `arithmetic` sets the prices that the source states,
`own-source` reproduces a figure that rows here are made of, `power` is one of watts, `ratio` one of
two prices here, which no level of prices moves, and `independent` holds what the catalogue knows by
itself against a price of others. All but the last must come out; an independent figure may miss,
and then says why. A row may change `system` and `set`tings, so that one file is one set of terms.

Whether a figure is independent is no word of its file: it is where none of the prices that move it
is of its publisher, or was solved from figures of his. One whose publisher's prices carry more of
it than a miss within its tolerance would show is of `same-publisher`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tco.core.errors import DataError, refuse_unknown, unknown
from tco.core.types import JsonObject
from tco.core.units import parse_quantity
from tco.cost.cash_flows import payments
from tco.scenario.document import Scenario, load_scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.metrics import METRICS

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.cost.cash_flows import Flow
    from tco.scenario.result import Result

INDEPENDENT, RELATED = "independent", "same-publisher"
STATED = ("arithmetic", "own-source", INDEPENDENT, "power", "ratio")  # in a file
KINDS = (*STATED, RELATED)
# share of a figure from which prices move it: at half as much again by a tenth, the most that a
# figure may be off which must come out
MOVES = 0.2
KEYS = (
    *("kind", "metric", "value", "unit", "tolerance", "low", "high", "source", "note", "reason"),
    *("system", "variant", "set", "lines", "parts", "over", "as_of"),
)


class ReproducedFigure(NamedTuple):
    """One figure of others and what comes out here, in the unit of the publication."""

    kind: str  # one of KINDS
    scenario: str
    system: str
    metric: str
    unit: str
    published: float  # of a range its middle
    tolerance: float | None  # a range has none
    low: float
    high: float
    computed: float | None
    source: str
    note: str
    reason: str  # why it misses, where it does
    publisher: str = ""
    rests_on_publishers: tuple[str, ...] = ()  # whose prices move it

    @property
    def ok(self) -> bool:
        """Say whether it comes out."""
        return self.computed is not None and self.low <= self.computed <= self.high


class Publication(NamedTuple):
    """The figures of one file."""

    name: str
    figures: list[ReproducedFigure]

    def findings(self) -> Iterator[str]:
        """Yield a text for every figure that misses without a valid reason.

        Only independent figures and figures of the same publisher may miss for a stated reason.
        """
        for one in self.figures:
            if one.ok or (one.kind in (INDEPENDENT, RELATED) and one.reason):
                continue
            stated = (
                f"{one.low:g} to {one.high:g}"
                if one.tolerance is None
                else f"{one.published:g} within {one.tolerance:.0%}"
            )
            mute = ", and no reason is given" if one.kind in (INDEPENDENT, RELATED) else ""
            yield (
                f"{self.name}: {one.metric} of {one.system} is {one.computed}, published "
                f"{stated}{mute}"
            )


# ---------------------------------------------------------------- what may be asked
def capital(line: Flow) -> float:
    """Return the capital cost of `line` per scale-up domain, in USD."""
    return float(line.usd or 0.0)


def yearly(line: Flow) -> float:
    """Return the recurring cost of `line` per scale-up domain, in USD/year.

    It is zero where the line does not recur.
    """
    return float(line.amount) if line.recurs else 0.0


def paid(line: Flow) -> float:
    """Return total payments of `line` per scale-up domain, in USD without interest.

    The payments cover all lives of the line.
    """
    return float(sum(one.usd for one in payments(line)))


def chips_and(metric: str) -> Callable[[Result], float]:
    """Return the chips of one world times a figure of each."""
    return lambda result: worlds_chips(result) * float(result.metrics[metric] or 0)


def worlds_chips(result: Result) -> float:
    """Return the chips of one world."""
    return float(result.metrics["chips"] or 0)


def worlds_share(result: Result) -> float:
    """Return the share of one world in its cluster."""
    return worlds_chips(result) / float(result.inputs["cluster.chips"].value)


# Of cost lines: unit, what of each is summed, and what the sum is divided by
MEASURES: dict[str, tuple[str, Callable[[Flow], float], Callable[[Result], float]]] = {
    "usd": ("USD", capital, lambda _: 1.0),
    "usd_per_chip": ("USD/chip", capital, worlds_chips),
    "usd_per_chip_hour": ("USD/chip/h", lambda line: float(line.usd_per_chip_hour), lambda _: 1.0),
    "usd_per_facility_w": ("USD/W", capital, chips_and("peak_facility_power_w_per_chip")),
    "usd_per_it_w": ("USD/W", capital, chips_and("it_power_w_per_chip")),
    "cluster_usd": ("USD", capital, worlds_share),
    "cluster_usd_per_year": ("USD/year", yearly, worlds_share),
    "cluster_usd_paid": ("USD", paid, worlds_share),
}
# of parts of the bill of materials, or of the whole
BILL = {
    "bill_usd": "USD",
    "bill_usd_per_chip": "USD/chip",
    "bill_w_per_chip": "W/chip",
}


def computed_value_and_unit(
    result: Result, row: JsonObject, where: str
) -> tuple[float | None, str]:
    """Return the computed value that `row` asks for, and its unit.

    Raises `DataError` for an unknown metric or an unknown part of the bill.
    """
    metric = row["metric"]
    if metric in METRICS and "lines" not in row:
        return result.metrics[metric], METRICS[metric].unit
    if metric in result.inputs:
        return float(result.inputs[metric].value), result.inputs[metric].unit
    if metric in BILL and result.bill is not None:
        known = {line.part for line in result.bill.lines}
        parts = row.get("parts", known)
        refuse_unknown("part of the bill", parts, known, where)
        lines = [line for line in result.bill.lines if line.part in parts]
        whole = float(
            sum(
                line.power if metric == "bill_w_per_chip" else line.extended or 0.0
                for line in lines
            )
        )
        return whole if metric == "bill_usd" else whole / worlds_chips(result), BILL[metric]
    if metric not in MEASURES:
        raise unknown("metric", metric, [*METRICS, *MEASURES, *BILL], where)
    unit, measure, over = MEASURES[metric]
    return sum(map(measure, chosen_lines(result, row.get("lines"), where))) / over(result), unit


def chosen_lines(result: Result, paths: Sequence[str] | None, where: str) -> list[Flow]:
    """Return the cost lines at or below some paths; all where none is named. A path without a line
    raises `DataError`.
    """
    if paths is None:
        return list(result.lines)
    found = []
    for path in paths:
        below = [
            line for line in result.lines if line.path == path or line.path.startswith(path + "/")
        ]
        if not below:
            raise unknown("cost line", path, [line.path for line in result.lines], where)
        found += below
    return found


# ---------------------------------------------------------------- a file
def publication(catalogue: Catalogue, name: str, kind: str | None = None) -> Publication:
    """Return the computed figures of a published file.

    Args:
        catalogue: Holds the published files and their scenarios.
        name: Name of the file, a key of `catalogue.published`.
        kind: Kind of figure to return; None for all kinds.

    Raises:
        DataError: A key, a kind or a metric in the file is unknown.

    """
    path = catalogue.published[name]
    document, scenario = catalogue.toml(path), load_scenario(catalogue, f"published/{name}")
    figures = []
    for position, row in enumerate(document.get("published", []), start=1):
        where = f"{path}:published {position}"
        refuse_unknown("key", row, KEYS, where)
        refuse_unknown("kind of figure", [str(row.get("kind"))], STATED, where)
        if kind in (None, row["kind"]) or (kind == RELATED and row["kind"] == INDEPENDENT):
            one = evaluate_published_figure(
                row, where, partial(evaluate_published_row, catalogue, scenario), catalogue
            )
            figures += [one] if kind in (None, one.kind) else []
    return Publication(name, figures)


def evaluate_published_row(catalogue: Catalogue, scenario: Scenario, row: JsonObject) -> Result:
    """Return the result of a scenario as changed by a published row.

    The system, the variant and the settings of the row replace the scenario's.

    Args:
        catalogue: Holds the documents, parts and rows.
        scenario: Scenario of the published file.
        row: Row of the file, with `system`, `variant` and `set` where they differ.

    Raises:
        DataError: The system, a variant or a setting of the row is unknown.

    """
    changed = scenario._replace(
        system=row.get("system", scenario.system),
        variant=row.get("variant", scenario.variant),
        settings=scenario.settings | row.get("set", {}),
    )
    return evaluate(changed, catalogue=catalogue)


def evaluate_published_figure(
    row: JsonObject,
    where: str,
    result: Callable[[JsonObject], Result],
    catalogue: Catalogue,
) -> ReproducedFigure:
    """Return a published figure beside its computed value.

    The key `over` of the row names the system whose figure is the divisor.

    Args:
        row: Row of a published file.
        where: File and position of the row, for errors.
        result: Function that evaluates a row.
        catalogue: Names the publisher of each source.

    Raises:
        DataError: The row has no interval, or names an unknown metric, part or cost line.

    """
    found = result(row)
    value, native = computed_value_and_unit(found, row, where)
    metric, other, unit = row["metric"], row.get("over"), row.get("unit", native)
    if other is not None:
        base, _ = computed_value_and_unit(result({**row, "system": other}), row, where)
        value, unit, native, metric = (
            (value / base if value and base else None),
            "",
            "",
            f"{metric} over that of {other}",
        )
    computed = None if value is None else value / parse_quantity(f"1 {unit}", native)
    low, high = published_interval(row, where)
    if named := [*row.get("lines", ()), *row.get("parts", ())]:
        metric = f"{metric} of {', '.join(named)}"
    stated = row.get("value", (low + high) / 2)
    publisher, others = (
        catalogue.publisher(row["source"]),
        publishers_of(catalogue, found, row, where),
    )
    kind = RELATED if row["kind"] == INDEPENDENT and publisher in others else row["kind"]
    said = (row["source"], row.get("note", ""), row.get("reason", ""), publisher, others)
    return ReproducedFigure(
        kind,
        found.scenario,
        found.system,
        metric,
        unit,
        stated,
        row.get("tolerance"),
        low,
        high,
        computed,
        *said,
    )


def publishers_of(
    catalogue: Catalogue, result: Result, row: JsonObject, where: str
) -> tuple[str, ...]:
    """Return whose prices move a figure: who states them, and of whose figures they were solved,
    for a fifth of it or more.
    """
    sums: dict[str, float] = {}
    for amount, paths in moving(result, row, where):
        given = [
            result.inputs[path]
            for path in paths
            if path in result.inputs and path.rpartition(".")[2].endswith(PRICES)
        ]
        sources = {
            source
            for one in given
            for source in (one.source, *filter(None, one.solved_from.split(";")))
        }
        for publisher in {
            catalogue.publisher(source) for source in sources if source in catalogue.sources
        }:
            sums[publisher] = sums.get(publisher, 0.0) + amount
    whole = sum(amount for amount, _ in moving(result, row, where))
    return tuple(sorted(name for name, amount in sums.items() if amount >= MOVES * whole))


PRICES = ("price", "cost", "usd_per_mw", "rent")  # how the names of inputs end that are prices


def moving(result: Result, row: JsonObject, where: str) -> list[tuple[float, tuple[str, ...]]]:
    """Return the summands of a figure, with the inputs that price them.

    Only the share of a summand in the sum has a meaning.

    Args:
        result: Result that the figure is taken from.
        row: Row of a published file.
        where: File and position of the row, for errors.

    Returns:
        Pairs of an amount and input paths. The amounts have no common unit across figures: USD, USD
        per chip-hour, or 1 for a figure that is itself an input.

    Raises:
        DataError: A cost line that the row names is unknown.

    """
    metric, parts = row["metric"], row.get("parts")
    if metric in result.inputs:
        return [(1.0, (metric,))]
    if metric in BILL and result.bill is not None:
        lines = [line for line in result.bill.lines if parts is None or line.part in parts]
        return [(float(line.extended or 0.0), line.inputs) for line in lines]
    flows = chosen_lines(result, row.get("lines"), where)
    if "hour" in metric:
        return [(float(flow.usd_per_chip_hour), flow.inputs) for flow in flows]
    capex = metric.startswith("capex")
    return [
        (float(flow.amount), flow.inputs)
        for flow in flows
        if not flow.recurs and (not capex or flow.asset in BOUGHT)
    ]


BOUGHT = ("servers", "network", "storage")  # classes of assets that the IT price is of


def published_interval(row: JsonObject, where: str) -> tuple[float, float]:
    """Return the lowest and the highest published value of a figure.

    The interval is the value within its tolerance, or the stated range.

    Args:
        row: Row of a published file, with `value` and `tolerance`, or with `low` and `high`.
        where: File and position of the row, for errors.

    Returns:
        Lowest and highest value, in the unit of the row.

    Raises:
        DataError: The row has neither pair of keys.

    """
    if "value" in row and "tolerance" in row:
        margin = abs(row["value"]) * row["tolerance"]
        return row["value"] - margin, row["value"] + margin
    if "low" in row and "high" in row:
        return row["low"], row["high"]
    raise DataError(f"{where}: expected value and tolerance, or low and high")
