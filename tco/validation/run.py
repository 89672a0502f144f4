"""Validation of one file: rows read, predicted and scored, beside the errors of refits.

Rows that are not scored say why to the point: which name is unknown and what it may mean, and which
column is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import errors_of
from tco.core.errors import DataError, UsageError, unknown
from tco.core.inputs import Values
from tco.core.types import AnyArray, JsonObject, TextMapping
from tco.performance.serving.plans import tokens_of_drafts
from tco.validation import collectives, deployments, inference, kernels, open_loop, training
from tco.validation.command_lines import command_line
from tco.validation.measured import (
    columns_known,
    of_text,
    read_measured,
)
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import renamed, unread_accelerators
from tco.validation.score import (
    OFFLINE,
    Prediction,
    Predictor,
    predict_by_accelerator,
    scorecard,
)
from tco.validation.unstated import ranged

POOLS = ("prefill_gpus", "prefill_workers", "decode_gpus", "decode_workers")


def _detailed_skip_reasons(measurements: MeasuredRows, skip: AnyArray, kind: str) -> AnyArray:
    """Return the reasons of a file of a kind, each with what its row lacks."""
    catalogue = measurements.catalogue
    details = {"unknown-accelerator": unread_accelerators(catalogue, measurements["accelerator"])}
    if "model" in measurements.table:
        details["unknown-model"] = measurements.read_models[1]
    for reason, columns in columns_known()["wanted"].items():
        if np.any(skip == reason):
            details[reason] = lacking(measurements, reason, columns)
    targets = ", ".join(columns_known()["kinds"][kind]["targets"])
    reasons = np.where(skip == "unstated result", f"unstated result: none of {targets}", skip)
    for reason, texts in details.items():
        reasons = np.where(reasons == reason, texts, reasons)
    return np.asarray(reasons, dtype=object)


def lacking(measurements: MeasuredRows, reason: str, columns: Sequence[str]) -> AnyArray:
    """Return a reason with the columns that every row leaves blank.

    A row that leaves none blank has all of them: what stands in them is not enough.
    """
    blank = {column_name: _blanks(measurements, column_name) for column_name in columns}
    if set(POOLS) <= set(columns):
        separate = measurements.meanings("answer", "disaggregated") == "yes"
        blank |= {pool_column: blank[pool_column] & separate for pool_column in POOLS}
    names_by_row = (
        ", ".join(column_name for column_name in columns if blank[column_name][row_index])
        for row_index in range(len(measurements))
    )
    reasons = [f"{reason}: {joined_names or ', '.join(columns)}" for joined_names in names_by_row]
    return np.array(reasons, dtype=object)


def _blanks(measurements: MeasuredRows, column_name: str) -> AnyArray:
    cells = measurements[column_name]
    if of_text(column_name):
        return np.array([not cell_text.strip() for cell_text in cells], dtype=bool)
    return np.asarray(~(np.nan_to_num(cells) > 0))


TARGET = "acceptance_length_tokens_per_step"
# any system's time of a token rests on the tokens of a step, beside the step
ASKED = (
    "b200-hgx8",
    "tpot_s",
)
KEY = "tree/inputs/1/value"


def _accepted_lengths(measurements: MeasuredRows) -> Prediction:
    """Predict the accepted lengths of speculative decoding for each row's number of drafts.

    The chances are those that a workload states.
    """
    drafts, target = measurements["draft_tokens"], measurements[TARGET]
    skip = measurements.refused(
        (~(drafts > 0), "unstated drafts"),
        (np.isnan(target), "unstated result"),
        (
            (target < 1) | (target > drafts + 1),
            "suspect: fewer tokens than the step's own, or more than it drafts",
        ),
    )
    predicted = np.where(skip == "", tokens_of_drafts(measurements.values, drafts), np.nan)
    command = [
        command_line(
            ["explain", *ASKED],
            {},
            {
                "workload.draft_tokens": count,
                "workload.draft_limit": count,
                "workload.as_deployed": 0,
            },
        )
        if why == ""
        else ""
        for count, why in zip(drafts, skip, strict=True)
    ]
    target_names, answer_keys = (
        np.full(len(measurements), constant_text, dtype=object) for constant_text in (TARGET, KEY)
    )
    return Prediction(
        target,
        predicted,
        target_names,
        skip,
        np.array(command, dtype=object),
        answer_keys,
        np.ones(len(measurements)),
    )


PREDICTORS: dict[str, Predictor] = {
    "kernels": kernels.predict_kernels,
    "collectives": collectives.predict_collectives,
    "inference": inference.predict_serving_runs,
    "training": training.predict_training_runs,
    "acceptance": _accepted_lengths,
    "open-loop": open_loop.predict_open_loop_runs,
    "deployments": deployments.predict_deployments,
}


STATED_BY_ROWS = ("inference", "training", "open-loop", "kernels", "collectives")


class Validation(NamedTuple):
    """A file's score and the rows behind it."""

    kind: str
    card: JsonObject
    rows: pd.DataFrame


