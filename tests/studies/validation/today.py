"""What today's model says of the shipped measurements, worked out once in a process. Do not change it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tco.chain.inputs import plain_inputs
from tco.foundation.values import as_number
from tco.studies.validation.run import Validation, validate
from tests.shipped import CATALOGUE

ROOT = Path(__file__).parents[3]
VALUES = plain_inputs(CATALOGUE, {}).values(as_number)


def file_of(kind: str) -> Path:
    """Return the file of the measurements of a kind."""
    return ROOT / f"data/measured/{'speculative_acceptance' if kind == 'acceptance' else kind}.csv.gz"


@cache
def validated(kind: str) -> Validation:
    """Return the predictions of every measurement of a kind, with their errors."""
    return validate(file_of(kind), CATALOGUE, VALUES)
