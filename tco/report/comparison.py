"""Scenarios side by side: the table, rows and document of `tco compare`, the answer first and what
it rests on last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import short_name
from tco.comparison.base_case import NAMED, BaseCase
from tco.comparison.confidence import Elsewhere
from tco.comparison.fleet import late_notes
from tco.comparison.records import Confidence, Notice, Sureness
from tco.core.types import JsonObject
from tco.cost.ledger import RENTS
from tco.cost.price_dates import BY_ROWS
from tco.evaluation.renters import BreakEvenRent
from tco.report.assumptions import (
    DELIVERY,
    GROUPS,
    PHASES,
    SHARES,
    VALIDATED,
    binding,
    deployed,
    deployed_words,
    formats_rows,
    is_estimated,
    kinds_in_words,
    missing_notes,
    plan_option_text,
    premise_lines,
    promise,
    requested_settings,
    software_maturity_text,
    values_by_scenario,
    workload_title,
    workloads,
)
from tco.report.curve import (
    KEPT,
    LATER,
    NOTICE,
    POINT,
    REGIME,
    TURN,
    evidence_table,
    first_tables,
    tidy,
    why_table,
)
from tco.report.ranges import SURE, range_lines, range_rows
from tco.report.record import LEFT_OUT, Answer, Document, Maybe, Member, Record
from tco.report.table import Table, headed, significant
from tco.report.verdict import (
    basis_words,
    later_words,
    price_words,
    rent_words,
    target_speed,
    verdict_words,
)
from tco.scenario.metrics import METRICS
from tco.scenario.result import Result, in_words, set_of
from tco.scenario.workload import metric_workload_kinds

ANSWER, COST, SPEED, REST = GROUPS
SITE = "the site filled"
PURE = "1"  # the unit of a number without one
DIGITS = 3  # of an estimate; more than the chain is right to says nothing
LEGEND = (
    "~ before a number, or before a row for all of its numbers: it is based on an estimate, an "
    "assumption or a prior; "
    "prior: no measurement of this kind is public of this chip or of those it shares its practice "
    "with."
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


class Compared(NamedTuple):
    """A scenario of a comparison: its result, what it makes of the site, how sure it is."""

    result: Result
    sure: Sureness | None
    hall: Any = LEFT_OUT  # left out where no site is filled, none where this system does not fit it


MEASURED = Record(
    *(Member(name, int, unit=PURE) for name in ("validated_rows", "anchored_rows"))
).read_via("standing")
OF_RESULT = Record(
    *("scenario", "system", Member("chips", float, "metrics.chips")),
    Member("metrics", {str: float | None}),
    Member("bounds", {str: {str: float}}),
    "perspective",
    SHARES,
    Member(
        "own_values", int, lambda result: sum(given.overlay for given in result.inputs.values())
    ),
    Member("validated", VALIDATED, lambda result: result),
    MEASURED,
    DELIVERY,
    Member(
        "delivered",
        str | None,
        lambda result: None if result.available is None else result.available.volume,
    ),
    Member("price_date", str | None, lambda result: result.texts.get("terms.date")),
    Member("basis", str | None),
    Member(
        "rent",
        Record(
            Member("statistic", read=lambda found: RENTS[found[0]]), Member("publisher", read="1")
        ),
        optional=True,
    ),
    Member(
        "notes",
        [str],
        lambda result: [
            *missing_notes(result),
            *result.notes,
            *result.ages.notes,
            result.standing.text,
        ],
    ),
)
HALLS = Member("hall", Maybe({str: float | None}), optional=True)
ROW = Record(OF_RESULT.read_via("result"), HALLS, SURE)
RENT = Record(
    *("scenario", "against"),
    Member("tokens_per_s_per_user", float | None),
    *(Member(name, float) for name in ("usd_per_chip_hour", "against_usd_per_chip_hour")),
    Member("upper_bound_usd_per_chip_hour", float | None),
)
CHOICE = Record(
    "choice", Member("tokens_per_s_per_user", float | None), Member("share_of_best", KEPT)
)
# of an input whose value is not its median
CAUSE = Record(
    Member("path"),
    Member("value", float),
    Member("median", float),
    Member("factor", float, unit=PURE),
)
BASE_CASE = Record(
    "scenario",
    Member("usd_per_million_output_tokens", float, unit="USD/Mtoken"),
    Member("at_medians_usd_per_million_output_tokens", float, unit="USD/Mtoken"),
    Member("median_usd_per_million_output_tokens", float, unit="USD/Mtoken"),
    Member("causes", [CAUSE]),
)
COMPARE = Document(
    "compare",
    Member("verdict", [REGIME]),
    Member("curve", [POINT]),
    Member("choices", [CHOICE], optional=True),
    "baseline",
    Member("date", str | None),
    Member("deployed", dict),
    Member("promise", dict),
    Member("inputs", dict),
    Member("set", {str: str}),
    Member("rows", [ROW]),
    Member("base_cases", [BASE_CASE], optional=True),
    Member("what_if", [str], lambda found: found["what_if"] or None, optional=True),
    Member("evidence", [NOTICE], optional=True),
    Member("later", LATER, optional=True),
    Member("price_turns", [TURN], optional=True),
    Member("break_even_rents", [RENT], optional=True),
)
ASKED = (
    "date",
    "site",
    "terms",
    "perspective",
    "workload",
    "cluster",
    "model",
    "engine",
    "practice",
    "software",
    "formats",
    "plan",
    "set",
)


def asked_for(result: Result) -> JsonObject:
    """Return the settings that identify and reproduce a CSV row of `result`."""
    asked = requested_settings(result) | {
        "perspective": result.perspective,
        "plan": plan_option_text(result.report.plan),
        "set": in_words(set_of(result)),
    }
    return asked | {"formats": in_words(asked["formats"])}


COMPARISON_ROW = (
    Record(  # of a CSV: scenario, system, then every metric, then what the row rests on
        *("scenario", "system"),
        *(
            Member(name, float | None, f"metrics.{name}", unit=metric.unit or PURE)
            for name, metric in METRICS.items()
        ),
        Record(*ASKED).read_via(asked_for),
        Member(
            "hardware_sourced_share",
            float | None,
            lambda one: one.shares.get("hardware", {}).get("sourced"),
            unit=PURE,
        ),
        MEASURED,
        OF_RESULT.only("delivered", "price_date", "basis"),
    )
)
USD = "usd_per_million_output_tokens"
RANGES = (  # what a row of a CSV says of how sure it is
    *(
        Member(
            f"perf_per_tco_vs_baseline_{at}",
            float | None,
            f"sure.ranges.perf_per_tco_vs_baseline.{at}",
        )
        for at in ("p10", "p50", "p90")
    ),
    Member("probability_better_than_baseline", float | None, "sure.probability"),
    Member(f"median_{USD}", float | None, f"sure.ranges.{USD}.p50"),
    *(Member(f"{USD}_{at}", float | None, f"sure.ranges.{USD}.{at}") for at in ("p10", "p90")),
)


class ComparisonOptions(NamedTuple):
    """Options of a rendered comparison."""

    names: Sequence[str]  # what the scenarios were asked for as
    held: Mapping[str, str] = {}  # what was set with plans and choices held
    full: bool = False  # every figure, in groups
    why: bool = False  # what moves each regime
    evidence: Sequence[Notice] | None = None  # which measured rows notice what moves the answer
    curve: bool = False  # a CSV with a row for each scenario and speed
    elsewhere: Sequence[Elsewhere] = ()  # shipped systems that cost less than all that are compared
    racks: int | None = None  # that whole engines stand on; none: a fleet's
    base_cases: Sequence[BaseCase] = ()  # beside the middle of the draws
    # below which renters' racks without a rent beat the cheapest
    rents: Sequence[BreakEvenRent] = ()


def comparison_answer(
    catalogue: Catalogue,
    results: Sequence[Result],
    baseline: str,
    halls: Sequence[Hall],
    found: Confidence,
    asked: ComparisonOptions,
) -> Answer:
    """Return scenarios side by side.

    Args:
        catalogue: Catalogue of the answer.
        results: Evaluated scenarios, in order.
        baseline: Scenario that ratios refer to.
        halls: Figures of the hall of each result, None for a result without; empty without halls.
        found: Uncertainty of the comparison, by scenario, speed and regime.
        asked: Options of the comparison.

    """
    sure, held = found.sure, asked.held
    compared = [
        Compared(one, sure[at] if sure else None, halls[at] if halls else LEFT_OUT)
        for at, one in enumerate(results)
    ]
    said = {
        "verdict": found.regimes,
        "curve": found.curve,
        "baseline": baseline,
        "inputs": values_by_scenario(results),
        "rows": compared,
    }
    dates = {one.texts["terms.date"] for one in results}
    said |= {
        "date": dates.pop() if len(dates) == 1 else None,
        "choices": list(found.choices) or LEFT_OUT,
        "base_cases": list(asked.base_cases) or LEFT_OUT,
    }
    said |= {
        "later": LEFT_OUT if found.later is None else found.later,
        "price_turns": list(found.turns) if sure else LEFT_OUT,
        "break_even_rents": list(asked.rents) or LEFT_OUT,
    }
    said |= {
        "deployed": values_by_scenario(results, deployed),
        "promise": values_by_scenario(results, promise),
        "what_if": list(held),
        "evidence": asked.evidence,
    }
    said["set"] = {path: text for result in results for path, text in set_of(result).items()}
    notes = [f"plans and choices are those without {', '.join(held)}"] if held else []
    notes += [
        note
        for result, hall in zip(results, halls, strict=bool(halls))
        if hall
        for note in late_notes(result.scenario, result)
    ]
    notes += (
        [f"{one.scenario}: {note}" for one in results for note in (*one.notes, *one.ages.notes)]
        if asked.full
        else first_notes(results)
    )
    notes += [
        f"{name}: no range, {one.reason}"
        for name, one in zip(asked.names, sure, strict=bool(sure))
        if one.reason
    ]

    def tables() -> list[Table]:
        if asked.why:
            return list(map(why_table, found.regimes)) or [
                Table((), [], above=verdict_words(found, results))
            ]
        if asked.evidence is not None:
            return [evidence_table(asked.evidence)]
        if not (asked.full or halls):
            bought = (
                ""
                if asked.racks is None
                else f"whole engines on {asked.racks} rack{'s' * (asked.racks > 1)} each"
            )
            return first_tables(
                results,
                found,
                ", ".join(filter(None, (deployed_words(results), bought))),
                asked.elsewhere,
                asked.rents,
            )
        below = [
            *later_words(found.later),
            *rent_words(asked.rents),
            *price_words(found.turns, found, target_speed(results)),
            *basis_words(results),
        ]
        below += [*range_lines(asked.names, sure), *map(base_case_words, asked.base_cases)]
        table = comparison_table(results, baseline, halls, range_rows(sure), below)
        return [Table((), [], above=verdict_words(found, results)), table]

    rows: tuple[Record, Sequence[Any]] = (
        Record(COMPARISON_ROW.read_via("result"), *RANGES),
        compared,
    )
    if asked.curve:
        context = {result.scenario: asked_for(result) for result in results}
        rows = tidy(context.__getitem__, [name for name in ASKED if name != "plan"]), found.curve
    return COMPARE.answer(catalogue, said, tables, rows, notes)


def base_case_words(one: BaseCase) -> str:
    """Return sentences on a base case's cost and gap to the median."""
    base, middle = (
        significant(cost, DIGITS)
        for cost in (one.usd_per_million_output_tokens, one.median_usd_per_million_output_tokens)
    )
    named = ", ".join(
        f"{short_name(cause.path)} {cause.factor:.2f}" for cause in one.causes[:NAMED]
    )
    causes = (
        f"{one.medians:.2f} times as much by inputs whose value is not their "
        f"median{f' ({named})' if named else ''}"
    )
    spread = (
        f"{one.spread:.2f} times by inputs that move together, steps of plans and missed targets"
    )
    return (
        f"Base case of {one.scenario}, every input at its value: {base} USD/M tokens. The "
        f"middle of its draws is {middle}: {causes}, {spread}."
    )


