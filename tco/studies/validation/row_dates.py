"""The month of a measured row's software: as printed, of its year, or of its source.

A row that prints a month or a day has it. One that prints only years takes the middle of what they
cover, up to the date that the catalogue's practice is of. One that prints no year takes the date of
its source in `sources.csv`. A row of which neither tells a date has none, and is not scored.
"""

from __future__ import annotations

import re
from datetime import date

from tco.catalog import Catalogue
from tco.foundation.provenance import Period, days_of, period
from tco.performance.software import month_of

YEAR = re.compile(r"\b20\d\d\b")


def row_date(catalogue: Catalogue, printed: str, source_id: str = "", source_url: str = "") -> str:
    """Return the date of a row's software, or an empty text where nothing tells it.

    Args:
        catalogue: Holds the sources and the date up to which software is known.
        printed: The date as the row states it.
        source_id: The row's source, as the row names it.
        source_url: The address of the row's source.

    Returns:
        A month or a day, such as 2026-02 or 2026-02-15.

    """
    text = printed.strip()
    if month_of(text) is not None:
        return text
    years = YEAR.findall(text)
    if not years:
        text = source_date(catalogue, source_id, source_url)
        if month_of(text) is not None:
            return text
        years = YEAR.findall(text)
    if not years:
        return ""
    latest = period(catalogue.practice("public", "approach").as_of).last
    return middle_day(Period(period(min(years)).first, min(period(max(years)).last, latest)))


def source_date(catalogue: Catalogue, source_id: str, source_url: str) -> str:
    """Return the date of a row's source in the catalogue; empty where it is unknown."""
    for source in catalogue.sources.values():
        same_address = bool(source.url) and source_url.startswith(source.url)
        if (source.id == source_id or same_address) and days_of(source.date) is not None:
            return source.date
    return ""


def middle_day(days: Period) -> str:
    """Return the middle day of a period, as text."""
    return date.fromordinal((days.first.toordinal() + days.last.toordinal()) // 2).isoformat()
