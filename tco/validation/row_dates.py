"""The date of a measured row's software: as printed, of its years, or of its source.

A row that prints a month or a day has it. One that prints only years takes the middle of what they
cover, up to the date that the catalogue's practice is of. One that prints no year takes the date of
its source in `sources.csv`. A row of which neither tells a date has none, and is not scored.
"""

from __future__ import annotations

import re
from datetime import date

from tco.catalog import Catalogue
from tco.core.calendar_months import parse_calendar_month
from tco.core.provenance import Period, days_of, period

YEAR = re.compile(r"\b20\d\d\b")


def row_days(catalogue: Catalogue, printed: str, source_id: str, source_url: str) -> Period | None:
    """Return the days that a row's software may be of; None where nothing tells them.

    Args:
        catalogue: Holds the sources and the date up to which software is known.
        printed: The date as the row states it.
        source_id: The row's source, as the row names it.
        source_url: The address of the row's source.

    """
    for date_text in (printed.strip(), _source_date(catalogue, source_id, source_url)):
        if parse_calendar_month(date_text) is not None:
            return days_of(date_text)
        if years := YEAR.findall(date_text):
            latest = period(catalogue.practice("public", "approach").as_of).last
            return Period(period(min(years)).first, min(period(max(years)).last, latest))
    return None


def row_date(catalogue: Catalogue, printed: str, source_id: str = "", source_url: str = "") -> str:
    """Return the middle month of a row's software dates, empty without any."""
    days = row_days(catalogue, printed, source_id, source_url)
    if days is None:
        return ""
    middle = (days.first.toordinal() + days.last.toordinal()) // 2
    return f"{date.fromordinal(middle):%Y-%m}"


def _source_date(catalogue: Catalogue, source_id: str, source_url: str) -> str:
    """Return the date of a row's source in the catalogue; empty where it is unknown.

    A source is the row's by its id, else by its address or the nearest one above it.
    """
    named = catalogue.sources.get(source_id)
    if named is not None and days_of(named.date) is not None:
        return named.date
    address = f"{source_url.rstrip('/')}/"
    above = [
        source
        for source in catalogue.sources.values()
        if source.url and address.startswith(f"{source.url.rstrip('/')}/")
    ]
    dated = [source for source in above if days_of(source.date) is not None]
    return max(dated, key=lambda source: len(source.url)).date if dated else ""
