"""Statements: figures that claims and publications state, and whether a computed figure agrees.

A row of `data/claims/ledger.csv` or of a file in `scenarios/published/` states a value with a
tolerance, or a range. A forecast states a range, and is compared with the later measurement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tco.catalog.catalogue import Catalogue
from tco.catalog.rows import parse_finite_number
from tco.core.errors import DataError
from tco.core.types import JsonMapping, JsonObject

ROUNDING = 1e-12  # relative rounding error of arithmetic, which does not count as a miss


class Statement(NamedTuple):
    """A stated figure, and the range of figures that agree with it."""

    value: float  # stated value, or the middle of a stated range
    tolerance: float | None  # share of the value; None for a stated range
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of a stated range, or the stated value twice."""
        return (self.low, self.high) if self.tolerance is None else (self.value, self.value)

    def agrees(self, figure: float) -> bool:
        """Return whether a figure in the unit of the statement agrees with it."""
        return bool(lies_within(figure, self.low, self.high))


class ReproducedFigure(NamedTuple):
    """A published figure and the computed one, in the unit of the publication."""

    kind: str
    scenario: str
    system: str
    metric: str
    unit: str
    published: float  # published value, or the middle of a published range
    tolerance: float | None  # share of the value; None for a range
    low: float
    high: float
    computed: float | None
    source: str
    note: str
    reason: str  # why the figures do not agree; empty where they agree
    ok: bool  # whether the two agree
    publisher: str
    rests_on_publishers: tuple[str, ...]  # publishers of prices that change the computed figure

    @property
    def excess(self) -> float | None:
        """Share by which the computed figure is above the published value; None for a range."""
        return None if self.tolerance is None else relative_excess(self.computed, self.published)


def read_statement(
    statement_row: JsonMapping, where: str, value_column: str = "value"
) -> Statement:
    """Read the figure that a row states.

    Args:
        statement_row: Cells of the row: a value and its tolerance, or `low` and `high`.
        where: File and position of the row, for errors.
        value_column: Column of the value.

    Raises:
        DataError: A cell is not a number, the tolerance is below zero, or a cell is missing.

    """
    numbers = {
        column: parse_finite_number(statement_row[column], column, where)
        for column in (value_column, "tolerance", "low", "high")
        if column in statement_row
    }
    stated_value = numbers.get(value_column)
    tolerance = numbers.get("tolerance")
    if stated_value is not None and tolerance is not None:
        if tolerance < 0:
            raise DataError(f"{where}: tolerance is {tolerance:g}, expected zero or more")
        margin = abs(stated_value) * tolerance
        return Statement(stated_value, tolerance, stated_value - margin, stated_value + margin)
    if "low" not in numbers or "high" not in numbers:
        raise DataError(f"{where}: expected value and tolerance, or low and high")
    low, high = numbers["low"], numbers["high"]
    return Statement(
        (low + high) / 2 if stated_value is None else stated_value, tolerance, low, high
    )


def published_rows(catalogue: Catalogue, file_name: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the place and the cells of each figure of a published file, with its system."""
    path = catalogue.published[file_name]
    document = catalogue.toml(path)
    for position, figure_row in enumerate(document.get("published", []), start=1):
        yield f"{path}:published {position}", {"system": document["system"], **figure_row}


def lies_within(figure: float | None, low: float | None, high: float | None) -> bool | None:
    """Return whether a figure is in a closed range; None where figure or range is missing."""
    if figure is None or low is None or high is None:
        return None
    return low <= figure <= high or any(
        math.isclose(figure, end, rel_tol=ROUNDING) for end in (low, high)
    )


def relative_excess(computed: float | None, stated: float | None) -> float | None:
    """Return the share by which a computed figure exceeds a stated figure.

    The result is None where one of the figures is missing.
    """
    return None if computed is None or stated is None else computed / stated - 1
