"""What the draws say of scenarios side by side.

All scenarios are evaluated in one set of draws, and with every input moved alone, in one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tco.chain.comparable import apart
from tco.chain.metrics import PRICED, perf_per_tco
from tco.studies.asking import Asked
from tco.studies.drawable import drawable, why_undrawable
from tco.studies.drivers import drivers_of
from tco.studies.moving import Moved, moved
from tco.studies.ranges import Array, Dice
from tco.studies.sureness import Driver, Lead, Sureness
from tco.studies.uncertainty import COST, sample_of, share, spread

if TYPE_CHECKING:
    from tco.chain.result import Result

DRAWS, SEED = 512, 0
SHOWN = ("p10", "p50", "p90")


def drawn(asked: Sequence[Asked], baseline: str) -> list[Sureness]:
    """Draw the inputs of some scenarios, and find what became of each against the baseline."""
    dice = Dice(asked[0].catalogue, SEED, 0, DRAWS)
    made = [why_undrawable(one) or moved(drawable(one), dice) for one in asked]
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


def sureness(own: Moved, baseline: Moved | None, leads: dict[str, Lead]) -> Sureness:
    """Hold what became of a scenario against what became of its baseline; `leads` are how it stands to each of the others."""
    sample = sample_of(own.drawn, None if baseline is None else baseline.drawn)
    found = {metric: None if many is None else spread(many) for metric, many in sample.metrics.items()}
    ranges = {metric: None if one is None else {at: one[at] for at in SHOWN} for metric, one in found.items()}
    drivers: list[Driver] = []
    if baseline is not None and own is not baseline and (mine := own.ways(COST)) is not None and (theirs := baseline.ways(COST)) is not None:
        drivers = drivers_of(baseline.ranges | own.ranges, mine, theirs, lambda path, places: ratio_at(own, baseline, {path: places}))
    return Sureness(ranges, share(sample.better), share(sample.meets), drivers, draws=DRAWS, leads=leads)


def ratio_at(own: Moved, baseline: Moved, places: Mapping[str, Array]) -> Array:
    """Return the performance per cost over the baseline's where some inputs are moved."""
    return np.asarray(perf_per_tco(baseline.at(COST, places), own.at(COST, places)))
