"""Sizing of training clusters: fewest chips that meet a deadline in days.

`chips_in` takes as few whole scale-up domains as finish the job within `workload.days`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from tco.core.errors import DataError
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import Pure, Token, TokenPerSecond

DAYS, TOKENS, CHIPS = "workload.days", "workload.train_tokens", "cluster.chips"
DAY = 86400.0  # seconds
MOST = 2**20  # chips of a cluster
# domains that are tried first: most jobs divide over them
SMOOTH = sorted(2**twos * 3**threes for twos in range(21) for threes in range(13))
FARTHEST = 16  # times as many domains that are tried next
# share by which a cluster may be larger than it need be, where that is more than a domain
NEAR = 2e-3


@formula(unit="s", source="tco-model")
def time_to_train(tokens: Pure, rate: TokenPerSecond, one_token: Token = 1) -> Quantity:
    """Time in which a job sees its tokens, all chips at work: T / R."""
    return tokens * one_token / rate


def chips_in(
    days: float, tokens: float, domain: float, rate: Callable[[float], float | None], where: str
) -> float:
    """Return the chips of the fewest domains that train `tokens` within `days`.

    Without any, `DataError` names the nearest cluster.

    `rate` gives the tokens a second of a cluster, none where the job does not divide over it, or
    does not fit.
    """
    days_by_domains: dict[int, float] = {}

    def taken(domains: int) -> float:
        if domains not in days_by_domains:
            token_rate = rate(domains * domain)
            days_by_domains[domains] = (
                float(time_to_train(tokens, token_rate)) / DAY if token_rate else float("inf")
            )
        return days_by_domains[domains]

    steps = [domains for domains in SMOOTH if domains * domain <= MOST] or [1]
    index = 0
    while index < len(steps) and taken(steps[index]) > days:
        ahead = (
            min(taken(steps[index]) / days, FARTHEST) if taken(steps[index]) < float("inf") else 1.0
        )
        index = max(index + 1, bisect_left(steps, steps[index] * ahead * (1 - NEAR)))
    if index >= len(steps):
        nearest = min(days_by_domains, key=days_by_domains.__getitem__)
        raise DataError(
            f"{where}: {DAYS} is {days:g}: no cluster is as quick; the nearest takes "
            f"{days_by_domains[nearest]:.3g} days, {nearest * domain:,.0f} chips"
        )
    least, size = (steps[index - 1] if index else 0), steps[index]
    while size - least > max(1, int(size * NEAR)):
        middle = (size + least) // 2
        size, least = (middle, least) if taken(middle) <= days else (size, middle)
    return float(size * domain)
