"""What the draws say of scenarios side by side.

All scenarios are evaluated in one set of draws, and with every input moved alone, in one pass over arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tco.chain.draws import Draws
from tco.chain.metrics import PRICED
from tco.chain.result import apart
from tco.studies.comparison import Driver, Lead, Sureness
from tco.studies.evaluation import Evaluation
from tco.studies.flips import drivers_of
from tco.studies.ranges import Array, Dice
from tco.studies.response import Quantity, Response, ratios, response_of, valued, why_undrawable
from tco.studies.uncertainty import COST, error_of_share, sample_of, share, spread, why_endless

DRAWS, SEED = 512, 0
SHOWN = ("p10", "p50", "p90")


def drawn(asked: Sequence[Evaluation], baseline: str, hold: bool) -> list[Sureness]:
    """Draw the inputs of some scenarios, and find what became of each against the baseline."""
    dice, samples = Dice(asked[0].catalogue, SEED, 0, DRAWS), dict[int, tuple[Draws, Draws]]()
    made = [why_undrawable(one, hold) or response_of(one, hold) for one in asked]
    costs = [found if isinstance(found, str) else Quantity(COST, found, None, dice, samples) for found in made]
    reference = next(place for place, one in enumerate(asked) if one.result.scenario == baseline)
    found = []
    for place, own in enumerate(costs):
        if isinstance(own, str):
            found.append(Sureness({}, None, None, [], own))
            continue
        base = costs[reference]
        alike = None if isinstance(base, str) or apart(asked[place].result, asked[reference].result) else base.own
        leads = {
            other.result.scenario: lead
            for other, its in zip(asked, costs, strict=True)
            if its is not own and not isinstance(its, str) and not apart(asked[place].result, other.result) and (lead := lead_of(own, its))
        }
        found.append(sureness(own, alike, leads, hold))
    return found


def lead_of(own: Quantity, other: Quantity) -> Lead | None:
    """Return how a scenario's performance per cost stands to another's over the draws; none where one has no cost of its work."""
    mine, theirs = (next((valued(draws, name) for name in PRICED if draws.metrics[name] is not None), None) for draws in (own.draws, other.draws))
    if mine is None or theirs is None:
        return None
    many = ratios(theirs, mine)
    counts = ~np.isnan(many)
    some = spread("perf_per_tco_vs_baseline", many)
    return None if some is None else Lead(some["p10"], some["p50"], some["p90"], float((many[counts] > 1).mean()))


def sureness(own: Quantity, baseline: Response | None, leads: dict[str, Lead], hold: bool) -> Sureness:
    """Hold what became of a scenario against what became of its baseline; `leads` are how it stands to each of the others."""
    ratio = Quantity(COST, own.own, baseline, own.dice, own.samples)
    sample = sample_of(own.draws, None if baseline is None else ratio.sampled(baseline)[0])
    ranges = {metric: range_of(metric, many) for metric, many in sample.metrics.items()}
    drivers: list[Driver] = []
    if baseline is not None and own.own is not baseline and sample.ties is not None:
        drivers = drivers_of(ratio.ranges, ratio.ways(), ratio.together)
    chance = None if own.own is baseline else sample.better
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
