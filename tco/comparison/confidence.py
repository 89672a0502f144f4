"""Confidence of a comparison, from new draws or from the disk cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.comparison.records import (
    AtSpeed,
    Confidence,
    Driver,
    Later,
    Measurement,
    PriceTurn,
    Regime,
    Sureness,
    speed_of,
    speeds_of,
)
from tco.core.disk_cache import disk_cached
from tco.core.files import data_directory, read_csv
from tco.scenario.document import HEADLINE_DOCUMENTS

if TYPE_CHECKING:
    from tco.evaluation.evaluated_scenario import Evaluation

# in the data: what every shipped system costs at the headline's terms, the least first
RANKS = "ranking.csv"
RANKED = ("system", "usd_per_million_output_tokens", "rests_on")


def confidence_of(
    asked: Sequence[Evaluation],
    baseline: str,
    speeds: Sequence[float] = (),
    hold: bool = False,
    ranges: bool = True,
    why: bool = False,
    seed: int = 0,
    choose: str | None = None,
    racks: int | None = None,
) -> Confidence:
    """Return the confidence of each scenario against the scenario `baseline`.

    The result for shipped scenarios on shipped data is kept until the program or its data change.

    Args:
        asked: Evaluations of the scenarios, the baseline among them.
        baseline: Name of the scenario that the other scenarios are held against.
        speeds: Speeds of the curve, tokens/s per user; empty takes the usual speeds.
        hold: Whether each scenario keeps the plan of its point.
        ranges: Whether inputs are drawn; False finds only the points.
        why: Whether to find the inputs that move each regime.
        seed: Seed of the draws.
        choose: Choices to rate at each speed, as text; None rates no choice.
        racks: Number of racks that hold whole engines; None prices a fleet of any size.

    Raises:
        UsageError: The text of choices cannot be read.
        DataError: A choice is not among the scenarios.

    """
    reference = next(one.result for one in asked if one.result.scenario == baseline)
    how = speeds_of(reference, speeds), hold, ranges, why, seed, choose, racks
    if not all(is_shipped(one) for one in asked):
        return drawn_anew(asked, baseline, *how)
    key = ("confidence", how, tuple(one.name for one in asked), baseline)
    plain = disk_cached(key, lambda: drawn_anew(asked, baseline, *how))
    sure, curve, regimes, left, choices, later, turns = plain
    return Confidence(
        [Sureness(*one)._replace(drivers=[Driver(*each) for each in one[3]]) for one in sure],
        [AtSpeed(*one) for one in curve],
        [regime_of(Regime(*one)) for one in regimes],
        left,
        choices,
        None if later is None else later_of(Later(*later)),
        [PriceTurn(*turn) for turn in turns],
    )


def later_of(plain: Later) -> Later:
    """Return a later comparison from its plain fields."""
    return plain._replace(regimes=[regime_of(Regime(*regime)) for regime in plain.regimes])


def regime_of(plain: Regime) -> Regime:
    """Return a regime from its plain fields."""
    drivers, measurements = (
        [Driver(*each) for each in plain.drivers],
        [Measurement(*each) for each in plain.measurements],
    )
    by_software = {end: tuple(names) for end, names in plain.by_software.items()}
    return plain._replace(
        picks=tuple(plain.picks),
        by_software=by_software,
        speeds=tuple(plain.speeds),
        drivers=drivers,
        measurements=measurements,
        available=tuple(plain.available),
    )


def is_shipped(one: Evaluation) -> bool:
    """Say whether a scenario is one that travels with the program, on the data that does, as it
    stands there.
    """
    catalogue = one.catalogue
    return one.name in catalogue.scenarios and not (
        one.settings or one.saved or catalogue.anchors or len(catalogue.folders) > 1
    )


class Elsewhere(NamedTuple):
    """A shipped system that is not among those compared: what it costs in the middle of its draws,
    and what that rests on.
    """

    system: str
    cost: float
    rests_on: str


def cheaper_elsewhere(asked: Sequence[Evaluation], found: Confidence) -> list[Elsewhere]:
    """Return the shipped systems that cost less than all compared systems.

    Args:
        asked: Evaluations of the compared scenarios.
        found: Confidence of the comparison, with the median costs at each speed.

    Returns:
        Systems with their median cost, USD per million output tokens; empty where a scenario is not
        shipped or is asked for other work than the headline's.

    """
    if not all(is_shipped(one) and one.scenario.documents == HEADLINE_DOCUMENTS for one in asked):
        return []
    costs = [
        one.median_usd_per_million_output_tokens
        for one in found.curve
        if one.tokens_per_s_per_user == speed_of(asked[0].result)
    ]
    least = min((cost for cost in costs if cost is not None), default=0.0)
    rows = [row for _, row in read_csv(data_directory() / RANKS, RANKED)]
    every = [
        Elsewhere(row["system"], float(row["usd_per_million_output_tokens"]), row["rests_on"])
        for row in rows
    ]
    return [
        one
        for one in every
        if one.cost < least and one.system not in {other.result.system for other in asked}
    ]


def drawn_anew(
    asked: Sequence[Evaluation],
    baseline: str,
    speeds: tuple[float, ...],
    hold: bool,
    ranges: bool,
    why: bool,
    seed: int,
    choose: str | None,
    racks: int | None,
) -> Confidence:
    """Draw the inputs of some scenarios, at the order's date and at that when all can be had."""
    from tco.comparison.curve import confidence_in  # what is kept is read without it
    from tco.comparison.delivery import later_comparison

    now = confidence_in(asked, baseline, speeds, hold, ranges, why, seed, choose, racks)
    if hold or not ranges:
        return now
    return now._replace(later=later_comparison(asked, baseline, now, speeds, seed, racks))
