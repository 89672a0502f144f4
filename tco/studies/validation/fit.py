"""Fitting the shared parameters of practice: robust least squares on log(predicted / measured) and on what is believed before.

A parameter belongs to a family of chips, an engine or a library, never to a model, a source or a row. `data/fits/KIND.csv` states
what may move: a prior with the P5 and P95 of the belief, which weighs like measurements, inside the bounds that physics sets to
the attribute. Every fit starts from the priors, so that what a file cannot pin down stays where it was believed to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.rows import attribute, number
from tco.foundation.errors import DataError
from tco.foundation.files import read_csv
from tco.studies.validation.score import Prediction, scores
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
Predictor = Callable[[pd.DataFrame, Specifications], Prediction]
COLUMNS = ("family", "attribute", "prior", "low", "high", "follows", "note")
GROUPS = ("accelerator", "model", "op", "source_id")
SCALE = 0.05  # errors well beyond it count linearly, so that the middle is fitted and not the tails
NORMAL_P95 = 1.645
STEP = 0.01  # of a logarithm, for derivatives
FARTHEST = 100.0  # a search never goes beyond this factor from the prior, whatever physics allows
ROUNDS = 60  # at most; fits end long before, by convergence
TOLERANCE = 1e-4  # relative change of cost or of parameters by which a fit has converged


class Parameter(NamedTuple):
    """One shared parameter: its path, what is believed of it, and the bounds of physics."""

    path: str
    prior: float
    low: float  # P5 and P95 of the belief
    high: float
    minimum: float
    maximum: float
    note: str = ""

    @property
    def spread(self) -> float:
        """Standard deviation of the belief, in logarithm."""
        return max(math.log(self.high / self.low) / (2 * NORMAL_P95), 1e-3)


class Follower(NamedTuple):
    """A parameter that follows another: value = ratio x the other's."""

    path: str
    followed: str
    ratio: float
    note: str = ""


class Free(NamedTuple):
    """What a fit may move, and what moves with it."""

    parameters: tuple[Parameter, ...]
    followers: tuple[Follower, ...]


@dataclass(slots=True)
class Fit:
    """The fitted values by path, their spread in logarithm, and whether the search came to its end."""

    values: dict[str, float]
    spread: dict[str, float]
    converged: bool


def read_free(catalogue: Catalogue, kind: str) -> Free:
    """Return what a fit of a kind may move, from the last data folder that says so; a bad file raises `DataError`."""
    path = next((found for folder in reversed(catalogue.folders) if (found := folder / "fits" / f"{kind}.csv").is_file()), None)
    if path is None:
        raise DataError(f"no data folder holds fits/{kind}.csv, which says what may be fitted")
    parameters, followers = [], []
    for line, row in read_csv(path, COLUMNS):
        where = f"{path}:{line}"
        own = f"performance.{row['family']}.{row['attribute']}"
        prior = number(row["prior"], "prior", where)
        if row["follows"]:
            followers.append(Follower(own, row["follows"], prior, row["note"]))
            continue
        wanted = attribute("performance", row["attribute"], where)
        low, high = (number(row[name], name, where) for name in ("low", "high"))
        if not 0 < low <= prior <= high:
            raise DataError(f"{where}: {own}: expected 0 < low <= prior <= high, found {low:g}, {prior:g}, {high:g}")
        bounds = max(wanted.minimum, prior / FARTHEST), min(wanted.maximum, prior * FARTHEST)
        parameters.append(Parameter(own, prior, low, high, *bounds, row["note"]))
    return Free(tuple(parameters), tuple(followers))


def place(chips: Specifications, free: Free, sets: Array) -> None:
    """Set the parameters of a fit: `sets` has a row of values for each set of them, or is one set."""
    columns = sets.T if sets.ndim == 1 else [column.reshape(-1, 1) for column in sets.T]
    for parameter, value in zip(free.parameters, columns, strict=True):
        chips.values[parameter.path] = value
    for follower in free.followers:
        chips.values[follower.path] = chips.values[follower.followed] * follower.ratio
    chips.found.clear()


def weights_of(table: pd.DataFrame, rows: Array) -> Array:
    """Return the weight of each row's error: a group of n rows counts as much as the square root of n, so that big ones do not drown the others."""
    keys = [name for name in GROUPS if name in table]
    groups = table.loc[rows, keys].astype(str).agg("|".join, axis=1)
    weights = groups.map(groups.value_counts()).to_numpy(float) ** -0.25
    return np.asarray(weights / np.sqrt(np.mean(weights**2)))


