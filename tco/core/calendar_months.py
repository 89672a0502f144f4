"""Dates in calendar months: 12 times the year, plus the earlier months and a part of the month."""

from __future__ import annotations

import re

from tco.core.provenance import MONTHS, period

DAYS_OF_MONTH = 30  # every month counts as this long
MIDDLE_DAY = DAYS_OF_MONTH / 2
WRITTEN_MONTH = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")


def parse_calendar_month(date_text: str) -> float | None:
    """Return a month or a day in calendar months.

    A month without a day counts as its middle.

    Args:
        date_text: Date such as 2026-02 or 2026-02-15.

    Returns:
        Calendar months, such as 24313.5 for 2026-02; None for a text of any other form.

    """
    date_match = WRITTEN_MONTH.fullmatch(date_text.strip())
    if date_match is None:
        return None
    year, month, day = date_match.groups()
    day_of_month = MIDDLE_DAY if day is None else int(day)
    return int(year) * MONTHS + int(month) - 1 + day_of_month / DAYS_OF_MONTH


def calendar_month(date_text: str) -> float:
    """Return a date in calendar months; a year, quarter or month counts as its middle.

    Args:
        date_text: Date such as 2026, 2026-Q3, 2026-02 or 2026-02-15.

    Raises:
        DataError: The text is not a date of the calendar.

    """
    month = parse_calendar_month(date_text)
    if month is not None:
        return month
    first_day, last_day = period(date_text)
    first_month = first_day.year * MONTHS + first_day.month - 1
    end_month = last_day.year * MONTHS + last_day.month
    return (first_month + end_month) / 2
