"""What a fit may move: `data/fits/KIND.csv`, read and checked.

A parameter belongs to a family of chips, an engine or a library, never to a model, a source or a row. Each has a prior with the P5
and P95 of the belief, which weighs like measurements, inside the bounds that physics sets to the attribute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import attribute, number
from tco.foundation.errors import DataError
from tco.foundation.files import read_csv

COLUMNS = ("family", "attribute", "prior", "low", "high", "follows", "note")
NORMAL_P95 = 1.645
FARTHEST = 100.0  # a search never goes beyond this factor from the prior, whatever physics allows


class Parameter(NamedTuple):
    """One shared parameter: its path, what is believed of it, and the bounds of physics."""

    path: str
    prior: float
    low: float  # P5 and P95 of the belief
    high: float
    minimum: float
    maximum: float
    note: str = ""

    @property
    def spread(self) -> float:
        """Standard deviation of the belief, in logarithm."""
        return max(math.log(self.high / self.low) / (2 * NORMAL_P95), 1e-3)


class Follower(NamedTuple):
    """A parameter that follows another: value = ratio x the other's."""

    path: str
    followed: str
    ratio: float
    note: str = ""


class Free(NamedTuple):
    """What a fit may move, and what moves with it."""

    parameters: tuple[Parameter, ...]
    followers: tuple[Follower, ...]


def read_free(catalogue: Catalogue, kind: str) -> Free:
    """Return what a fit of a kind may move, from the last data folder that says so; a bad file raises `DataError`."""
    path = next((found for folder in reversed(catalogue.folders) if (found := folder / "fits" / f"{kind}.csv").is_file()), None)
    if path is None:
        raise DataError(f"no data folder holds fits/{kind}.csv, which says what may be fitted")
    parameters, followers = [], []
    for line, row in read_csv(path, COLUMNS):
        where = f"{path}:{line}"
        own = f"performance.{row['family']}.{row['attribute']}"
        prior = number(row["prior"], "prior", where)
        if row["follows"]:
            followers.append(Follower(own, row["follows"], prior, row["note"]))
            continue
        wanted = attribute("performance", row["attribute"], where)
        low, high = (number(row[name], name, where) for name in ("low", "high"))
        if not 0 < low <= prior <= high:
            raise DataError(f"{where}: {own}: expected 0 < low <= prior <= high, found {low:g}, {prior:g}, {high:g}")
        bounds = max(wanted.minimum, prior / FARTHEST), min(wanted.maximum, prior * FARTHEST)
        parameters.append(Parameter(own, prior, low, high, *bounds, row["note"]))
    return Free(tuple(parameters), tuple(followers))


def paths_of(free: Free) -> list[str]:
    """Return every path a fit moves."""
    return [*(p.path for p in free.parameters), *(f.path for f in free.followers)]
