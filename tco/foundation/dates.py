"""Dates as people write them: a year, a quarter, a month or a day. What is less than a day stands for its whole period."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

from tco.foundation.errors import DataError

WRITTEN = re.compile(r"(?P<year>\d{4})(-Q(?P<quarter>[1-4])|-(?P<month>\d{2})(-(?P<day>\d{2}))?)?", re.ASCII)
EXPECTED = "expected a year, a quarter, a month or a day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30"


class Period(NamedTuple):
    """The first and the last day a written date covers. Prices asked for at a date are those of its last day."""

    first: date
    last: date


def period(text: str, where: str = "") -> Period:
    """Return the days a date covers; a text that is no date of the calendar raises `DataError` with what was expected."""
    found = days_of(text)
    if found is None:
        raise DataError(f"{where + ': ' if where else ''}{text!r} is no date, {EXPECTED}")
    return found


@cache
def days_of(text: str) -> Period | None:
    """Return the days a date covers; None for a text that is no date of the calendar."""
    found = WRITTEN.fullmatch(text)
    if found is None:
        return None
    year = int(found["year"])
    quarter, month, day = (None if found[name] is None else int(found[name]) for name in ("quarter", "month", "day"))
    first, last = (3 * quarter - 2, 3 * quarter) if quarter else (1, 12) if month is None else (month, month)
    try:
        if day is not None:
            return Period(date(year, first, day), date(year, first, day))
        return Period(date(year, first, 1), date(year + last // 12, last % 12 + 1, 1) - timedelta(days=1))
    except ValueError:  # a month or a day the calendar lacks
        return None