class Residuals:
    """Errors of the rows and distances from the priors at some parameters, and their derivatives in one call of the engine."""

    def __init__(self, predict: Predictor, table: pd.DataFrame, chips: Specifications, free: Free, kept: Array | None = None) -> None:
        self.predict, self.table, self.chips, self.free = predict, table, chips, free
        self.priors = np.log([p.prior for p in free.parameters])
        self.spreads = np.array([p.spread for p in free.parameters])
        place(chips, free, np.exp(self.priors))
        made = predict(table, chips)
        self.rows = (made.skip == "") if kept is None else (made.skip == "") & kept
        self.target = made.target[self.rows]
        self.weights = weights_of(table, self.rows) / SCALE
        self.place, self.slopes = np.empty(0), np.empty(0)  # of the last call

    def errors(self, logs: Array) -> Array:
        """Return the weighted errors of the rows for one set of parameters, or for each row of sets."""
        place(self.chips, self.free, np.exp(logs))
        predicted = np.asarray(self.predict(self.table, self.chips).predicted)[..., self.rows]
        return np.asarray(np.log(predicted / self.target) * self.weights)

    def __call__(self, logs: Array) -> Array:
        """Return the residuals of one set of parameters; their derivatives come with the same call of the engine, and are kept."""
        made = self.errors(np.concatenate([logs[None], logs + STEP * np.eye(len(logs))]))
        self.slopes = np.concatenate([(made[1:] - made[0]).T / STEP, np.diag(1 / self.spreads)])
        self.place = logs.copy()
        return np.concatenate([made[0], (logs - self.priors) / self.spreads])

    def derivatives(self, logs: Array) -> Array:
        """Return the derivatives of the residuals."""
        if not np.array_equal(logs, self.place):
            self(logs)
        return self.slopes


def fit(predict: Predictor, table: pd.DataFrame, chips: Specifications, free: Free, kept: Array | None = None) -> Fit:
    """Fit the free parameters to the rows of a table, or to those that are kept; the values of `chips` carry the result afterwards."""
    from scipy.optimize import least_squares

    residuals = Residuals(predict, table, chips, free, kept)
    bounds = np.log([[p.minimum for p in free.parameters], [p.maximum for p in free.parameters]])
    found = least_squares(
        residuals,
        np.clip(residuals.priors, *bounds),
        jac=residuals.derivatives,
        bounds=bounds,
        loss="soft_l1",
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=TOLERANCE,
        max_nfev=ROUNDS,
    )
    place(chips, free, np.exp(found.x))
    curvature = np.linalg.pinv(found.jac.T @ found.jac)
    spread = np.sqrt(np.maximum(np.diag(curvature), 0))
    paths = [p.path for p in free.parameters]
    values = {path: float(chips.values[path]) for path in (*paths, *(f.path for f in free.followers))}
    return Fit(values, dict(zip(paths, spread.tolist(), strict=True)), bool(found.status > 0))


def scored(made: Prediction, rows: Array) -> dict[str, Any]:
    """Return the errors of some rows that are scored."""
    chosen = rows & (made.skip == "")
    return scores(made.target[chosen], made.predicted[chosen])


def members_of(table: pd.DataFrame, chips: Specifications, name: str, least: int) -> list[tuple[str, Array]]:
    """Return the groups that can be left out by accelerator, model or source: each member and its rows; small ones say nothing."""
    labels = (chips.parts if name == "accelerator" else table[name].to_numpy(object)).astype(str)  # one part goes by several names
    groups = [(member, labels == member) for member in sorted(set(labels)) if member]
    return [(member, rows) for member, rows in groups if rows.sum() >= least and not rows.all()]


def restore(chips: Specifications, values: dict[str, float]) -> None:
    """Set parameters to what a fit found."""
    chips.values.update(values)
    chips.found.clear()


def judged(predict: Predictor, table: pd.DataFrame, chips: Specifications, values: dict[str, float]) -> Prediction:
    """Return the predictions of a table with the values of a fit."""
    restore(chips, values)
    return predict(table, chips)


def paths_of(free: Free) -> Sequence[str]:
    """Return every path a fit moves."""
    return [*(p.path for p in free.parameters), *(f.path for f in free.followers)]
