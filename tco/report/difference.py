"""Answer of `tco diff`: steps between two systems, metrics that moved, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tco.catalog import Catalogue
from tco.regression.difference import (
    PROGRAM_KINDS,
    ChangeCause,
    ChangeContribution,
    Move,
    Side,
    side_text,
)
from tco.regression.result_difference import Difference
from tco.report.counterfactual import STEP_BETWEEN_SYSTEMS, counterfactual_table
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant
from tco.scenario.metrics import METRICS

NAMED_CAUSES = 3  # causes of one step that a line names
# metrics whose steps are shown first
FIRST_METRICS = (
    "usd_per_million_output_tokens",
    "train_usd_per_trillion_tokens",
    "tco_usd_per_chip_hour",
    "capex_usd_per_chip",
)
KINDS = ("price", "quantity", "assumption", "data", *PROGRAM_KINDS)  # in the order of the table


def side_cell(value: Side) -> str:
    """Return one side of a change as a cell."""
    return significant(value, 6) if isinstance(value, (int, float)) else side_text(value)


def _signed_percent(change: float | None) -> str:
    return "" if change is None else f"{change * 100:+.3g} %"


def side_members(shape: Any) -> tuple[Member, Member]:
    """Return the members of both sides of a change.

    Args:
        shape: Shape of a side.

    """
    return (
        Member("old", shape, label="old", show=lambda change: side_cell(change.old)),
        Member("new", shape, label="new", show=lambda change: side_cell(change.new)),
    )


CAUSE = Record(
    Member(
        "cause", Literal["program", "input"], lambda cause: "program" if cause.program else "input"
    ),
    *("kind", "path"),
    # numbers as they are, 4.0 as such
    *side_members(int | str | None),
    "unit",
)
STEP = Record(Member("causes", [CAUSE]), Member("difference", float), Member("ratio", float | None))
MOVE = Record(
    Member("metric", label="metric"),
    Member("unit", read=lambda move: METRICS[move.metric].unit),
    *side_members(float | None),
    Member("change", float | None, label="change", show=lambda move: _signed_percent(move.change)),
    Member("steps", [STEP], csv=False),
)
DIFF = Document(
    *("diff", "a", "b"),
    Record(
        Member("metric", optional=True),
        Member("steps", [STEP_BETWEEN_SYSTEMS], optional=True),
        Member("residual", float, optional=True),
    ).read_via("difference.counterfactual"),
    Member("metrics", [MOVE], "difference.moves"),
    Member("why", [CAUSE], "difference.causes"),
)


class DifferenceRow(NamedTuple):
    """CSV row of a step between two systems, a metric that moved, or a cause."""

    what: str
    kind: str
    path: str
    old: Side
    new: Side
    change: float | None
    unit: str


def diff_answer(
    catalogue: Catalogue,
    a: str,
    b: str,
    difference: Difference,
    metrics: Sequence[str],
    full: bool = False,
) -> Answer:
    """Return the answer on changes from state `a` to state `b`.

    Args:
        catalogue: Catalogue that the answer names as its data.
        a: Scenario or saved result before the changes.
        b: Scenario or saved result after the changes.
        difference: Differences from `a` to `b`.
        metrics: Metrics whose steps are shown.
        full: True shows all metrics and inputs that differ between two systems, not only the steps
            from `a` to `b`.

    """

    def tables() -> list[Table]:
        walk = difference.counterfactual
        listed = _difference_table(a, b, difference, metrics)
        if walk is None:
            return [listed]
        tables = [] if metrics and walk.metric not in metrics else [counterfactual_table(walk)]
        lines = [
            line
            for move in difference.moves
            if move.metric in metrics and move.metric != walk.metric
            for line in metric_change_lines(move)
        ]
        if full:
            tables.append(listed)
        elif lines:
            tables.append(Table((), [], above=lines))
        return tables

    return DIFF.answer(
        catalogue,
        {"a": a, "b": b, "difference": difference},
        tables,
        (Record(DifferenceRow), _difference_rows(difference)),
        of={"scenario": b, "compared_with": a},
    )


def _difference_rows(difference: Difference) -> Iterator[DifferenceRow]:
    walk = difference.counterfactual
    if walk is not None:
        unit = METRICS[walk.metric].unit
        for name, group, _, _, start, end, change in walk.rows:
            # the residual is a kind without a path
            path = name if group else ""
            yield DifferenceRow("step", group or name, path, start, end, change, unit)
    for move in difference.moves:
        yield DifferenceRow("metric", "", *move[:4], METRICS[move.metric].unit)
    for cause in difference.causes:
        yield DifferenceRow("input", *cause[:4], None, cause.unit)


def _difference_table(a: str, b: str, difference: Difference, metrics: Sequence[str]) -> Table:
    """Return the table of metrics, then causes by kind; below, the steps of some metrics."""
    moves, causes = difference
    rows = [
        (_sign(move), move.metric, _change_text(move), _signed_percent(move.change))
        for move in moves
    ]
    for kind in KINDS:
        changed = [cause for cause in causes if cause.kind == kind]
        if changed:
            rows.append(("", kind.upper(), "", ""))
        for cause in changed:
            text = f"{_change_text(cause)} {cause.unit}".rstrip()
            rows.append((_sign(cause), cause.path, text, ""))
    formulas = sum(cause.kind == "formula" for cause in causes)
    suffix = f" and {formulas} formulas" if formulas else ""
    title = f"{a} and {b}: no difference"
    if rows:
        title = (
            f"{a} -> {b}: {len(moves)} metrics and {len(causes) - formulas} inputs{suffix} differ"
        )
    chosen = [move for move in moves if move.metric in metrics]
    if not metrics:
        chosen = list(filter(None, [first_move(moves)]))
    below = ["Step by step, all earlier steps kept:"] if chosen else []
    for move in chosen:
        below += metric_change_lines(move)
    columns = ("", "metric or input", "old -> new", "change") if rows else ()
    return Table(columns, rows, title, [], below, align="lll")


def _sign(change: Move | ChangeCause) -> str:
    """Return + for what is new, - for what is gone, ~ for what moved."""
    if change.old is None:
        return "+"
    return "-" if change.new is None else "~"


def _change_text(change: Move | ChangeCause) -> str:
    return f"{side_cell(change.old)} -> {side_cell(change.new)}"


def metric_change_lines(move: Move) -> list[str]:
    """Return a line for a metric and one for each step: difference, relative change and causes."""
    unit, percent = METRICS[move.metric].unit, _signed_percent(move.change)
    head = f"{move.metric} {_change_text(move)} {unit}".rstrip()
    cells = [
        (
            f"{step.difference:+.4g}",
            _signed_percent(None if step.ratio is None else step.ratio - 1),
            _causes_text(step.causes),
        )
        for step in move.steps
    ]
    widths = [max((len(row[column]) for row in cells), default=0) for column in (0, 1)]
    return [
        f"{head}  {percent}".rstrip(),
        *(f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]}" for row in cells),
    ]


def _causes_text(causes: Sequence[ChangeCause]) -> str:
    suffix = f" and {len(causes) - NAMED_CAUSES} more" if len(causes) > NAMED_CAUSES else ""
    return "; ".join(cause.words() for cause in causes[:NAMED_CAUSES]) + suffix


def step_reasons(steps: Sequence[ChangeContribution]) -> list[str]:
    """Return the causes of steps in words."""
    return [cause.words() for step in steps for cause in step.causes]


def first_move(moves: Sequence[Move]) -> Move | None:
    """Return the move whose steps are shown: that of the cost of work, else the largest."""
    by_metric = {move.metric: move for move in moves if move.ends}
    for metric in FIRST_METRICS:
        if metric in by_metric:
            return by_metric[metric]
    return max(by_metric.values(), key=lambda move: abs(move.change or 0), default=None)
