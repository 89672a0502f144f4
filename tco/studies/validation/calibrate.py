"""A calibration: the fit of one kind of measurements, refits without each accelerator, model and source, and what they say.

Kernels pin the efficiencies of single operators; what they settle is held while collectives, training and serving are fitted.
Every refit starts from the priors and runs to its end; the predictions of what it never saw are the honest errors.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.rows import attribute
from tco.foundation.values import Values
from tco.studies.validation import fit as fitting
from tco.studies.validation.measured import texts, tiers
from tco.studies.validation.order import order
from tco.studies.validation.run import PREDICTORS
from tco.studies.validation.score import Prediction, scores
from tco.studies.validation.specifications import Specifications

KINDS = ("kernels", "collectives", "training", "inference")  # in the order in which one holds what the others rest on
LEFT_OUT = {"accelerator": "accelerator", "model": "model", "source": "source_id"}  # what is left out, and the column that names it
LEAST_GROUP = 20  # rows below which a group left out says nothing; of a small file a twentieth of its rows
HELD_BACK = ("B", "C")  # tiers of rows that software holds back: scored, and never fitted
COLUMNS = ("family", "attribute", "value", "unit", "low", "high", "as_of", "kind", "source", "note", "use", "residual")
Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Refit:
    """What a refit without some rows found, and its predictions of them."""

    left_out: str
    member: str
    values: dict[str, float]
    converged: bool
    rows: Array
    predicted: Array


@dataclass(slots=True)
class Calibration:
    """A fit with its refits, the rows the catalogue takes, and the errors that go with them."""

    kind: str
    fit: fitting.Fit
    refits: list[Refit]
    rows: list[dict[str, Any]]
    accuracy: dict[str, dict[str, Any]]
    chips: dict[str, dict[str, Any]]
    order: dict[str, float]


class Task:
    """What every refit of a kind shares; a process of its own inherits it whole."""

    current: Task

    def __init__(self, kind: str, table: pd.DataFrame, catalogue: Catalogue, values: Values, name: str = "") -> None:
        self.table = table[~np.isin(tiers(table), HELD_BACK)].reset_index(drop=True)
        self.predict, self.free = PREDICTORS[kind], fitting.read_free(catalogue, name or kind)
        self.chips = Specifications(catalogue, values, texts(self.table, "accelerator"))

    def whole(self) -> tuple[fitting.Fit, Prediction]:
        """Return the fit on all rows and its predictions."""
        found = fitting.fit(self.predict, self.table, self.chips, self.free)
        return found, self.predict(self.table, self.chips)

    def without(self, left_out: str, member: str, apart: Array) -> Refit:
        """Return the refit without some rows, and what it says of them."""
        found = fitting.fit(self.predict, self.table, self.chips, self.free, ~apart)
        made = self.predict(self.table, self.chips)
        rows = np.flatnonzero(apart & (made.skip == ""))
        return Refit(left_out, member, found.values, found.converged, rows, made.predicted[rows])


def least_group(count: int) -> int:
    """Return the rows below which a group that is left out says nothing, of a file of so many."""
    return min(LEAST_GROUP, max(count // LEAST_GROUP, 2))


def refit(job: tuple[str, str, Array]) -> Refit:
    """Run one refit in a process that inherited the task."""
    return Task.current.without(*job)


def refits_of(task: Task, progress: Callable[[str], None]) -> list[Refit]:
    """Return the refits without each group, on all cores."""
    jobs = [
        (name, member, rows)
        for name, column in LEFT_OUT.items()
        if column in task.table
        for member, rows in fitting.members_of(task.table, task.chips, column, least_group(len(task.table)))
    ]
    progress(f"refitting {len(jobs)} times without one accelerator, model or source")
    Task.current = task
    with multiprocessing.get_context("fork").Pool(min(os.cpu_count() or 1, max(len(jobs), 1))) as pool:
        return [found for found in pool.imap(refit, jobs) if len(found.rows)]


def calibrate(
    kind: str,
    table: pd.DataFrame,
    catalogue: Catalogue,
    values: Values,
    date: str,
    progress: Callable[[str], None] = lambda _: None,
    fit_name: str = "",
) -> Calibration:
    """Fit the shared parameters of one kind of measurements, then refit without each accelerator, model and source; `values` carry the fit."""
    task = Task(kind, table, catalogue, values, fit_name)
    table = task.table
    progress(f"fitting {len(task.free.parameters)} parameters on {len(table):,} {kind}")
    found, made = task.whole()
    refits = refits_of(task, progress)
    everything = np.ones(len(table), dtype=bool)
    accuracy = {"nothing": fitting.scored(made, everything)}
    for name in LEFT_OUT:
        parts = [one for one in refits if one.left_out == name]
        if parts:
            accuracy[name] = scores(np.concatenate([made.target[one.rows] for one in parts]), np.concatenate([one.predicted for one in parts]))
    fitting.restore(task.chips, found.values)
    rows = list(rows_of(values, task.free, found, refits, int(accuracy["nothing"]["n"] or 0), rounded(accuracy["nothing"]["median_ape"]), date))
    blind = unseen(made, refits)
    return Calibration(
        fit_name or kind, found, refits, rows, accuracy, chips_of(task.chips, made, blind), order(table, blind) if kind == "inference" else {}
    )


def unseen(made: Prediction, refits: Sequence[Refit]) -> Prediction:
    """Return the predictions of each accelerator's rows by the refit without them; rows of accelerators that were never left out are not scored."""
    predicted, skip = np.full(len(made.target), np.nan), made.skip.copy()
    for one in refits:
        if one.left_out == "accelerator":
            predicted[one.rows] = one.predicted
    skip[(skip == "") & np.isnan(predicted)] = "unstated left-out prediction"
    return replace(made, predicted=predicted, skip=skip)


def chips_of(chips: Specifications, made: Prediction, blind: Prediction) -> dict[str, dict[str, Any]]:
    """Return the errors on each chip's rows, and those of the refit that never saw them."""
    found = {}
    for part in sorted(set(chips.parts[made.skip == ""])):
        rows = chips.parts == part
        apart = fitting.scored(blind, rows)
        found[part] = fitting.scored(made, rows) | {"left_out": apart["median_ape"]}
    return found


def rows_of(
    values: Values, free: fitting.Free, found: fitting.Fit, refits: Sequence[Refit], count: int, residual: float, date: str
) -> Iterator[dict[str, Any]]:
    """Yield the catalogue rows of a fit: ranges cover its own spread and whatever leaving groups out moved."""
    followed = {f.path: f.followed for f in free.followers}
    for path in fitting.paths_of(free):
        _, family, name = path.split(".")
        value, base = float(values[path]), followed.get(path, path)
        while base in followed:
            base = followed[base]
        moved = max((abs(math.log(one.values[path] / value)) for one in refits), default=0.0)
        half = max(fitting.NORMAL_P95 * min(found.spread.get(base, 0.0), 1.0), moved, 0.02)
        wanted = attribute("performance", name, path)
        low, high = max(value * math.exp(-half), wanted.minimum), min(value * math.exp(half), wanted.maximum)
        note = f"fitted on {count:,} rows" if path in found.spread else f"follows {followed[path].removeprefix('performance.')}"
        cells = (family, name, rounded(value), wanted.unit, rounded(low), rounded(high), date, "derived", "tco-calibration", note, "", residual)
        yield dict(zip(COLUMNS, cells, strict=True))


def rounded(value: float) -> float:
    """Return a number at the four digits a fit can claim."""
    return float(f"{value:.4g}")
