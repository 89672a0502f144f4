"""Answer of `tco diff`: steps between two systems, metrics that moved, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.labels import count_with_noun, short_name
from tco.core.provenance import is_date
from tco.evaluation.what_if import UNMOVED
from tco.regression.difference import (
    PROGRAM_KINDS,
    ChangeCause,
    ChangeContribution,
    Move,
    Side,
    side_text,
)
from tco.regression.result_difference import Difference
from tco.report.assumptions import shown_metric
from tco.report.counterfactual import STEP_BETWEEN_SYSTEMS, counterfactual_table
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import (
    Table,
    fixed_digits,
    input_text,
    input_unit,
    scaled_unit,
    significant,
)
from tco.report.verdict import listed_names
from tco.scenario.metrics import METRICS

NAMED_CAUSES = 3  # causes of one step that a line names
# metrics whose steps are shown first
FIRST_METRICS = (
    "usd_per_million_output_tokens",
    "train_usd_per_trillion_tokens",
    "tco_usd_per_chip_hour",
    "capex_usd_per_chip",
)
ABSENT = side_text(None)
ABSENT_LEGEND = (
    f"{ABSENT}, new, gone: one side does not use the input. A price that is set replaces those of "
    "its parts."
)
KINDS = ("price", "quantity", "assumption", "data", *PROGRAM_KINDS)  # in the order of the table


def side_cell(side_value: Side) -> str:
    """Return one side of a change as text in a sentence."""
    return (
        significant(side_value, 6)
        if isinstance(side_value, (int, float))
        else side_text(side_value)
    )


def _side_in_column(side_value: Side) -> str:
    if isinstance(side_value, float) and not side_value.is_integer():
        return fixed_digits(side_value, 6)
    return side_cell(side_value)


def signed_percent(change: float | None) -> str:
    """Print a relative change in per cent, with its sign; nothing for None."""
    return "" if change is None else f"{change * 100:+.3g} %"


def side_members(shape: Any) -> tuple[Member, Member]:
    """Return the members of both sides of a change.

    Args:
        shape: Shape of a side.

    """
    return (
        Member("old", shape, label="old", show=lambda change: _side_in_column(change.old)),
        Member("new", shape, label="new", show=lambda change: _side_in_column(change.new)),
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
    Member("change", float | None, label="change", show=lambda move: signed_percent(move.change)),
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
    Member("notes", [str], "difference.notes"),
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
    full: bool,
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
        listed = _difference_tables(a, b, difference, metrics)
        if walk is None:
            return listed
        tables = [] if metrics and walk.metric not in metrics else [counterfactual_table(walk)]
        chosen = [move for move in difference.moves if move.metric in metrics]
        steps = [_step_table(move) for move in chosen if move.metric != walk.metric]
        if full:
            tables += listed
        else:
            tables += steps
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
        for step_name, group, _, _, start, end, change in walk.rows:
            # the residual is a kind without a path
            path = step_name if group else ""
            yield DifferenceRow("step", group or step_name, path, start, end, change, unit)
    for move in difference.moves:
        yield DifferenceRow("metric", "", *move[:4], METRICS[move.metric].unit)
    for cause in difference.causes:
        yield DifferenceRow("input", *cause[:4], None, cause.unit)


def _difference_tables(
    a: str, b: str, difference: Difference, metrics: Sequence[str]
) -> list[Table]:
    """Return the tables of the steps of some metrics, and of metrics and causes by kind."""
    moves, causes = difference
    below = [f"{note}." for note in difference.notes]
    if not moves and not causes:
        return [Table((), [], f"{a} and {b}: no difference", below=below)]
    change_rows = []
    for move in moves:
        unit, size = _unit_and_size(move)
        sides = _sized_sides(move, size)
        label = shown_metric(move.metric)[0]
        change_rows.append((label, unit, *sides, signed_percent(move.change)))
    for kind in KINDS:
        changed = [cause for cause in causes if cause.kind == kind]
        if changed:
            change_rows.append((kind.upper(), "", "", "", ""))
        change_rows += [
            (
                _cause_label(cause),
                input_unit(cause.path, cause.unit),
                _side_text(cause, cause.old),
                _side_text(cause, cause.new),
                _cause_change(cause),
            )
            for cause in changed
        ]
    formulas = sum(cause.kind == "formula" for cause in causes)
    counts = [
        count_with_noun(len(moves), "metric"),
        count_with_noun(len(causes) - formulas, "input"),
        *([count_with_noun(formulas, "formula")] if formulas else []),
    ]
    title = f"{a} -> {b}: base case; {listed_names(counts)} differ"
    if a == b:
        title = f"{a}: before and after, base case; {listed_names(counts)} moved"
    columns = ("metric, then inputs", "unit", "before", "after", "change")
    chosen = [move for move in moves if move.metric in metrics]
    unmoved = [] if metrics else _unmoved_cost_tables(difference)
    if not metrics and not unmoved:
        chosen = list(filter(None, [first_move(moves)]))
    if any(ABSENT in change_row for change_row in change_rows):
        below.append(ABSENT_LEGEND)
    change_table = Table(columns, change_rows, title, below=below, align="llrrr")
    return [*unmoved, *map(_step_table, chosen), change_table]


def _unmoved_cost_tables(difference: Difference) -> list[Table]:
    """Return the heading that no cost moved and which input binds; nothing where a cost moved."""
    words = []
    for note in difference.notes:
        _, _, binding = note.partition(f"{UNMOVED}: ")
        path, _, value = binding.partition(" ")
        if path:
            words.append(f"{short_name(path)} {value}")
    if not words or any(move.metric in FIRST_METRICS for move in difference.moves):
        return []
    return [Table((), [], f"Cost per token: not moved; {'; '.join(words)}")]


def _step_table(move: Move) -> Table:
    """Return the table of the steps of a metric, all earlier steps kept."""
    unit, size = _unit_and_size(move)
    step_rows = [
        (
            "; ".join(_cause_words(cause) for cause in step.causes[:NAMED_CAUSES])
            + (f" and {extra} more" if (extra := len(step.causes) - NAMED_CAUSES) > 0 else ""),
            f"{step.difference / size:+.3g}",
            signed_percent(None if step.ratio is None else step.ratio - 1),
        )
        for step in move.steps
    ]
    if move.old and move.new is not None:
        total_change = (move.new - move.old) / size
        step_rows.append(
            ("in all", f"{total_change:+.3g}", signed_percent(move.new / move.old - 1))
        )
    before, after = _sized_sides(move, size)
    label = shown_metric(move.metric)[0]
    title = f"Why {label} moved: {before} -> {after} {unit}".rstrip()
    columns = ("change, all earlier ones kept", f"adds, {unit}".rstrip(", "), "change")
    return Table(columns, step_rows, title, align="lrr")


def _cause_words(cause: ChangeCause) -> str:
    if cause.program:
        return cause.words()
    unit = input_unit(cause.path, cause.unit)
    sides = (_side_text(cause, side) for side in (cause.old, cause.new))
    return f"{_cause_label(cause)} {' -> '.join(sides)} {unit}".rstrip()


def _cause_label(cause: ChangeCause) -> str:
    return short_name(cause.path) if "." in cause.path else cause.path


def _cause_change(cause: ChangeCause) -> str:
    if cause.old is None:
        return "new"
    if cause.new is None:
        return "gone"
    if isinstance(cause.old, str) or isinstance(cause.new, str) or not cause.old:
        return ""
    if is_date(cause.path):
        return ""
    return signed_percent(cause.new / cause.old - 1)


def _side_text(cause: ChangeCause, side: Side) -> str:
    """Return one side of an input as text: a date as its month, a number to three digits."""
    if not isinstance(side, (int, float)):
        return side_text(side)
    return input_text(cause.path, side) if is_date(cause.path) else fixed_digits(side)


def _unit_and_size(move: Move) -> tuple[str, float]:
    """Return the unit in which both sides of a metric are read most easily, and its size."""
    label, unit, size = shown_metric(move.metric)
    largest = max((abs(side) / size for side in (move.old, move.new) if side), default=0.0)
    unit, scale = scaled_unit(unit, largest)
    if "million" in label:
        unit = unit.removesuffix("/Mtoken")
    # a ratio, x, has no unit
    return "" if unit == "x" else unit, size * scale


def _sized_sides(move: Move, size: float) -> tuple[str, str]:
    before, after = (
        "-" if side is None else fixed_digits(side / size, 4) for side in (move.old, move.new)
    )
    return before, after


def _change_text(change: Move | ChangeCause) -> str:
    return f"{side_cell(change.old)} -> {side_cell(change.new)}"


def metric_change_lines(move: Move) -> list[str]:
    """Return a line for a metric and one for each step: difference, relative change and causes."""
    head = f"{move.metric} {_change_text(move)}"
    cells = [
        (
            f"{step.difference:+.4g}",
            signed_percent(None if step.ratio is None else step.ratio - 1),
            _causes_text(step.causes),
        )
        for step in move.steps
    ]
    widths = [
        max((len(step_cells[column]) for step_cells in cells), default=0) for column in (0, 1)
    ]
    return [
        f"{head}  {signed_percent(move.change)}".rstrip(),
        *(
            f"  {step_cells[0]:>{widths[0]}}  {step_cells[1]:>{widths[1]}}  {step_cells[2]}"
            for step_cells in cells
        ),
    ]


def _causes_text(causes: Sequence[ChangeCause]) -> str:
    suffix = f" and {len(causes) - NAMED_CAUSES} more" if len(causes) > NAMED_CAUSES else ""
    texts = (
        cause._replace(unit=input_unit(cause.path, cause.unit)).words()
        for cause in causes[:NAMED_CAUSES]
    )
    return "; ".join(texts) + suffix


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
