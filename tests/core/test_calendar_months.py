"""Dates in calendar months."""

import pytest

from tco.core.calendar_months import calendar_month, parse_calendar_month
from tco.core.errors import DataError


@pytest.mark.parametrize(
    ("date", "month"),
    [
        ("2026-02", 2026 * 12 + 1.5),
        ("2026-02-15", 2026 * 12 + 1.5),
        ("2026-02-30", 2026 * 12 + 2),
        ("2026", 2026 * 12 + 6),
        ("2026-Q3", 2026 * 12 + 7.5),
    ],
)
def test_dates_in_calendar_months(date, month):
    assert calendar_month(date) == month


def test_only_months_and_days_are_parsed():
    assert parse_calendar_month("2026-Q3") is None
    with pytest.raises(DataError, match="soon"):
        calendar_month("soon")
