"""Answer of `tco baseline check`: drift of metrics with its causes, also for GitHub and JUnit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from tco.catalog import Catalogue
from tco.catalog.labels import count_with_noun
from tco.core.mappings import lists_by_key
from tco.regression.difference import TOLERANCE, Move, Side, side_text
from tco.regression.drift import Drift, Rule, Shift
from tco.report.difference import (
    MOVE,
    NAMED_CAUSES,
    first_move,
    metric_change_lines,
    side_cell,
    side_members,
    signed_percent,
    step_reasons,
)
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, fixed_digits
from tco.scenario.baseline_ratio import usual_baseline
from tco.scenario.metrics import AGAINST_BASELINE, is_worse

# file and line that a message begins with
PLACE = re.compile(r"(?P<file>[^\s:]+\.(?:toml|csv|json))(?::(?P<line>\d+))?:")
GATE = "usd_per_million_output_tokens"  # of which most pipelines check the drift
VERDICTS = {None: "", True: "worse", False: "better"}
# whether a higher metric is worse -> the change that a greatest increase limits
DIRECTIONS = {True: "rise", False: "fall", None: "change"}
MOVED = Record(Member("scenario", label="scenario"), MOVE.read_via("move"))
DRIFT = Record(
    MOVED,
    Member("worse", bool | None),
    Member("why", [str], lambda drift: step_reasons(drift.move.steps)),
)
DRIFT_ROW = Record(
    MOVED,
    Member("worse", read=lambda drift: VERDICTS[drift.worse], label=""),
    Member("why", read=lambda drift: "; ".join(step_reasons(drift.move.steps))),
)
FIGURES = {  # of the draws -> words
    "choose": "pick",
    "share_of_best": "mean regret, %",
    "p50_usd": "median, USD per million output tokens",
    "p10": "performance per TCO, P10",
    "p50": "performance per TCO, median",
    "p90": "performance per TCO, P90",
}
SHIFT = Record("scenario", Member("tokens_per_s_per_user", float), "figure", *side_members(Side))
CHECK = Document(
    "baseline-check",
    "name",
    Member("ok", bool, lambda check: not (check["drift"] or check["shifts"])),
    Member("drift", [DRIFT]),
    Member("shifts", [SHIFT]),
    Member("unguarded", [str]),
)


def drift_answer(
    catalogue: Catalogue,
    baseline_name: str,
    checked: Mapping[str, Sequence[str]],
    drifts: Sequence[Drift],
    shifts: Sequence[Shift],
    notes: Sequence[str],
    unguarded: Sequence[str],
    accept: str,
    passed: str,
) -> Answer:
    """Return the answer on drift since baseline `baseline_name`.

    Args:
        catalogue: Catalogue of the evaluated scenarios.
        baseline_name: Name of the baseline.
        checked: Compared metrics by scenario.
        drifts: Metrics that moved beyond the threshold.
        shifts: Figures of the draws that moved.
        notes: Notes on what the check leaves out or lacks.
        unguarded: Files of scenarios that no baseline holds.
        accept: Command that saves the results of today.
        passed: Text of `passed_text`, which is printed where nothing moved.

    Returns:
        Answer in all usual formats, and as `github` and `junit`.

    """
    shift_count = f"{count_with_noun(len(shifts), 'figure')} of the draws moved"
    all_notes = [*notes]
    if shifts:
        all_notes.append(f"{shift_count}: picks, regrets or medians, with their ranges")
    all_notes += [_unguarded_text(baseline_name, file) for file in unguarded]

    def tables() -> list[Table]:
        tables = [_drift_table(baseline_name, checked, drifts)] if drifts else []
        if not drifts and not shifts:
            tables.append(Table((), [], f"baseline {baseline_name}, {passed}"))
        if shifts:
            tables.append(_shift_table(f"baseline {baseline_name}: {shift_count}", shifts))
        if drifts or shifts:
            tables[-1] = tables[-1]._replace(below=[*tables[-1].below, f"To accept: {accept}"])
        return tables

    return CHECK.answer(
        catalogue,
        {"name": baseline_name, "drift": drifts, "shifts": shifts, "unguarded": unguarded},
        tables,
        (DRIFT_ROW, drifts),
        all_notes,
        texts={
            "github": lambda: (
                _to_github(baseline_name, passed, drifts, shifts)
                + "".join(_unguarded_warning(baseline_name, file) for file in unguarded)
            ),
            "junit": lambda: _to_junit(baseline_name, checked, drifts, shifts, unguarded),
        },
    )


def passed_text(checked: Mapping[str, Sequence[str]], rule: Rule, largest: Move | None) -> str:
    """Return the text of a passed check: scenarios, metrics, limit and the largest move.

    Args:
        checked: Compared metrics by scenario.
        rule: Rule of the check.
        largest: Largest move that the rule counts; None where there is none.

    """
    metrics = list(dict.fromkeys(metric for names in checked.values() for metric in names))
    metric = metrics[0] if len(metrics) == 1 else ""
    subject = metric or count_with_noun(len(metrics), "metric")
    worse_change = DIRECTIONS[is_worse(metric, 1.0)] if metric else "change for the worse"
    change, limits = "change", [rule.threshold]
    if rule.max_increase is not None and worse_change != "change":
        change = worse_change
        limits = [rule.max_increase, *(limits if rule.threshold.size > TOLERANCE else [])]
    above = " and ".join(limit.words() for limit in limits)
    largest_text = "largest 0 %"
    if largest is not None:
        largest_text = f"largest {signed_percent(largest.change)}"
        if not metric:
            largest_text += f", {largest.metric}"
    counted = count_with_noun(len(checked), "scenario")
    return f"{counted}: {subject}: no {change} above {above} ({largest_text})"


def _unguarded_text(baseline_name: str, file: str) -> str:
    return (
        f"{file} is in no baseline, so nothing guards it: tco baseline save {baseline_name} {file}"
    )


def _unguarded_warning(baseline_name: str, file: str) -> str:
    title = f"file={_in_title(file)},title=baseline {_in_title(baseline_name)}"
    return f"::warning {title}::{_in_message(_unguarded_text(baseline_name, file))}\n"


def _drift_table(
    baseline_name: str, checked: Mapping[str, Sequence[str]], drifts: Sequence[Drift]
) -> Table:
    metrics = dict.fromkeys(metric for metrics in checked.values() for metric in metrics)
    above = ["Why, step by step; each step comes on top of the earlier ones:"]
    for scenario in dict.fromkeys(drift.scenario for drift in drifts):
        for position, line in enumerate(_scenario_lines(_moves_of(scenario, drifts))):
            above.append(line if position else f"{scenario}: {line}")
    if len(metrics) > 1:
        above.append(
            f"All {len(metrics)} metrics are checked. To gate on one: tco baseline "
            f"check {baseline_name} --metric {GATE if GATE in metrics else next(iter(metrics))}"
        )
    if any(drift.move.metric in AGAINST_BASELINE for drift in drifts):
        above.append(
            f"{AGAINST_BASELINE[0]} is the ratio to {usual_baseline(list(checked))}. It is not the "
            f"change since baseline {baseline_name} was saved."
        )
    title = f"baseline {baseline_name}: {count_with_noun(len(drifts), 'metric')} moved"
    table = DRIFT_ROW.table(drifts, f"{title} in the base case", above)
    return _headed_by_scenario(table)


def _shift_table(title: str, shifts: Sequence[Shift]) -> Table:
    """Return the table of the figures of the draws that moved, a group for each scenario."""
    shift_rows = []
    for shift in shifts:
        old, new = (_figure_size(shift.figure, side) for side in (shift.old, shift.new))
        change = ""
        if isinstance(old, float) and isinstance(new, float) and old:
            change = signed_percent(new / old - 1)
        speed = f"{shift.tokens_per_s_per_user:g}"
        cells = (_figure_cell(old), _figure_cell(new), change)
        shift_rows.append((shift.scenario, speed, FIGURES[shift.figure], *cells))
    columns = ("", "tokens/s", "of the draws", "old", "new", "change")
    return _headed_by_scenario(Table(columns, shift_rows, title, align="lrlrrr"))


def _figure_size(figure: str, side: Side) -> Side:
    """Return a figure of the draws as it is printed: the share that is lost, not what is left."""
    return (1 - side) * 100 if figure == "share_of_best" and isinstance(side, float) else side


def _figure_cell(side: Side) -> str:
    return fixed_digits(side, 4) if isinstance(side, float) else side_text(side)


def _headed_by_scenario(table: Table) -> Table:
    """Return a table with its first column, the scenario, as headings of groups of rows."""
    groups = lists_by_key((scenario, cells) for scenario, *cells in table.rows)
    columns = table.columns[1:]
    grouped_rows: list[Sequence[str]] = []
    for scenario, group in groups.items():
        grouped_rows += [(scenario, *[""] * (len(columns) - 1)), *group]
    return table._replace(columns=columns, rows=grouped_rows, align=table.align[1:])


def _moves_of(scenario: str, drifts: Sequence[Drift]) -> list[Move]:
    return [drift.move for drift in drifts if drift.scenario == scenario]


def _scenario_lines(moves: Sequence[Move]) -> Iterator[str]:
    """Yield the steps of the first metric of a scenario, and causes that moved only others."""
    first = first_move(moves)
    prefix, reasons = "  ", []
    if first is not None:
        yield from metric_change_lines(first)
        prefix, reasons = "  other metrics also: ", step_reasons(first.steps)
    all_reasons = dict.fromkeys(step_reasons([step for move in moves for step in move.steps]))
    further_reasons = [reason for reason in all_reasons if reason not in reasons]
    if further_reasons:
        yield prefix + "; ".join(further_reasons)


def _to_github(
    baseline_name: str, passed: str, drifts: Sequence[Drift], shifts: Sequence[Shift]
) -> str:
    """Return a workflow command for each scenario that moved.

    Each names the causes, the first metric with its steps, and the number of further moves.
    """
    lines = []
    scenarios = [drift.scenario for drift in drifts] + [shift.scenario for shift in shifts]
    for scenario in dict.fromkeys(scenarios):
        moves = _moves_of(scenario, drifts)
        first = first_move(moves)
        if first is None:
            message = list(_scenario_lines(moves))
        else:
            steps = sorted(first.steps, key=lambda step: -abs(step.difference))
            causes = "; ".join(step_reasons(steps)[:NAMED_CAUSES])
            message = [causes, *metric_change_lines(first)]
        further = {
            "more metrics moved": len(moves) - bool(first),
            "figures of the draws moved": sum(shift.scenario == scenario for shift in shifts),
        }
        message += [f"{count} {further_words}" for further_words, count in further.items() if count]
        message_text = _in_message("\n".join(filter(None, message)))
        lines.append(
            f"::error title=baseline {_in_title(f'{baseline_name}, {scenario}')}::{message_text}\n"
        )
    if not lines:
        title = f"title=baseline {_in_title(baseline_name)}"
        lines.append(f"::notice {title}::{_in_message(passed)}\n")
    return "".join(lines)


def _in_message(message_text: str) -> str:
    return message_text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_title(title_text: str) -> str:
    return _in_message(title_text).replace(":", "%3A").replace(",", "%2C")


def _to_junit(
    baseline_name: str,
    checked: Mapping[str, Sequence[str]],
    drifts: Sequence[Drift],
    shifts: Sequence[Shift],
    unguarded: Sequence[str],
) -> str:
    """Return a test suite for each scenario, with a case for each checked metric.

    A metric that moved is a failure, and so is each figure of the draws that did. A scenario that
    no baseline holds is a skipped case.
    """
    moves = {(drift.scenario, drift.move.metric): drift.move for drift in drifts}
    suites = {
        scenario: [
            _junit_case(scenario, metric, _move_failure(moves.get((scenario, metric))))
            for metric in metrics
        ]
        for scenario, metrics in checked.items()
    }
    for shift in shifts:
        case = f"{shift.figure} at {shift.tokens_per_s_per_user:g} tokens/s per user"
        failure_text = f"{shift.scenario}: {case}: {side_cell(shift.old)} -> {side_cell(shift.new)}"
        failure = f"<failure message={quoteattr(failure_text)}>{escape(failure_text)}</failure>"
        suites.setdefault(shift.scenario, []).append(_junit_case(shift.scenario, case, failure))
    for file in unguarded:
        skipped = f"<skipped message={quoteattr(_unguarded_text(baseline_name, file))}/>"
        suites.setdefault(file, []).append(_junit_case(file, "baseline", skipped))
    return _junit_document(baseline_name, suites)


def _move_failure(move: Move | None) -> str:
    if move is None:
        return ""
    change_lines = metric_change_lines(move)
    return (
        "<failure "
        f"message={quoteattr(change_lines[0])}>{escape(chr(10).join(change_lines))}</failure>"
    )


def _junit_case(scenario: str, case_name: str, outcome: str) -> str:
    case = f"    <testcase classname={quoteattr(scenario)} name={quoteattr(case_name)}"
    return f"{case}>{outcome}</testcase>" if outcome else f"{case}/>"


def _junit_document(baseline_name: str, suites: Mapping[str, Sequence[str]]) -> str:
    counts = {
        kind: {suite: sum(f"<{kind} " in case for case in cases) for suite, cases in suites.items()}
        for kind in ("failure", "error", "skipped")
    }
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name={quoteattr(f"baseline {baseline_name}")} tests="'
        f'{sum(map(len, suites.values()))}" failures="{sum(counts["failure"].values())}" '
        f'errors="{sum(counts["error"].values())}" skipped="{sum(counts["skipped"].values())}">',
    ]
    for suite, cases in suites.items():
        lines += [
            f'  <testsuite name={quoteattr(suite)} tests="{len(cases)}" '
            f'failures="{counts["failure"][suite]}" errors="{counts["error"][suite]}" '
            f'skipped="{counts["skipped"][suite]}">',
            *cases,
            "  </testsuite>",
        ]
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _github_error(baseline_name: str, message: str) -> str:
    """Return the annotation of an error, on the file and line that it names."""
    match = PLACE.match(message)
    groups = match.groupdict() if match else {}
    properties = [
        f"{property_name}={_in_title(property_text)}"
        for property_name, property_text in groups.items()
        if property_text
    ]
    titles = ",".join([*properties, f"title=baseline {_in_title(baseline_name)}"])
    return f"::error {titles}::{_in_message(message)}\n"


def _junit_error(baseline_name: str, message: str) -> str:
    error = f"<error message={quoteattr(message)}>{escape(message)}</error>"
    return _junit_document(
        baseline_name, {baseline_name: [_junit_case(baseline_name, "check", error)]}
    )


# An error that left nothing checked, in the forms that pipelines read.
ERROR_FORMS = {"github": _github_error, "junit": _junit_error}
