"""Rows of the catalogue that fits write, as `data/calibration` holds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tco.catalog.rows import attribute


class FittedRow(NamedTuple):
    """A fitted value of the catalogue with its range, in the order of the file's columns."""

    family: str  # or another owner of the attribute
    attribute: str
    value: float
    unit: str
    low: float
    high: float
    as_of: str  # year and month
    kind: str
    source: str
    note: str
    use: str
    residual: float | str  # median error of the fit; empty where it has none


def fitted_row(
    owner: str,
    attribute_name: str,
    ends: Iterable[float],
    note: str,
    date: str,
    residual: float | str = "",
) -> FittedRow:
    """Return the row of a fitted attribute.

    Args:
        owner: Family, engine, model or other owner of the attribute.
        attribute_name: Attribute.
        ends: Value, low and high.
        note: What the fit rests on.
        date: Year and month that the row carries.
        residual: Median error of the fit.

    """
    fitted_value, low, high = map(round_fitted_number, ends)
    unit = attribute("performance", attribute_name, owner).unit
    origin = "derived", "tco-calibration"
    return FittedRow(
        owner, attribute_name, fitted_value, unit, low, high, date, *origin, note, "", residual
    )


def round_fitted_number(fitted_value: float) -> float:
    """Return a number at the four digits a fit can claim."""
    return float(f"{fitted_value:.4g}")
