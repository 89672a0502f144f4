"""What today's model says of measurements: of the shipped ones worked out once in a process. Do not
change it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tco.validation.calibrate import KINDS, Task
from tco.validation.measured import read_measured, texts
from tco.validation.run import PREDICTORS, Validation, score_measurements
from tco.validation.score import scores
from tco.validation.specifications import Specifications
from tco.validation.wording import interpret_note, precisions
from tests.catalogue import CATALOGUE
from tests.scenario_helpers import plain_values

__all__ = [  # what tests of several files ask for
    "KINDS",
    "Task",
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


def chips_of(table: pd.DataFrame, values=VALUES) -> Specifications:
    """Return what is known of the chips of some rows."""
    return Specifications(CATALOGUE, values, texts(table, "accelerator"))


def predicted(kind: str, table: pd.DataFrame, chips: Specifications | None = None):
    """Return what the model predicts of some rows."""
    return PREDICTORS[kind](table, chips or chips_of(table))


def scored(file: Path, values=VALUES) -> Validation:
    """Return the predictions of every row of a file, with their errors."""
    return score_measurements(file, CATALOGUE, values)


@cache
def validated(kind: str) -> Validation:
    """Return the predictions of every shipped measurement of a kind, with their errors."""
    return scored(file_of(kind))
