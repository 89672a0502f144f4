"""Regret: cost of a choice over the least cost in each draw.

    share_of_best = least cost of all choices / own cost

The share is nought where the choice misses the speed. Draws in which no choice reaches the speed
are left out. The mean share is what a dollar spent on that choice buys of what the best dollar
would have bought. The mean regret is one less the mean share. Of dollars spread over several racks
the share is the sum of their parts. A statement about a speed is made where 95 of 100 resamplings
of the draws agree.

The pick is the choice with the least mean regret. Choices within sampling error of the pick are a
tie: the 95 % interval of the difference of their mean regrets, over the same draws, holds nought.
Two successive draws are antithetic, so a pair of draws is one observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from tco.core.array_cache import cached_arrays
from tco.core.errors import UsageError, refuse_unknown
from tco.core.types import AnyArray, FloatArray
from tco.sampling.uncertainty import quantiles

RESAMPLINGS, SURE = 200, 0.95
INTERVAL = 1.96  # standard errors on either side of a 95 % interval


class Share(NamedTuple):
    """Least cost over a choice's own cost: mean, P10 and P50."""

    mean: float
    p10: float
    p50: float


class Stake(NamedTuple):
    """Chance of being cheapest and share of best of a choice."""

    share_cheapest: float  # of the draws, ties split
    share_nobody: float  # in which no choice reaches the speed
    share_of_best: Share


def shares_of_best(costs: FloatArray) -> FloatArray:
    """Return least cost over each row's cost, in every reached draw.

    `costs` has a row per choice and a column per draw, nan where the choice misses the speed.
    A miss has a share of nought. Draws that no choice reaches are left out.
    """
    costs_or_inf = np.where(np.isnan(costs), np.inf, costs)
    least = costs_or_inf.min(axis=0, initial=np.inf)
    reached = np.isfinite(least)
    best_shares: FloatArray = least[reached] / costs_or_inf[:, reached]
    return best_shares


def _share_of(best_shares: FloatArray) -> Share:
    if not len(best_shares):
        return Share(0.0, 0.0, 0.0)
    low, middle = quantiles(best_shares, np.array([0.1, 0.5]))
    return Share(float(best_shares.mean()), float(low), float(middle))


def stakes(costs: FloatArray) -> list[Stake]:
    """Return the stake of each row of `costs`.

    `costs` has a row per choice and a column per draw.
    """
    best_shares = shares_of_best(costs)
    reached = best_shares.shape[1] / costs.shape[1]
    best = best_shares >= 1 - 1e-12
    cheapest = (
        (best / best.sum(axis=0)).mean(axis=1) * reached
        if best_shares.shape[1]
        else np.zeros(len(costs))
    )
    return [
        Stake(float(share), 1 - reached, _share_of(choice_shares))
        for share, choice_shares in zip(cheapest, best_shares, strict=True)
    ]


def least_regret(costs: FloatArray) -> list[int]:
    """Return the rows within sampling error of the least mean regret.

    Args:
        costs: Cost of each choice (rows) in each draw (columns), nan where it misses.

    Returns:
        Row numbers, the one of least mean regret first; none where no draw is reached.

    """
    reached: FloatArray = np.asarray(np.isfinite(costs).any(axis=0))
    if not reached.any():
        return []
    shares = np.zeros(costs.shape)
    shares[:, reached] = shares_of_best(costs)
    means = shares.sum(axis=1) / reached.sum()
    order = np.argsort(-means, kind="stable")
    behind = shares[order[0]] - shares
    errors = paired_errors(behind, reached)
    return [
        int(choice_index)
        for choice_index in order
        if means[order[0]] - means[choice_index] <= INTERVAL * errors[choice_index]
    ]


def paired_errors(differences: FloatArray, reached: FloatArray) -> FloatArray:
    """Return the standard error of each row's mean over reached draws."""
    draws = differences.shape[1]
    means = differences.sum(axis=1, keepdims=True) / reached.sum()
    residuals = np.where(reached, differences - means, 0.0)
    if draws % 2 == 0:
        residuals = residuals[:, 0::2] + residuals[:, 1::2]
    observations = residuals.shape[1]
    if observations < 2:
        return np.zeros(len(differences))
    variances = (residuals**2).sum(axis=1) * observations / (observations - 1)
    return np.asarray(np.sqrt(variances) / reached.sum())


@cache
def _resamplings(draws: int) -> FloatArray:
    def make() -> list[AnyArray]:
        chances = np.full(draws, 1 / draws)
        return [np.random.default_rng(0).multinomial(draws, chances, RESAMPLINGS)]

    parts = [f"resamplings {RESAMPLINGS} {draws}".encode()]
    draw_weights: FloatArray = cached_arrays(parts, make)[0] / draws
    return draw_weights


def surely(which: FloatArray) -> float:
    """Return the share of draws that is true in 95 of 100 resamplings, the least of the rows."""
    resampled_shares = _resamplings(which.shape[-1]) @ np.atleast_2d(which).T
    return float(quantiles(resampled_shares.min(axis=1), np.array(1 - SURE)))


class SpendingMix(NamedTuple):
    """A rack, or dollars spread over several."""

    text: str
    shares: Mapping[str, float]


def choices_in(choices_text: str, scenario_names: Sequence[str]) -> list[SpendingMix]:
    """Parse choices such as `A,B:0.5+C:0.5`; a bad one raises `UsageError` or `DataError`."""
    spending_mixes = []
    for part in choices_text.split(","):
        pairs = [
            share_text.strip().rpartition(":")
            if ":" in share_text
            else (share_text.strip(), "", "1")
            for share_text in part.split("+")
        ]
        refuse_unknown(
            "scenario to choose",
            [scenario_name for scenario_name, _, _ in pairs],
            scenario_names,
            "--choose",
        )
        try:
            shares = {scenario_name: float(share) for scenario_name, _, share in pairs}
        except ValueError:
            raise UsageError(
                f"--choose {part}: expected shares of dollars, such as "
                f"{scenario_names[0]}:0.5+{scenario_names[-1]}:0.5"
            ) from None
        if (
            any(share < 0 for share in shares.values())
            or len(shares) < len(pairs)
            or abs(sum(shares.values()) - 1) > 1e-6
        ):
            raise UsageError(
                f"--choose {part}: shares of dollars are none below nought and sum to 1; these sum "
                f"to {sum(shares.values()):g}"
            )
        spending_mixes.append(SpendingMix(part, shares))
    return spending_mixes


def rated(choice: SpendingMix, scenario_names: Sequence[str], costs: FloatArray) -> Share:
    """Return the share of best of a spending mix.

    Every dollar counts by its part of the mix.
    """
    best_shares = shares_of_best(costs)
    return _share_of(
        sum(
            (
                share * best_shares[scenario_names.index(scenario_name)]
                for scenario_name, share in choice.shares.items()
            ),
            np.zeros(best_shares.shape[1]),
        )
    )
