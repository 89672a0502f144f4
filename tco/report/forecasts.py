"""Forecasts made before their measurement: answer of `tco claims --forecasts`."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.evidence.forecasts import Forecast
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant

FORECASTS = Document("forecasts", Member("forecasts", [Forecast], lambda forecasts: forecasts))


def forecasts_answer(catalogue: Catalogue, forecasts: Sequence[Forecast]) -> Answer:
    """Return every forecast with its measurement.

    Args:
        catalogue: Catalogue that the answer rests on.
        forecasts: The forecasts.

    """
    return FORECASTS.answer(
        catalogue, forecasts, lambda: [_forecasts_table(forecasts)], (Record(Forecast), forecasts)
    )


def _forecasts_table(forecasts: Sequence[Forecast]) -> Table:
    """Return the forecasts, and what each is of below."""
    forecast_rows = [
        (
            forecast.id,
            forecast.date,
            forecast.system,
            significant(forecast.predicted),
            significant(forecast.low, 3) or "-",
            significant(forecast.high, 3) or "-",
            significant(forecast.measured) or "-",
            "waiting" if forecast.error is None else f"{forecast.error * 100:+.0f} %",
        )
        for forecast in forecasts
    ]
    waiting = sum(forecast.measured is None for forecast in forecasts)
    title = (
        f"{len(forecast_rows)} forecasts, {len(forecast_rows) - waiting} measured since, {waiting} "
        "waiting"
    )
    below = [f"{forecast.id}: {forecast.what}, {forecast.unit}." for forecast in forecasts]
    columns = ("id", "made", "system", "predicted", "P10", "P90", "measured", "off")
    return Table(columns, forecast_rows, title, below=below, align="lll")