def first_notes(results: Sequence[Result]) -> list[str]:
    """Return the notes that change what is to be believed: without what was chosen, and bills by
    rows of other dates in a line each.
    """
    some = [
        (one, note)
        for one in results
        for note in (*one.notes, *one.ages.notes)
        if note not in one.chosen and BY_ROWS not in note
    ]
    dates = " or ".join(dict.fromkeys(one.texts["terms.date"] for one in results))
    lines = []
    for share, words in (
        ("later", f"later than {dates}"),
        ("older", "older than their kind may be"),
    ):
        found = [
            f"{one.scenario}: {amiss * 100:.1f} %"
            for one in results
            if (amiss := getattr(one.ages, share))
        ]
        lines += [f"{', '.join(found)}{BY_ROWS}{words}; --full names them"] if found else []
    return [*(f"{one.scenario}: {note}" for one, note in some), *lines]


def comparison_table(
    results: Sequence[Result],
    baseline: str,
    halls: Sequence[Hall] = (),
    ranges: Sequence[Row] = (),
    drivers: Sequence[str] = (),
) -> Table:
    """Return the table: `ranges` stand under the answer, `halls` are what each system makes of its
    site, `drivers` stand below.
    """
    kinds = {result.texts["workload.kind"] for result in results}
    groups = {
        title: [
            row
            for metric in metrics
            if (row := metric_row(metric, *metrics[metric], results, kinds))
        ]
        for title, metrics in GROUPS.items()
    }
    if len(results) == 1:
        groups[ANSWER] = []  # it is held against nothing
    groups[ANSWER][1:1] = ranges
    groups[SPEED] += [
        (f"{phase} bound by", *(binding(one, phase) for one in results))
        for phase in PHASES
        if any(phase in one.bounds for one in results)
    ]
    groups[REST] += [
        (of, *(kinds_in_words(one, name) for one in results))
        for name, of in (("hardware", "hardware price"), ("terms", "terms and site"))
    ]
    groups[REST] += available_rows(results)
    groups[REST] += [
        *own_row(results),
        *map(tuple, formats_rows(results)),
        ("performance validated on", *(one.standing.short for one in results)),
    ]
    ordered = {
        ANSWER: groups[ANSWER],
        COST: groups[COST],
        SPEED: groups[SPEED],
        SITE: hall_rows(halls),
        REST: groups[REST],
    }
    rows = [
        row
        for title, some in ordered.items()
        if some
        for row in ((title.upper(), *("" for _ in results)), *some)
    ]
    below = [f"{LEGEND} Shares: sourced/estimated/assumed. Baseline: {baseline}."]
    if "serving" in kinds:
        below.append(f"Performance: {software_maturity_text(results)}.")
    below += [*dict.fromkeys(result.order for result in results if result.order), *drivers]
    return Table(
        ("", *(result.scenario for result in results)),
        rows,
        workload_title(results),
        [*workloads(results), *premise_lines(results)],
        below,
    )


