"""Sizing of training clusters: fewest chips that meet a deadline in days.

`chips_in` returns the chips of the fewest whole scale-up domains that finish a job within
`workload.days`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from tco.core.errors import DataError
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import Pure, Token, TokenPerSecond

DAYS = "workload.days"
TRAIN_TOKENS = "workload.train_tokens"
CHIPS = "cluster.chips"
SECONDS_PER_DAY = 86400.0
MOST_CHIPS = 2**20  # chips of the largest cluster that is tried
# Numbers of domains that are tried first, as most jobs divide over them.
SMOOTH_NUMBERS = sorted(2**twos * 3**threes for twos in range(21) for threes in range(13))
LARGEST_JUMP = 16  # largest factor between a number of domains and the one that is tried next
# Share by which a cluster may be larger than the smallest one, if that is more than a domain.
SIZE_TOLERANCE = 2e-3


@formula(unit="s", source="tco-model")
def time_to_train(tokens: Pure, rate: TokenPerSecond, one_token: Token = 1) -> Quantity:
    """Time in which a job sees its tokens, all chips at work: T / R."""
    return tokens * one_token / rate


def chips_in(
    days: float, tokens: float, domain: float, rate: Callable[[float], float | None], where: str
) -> float:
    """Return the chips of the fewest domains that train `tokens` within `days`.

    Args:
        days: Deadline of the job.
        tokens: Tokens to train.
        domain: Chips of a scale-up domain.
        rate: Function of chips that returns tokens/s, or None where the job does not divide over
            the chips or does not fit.
        where: Place of the deadline, for an error.

    Raises:
        DataError: No cluster is fast enough. The error names the fastest one that was tried.

    """
    days_by_domains: dict[int, float] = {}

    def days_or_inf(domains: int) -> float:
        if domains not in days_by_domains:
            token_rate = rate(domains * domain)
            days_by_domains[domains] = float("inf")
            if token_rate:
                seconds = float(time_to_train(tokens, token_rate))
                days_by_domains[domains] = seconds / SECONDS_PER_DAY
        return days_by_domains[domains]

    sizes = [domains for domains in SMOOTH_NUMBERS if domains * domain <= MOST_CHIPS] or [1]
    index = 0
    while index < len(sizes) and days_or_inf(sizes[index]) > days:
        jump = 1.0
        if days_or_inf(sizes[index]) < float("inf"):
            jump = min(days_or_inf(sizes[index]) / days, LARGEST_JUMP)
        next_size = sizes[index] * jump * (1 - SIZE_TOLERANCE)
        index = max(index + 1, bisect_left(sizes, next_size))
    if index >= len(sizes):
        nearest = min(days_by_domains, key=days_by_domains.__getitem__)
        raise DataError(
            f"{where}: {DAYS} is {days:g}: no cluster is as quick; the nearest takes "
            f"{days_by_domains[nearest]:.3g} days, {nearest * domain:,.0f} chips"
        )
    too_small = sizes[index - 1] if index else 0
    large_enough = sizes[index]
    while large_enough - too_small > max(1, int(large_enough * SIZE_TOLERANCE)):
        middle = (large_enough + too_small) // 2
        if days_or_inf(middle) <= days:
            large_enough = middle
        else:
            too_small = middle
    return float(large_enough * domain)
