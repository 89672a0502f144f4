"""Predictions of today's model for measurements.

Those of the shipped files are computed once in a session. Do not change them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tco.validation.calibrate import KINDS
from tco.validation.fit import FitProblem
from tco.validation.measured import read_measured
from tco.validation.measured_rows import MeasuredRows
from tco.validation.run import PREDICTORS, Validation, score_measurements
from tco.validation.score import scores
from tco.validation.wording import interpret_note, precisions
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import plain_values
from tests.shared import shared_by_workers

__all__ = [  # what tests of several files ask for
    "KINDS",
    "FitProblem",
    "interpret_note",
    "precisions",
    "scores",
]

if TYPE_CHECKING:
    import pandas as pd

ROOT = Path(__file__).parents[2]
VALUES = plain_values()


def file_of(kind: str) -> Path:
    """Return the file of the measurements of a kind."""
    return (
        ROOT / f"data/measured/{'speculative_acceptance' if kind == 'acceptance' else kind}.csv.gz"
    )


def table_of(file: Path | str) -> pd.DataFrame:
    """Return the rows of a file, or of the shipped file of a kind."""
    return read_measured(file_of(file) if isinstance(file, str) else file)[1]


def rows_of(table: pd.DataFrame, values=VALUES) -> MeasuredRows:
    """Return some rows with the values of their chips."""
    return MeasuredRows(table, CATALOGUE, values)


def predicted(kind: str, measurements: pd.DataFrame | MeasuredRows):
    """Return the model's predictions for some rows."""
    if not isinstance(measurements, MeasuredRows):
        measurements = rows_of(measurements)
    return PREDICTORS[kind](measurements)


def scored(file: Path, values=VALUES) -> Validation:
    """Return the predictions of every row of a file, with their errors."""
    return score_measurements(file, CATALOGUE, values)


@cache
def validated(kind: str) -> Validation:
    """Return the predictions of every shipped measurement of a kind, with their errors."""
    return shared_by_workers(f"validated-{kind}", lambda: scored(file_of(kind)))
