"""One partition: its cases evaluated, those that the constraints allow as a table whose columns say their units."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tco.foundation.arithmetic import arithmetic
from tco.foundation.errors import library
from tco.studies.ranges import Array
from tco.studies.sweep.cases import CaseDraws, Found, StudyScenario, cases_of, dice_of
from tco.studies.sweep.job import Job, Slice, asked_of
from tco.studies.uncertainty import sample_of

if TYPE_CHECKING:
    import pyarrow

PIECE = 2**16  # cases evaluated at once: arrays that stay in the cache


def table_of(job: Job, number: int) -> tuple[pyarrow.Table, int]:
    """Return the table of a partition, and how many cases it was made of."""
    pa = library("pyarrow", "Parquet", "sweep")

    schema, tables, cases = schema_of(job, number), [], 0
    for piece in job.layout.slices(number):
        for some in pieces(piece, job.layout.draws):
            cases += some.stop - some.start
            count, columns = rows_of(job, some)
            tables.append(pa.Table.from_arrays([column(columns.get(field.name), count, field) for field in schema], schema=schema))
    return pa.concat_tables(tables), cases


def pieces(one: Slice, draws: int) -> Iterator[Slice]:
    """Yield a slice in pieces that fit the cache, none of which goes round the draws more than once unless they fit one."""
    start = one.start
    while start < one.stop:
        stop = min(start + PIECE, one.stop)
        if draws > PIECE:
            stop = min(stop, (start // draws + 1) * draws)
        yield one._replace(start=start, stop=stop)
        start = stop


def rows_of(job: Job, some: Slice) -> tuple[int, dict[str, Any]]:
    """Evaluate some cases of one setting, and return how many the constraints allow, with their columns; a text is one for all."""
    cases = np.arange(some.start, some.stop)
    places, draws = job.layout.coordinates(cases)
    fixed = tuple((axis.path, axis.setting(place)) for axis, place in zip(job.outer, some.places, strict=True))
    axes = {axis.path: axis.at(place) for axis, place in zip(job.inner, places, strict=True)}
    source = job.sources[some.scenario]
    own = evaluated(job, asked_of(source, job.study.plan), fixed, axes, draws)
    other = None
    if job.baseline is not None:
        same = job.baseline.name == source.name
        other = own if same else evaluated(job, asked_of(job.baseline, job.study.plan), fixed, axes, draws)
    sample = sample_of(own.draws, None if other is None else other.draws)
    metrics = sample.metrics
    columns: dict[str, Any] = {
        "scenario": source.name,
        **{path: value if isinstance(value, str) else value[0] for path, value in fixed},
        **axes,
        **own.inputs,
    }
    columns |= {name: metrics[name] for name in job.study.report if name in metrics}
    kept = allowed(job, metrics, len(cases))
    if not kept.all():
        columns = {name: many[kept] if isinstance(many, np.ndarray) else many for name, many in columns.items()}
    return int(kept.sum()), columns


dice_kept = lru_cache(maxsize=2)(dice_of)  # pieces of a small number of draws share them, and so do a scenario and its baseline


def evaluated(job: Job, asked: StudyScenario, fixed: tuple[tuple[str, Any], ...], axes: dict[str, Array], draws: Array) -> Found:
    """Evaluate a scenario in some cases."""
    drawing = None
    if (draw := job.study.draw) is not None:
        start, stop = int(draws.min()), int(draws.max()) + 1
        if draw.samples <= PIECE:
            start, stop = 0, draw.samples
        dice = dice_kept(asked.catalogue, draw, job.thrown, start, stop)
        drawing = CaseDraws(frozenset(path for path, _ in job.drawn), dice, draws - start)
    units = {axis.path: str(axis.unit) for axis in job.inner}
    centre = {axis.path: axis.setting(0) for axis in job.inner} if job.study.plan == "best" else {}
    many = {path: (numbers, units[path]) for path, numbers in axes.items()}
    return cases_of(asked, (*job.study.settings.items(), *fixed), centre, many, drawing, len(draws))


def allowed(job: Job, metrics: dict[str, Array], count: int) -> Array:
    """Say which cases keep to the constraints; one without the metric does not."""
    kept = np.ones(count, dtype=bool)
    for metric, (low, high) in job.study.constraints.items():
        many = metrics.get(metric)
        kept &= False if many is None else (many >= low) & (many <= high)
    return kept


def schema_of(job: Job, number: int) -> pyarrow.Schema:
    """Return the columns of a partition with their units, and what it is made of."""
    pa = library("pyarrow", "Parquet", "sweep")

    fields = [
        pa.field(name, pa.string()) if unit is None else pa.field(name, pa.float64(), metadata={"unit": unit or "1"}) for name, unit in job.columns
    ]
    program, data, _ = job.ground
    said = {"tco.version": program, "tco.inputs": job.inputs_hash, "tco.data": " ".join(dict.fromkeys(data)), "tco.partition": str(number)}
    said["tco.arithmetic"] = arithmetic()
    return pa.schema(fields, metadata=said)


def column(found: Any, count: int, field: pyarrow.Field) -> pyarrow.Array:
    """Return a column of a partition; what has no value is null. It is put together from bytes: made of numbers it would read in pandas."""
    pa = library("pyarrow", "Parquet", "sweep")

    if found is None:
        return pa.nulls(count, field.type)
    if isinstance(found, str):
        text = found.encode()
        ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(text))
        return pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(ends), pa.py_buffer(text * count)])
    many = np.ascontiguousarray(np.broadcast_to(found, count), dtype=float)
    there = np.isfinite(many)
    mask = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(field.type, count, [mask, pa.py_buffer(many)])
