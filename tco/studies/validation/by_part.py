"""Predicting a file whose accelerators are not all described well enough: what one lacks costs no other its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from tco.foundation.errors import DataError
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications

NUMBERS = ("target", "predicted", "scale", "low", "high")
Predictor = Callable[[pd.DataFrame, Specifications], Prediction]


def predicted(predictor: Predictor, table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Return the predictions of all rows; if the catalogue lacks something of an accelerator, its rows say so, and all lacking it is an error."""
    try:
        return predictor(table, chips)
    except DataError:
        parts = sorted(set(chips.parts))
        if len(parts) == 1:
            raise
    made = []
    for part in parts:
        rows = chips.parts == part
        made.append((rows, tried(predictor, table[rows].reset_index(drop=True), chips.rows(rows))))
    faults = [one for _, one in made if isinstance(one, DataError)]
    if len(faults) == len(made):
        raise faults[0]
    return joined([(rows, unsupported(one, int(rows.sum())) if isinstance(one, DataError) else one) for rows, one in made])


def tried(predictor: Predictor, table: pd.DataFrame, chips: Specifications) -> Prediction | DataError:
    """Return the predictions of the rows of one accelerator, or what it lacks."""
    try:
        return predictor(table, chips)
    except DataError as error:
        return error


def unsupported(error: DataError, count: int) -> Prediction:
    """Return rows that are not predicted, with the reason."""
    nothing, empty = np.full(count, np.nan), np.full(count, "", dtype=object)
    return Prediction(nothing, nothing, empty, np.full(count, f"unsupported accelerator: {error}", dtype=object))


def joined(parts: list[tuple[np.ndarray[Any, Any], Prediction]]) -> Prediction:
    """Return predictions of parts of the rows as one, every row in its place."""
    columns: dict[str, np.ndarray[Any, Any]] = {}
    for name in (field.name for field in fields(Prediction)):
        for rows, one in parts:
            values = getattr(one, name)
            if values is not None:
                blank = np.full(len(rows), np.nan) if name in NUMBERS else np.full(len(rows), "", dtype=object)
                columns.setdefault(name, blank)[rows] = values
    return Prediction(**columns)
