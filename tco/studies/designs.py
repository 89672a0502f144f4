"""Designs held against each other: a system on one of its plans, by cost, throughput, interactivity and power.

A design beats another that it is behind in nothing and ahead of in something. Figures count at the digits that are shown, so that a batch
solved to the last sequence beats none that is as good. Only designs that serve one workload are held against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.chain.metrics import MORE_IS_BETTER
from tco.studies.frontier import Frontier, Point

AXES = ("usd_per_million_output_tokens", "output_tokens_per_s_per_chip", "tokens_per_s_per_user", "tokens_per_s_per_facility_mw")
DIGITS = 4

Array = np.ndarray[Any, Any]


class Design(NamedTuple):
    """A system, or a pair of pools, on one of its plans."""

    frontier: Frontier
    place: int  # of its point on the frontier

    @property
    def point(self) -> Point:
        """The plan, and what it gives."""
        return self.frontier.points[self.place]

    @property
    def figures(self) -> list[float]:
        """What it is held against others by, in the order of `AXES`."""
        return [getattr(self.point, axis) for axis in AXES]


class Held(NamedTuple):
    """A design, and the one that beats it; none where no design does."""

    design: Design
    by: Design | None

    @property
    def changes(self) -> dict[str, float]:
        """What the other has more of, as a share of the design's own; below zero what it has less of."""
        if self.by is None:
            return {}
        return {axis: theirs / own - 1 for axis, own, theirs in zip(AXES, self.design.figures, self.by.figures, strict=True)}

    @property
    def chance(self) -> float | None:
        """The share of draws in which it is beaten still, of those in which either keeps its interactivity; none where nothing was drawn."""
        if self.by is None or not (self.design.frontier.bands and self.by.frontier.bands):
            return None
        own, theirs = (one.frontier.bands[one.place] for one in (self.design, self.by))
        if not (either := own.meets | theirs.meets).any():
            return None
        leads = [sign_of(axis) * (theirs.draws[axis] - own.draws[axis]) for axis in AXES if axis in own.draws]
        beaten = theirs.meets & (~own.meets | (np.minimum.reduce(leads) >= 0))
        return float(beaten[either].mean())


def designs_of(frontiers: Sequence[Frontier]) -> list[Held]:
    """Return every point of some frontiers as a design, the quickest first, each with what beats it.

    All that a system can do lies on its frontier: on one system, or one pair of pools, a plan that makes more at a speed also costs and draws
    less a token. Of several that beat a design the one is named that is furthest ahead where it is least ahead.
    """
    found = []
    for workload in dict.fromkeys(frontier.decode.workload for frontier in frontiers):
        alike = [Design(frontier, place) for frontier in frontiers if frontier.decode.workload == workload for place in range(len(frontier.points))]
        alike.sort(key=lambda design: (-design.point.tokens_per_s_per_user, design.point.usd_per_million_output_tokens))
        best = beaten_by(merits([design.figures for design in alike])) if alike else ()
        found += [Held(design, None if by < 0 else alike[by]) for design, by in zip(alike, best, strict=True)]
    return found


def merits(figures: Sequence[Sequence[float]]) -> Array:
    """Return figures at the digits that count, as logarithms of which more is better; a row for each design."""
    rounded = np.array([[float(f"{figure:.{DIGITS - 1}e}") for figure in row] for row in figures])
    found: Array = np.array([sign_of(axis) for axis in AXES]) * np.log(rounded)
    return found


def sign_of(axis: str) -> float:
    """Return one for an axis of which more is better, else minus one."""
    return 1.0 if axis in MORE_IS_BETTER else -1.0


def beaten_by(merits: Array) -> Array:
    """Return for each row the place of the one that beats it by most where it beats it by least, -1 for a row that none beats.

    What beats a row is at least as good on every axis and better on one; it is itself beaten by none.
    """
    least, most = np.full((len(merits),) * 2, np.inf), np.full((len(merits),) * 2, -np.inf)
    for axis in merits.T:  # rows that may beat stand in columns
        ahead = axis[None, :] - axis[:, None]
        least, most = np.minimum(least, ahead), np.maximum(most, ahead)
    beats = np.asarray((least >= 0) & (most > 0))
    free = ~beats.any(axis=1)
    lead = np.where(beats & free, least, -1.0)
    return np.where(free, -1, lead.argmax(axis=1))
