"""Scores of predictions: percentage errors, bias and rank correlation, overall and by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.core.errors import DataError
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.validation.measured import columns_known, tiers
from tco.validation.measured_rows import MeasuredRows

LEAST_CURVE = 4  # points
OFFLINE = "offline run: predicted at the batch that memory holds, scored apart"
GROUPS = (
    "accelerator",
    "op",
    "model",
    "precision",
    "dtype",
    "source_id",
    "framework",
    "library",
    "target",
)


@dataclass(slots=True)
class Prediction:
    """Model predictions for the rows of a file, in row order."""

    target: AnyArray  # the measured value, in the unit of `target_name`
    predicted: AnyArray  # the same quantity by the model
    target_name: AnyArray
    skip: AnyArray  # reason, empty where the row is scored
    command: AnyArray | None = None  # the command line that gives the same number again
    key: AnyArray | None = None  # path into its JSON, steps joined by "/"
    scale: AnyArray | None = None  # its value x scale is the prediction
    # least and most of the predictions over what the row leaves unstated
    low: AnyArray | None = None
    high: AnyArray | None = None
    unstated: AnyArray | None = None  # what that is: names with a space between them

    def __post_init__(self) -> None:
        """Leave out what is measured as nothing, against which no error can be told."""
        nothing = (self.skip == "") & (self.target == 0)
        if nothing.any():
            self.skip = np.where(
                nothing,
                [f"suspect: zero {target_name}" for target_name in self.target_name],
                self.skip,
            )
            self.target, self.predicted = (
                np.where(nothing, np.nan, column) for column in (self.target, self.predicted)
            )


class OfEngine(NamedTuple):
    """Rows of an engine's kernel: their indices, modelled times in seconds, and sides of shapes."""

    operation: str
    kernel: str
    format: str
    rows: Sequence[int]
    time: Any
    sides: JsonMapping


def scores(target: AnyArray, predicted: AnyArray) -> dict[str, float | int | None]:
    """Return the errors of some predictions: |p/t - 1|, and bias as the median of p/t - 1."""
    count = len(target)
    if not count:
        return {
            "n": 0,
            "median_ape": None,
            "mean_ape": None,
            "p90_ape": None,
            "bias": None,
            "spearman": None,
        }
    ratio = predicted / target - 1
    error = np.abs(ratio)
    return {
        "n": count,
        "median_ape": float(np.median(error)),
        "mean_ape": float(np.mean(error)),
        "p90_ape": float(np.percentile(error, 90)),
        "bias": float(np.median(ratio)),
        "spearman": spearman(target, predicted),
    }


def spearman(a: AnyArray, b: AnyArray) -> float | None:
    """Return the rank correlation; None where one side does not vary."""
    ranks = [pd.Series(x).rank().to_numpy() for x in (a, b)]
    if len(a) < 3 or any(np.ptp(x) == 0 for x in ranks):
        return None
    return float(np.corrcoef(*ranks)[0, 1])


def _curve_scores(table: pd.DataFrame, prediction: Prediction) -> dict[str, float | int | None]:
    """Return shape errors and rank correlation of predicted curves.

    Errors are taken after each curve's own median ratio is taken out. Rank correlation is taken
    inside each curve.
    """
    curves = columns_known()["curves"]  # what is swept along a curve, and what its points share
    swept = next((swept_column for swept_column in curves if swept_column in table), "")
    curve_columns = [
        curve_column
        for curve_column in ("source_id", *curves.get(swept, ()))
        if curve_column in table
    ]
    curve_points = (
        table[curve_columns].assign(
            ratio=prediction.predicted / prediction.target, kind=prediction.target_name
        )[(prediction.skip == "") & table[swept].notna()]
        if swept
        else None
    )
    errors, ranks = [], []
    if curve_points is not None:
        for _, curve in curve_points.groupby([*curve_columns, "kind"], dropna=False):
            if len(curve) >= LEAST_CURVE:
                curve_rows = curve.index.to_numpy()
                errors.append(np.abs(curve.ratio / curve.ratio.median() - 1))
                ranks.append(
                    spearman(prediction.target[curve_rows], prediction.predicted[curve_rows])
                )
    defined_ranks = [rank for rank in ranks if rank is not None]
    return {
        "n": len(errors),
        "p90_ape": float(np.percentile(np.concatenate(errors), 90)) if errors else None,
        "spearman": float(np.median(defined_ranks)) if defined_ranks else None,
        "spearman_p10": float(np.percentile(defined_ranks, 10)) if defined_ranks else None,
    }


