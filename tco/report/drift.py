"""Answer of `tco baseline check`: drift of metrics with its causes, also for GitHub and JUnit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from tco.catalog import Catalogue
from tco.regression.difference import Move, Side
from tco.regression.drift import Drift, Shift
from tco.report.difference import (
    MOVE,
    NAMED_CAUSES,
    first_move,
    metric_change_lines,
    side_members,
    step_reasons,
)
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table

VERDICTS = {None: "", True: "worse", False: "better"}
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
SHIFT = Record(
    Member("scenario", label="scenario"),
    Member("tokens_per_s_per_user", float, label="tokens/s", show="{:g}"),
    Member("figure", label="of the draws"),
    *side_members(Side),
)
CHECK = Document(
    "baseline-check",
    "name",
    Member("ok", bool, lambda check: not (check["drift"] or check["shifts"])),
    Member("drift", [DRIFT]),
    Member("shifts", [SHIFT]),
)


def drift_answer(
    catalogue: Catalogue,
    name: str,
    checked: Mapping[str, Sequence[str]],
    drifts: Sequence[Drift],
    shifts: Sequence[Shift],
    withheld: Mapping[str, Sequence[str]],
) -> Answer:
    """Return the answer on drift since baseline `name`.

    Args:
        catalogue: Catalogue of the evaluated scenarios.
        name: Name of the baseline.
        checked: Compared metrics by scenario.
        drifts: Metrics that moved beyond the threshold.
        shifts: Figures of the draws that moved.
        withheld: Metrics of today that rest on own values and are not checked, by scenario.

    Returns:
        Answer in all usual formats, and as `github` and `junit`.

    """
    shift_count = f"{len(shifts)} figures of the draws moved"
    notes = [
        f"{scenario}: {len(metrics)} metrics rest on your own values and are not checked"
        for scenario, metrics in withheld.items()
        if metrics
    ]
    if shifts:
        notes.append(
            f"{shift_count}, what is to be chosen or what a choice stands to lose among them"
        )

    def tables() -> list[Table]:
        tables = [_drift_table(name, len(checked), drifts)] if drifts or not shifts else []
        if shifts:
            tables.append(SHIFT.table(shifts, f"baseline {name}: {shift_count}"))
        return tables

    return CHECK.answer(
        catalogue,
        {"name": name, "drift": drifts, "shifts": shifts},
        tables,
        (DRIFT_ROW, drifts),
        notes,
        texts={
            "github": lambda: _to_github(name, len(checked), drifts, shifts),
            "junit": lambda: _to_junit(name, checked, drifts),
        },
    )


def _drift_table(name: str, scenario_count: int, drifts: Sequence[Drift]) -> Table:
    if not drifts:
        return Table((), [], f"baseline {name}: {scenario_count} scenarios, nothing moved")
    below = ["Step by step, all earlier steps kept:"]
    for scenario in dict.fromkeys(drift.scenario for drift in drifts):
        for position, line in enumerate(_scenario_lines(_moves_of(scenario, drifts))):
            below.append(line if position else f"{scenario}: {line}")
    return DRIFT_ROW.table(drifts, f"baseline {name}: {len(drifts)} metrics moved", (), below)


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
    name: str, scenario_count: int, drifts: Sequence[Drift], shifts: Sequence[Shift]
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
        message += [f"{count} {text}" for text, count in further.items() if count]
        text = _in_message("\n".join(filter(None, message)))
        lines.append(f"::error title=baseline {_in_title(f'{name}, {scenario}')}::{text}\n")
    if not lines:
        title = f"title=baseline {_in_title(name)}"
        lines.append(f"::notice {title}::{scenario_count} scenarios, nothing moved\n")
    return "".join(lines)


def _in_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _in_title(text: str) -> str:
    return _in_message(text).replace(":", "%3A").replace(",", "%2C")


def _to_junit(name: str, checked: Mapping[str, Sequence[str]], drifts: Sequence[Drift]) -> str:
    """Return a test suite for each scenario, with a case for each checked metric.

    A metric that moved is a failure.
    """
    moves = {(drift.scenario, drift.move.metric): drift.move for drift in drifts}
    cases = sum(map(len, checked.values()))
    title = quoteattr(f"baseline {name}")
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name={title} tests="{cases}" failures="{len(moves)}">',
    ]
    for scenario, metrics in checked.items():
        failures = sum((scenario, metric) in moves for metric in metrics)
        suite = quoteattr(scenario)
        lines.append(f'  <testsuite name={suite} tests="{len(metrics)}" failures="{failures}">')
        for metric in metrics:
            case = f"    <testcase classname={suite} name={quoteattr(metric)}"
            move = moves.get((scenario, metric))
            if move is None:
                lines.append(f"{case}/>")
                continue
            text = metric_change_lines(move)
            failure = f"<failure message={quoteattr(text[0])}>{escape(chr(10).join(text))}"
            lines.append(f"{case}>{failure}</failure></testcase>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"
