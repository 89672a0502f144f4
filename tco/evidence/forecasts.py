"""Forecasts: figures that the program predicted before they were measured, and the measurements.

A row of `data/claims/forecasts.csv` is dated and names the version that made it and the hash of its
data, or of the revision; its settings make it again. `low` and `high` are the P10 and P90 it had.
A row never changes, but for `measured` and its `source` once somebody measures the figure.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import parse_finite_number
from tco.catalog.statements import lies_within, relative_excess
from tco.core.columns import Column
from tco.core.errors import DataError, refuse_unknown
from tco.core.files import data_directory, read_csv
from tco.core.provenance import period

FILE = "claims/forecasts.csv"


class Forecast(NamedTuple):
    """A prediction, and the measurement of it where there is one."""

    id: str
    date: Annotated[str, Column(key="made")]
    version: str
    hash: str
    system: str
    what: str
    settings: str  # that make it again
    metric: str
    unit: str
    predicted: float
    low: float | None
    high: float | None
    measured: float | None
    error: float | None  # share by which it is too high
    inside: bool | None  # whether the measurement lies between low and high
    source: str  # of the measurement
    note: str


NUMBERS = ("predicted", "low", "high", "measured")
COLUMNS = [
    column_name for column_name in Forecast._fields if column_name not in ("error", "inside")
]


def read_forecasts(catalogue: Catalogue) -> list[Forecast]:
    """Read the forecasts of the data folder.

    Args:
        catalogue: Names the known sources.

    Raises:
        DataError: A forecast has a broken date or number, a measurement from an unknown source, an
            id that is already taken, or no version or hash.

    """
    path = data_directory() / FILE
    forecasts: dict[str, Forecast] = {}
    for line, forecast_row in read_csv(path, COLUMNS):
        where = f"{path}:{line}"
        figures = {
            figure_name: parse_finite_number(forecast_row[figure_name], figure_name, where)
            if forecast_row[figure_name] or figure_name == "predicted"
            else None
            for figure_name in NUMBERS
        }
        measured = figures["measured"]
        verdict = {
            "error": relative_excess(figures["predicted"], measured),
            "inside": lies_within(measured, figures["low"], figures["high"]),
        }
        forecast = Forecast(**{**forecast_row, **figures, **verdict})  # type: ignore[arg-type]
        period(forecast.date, f"{where}: date")
        if measured is not None:
            refuse_unknown("source", [forecast.source], catalogue.sources, where)
        if not (forecast.version and forecast.hash) or forecast.id in forecasts:
            raise DataError(
                f"{where}: {forecast.id}: expected an id of its own, the version that made it and "
                "a hash"
            )
        forecasts[forecast.id] = forecast
    return list(forecasts.values())
