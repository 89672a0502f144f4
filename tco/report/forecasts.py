"""Forecasts made before their measurement: answer of `tco claims --forecasts`."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.evidence.forecasts import Forecast
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant


def off(one: Forecast) -> str:
    """Say by how much a forecast is too high."""
    return "waiting" if one.error is None else f"{one.error * 100:+.0f} %"


FORECAST = Record(
    *(
        Member("id", label="id"),
        Member("made", label="made"),
        "version",
        "hash",
        Member("system", label="system"),
        "what",
        "settings",
        "metric",
        "unit",
    ),
    Member("predicted", float, label="predicted"),
    Member("low", float | None, label="P10", show=lambda one: significant(one.low, 3) or "-"),
    Member("high", float | None, label="P90", show=lambda one: significant(one.high, 3) or "-"),
    Member(
        "measured",
        float | None,
        label="measured",
        show=lambda one: significant(one.measured) or "-",
    ),
    Member("error", float | None, label="off", show=off),
    Member("inside", bool | None),
    *("source", "note"),
)
FORECASTS = Document("forecasts", Member("forecasts", [FORECAST], lambda found: found))


def forecasts_answer(catalogue: Catalogue, found: Sequence[Forecast]) -> Answer:
    """Return every forecast with its measurement.

    Args:
        catalogue: Catalogue that the answer rests on.
        found: The forecasts.

    """
    return FORECASTS.answer(catalogue, found, lambda: [forecasts_table(found)], (FORECAST, found))


def forecasts_table(found: Sequence[Forecast]) -> Table:
    """Return the forecasts, and what each is of below."""
    came = [one for one in found if one.measured is not None]
    title = f"{len(found)} forecasts, {len(came)} measured since, {len(found) - len(came)} waiting"
    return FORECAST.table(
        found, title, below=[f"{one.id}: {one.what}, {one.unit}." for one in found]
    )
