"""How sure a comparison is: for each scenario the range of its metrics, the chance to beat the baseline, and what drives the answer.

All scenarios are evaluated in one set of draws, and with every input moved alone, in one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tco.chain.draws import Draws
from tco.studies.asking import Asked
from tco.studies.drivers import Driver, drivers_of, one_at_a_time, ways
from tco.studies.ranges import Array, Dice, Range, ranges_of, settings_of
from tco.studies.uncertainty import Sample, costs, evaluated, sample_of, share, spread, why_undrawable

DRAWS, SEED = 512, 0
SHOWN = ("p10", "p50", "p90")


class Sureness(NamedTuple):
    """How sure the figures of one scenario are."""

    sample: Sample | None
    drivers: list[Driver]
    reason: str | None = None  # why nothing is known

    def range(self, metric: str) -> dict[str, float] | None:
        """P10, P50 and P90 of a metric; None where it has none."""
        many = None if self.sample is None else self.sample.metrics.get(metric)
        found = None if many is None else spread(many)
        return None if found is None else {at: found[at] for at in SHOWN}

    @property
    def probability(self) -> float | None:
        """The chance to beat the baseline."""
        return share(self.sample.better) if self.sample else None

    @property
    def meets(self) -> float | None:
        """The share of draws that meet the target."""
        return share(self.sample.meets) if self.sample else None


def sureness_of(asked: Sequence[Asked], baseline: str) -> list[Sureness]:
    """Return how sure each of some scenarios is against the one that is named as the baseline."""
    dice = Dice(asked[0].catalogue, SEED, 0, DRAWS)
    made = [why_undrawable(one) or moved(one, dice) for one in asked]
    reference = next(found for one, found in zip(asked, made, strict=True) if one.result.scenario == baseline)
    other = None if isinstance(reference, str) else reference
    return [Sureness(None, [], found) if isinstance(found, str) else sureness(found, other) for found in made]


class Moved(NamedTuple):
    """A scenario with its inputs drawn together, and each moved alone."""

    ranges: dict[str, Range]
    drawn: Draws
    alone: dict[str, Array] | None  # what a million output tokens cost at the places of each input; none where there are no tokens


def moved(asked: Asked, dice: Dice) -> Moved:
    """Evaluate a scenario in all draws, and with every input moved alone."""
    ranges = ranges_of(asked.result)
    alone = one_at_a_time(list(ranges))
    places = {path: np.concatenate([dice.places(one), alone[path]]) for path, one in ranges.items()}
    made = evaluated(asked, settings_of(ranges, places))
    some = {name: None if many is None else many[:DRAWS] for name, many in made.metrics.items()}
    found = costs(made)
    paid = None if found is None else np.where(made.meets, found[0], np.nan)[DRAWS:]
    return Moved(ranges, made._replace(metrics=some, meets=made.meets[:DRAWS]), None if paid is None else ways(list(ranges), paid))


def sureness(own: Moved, baseline: Moved | None) -> Sureness:
    """Hold what became of a scenario against what became of its baseline."""
    sample = sample_of(own.drawn, None if baseline is None else baseline.drawn)
    if baseline is None or own is baseline or own.alone is None or baseline.alone is None:
        return Sureness(sample, [])
    return Sureness(sample, drivers_of(baseline.ranges | own.ranges, own.alone, baseline.alone))
