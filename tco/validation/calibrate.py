"""A calibration: the fit of a kind of measurements, and refits without each group of rows.

Groups are accelerators, models and sources.

Kernels pin the efficiencies of single operators; what they settle is held while collectives,
serving and training are fitted. Every refit starts from the priors and runs to its end; the
predictions of what it never saw are the honest errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.rows import attribute
from tco.core.inputs import Values
from tco.core.provenance import LEADER
from tco.core.types import AnyArray, JsonObject
from tco.validation.back_test import pair_order_accuracy
from tco.validation.fit import (
    LEAVE_OUT_COLUMNS,
    UNFITTED_TIERS,
    Fit,
    FitProblem,
    LeftOutGroup,
    scores_of_rows,
)
from tco.validation.fitted_rows import FittedRow, fitted_row, round_fitted_number
from tco.validation.free_parameters import NORMAL_P95, FreeParameters
from tco.validation.measured import tiers
from tco.validation.measured_rows import MeasuredRows
from tco.validation.score import Prediction, scores
from tco.validation.unexplained import PARAMETERS, residuals, unexplained_rows

# in the order in which one holds what the others rest on
KINDS = (
    "kernels",
    "collectives",
    "inference",
    "training",
)
LEAST_SPREAD = 0.02  # of a fitted value, in logarithm, either way


@dataclass(slots=True)
class Refit:
    """Refit without the rows of a group: fitted values and predictions.

    `predicted` are the predictions of the rows left out.
    """

    left_out: str
    member: str
    values: dict[str, float]
    rows: AnyArray
    predicted: AnyArray


@dataclass(slots=True)
class Calibration:
    """A fit with its refits, the rows the catalogue takes, and the errors that go with them."""

    kind: str
    refits: list[Refit]
    rows: list[FittedRow]
    accuracy: dict[str, JsonObject]
    chips: dict[str, JsonObject]
    order: dict[str, float]


def fit_shared_parameters(
    kind: str,
    table: pd.DataFrame,
    catalogue: Catalogue,
    input_values: Values,
    date: str,
    progress: Callable[[str], None] = lambda _: None,
    fit_name: str = "",
) -> Calibration:
    """Fit the shared parameters of one kind of measurements.

    Further fits leave out each accelerator, model and source in turn.

    Args:
        kind: Kind of the measurements, from `KINDS`.
        table: Measurements, a row for each.
        catalogue: Holds chips and the list of free parameters.
        input_values: Inputs by path; they carry the fitted values afterwards.
        date: Date of the fitted catalogue rows.
        progress: Receives a line of text before the fit.
        fit_name: Name of the list of free parameters; empty for the list of `kind`.

    Returns:
        The fit, the refits, rows for the catalogue, and errors.

    """
    full_table, problem = table, FitProblem(kind, table, catalogue, input_values, fit_name)
    table, groups, free = problem.table, problem.groups_to_leave_out(), problem.free
    progress(
        f"fitting {len(free.parameters)} parameters on {len(table):,} {kind}, and {len(groups)} "
        "times without one accelerator, model or source"
    )
    everything = np.ones(len(table), dtype=bool)
    row_masks = [~everything, *(group.row_mask for group in groups)]
    full_fit, *left_out_fits = _fits_without(problem, row_masks)
    problem.measurements.say(full_fit.values)
    prediction = problem.predict(problem.measurements)
    refits = [
        _refit(group, left_out_fit, prediction)
        for group, left_out_fit in zip(groups, left_out_fits, strict=True)
    ]
    refits = [refit for refit in refits if len(refit.rows)]
    accuracy = _score_refits(prediction, everything, refits)
    catalogue_rows = list(
        _fitted_catalogue_rows(input_values, free, full_fit, refits, accuracy["nothing"], date)
    )
    # of a fit of some chips alone there are too few rows to say how far single ones lie off
    if kind in PARAMETERS and not fit_name:
        catalogue_rows += unexplained_rows(
            kind, residuals(kind, problem.measurements, prediction), catalogue, date
        )
    blind = left_out_predictions(prediction, refits)
    chips = _held_back(problem, full_table, catalogue) | _errors_by_chip(
        problem.measurements, prediction, blind
    )
    order = pair_order_accuracy(problem.measurements, blind) if kind == "inference" else {}
    return Calibration(fit_name or kind, refits, catalogue_rows, accuracy, chips, order)


def _fits_without(problem: FitProblem, row_masks: Sequence[AnyArray]) -> list[Fit]:
    """Return a fit without each set of rows; equal sets are fitted once."""
    # one source often is all there is of a chip
    left_out_masks = {row_mask.tobytes(): row_mask for row_mask in row_masks}
    fits = dict(
        zip(left_out_masks, problem.fit_without_each(list(left_out_masks.values())), strict=True)
    )
    return [fits[row_mask.tobytes()] for row_mask in row_masks]


def _held_back(
    problem: FitProblem, table: pd.DataFrame, catalogue: Catalogue
) -> dict[str, JsonObject]:
    """Return each chip's errors on rows held back by its software, which no fit sees.

    Some chips have no other rows.
    """
    rest = table[np.isin(tiers(table), UNFITTED_TIERS)].reset_index(drop=True)
    if rest.empty:
        return {}
    measurements = MeasuredRows(rest, catalogue, problem.measurements.values)
    prediction = problem.predict(measurements)
    return _errors_by_chip(measurements, prediction, left_out_predictions(prediction, ()))


def _refit(group: LeftOutGroup, left_out_fit: Fit, prediction: Prediction) -> Refit:
    row_indices = np.flatnonzero(group.row_mask & (prediction.skip == ""))
    return Refit(
        left_out=group.kind,
        member=group.member,
        values=left_out_fit.values,
        rows=row_indices,
        predicted=left_out_fit.predicted[row_indices],
    )


def _score_refits(
    prediction: Prediction, everything: AnyArray, refits: Sequence[Refit]
) -> dict[str, JsonObject]:
    """Return the scores of the fit and its refits by what is left out."""
    accuracy = {"nothing": scores_of_rows(prediction, everything)}
    for left_out_kind in LEAVE_OUT_COLUMNS:
        parts = [refit for refit in refits if refit.left_out == left_out_kind]
        if parts:
            accuracy[left_out_kind] = scores(
                np.concatenate([prediction.target[refit.rows] for refit in parts]),
                np.concatenate([refit.predicted for refit in parts]),
            )
    return accuracy


def left_out_predictions(prediction: Prediction, refits: Sequence[Refit]) -> Prediction:
    """Return each accelerator's predictions by the refit without it.

    Rows of accelerators that were never left out are not scored.
    """
    predicted, skip = np.full(len(prediction.target), np.nan), prediction.skip.copy()
    for refit in refits:
        if refit.left_out == "accelerator":
            predicted[refit.rows] = refit.predicted
    skip[(skip == "") & np.isnan(predicted)] = "unstated left-out prediction"
    return replace(prediction, predicted=predicted, skip=skip)


def _errors_by_chip(
    measurements: MeasuredRows, prediction: Prediction, blind: Prediction
) -> dict[str, JsonObject]:
    """Return the errors on each chip's rows, and those of the refit that never saw them."""
    chip_errors = {}
    for part in sorted(set(measurements.parts[prediction.skip == ""])):
        chip_rows = measurements.parts == part
        blind_errors = scores_of_rows(blind, chip_rows)
        chip_errors[part] = scores_of_rows(prediction, chip_rows) | {
            "left_out": blind_errors["median_ape"]
        }
    return chip_errors


