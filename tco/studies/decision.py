"""What a choice stands to lose: in each draw its cost is held against the least that any of the rivals has there.

    share_of_best = least cost of all / own cost, nought where it misses the speed, over the draws in which anybody reaches it

Its mean is what a dollar spent on that choice buys of what the best dollar would have bought, and one less the mean is the expected regret. Of
dollars spread over several racks it is the sum of their parts. What is said of a speed is said where 95 of 100 resamplings of the draws say so too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tco.foundation.errors import UsageError, refuse_unknown
from tco.studies.ranges import Array
from tco.studies.uncertainty import quantiles

RESAMPLINGS, SURE = 200, 0.95
STAYS = 0.015  # what another choice must keep more for it to be changed from one speed to the next


class Share(NamedTuple):
    """What a choice keeps of the best: on average, in the worst tenth of the draws and in the middle."""

    mean: float
    p10: float
    p50: float


class Stake(NamedTuple):
    """How a choice stands at a speed."""

    share_cheapest: float  # of the draws, ties split
    share_nobody: float  # in which no choice reaches the speed
    share_of_best: Share


def shares_of_best(costs: Array) -> Array:
    """Return what each row keeps of the best in every draw that anybody reaches; misses are nan in `costs` (rows by draws), and nought here."""
    known = np.where(np.isnan(costs), np.inf, costs)
    least = known.min(axis=0, initial=np.inf)
    reached = np.isfinite(least)
    found: Array = least[reached] / known[:, reached]
    return found


def share_of(kept: Array) -> Share:
    """Return mean, P10 and P50 of what one choice keeps in the draws; nought without any."""
    if not len(kept):
        return Share(0.0, 0.0, 0.0)
    low, middle = quantiles(kept, np.array([0.1, 0.5]))
    return Share(float(kept.mean()), float(low), float(middle))


def stakes(costs: Array) -> list[Stake]:
    """Return how each row stands."""
    kept = shares_of_best(costs)
    reached = kept.shape[1] / costs.shape[1]
    best = kept >= 1 - 1e-12
    cheapest = (best / best.sum(axis=0)).mean(axis=1) * reached if kept.shape[1] else np.zeros(len(costs))
    return [Stake(float(share), 1 - reached, share_of(own)) for share, own in zip(cheapest, kept, strict=True)]


def chosen(costs: Array, before: int | None = None) -> int:
    """Return the row that keeps most on average, or the one chosen at the speed before as long as none keeps clearly more."""
    means = shares_of_best(costs).mean(axis=1) if np.isfinite(costs).any() else np.zeros(len(costs))
    best = int(means.argmax())
    return before if before is not None and means[before] >= means[best] - STAYS else best


def steady(costs: Array, before: int) -> int:
    """Return the row that keeps most or nearly so: the one given if it does, else the first that does, so that no tie hangs on the seed."""
    means = shares_of_best(costs).mean(axis=1)
    near = means >= means.max() - STAYS
    return before if near[before] else int(near.argmax())


def resamplings(draws: int) -> Array:
    """Return how often each of some draws is drawn when they are drawn again from themselves, over their number: a row for each resampling."""
    found: Array = np.random.default_rng(0).multinomial(draws, np.full(draws, 1 / draws), RESAMPLINGS) / draws
    return found


def surely(which: Array) -> float:
    """Return the share of draws of which something is true in 95 of 100 resamplings of them, the least of the rows of `which`."""
    return float(np.quantile((resamplings(which.shape[-1]) @ np.atleast_2d(which).T).min(axis=1), 1 - SURE))


class Choice(NamedTuple):
    """A rack, or dollars spread over several."""

    text: str
    shares: Mapping[str, float]


def choices_in(text: str, known: Sequence[str]) -> list[Choice]:
    """Return the choices that `A,B:0.5+C:0.5` names; what is none raises `UsageError` or `DataError`."""
    found = []
    for part in text.split(","):
        pairs = [one.strip().rpartition(":") if ":" in one else (one.strip(), "", "1") for one in part.split("+")]
        refuse_unknown("scenario to choose", [name for name, _, _ in pairs], known, "--choose")
        try:
            shares = {name: float(share) for name, _, share in pairs}
        except ValueError:
            raise UsageError(f"--choose {part}: expected shares of dollars, such as {known[0]}:0.5+{known[-1]}:0.5") from None
        if any(share < 0 for share in shares.values()) or len(shares) < len(pairs) or abs(sum(shares.values()) - 1) > 1e-6:
            raise UsageError(f"--choose {part}: shares of dollars are none below nought and sum to 1; these sum to {sum(shares.values()):g}")
        found.append(Choice(part, shares))
    return found


def rated(choice: Choice, names: Sequence[str], costs: Array) -> Share:
    """Return what a choice keeps at a speed: of each dollar its part."""
    kept = shares_of_best(costs)
    return share_of(sum((share * kept[names.index(name)] for name, share in choice.shares.items()), np.zeros(kept.shape[1])))
