"""Quantile functions of the distributions that describe uncertain inputs.

A distribution has a low (5th percentile, P5), a value and a high (95th percentile, P95). Its
quantiles are asked for at standard normal deviates z rather than at probabilities, so that inputs
of different distributions can be correlated through z (a Gaussian copula).

    lognormal   value exp(s z); s = ln(value / low) / z95 below the value,
                s = ln(high / value) / z95 above it
    normal      value + s z; s = (value - low) / z95 below the value, s = (high - value) / z95 above
    PERT, triangular    the value is the most likely one (Malcolm et al. 1959)
    steps       low, value and high alone

A lognormal distribution whose low is not above zero is replaced by a triangular one.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from tco.core.provenance import P95
from tco.core.types import AnyArray

LOGNORMAL = "lognormal"
NORMAL = "normal"
PERT = "pert"
TRIANGULAR = "triangular"
STEPS = "steps"
# Deviate beyond which a distribution in steps takes its low or high: 18.5 % of draws on either side
# (extended Pearson-Tukey, Keefer and Bodily 1983).
STEP_DEVIATE = 0.8964733640019076
COLUMNS_TO_P95 = 64  # columns of a quantile table from the median to P95
# The table spans this many times the deviate of P95: less than one draw in a million is beyond.
TABLE_SPAN = 3
MODE_INTERVALS = 64  # intervals of the most likely value between both ends of a distribution
QUADRATURE_INTERVALS = 1024  # intervals of the integral over a density
# Standard normal deviate of each column of a table.
COLUMN_DEVIATES = np.arange(-TABLE_SPAN * COLUMNS_TO_P95, TABLE_SPAN * COLUMNS_TO_P95 + 1) * (
    P95 / COLUMNS_TO_P95
)


class QuantileTable(NamedTuple):
    """Quantiles of all distributions of a kind, scaled to P5 at 0 and P95 at 1.

    A row is a distribution. A column is a deviate of `COLUMN_DEVIATES`.
    """

    modes: AnyArray  # most likely value of each row on the same scale, ascending
    quantiles: AnyArray  # shape (modes, columns)

    def row(self, mode: float) -> AnyArray:
        """Return the quantiles of a most likely value between P5 (0) and P95 (1)."""
        position = float(np.interp(mode, self.modes, np.arange(len(self.modes))))
        first = min(int(position), len(self.modes) - 2)
        step_to_next = self.quantiles[first + 1] - self.quantiles[first]
        row_quantiles: AnyArray = self.quantiles[first] + (position - first) * step_to_next
        return row_quantiles


@cache
def _quantile_table(kind: str) -> QuantileTable:
    modes = np.linspace(0, 1, MODE_INTERVALS + 1)
    probabilities = np.array(
        [math.erfc(-deviate / math.sqrt(2)) / 2 for deviate in COLUMN_DEVIATES]
    )
    unit_quantiles = (triangular if kind == TRIANGULAR else pert)(modes[:, None], probabilities)
    low = unit_quantiles[:, (TABLE_SPAN - 1) * COLUMNS_TO_P95]
    high = unit_quantiles[:, (TABLE_SPAN + 1) * COLUMNS_TO_P95]
    return QuantileTable(
        modes=(modes - low) / (high - low),
        quantiles=(unit_quantiles - low[:, None]) / (high - low)[:, None],
    )


def triangular(mode: AnyArray, probabilities: AnyArray) -> AnyArray:
    """Return quantiles of triangular distributions from 0 to 1.

    They are sqrt(p m) below the mode m, and 1 - sqrt((1 - p)(1 - m)) above.
    """
    below_mode = np.sqrt(probabilities * mode)
    above_mode = 1 - np.sqrt((1 - probabilities) * (1 - mode))
    unit_quantiles: AnyArray = np.where(probabilities < mode, below_mode, above_mode)
    return unit_quantiles


def pert(mode: AnyArray, probabilities: AnyArray) -> AnyArray:
    """Return quantiles of PERT distributions from 0 to 1, which are Beta(1 + 4 m, 5 - 4 m).

    The densities are integrated over the angle t of x = (1 - cos t) / 2, whose steps are finest at
    both ends.
    """
    angles = np.linspace(0, np.pi, QUADRATURE_INTERVALS + 1)
    x = (1 - np.cos(angles)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        log_density = 4 * (_x_log_y(mode, x) + _x_log_y(1 - mode, x[::-1]))
        density = np.exp(log_density) * np.sin(angles)
    increments = np.cumsum(density[:, 1:] + density[:, :-1], axis=1)
    cumulative = np.concatenate([np.zeros((len(mode), 1)), increments], axis=1)
    return np.array([np.interp(probabilities * row[-1], row, x) for row in cumulative])


def _x_log_y(x: AnyArray, y: AnyArray) -> AnyArray:
    return np.where(x > 0, x * np.log(y), 0.0)


def distribution_quantiles(
    distribution: str, low: float, central_value: float, high: float, deviates: AnyArray
) -> AnyArray:
    """Return new quantiles of a distribution at standard normal deviates.

    Args:
        distribution: Name of the distribution.
        low: 5th percentile.
        central_value: Median, or the most likely value of a PERT or triangular distribution.
        high: 95th percentile.
        deviates: Standard normal deviates of any shape.

    """
    kind = _feasible_distribution(distribution, low)
    if kind == STEPS:
        central_or_high = np.where(deviates > STEP_DEVIATE, high, central_value)
        return np.asarray(np.where(deviates < -STEP_DEVIATE, low, central_or_high), dtype=float)
    if kind == LOGNORMAL:
        slope_below = math.log(central_value / low) / P95
        slope_above = math.log(high / central_value) / P95
        quantiles = _two_slopes(slope_below, slope_above, deviates)
        with np.errstate(over="ignore"):  # the caller moves infinity to the bound of the attribute
            np.exp(quantiles, out=quantiles)
        quantiles *= central_value
        return quantiles
    if kind == NORMAL:
        slope_below = (central_value - low) / P95
        slope_above = (high - central_value) / P95
        return np.asarray(central_value + _two_slopes(slope_below, slope_above, deviates))
    unit_quantiles = _quantile_table(kind).row((central_value - low) / (high - low))
    return _interpolate_quantiles(low + (high - low) * unit_quantiles, deviates)


def deviate_of_value(distribution: str, low: float, central_value: float, high: float) -> float:
    """Return the standard normal deviate of the value of a distribution.

    It is 0 where the value is the median.

    Args:
        distribution: Name of the distribution.
        low: 5th percentile.
        central_value: Median, or the most likely value of a PERT or triangular distribution.
        high: 95th percentile.

    """
    kind = _feasible_distribution(distribution, low)
    if kind not in (PERT, TRIANGULAR):
        return 0.0
    mode = (central_value - low) / (high - low)
    return float(np.interp(mode, _quantile_table(kind).row(mode), COLUMN_DEVIATES))


def _feasible_distribution(distribution: str, low: float) -> str:
    return TRIANGULAR if distribution == LOGNORMAL and low <= 0 else distribution


def _two_slopes(below: float, above: float, deviates: AnyArray) -> AnyArray:
    """Return a new array of the deviates times one slope below zero and another above it."""
    larger_or_smaller = np.maximum if above >= below else np.minimum
    return np.asarray(larger_or_smaller(below * deviates, above * deviates))


def _interpolate_quantiles(row: AnyArray, deviates: AnyArray) -> AnyArray:
    """Return the quantiles of a row of a table at deviates.

    The columns are evenly spaced, so the column of a deviate follows from its size alone.
    """
    last_column = len(row) - 1
    slopes = np.append(np.diff(row), 0.0)
    quantiles = np.asarray(deviates * (COLUMNS_TO_P95 / P95))
    quantiles += TABLE_SPAN * COLUMNS_TO_P95
    quantiles.clip(0, last_column, out=quantiles)
    columns = quantiles.astype(np.intp)
    quantiles *= slopes.take(columns)
    quantiles += (row - slopes * np.arange(last_column + 1)).take(columns)
    return quantiles
