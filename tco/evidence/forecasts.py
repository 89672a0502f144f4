"""Forecasts: what the program said before it was measured, kept as it was said, and what came.

A row of `data/claims/forecasts.csv` is dated and names the version that made it and the hash of its
data, or of the revision; its settings make it again. `low` and `high` are the P10 and P90 it had.
Nothing of a row is ever changed but `measured` and its `source`, once somebody measures it.
"""

from __future__ import annotations

from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import parse_finite_number
from tco.core.errors import DataError, unknown
from tco.core.files import data_directory, read_csv
from tco.core.provenance import period

FILE = "claims/forecasts.csv"


class Forecast(NamedTuple):
    """A prediction, and the measurement of it where there is one."""

    id: str
    made: str
    version: str
    hash: str
    system: str
    what: str
    settings: str
    metric: str
    unit: str
    predicted: float
    low: float | None
    high: float | None
    measured: float | None
    source: str
    note: str

    @property
    def error(self) -> float | None:
        """Share by which it is too high."""
        return None if self.measured is None else self.predicted / self.measured - 1

    @property
    def inside(self) -> bool | None:
        """Whether what came lies between low and high."""
        return (
            None
            if self.measured is None or self.low is None or self.high is None
            else self.low <= self.measured <= self.high
        )


NUMBERS = ("predicted", "low", "high", "measured")


def read_forecasts(catalogue: Catalogue) -> list[Forecast]:
    """Read the forecasts of the data folder.

    Args:
        catalogue: Names the known sources.

    Raises:
        DataError: A forecast has a broken date or number, a measurement from an unknown source, an
            id that is already taken, or no version or hash.

    """
    path, found = data_directory() / FILE, list[Forecast]()
    for line, row in read_csv(path, Forecast._fields):
        where = f"{path}:{line}"
        figures = {
            name: parse_finite_number(row[name], name, where)
            if row[name] or name == "predicted"
            else None
            for name in NUMBERS
        }
        one = Forecast(**{**row, **figures})  # type: ignore[arg-type]
        period(one.made, f"{where}: made")
        if one.measured is not None and one.source not in catalogue.sources:
            raise unknown("source", one.source, catalogue.sources, where)
        if not (one.version and one.hash) or one.id in {other.id for other in found}:
            raise DataError(
                f"{where}: {one.id}: expected an id of its own, the version that made it and a hash"
            )
        found.append(one)
    return found
