"""A sweep: the answer of `tco sweep`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.report.record import Answer, Document, Member, Record, json_value, record_of
from tco.report.table import Table, significant
from tco.sweeps.answer_checks import Check
from tco.sweeps.run import Span, Summary, Sweep


class FinishedSweep(NamedTuple):
    """A sweep with its summary and the expected figures of its study."""

    sweep: Sweep
    summary: Summary
    answer: list[Check]


CHECK = Record(
    Record(
        "says", "metric", Member("at", dict, "figure_case"), Member("over", dict | None)
    ).read_via("figure"),
    Member("quantile", float, "figure.quantile"),
    Member("today", float | None),
    Member("holds", bool),
)
SWEEP = Document(
    "sweep",
    Member("study", read="sweep.job.study.name"),
    Member("folder", read="sweep.folder"),
    Member("inputs", read="sweep.job.inputs_hash"),
    Member("cases", int, "sweep.progress.cases"),
    Member("rows", int, "summary.rows"),
    Member("partitions", int, "sweep.progress.partitions"),
    Member(
        "columns",
        [Record(Member("name", read="0"), Member("unit", str | None, "1"))],
        "sweep.job.columns",
    ),
    Member("spans", [Span], "summary.spans"),
    Member("answer", [CHECK]),
)


def sweep_answer(
    catalogue: Catalogue, sweep: Sweep, summary: Summary, answer: list[Check]
) -> Answer:
    """Return the cases of a sweep, or the range of each metric where the cases are many.

    Args:
        catalogue: Catalogue of the answer.
        sweep: Finished sweep.
        summary: Number of kept cases, with their table or the metric ranges.
        answer: Expected figures of the study, each with its present value.

    """
    finished = FinishedSweep(sweep, summary, answer)
    return SWEEP.answer(
        catalogue,
        finished,
        lambda: [_sweep_table(finished)],
        _sweep_rows(sweep, summary),
        sweep.notes,
    )


def _sweep_rows(sweep: Sweep, summary: Summary) -> tuple[Record, list[Any]]:
    """Return record and rows of the CSV: cases or metric ranges."""
    if summary.frame is None:
        return record_of(Span), summary.spans
    record = Record(
        *(
            Member(column_name, str if unit is None else float, str(column))
            for column, (column_name, unit) in enumerate(sweep.job.columns)
        )
    )
    return record, [
        [
            json_value(cell, member.shape)
            for cell, member in zip(frame_row, record.members, strict=True)
        ]
        for frame_row in summary.frame.itertuples(index=False)
    ]


def _sweep_table(finished: FinishedSweep) -> Table:
    """Tabulate the cases of a sweep, or its metric ranges."""
    sweep, summary, answer = finished
    study, progress = sweep.job.study, sweep.progress
    above = [str(study.document[word]) for word in ("question", "answer") if word in study.document]
    constrained = ""
    if summary.rows != progress.cases:
        constrained = f", {summary.rows:,} of them within the constraints"
    below = [
        f"{progress.cases:,} cases{constrained}, {progress.partitions:,} files in {sweep.folder}; "
        "pandas.read_parquet reads the folder."
    ]
    if answer:
        below.append(
            f"{sum(check.holds for check in answer)} of the {len(answer)} figures of the answer "
            "are today's."
        )
    below += [
        f"  {check.figure.says!r} is {significant(check.today) or 'none'} today: "
        f"{check.figure.where}"
        for check in answer
        if not check.holds
    ]
    title = str(study.document.get("title", study.name))
    if summary.frame is None and not summary.spans:
        return Table((), (), title, above, below)
    record, case_rows = _sweep_rows(sweep, summary)
    cells = [
        [
            cell if isinstance(cell, str) else significant(cell) or "-"
            for cell in record.cells(case_row)
        ]
        for case_row in case_rows
    ]
    if summary.frame is None:
        columns = ["scenario", "metric", "cases", "lowest", "median", "highest"]
        return Table(columns, cells, title, above, below, "ll")
    units = dict(sweep.job.columns)
    columns = [
        f"{column_name}, {unit}" if unit else column_name for column_name, unit in units.items()
    ]
    align = "".join("l" if unit is None else "r" for unit in units.values())
    return Table(columns, cells, title, above, below, align)
