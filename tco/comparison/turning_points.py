"""Prices at which another rack has the least mean regret, and the most likely of them.

The cost of the work is linear in a price. Where the base case of a rack costs c and a dollar of a
price adds s to that, a draw in which the price is p costs (c + s (x - v)) / (c + s (p - v)) times
as much once the price is x in its place, v being its value. Beliefs move with the price: in each
draw it is as many times its value as before. The break-even price is that of the base cases: both
cost the same there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tco.catalog.rows import attribute_of_path
from tco.comparison.records import PriceTurn
from tco.core.provenance import P95
from tco.core.types import FloatArray
from tco.scenario.beliefs import Dice, Range
from tco.scenario.distributions import STEPS

NAMED = 3  # prices that an answer names
GROUPS = ("parts", "site", "shares")  # of inputs that are prices
FAR = 2.0  # times as far as the 95th percentile is looked
STEPS_LOOKED = 33  # prices from one end to the other
# relative change of a cost from the 5th percentile of a price to its 95th that turns nothing
SLIGHT = 1e-3


class Priced(NamedTuple):
    """Base-case cost of a rack, and its cost with each input varied.

    The inputs are varied alone.
    """

    name: str
    ranges: Mapping[str, Range]
    base: float  # nan where it misses the speed
    ends: Mapping[str, tuple[float, float]]  # cost at the 5th and the 95th percentile of an input

    def slope(self, path: str) -> float:
        """Return the change in cost per dollar of a price.

        It is zero where the price is none of the rack's inputs, or where a cost is not finite.
        """
        if path not in self.ranges or not np.isfinite(self.base):
            return 0.0
        low, high = self.ends[path]
        change = (high - low) / (self.ranges[path].high - self.ranges[path].low)
        return float(change) if np.isfinite(change) else 0.0


def is_price(path: str) -> bool:
    """Say whether an input is a price of a stated date."""
    attribute = attribute_of_path(path)
    return (
        attribute is not None
        and attribute.group in GROUPS
        and attribute.dated
        and attribute.unit.startswith("USD")
    )


def price_turns(
    racks: Sequence[Priced], drawn: FloatArray, pick: str, dice: Dice
) -> list[PriceTurn]:
    """Return the prices most likely to change the pick at a speed.

    Args:
        racks: Racks that are rated, in the order of the rows of `drawn`.
        drawn: What the work costs each rack in every draw, nan where it misses.
        pick: The rack of least mean regret.
        dice: What the draws were made with.

    Returns:
        At most three prices, the one nearest to its value in standard deviations first.

    """
    price_ranges = {
        path: span
        for rack in racks
        for path, span in rack.ranges.items()
        if is_price(path) and span.shape != STEPS and span.value > 0
    }
    turns = [
        turn
        for path, span in price_ranges.items()
        if (turn := _turn_of(racks, drawn, pick, path, span, dice)) is not None
    ]
    return sorted(turns, key=lambda turn: (turn.sigmas, turn.path))[:NAMED]


def _turn_of(
    racks: Sequence[Priced], drawn: FloatArray, pick: str, path: str, span: Range, dice: Dice
) -> PriceTurn | None:
    """Return the nearest value of a price at which the pick changes.

    The result is None where no price within the range looked at changes the pick.
    """
    slopes = np.array([rack.slope(path) for rack in racks])
    bases = np.array([rack.base if np.isfinite(rack.base) else 1.0 for rack in racks])
    if (np.abs(slopes) * (span.high - span.low) <= SLIGHT * bases).all():
        return None
    price_deviates = span.home + np.linspace(-FAR * P95, FAR * P95, STEPS_LOOKED)
    prices = span.quantile(price_deviates)
    before = span.quantile(dice.correlated_deviates(span))
    means = _mean_shares(drawn, bases, slopes, before, prices, span.value)
    pick_index = [rack.name for rack in racks].index(pick)
    leads = means[:, pick_index] - np.delete(means, pick_index, axis=1).max(axis=1)
    crossing = _nearest_crossing(price_deviates - span.home, leads)
    if crossing is None:
        return None
    offset, beyond = crossing
    other_racks = [rack.name for rack in racks if rack.name != pick]
    rival = other_racks[int(np.delete(means[beyond], pick_index).argmax())]
    turns_at = float(span.quantile(np.array(span.home + offset)))
    rival_index = [rack.name for rack in racks].index(rival)
    even = break_even(bases[[pick_index, rival_index]], slopes[[pick_index, rival_index]], span)
    return PriceTurn(
        path,
        pick,
        rival,
        span.unit,
        span.value,
        turns_at,
        abs(offset),
        span.low,
        span.high,
        even,
        span.stated_quantity,
    )


def _mean_shares(
    drawn: FloatArray,
    bases: FloatArray,
    slopes: FloatArray,
    before: FloatArray,
    prices: FloatArray,
    central_price: float,
) -> FloatArray:
    """Return mean shares of the least cost (rows: prices, columns: racks).

    The share of a rack is the least cost of a draw divided by the rack's cost.
    """
    had = bases[:, None] + slopes[:, None] * (before - central_price)
    missed = np.isnan(drawn)
    relative_slopes = np.where(missed, 0.0, slopes[:, None] * before / had)
    reached, varies = ~missed.all(axis=0), slopes != 0
    costs_or_inf = np.where(missed, np.inf, drawn)[:, reached]
    changes = (prices / central_price - 1)[:, None]
    # most prices move one rack alone: what the others cost is the same at every price
    fixed = costs_or_inf[~varies]
    slopes_reached = relative_slopes[varies][:, None, reached]
    varied = costs_or_inf[varies][:, None] * (1 + slopes_reached * changes)
    least = np.minimum(varied.min(axis=0), fixed.min(axis=0, initial=np.inf))
    means: FloatArray = np.empty((len(prices), len(drawn)))
    means[:, ~varies] = least @ (1 / fixed).T / reached.sum()
    means[:, varies] = (least / varied).mean(axis=2).T
    return means


def _nearest_crossing(offsets: FloatArray, leads: FloatArray) -> tuple[float, int] | None:
    """Return the offset of the nearest crossing, and the first index beyond.

    At the crossing the lead falls below zero. The result is None where the lead is never lost.
    """
    middle = len(offsets) // 2
    crossings = []
    for step in (-1, 1):
        lost = next(
            (
                offset_index
                for offset_index in range(middle + step, len(offsets) if step > 0 else -1, step)
                if leads[offset_index] < 0
            ),
            None,
        )
        if lost is not None:
            inner = lost - step
            share = leads[inner] / (leads[inner] - leads[lost])
            crossings.append(
                (float(offsets[inner] + share * (offsets[lost] - offsets[inner])), lost)
            )
    return min(crossings, key=lambda crossing: abs(crossing[0]), default=None)


def break_even(bases: FloatArray, slopes: FloatArray, span: Range) -> float | None:
    """Return the price at which two base cases cost the same; None where none does."""
    steeper = slopes[0] - slopes[1]
    if steeper == 0:
        return None
    price = span.value - (bases[0] - bases[1]) / steeper
    return float(price) if span.minimum <= price <= span.maximum else None
