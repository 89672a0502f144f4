"""Who does the work at the least cost, speed by speed, and how sure that is: neighbouring speeds of which the same may be said are a regime.

A leader beats each other in most draws; how sure that is, is its chance against the one it beats least often. One that does not reach a
speed loses to all that do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tco.studies.comparison import Regime
from tco.studies.ranges import Array

CLEAR, LIKELY = 0.9, 0.75  # chances from which a lead is called so; below it is too close to call
REACHED = 0.1  # share of draws in which others reach a speed, up to which a leader is alone there


class Costs(NamedTuple):
    """What the work costs each of some scenarios in every draw at one speed, nan where it misses: rows are scenarios."""

    drawn: Array
    ends: Mapping[str, Array] = {}  # with the software of all at an end of its reach


def chances(costs: Array) -> Array:
    """Return the chance of each row to cost less than each other."""
    known = np.where(np.isnan(costs), np.inf, costs)
    found: Array = (known[:, None] < known[None]).mean(axis=2)
    return found


def leader_of(costs: Array) -> tuple[int | None, int | None, float]:
    """Return who beats each other in most draws, whom it beats least often and in which share of draws; no leader where nobody does."""
    many = chances(costs)
    np.fill_diagonal(many, np.inf)
    worst = many.min(axis=1, initial=np.inf)
    best = int(worst.argmax())
    if len(costs) == 1:
        alone = float(np.isfinite(costs).mean())
        return (best if alone >= 0.5 else None), None, alone
    return (best if worst[best] >= 0.5 else None), int(many[best].argmin()), float(worst[best])


def at_speed(names: Sequence[str], costs: Costs) -> Regime:
    """Return what may be said at one speed."""
    place, rival, chance = leader_of(costs.drawn)
    reach = np.isfinite(costs.drawn).mean(axis=1)
    if reach.max() < 0.5:
        return Regime("nobody", None, None, chance)
    ends = {end: names[leads] for end, many in costs.ends.items() if (leads := leader_of(many)[0]) is not None}
    if len({*ends.values()}) > 1:
        kind = "software"
    elif place is not None and (np.delete(reach, place) <= REACHED).all():
        kind = "alone"
    else:
        kind = "close" if place is None or chance < LIKELY else "likely" if chance < CLEAR else "clear"
    return Regime(kind, None if place is None else names[place], None if rival is None else names[rival], chance, ends)


def said(one: Regime) -> tuple[object, ...]:
    """Return what tells a regime from its neighbours: where software decides it is who leads at its ends, and not by what chance."""
    return one.kind, one.by_software, None if one.kind == "software" else one.leader


def joint(one: Regime, other: Regime) -> Regime:
    """Return two neighbours as one: as sure as where it is least, and without a leader where that is not the same."""
    least = min(one, other, key=lambda regime: regime.probability or 0.0)
    same = one.leader == other.leader
    return least._replace(speeds=(*one.speeds, *other.speeds), leader=one.leader if same else None, rival=least.rival if same else None)


def regimes_of(names: Sequence[str], speeds: Sequence[float], costs: Sequence[Costs], drawn: bool) -> list[Regime]:
    """Return what may be said of all speeds, from the lowest on without gaps; a border lies half way, in ratio, between two speeds looked at."""
    if not names:
        return []
    found: list[Regime] = []
    for at, one in enumerate(costs):
        here = at_speed(names, one)._replace(speeds=tuple(speeds[at : at + 1]))
        if found and said(found[-1]) == said(here):
            found[-1] = joint(found[-1], here)
        else:
            found.append(here)
    borders = [None, *(float(f"{(one.speeds[-1] * other.speeds[0]) ** 0.5:.3g}") for one, other in pairwise(found)), None]
    return [
        one._replace(start=start, end=end, probability=one.probability if drawn else None)
        for one, (start, end) in zip(found, pairwise(borders), strict=True)
    ]
