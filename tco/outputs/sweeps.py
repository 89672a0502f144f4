"""A sweep: the answer of `tco sweep`."""

from __future__ import annotations

from typing import Any

from tco.catalog import Catalogue
from tco.outputs.record import Answer, Document, Field, Plain, Record, number, record_of
from tco.outputs.table import Table, significant
from tco.studies.sweep.answer import Check
from tco.studies.sweep.run import Sweep
from tco.studies.sweep.summary import Span, Summary

COLUMN = Record(Field("name", read=lambda column: column[0]), Field("unit", str | None, lambda column: column[1]))
CHECK = Record(
    *Record(
        Field("says"),
        Field("metric"),
        Field("at", Plain({"type": "object"})),
        Field("over", Plain({"type": ["null", "object"]})),
        Field("quantile", float),
    ).within(lambda one: one.figure),
    Field("today", float | None),
    Field("holds", bool),
)
SWEEP = Document(
    "sweep",
    Field("study", read=lambda found: found[0].job.study.name),
    Field("folder", read=lambda found: found[0].folder),
    Field("inputs", read=lambda found: found[0].job.inputs_hash),
    Field("cases", int, lambda found: found[0].progress.cases),
    Field("rows", int, lambda found: found[1].rows),
    Field("partitions", int, lambda found: found[0].progress.partitions),
    Field("columns", [COLUMN], lambda found: found[0].job.columns),
    Field("spans", [Span], lambda found: found[1].spans),
    Field("answer", [CHECK], lambda found: found[2]),
)


def sweep_answer(catalogue: Catalogue, found: Sweep, said: Summary, answer: list[Check]) -> Answer:
    """Return what came out: the cases where they are few, else what each metric runs through."""
    return SWEEP.answer(catalogue, (found, said, answer), lambda: sweep_tables(found, said, answer), listed(found, said), found.notes)


def listed(found: Sweep, said: Summary) -> tuple[Record, list[Any]]:
    """Return the rows of a CSV, and their record."""
    if said.shown is None:
        return record_of(Span), said.spans
    kinds = [(name, unit is None) for name, unit in found.job.columns]
    of_column = (Field(name, read=lambda row, at=at, text=text: row[at] if text else number(row[at])) for at, (name, text) in enumerate(kinds))
    return Record(*of_column), list(said.shown.itertuples(index=False, name=None))


def sweep_tables(found: Sweep, said: Summary, answer: list[Check]) -> list[Table]:
    """Return what a person reads."""
    study, progress = found.job.study, found.progress
    above = [str(study.document[word]) for word in ("question", "answer") if word in study.document]
    kept = "" if said.rows == progress.cases else f", {said.rows:,} of them within the constraints"
    below = [f"{progress.cases:,} cases{kept}, {progress.partitions:,} files in {found.folder}; pandas.read_parquet reads the folder."]
    if answer:
        below.append(f"{sum(one.holds for one in answer)} of the {len(answer)} figures of the answer are today's.")
        below += [f"  {one.figure.says!r} is {significant(one.today) or 'none'} today: {one.figure.where}" for one in answer if not one.holds]
    title = str(study.document.get("title", study.name))
    if said.shown is None and not said.spans:
        return [Table((), (), title, above, below)]
    record, many = listed(found, said)
    cells = [[cell if isinstance(cell, str) else significant(cell) or "-" for cell in record.cells(one)] for one in many]
    if said.shown is None:
        return [Table(("scenario", "metric", "cases", "lowest", "median", "highest"), cells, title, above, below, "ll")]
    names = [name if unit in (None, "") else f"{name}, {unit}" for name, unit in found.job.columns]
    align = "".join("l" if unit is None else "r" for _, unit in found.job.columns)
    return [Table(names, cells, title, above, below, align)]