def _fitted_catalogue_rows(
    input_values: Values,
    free: FreeParameters,
    fit: Fit,
    refits: Sequence[Refit],
    accuracy: JsonObject,
    date: str,
) -> Iterator[FittedRow]:
    """Yield the catalogue rows of a fit.

    A range covers the spread of the fit either way, and the values of all refits.
    """
    followed_paths = {follower.path: follower.followed for follower in free.followers}
    for path in free.paths:
        _, family, parameter_name = path.split(".")
        fitted_value, base = float(input_values[path]), path
        while base in followed_paths:
            base = followed_paths[base]
        half = max(NORMAL_P95 * min(fit.spread.get(base, 0.0), 1.0), LEAST_SPREAD)
        shifts = [-half, half, *(math.log(refit.values[path] / fitted_value) for refit in refits)]
        low, high = fitted_value * math.exp(min(shifts)), fitted_value * math.exp(max(shifts))
        bounds = attribute("performance", parameter_name, path)
        ends = fitted_value, max(low, bounds.minimum), min(high, bounds.maximum)
        leader = followed_paths.get(path, "").removeprefix("performance.")
        note = f"{LEADER}{leader}" if leader else f"fitted on {int(accuracy['n'] or 0):,} rows"
        residual = round_fitted_number(accuracy["median_ape"])
        yield fitted_row(family, parameter_name, ends, note, date, residual)
