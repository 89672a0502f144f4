"""Cost per million tokens by user speed: recommended scenario and its probability.

All scenarios are evaluated in one set of draws and at all speeds in one pass. Beside the draws
every input is moved alone. The first draws are also evaluated with the software of all chips at
either end of its reach. In a draw in which no plan of a scenario reaches a speed, the scenario
loses to all scenarios that reach it. The recommended scenario has the least mean regret. Its
probability is its chance against the rival that it beats least often. Neighbouring speeds with the
same recommendation are a regime.
"""

from __future__ import annotations

from collections.abc import Sequence

from tco.comparison.contest import Contest, contest_of, pick_turns
from tco.comparison.curve_points import curve_points, metric_percentiles, stake_fields
from tco.comparison.later import later_comparison
from tco.comparison.records import Confidence, ConfidenceRequest, Regime, Sureness
from tco.comparison.regret import parse_mixes, share_of_mix
from tco.comparison.sampled_side import SampledSide, sample_side
from tco.core.memory import LazySequence
from tco.core.progress import with_progress
from tco.core.types import JsonObject
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import Driver, late_racks, nearest_speed, rated_by, unrated
from tco.sampling.drivers import leading_drivers
from tco.sampling.median import DRAWS
from tco.sampling.scenario_quantity import SampledScenario, ScenarioQuantity
from tco.sampling.uncertainty import error_of_share, sample_of, share
from tco.scenario.beliefs import Dice
from tco.scenario.result import why_incomparable

SamplesById = dict[int, SampledScenario]  # by the identity of a scenario function


def draw_confidence(
    evaluations: Sequence[Evaluation], baseline: str, request: ConfidenceRequest
) -> Confidence:
    """Draw the inputs of scenarios, and compare each with the baseline at every speed.

    The draws are made at the order's date, and again at the date when all racks are available.

    Args:
        evaluations: Evaluations of the scenarios, the baseline among them.
        baseline: Name of the scenario that the others are compared with.
        request: Speeds and draws of the comparison.

    Raises:
        UsageError: The text of choices cannot be read.
        DataError: A choice is not among the scenarios.

    """
    dice = Dice(evaluations[0].catalogue, request.seed, 0, DRAWS)
    sides = [
        sample_side(evaluation, request, dice)
        for evaluation in with_progress(
            evaluations, lambda evaluation: f"drawing the inputs of {evaluation.name}"
        )
    ]
    scenario_results = [side.result for side in sides]
    base = next(side for side in sides if side.name == baseline)
    contest = contest_of(sides, base, request.ranges)
    regimes = contest.regimes(late_racks(scenario_results))
    samples = {id(side.function): side.samples for side in sides if side.samples is not None}
    confidence = Confidence(
        sure=_sureness_of_sides(sides, base, contest, dice, samples, request),
        curve=[
            point
            for side in sides
            for point in curve_points(side, base, contest, request.ranges, dice)
        ],
        regimes=_with_evidence(regimes, sides, contest, dice, samples) if request.why else regimes,
        unrated=unrated(scenario_results, baseline),
        choices=_rated_choices(request.choose, contest),
        turns=pick_turns(contest, regimes, _speed_of_turns(base), dice),
    )
    if request.hold or not request.ranges:
        return confidence
    later = later_comparison(evaluations, baseline, confidence, request, dice)
    return confidence._replace(later=later)


def _speed_of_turns(base: SampledSide) -> float | None:
    """Return the compared speed nearest to the workload's, which may not be among them."""
    if base.own_speed is None or not base.speeds:
        return None
    return nearest_speed(base.speeds, base.own_speed)


def _rated_choices(choices_text: str | None, contest: Contest) -> list[JsonObject]:
    """Return the share of the best of each choice at every speed; none without choices."""
    if choices_text is None:
        return []
    return [
        {
            "choice": choice.text,
            "tokens_per_s_per_user": speed,
            "share_of_best": share_of_mix(choice, contest.names, costs.drawn)._asdict(),
        }
        for choice in parse_mixes(choices_text, contest.names)
        for speed, costs in contest.costs.items()
    ]


# ---------------------------------------------------------------- why a regime has its pick
def _with_evidence(
    regimes: Sequence[Regime],
    sides: Sequence[SampledSide],
    contest: Contest,
    dice: Dice,
    samples: SamplesById,
) -> list[Regime]:
    """Return regimes with what moves the ratio of leader to rival, where there is a rival."""
    from tco.comparison.evidence_value import regime_with_evidence  # few ask why

    explained_regimes = []
    for regime in regimes:
        ratio = _ratio_to_rival(regime, sides, dice, samples)
        if ratio is None:
            explained_regimes.append(regime)
        else:
            costs = contest.costs[regime.middle_speed].drawn
            explained_regimes.append(regime_with_evidence(regime, ratio, costs, dice.catalogue))
    return explained_regimes


def _ratio_to_rival(
    regime: Regime, sides: Sequence[SampledSide], dice: Dice, samples: SamplesById
) -> ScenarioQuantity | None:
    """Return the performance per cost of a regime's leader over its rival's, at a middle speed.

    Where the two ends of software have different leaders, these are compared with each other. None
    where there is no rival.
    """
    if len(regime.contenders) != 2:
        return None
    sides_by_name = {side.name: side for side in sides}
    leader, rival = map(sides_by_name.get, regime.contenders)
    metric = rated_by([side.result for side in sides])
    if leader is None or rival is None or metric is None:
        return None
    if leader.function is None or rival.function is None:
        return None
    speed = regime.middle_speed
    return ScenarioQuantity(
        metric=metric,
        scenario=leader.function,
        baseline=rival.function,
        dice=dice,
        samples=samples,
        speed=None if speed == leader.own_speed else speed,
    )


# ---------------------------------------------------------------- at the workload's own speed
def _sureness_of_sides(
    sides: Sequence[SampledSide],
    base: SampledSide,
    contest: Contest,
    dice: Dice,
    samples: SamplesById,
    request: ConfidenceRequest,
) -> list[Sureness]:
    """Return the sureness of each scenario with its stakes; empty without draws."""
    if not request.ranges:
        return []
    own_stakes = contest.stakes_by_speed.get(base.own_speed, {})
    return [
        _sureness(side, base, dice, samples, request.hold)._replace(
            **stake_fields(own_stakes.get(side.name))
        )
        for side in sides
    ]


def _sureness(
    side: SampledSide, base: SampledSide, dice: Dice, samples: SamplesById, hold: bool
) -> Sureness:
    """Return ranges, chance and drivers of a scenario against its baseline."""
    if side.function is None or side.samples is None:
        return Sureness({}, None, None, [], side.reason)
    reference = None if why_incomparable(side.result, base.result) else base.samples
    sample = sample_of(side.samples.draws, reference and reference.draws)
    drivers: Sequence[Driver] = []
    metric = rated_by([side.result, base.result])
    if reference is not None and side is not base and metric is not None:
        ratio = ScenarioQuantity(metric, side.function, base.function, dice, samples)
        drivers = LazySequence(
            lambda: leading_drivers(ratio.ranges, ratio.one_at_a_time_values(), ratio.together)
        )
    return Sureness(
        ranges={
            metric_name: metric_percentiles(metric_name, metric_draws)
            for metric_name, metric_draws in sample.metrics.items()
        },
        probability_better_than_baseline=share(sample.better),
        share_of_draws_that_meet_the_target=share(sample.meets),
        drivers=drivers,
        draws=DRAWS,
        probability_error=None if side is base else error_of_share(sample.better),
        ties=share(sample.ties),
        hold=hold,
    )
