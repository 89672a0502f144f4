"""Answers of `tco baseline` and `tco diff`: metric drift, steps and causes.

Drift is also written in the forms of GitHub and JUnit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from xml.sax.saxutils import escape, quoteattr

from tco.catalog import Catalogue
from tco.core.types import JsonObject
from tco.regression.baseline import Drift, Shift
from tco.regression.difference import PROGRAM, ChangeCause, ChangeContribution, Move
from tco.regression.waterfall import Difference
from tco.report.counterfactual import STRIDE, way_table
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant
from tco.scenario.metrics import METRICS

NAMED = 3  # causes of one step that a line names
# whose steps are shown
FIRST = (
    "usd_per_million_output_tokens",
    "train_usd_per_trillion_tokens",
    "tco_usd_per_chip_hour",
    "capex_usd_per_chip",
)
EITHER = float | str | None  # a number or a text; none of what is new or gone
CAUSE = Record(
    Member(
        "cause", Literal["program", "input"], lambda cause: "program" if cause.program else "input"
    ),
    *("kind", "path"),
    *(
        Member(name, int | str | None) for name in ("old", "new")
    ),  # numbers as they are, 4.0 as such
    "unit",
)
STEP = Record(Member("causes", [CAUSE]), Member("difference", float), Member("ratio", float | None))


def signed_percent(change: float | None) -> str:
    """Return a relative change as a percentage with its sign."""
    return "" if change is None else f"{change * 100:+.3g} %"


def metric_side_text(value: Any) -> str:
    """Return one side of a change."""
    return (
        "absent"
        if value is None
        else significant(value, 6)
        if isinstance(value, (int, float))
        else str(value)
    )


MOVE = Record(
    Member("metric", label="metric"),
    Member("unit", read=lambda move: METRICS[move.metric].unit),
    Member("old", float | None, label="old", show=lambda move: metric_side_text(move.old)),
    Member("new", float | None, label="new", show=lambda move: metric_side_text(move.new)),
    Member("change", float | None, label="change", show=lambda move: signed_percent(move.change)),
    Member("steps", [STEP], csv=False),
)


def format_causes(causes: Sequence[ChangeCause]) -> str:
    """Return the causes of one step in words."""
    more = f" and {len(causes) - NAMED} more" if len(causes) > NAMED else ""
    return "; ".join(cause.words() for cause in causes[:NAMED]) + more


def reasons(steps: Sequence[ChangeContribution]) -> list[str]:
    """Return the causes of some steps in words."""
    return [cause.words() for step in steps for cause in step.causes]


def metric_change_lines(move: Move) -> list[str]:
    """Return the steps of a metric, a line each: what it adds, in its unit and relative, and
    why.
    """
    unit = METRICS[move.metric].unit
    head = (
        f"{move.metric} {metric_side_text(move.old)} -> {metric_side_text(move.new)} {unit}".rstrip()
        + f"  {signed_percent(move.change)}".rstrip()
    )
    cells = [
        (
            f"{step.difference:+.4g}",
            signed_percent(None if step.ratio is None else step.ratio - 1),
            format_causes(step.causes),
        )
        for step in move.steps
    ]
    wide = [max((len(row[column]) for row in cells), default=0) for column in (0, 1)]
    return [
        head,
        *(f"  {first:>{wide[0]}}  {second:>{wide[1]}}  {why}" for first, second, why in cells),
    ]


def shown_first(moved: Sequence[Move]) -> Move | None:
    """Return the move whose steps tell most: that of the cost of work, else the largest."""
    whole = {move.metric: move for move in moved if move.old is not None and move.new is not None}
    return next(
        (whole[name] for name in FIRST if name in whole),
        max(whole.values(), key=lambda move: abs(move.change or 0), default=None),
    )


def drift_table(name: str, scenarios: int, found: Sequence[Drift]) -> Table:
    """Return the table of `tco baseline check`."""
    if not found:
        return Table((), [], f"baseline {name}: {scenarios} scenarios, nothing moved")
    below = ["Step by step, all earlier steps kept:"]
    for scenario in dict.fromkeys(d.scenario for d in found):
        below += [
            f"{scenario}: {line}" if not at else line
            for at, line in enumerate(why([d for d in found if d.scenario == scenario]))
        ]
    return DRIFT_ROW.table(found, f"baseline {name}: {len(found)} metrics moved", (), below)


def why(found: Sequence[Drift]) -> Iterator[str]:
    """Yield the steps of the metric that tells most, and what moved only others."""
    first = shown_first([d.move for d in found])
    told = [] if first is None else reasons(first.steps)
    if first is not None:
        yield from metric_change_lines(first)
    rest = [
        cause
        for cause in dict.fromkeys(reasons([step for d in found for step in d.move.steps]))
        if cause not in told
    ]
    if rest:
        yield f"  other metrics also: {'; '.join(rest)}" if first else f"  {'; '.join(rest)}"


def drift_verdict(drift: Drift) -> str:
    """Return whether a drift is for the better."""
    return "" if drift.worse is None else "worse" if drift.worse else "better"


MOVED = Record(Member("scenario", label="scenario"), MOVE.read_via("move"))
DRIFT = Record(
    MOVED,
    Member("worse", bool | None),
    Member("why", [str], lambda drift: reasons(drift.move.steps)),
)
DRIFT_ROW = Record(
    MOVED,
    Member("worse", read=drift_verdict, label=""),
    Member("why", read=lambda drift: "; ".join(reasons(drift.move.steps))),
)
SHIFT = Record(
    Member("scenario", label="scenario"),
    Member(
        "tokens_per_s_per_user",
        float,
        label="tokens/s",
        show=lambda one: f"{one.tokens_per_s_per_user:g}",
    ),
    Member("figure", label="of the draws"),
    Member("old", EITHER, label="old", show=lambda one: metric_side_text(one.old)),
    Member("new", EITHER, label="new", show=lambda one: metric_side_text(one.new)),
)
CHECK = Document(
    "baseline-check",
    "name",
    Member("ok", bool, lambda found: not (found["drift"] or found["shifts"])),
    Member("drift", [DRIFT]),
    Member("shifts", [SHIFT]),
)


def drift_answer(
    catalogue: Catalogue,
    name: str,
    checked: Mapping[str, Sequence[str]],
    found: Sequence[Drift],
    moved: Sequence[Shift],
) -> Answer:
    """Return the answer on drift since baseline `name`.

    Args:
        catalogue: Catalogue of the evaluated scenarios.
        name: Name of the baseline.
        checked: Compared metrics by scenario.
        found: Metrics that moved beyond the threshold.
        moved: Figures of the draws that moved.

    Returns:
        Answer in all usual formats, and as `github` and `junit`.

    """
    texts = {
        "github": lambda: to_github(name, len(checked), found, moved),
        "junit": lambda: to_junit(name, checked, found),
    }
    asked = {"name": name, "drift": found, "shifts": moved}
    notes = (
        [
            f"{len(moved)} figures of the draws moved, what is to be chosen or what a choice "
            "stands to lose among them"
        ]
        if moved
        else []
    )

    def tables() -> list[Table]:
        shifted = (
            [SHIFT.table(moved, f"baseline {name}: {len(moved)} figures of the draws moved")]
            if moved
            else []
        )
        return [*([drift_table(name, len(checked), found)] if found or not moved else []), *shifted]

    return CHECK.answer(catalogue, asked, tables, (DRIFT_ROW, found), notes, texts=texts)


# ---------------------------------------------------------------- tco diff
DIFF = Document(
    *("diff", "a", "b"),
    Record(
        Member("metric", optional=True),
        Member("steps", [STRIDE], optional=True),
        Member("residual", float, optional=True),
    ).read_via("way"),
    Member("metrics", [MOVE]),
    Member("why", [CAUSE]),
)
DIFF_ROW = Record(  # of a step from one system to the other, of a metric that moved, or of a cause
    *("what", "kind", "path"),
    *(Member(name, EITHER) for name in ("old", "new")),
    Member("change", float | None),
    "unit",
)


def diff_rows(found: Difference) -> Iterator[JsonObject]:
    """Yield the rows of a CSV."""
    if found.way is not None:
        unit = METRICS[found.way.metric].unit
        last, rest = found.way.ends[1], found.way.residual
        steps = [
            *((step.of, step.cause, step.start, step.end, step.change) for step in found.way.steps),
            ("residual", "", last - rest, last, rest),
        ]
        for kind, path, old, new, change in steps:
            yield {
                "what": "step",
                "kind": kind,
                "path": path,
                "old": old,
                "new": new,
                "change": change,
                "unit": unit,
            }
    for move in found.moves:
        yield {
            "what": "metric",
            "kind": "",
            "path": move.metric,
            "unit": METRICS[move.metric].unit,
            **move._asdict(),
        }
    for cause in found.causes:
        yield {"what": "input", "change": None, **cause._asdict()}


def diff_answer(
    catalogue: Catalogue,
    a: str,
    b: str,
    found: Difference,
    metrics: Sequence[str],
    full: bool = False,
) -> Answer:
    """Return the answer on changes from state `a` to state `b`.

    Args:
        catalogue: Catalogue that the answer names as its data.
        a: Scenario or saved result before the changes.
        b: Scenario or saved result after the changes.
        found: Differences from `a` to `b`.
        metrics: Metrics whose steps are shown.
        full: True shows all metrics and inputs that differ between two systems, not only the steps
            from `a` to `b`.

    """
    said = {"a": a, "b": b, "way": found.way, "metrics": found.moves, "why": found.causes}

    def tables() -> list[Table]:
        listed = diff_table(a, b, found.moves, found.causes, metrics)
        if found.way is None:
            return [listed]
        told = [] if metrics and found.way.metric not in metrics else [way_table(found.way)]
        others = [
            line
            for move in found.moves
            if move.metric in metrics and move.metric != found.way.metric
            for line in metric_change_lines(move)
        ]
        return (
            [*told, listed] if full else [*told, *([Table((), [], above=others)] if others else [])]
        )

    return DIFF.answer(
        catalogue,
        said,
        tables,
        (DIFF_ROW, diff_rows(found)),
        of={"scenario": b, "compared_with": a},
    )


def diff_table(
    a: str, b: str, moved: Sequence[Move], why: Sequence[ChangeCause], metrics: Sequence[str]
) -> Table:
    """Return the table of `tco diff`: metrics first, then what differs, each old -> new; below, the
    steps of some metrics.
    """
    rows = [
        (
            sign(m),
            m.metric,
            f"{metric_side_text(m.old)} -> {metric_side_text(m.new)}",
            signed_percent(m.change),
        )
        for m in moved
    ]
    for kind in ("price", "quantity", "assumption", "data", *PROGRAM):
        some = [cause for cause in why if cause.kind == kind]
        if some:
            rows.append(("", kind.upper(), "", ""))
            rows += [
                (
                    sign(c),
                    c.path,
                    f"{metric_side_text(c.old)} -> {metric_side_text(c.new)} {c.unit}".rstrip(),
                    "",
                )
                for c in some
            ]
    formulas = sum(cause.kind == "formula" for cause in why)
    also = f" and {formulas} formulas" if formulas else ""
    title = (
        f"{a} -> {b}: {len(moved)} metrics and {len(why) - formulas} inputs{also} differ"
        if rows
        else f"{a} and {b}: no difference"
    )
    first = shown_first(moved)
    chosen = (
        [move for move in moved if move.metric in metrics] if metrics else [first] if first else []
    )
    below = [
        *(["Step by step, all earlier steps kept:"] if chosen else []),
        *(line for move in chosen for line in metric_change_lines(move)),
    ]
    return Table(
        ("", "metric or input", "old -> new", "change") if rows else (),
        rows,
        title,
        [],
        below,
        align="lll",
    )


def sign(one: Move | ChangeCause) -> str:
    """Return + for what is new, - for what is gone, ~ for what moved."""
    return "+" if one.old is None else "-" if one.new is None else "~"


# ---------------------------------------------------------------- what a baseline keeps
LISTED = Record(
    *("id", "path"),
    Member("scenarios", [str], lambda one: one.get("scenarios"), optional=True),
    Member("error", optional=True),
)
LIST = Document("baseline-list", Member("items", [LISTED], lambda found: found))
LIST_ROW = Record(
    Member("id", label="baseline"),
    Member("path", label="file"),
    Member(
        "scenarios",
        label="scenarios",
        read=lambda one: one.get("error") or ", ".join(one["scenarios"]),
    ),
)
SAVED = Record(
    Member("scenario", read="0", label="scenario"), Member("path", read="1", label="kept in")
)
SAVE = Document(
    "baseline-save", "name", "path", Member("scenarios", [str]), Member("stayed", [str])
)
KEPT_INPUT = Record(
    Member("path", read="0"), Member("value", float, "1.0"), Member("unit", read="1.1")
)
KEPT = Record(
    "scenario",
    *(Member(name, str | None) for name in ("system", "tco_version", "data_hash", "data_date")),
    Member("metrics", {str: float | None}),
    Member("inputs", [KEPT_INPUT], lambda one: one["inputs"].items()),
    Member("formulas", {str: str}),
)
SHOW = Document("baseline-show", "name", Member("scenarios", [KEPT]))
SHOW_ROW = Record("scenario", "metric", "unit", Member("value", float | None))


def saved_answer(
    catalogue: Catalogue, name: str, path: str, scenarios: Sequence[str], stayed: Sequence[str]
) -> Answer:
    """Return the answer on scenarios saved to a baseline.

    Args:
        catalogue: Catalogue of the evaluated scenarios.
        name: Name of the baseline.
        path: File of the baseline.
        scenarios: Names of the saved scenarios.
        stayed: Names of the scenarios that stay as they were.

    """
    found = {"name": name, "path": path, "scenarios": scenarios, "stayed": stayed}
    rows = [(one, path) for one in scenarios]
    below = [f"As they were: {', '.join(stayed)}."] if stayed else []
    return SAVE.answer(catalogue, found, lambda: [SAVED.table(rows, below=below)], (SAVED, rows))


def baseline_list_answer(catalogue: Catalogue, found: Mapping[str, tuple[str, Any]]) -> Answer:
    """Return the answer that lists the baselines of a folder.

    Args:
        catalogue: Catalogue that the answer names as its data.
        found: File and scenarios by baseline name; a text in place of the scenarios says what is
            wrong with the file.

    """
    items = [
        {"id": name, "path": path, "error" if isinstance(kept, str) else "scenarios": kept}
        for name, (path, kept) in found.items()
    ]
    return LIST.answer(
        catalogue,
        items,
        lambda: [LIST_ROW.table(items, f"{len(items)} baselines")],
        (LIST_ROW, items),
    )


def kept_answer(
    catalogue: Catalogue, name: str, kept: dict[str, JsonObject], metrics: Sequence[str]
) -> Answer:
    """Return the answer on the metrics that a baseline keeps.

    Args:
        catalogue: Catalogue that the answer names as its data.
        name: Name of the baseline.
        kept: Saved states by scenario.
        metrics: Metrics to show, in this order.

    """
    states = [
        {
            "scenario": one,
            **state,
            "metrics": {m: state["metrics"][m] for m in metrics if m in state["metrics"]},
        }
        for one, state in kept.items()
    ]
    rows = [
        {
            "scenario": state["scenario"],
            "metric": metric,
            "unit": METRICS[metric].unit,
            "value": value,
        }
        for state in states
        for metric, value in state["metrics"].items()
    ]

    def table() -> Table:
        found = [
            metric
            for metric in metrics
            if any(metric in state["metrics"] for state in kept.values())
        ]
        lines = [
            (
                metric,
                METRICS[metric].unit,
                *(significant(state["metrics"].get(metric), 6) or "-" for state in kept.values()),
            )
            for metric in found
        ]
        return Table(
            ("metric", "unit", *kept),
            lines,
            f"baseline {name}",
            [f"{one}: {made_by(state)}" for one, state in kept.items()],
            align="ll",
        )

    return SHOW.answer(
        catalogue, {"name": name, "scenarios": states}, lambda: [table()], (SHOW_ROW, rows)
    )


def made_by(state: JsonObject) -> str:
    """Return by which program, on which data a state was made."""
    dated = f", prices up to {state['data_date']}" if state.get("data_date") else ""
    return (
        f"tco {state['tco_version']}, data {state['data_hash']}{dated}, {len(state['inputs'])} "
        f"inputs, {len(state['formulas'])} formulas"
    )


# ---------------------------------------------------------------- what moved, for machines that
# show it beside a change
def to_github(name: str, scenarios: int, found: Sequence[Drift], moved: Sequence[Shift]) -> str:
    """Return a workflow command for each scenario that moved: why, the metric that tells most with
    its steps, and how much else moved.
    """
    lines = []
    for scenario in dict.fromkeys(
        [*(one.scenario for one in found), *(one.scenario for one in moved)]
    ):
        some, drawn = (
            [one for one in found if one.scenario == scenario],
            sum(one.scenario == scenario for one in moved),
        )
        first = shown_first([one.move for one in some])
        causes = (
            reasons(sorted(first.steps, key=lambda step: -abs(step.difference))) if first else []
        )
        told = ["; ".join(causes[:NAMED]), *metric_change_lines(first)] if first else [*why(some)]
        counts = (
            (len(some) - bool(first), "more metrics moved"),
            (drawn, "figures of the draws moved"),
        )
        more = [f"{count} {what}" for count, what in counts if count]
        lines.append(
            "::error title=baseline "
            f"{in_title(f'{name}, {scenario}')}::{in_message(chr(10).join(filter(None, [*told, *more])))}\n"
        )
    return (
        "".join(lines)
        or f"::notice title=baseline {in_title(name)}::{scenarios} scenarios, nothing moved\n"
    )


def in_message(text: str) -> str:
    """Return a text as the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def in_title(text: str) -> str:
    """Return a text as a property of a workflow command."""
    return in_message(text).replace(":", "%3A").replace(",", "%2C")


def to_junit(name: str, checked: Mapping[str, Sequence[str]], found: Sequence[Drift]) -> str:
    """Return a test suite for each scenario, with a case for each metric that was checked; one that
    moved is a failure.
    """
    moved = {(drift.scenario, drift.move.metric): drift for drift in found}
    whole = sum(map(len, checked.values()))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name={quoted(f"baseline {name}")} tests="{whole}" failures="{len(moved)}">',
    ]
    for scenario, metrics in checked.items():
        failed = sum((scenario, metric) in moved for metric in metrics)
        lines.append(
            f'  <testsuite name={quoted(scenario)} tests="{len(metrics)}" failures="{failed}">'
        )
        for metric in metrics:
            case = f"    <testcase classname={quoted(scenario)} name={quoted(metric)}"
            drift = moved.get((scenario, metric))
            if drift is None:
                lines.append(f"{case}/>")
                continue
            head, *steps = metric_change_lines(drift.move)
            body = escape("\n".join([head, *steps]))
            lines.append(f"{case}><failure message={quoted(head)}>{body}</failure></testcase>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def quoted(text: Any) -> str:
    """Return a text as an attribute."""
    return quoteattr(str(text))
