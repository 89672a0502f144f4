"""A sweep: the answer of `tco sweep`."""

from __future__ import annotations

from typing import Any

from tco.catalog import Catalogue
from tco.report.record import Answer, Document, Member, Record, json_value, record_of
from tco.report.table import Table, significant
from tco.sweeps.answer_checks import Check
from tco.sweeps.run import Span, Summary, Sweep

COLUMN = Record(Member("name", read="0"), Member("unit", str | None, "1"))
CHECK = Record(
    *(Member(name, read=f"figure.{name}") for name in ("says", "metric")),
    Member("at", dict, "figure.at"),
    Member("over", dict | None, "figure.over"),
    Member("quantile", float, "figure.quantile"),
    Member("today", float | None),
    Member("holds", bool),
)
SWEEP = Document(
    "sweep",
    Member("study", read="0.job.study.name"),
    Member("folder", read="0.folder"),
    Member("inputs", read="0.job.inputs_hash"),
    Member("cases", int, "0.progress.cases"),
    Member("rows", int, "1.rows"),
    Member("partitions", int, "0.progress.partitions"),
    Member("columns", [COLUMN], "0.job.columns"),
    Member("spans", [Span], "1.spans"),
    Member("answer", [CHECK], "2"),
)


def sweep_answer(catalogue: Catalogue, found: Sweep, said: Summary, answer: list[Check]) -> Answer:
    """Return the output of a sweep: its cases or its metric ranges.

    The output lists the cases where there are few, and otherwise the range of each metric.

    Args:
        catalogue: Catalogue of the answer.
        found: Finished sweep.
        said: Number of kept cases, with their table or the metric ranges.
        answer: Expected figures of the study, each with its value of today.

    """
    return SWEEP.answer(
        catalogue,
        (found, said, answer),
        lambda: sweep_tables(found, said, answer),
        sweep_csv_rows(found, said),
        found.notes,
    )


def sweep_csv_rows(found: Sweep, said: Summary) -> tuple[Record, list[Any]]:
    """Return the rows of a CSV, and their record."""
    if said.shown is None:
        return record_of(Span), said.spans
    record = Record(
        *(
            Member(name, str if unit is None else float, str(at))
            for at, (name, unit) in enumerate(found.job.columns)
        )
    )
    return record, [
        [json_value(cell, field.shape) for cell, field in zip(row, record.members, strict=True)]
        for row in said.shown.itertuples(index=False)
    ]


def sweep_tables(found: Sweep, said: Summary, answer: list[Check]) -> list[Table]:
    """Return the text tables of a sweep: cases or metric ranges."""
    study, progress = found.job.study, found.progress
    above = [str(study.document[word]) for word in ("question", "answer") if word in study.document]
    kept = "" if said.rows == progress.cases else f", {said.rows:,} of them within the constraints"
    below = [
        f"{progress.cases:,} cases{kept}, {progress.partitions:,} files in {found.folder}; "
        "pandas.read_parquet reads the folder."
    ]
    if answer:
        below.append(
            f"{sum(one.holds for one in answer)} of the {len(answer)} figures of the answer are "
            "today's."
        )
        below += [
            f"  {one.figure.says!r} is {significant(one.today) or 'none'} today: {one.figure.where}"
            for one in answer
            if not one.holds
        ]
    title = str(study.document.get("title", study.name))
    if said.shown is None and not said.spans:
        return [Table((), (), title, above, below)]
    record, many = sweep_csv_rows(found, said)
    cells = [
        [cell if isinstance(cell, str) else significant(cell) or "-" for cell in record.cells(one)]
        for one in many
    ]
    if said.shown is None:
        return [
            Table(
                ("scenario", "metric", "cases", "lowest", "median", "highest"),
                cells,
                title,
                above,
                below,
                "ll",
            )
        ]
    names = [name if unit in (None, "") else f"{name}, {unit}" for name, unit in found.job.columns]
    align = "".join("l" if unit is None else "r" for _, unit in found.job.columns)
    return [Table(names, cells, title, above, below, align)]
