"""Regimes of a comparison: which racks to pick at which speeds, and how sure that is.

The pick of a speed has the least mean regret; what lies within sampling error of it is a tie, and
all of a tie are picks. How sure a pick is, is its chance to cost less than the rival that it beats
least often. Neighbouring speeds of which the same may be said are one regime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tco.comparison.records import KINDS, Regime
from tco.comparison.regret import bootstrap_lower_bound, least_regret, stakes
from tco.core.types import FloatArray, TextMapping

CLEAR, LIKELY = 0.9, 0.75  # chances from which a lead is called so
REACHED = 0.1  # share of draws in which others reach a speed, up to which a leader is alone there
SERVES = 0.5  # share of draws in which a rack must reach a speed to be a pick there
NONE_LATE: TextMapping = {}


class Costs(NamedTuple):
    """Cost of the work in every draw at one speed, nan where it is missed; a row for each rack."""

    drawn: FloatArray
    ends: Mapping[str, FloatArray] = {}  # with the software of all at an end of its reach


def _regime_at(rack_names: Sequence[str], costs: Costs, late: TextMapping) -> Regime:
    """Return the regime at one speed: kind, picks, rival and probability.

    Args:
        rack_names: Racks, in the order of the rows of `costs`.
        costs: What the work costs each of them in every draw.
        late: Racks that come too late for the order, and the month they come in numbers.

    """
    reach = np.isfinite(costs.drawn).mean(axis=1)
    if reach.max() < SERVES:
        return Regime("nobody", probability=float(reach.max()))
    tied = least_regret(costs.drawn)
    foremost = tied[0]
    shares = stakes(costs.drawn)
    wins = _beats(costs.drawn, foremost)
    chances = wins.mean(axis=1)
    rivals = [
        rack_name for rack_index, rack_name in enumerate(rack_names) if rack_index != foremost
    ]
    software = {
        end: least_regret(drawn) for end, drawn in costs.ends.items() if np.isfinite(drawn).any()
    }
    late_picks = {
        rack_names[rack_index]: late[rack_names[rack_index]]
        for rack_index in tied
        if rack_names[rack_index] in late
    }
    regret_means = [shares[rack_index].share_of_best.mean for rack_index in tied]
    return Regime(
        _kind_of_lead(costs, tied, wins, software),
        picks=_picks_of(rack_names, tied),
        foremost=rack_names[foremost],
        rival=rivals[int(chances.argmin())] if rivals else None,
        probability=float(chances.min()) if rivals else float(reach[foremost]),
        keeps=min(regret_means),
        most=max(regret_means),
        worst=min(shares[rack_index].share_of_best.p10 for rack_index in tied),
        by_software={
            end: _picks_of(rack_names, rack_indices) for end, rack_indices in software.items()
        },
        by_software_keeps={
            end: stakes(costs.ends[end])[rack_indices[0]].share_of_best.mean
            for end, rack_indices in software.items()
        },
        late=late_picks,
        available=_picks_in_time(rack_names, costs, late) if late_picks else (),
    )


def _picks_of(rack_names: Sequence[str], rack_indices: Sequence[int]) -> tuple[str, ...]:
    return tuple(sorted(rack_names[rack_index] for rack_index in rack_indices))


def _picks_in_time(rack_names: Sequence[str], costs: Costs, late: TextMapping) -> tuple[str, ...]:
    rack_indices = [
        rack_index for rack_index, rack_name in enumerate(rack_names) if rack_name not in late
    ]
    drawn = costs.drawn[rack_indices]
    if not rack_indices or np.isfinite(drawn).mean(axis=1).max() < SERVES:
        return ()
    return _picks_of([rack_names[rack_index] for rack_index in rack_indices], least_regret(drawn))


def _kind_of_lead(
    costs: Costs, tied: Sequence[int], wins: FloatArray, software: Mapping[str, Sequence[int]]
) -> str:
    """Return the kind of the foremost pick's lead, from `KINDS`."""
    reach = np.isfinite(costs.drawn).mean(axis=1)
    if (np.delete(reach, tied[0]) <= REACHED).all():
        return "alone"
    if _software_decides(costs, software):
        return "software"
    if len(tied) > 1:
        return "tie"
    chance = bootstrap_lower_bound(wins)
    if chance >= CLEAR:
        return "clear"
    return "likely" if chance >= LIKELY else "close"


