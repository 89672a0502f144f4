"""The table of `tco compare`: a column for each scenario, its rows in groups, the answer first and what it rests on last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tco.chain.metrics import kinds_of
from tco.chain.result import Result
from tco.outputs.comparison import (
    GROUPS,
    PHASES,
    binding,
    formats_rows,
    is_estimated,
    kinds_in_words,
    practice_words,
    premises,
    title_of,
    workloads,
)
from tco.outputs.table import Table, significant

ANSWER, COST, SPEED, REST = GROUPS
SITE = "the site filled"
DIGITS = 3  # of an estimate; more than the chain is right to says nothing
LEGEND = (
    "~ before a number, or before a row for all of its numbers: it is based on an estimate, an assumption or a prior; "
    "prior: no measurement of this kind is public of this chip or of those it shares its practice with."
)
# What a filled site comes to: key -> (label, unit shown, size of that unit in the key's own)
HALL: tuple[tuple[str, str, str, float], ...] = (
    ("racks", "racks", "", 1),
    ("chips", "chips", "", 1),
    ("it_power_w", "IT power used", "MW", 1e6),
    ("capex_usd", "IT price", "million USD", 1e6),
    ("output_tokens_per_s", "output tokens/s", "", 1),
    ("margin_usd_per_mw_year", "margin a MW and year", "million USD", 1e6),
)
Hall = Mapping[str, float | None] | None
Row = tuple[str, ...]


def comparison_table(
    results: Sequence[Result], baseline: str, halls: Sequence[Hall] = (), ranges: Sequence[Row] = (), drivers: Sequence[str] = ()
) -> Table:
    """Return the table: `ranges` stand under the answer, `halls` are what each system makes of its site, `drivers` stand below."""
    kinds = {result.texts["workload.kind"] for result in results}
    groups = {
        title: [row for metric in metrics if (row := metric_row(metric, *metrics[metric], results, kinds))] for title, metrics in GROUPS.items()
    }
    if len(results) == 1:
        groups[ANSWER] = []  # it is held against nothing
    groups[ANSWER][1:1] = ranges
    groups[SPEED] += [
        (f"{phase} bound by", *(binding(one, phase) for one in results)) for phase in PHASES if any(phase in one.bounds for one in results)
    ]
    groups[REST] += [
        (of, *(kinds_in_words(one, name) for one in results)) for name, of in (("hardware", "hardware price"), ("terms", "terms and site"))
    ]
    groups[REST] += [*own_row(results), *map(tuple, formats_rows(results)), ("performance validated on", *(one.standing.short for one in results))]
    ordered = {ANSWER: groups[ANSWER], COST: groups[COST], SPEED: groups[SPEED], SITE: hall_rows(halls), REST: groups[REST]}
    rows = [row for title, some in ordered.items() if some for row in ((title.upper(), *("" for _ in results)), *some)]
    below = [f"{LEGEND} Shares: sourced/estimated/assumed. Baseline: {baseline}."]
    if "serving" in kinds:
        below.append(f"Performance: {practice_words(results)}.")
    below += [*dict.fromkeys(result.order for result in results if result.order), *drivers]
    return Table(("", *(result.scenario for result in results)), rows, title_of(results), [*workloads(results), *premises(results)], below)


def metric_row(metric: str, label: str, unit: str, size: float, results: Sequence[Result], kinds: set[str]) -> Row | None:
    """Return the row of a metric; none where no workload here has it."""
    if kinds.isdisjoint(kinds_of(metric)):
        return None
    estimated = [is_estimated(result, metric) for result in results]
    values = [result.metrics[metric] for result in results]
    cells = [significant(None if one is None else one / size, DIGITS if weak else 4) or "-" for one, weak in zip(values, estimated, strict=True)]
    under = label.removeprefix("cost of a ").removeprefix("cost of an ") if metric in GROUPS[COST] else label
    return row_marked(f"{under}, {unit}" if unit and unit != "x" else under, cells, estimated)


def row_marked(label: str, cells: Sequence[str], estimated: Sequence[bool]) -> Row:
    """Return a row with a tilde before each estimate, or before the row where all of its numbers are estimates: it tells nothing apart there."""
    weak = [is_weak for cell, is_weak in zip(cells, estimated, strict=True) if cell != "-"]
    if weak and all(weak):
        return (f"~ {label}", *cells)
    return (label, *(f"~{cell}" if is_weak and cell != "-" else cell for cell, is_weak in zip(cells, estimated, strict=True)))


def own_row(results: Sequence[Result]) -> list[Row]:
    """Return how many of a person's own values each column rests on; nothing where none does."""
    counts = [sum(given.overlay for given in result.inputs.values()) for result in results]
    return [("own values", *map(str, counts))] if any(counts) else []


def hall_rows(halls: Sequence[Hall]) -> list[Row]:
    """Return the rows that say what each system makes of the site's power; none where no site is filled."""
    rows: list[Row] = []
    for key, label, unit, size in HALL if halls else ():
        values = [None if hall is None else hall[key] for hall in halls]
        if any(value is not None for value in values):
            cells = ["-" if value is None else significant(value / size) for value in values]
            rows.append(row_marked(f"{label}, {unit}" if unit else label, cells, [True for _ in cells]))
    return rows
