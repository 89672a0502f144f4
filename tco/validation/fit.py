"""Fit the shared software parameters: robust least squares on log errors and on the priors.

What a fit may move is in `data/fits/KIND.csv`. A parameter belongs to a family of chips, an engine
or a library, never to a model, a source or a row. Each has a prior with the P5 and P95 of the
belief, which weighs like measurements, inside the bounds that physics sets to the attribute. Every
fit starts from the priors, so that what a file cannot pin down stays where it was believed to be.
Fits on different rows of one file run side by side: an engine asked for many sets of parameters at
once spends its time on numbers instead of on calls, so that thirty searches together take a few
times as long as one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.rows import attribute, parse_finite_number
from tco.core.errors import DataError
from tco.core.files import read_csv
from tco.core.inputs import Values
from tco.core.types import AnyArray, JsonObject
from tco.validation.measured import tiers
from tco.validation.measured_rows import MeasuredRows
from tco.validation.run import PREDICTORS
from tco.validation.score import Prediction, scores

# sets of parameters, a row each -> what the engine says, a row each
Ask = Callable[[AnyArray], AnyArray]
Found = TypeVar("Found")


def batch_searches(ask: Ask, searches: Sequence[Callable[[Ask], Found]]) -> list[Found]:
    """Run searches side by side that share each evaluation, and return their results.

    Each search is given a function to evaluate with.

    All meet again and again, those that have ended too: whoever comes last asks for what the others
    have come with, all in one question. What goes wrong with it goes wrong for all of them. Once
    nobody has come with a question, all have ended.
    """
    pending_sets: dict[int, AnyArray] = {}  # by the number of the search
    answers: dict[int, AnyArray | BaseException] = {}
    over = threading.Event()

    def settle() -> None:
        numbers = sorted(pending_sets)
        if not numbers:
            over.set()
            return
        sets = [pending_sets.pop(number) for number in numbers]
        try:
            split_answers: Sequence[AnyArray | BaseException] = np.split(
                ask(np.concatenate(sets)),
                np.cumsum([len(parameter_sets) for parameter_sets in sets])[:-1],
            )
        except BaseException as error:
            split_answers = [error] * len(numbers)
        answers.update(zip(numbers, split_answers, strict=True))

    meeting = threading.Barrier(max(len(searches), 1), action=settle)

    def put(number: int, sets: AnyArray) -> AnyArray:
        pending_sets[number] = sets
        meeting.wait()
        answer = answers.pop(number)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def run(number: int) -> Found:
        try:
            return searches[number](lambda sets: put(number, sets))
        finally:
            while not over.is_set():
                meeting.wait()

    with ThreadPoolExecutor(max(len(searches), 1)) as pool:
        return list(pool.map(run, range(len(searches))))


COLUMNS = ("family", "attribute", "prior", "low", "high", "follows", "note")
NORMAL_P95 = 1.645
FARTHEST = 100.0  # a search never goes beyond this factor from the prior, whatever physics allows


class Parameter(NamedTuple):
    """One shared parameter: its path, what is believed of it, and the bounds of physics."""

    path: str
    prior: float
    low: float  # P5 and P95 of the belief
    high: float
    minimum: float
    maximum: float

    @property
    def spread(self) -> float:
        """Standard deviation of the belief, in logarithm."""
        return max(math.log(self.high / self.low) / (2 * NORMAL_P95), 1e-3)


class Follower(NamedTuple):
    """A parameter that follows another: value = ratio x the other's."""

    path: str
    followed: str
    ratio: float


class Free(NamedTuple):
    """Free parameters of a fit, and their followers."""

    parameters: tuple[Parameter, ...]
    followers: tuple[Follower, ...]


