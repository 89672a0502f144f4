"""Which rack to pick at the date when all compared can be had: the same comparison at that date's
prices and software.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tco.comparison.curve import DRAWS, CurveSamples, contest, on_racks
from tco.comparison.records import Confidence, Later, Regime, late_racks
from tco.comparison.regimes import regimes_of
from tco.evaluation.evaluated_scenario import Evaluation
from tco.sampling.response import Sampled, response_of, why_undrawable
from tco.scenario.beliefs import Dice

DATE = "terms.date"


def later_comparison(
    evaluations: Sequence[Evaluation],
    baseline: str,
    now: Confidence,
    speeds: tuple[float, ...],
    seed: int,
    racks: int | None,
) -> Later | None:
    """Return the comparison at the date when all compared can be had.

    Returns:
        None where all can be had within three months of the order, or fewer than two are rated.

    """
    rated = [
        evaluation for evaluation in evaluations if evaluation.result.scenario not in now.unrated
    ]
    results = [evaluation.result for evaluation in rated]
    if not now.regimes or not late_racks(results) or any(evaluation.saved for evaluation in rated):
        return None
    date = max(result.available.volume for result in results if result.available is not None)
    ordered = [ordered_at(evaluation, date) for evaluation in rated]
    dice = Dice(evaluations[0].catalogue, seed, 0, DRAWS)
    sides = [drawn_side(evaluation, speeds, dice) for evaluation in ordered]
    if racks is not None:
        sides = [
            side._replace(dearer=on_racks(evaluation, side.speeds, racks))
            for side, evaluation in zip(sides, ordered, strict=True)
        ]
    base = next((side for side in sides if side.result.scenario == baseline), sides[0])
    names, rated_at, costs, drawn = contest(sides, base, True)
    regimes = regimes_of(names, rated_at, costs, drawn)
    return (
        Later(date, DRAWS, regimes, picks_by_speed(regimes) != picks_by_speed(now.regimes))
        if regimes
        else None
    )


def ordered_at(evaluation: Evaluation, date: str) -> Evaluation:
    """Return a scenario with the prices and software of another date."""
    settings = {**evaluation.settings, DATE: date}
    return evaluation._replace(
        settings=settings, result=evaluation.again({DATE: date}, refuse=False)
    )


def drawn_side(evaluation: Evaluation, speeds: tuple[float, ...], dice: Dice) -> CurveSamples:
    """Return a scenario in all draws, without what moves it."""
    side = CurveSamples(evaluation.result, speeds, reason=why_undrawable(evaluation) or "")
    if side.reason:
        return side
    response = response_of(evaluation)
    others = [speed for speed in speeds if speed != side.own_speed]
    draws = response.evaluate_at(dice.settings(response.ranges), speeds=others)
    return side._replace(response=response, made=Sampled(draws, draws))


def picks_by_speed(regimes: Sequence[Regime]) -> Mapping[float | None, tuple[str, ...]]:
    """Return the picks at every speed looked at."""
    return {speed: regime.picks for regime in regimes for speed in regime.speeds or (None,)}
