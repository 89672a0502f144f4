"""A sweep: the tables, rows and document of `tco sweep`."""

from __future__ import annotations

from typing import Any

from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.sweep.answer import Check
from tco.studies.sweep.run import Span, Summary, Sweep

SPAN = Span._fields


def sweep_document(found: Sweep, said: Summary, answer: list[Check]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    job = found.job
    return {
        "study": job.study.name,
        "folder": found.folder,
        "inputs": job.inputs_hash,
        "cases": found.progress.cases,
        "rows": said.rows,
        "partitions": found.progress.partitions,
        "columns": [{"name": name, "unit": unit} for name, unit in job.columns],
        "spans": [one._asdict() for one in said.spans],
        "answer": [{**one.figure._asdict(), "today": one.today, "holds": one.holds} for one in answer],
    }


def header(found: Sweep, said: Summary) -> list[str]:
    """Return the columns of the CSV rows."""
    return list(SPAN) if said.shown is None else [name for name, _ in found.job.columns]


def rows(found: Sweep, said: Summary) -> list[list[Any]]:
    """Return the CSV rows: the cases where they are few, else what each metric runs through."""
    if said.shown is None:
        return [list(one) for one in said.spans]
    texts = {name for name, unit in found.job.columns if unit is None}
    return [
        [cell if name in texts else number(cell) for name, cell in zip(said.shown.columns, row, strict=True)]
        for row in said.shown.itertuples(index=False, name=None)
    ]


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
    cells = [[cell if isinstance(cell, str) else significant(cell) or "-" for cell in row] for row in rows(found, said)]
    if said.shown is None:
        return [Table(("scenario", "metric", "cases", "lowest", "median", "highest"), cells, title, above, below, "ll")]
    names = [name if unit in (None, "") else f"{name}, {unit}" for name, unit in found.job.columns]
    align = "".join("l" if unit is None else "r" for _, unit in found.job.columns)
    return [Table(names, cells, title, above, below, align)]
