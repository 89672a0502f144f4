"""Regret: share of spend lost by a choice against the cheapest choice of each draw.

    regret = 1 - share of best,  share of best = least cost of all choices / cost of the choice

The share of best is nought in a draw in which the choice misses the speed. Draws in which every
choice misses the speed are left out. The share of a mix of racks is the sum of their shares,
weighted by dollars. A statement about a speed is made where 95 of 100 resamplings of the draws
agree.

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

RESAMPLINGS = 200
CONFIDENCE = 0.95
INTERVAL = 1.96  # standard errors on either side of a 95 % interval
TIE_TOLERANCE = 1e-12


class Share(NamedTuple):
    """Share of best of a choice over the draws: mean, 10th percentile and median."""

    mean: float
    p10: float
    p50: float


class Stake(NamedTuple):
    """Chance of being cheapest and share of best of a choice."""

    share_cheapest: float  # of the draws, ties split
    share_nobody: float  # of the draws, in which no choice reaches the speed
    share_of_best: Share


class SpendingMix(NamedTuple):
    """A split of spending over scenarios."""

    text: str  # as the user writes it; `A` is all dollars on A
    shares: Mapping[str, float]  # of dollars, by scenario; they sum to 1


def shares_of_best(costs: FloatArray) -> FloatArray:
    """Return the share of best of each choice in each draw that a choice reaches.

    Args:
        costs: Cost of each choice (rows) in each draw (columns), nan where it misses the speed.

    Returns:
        Shares from 0 to 1; draws in which every choice misses are left out.

    """
    costs_or_inf = np.where(np.isnan(costs), np.inf, costs)
    least_costs = costs_or_inf.min(axis=0, initial=np.inf)
    is_reached = np.isfinite(least_costs)
    shares: FloatArray = least_costs[is_reached] / costs_or_inf[:, is_reached]
    return shares


def _summarise(shares: FloatArray) -> Share:
    if not len(shares):
        return Share(0.0, 0.0, 0.0)
    p10, median = quantiles(shares, np.array([0.1, 0.5]))
    return Share(float(shares.mean()), float(p10), float(median))


def stakes(costs: FloatArray) -> list[Stake]:
    """Return the chance and the share of best of each choice.

    Args:
        costs: Cost of each choice (rows) in each draw (columns), nan where it misses the speed.

    """
    shares = shares_of_best(costs)
    reached_draws = shares.shape[1]
    chance_reached = reached_draws / costs.shape[1]
    chances_cheapest = np.zeros(len(costs))
    if reached_draws:
        is_cheapest = shares >= 1 - TIE_TOLERANCE
        tie_parts = is_cheapest / is_cheapest.sum(axis=0)
        chances_cheapest = tie_parts.mean(axis=1) * chance_reached
    return [
        Stake(float(chance), 1 - chance_reached, _summarise(choice_shares))
        for chance, choice_shares in zip(chances_cheapest, shares, strict=True)
    ]


def least_regret(costs: FloatArray) -> list[int]:
    """Return the rows within sampling error of the least mean regret.

    Args:
        costs: Cost of each choice (rows) in each draw (columns), nan where it misses the speed.

    Returns:
        Row numbers, that of least mean regret first; none where no draw is reached.

    """
    is_reached: FloatArray = np.asarray(np.isfinite(costs).any(axis=0))
    if not is_reached.any():
        return []
    shares = np.zeros(costs.shape)
    shares[:, is_reached] = shares_of_best(costs)
    means = shares.sum(axis=1) / is_reached.sum()
    order = np.argsort(-means, kind="stable")
    best = order[0]
    errors = paired_errors(shares[best] - shares, is_reached)
    is_tied = means[best] - means <= INTERVAL * errors
    return [int(choice_index) for choice_index in order if is_tied[choice_index]]


def paired_errors(differences: FloatArray, is_reached: FloatArray) -> FloatArray:
    """Return the standard error of each row's mean over reached draws.

    Args:
        differences: Differences of shares, choices by draws; nought in a draw that is not reached.
        is_reached: Whether any choice reaches the speed, by draw.

    """
    means = differences.sum(axis=1, keepdims=True) / is_reached.sum()
    residuals = np.where(is_reached, differences - means, 0.0)
    if differences.shape[1] % 2 == 0:
        residuals = residuals[:, 0::2] + residuals[:, 1::2]
    observations = residuals.shape[1]
    if observations < 2:
        return np.zeros(len(differences))
    variances = (residuals**2).sum(axis=1) * observations / (observations - 1)
    return np.asarray(np.sqrt(variances) / is_reached.sum())


@cache
def _resampling_weights(draws: int) -> FloatArray:
    """Return the share of each draw (columns) in each resampling (rows)."""

    def make() -> list[AnyArray]:
        chances = np.full(draws, 1 / draws)
        return [np.random.default_rng(0).multinomial(draws, chances, RESAMPLINGS)]

    parts = [f"resamplings {RESAMPLINGS} {draws}".encode()]
    weights: FloatArray = cached_arrays(parts, make)[0] / draws
    return weights


def bootstrap_lower_bound(outcomes: FloatArray) -> float:
    """Return the share of true outcomes that 95 of 100 resamplings reach.

    Args:
        outcomes: Outcome in each draw, or a row of them for each of several statements; the
            statement with the smallest share counts in each resampling.

    """
    resampled_shares = _resampling_weights(outcomes.shape[-1]) @ np.atleast_2d(outcomes).T
    return float(quantiles(resampled_shares.min(axis=1), np.array(1 - CONFIDENCE)))


def parse_mixes(mixes_text: str, scenario_names: Sequence[str]) -> list[SpendingMix]:
    """Parse mixes such as `A,B:0.5+C:0.5`.

    Args:
        mixes_text: Mixes separated by commas; a `+` joins the scenarios of a mix.
        scenario_names: Names that a mix may use.

    Raises:
        UsageError: The shares of a mix are no numbers, are negative or do not sum to 1.
        DataError: A scenario is unknown.

    """
    return [_parse_mix(mix_text, scenario_names) for mix_text in mixes_text.split(",")]


def _parse_mix(mix_text: str, scenario_names: Sequence[str]) -> SpendingMix:
    terms = [_split_term(term.strip()) for term in mix_text.split("+")]
    names = [scenario_name for scenario_name, _ in terms]
    refuse_unknown("scenario to choose", names, scenario_names, "--choose")
    try:
        shares = {scenario_name: float(share_text) for scenario_name, share_text in terms}
    except ValueError:
        raise UsageError(
            f"--choose {mix_text}: expected shares of dollars, such as "
            f"{scenario_names[0]}:0.5+{scenario_names[-1]}:0.5"
        ) from None
    total_share = sum(shares.values())
    is_negative = any(share < 0 for share in shares.values())
    if is_negative or len(shares) < len(names) or abs(total_share - 1) > 1e-6:
        raise UsageError(
            f"--choose {mix_text}: shares of dollars are none below nought and sum to 1; these sum "
            f"to {total_share:g}"
        )
    return SpendingMix(mix_text, shares)


def _split_term(term: str) -> tuple[str, str]:
    scenario_name, colon, share_text = term.rpartition(":")
    return (scenario_name, share_text) if colon else (term, "1")


def share_of_mix(mix: SpendingMix, scenario_names: Sequence[str], costs: FloatArray) -> Share:
    """Return the share of best of a mix.

    Args:
        mix: Shares of dollars by scenario.
        scenario_names: Scenarios of the rows of `costs`.
        costs: Cost of each scenario (rows) in each draw (columns), nan where it misses the speed.

    """
    shares = shares_of_best(costs)
    mix_shares = np.zeros(shares.shape[1])
    for scenario_name, dollar_share in mix.shares.items():
        mix_shares += dollar_share * shares[scenario_names.index(scenario_name)]
    return _summarise(mix_shares)
