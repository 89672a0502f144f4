"""What the draws say of scenarios side by side.

All scenarios are evaluated in one set of draws, and with every input moved alone, in one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tco.chain.comparable import apart
from tco.chain.draws import Draws
from tco.chain.metrics import PRICED, perf_per_tco
from tco.studies.asking import Asked
from tco.studies.drivers import CENTRE, drivers_of, one_at_a_time, ways
from tco.studies.ranges import Array, Dice, Range, ranges_of, settings_of
from tco.studies.sureness import Driver, Lead, Sureness
from tco.studies.uncertainty import costs, evaluated, sample_of, share, spread, why_undrawable

if TYPE_CHECKING:
    from tco.chain.result import Result

DRAWS, SEED = 512, 0
SHOWN = ("p10", "p50", "p90")


def drawn(asked: Sequence[Asked], baseline: str) -> list[Sureness]:
    """Draw the inputs of some scenarios, and find what became of each against the baseline."""
    dice = Dice(asked[0].catalogue, SEED, 0, DRAWS)
    made = [why_undrawable(one) or moved(one, dice) for one in asked]
    pairs = [(one.result, found) for one, found in zip(asked, made, strict=True)]
    reference = next(pair for pair in pairs if pair[0].scenario == baseline)
    return [
        Sureness({}, None, None, [], found)
        if isinstance(found, str)
        else sureness(
            found, held_against(result, *reference), {other.scenario: lead for other, some in pairs if (lead := lead_of(result, found, other, some))}
        )
        for result, found in pairs
    ]


def held_against(result: Result, baseline: Result, found: Moved | str) -> Moved | None:
    """Return what became of the baseline, if it could be drawn and the result may be held against it."""
    return None if isinstance(found, str) or apart(result, baseline) else found


def lead_of(result: Result, own: Moved, other: Result, found: Moved | str) -> Lead | None:
    """Return how a scenario's performance per cost stands to another's in the draws that both meet; none where nothing can be said of it."""
    if found is own or isinstance(found, str) or apart(result, other):
        return None
    mine, theirs = (next((many for name in PRICED if (many := one.drawn.metrics[name]) is not None), None) for one in (own, found))
    if mine is None or theirs is None or not (both := own.drawn.meets & found.drawn.meets).any():
        return None
    ratios = perf_per_tco(theirs, mine)[both]
    some = spread(ratios)
    return None if some is None else Lead(some["p10"], some["p50"], some["p90"], float((ratios > 1).mean()))


class Moved(NamedTuple):
    """A scenario with its inputs drawn together, and each moved alone."""

    asked: Asked
    ranges: dict[str, Range]
    drawn: Draws
    alone: dict[str, Array] | None  # what a million output tokens cost at the places of each input; none where there are no tokens


def moved(asked: Asked, dice: Dice) -> Moved:
    """Evaluate a scenario in all draws, and with every input moved alone."""
    ranges = ranges_of(asked.result)
    alone = one_at_a_time(ranges)
    places = {path: np.concatenate([dice.places(one), alone[path]]) for path, one in ranges.items()}
    made = evaluated(asked, settings_of(ranges, places))
    some = {name: None if many is None else many[:DRAWS] for name, many in made.metrics.items()}
    found = costs(made)
    paid = None if found is None else np.where(made.meets, found[0], np.nan)[DRAWS:]
    return Moved(asked, ranges, made._replace(metrics=some, meets=made.meets[:DRAWS]), None if paid is None else ways(list(ranges), paid))


def sureness(own: Moved, baseline: Moved | None, leads: dict[str, Lead]) -> Sureness:
    """Hold what became of a scenario against what became of its baseline; `leads` are how it stands to each of the others."""
    sample = sample_of(own.drawn, None if baseline is None else baseline.drawn)
    found = {metric: None if many is None else spread(many) for metric, many in sample.metrics.items()}
    ranges = {metric: None if one is None else {at: one[at] for at in SHOWN} for metric, one in found.items()}
    drivers: list[Driver] = []
    if baseline is not None and own is not baseline and own.alone is not None and baseline.alone is not None:
        drivers = drivers_of(baseline.ranges | own.ranges, own.alone, baseline.alone, lambda path, places: ratio_at(own, baseline, path, places))
    return Sureness(ranges, share(sample.better), share(sample.meets), drivers, draws=DRAWS, leads=leads)


def ratio_at(own: Moved, baseline: Moved, path: str, places: Array) -> Array:
    """Return the performance per cost over the baseline's where one input is moved alone."""
    return np.asarray(perf_per_tco(cost_at(baseline, path, places), cost_at(own, path, places)))


def cost_at(side: Moved, path: str, places: Array) -> Array:
    """Return what a million output tokens cost where one input is moved alone; nan where the target is missed."""
    if path not in side.ranges:
        return np.full(len(places), next(iter((side.alone or {}).values()))[CENTRE])
    still = {path: np.full(len(places), one.home) for path, one in side.ranges.items()}
    made = evaluated(side.asked, settings_of(side.ranges, {**still, path: places}))
    found = costs(made)
    return np.full(len(places), np.nan) if found is None else np.where(made.meets, found[0], np.nan)