def read_free(catalogue: Catalogue, kind: str) -> Free:
    """Return the free parameters of a fit from `fits/<kind>.csv`.

    The last data folder that has the file counts. A missing or faulty file raises `DataError`.
    """
    paths = catalogue.folder_files(f"fits/{kind}.csv")
    if not paths:
        raise DataError(f"no data folder holds fits/{kind}.csv, which says what may be fitted")
    path = paths[-1]
    parameters, followers = [], []
    for line, parameter_row in read_csv(path, COLUMNS):
        where = f"{path}:{line}"
        parameter_path = f"performance.{parameter_row['family']}.{parameter_row['attribute']}"
        prior = parse_finite_number(parameter_row["prior"], "prior", where)
        if parameter_row["follows"]:
            followers.append(Follower(parameter_path, parameter_row["follows"], prior))
            continue
        attribute_bounds = attribute("performance", parameter_row["attribute"], where)
        low, high = (
            parse_finite_number(parameter_row[bound_name], bound_name, where)
            for bound_name in ("low", "high")
        )
        if not 0 < low <= prior <= high:
            raise DataError(
                f"{where}: {parameter_path}: expected 0 < low <= prior <= high, found {low:g}, "
                f"{prior:g}, {high:g}"
            )
        bounds = (
            max(attribute_bounds.minimum, prior / FARTHEST),
            min(attribute_bounds.maximum, prior * FARTHEST),
        )
        parameters.append(Parameter(parameter_path, prior, low, high, *bounds))
    return Free(tuple(parameters), tuple(followers))


def fitted_paths(free: Free) -> list[str]:
    """Return every path a fit moves."""
    return [*(p.path for p in free.parameters), *(f.path for f in free.followers)]


# what is left out, and the column that names it
LEFT_OUT = {
    "accelerator": "accelerator",
    "model": "model",
    "source": "source_id",
}
# Fewer rows than these say nothing when they are left out; of a small file a twentieth of its rows
LEAST_GROUP = 20
HELD_BACK = ("B", "C")  # tiers of rows that software holds back: scored, and never fitted
GROUPS = ("accelerator", "model", "op", "source_id")
# Errors well beyond this count by their logarithm (Cauchy): runs of the first weeks of an engine
# say little of the others.
SCALE = 0.1
STEP = 0.01  # of a logarithm, for derivatives
ROUNDS = 60  # at most; fits end long before, by convergence
TOLERANCE = 1e-4  # relative change of cost or of parameters by which a fit has converged


@dataclass(slots=True)
class Fit:
    """Fitted values by path, their log spread, convergence, and the predictions of all rows."""

    values: dict[str, float]
    spread: dict[str, float]
    converged: bool
    predicted: AnyArray


