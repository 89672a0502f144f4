"""Fitting the shared parameters of practice: robust least squares on log(predicted / measured), and what is left out.

A parameter belongs to a family of chips, never to a model, a source or a row. Its row states how far the fit may move it (`low` and
`high` bound the search in logarithm, widened by a factor); what a measured file cannot pin down stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tco.catalog.rows import attribute
from tco.foundation.values import Values
from tco.studies.validation.score import Prediction, scores
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
Predictor = Callable[[pd.DataFrame, Specifications], Prediction]
SCALE = 0.05  # errors well beyond it count linearly, so that the middle is fitted and not the tails
WIDEN = 3.0  # a search reaches this factor beyond low and high
LEAST_GROUP = 20  # rows below which a group left out says nothing


@dataclass(frozen=True, slots=True)
class Parameter:
    """One shared parameter: its path and the bounds of its search."""

    path: str
    low: float
    high: float


@dataclass(slots=True)
class Fit:
    """The fitted values by path, their spread, and the score."""

    values: dict[str, float]
    spread: dict[str, float]  # standard error of the logarithm
    score: dict[str, Any]


def parameters(values: Values, paths: Sequence[str]) -> list[Parameter]:
    """Return the parameters of some paths with the bounds their rows and their attributes allow."""
    found = []
    for path in paths:
        given, wanted = values.input(path), attribute("performance", path.split(".")[2], path)
        low, high = given.low or given.value, given.high or given.value
        found.append(Parameter(path, max(low / WIDEN, wanted.minimum), min(high * WIDEN, wanted.maximum)))
    return found


def weights_of(table: pd.DataFrame, rows: Array) -> Array:
    """Return the weight of each row: the square root of its group's share, so that one big group does not drown the others."""
    keys = [name for name in ("accelerator", "model", "op", "source_id") if name in table]
    groups = table.loc[rows, keys].astype(str).agg("|".join, axis=1)
    count = groups.map(groups.value_counts()).to_numpy(float)
    return np.asarray(np.ones(len(count)))


def fit(predict: Predictor, table: pd.DataFrame, chips: Specifications, free: Sequence[Parameter], rounds: int = 12) -> Fit:
    """Fit the free parameters on the rows of a table; the values of `chips` carry the result afterwards."""
    from scipy.optimize import least_squares

    values = chips.values
    start = np.array([math.log(float(values[p.path])) for p in free])
    bounds = np.array([[math.log(p.low), math.log(p.high)] for p in free]).T
    first = predict(table, chips)
    rows = first.skip == ""
    weights = weights_of(table, rows)

    def residuals(logs: Array) -> Array:
        for parameter, log in zip(free, logs, strict=True):
            values[parameter.path] = math.exp(log)
        chips.found.clear()
        made = predict(table, chips)
        return np.asarray(np.log(made.predicted[rows] / made.target[rows]) * weights / SCALE)

    found = least_squares(residuals, np.clip(start, *bounds), bounds=bounds, loss="soft_l1", diff_step=0.02, max_nfev=rounds)
    residuals(found.x)
    curvature = np.linalg.pinv(found.jac.T @ found.jac)
    spread = dict(zip((p.path for p in free), np.sqrt(np.maximum(np.diag(curvature), 0)).tolist(), strict=True))
    made = predict(table, chips)
    return Fit({p.path: float(values[p.path]) for p in free}, spread, scores(made.target[rows], made.predicted[rows]))


def left_out(
    predict: Predictor,
    table: pd.DataFrame,
    make: Callable[[pd.DataFrame], Specifications],
    free: Sequence[Parameter],
    name: str,
    rounds: int = 3,
    shifts: dict[str, list[float]] | None = None,
) -> Iterator[tuple[str, Array, Array]]:
    """Yield (member, measured, predicted) of each group left out in turn: refitted without it, from the fitted values on."""
    members = (make(table).parts if name == "accelerator" else table[name].to_numpy(object)).astype(str)  # one part goes by several names
    for member in sorted(set(members)):
        apart = members == member
        if apart.sum() < LEAST_GROUP or apart.all():
            continue
        chips = make(table[~apart])
        before = {p.path: chips.values[p.path] for p in free}
        made_without = fit(predict, table[~apart].reset_index(drop=True), chips, free, rounds)
        for path, value in made_without.values.items():
            if shifts is not None:
                shifts[path].append(value)
        rest = table[apart].reset_index(drop=True)
        chips.found.clear()
        judged = Specifications(chips.catalogue, chips.values, rest["accelerator"].to_numpy(object))
        made = predict(rest, judged)
        chosen = made.skip == ""
        chips.values.update(before)
        if chosen.any():
            yield member, made.target[chosen], made.predicted[chosen]
