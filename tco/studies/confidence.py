"""How sure a comparison is: of each scenario the range of its metrics, the chance to beat the baseline, and what drives the answer.

It is drawn, or kept from when it was: the draws of shipped scenarios on shipped data never change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.studies.cache import kept

if TYPE_CHECKING:
    from tco.studies.evaluation import Evaluation


class Driver(NamedTuple):
    """An input that moves the performance per cost of a scenario."""

    path: str
    swing: float | None  # of the ratio to the baseline, from the input's P5 to its P95; none where it has no end or no value at one of them
    flips_at: float | None  # where in between the ratio passes one; none where it is on one side of it at both ends
    unit: str
    value: float
    shown: tuple[float, str] | None  # value and unit as the catalogue writes them


class Lead(NamedTuple):
    """How the performance per cost of a scenario stands to another's, in the draws in which either meets the target; None is without end."""

    p10: float | None
    p50: float | None
    p90: float | None
    probability: float  # that it is the greater


class Sureness(NamedTuple):
    """How sure the figures of one scenario are."""

    ranges: dict[str, dict[str, Any] | None]  # P10, P50 and P90 of each metric that has some, with the reason where one is none
    probability: float | None  # the chance to beat the baseline, in the draws that are no tie
    meets: float | None  # the share of draws that meet the target
    drivers: list[Driver]
    reason: str | None = None  # why nothing is known
    draws: int = 0
    leads: Mapping[str, Lead] = {}  # against each of the others, by name
    error: float | None = None  # standard error of the chance
    ties: float | None = None  # the share of draws in which neither it nor the baseline meets the target
    hold: bool = False  # whether the plan was that of the point in every draw

    def range(self, metric: str) -> dict[str, Any] | None:
        """P10, P50 and P90 of a metric; None where it has none."""
        return self.ranges.get(metric)


def sureness_of(asked: Sequence[Evaluation], baseline: str, hold: bool = False) -> list[Sureness]:
    """Return how sure each of some scenarios is against the one that is named as the baseline; with `hold` each on the plan of its point.

    Of shipped scenarios on shipped data it is kept until the program or its data change.
    """
    if any(one.settings or one.saved or one.name not in one.catalogue.scenarios or len(one.catalogue.folders) > 1 for one in asked):
        return drawn_anew(asked, baseline, hold)
    name = "-".join(["sureness", *(["held"] if hold else []), *(one.name for one in asked), baseline])
    plain = kept(name, lambda: [one._asdict() for one in drawn_anew(asked, baseline, hold)])
    return [
        Sureness(
            **{**one, "drivers": [Driver(*each) for each in one["drivers"]], "leads": {other: Lead(*lead) for other, lead in one["leads"].items()}}
        )
        for one in plain
    ]


def drawn_anew(asked: Sequence[Evaluation], baseline: str, hold: bool) -> list[Sureness]:
    """Draw the inputs of some scenarios."""
    from tco.studies.side_by_side import drawn  # what is kept is read without it

    return drawn(asked, baseline, hold)