def metric_row(
    metric: str, label: str, unit: str, size: float, results: Sequence[Result], kinds: set[str]
) -> Row | None:
    """Return the row of a metric; none where no workload here has it."""
    if kinds.isdisjoint(metric_workload_kinds(metric)):
        return None
    estimated = [is_estimated(result, metric) for result in results]
    values = [result.metrics[metric] for result in results]
    cells = [
        significant(None if one is None else one / size, DIGITS if weak else 4) or "-"
        for one, weak in zip(values, estimated, strict=True)
    ]
    under = (
        label.removeprefix("cost of a ").removeprefix("cost of an ")
        if metric in GROUPS[COST]
        else label
    )
    return row_marked(headed(under, unit), cells, estimated)


def row_marked(label: str, cells: Sequence[str], estimated: Sequence[bool]) -> Row:
    """Return a row with a tilde before each estimate, or before the row where all of its numbers
    are estimates: it tells nothing apart there.
    """
    weak = [is_weak for cell, is_weak in zip(cells, estimated, strict=True) if cell != "-"]
    if weak and all(weak):
        return (f"~ {label}", *cells)
    return (
        label,
        *(
            f"~{cell}" if is_weak and cell != "-" else cell
            for cell, is_weak in zip(cells, estimated, strict=True)
        ),
    )


