"""Provenance of numbers: dates, kinds, inputs with range and source, and settings."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import date
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from tco.core.errors import DataError, KeptBackError

WRITTEN_DATE = re.compile(
    r"(?P<year>\d{4})(-Q(?P<quarter>[1-4])|-(?P<month>\d{2})(-(?P<day>\d{2}))?)?", re.ASCII
)
EXPECTED_DATE = (
    "expected a year, a quarter, a month or a day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30"
)

MONTHS = 12  # months per year
# Attributes that are dates, as calendar years with fractions.
DATE_ATTRIBUTES = ("released", "general_availability", "first_volume", "grown_up")


class Period(NamedTuple):
    """First and last day of a written date. The prices of a date are those of its last day."""

    first: date
    last: date


def is_date(path: str) -> bool:
    """Return whether the input of a path is a date, as a calendar year with a fraction."""
    return path.rpartition(".")[2] in DATE_ATTRIBUTES


def month_text(year: float) -> str:
    """Return a calendar year with a fraction as year and month.

    Args:
        year: Calendar year with a fraction, such as 2026.5.

    Returns:
        Text such as 2026-07.

    """
    months = int(year * MONTHS + 1e-6)
    return f"{months // MONTHS}-{months % MONTHS + 1:02}"


def period(date_text: str, where: str = "") -> Period:
    """Return the first and last day of a date.

    Args:
        date_text: Year, quarter, month or day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30.
        where: Place of the date, with which the message of an error begins.

    Raises:
        DataError: The text is not a date of the calendar; the message states the expected form.

    """
    period_days = days_of(date_text)
    if period_days is None:
        raise DataError(f"{where + ': ' if where else ''}{date_text!r} is no date, {EXPECTED_DATE}")
    return period_days


@cache
def days_of(date_text: str) -> Period | None:
    """Return the days that a date covers; None for a text that is not a date of the calendar.

    Args:
        date_text: Year, quarter, month or day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30.

    """
    date_match = WRITTEN_DATE.fullmatch(date_text)
    if date_match is None:
        return None
    year = int(date_match["year"])
    quarter, month, day = (
        None if date_match[date_part] is None else int(date_match[date_part])
        for date_part in ("quarter", "month", "day")
    )
    if quarter:
        first_month, last_month = 3 * quarter - 2, 3 * quarter
    elif month is not None:
        first_month, last_month = month, month
    else:
        first_month, last_month = 1, MONTHS
    try:
        if day is not None:
            return Period(date(year, first_month, day), date(year, first_month, day))
        last_day = monthrange(year, last_month)[1]
        return Period(date(year, first_month, 1), date(year, last_month, last_day))
    except ValueError:  # a month or a day that the calendar does not have
        return None


# Kinds of evidence, the firmest first. A cost line has the weakest kind among its inputs.
KINDS = ("measured", "vendor", "filing", "analyst", "press", "derived", "estimate", "assumed")
RANK = {kind: rank for rank, kind in enumerate(KINDS)}
# Closeness of a number to those who make, sell, report or measured the subject, the closest first.
DIRECTNESS = ("first-hand", "quoted", "second-hand", "analogy", "recalled", "estimate")
GUESSED = ("estimate", "assumed")  # kinds without a source
SOURCED = frozenset(("measured", "vendor", "filing", "analyst", "press", "derived"))

SETTING = "--set"  # place of a setting from the command line
KEPT = "kept earlier"  # source of a value that an earlier answer used
LEADER = "follows "  # beginning of the note of a fitted value that another value determines

# Standard normal deviate of the 95th percentile. `low` and `high` are P5 and P95 of a belief.
P95 = 1.6448536269514722

UNTOLD = "what is wrong is told without --redact"
ANCHOR = "anchor"  # key of a scenario with the path of a file of measured runs
# The user's own measured runs, by which answers are corrected: the file of `--anchor`.
anchoring: ContextVar[Any] = ContextVar("anchoring", default=None)
# Facts about measured runs that options state and their file does not, by option.
measured_facts: ContextVar[Mapping[str, str]] = ContextVar(
    "measured_facts", default=MappingProxyType({})
)
# The making in progress: a run that replaces the user's own values by stand-ins. It is None where
# the user's own values are read as they are.
making: ContextVar[Any] = ContextVar("making", default=None)


def refuse_own(what: str) -> None:
    """Refuse an item of the user's own that `--redact` cannot replace.

    Args:
        what: Item in words, for the message.

    Raises:
        KeptBackError: The current answer withholds the user's own values.

    """
    if making.get():
        raise KeptBackError(
            f"--redact: {what} cannot be withheld: nothing can stand in its place; leave it out, "
            "or ask without --redact"
        )


def worst(kinds: list[str]) -> str:
    """Return the weakest of several kinds, or "derived" for an empty list.

    Args:
        kinds: Kinds of evidence, from `KINDS`.

    """
    return max(kinds, key=RANK.__getitem__, default="derived")


def least_direct(directness_kinds: Iterable[str]) -> str:
    """Return the least direct of several levels, or "estimate" without levels.

    Args:
        directness_kinds: Levels of directness, from `DIRECTNESS`.

    """
    return max(directness_kinds, key=DIRECTNESS.index, default="estimate")


class Input(NamedTuple):
    """A number and its provenance, with `value`, `low` and `high` in `unit`.

    `unit` is the unit that formulas take. The value is an array where many values are evaluated
    together.
    """

    path: str
    value: Any
    unit: str
    low: float | None = None  # P5
    high: float | None = None  # P95
    as_of: str = ""  # date
    kind: str = "assumed"  # member of `KINDS`
    source: str = ""  # id of the source
    note: str = ""
    # Value and unit as the catalogue or the user writes them.
    stated_quantity: tuple[float, str] | None = None
    where: str = ""  # file:line or file:key
    overlay: bool = False  # whether the number is the user's own
    directness: str = "estimate"  # member of `DIRECTNESS`
    publisher: str = ""  # publisher of the source
    solved_from: str = ""  # ids of further sources from which the number was derived
    evidence_of: str = ""  # date of the evidence where it is older than `as_of`

    @property
    def evidence_date(self) -> str:
        """Date of the evidence for the number."""
        return self.evidence_of or self.as_of


class Given(NamedTuple):
    """Setting that replaces an input, from the user, a scenario or a variant of a system."""

    text: str
    source: str = "set by the user"
    kind: str = "assumed"
    where: str = SETTING
    # Array of values in the input's unit. The text then only states the number of values.
    array: Any = None
    is_own: bool = True  # whether the setting is the user's own and not from a shipped file

    def keeps_back(self, path: str) -> bool:
        """Return whether the setting is withheld in this run.

        A setting that a study varies is not withheld.
        """
        current_making = making.get()
        if not current_making or not self.is_own:
            return False
        return self.where != SETTING or (path, self.text) in current_making.typed_settings


def check_bounds(bounded_input: Input, minimum: float, maximum: float) -> Input:
    """Return an input after a check of its bounds and its range.

    Args:
        bounded_input: Input to check.
        minimum: Smallest allowed number, in the unit of the input.
        maximum: Largest allowed number, in the unit of the input.

    Raises:
        DataError: The value, low or high is not finite or out of bounds, or the value lies outside
            low to high.

    """
    for field_name, number in (
        ("value", bounded_input.value),
        ("low", bounded_input.low),
        ("high", bounded_input.high),
    ):
        if number is not None and not (math.isfinite(number) and minimum <= number <= maximum):
            unit = bounded_input.unit or "1"
            hint = ""
            if unit == "ratio" and maximum < number <= 100 * maximum <= 1000:
                hint = f"; per cent are written '{number:g}%'"
            raise DataError(
                f"{bounded_input.where}: {bounded_input.path}: {field_name} {number:g} {unit} is "
                f"outside {minimum:g} to {maximum:g} {unit}{hint}"
            )
    if bounded_input.low is not None and bounded_input.low > bounded_input.value:
        raise DataError(
            f"{bounded_input.where}: {bounded_input.path}: low {bounded_input.low:g} is above the "
            f"value {bounded_input.value:g}"
        )
    if bounded_input.high is not None and bounded_input.high < bounded_input.value:
        raise DataError(
            f"{bounded_input.where}: {bounded_input.path}: high {bounded_input.high:g} is below "
            f"the value {bounded_input.value:g}"
        )
    return bounded_input
