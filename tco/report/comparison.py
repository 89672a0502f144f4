"""Scenarios side by side: table, rows and document of `tco compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import count_with_noun, short_name
from tco.comparison.base_case import NAMED, BaseCase
from tco.comparison.confidence import Elsewhere
from tco.comparison.fleet import late_notes
from tco.comparison.records import Confidence, Notice, PriceTurn, Sureness
from tco.core.types import JsonObject
from tco.cost.ledger import RENTS
from tco.evaluation.break_even_rents import BreakEvenRent
from tco.evaluation.cost_changes import CostChange
from tco.report.assumptions import (
    DELIVERY,
    GROUPS,
    PHASES,
    SHARES,
    SOURCE_KINDS,
    VALIDATED,
    binding,
    deployed,
    deployed_words,
    formats_rows,
    is_estimated,
    missing_notes,
    plan_option_text,
    premise_lines,
    promise,
    requested_settings,
    software_maturity_text,
    values_by_scenario,
    workload_line,
    workload_title,
    workloads,
)
from tco.report.curve import (
    LATER,
    NOTICE,
    POINT,
    REGIME,
    SHARE_OF_BEST,
    curve_row,
    evidence_table,
    why_tables,
)
from tco.report.first_screen import first_screen, too_slow_words
from tco.report.ranges import (
    RATIO,
    SURENESS,
    chance_rows,
    drawn_words,
    driver_table,
    figures,
    metric_range_rows,
    rounded_percent,
)
from tco.report.record import LEFT_OUT, Answer, Document, Maybe, Member, Record
from tco.report.table import Table, fixed_digits, headed, significant
from tco.report.verdict import (
    basis_words,
    compared_speed,
    later_words,
    price_words,
    rent_words,
    verdict_words,
)
from tco.sampling.median import DRAWN_COSTS
from tco.scenario.metrics import METRICS
from tco.scenario.result import Result, in_words, set_of
from tco.scenario.workload import metric_workload_kinds

ANSWER, COST, SPEED, REST = GROUPS
SITE = "the site filled"
USD = "usd_per_million_output_tokens"
PURE = "1"  # the unit of a number without one
DIGITS = 3  # significant digits of an estimate: the model is not accurate to more
DRAWN = (RATIO, *DRAWN_COSTS)  # metrics with rows of their draws
DRAWS_LEGEND = "Medians, P10 to P90 and chances are of the draws."
LEGEND = (
    "~ before a number, or before a row for all of its numbers: it is based on our estimate. "
    "estimate: no measurement of this kind is public for this chip or for its family."
)
# What a filled site comes to: key -> (label, unit shown, size of that unit in the key's own)
HALL: tuple[tuple[str, str, str, float], ...] = (
    ("racks", "racks", "", 1),
    ("chips", "chips", "", 1),
    ("it_power_w", "IT power used", "MW", 1e6),
    ("capex_usd", "capex", "million USD", 1e6),
    ("output_tokens_per_s", "output tokens/s", "", 1),
    ("margin_usd_per_mw_year", "gross margin per MW and year", "million USD", 1e6),
)
Hall = Mapping[str, float | None] | None
Row = tuple[str, ...]


class ComparedScenario(NamedTuple):
    """A scenario of a comparison: its result, what it makes of the site, how sure it is."""

    result: Result
    sure: Sureness | None
    hall: Any = LEFT_OUT  # left out where no site is filled, none where this system does not fit it


MEASURED = Record(
    Member("validated_rows", int, unit=PURE), Member("anchored_rows", int, unit=PURE)
).read_via("standing")
OF_RESULT = Record(
    "scenario",
    "system",
    Member("chips", float, "metrics.chips"),
    Member("metrics", {str: float | None}),
    Member("bounds", {str: {str: float}}),
    "perspective",
    SHARES,
    Member(
        "own_values",
        int,
        lambda scenario_result: sum(
            input_record.overlay for input_record in scenario_result.inputs.values()
        ),
    ),
    Member("validated", VALIDATED, lambda scenario_result: scenario_result),
    MEASURED,
    DELIVERY,
    Member("delivered", str | None, "available.volume"),
    Member(
        "price_date", str | None, lambda scenario_result: scenario_result.texts.get("terms.date")
    ),
    Member("basis", str | None),
    Member(
        "rent",
        Record(
            Member("statistic", read=lambda rent: RENTS[rent[0]]), Member("publisher", read="1")
        ),
        optional=True,
    ),
    Member(
        "notes",
        [str],
        lambda scenario_result: [
            *missing_notes(scenario_result),
            *scenario_result.notes,
            *scenario_result.ages.notes,
            scenario_result.standing.text,
        ],
    ),
)


def _left_out_undrawn(member: Member) -> Member:
    def value(compared: ComparedScenario) -> Any:
        return LEFT_OUT if compared.sure is None else member.of(compared.sure)

    return member._replace(read=value, optional=True)


# what a row of a comparison says of its ranges
SURE = Record(*map(_left_out_undrawn, SURENESS.members))
HALLS = Member("hall", Maybe({str: float | None}), optional=True)
COMPARE = Document(
    "compare",
    Member("verdict", [REGIME]),
    Member("curve", [POINT]),
    Member(
        "choices",
        [
            Record(
                "choice",
                Member("tokens_per_s_per_user", float | None),
                Member("share_of_best", SHARE_OF_BEST),
            )
        ],
        optional=True,
    ),
    "baseline",
    Member("date", str | None),
    Member("deployed", dict),
    Member("promise", dict),
    Member("inputs", dict),
    Member("set", {str: str}),
    Member("rows", [Record(OF_RESULT.read_via("result"), HALLS, SURE)]),
    Member("base_cases", [BaseCase], optional=True),
    Member("what_if", [str], optional=True),
    Member("evidence", [NOTICE], optional=True),
    Member("later", LATER, optional=True),
    Member("price_turns", [PriceTurn], optional=True),
    Member("break_even_rents", [BreakEvenRent], optional=True),
    Member("changes", [CostChange], optional=True),
)
# settings that identify and reproduce a row of a CSV
SETTINGS = (
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


def _settings_of(scenario_result: Result) -> JsonObject:
    settings = requested_settings(scenario_result) | {
        "perspective": scenario_result.perspective,
        "plan": plan_option_text(scenario_result.report.plan),
        "set": in_words(set_of(scenario_result)),
    }
    return settings | {"formats": in_words(settings["formats"])}


# of a CSV: scenario, system, then every metric, then what the row rests on
COMPARISON_ROW = Record(
    "scenario",
    "system",
    Record(
        *(
            Member(metric_name, float | None, unit=metric.unit or PURE)
            for metric_name, metric in METRICS.items()
        )
    ).read_via("metrics"),
    Record(*SETTINGS).read_via(_settings_of),
    Member("hardware_sourced_share", float | None, "shares.hardware.sourced", unit=PURE),
    MEASURED,
    OF_RESULT.only("delivered", "price_date", "basis"),
)
# what a row of a CSV says of how sure it is
CONFIDENCE = Record(
    figures("p10", "p50", "p90").read_via(f"ranges.{RATIO}", f"{RATIO}_"),
    SURENESS.only("probability_better_than_baseline"),
    Member(f"median_{USD}", float | None, f"ranges.{USD}.p50"),
    figures("p10", "p90").read_via(f"ranges.{USD}", f"{USD}_"),
).read_via("sure")


class ComparisonOptions(NamedTuple):
    """Options of a rendered comparison."""

    names: Sequence[str]  # what the scenarios were asked for as
    fixed_settings: Mapping[str, str] = {}  # what was set with plans and choices held
    full: bool = False  # every figure, in groups
    why: bool = False  # what moves each regime
    evidence: Sequence[Notice] | None = None  # which measured rows notice what moves the answer
    curve: bool = False  # a CSV with a row for each scenario and speed
    elsewhere: Sequence[Elsewhere] = ()  # shipped systems that cost less than all that are compared
    racks: int | None = None  # racks of each scenario, of whole engines; None for a fleet
    base_cases: Sequence[BaseCase] = ()  # beside the middle of the draws
    # below which renters' racks without a rent beat the cheapest
    rents: Sequence[BreakEvenRent] = ()
    changes: Sequence[CostChange] = ()  # by what the user set; empty without


def comparison_answer(
    catalogue: Catalogue,
    scenario_results: Sequence[Result],
    baseline: str,
    halls: Sequence[Hall],
    confidence: Confidence,
    options: ComparisonOptions,
) -> Answer:
    """Answer with scenarios side by side.

    Args:
        catalogue: Catalogue of the answer.
        scenario_results: Evaluated scenarios, in order.
        baseline: Scenario that ratios refer to.
        halls: Figures of the hall of each result, None for a result without; empty without halls.
        confidence: Uncertainty of the comparison, by scenario, speed and regime.
        options: Options of the comparison.

    """
    sure = confidence.sure
    compared = [
        ComparedScenario(
            scenario_result,
            sure[result_index] if sure else None,
            halls[result_index] if halls else LEFT_OUT,
        )
        for result_index, scenario_result in enumerate(scenario_results)
    ]
    dates = {scenario_result.texts["terms.date"] for scenario_result in scenario_results}
    content = {
        "verdict": confidence.regimes,
        "curve": confidence.curve,
        "choices": confidence.choices or None,
        "baseline": baseline,
        "date": dates.pop() if len(dates) == 1 else None,
        "deployed": values_by_scenario(scenario_results, deployed),
        "promise": values_by_scenario(scenario_results, promise),
        "inputs": values_by_scenario(scenario_results),
        "set": {
            path: setting_text
            for scenario_result in scenario_results
            for path, setting_text in set_of(scenario_result).items()
        },
        "rows": compared,
        "base_cases": options.base_cases or None,
        "what_if": list(options.fixed_settings) or None,
        "evidence": options.evidence,
        "later": confidence.later,
        "price_turns": confidence.turns if sure else None,
        "break_even_rents": options.rents or None,
        "changes": options.changes or None,
    }
    return COMPARE.answer(
        catalogue,
        content,
        lambda: _tables(scenario_results, baseline, halls, confidence, options),
        _comparison_csv(compared, confidence, options),
        _comparison_notes(scenario_results, halls, sure, options),
    )


def _comparison_csv(
    compared: Sequence[ComparedScenario], confidence: Confidence, options: ComparisonOptions
) -> tuple[Record, Sequence[Any]]:
    """Return the record and the rows of a CSV, by scenario or by scenario and speed."""
    if not options.curve:
        return Record(COMPARISON_ROW.read_via("result"), CONFIDENCE), compared
    settings = {row.result.scenario: _settings_of(row.result) for row in compared}
    setting_names = [setting_name for setting_name in SETTINGS if setting_name != "plan"]
    return curve_row(settings.__getitem__, setting_names), confidence.curve


def _comparison_notes(
    scenario_results: Sequence[Result],
    halls: Sequence[Hall],
    sureness: Sequence[Sureness],
    options: ComparisonOptions,
) -> list[str]:
    held_settings = ", ".join(options.fixed_settings)
    notes = [f"plans and choices are those without {held_settings}"] if held_settings else []
    for scenario_result, hall in zip(scenario_results, halls, strict=bool(halls)):
        if hall:
            notes += late_notes(scenario_result.scenario, scenario_result)
    if options.full:
        notes += [
            f"{scenario_result.scenario}: {note}"
            for scenario_result, note in _notes_by_result(scenario_results)
        ]
    else:
        notes += _first_notes(scenario_results)
    return notes + [
        f"{scenario_result.scenario}: no range, {sure.reason}"
        for scenario_result, sure in zip(scenario_results, sureness, strict=bool(sureness))
        if sure.reason and not scenario_result.costless
    ]


def _tables(
    scenario_results: Sequence[Result],
    baseline: str,
    halls: Sequence[Hall],
    confidence: Confidence,
    options: ComparisonOptions,
) -> list[Table]:
    """Return the tables of `--why`, of `--evidence`, of the first screen or of all figures."""
    verdict = Table((), [], above=verdict_words(confidence, scenario_results))
    if options.why:
        return _why_screen(confidence, scenario_results) or [verdict]
    if options.evidence is not None:
        return [evidence_table(options.evidence)]
    if not (options.full or halls):
        engines = ""
        if options.racks is not None:
            engines = f"whole engines on {count_with_noun(options.racks, 'rack')} each"
        words = ", ".join(filter(None, (deployed_words(scenario_results), engines)))
        return first_screen(
            scenario_results, confidence, words, options.elsewhere, options.rents, options.changes
        )
    below = [
        *too_slow_words(confidence),
        *later_words(confidence.later),
        *rent_words(options.rents),
        *price_words(confidence, compared_speed(scenario_results, confidence), scenario_results),
        *basis_words(scenario_results),
        *drawn_words(confidence.sure),
    ]
    tables = [
        verdict,
        comparison_table(scenario_results, baseline, halls, confidence.sure, below),
        driver_table(options.names, confidence.sure),
        _base_case_table(options.base_cases),
    ]
    return [table for table in tables if table.rows or table.above]


def _why_screen(confidence: Confidence, scenario_results: Sequence[Result]) -> list[Table]:
    """Return the tables on what moves each pick, with the work above them."""
    tables = why_tables(confidence, scenario_results)
    if tables:
        work = workload_line(scenario_results, target=False)
        tables[0] = tables[0]._replace(above=[work, *tables[0].above])
    return tables


def _base_case_table(cases: Sequence[BaseCase]) -> Table:
    """Tabulate what leads from the cost of each base case to the median of its draws."""
    case_rows = []
    for case in cases:
        base, median = (
            fixed_digits(cost, DIGITS)
            for cost in (
                case.usd_per_million_output_tokens,
                case.median_usd_per_million_output_tokens,
            )
        )
        most = ", ".join(
            f"{short_name(cause.path)} {cause.factor:.2f}" for cause in case.causes[:NAMED]
        )
        medians, spread = f"{case.medians:.2f}", f"{case.spread:.2f}"
        case_rows.append((case.scenario, base, medians, spread, median, most))
    columns = ("", "base case", "x medians", "x spread", "= median", "inputs that move it most")
    legends = [
        "x medians: each input at its median in place of its value.",
        "x spread: inputs that move together, steps of plans and missed targets.",
    ]
    title = "From the base case to the median of the draws, USD per million output tokens"
    return Table(columns, case_rows, title, legends, align="lrrrrl")


def _notes_by_result(scenario_results: Sequence[Result]) -> list[tuple[Result, str]]:
    return [
        (scenario_result, note)
        for scenario_result in scenario_results
        for note in (*scenario_result.notes, *scenario_result.ages.notes)
    ]


def _first_notes(scenario_results: Sequence[Result]) -> list[str]:
    """Return notes that change what is to be believed; others, on prices and choices, are counted.

    `--full` prints each of those that are counted.
    """
    names_by_note: dict[str, list[str]] = {}
    count, most = 0, 0.0
    for scenario_result in scenario_results:
        most = max(most, scenario_result.ages.later, scenario_result.ages.older)
        count += len(scenario_result.ages.notes)
        for note in scenario_result.notes:
            if note in scenario_result.chosen:
                count += 1
            else:
                names_by_note.setdefault(note, []).append(scenario_result.scenario)
    lines = [f"{', '.join(names)}: {note}" for note, names in names_by_note.items()]
    if count:
        share = f"; up to {rounded_percent(most)} of a rack's price is of other dates"
        notes = count_with_noun(count, "more note")
        lines.append(f"--full lists {notes}{share if most else ''}")
    return lines


def comparison_table(
    scenario_results: Sequence[Result],
    baseline: str,
    halls: Sequence[Hall] = (),
    sureness: Sequence[Sureness] = (),
    conclusions: Sequence[str] = (),
) -> Table:
    """Tabulate every figure of scenarios side by side, in groups.

    Args:
        scenario_results: Evaluated scenarios, a column for each.
        baseline: Scenario that ratios refer to.
        halls: Each system's use of its site; empty where no site is filled.
        sureness: Uncertainty of each scenario; empty without draws.
        conclusions: Lines below the table.

    """
    kinds = {scenario_result.texts["workload.kind"] for scenario_result in scenario_results}
    groups = {
        title: [
            metric_row
            for metric in metrics
            for metric_row in _metric_rows(
                metric, *metrics[metric], scenario_results, kinds, sureness
            )
        ]
        for title, metrics in GROUPS.items()
    }
    if len(scenario_results) == 1:
        groups[ANSWER] = []  # it is held against nothing
    groups[ANSWER] += chance_rows(sureness)
    groups[SPEED] += _bound_rows(scenario_results)
    groups[REST] += _tabulate_premises(scenario_results)
    ordered = {
        ANSWER: groups[ANSWER],
        COST: groups[COST],
        SPEED: groups[SPEED],
        SITE: _hall_rows(halls),
        REST: groups[REST],
    }
    table_rows: list[Row] = []
    for title, group in ordered.items():
        if group:
            table_rows += [(title.upper(), *("" for _ in scenario_results)), *group]
    below = [DRAWS_LEGEND] if sureness else []
    figures_named = "Other figures" if sureness else "Figures"
    below.append(f"{figures_named} are of the base case. {LEGEND} Baseline: {baseline}.")
    if "serving" in kinds:
        below.append(f"Performance: {software_maturity_text(scenario_results)}.")
    orders = dict.fromkeys(scenario_result.order for scenario_result in scenario_results)
    below += [*filter(None, orders), *conclusions]
    return Table(
        ("", *(scenario_result.scenario for scenario_result in scenario_results)),
        table_rows,
        workload_title(scenario_results),
        [*workloads(scenario_results), *premise_lines(scenario_results)],
        below,
    )


def _bound_rows(scenario_results: Sequence[Result]) -> list[Row]:
    """Return the binding limit of each system, a row for each phase."""
    return [
        (
            f"{phase} bound by",
            *(binding(scenario_result, phase) for scenario_result in scenario_results),
        )
        for phase in PHASES
        if any(phase in scenario_result.bounds for scenario_result in scenario_results)
    ]


def _metric_rows(
    metric: str,
    label: str,
    unit: str,
    size: float,
    scenario_results: Sequence[Result],
    kinds: set[str],
    sureness: Sequence[Sureness],
) -> list[Row]:
    """Return the row of a metric, and of its draws; none where no workload here has it."""
    if kinds.isdisjoint(metric_workload_kinds(metric)):
        return []
    estimated = [is_estimated(scenario_result, metric) for scenario_result in scenario_results]
    cells = []
    for scenario_result, is_weak in zip(scenario_results, estimated, strict=True):
        metric_value = scenario_result.metrics[metric]
        shown_value = None if metric_value is None else metric_value / size
        cell = fixed_digits(shown_value) if is_weak else significant(shown_value)
        cells.append(cell or "-")
    if metric in GROUPS[COST]:
        label = label.removeprefix("cost per ")
    base_case = _marked_row(headed(label, unit), cells, estimated)
    drawn = metric_range_rows(metric, size, sureness) if metric in DRAWN else []
    return [base_case, *drawn]


def _marked_row(label: str, cells: Sequence[str], estimated: Sequence[bool] | None = None) -> Row:
    """Return a row with a tilde before each estimate, or before all where all are estimates.

    Args:
        label: Label of the row.
        cells: Texts of the cells.
        estimated: Whether each cell is an estimate; None where all are.

    """
    if estimated is None:
        estimated = [True for _ in cells]
    weak = [is_weak for cell, is_weak in zip(cells, estimated, strict=True) if cell != "-"]
    if weak and all(weak):
        return (f"~ {label}", *cells)
    marked = (
        f"~{cell}" if is_weak and cell != "-" else cell
        for cell, is_weak in zip(cells, estimated, strict=True)
    )
    return (label, *marked)


def _tabulate_premises(scenario_results: Sequence[Result]) -> list[Row]:
    """Return rows of evidence for prices, delivery, own values, formats and validation."""
    own_values = [
        sum(input_record.overlay for input_record in scenario_result.inputs.values())
        for scenario_result in scenario_results
    ]
    return [
        *_share_rows("hardware", "hardware price", scenario_results),
        *_share_rows("terms", "terms and site", scenario_results),
        *_delivery_rows(scenario_results),
        *([("own values", *map(str, own_values))] if any(own_values) else []),
        *map(tuple, formats_rows(scenario_results)),
        (
            "published runs of the chip",
            *(scenario_result.standing.short for scenario_result in scenario_results),
        ),
    ]


def _share_rows(share_group: str, label: str, scenario_results: Sequence[Result]) -> list[Row]:
    """Return a row for each kind of source, with its share of a price; none without shares."""
    shares = [scenario_result.shares.get(share_group) or {} for scenario_result in scenario_results]
    return [
        (
            f"{label}, {words}",
            *(f"{kinds[kind] * 100:.0f} %" if kinds else "-" for kinds in shares),
        )
        for kind, words in SOURCE_KINDS.items()
        if any(shares)
    ]


def _delivery_rows(scenario_results: Sequence[Result]) -> list[Row]:
    """Return rows of when each system comes in numbers, and of what waiting for it costs."""
    delivery_rows = []
    if any(scenario_result.available for scenario_result in scenario_results):
        volumes = [
            scenario_result.available.volume if scenario_result.available else "-"
            for scenario_result in scenario_results
        ]
        delivery_rows.append(_marked_row("in volume from", volumes))
    costs = [
        scenario_result.metrics["waiting_usd_per_chip"] for scenario_result in scenario_results
    ]
    if any(costs):
        cells = [significant(cost or None, DIGITS) or "-" for cost in costs]
        delivery_rows.append(_marked_row("cost of waiting, USD per chip", cells))
    return delivery_rows


def _hall_rows(halls: Sequence[Hall]) -> list[Row]:
    """Return rows of what each system makes of the site's power; none where no site is filled."""
    hall_rows: list[Row] = []
    for figure_key, label, unit, size in HALL if halls else ():
        hall_values = [None if hall is None else hall[figure_key] for hall in halls]
        if any(hall_value is not None for hall_value in hall_values):
            cells = [
                "-" if hall_value is None else significant(hall_value / size)
                for hall_value in hall_values
            ]
            hall_rows.append(_marked_row(headed(label, unit), cells))
    return hall_rows
