"""What the draws say of scenarios side by side.

All scenarios are evaluated in one set of draws, and with every input moved alone, in one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tco.chain.comparable import apart
from tco.chain.metrics import PRICED
from tco.studies.asking import Asked
from tco.studies.drawable import drawable, why_undrawable
from tco.studies.drivers import drivers_of, on_both
from tco.studies.moving import Moved, moved, valued
from tco.studies.ranges import Array, Dice
from tco.studies.uncertainty import COST, error_of_share, ratios, sample_of, share, spread, why_endless
from tco.studies.verdict import Driver, Lead, Sureness

if TYPE_CHECKING:
    from tco.chain.result import Result

DRAWS, SEED = 512, 0
SHOWN = ("p10", "p50", "p90")


def drawn(asked: Sequence[Asked], baseline: str, hold: bool) -> list[Sureness]:
    """Draw the inputs of some scenarios, and find what became of each against the baseline."""
    dice = Dice(asked[0].catalogue, SEED, 0, DRAWS)
    made = [why_undrawable(one, hold) or moved(drawable(one, hold), dice) for one in asked]
    pairs = [(one.result, found) for one, found in zip(asked, made, strict=True)]
    reference = next(pair for pair in pairs if pair[0].scenario == baseline)
    return [
        Sureness({}, None, None, [], found)
        if isinstance(found, str)
        else sureness(
            found,
            held_against(result, *reference),
            {other.scenario: lead for other, some in pairs if (lead := lead_of(result, found, other, some))},
            hold,
        )
        for result, found in pairs
    ]


def held_against(result: Result, baseline: Result, found: Moved | str) -> Moved | None:
    """Return what became of the baseline, if it could be drawn and the result may be held against it."""
    return None if isinstance(found, str) or apart(result, baseline) else found


def lead_of(result: Result, own: Moved, other: Result, found: Moved | str) -> Lead | None:
    """Return how a scenario's performance per cost stands to another's over the draws; none where nothing can be said of it."""
    if found is own or isinstance(found, str) or apart(result, other):
        return None
    mine, theirs = (next((valued(one.drawn, name) for name in PRICED if one.drawn.metrics[name] is not None), None) for one in (own, found))
    if mine is None or theirs is None:
        return None
    many = ratios(theirs, mine)
    counts = ~np.isnan(many)
    some = spread("perf_per_tco_vs_baseline", many)
    return None if some is None else Lead(some["p10"], some["p50"], some["p90"], float((many[counts] > 1).mean()))


def sureness(own: Moved, baseline: Moved | None, leads: dict[str, Lead], hold: bool) -> Sureness:
    """Hold what became of a scenario against what became of its baseline; `leads` are how it stands to each of the others."""
    sample = sample_of(own.drawn, None if baseline is None else baseline.drawn)
    ranges = {metric: range_of(metric, many) for metric, many in sample.metrics.items()}
    drivers: list[Driver] = []
    if baseline is not None and own is not baseline and sample.ties is not None:
        both = on_both(baseline.ranges | own.ranges, own.ways(COST), baseline.ways(COST))
        moving = {path: ratios(theirs, mine) for path, (mine, theirs) in both.items()}
        drivers = drivers_of(baseline.ranges | own.ranges, moving, lambda places: ratio_at(own, baseline, places))
    chance = None if own is baseline else sample.better
    return Sureness(
        ranges,
        share(sample.better),
        share(sample.meets),
        drivers,
        draws=DRAWS,
        leads=leads,
        error=error_of_share(chance),
        ties=share(sample.ties),
        hold=hold,
    )


def range_of(metric: str, many: Array) -> dict[str, float | str | None] | None:
    """Return P10, P50 and P90 of the draws of a metric, with the reason where one has no value; none where there are none."""
    found = spread(metric, many)
    if found is None:
        return None
    shown: dict[str, float | str | None] = {at: found[at] for at in SHOWN}
    return shown | {"reason": why_endless(metric, many)} if None in shown.values() else shown


def ratio_at(own: Moved, baseline: Moved, places: Mapping[str, Array]) -> Array:
    """Return the performance per cost over the baseline's where some inputs are moved."""
    return ratios(baseline.at(COST, places), own.at(COST, places))