def available_rows(results: Sequence[Result]) -> list[Row]:
    """Return when each system comes in numbers, and what waiting for it costs; nothing where nobody
    states it.
    """
    dates = [one.available for one in results]
    costs = [one.metrics["waiting_usd_per_chip"] for one in results]
    rows = (
        [
            row_marked(
                "in volume from",
                [one.volume if one else "-" for one in dates],
                [True for _ in dates],
            )
        ]
        if any(dates)
        else []
    )
    waits = row_marked(
        "waiting for it, USD a chip",
        [significant(one or None, DIGITS) or "-" for one in costs],
        [True for _ in costs],
    )
    return [*rows, *([waits] if any(costs) else [])]


def own_row(results: Sequence[Result]) -> list[Row]:
    """Return a table row with the number of own inputs by column.

    Own inputs are the user's own values. The list is empty where no column rests on own inputs.
    """
    counts = [sum(given.overlay for given in result.inputs.values()) for result in results]
    return [("own values", *map(str, counts))] if any(counts) else []


def hall_rows(halls: Sequence[Hall]) -> list[Row]:
    """Return the rows that say what each system makes of the site's power; none where no site is
    filled.
    """
    rows: list[Row] = []
    for key, label, unit, size in HALL if halls else ():
        values = [None if hall is None else hall[key] for hall in halls]
        if any(value is not None for value in values):
            cells = ["-" if value is None else significant(value / size) for value in values]
            rows.append(row_marked(headed(label, unit), cells, [True for _ in cells]))
    return rows
