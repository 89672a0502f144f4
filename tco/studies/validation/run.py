"""Validation of one file: read, predict, score, with the errors the same model made on what was left out of its fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.accuracy import errors_of
from tco.foundation.errors import DataError, unknown
from tco.foundation.values import Values
from tco.studies.validation import acceptance, collectives, inference, kernels, training
from tco.studies.validation.aliases import renamed
from tco.studies.validation.by_part import predicted
from tco.studies.validation.measured import read_measured, texts
from tco.studies.validation.reasons import explained
from tco.studies.validation.score import OFFLINE, Prediction, scorecard
from tco.studies.validation.specifications import Specifications
from tco.studies.validation.unstated import ranged

PREDICTORS: dict[str, Callable[[pd.DataFrame, Specifications], Prediction]] = {
    "kernels": kernels.predict,
    "collectives": collectives.predict,
    "inference": inference.predict,
    "training": training.predict,
    "acceptance": acceptance.predict,
}


class Validation(NamedTuple):
    """A file's score and the rows behind it."""

    kind: str
    card: dict[str, Any]
    rows: pd.DataFrame


def against(table: pd.DataFrame, made: Prediction, name: str) -> Prediction:
    """Return the predictions held against another column, where the model predicts that quantity."""
    if name not in set(made.target_name) | set(table.columns):
        raise unknown("column", name, table.columns, "--against")
    chosen = made.target_name == name
    if not chosen.any():
        raise DataError(f"--against {name}: no row of this file is predicted as {name}; there are {', '.join(sorted(set(made.target_name) - {''}))}")
    skip = np.where(chosen | (made.skip != ""), made.skip, f"unsupported target: not {name}")
    return replace(made, skip=skip)


def validate(
    path: Path, catalogue: Catalogue, values: Values, kind: str | None = None, column: str | None = None, alias: Path | None = None
) -> Validation:
    """Predict and score every row of a file, names first replaced by what a file of aliases says; a bad file raises `DataError`."""
    found, stated = read_measured(path, kind)
    table = renamed(stated, catalogue, alias) if alias else stated
    if found not in PREDICTORS:
        raise DataError(f"{path}: {found} are not predicted yet; there are {', '.join(PREDICTORS)}")
    chips = Specifications(catalogue, values, texts(table, "accelerator"))
    made = ranged(found, PREDICTORS[found], table, chips, predicted(PREDICTORS[found], table, chips))
    if column is not None:
        made = against(table, made, column)
    made.skip = explained(table, made.skip, found, catalogue)
    card = scorecard(stated, made)
    errors = np.where(np.isin(made.skip, ("", OFFLINE)), made.predicted / made.target - 1, np.nan)
    rows = pd.DataFrame({"target": made.target_name, "measured": made.target, "predicted": made.predicted, "error": errors, "skipped": made.skip})
    if made.unstated is not None:
        rows = rows.assign(low=made.low, high=made.high, unstated=made.unstated)
    if made.command is not None:
        rows = rows.assign(command=made.command, key=made.key, scale=made.scale)
    keep = [name for name in ("source_id", "accelerator", "op", "model", "precision", "dtype", "framework", "library", "date") if name in stated]
    return Validation(found, card | {"left_out": errors_of(catalogue, found)}, pd.concat([stated[keep].reset_index(drop=True), rows], axis=1))
