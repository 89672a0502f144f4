"""Which rack to pick at the date when all compared can be had: the same comparison at that date's prices and software."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tco.studies.comparison import Confidence, Later, Regime, late_racks
from tco.studies.curve import DRAWS, Side, contest, on_racks
from tco.studies.evaluation import Evaluation
from tco.studies.ranges import Dice
from tco.studies.regimes import regimes_of
from tco.studies.response import Sampled, response_of, why_undrawable

DATE = "terms.date"


def later_comparison(
    asked: Sequence[Evaluation], baseline: str, now: Confidence, speeds: tuple[float, ...], seed: int, racks: int | None
) -> Later | None:
    """Return the comparison at the date when all compared can be had.

    Returns:
        None where all can be had within three months of the order, or fewer than two are rated.

    """
    rated = [one for one in asked if one.result.scenario not in now.unrated]
    results = [one.result for one in rated]
    if not now.regimes or not late_racks(results) or any(one.saved for one in rated):
        return None
    date = max(result.available.volume for result in results if result.available is not None)
    moved = [ordered_at(one, date) for one in rated]
    dice = Dice(asked[0].catalogue, seed, 0, DRAWS)
    sides = [drawn_side(one, speeds, dice) for one in moved]
    if racks is not None:
        sides = [side._replace(dearer=on_racks(one, side.speeds, racks)) for side, one in zip(sides, moved, strict=True)]
    base = next((side for side in sides if side.result.scenario == baseline), sides[0])
    names, rated_at, costs, drawn = contest(sides, base, True)
    regimes = regimes_of(names, rated_at, costs, drawn)
    return Later(date, DRAWS, regimes, picks_by_speed(regimes) != picks_by_speed(now.regimes)) if regimes else None


def ordered_at(asked: Evaluation, date: str) -> Evaluation:
    """Return a scenario with the prices and software of another date."""
    settings = {**asked.settings, DATE: date}
    return asked._replace(settings=settings, result=asked.again({DATE: date}, refuse=False))


def drawn_side(asked: Evaluation, speeds: tuple[float, ...], dice: Dice) -> Side:
    """Return a scenario in all draws, without what moves it."""
    side = Side(asked.result, speeds, reason=why_undrawable(asked) or "")
    if side.reason:
        return side
    response = response_of(asked)
    others = [speed for speed in speeds if speed != side.own_speed]
    draws = response.at(dice.settings(response.ranges), speeds=others)
    return side._replace(response=response, made=Sampled(draws, draws))


def picks_by_speed(regimes: Sequence[Regime]) -> Mapping[float | None, tuple[str, ...]]:
    """Return the picks at every speed looked at."""
    return {speed: regime.picks for regime in regimes for speed in regime.speeds or (None,)}
