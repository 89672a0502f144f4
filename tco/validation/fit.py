"""Fit shared software parameters to measurements: robust least squares on logarithmic errors.

The prior of a parameter weighs like a measurement: its distance from the prior, in standard
deviations of the belief, is a residual beside the errors of the rows. Every fit starts from the
priors, so that a parameter that no row determines keeps its prior. Fits that leave out different
rows of one file run together, as `batch_searches` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.inputs import Values
from tco.core.types import AnyArray, JsonObject
from tco.validation.batched_searches import Evaluate, batch_searches
from tco.validation.free_parameters import read_free_parameters
from tco.validation.measured import tiers
from tco.validation.measured_rows import MeasuredRows
from tco.validation.run import PREDICTORS
from tco.validation.score import Prediction, scores

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# kind of a group of rows that a refit leaves out -> column that names the group
LEAVE_OUT_COLUMNS = {
    "accelerator": "accelerator",
    "model": "model",
    "source": "source_id",
}
# A refit leaves out groups of at least this many rows, or of this share of a small file's rows.
LEAST_GROUP_ROWS = 20
LEAST_GROUP_SHARE = 1 / 20
UNFITTED_TIERS = ("B", "C")  # rows that software holds back are scored and never fitted
WEIGHT_COLUMNS = ("accelerator", "model", "op", "source_id")  # equal cells make one group of rows
# Logarithmic error beyond which a row counts by the logarithm of its error (Cauchy loss): runs of
# the first weeks of an engine say little about later runs.
CAUCHY_SCALE = 0.1
DERIVATIVE_STEP = 0.01  # of the logarithm of a parameter
MAX_EVALUATIONS = 60  # of a search; searches converge long before
TOLERANCE = 1e-4  # relative change of cost or of parameters at which a search has converged


class LeftOutGroup(NamedTuple):
    """Group of rows that a refit leaves out."""

    kind: str  # a key of `LEAVE_OUT_COLUMNS`
    member: str  # such as the accelerator
    row_mask: AnyArray  # true for the rows of the group


@dataclass(slots=True)
class Fit:
    """Fitted parameters, and the predictions that follow from them."""

    values: dict[str, float]  # by path, those of followers too
    spread: dict[str, float]  # standard deviation in logarithm, by path of a free parameter
    converged: bool
    predicted: AnyArray  # of all rows, those left out too


class FitProblem:
    """Rows to fit, their free parameters, and the engine that predicts the rows.

    Args:
        kind: Kind of the measurements, a key of `PREDICTORS`.
        table: Measurements, a row each; rows of `UNFITTED_TIERS` are dropped.
        catalogue: Holds chips and the lists of free parameters.
        input_values: Inputs by path. Each evaluation writes the free parameters into them.
        fit_name: Name of the list of free parameters; empty for the list of `kind`.

    """

    def __init__(
        self,
        kind: str,
        table: pd.DataFrame,
        catalogue: Catalogue,
        input_values: Values,
        fit_name: str = "",
    ) -> None:
        self.predict = PREDICTORS[kind]
        self.table = table[~np.isin(tiers(table), UNFITTED_TIERS)].reset_index(drop=True)
        self.measurements = MeasuredRows(self.table, catalogue, input_values)
        self.free = read_free_parameters(catalogue, fit_name or kind)
        self.log_priors = np.log([parameter.prior for parameter in self.free.parameters])
        self.set_parameters(np.exp(self.log_priors))
        prediction = self.predict(self.measurements)
        self.is_scored, self.target = np.asarray(prediction.skip == ""), prediction.target
        group_columns = [column for column in WEIGHT_COLUMNS if column in self.table]
        self.row_groups = self.table.groupby(group_columns, dropna=False).ngroup().to_numpy()

    def set_parameters(self, parameter_sets: AnyArray) -> None:
        """Write parameters and followers into the inputs of the rows.

        Args:
            parameter_sets: Values of the free parameters, shape (parameters,) for one set or
                (sets, parameters) for several, which the engine evaluates at once.

        """
        if parameter_sets.ndim == 1:
            columns = list(parameter_sets)
        else:
            columns = [column.reshape(-1, 1) for column in parameter_sets.T]
        input_values = self.measurements.values
        for parameter, parameter_value in zip(self.free.parameters, columns, strict=True):
            input_values[parameter.path] = parameter_value
        for follower in self.free.followers:
            input_values[follower.path] = input_values[follower.followed] * follower.ratio
        self.measurements.gathered.clear()

    def predictions_at(self, log_sets: AnyArray) -> AnyArray:
        """Return the predictions of all rows, shape (sets, rows).

        Args:
            log_sets: Logarithms of the free parameters, shape (sets, parameters).

        """
        self.set_parameters(np.exp(log_sets if len(log_sets) > 1 else log_sets[0]))
        prediction = self.predict(self.measurements)
        return np.broadcast_to(prediction.predicted, (len(log_sets), len(self.table)))

    def residual_weights(self, row_indices: AnyArray) -> AnyArray:
        """Return the factor on the residual of each row, with a mean square of 1.

        A group of n rows shall count as much as sqrt(n) rows, so that big groups do not drown
        small groups. The fit sums squared residuals: a factor n^(-1/4) on a residual is
        n^(-1/2) on its square, and n such squares sum to n^(1/2).
        """
        groups = self.row_groups[row_indices]
        group_sizes = np.bincount(groups)[groups]
        weights = group_sizes**-0.25
        return np.asarray(weights / np.sqrt(np.mean(weights**2)))

    def groups_to_leave_out(self) -> list[LeftOutGroup]:
        """Return the groups of rows that are large enough to be left out by a refit."""
        row_count = len(self.table)
        least_rows = min(LEAST_GROUP_ROWS, max(int(row_count * LEAST_GROUP_SHARE), 2))
        groups = []
        for kind, column in LEAVE_OUT_COLUMNS.items():
            if column not in self.table:
                continue
            if kind == "accelerator":
                labels = self.measurements.parts.astype(str)  # a chip has several names in a file
            else:
                labels = self.table[column].to_numpy(object).astype(str)
            for member in sorted(set(labels) - {""}):
                group = LeftOutGroup(kind, member, labels == member)
                if least_rows <= group.row_mask.sum() < row_count:
                    groups.append(group)
        return groups

    def fit_without_each(self, left_out_masks: Sequence[AnyArray]) -> list[Fit]:
        """Return a fit for each mask, without the rows for which the mask is true.

        The inputs of the rows hold the parameters of the last fit afterwards.
        """
        searches = [partial(_search_optimum, self, ~row_mask) for row_mask in left_out_masks]
        optima = batch_searches(self.predictions_at, searches)
        predictions = self.predictions_at(np.array([optimum.x for optimum in optima]))
        return [
            _set_optimum(self, optimum, predicted)
            for optimum, predicted in zip(optima, predictions, strict=True)
        ]


def _search_optimum(
    problem: FitProblem, fitted_mask: AnyArray, evaluate: Evaluate
) -> OptimizeResult:
    """Return the least-squares optimum of row errors and prior distances.

    The search starts from the priors and uses the scored rows in `fitted_mask`.
    """
    from scipy.optimize import least_squares

    parameters = problem.free.parameters
    row_indices = np.flatnonzero(problem.is_scored & fitted_mask)
    spreads = np.array([parameter.spread for parameter in parameters])
    weights = problem.residual_weights(row_indices) / CAUCHY_SCALE

    # `least_squares` asks for the residuals and then for the slopes at the same point, and one call
    # of the engine gives both: the last point is remembered, as bytes since arrays have no hash.
    @lru_cache(maxsize=1)
    def residuals_and_slopes(point_bytes: bytes) -> tuple[AnyArray, AnyArray]:
        point = np.frombuffer(point_bytes)  # logarithms of the parameters
        shifted_points = point + DERIVATIVE_STEP * np.eye(len(point))
        predicted = evaluate(np.concatenate([point[None], shifted_points]))[:, row_indices]
        errors = np.log(predicted / problem.target[row_indices]) * weights
        error_slopes = (errors[1:] - errors[0]).T / DERIVATIVE_STEP
        residuals = np.concatenate([errors[0], (point - problem.log_priors) / spreads])
        return residuals, np.concatenate([error_slopes, np.diag(1 / spreads)])

    bounds = np.log(
        [
            [parameter.minimum for parameter in parameters],
            [parameter.maximum for parameter in parameters],
        ]
    )
    return least_squares(
        lambda point: residuals_and_slopes(point.tobytes())[0],
        np.clip(problem.log_priors, *bounds),
        jac=lambda point: residuals_and_slopes(point.tobytes())[1],
        bounds=bounds,
        loss="cauchy",
        max_nfev=MAX_EVALUATIONS,
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=TOLERANCE,
    )


def _set_optimum(problem: FitProblem, optimum: OptimizeResult, predicted: AnyArray) -> Fit:
    """Write the parameters of an optimum into the inputs of the rows, and return the fit."""
    problem.set_parameters(np.exp(optimum.x))
    input_values = problem.measurements.values
    covariance = np.linalg.pinv(optimum.jac.T @ optimum.jac)
    spreads = np.sqrt(np.maximum(np.diag(covariance), 0))  # rounding may give negative variances
    parameter_paths = [parameter.path for parameter in problem.free.parameters]
    return Fit(
        values={path: float(input_values[path]) for path in problem.free.paths},
        spread=dict(zip(parameter_paths, spreads.tolist(), strict=True)),
        converged=bool(optimum.status > 0),
        predicted=predicted,
    )


def scores_of_rows(prediction: Prediction, row_mask: AnyArray) -> JsonObject:
    """Return the errors of the scored rows in a mask."""
    scored_rows = row_mask & (prediction.skip == "")
    return scores(prediction.target[scored_rows], prediction.predicted[scored_rows])
