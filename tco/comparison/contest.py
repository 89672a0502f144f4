"""Contest: the rated scenarios of a comparison, their costs of the work, and the pick by speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tco.comparison.records import PriceTurn, Regime
from tco.comparison.regimes import NONE_LATE, Costs, regimes_of
from tco.comparison.regret import Stake, least_regret, stakes
from tco.comparison.sampled_side import SOFTWARE_ENDS, SampledSide
from tco.comparison.turning_points import Priced, price_turns
from tco.core.types import FloatArray
from tco.evaluation.side_by_side import rated_by, unrated
from tco.scenario.beliefs import Dice
from tco.scenario.evaluate_samples import Draws


@dataclass(frozen=True)
class Contest:
    """The rated scenarios of a comparison, and their costs of the work by speed."""

    sides: Sequence[SampledSide]  # by name
    metric: str  # cost of the work
    costs: Mapping[float | None, Costs]  # by speed, each with a row per side
    has_draws: bool  # whether the costs are draws, not base cases

    @property
    def names(self) -> list[str]:
        """Names of the rated scenarios, in the order of the rows of costs."""
        return [side.name for side in self.sides]

    @cached_property
    def stakes_by_speed(self) -> Mapping[float | None, Mapping[str, Stake]]:
        """Stakes by speed and scenario; none without draws or without a choice."""
        return {
            speed: dict(zip(self.names, stakes(costs.drawn), strict=True))
            for speed, costs in self.costs.items()
            if self.has_draws and len(self.sides) > 1
        }

    @cached_property
    def stakes_at_software_ends(self) -> Mapping[float | None, Mapping[str, Mapping[str, Stake]]]:
        """Stakes with the software at either end of its reach, by speed, end and scenario."""
        return {
            speed: {
                end: dict(zip(self.names, stakes(end_costs), strict=True))
                for end, end_costs in self.costs[speed].ends.items()
            }
            for speed in self.stakes_by_speed
        }

    def regimes(self, late: Mapping[str, str] = NONE_LATE) -> list[Regime]:
        """Return the regimes of all speeds; `late` are racks that come too late for the order."""
        speeds = [speed for speed in self.costs if speed is not None]
        return regimes_of(self.names, speeds, list(self.costs.values()), self.has_draws, late)


def contest_of(sides: Sequence[SampledSide], base: SampledSide, has_draws: bool) -> Contest:
    """Return the scenarios that are rated against each other, with their costs of the work.

    Args:
        sides: All scenarios of the comparison.
        base: The baseline, which gives the speeds.
        has_draws: Whether the draws count; False takes the base cases.

    """
    scenario_results = [side.result for side in sides]
    metric = rated_by(scenario_results)
    unrated_names = unrated(scenario_results, base.name)
    rated_sides = [
        side
        for side in sides
        if metric is not None
        and not side.reason
        and side.name not in unrated_names
        and side.speeds == base.speeds
    ]
    # no answer may depend on the order in which the user names the scenarios
    rated_sides.sort(key=lambda side: side.name)
    costs = {
        speed: _costs_at_speed(rated_sides, speed, str(metric), has_draws)
        for speed in base.speeds or (None,)
    }
    return Contest(rated_sides, str(metric), costs, has_draws)


def _costs_at_speed(
    sides: Sequence[SampledSide], speed: float | None, metric: str, has_draws: bool
) -> Costs:
    if not has_draws:
        base_cases = [[side.base_case_metric(speed, metric)] for side in sides]
        return Costs(np.array(base_cases, dtype=float))
    costs = np.array([side.drawn_metric(speed, metric) for side in sides])
    costs_at_ends = [side.metric_at_software_ends(speed, metric) for side in sides]
    if not all(costs_at_ends):
        return Costs(costs)  # some side has no software with a reach
    ends = SOFTWARE_ENDS if sides else ()
    return Costs(
        costs, {end: np.array([by_end[end].draws for by_end in costs_at_ends]) for end in ends}
    )


def pick_turns(
    contest: Contest, regimes: Sequence[Regime], speed: float | None, dice: Dice
) -> list[PriceTurn]:
    """Return the prices most likely to change the pick at a speed.

    Args:
        contest: Rated scenarios with their draws.
        regimes: Regimes of the contest.
        speed: Speed of the pick, tokens/s per user; None for a workload without a speed.
        dice: Random source of the draws.

    Returns:
        Turns, the most likely first; empty where the speed has no pick or no draws.

    """
    regime = next((regime for regime in regimes if speed in (regime.speeds or (None,))), None)
    if regime is None or regime.foremost is None or speed not in contest.stakes_by_speed:
        return []
    costs = contest.costs[speed].drawn
    pick = contest.names[least_regret(costs)[0]]
    racks = [_priced_alone(side, speed, contest.metric) for side in contest.sides]
    return price_turns(racks, costs, pick, dice)


def _priced_alone(side: SampledSide, speed: float | None, metric: str) -> Priced:
    """Return a metric of the base case and with each input moved alone."""
    if side.function is None or side.samples is None:
        return Priced(side.name, {}, np.nan, {})

    def metric_of(draws: Draws) -> FloatArray:
        return side.metric_at_speed(draws, speed, metric)

    base_case, input_ends = side.samples.metric_at_moves(metric_of)
    ends = {
        path: (low, high)
        for path, (low, high) in zip(side.function.ranges, input_ends.tolist(), strict=True)
    }
    return Priced(side.name, side.function.ranges, float(base_case), ends)