def _range_scores(prediction: Prediction) -> dict[str, float | int | None]:
    """Return interval coverage and median width over rows with unstated inputs.

    `n` counts the rows that leave an input unstated, `inside` the rows measured inside their range.
    `median_width` is the median of high over low.
    """
    if prediction.low is None or prediction.high is None or prediction.unstated is None:
        return {"n": 0, "inside": 0, "median_width": None}
    ranged_rows = (prediction.skip == "") & (prediction.unstated != "")
    low, high, target = (
        row_values[ranged_rows]
        for row_values in (prediction.low, prediction.high, prediction.target)
    )
    inside = (low <= target) & (target <= high)
    return {
        "n": len(target),
        "inside": int(inside.sum()),
        "median_width": float(np.median(high / low)) if len(target) else None,
    }


def scorecard(table: pd.DataFrame, prediction: Prediction) -> JsonObject:
    """Return a file's score: counts, errors, and errors by each known group."""
    scored, is_offline = prediction.skip == "", prediction.skip == OFFLINE
    reasons, counts = np.unique(prediction.skip[~scored].astype(str), return_counts=True)
    overall_scores: JsonObject = scores(prediction.target[scored], prediction.predicted[scored])
    overall_scores["scored"] = overall_scores.pop("n")
    by: dict[str, JsonObject] = {}
    labels = table.assign(target=prediction.target_name, tier=tiers(table))
    for group_name in (*GROUPS, *(("tier",) if labels.tier.any() else ())):
        if group_name in labels:
            column = labels[group_name].astype(str).to_numpy()
            parts = {
                group_label: scored & (column == group_label)
                for group_label in sorted(set(column[scored]))
                if group_label
            }
            by[group_name] = {
                group_label: scores(prediction.target[group_mask], prediction.predicted[group_mask])
                for group_label, group_mask in parts.items()
            }
    skipped = dict(zip(reasons.tolist(), counts.tolist(), strict=True))
    separate_scores = {
        "offline": scores(prediction.target[is_offline], prediction.predicted[is_offline]),
        "ranges": _range_scores(prediction),
    }
    return {
        "n": len(table),
        **overall_scores,
        "skipped": skipped,
        "curves": _curve_scores(table, prediction),
        **separate_scores,
        "by": by,
    }


NUMBERS = ("target", "predicted", "scale", "low", "high")
Predictor = Callable[[MeasuredRows], Prediction]


def predict_by_accelerator(predictor: Predictor, measurements: MeasuredRows) -> Prediction:
    """Return the predictions of all rows.

    If the catalogue lacks something of an accelerator, the rows of the accelerator say so.

    Raises:
        DataError: The catalogue lacks something of all accelerators.

    """
    try:
        return predictor(measurements)
    except DataError:
        parts = sorted(set(measurements.parts))
        if len(parts) == 1:
            raise
    predictions: list[tuple[AnyArray, Prediction]] = []
    faults = []
    for part in parts:
        part_mask = measurements.parts == part
        prediction = predictions_or_error(predictor, measurements.chosen(part_mask))
        if isinstance(prediction, DataError):
            faults.append(prediction)
            prediction = unsupported_rows(prediction, int(part_mask.sum()))
        predictions.append((part_mask, prediction))
    if len(faults) == len(parts):
        raise faults[0]
    return _merge_predictions(predictions)


def predictions_or_error(
    predictor: Predictor, measurements: MeasuredRows
) -> Prediction | DataError:
    """Return the predictions for an accelerator, or the error of the predictor.

    Args:
        predictor: Predicts measured values.
        measurements: Rows of a single accelerator.

    Returns:
        Predictions; a `DataError` that says what the catalogue lacks is returned, not raised.

    """
    try:
        return predictor(measurements)
    except DataError as error:
        return error


def unsupported_rows(error: DataError, count: int) -> Prediction:
    """Return rows that are not predicted, with the reason."""
    nothing, empty = np.full(count, np.nan), np.full(count, "", dtype=object)
    return Prediction(
        nothing, nothing, empty, np.full(count, f"unsupported accelerator: {error}", dtype=object)
    )


def _merge_predictions(parts: list[tuple[AnyArray, Prediction]]) -> Prediction:
    """Return predictions of parts of the rows as one, every row in its place."""
    columns: dict[str, AnyArray] = {}
    for field_name in (field.name for field in fields(Prediction)):
        for part_mask, prediction in parts:
            field_values = getattr(prediction, field_name)
            if field_values is not None:
                blank = (
                    np.full(len(part_mask), np.nan)
                    if field_name in NUMBERS
                    else np.full(len(part_mask), "", dtype=object)
                )
                columns.setdefault(field_name, blank)[part_mask] = field_values
    return Prediction(**columns)
