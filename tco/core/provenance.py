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

WRITTEN = re.compile(
    r"(?P<year>\d{4})(-Q(?P<quarter>[1-4])|-(?P<month>\d{2})(-(?P<day>\d{2}))?)?", re.ASCII
)
EXPECTED = (
    "expected a year, a quarter, a month or a day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30"
)

MONTHS = 12
# attributes that hold a date, as a calendar year with its part
DATE_ATTRIBUTES = ("released", "general_availability", "first_volume", "grown_up")


class Period(NamedTuple):
    """The first and the last day of a written date; prices of a date are those of its last day."""

    first: date
    last: date


def is_date(path: str) -> bool:
    """Say whether the input of a path is a date, kept as a calendar year with its part."""
    return path.rpartition(".")[2] in DATE_ATTRIBUTES


def month_text(year: float) -> str:
    """Return a calendar year with its part as year and month.

    Args:
        year: Calendar year with its part, such as 2026.5.

    Returns:
        Text such as 2026-07.

    """
    months = int(year * MONTHS + 1e-6)
    return f"{months // MONTHS}-{months % MONTHS + 1:02}"


def period(date_text: str, where: str = "") -> Period:
    """Return the first and last day of a date.

    Args:
        date_text: Year, quarter, month or day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30.
        where: Place of the date, which opens the message of an error.

    Raises:
        DataError: The text is no date of the calendar; the message says the expected form.

    """
    period_days = days_of(date_text)
    if period_days is None:
        raise DataError(f"{where + ': ' if where else ''}{date_text!r} is no date, {EXPECTED}")
    return period_days


@cache
def days_of(date_text: str) -> Period | None:
    """Return the days a date covers; None for a text that is no date of the calendar.

    Args:
        date_text: Year, quarter, month or day, such as 2026, 2026-Q3, 2026-09 or 2026-09-30.

    """
    date_match = WRITTEN.fullmatch(date_text)
    if date_match is None:
        return None
    year = int(date_match["year"])
    quarter, month, day = (
        None if date_match[date_part] is None else int(date_match[date_part])
        for date_part in ("quarter", "month", "day")
    )
    first, last = (
        (3 * quarter - 2, 3 * quarter) if quarter else (1, 12) if month is None else (month, month)
    )
    try:
        if day is not None:
            return Period(date(year, first, day), date(year, first, day))
        return Period(date(year, first, 1), date(year, last, monthrange(year, last)[1]))
    except ValueError:  # a month or a day the calendar lacks
        return None


# From the firmest to the weakest; a line carries the worst kind it rests on.
KINDS = ("measured", "vendor", "filing", "analyst", "press", "derived", "estimate", "assumed")
RANK = {kind: rank for rank, kind in enumerate(KINDS)}
# How near a number stands to whoever makes, sells, files or measured the thing it is said of, the
# nearest first.
DIRECTNESS = ("first-hand", "quoted", "second-hand", "analogy", "recalled", "estimate")
GUESSED = ("estimate", "assumed")  # kinds that are a belief of ours
SOURCED = frozenset(("measured", "vendor", "filing", "analyst", "press", "derived"))

SETTING = "--set"  # where a setting stands that no file holds
KEPT = "kept earlier"  # the source of a value that an earlier answer rested on
LEADER = "follows "  # begins the note of a fitted value that is another's, or in proportion to it

# standard normal deviate of the 95th percentile: `low` and `high` are P5 and P95 of a belief
P95 = 1.6448536269514722

UNTOLD = "what is wrong is told without --redact"
ANCHOR = "anchor"  # the key of a scenario that names a file of measured runs
# Measured runs of one's own that answers are moved by: the file that `--anchor` names.
anchoring: ContextVar[Any] = ContextVar("anchoring", default=None)
# Facts that options state of measured runs whose file does not, by option.
measured_facts: ContextVar[Mapping[str, str]] = ContextVar(
    "measured_facts", default=MappingProxyType({})
)
# A person's own values are read as they are, or in the making of an answer that keeps them back
# others in their place.
making: ContextVar[Any] = ContextVar("making", default=None)


def refuse_own(what: str) -> None:
    """Refuse an item of the user's own that `--redact` cannot replace.

    The refusal comes before the answer reveals any of the item.

    Args:
        what: Item in words, for the message.

    Raises:
        KeptBackError: The answer in the making keeps the user's own values back.

    """
    if making.get():
        raise KeptBackError(
            f"--redact: {what} cannot be withheld: nothing can stand in its place; leave it out, "
            "or ask without --redact"
        )


def worst(kinds: list[str]) -> str:
    """Return the weakest of several kinds; an empty list counts as derived.

    Args:
        kinds: Kinds of evidence, from `KINDS`.

    """
    return max(kinds, key=RANK.__getitem__, default="derived")


def least_direct(directness_kinds: Iterable[str]) -> str:
    """Return the least direct of several levels; an empty collection is an estimate.

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
    low: float | None = None
    high: float | None = None
    as_of: str = ""
    kind: str = "assumed"
    source: str = ""
    note: str = ""
    # value and unit as the catalogue or the user writes them
    stated_quantity: tuple[float, str] | None = None
    where: str = ""  # file:line or file:key
    overlay: bool = False  # a person's own number
    directness: str = "estimate"  # one of DIRECTNESS
    publisher: str = ""  # who says so
    solved_from: str = ""  # ids of further sources it was derived from
    evidence_of: str = ""  # date of what it rests on, where that is older than `as_of`

    @property
    def evidence_date(self) -> str:
        """Date of the evidence that the number rests on."""
        return self.evidence_of or self.as_of


class Given(NamedTuple):
    """A setting that replaces an input: by the user, by a scenario, or by a variant of a system."""

    text: str
    source: str = "set by the user"
    kind: str = "assumed"
    where: str = SETTING
    # an array of values in the input's unit, asked together; the text then only says how many
    array: Any = None
    is_own: bool = True  # a person's own, and not of a file that is shipped

    def keeps_back(self, path: str) -> bool:
        """Say whether the setting is withheld in this run; a study's own setting is not."""
        current_making = making.get()
        return (
            bool(current_making)
            and self.is_own
            and (self.where != SETTING or (path, self.text) in current_making.typed_settings)
        )


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
            hint = (
                f"; per cent are written '{number:g}%'"
                if unit == "ratio" and maximum < number <= 100 * maximum <= 1000
                else ""
            )
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