class Task:
    """The fitted rows of a kind of measurements, the free parameters, and the predictions."""

    def __init__(
        self,
        kind: str,
        table: pd.DataFrame,
        catalogue: Catalogue,
        input_values: Values,
        fit_name: str = "",
    ) -> None:
        self.predict = PREDICTORS[kind]
        self.table = table[~np.isin(tiers(table), HELD_BACK)].reset_index(drop=True)
        self.measurements = MeasuredRows(self.table, catalogue, input_values)
        self.free = read_free(catalogue, fit_name or kind)
        self.priors = np.log([p.prior for p in self.free.parameters])
        self.set_parameters(np.exp(self.priors))
        prediction = self.predict(self.measurements)
        self.scored, self.target = np.asarray(prediction.skip == ""), prediction.target
        group_columns = [group_column for group_column in GROUPS if group_column in self.table]
        self.alike = self.table.groupby(group_columns, dropna=False).ngroup().to_numpy()

    def set_parameters(self, sets: AnyArray) -> None:
        """Set the parameters of a fit, from a row of values per set, or from a single set."""
        columns = sets.T if sets.ndim == 1 else [column.reshape(-1, 1) for column in sets.T]
        input_values = self.measurements.values
        for parameter, parameter_value in zip(self.free.parameters, columns, strict=True):
            input_values[parameter.path] = parameter_value
        for follower in self.free.followers:
            input_values[follower.path] = input_values[follower.followed] * follower.ratio
        self.measurements.gathered.clear()

    def predicted(self, logs: AnyArray) -> AnyArray:
        """Return the predictions of all rows for each row of logarithms of parameters."""
        self.set_parameters(np.exp(logs if len(logs) > 1 else logs[0]))
        return np.broadcast_to(
            self.predict(self.measurements).predicted, (len(logs), len(self.table))
        )

    def weights(self, row_indices: AnyArray) -> AnyArray:
        """Return the weight of each row's error.

        A group of n rows counts as much as the square root of n, so that big groups do not drown
        others.
        """
        groups = self.alike[row_indices]
        weights = np.bincount(groups)[groups] ** -0.25
        return np.asarray(weights / np.sqrt(np.mean(weights**2)))

    def groups(self) -> list[tuple[str, str, AnyArray]]:
        """Return every group to leave out: its kind, its member and its rows.

        Groups that are too small are skipped.
        """
        count, left_out_groups = len(self.table), []
        least = min(LEAST_GROUP, max(count // LEAST_GROUP, 2))
        for group_kind, column in LEFT_OUT.items():
            if column in self.table:
                # a part has several names
                labels = (
                    self.measurements.parts
                    if group_kind == "accelerator"
                    else self.table[column].to_numpy(object)
                ).astype(str)
                members = [
                    (group_kind, member, labels == member)
                    for member in sorted(set(labels))
                    if member
                ]
                left_out_groups += [group for group in members if least <= group[2].sum() < count]
        return left_out_groups

    def without(self, row_choices: Sequence[AnyArray]) -> list[Fit]:
        """Return one fit without the rows of each choice, with its predictions of all rows."""
        searches = [partial(_minimise_fit_errors, self, ~left_out) for left_out in row_choices]
        optima = batch_searches(self.predicted, searches)
        predictions = self.predicted(np.array([optimum.x for optimum in optima]))
        return [
            _fit_of(self, optimum, prediction)
            for optimum, prediction in zip(optima, predictions, strict=True)
        ]


def _minimise_fit_errors(task: Task, fitted_mask: AnyArray, ask: Ask) -> Any:
    """Return the least-squares optimum of row errors and prior distances.

    The search starts from the priors and uses the scored rows in `fitted_mask`. One call of the
    engine gives the residuals and their derivatives.
    """
    from scipy.optimize import least_squares

    parameters, row_indices = task.free.parameters, np.flatnonzero(task.scored & fitted_mask)
    spreads, weights = np.array([p.spread for p in parameters]), task.weights(row_indices) / SCALE

    @lru_cache(maxsize=1)
    def residuals_and_slopes(log_bytes: bytes) -> tuple[AnyArray, AnyArray]:
        logs = np.frombuffer(log_bytes)
        predicted = ask(np.concatenate([logs[None], logs + STEP * np.eye(len(logs))]))[
            :, row_indices
        ]
        errors = np.log(predicted / task.target[row_indices]) * weights
        slopes = np.concatenate([(errors[1:] - errors[0]).T / STEP, np.diag(1 / spreads)])
        return np.concatenate([errors[0], (logs - task.priors) / spreads]), slopes

    bounds = np.log([[p.minimum for p in parameters], [p.maximum for p in parameters]])
    return least_squares(
        lambda logs: residuals_and_slopes(logs.tobytes())[0],
        np.clip(task.priors, *bounds),
        jac=lambda logs: residuals_and_slopes(logs.tobytes())[1],
        bounds=bounds,
        loss="cauchy",
        max_nfev=ROUNDS,
        **dict.fromkeys(("ftol", "xtol", "gtol"), TOLERANCE),
    )


def _fit_of(task: Task, optimum: Any, predicted: AnyArray) -> Fit:
    """Return a fit from what its search found; the values of the chips carry it afterwards."""
    task.set_parameters(np.exp(optimum.x))
    paths, input_values = [p.path for p in task.free.parameters], task.measurements.values
    spread = np.sqrt(np.maximum(np.diag(np.linalg.pinv(optimum.jac.T @ optimum.jac)), 0))
    fitted_values = {path: float(input_values[path]) for path in fitted_paths(task.free)}
    return Fit(
        fitted_values,
        dict(zip(paths, spread.tolist(), strict=True)),
        bool(optimum.status > 0),
        predicted,
    )


def scored(prediction: Prediction, row_mask: AnyArray) -> JsonObject:
    """Return the errors of some rows that are scored."""
    chosen = row_mask & (prediction.skip == "")
    return scores(prediction.target[chosen], prediction.predicted[chosen])
