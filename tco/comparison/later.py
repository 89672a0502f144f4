"""Comparison at the later date when all racks are available, with the inputs of that date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tco.comparison.contest import contest_of
from tco.comparison.records import Confidence, ConfidenceRequest, Later, Regime
from tco.comparison.sampled_side import sample_side
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import late_racks
from tco.evaluation.varied_input import DATE
from tco.sampling.median import DRAWS
from tco.scenario.beliefs import Dice


def later_comparison(
    evaluations: Sequence[Evaluation],
    baseline: str,
    now: Confidence,
    request: ConfidenceRequest,
    dice: Dice,
) -> Later | None:
    """Return the comparison at the date when all racks are available.

    Args:
        evaluations: Evaluations of the scenarios at the date of the order.
        baseline: Name of the scenario that the others are compared with.
        now: Comparison at the date of the order.
        request: Speeds and draws of the comparison.
        dice: Random source of the draws.

    Returns:
        None where all are available within three months of the order, where fewer than two are
        rated, or where a scenario is a saved result.

    """
    rated = [
        evaluation for evaluation in evaluations if evaluation.result.scenario not in now.unrated
    ]
    scenario_results = [evaluation.result for evaluation in rated]
    if not now.regimes or not late_racks(scenario_results):
        return None
    if any(evaluation.saved for evaluation in rated):
        return None
    date = max(
        scenario_result.available.volume
        for scenario_result in scenario_results
        if scenario_result.available is not None
    )
    sides = [
        sample_side(
            evaluation.with_settings({DATE: date}, refuse=False), request, dice, moves=False
        )
        for evaluation in rated
    ]
    base = next((side for side in sides if side.name == baseline), sides[0])
    regimes = contest_of(sides, base, has_draws=True).regimes()
    if not regimes:
        return None
    is_different = _picks_by_speed(regimes) != _picks_by_speed(now.regimes)
    return Later(date=date, draws=DRAWS, regimes=regimes, differs=is_different)


def _picks_by_speed(regimes: Sequence[Regime]) -> Mapping[float | None, tuple[str, ...]]:
    return {speed: regime.picks for regime in regimes for speed in regime.speeds or (None,)}