def _software_decides(costs: Costs, software: Mapping[str, Sequence[int]]) -> bool:
    if len(software) < 2 or set.intersection(*map(set, software.values())):
        return False
    return all(
        bootstrap_lower_bound(_beats(costs.ends[end], rack_indices[0])) >= LIKELY
        for end, rack_indices in software.items()
    )


def _beats(costs: FloatArray, rack_index: int) -> FloatArray:
    endless = np.where(np.isnan(costs), np.inf, costs)
    return np.asarray(endless[rack_index] < np.delete(endless, rack_index, axis=0))


def otherwise(regime: Regime) -> dict[str, tuple[str, ...]]:
    """Return the picks at an end of software that has none of the regime's picks.

    Args:
        regime: The regime, with its picks at either end of the software's reach.

    Returns:
        Names of racks by end; empty where each end shares a pick with the regime.

    """
    return {
        end: rack_names
        for end, rack_names in regime.by_software.items()
        if rack_names and not set(rack_names) & set(regime.picks)
    }


def _is_alike(regime: Regime, next_regime: Regime) -> bool:
    """Say whether two neighbouring speeds are one regime."""
    if regime.picks != next_regime.picks or (regime.kind == "alone") != (
        next_regime.kind == "alone"
    ):
        return False
    return otherwise(regime) == otherwise(next_regime) and (regime.late, regime.available) == (
        next_regime.late,
        next_regime.available,
    )


def _joined_regime(regime: Regime, next_regime: Regime) -> Regime:
    """Return two neighbours as one, as sure and keeping as little as the lesser."""
    least = min(regime, next_regime, key=lambda either: either.probability or 0.0)
    ends = [end for end in regime.by_software if end in next_regime.by_software]
    common = {
        end: tuple(
            rack_name
            for rack_name in regime.by_software[end]
            if rack_name in next_regime.by_software[end]
        )
        for end in ends
    }
    return least._replace(
        kind=max(regime.kind, next_regime.kind, key=KINDS.index),
        keeps=min(filter(None, (regime.keeps, next_regime.keeps)), default=None),
        most=max(filter(None, (regime.most, next_regime.most)), default=None),
        worst=None
        if regime.worst is None or next_regime.worst is None
        else min(regime.worst, next_regime.worst),
        by_software=common,
        by_software_keeps={
            end: min(regime.by_software_keeps[end], next_regime.by_software_keeps[end])
            for end in ends
        },
        speeds=(*regime.speeds, *next_regime.speeds),
    )


def regimes_of(
    rack_names: Sequence[str],
    speeds: Sequence[float],
    costs: Sequence[Costs],
    drawn: bool,
    late: TextMapping = NONE_LATE,
) -> list[Regime]:
    """Return the regimes of all speeds, from the lowest speed up.

    A border lies half way, in ratio, between two speeds looked at. With fewer than two racks there
    is nothing to pick, so there is no regime.

    Args:
        rack_names: Racks, in the order of the rows of `costs`.
        speeds: Speeds looked at, ascending; none where no speed is asked for.
        costs: What the work costs each rack at each of these speeds.
        drawn: Whether costs are draws, not base cases.
        late: Racks that come too late for the order, and the month they come in numbers.

    """
    if len(rack_names) < 2:
        return []
    regimes: list[Regime] = []
    for index, costs_here in enumerate(costs):
        here = _regime_at(rack_names, costs_here, late)._replace(
            speeds=tuple(speeds[index : index + 1])
        )
        if regimes and _is_alike(regimes[-1], here):
            regimes[-1] = _joined_regime(regimes[-1], here)
        else:
            regimes.append(here)
    borders = [
        None,
        *(
            float(f"{(regime.speeds[-1] * next_regime.speeds[0]) ** 0.5:.3g}")
            for regime, next_regime in pairwise(regimes)
        ),
        None,
    ]
    return [
        regime._replace(start=start, end=end, probability=regime.probability if drawn else None)
        for regime, (start, end) in zip(regimes, pairwise(borders), strict=True)
    ]
