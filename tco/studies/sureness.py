"""How sure a comparison is: for each scenario the range of its metrics, the chance to beat the baseline, and what drives the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tco.studies.asking import Asked
from tco.studies.kept import kept


class Driver(NamedTuple):
    """An input that moves the performance per cost of a scenario."""

    path: str
    swing: float  # of the ratio to the baseline, from the input's P5 to its P95
    flips_at: float | None  # where in between the ratio passes one; none where it does not
    unit: str
    value: float
    shown: tuple[float, str] | None  # value and unit as the catalogue writes them


class Lead(NamedTuple):
    """How the performance per cost of a scenario stands to another's, in the draws that both meet."""

    p10: float
    p50: float
    p90: float
    probability: float  # that it is the greater


class Sureness(NamedTuple):
    """How sure the figures of one scenario are."""

    ranges: dict[str, dict[str, float] | None]  # P10, P50 and P90 of each metric that has some
    probability: float | None  # the chance to beat the baseline
    meets: float | None  # the share of draws that meet the target
    drivers: list[Driver]
    reason: str | None = None  # why nothing is known
    draws: int = 0
    leads: Mapping[str, Lead] = {}  # against each of the others, by name

    def range(self, metric: str) -> dict[str, float] | None:
        """P10, P50 and P90 of a metric; None where it has none."""
        return self.ranges.get(metric)


def sureness_of(asked: Sequence[Asked], baseline: str) -> list[Sureness]:
    """Return how sure each of some scenarios is against the one that is named as the baseline.

    The draws of shipped scenarios on shipped data never change, so they are kept until the program or its data does.
    """
    if any(one.settings or one.saved or one.name not in one.catalogue.scenarios or len(one.catalogue.folders) > 1 for one in asked):
        return drawn_anew(asked, baseline)
    name = "-".join(["sureness", *(one.name for one in asked), baseline])
    plain = kept(name, lambda: [one._asdict() for one in drawn_anew(asked, baseline)])
    return [
        Sureness(
            **{**one, "drivers": [Driver(*each) for each in one["drivers"]], "leads": {other: Lead(*lead) for other, lead in one["leads"].items()}}
        )
        for one in plain
    ]


def drawn_anew(asked: Sequence[Asked], baseline: str) -> list[Sureness]:
    """Draw the inputs of some scenarios."""
    from tco.studies.drawing import drawn  # what is kept is read without it

    return drawn(asked, baseline)
