"""What a low, a value and a high say of an input: the distributions that `belief` in `data/attributes.csv` names.

Each has its 5th and 95th percentile at low and high. What errs by a factor (prices, times, rates of failure) is log-normal on either side
of its value, the median; what is signed is normal so. A share or a specification is a PERT distribution (Malcolm et al. 1959), and a count or
a life a triangular one: judged between two ends, with the value as the most likely. A flag, and a size that decides structure, is drawn in
steps. Places are standard normal deviates: those of inputs that share a cause go together, whatever distributions they have.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tco.foundation.provenance import P95

Array = np.ndarray[Any, Any]
LOGNORMAL, NORMAL, PERT, TRIANGULAR, STEPS = BELIEFS = ("lognormal", "normal", "pert", "triangular", "steps")
STEP = 0.8964733640019076  # three values for all: 18.5 % of draws beyond it on either side (extended Pearson-Tukey, Keefer and Bodily 1983)
FINE = 64  # columns of a table from the median to the 95th percentile, which are columns of it themselves
REACH = 3  # times as far go its columns: beyond lies less than one draw in a million
SHAPES = 64  # intervals of the most likely value's place between the ends
ANGLES = 1024  # intervals of an integral over a density


class Table(NamedTuple):
    """Quantiles of all distributions of a kind, which differ in where between its ends the most likely value lies.

    A row is one of them, with its 5th percentile at nought and its 95th at one; a column is a place.
    """

    likely: Array  # the most likely value of each row on the same scale, ascending
    quantiles: Array

    def row(self, likely: float) -> Array:
        """Return the quantiles of the distribution with its most likely value at a share of the way from the 5th to the 95th percentile."""
        place = float(np.interp(likely, self.likely, np.arange(len(self.likely))))
        first = min(int(place), len(self.likely) - 2)
        found: Array = self.quantiles[first] + (place - first) * (self.quantiles[first + 1] - self.quantiles[first])
        return found


COLUMNS = np.arange(-REACH * FINE, REACH * FINE + 1) * (P95 / FINE)


@cache
def table_of(kind: str) -> Table:
    """Return the table of a kind of distributions."""
    modes = np.linspace(0, 1, SHAPES + 1)
    shares = np.array([math.erfc(-place / math.sqrt(2)) / 2 for place in COLUMNS])
    found = (triangular if kind == TRIANGULAR else pert)(modes[:, None], shares)
    low, high = (found[:, (REACH + side) * FINE] for side in (-1, 1))
    return Table((modes - low) / (high - low), (found - low[:, None]) / (high - low)[:, None])


def triangular(mode: Array, shares: Array) -> Array:
    """Return quantiles of the triangular distributions from 0 to 1: sqrt(p m) below the mode, 1 - sqrt((1 - p)(1 - m)) above."""
    found: Array = np.where(shares < mode, np.sqrt(shares * mode), 1 - np.sqrt((1 - shares) * (1 - mode)))
    return found


def pert(mode: Array, shares: Array) -> Array:
    """Return quantiles of the PERT distributions from 0 to 1, those of Beta(1 + 4 m, 5 - 4 m), from their densities added up.

    The integral is over the angle of x = (1 - cos t) / 2, which looks closely at both ends.
    """
    angles = np.linspace(0, np.pi, ANGLES + 1)
    x = (1 - np.cos(angles)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.exp(4 * (xlogy(mode, x) + xlogy(1 - mode, x[::-1]))) * np.sin(angles)
    below = np.concatenate([np.zeros((len(mode), 1)), np.cumsum(density[:, 1:] + density[:, :-1], axis=1)], axis=1)
    return np.array([np.interp(shares * row[-1], row, x) for row in below])


def xlogy(share: Array, x: Array) -> Array:
    """Return s ln x, nought where s is."""
    return np.where(share > 0, share * np.log(x), 0.0)


# ---------------------------------------------------------------- places and values
def shape_of(belief: str, low: float) -> str:
    """Return the distribution of a range: a logarithm knows no nought, so what errs by a factor and may be none is triangular."""
    return TRIANGULAR if belief == LOGNORMAL and low <= 0 else belief


def values_at(belief: str, low: float, value: float, high: float, place: Array) -> Array:
    """Return the values of a range at some places."""
    shape = shape_of(belief, low)
    if shape == STEPS:
        return np.asarray(np.where(place < -STEP, low, np.where(place > STEP, high, value)), dtype=float)
    if shape == LOGNORMAL:
        found = bent(math.log(value / low) / P95, math.log(high / value) / P95, place)
        with np.errstate(over="ignore"):  # what has no end is moved to the bound of its attribute
            np.exp(found, out=found)
        found *= value
        return found
    if shape == NORMAL:
        return np.asarray(value + bent((value - low) / P95, (high - value) / P95, place))
    return along(low + (high - low) * table_of(shape).row((value - low) / (high - low)), place)


def bent(below: float, above: float, place: Array) -> Array:
    """Return places times one slope below nought and times another above: the greater of both products, or the lesser where it is less steep."""
    return np.asarray((np.maximum if above >= below else np.minimum)(below * place, above * place))


def along(row: Array, place: Array) -> Array:
    """Return the values of a row at some places, in proportion between two columns; the columns are evenly apart, so none is searched."""
    last, slopes = len(row) - 1, np.append(np.diff(row), 0.0)
    found = np.asarray(place * (FINE / P95))
    found += REACH * FINE
    found.clip(0, last, out=found)
    first = found.astype(np.intp)
    found *= slopes.take(first)
    found += (row - slopes * np.arange(last + 1)).take(first)
    return found


def place_of_value(belief: str, low: float, value: float, high: float) -> float:
    """Return the place at which the value of a range lies: the median, unless it is the most likely of all."""
    shape = shape_of(belief, low)
    if shape not in (PERT, TRIANGULAR):
        return 0.0
    likely = (value - low) / (high - low)
    return float(np.interp(likely, table_of(shape).row(likely), COLUMNS))
