"""Free parameters of a fit, from `data/fits/KIND.csv`: priors, beliefs and physical bounds.

A parameter belongs to a family of chips, an engine or a library, never to a model, a source or a
row of measurements.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import attribute, parse_finite_number
from tco.core.errors import DataError
from tco.core.files import read_csv

COLUMNS = ("family", "attribute", "prior", "low", "high", "follows", "note")
NORMAL_P95 = 1.645  # 95th percentile of the standard normal distribution
MAX_PRIOR_FACTOR = 100.0  # a search stays within this factor of the prior, whatever physics allows
LEAST_SPREAD = 1e-3  # of a belief whose low equals its high, in logarithm


class FreeParameter(NamedTuple):
    """Parameter that a fit moves, in the unit of its attribute."""

    path: str
    prior: float
    low: float  # P5 and P95 of the belief
    high: float
    minimum: float  # bounds of the search
    maximum: float

    @property
    def spread(self) -> float:
        """Standard deviation of the belief, in logarithm."""
        return max(math.log(self.high / self.low) / (2 * NORMAL_P95), LEAST_SPREAD)


class Follower(NamedTuple):
    """Parameter in a fixed ratio to another: value = ratio x value of the other."""

    path: str
    followed: str  # path of the other
    ratio: float


class FreeParameters(NamedTuple):
    """Free parameters of a fit, and their followers."""

    parameters: tuple[FreeParameter, ...]
    followers: tuple[Follower, ...]

    @property
    def paths(self) -> list[str]:
        """Paths of all values that a fit moves, those of followers last."""
        return [
            *(parameter.path for parameter in self.parameters),
            *(follower.path for follower in self.followers),
        ]


def read_free_parameters(catalogue: Catalogue, fit_name: str) -> FreeParameters:
    """Return the free parameters of a fit from `fits/<fit_name>.csv`.

    Args:
        catalogue: Its last data folder that has the file counts.
        fit_name: Kind of measurements, or the name of another list.

    Raises:
        DataError: The file is missing or faulty.

    """
    paths = catalogue.folder_files(f"fits/{fit_name}.csv")
    if not paths:
        raise DataError(f"no data folder holds fits/{fit_name}.csv, which says what may be fitted")
    return _read_file(paths[-1])


def _read_file(file: Path) -> FreeParameters:
    parameters, followers = [], []
    for line, parameter_row in read_csv(file, COLUMNS):
        where = f"{file}:{line}"
        path = f"performance.{parameter_row['family']}.{parameter_row['attribute']}"
        if parameter_row["follows"]:
            # in the row of a follower the column holds the ratio
            ratio = parse_finite_number(parameter_row["prior"], "prior", where)
            followers.append(Follower(path, parameter_row["follows"], ratio))
        else:
            parameters.append(_read_parameter(path, parameter_row, where))
    return FreeParameters(tuple(parameters), tuple(followers))


def _read_parameter(path: str, parameter_row: dict[str, str], where: str) -> FreeParameter:
    attribute_bounds = attribute("performance", parameter_row["attribute"], where)
    prior, low, high = (
        parse_finite_number(parameter_row[column], column, where)
        for column in ("prior", "low", "high")
    )
    if not 0 < low <= prior <= high:
        raise DataError(
            f"{where}: {path}: expected 0 < low <= prior <= high, found {low:g}, {prior:g}, "
            f"{high:g}"
        )
    return FreeParameter(
        path=path,
        prior=prior,
        low=low,
        high=high,
        minimum=max(attribute_bounds.minimum, prior / MAX_PRIOR_FACTOR),
        maximum=min(attribute_bounds.maximum, prior * MAX_PRIOR_FACTOR),
    )