def _rescore_column(table: pd.DataFrame, prediction: Prediction, column_name: str) -> Prediction:
    """Return the predictions scored against another column, where the model predicts it."""
    if column_name not in set(prediction.target_name) | set(table.columns):
        raise unknown("column", column_name, table.columns, "--against")
    chosen = prediction.target_name == column_name
    if not chosen.any():
        raise DataError(
            f"--against {column_name}: no row of this file is predicted as {column_name}; there "
            f"are {', '.join(sorted(set(prediction.target_name) - {''}))}"
        )
    skip = np.where(
        chosen | (prediction.skip != ""), prediction.skip, f"unsupported target: not {column_name}"
    )
    return replace(prediction, skip=skip)


def _refuse_stated_settings(kind: str, settings: TextMapping) -> None:
    """Refuse settings of the workload where every row states its own and none would be read."""
    if kind not in STATED_BY_ROWS:
        return
    for path in settings:
        if path.startswith("workload."):
            raise UsageError(
                f"--set {path}: every row of {kind} states its own workload, so this moves nothing;"
                " expected a path such as performance.layer.expert_passes, or --envelopes, which "
                "takes it"
            )


def _tabulate_predictions(prediction: Prediction) -> pd.DataFrame:
    """Return predictions with their errors, and ranges and commands if there are any."""
    errors = np.where(
        np.isin(prediction.skip, ("", OFFLINE)),
        prediction.predicted / prediction.target - 1,
        np.nan,
    )
    prediction_rows = pd.DataFrame(
        {
            "target": prediction.target_name,
            "measured": prediction.target,
            "predicted": prediction.predicted,
            "error": errors,
            "skipped": prediction.skip,
        }
    )
    if prediction.unstated is not None:
        prediction_rows = prediction_rows.assign(
            low=prediction.low, high=prediction.high, unstated=prediction.unstated
        )
    if prediction.command is not None:
        prediction_rows = prediction_rows.assign(
            command=prediction.command, key=prediction.key, scale=prediction.scale
        )
    return prediction_rows


def score_measurements(
    path: Path,
    catalogue: Catalogue,
    input_values: Values,
    kind: str | None = None,
    column: str | None = None,
    alias: Path | None = None,
    settings: TextMapping | None = None,
) -> Validation:
    """Predict and score every row of a file of measurements.

    Args:
        path: The file, or the name of one that travels with the program.
        catalogue: Names of chips and models, and their practice.
        input_values: The inputs, with those that are set.
        kind: The kind of measurements; left out, the header tells it.
        column: Score only the rows that are predicted as this column.
        alias: A file that says what unknown names mean.
        settings: What the user sets, as texts.

    Raises:
        DataError: If the file cannot be read.
        UsageError: If a setting is one that every row states itself.

    """
    measured_kind, stated = read_measured(path, kind)
    table = renamed(stated, catalogue, alias) if alias else stated
    if measured_kind not in PREDICTORS:
        raise DataError(
            f"{path}: {measured_kind} are not predicted yet; there are {', '.join(PREDICTORS)}"
        )
    _refuse_stated_settings(measured_kind, settings or {})
    measurements = MeasuredRows(table, catalogue, input_values, dict(settings or {}))
    predictor = PREDICTORS[measured_kind]
    prediction = predict_by_accelerator(predictor, measurements)
    prediction = ranged(measured_kind, predictor, measurements, prediction)
    if column is not None:
        prediction = _rescore_column(table, prediction, column)
    prediction.skip = _detailed_skip_reasons(measurements, prediction.skip, measured_kind)
    card = scorecard(stated, prediction)
    prediction_rows = _tabulate_predictions(prediction)
    keep = [
        column_name
        for column_name in (
            "source_id",
            "accelerator",
            "op",
            "model",
            "precision",
            "dtype",
            "framework",
            "library",
            "date",
        )
        if column_name in stated
    ]
    return Validation(
        measured_kind,
        card | {"left_out": errors_of(catalogue, measured_kind)},
        pd.concat([stated[keep].reset_index(drop=True), prediction_rows], axis=1),
    )
