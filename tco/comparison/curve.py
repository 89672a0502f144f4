"""Cost per million tokens by user speed: recommended scenario and its probability.

All scenarios are evaluated in one set of draws and at all speeds in one pass. Beside the draws
every input is moved alone. The first draws are also evaluated with the software of all chips at
either end of its reach. In a draw in which no plan of a scenario reaches a speed, the scenario
loses to all scenarios that reach it. The recommended scenario has the least mean regret. Its
probability is its chance against the rival that it beats least often. Neighbouring speeds with the
same recommendation are a regime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tco.comparison.records import (
    AtSpeed,
    Confidence,
    ConfidenceRequest,
    Later,
    PriceTurn,
    Regime,
    Sureness,
)
from tco.comparison.regimes import NONE_LATE, Costs, regimes_of
from tco.comparison.regret import Stake, least_regret, parse_mixes, share_of_mix, stakes
from tco.comparison.turning_points import Priced, price_turns
from tco.core.memory import LazySequence
from tco.core.progress import with_progress
from tco.core.types import FloatArray, JsonObject
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction
from tco.evaluation.side_by_side import SPEED, Driver, late_racks, rated_by, speed_of, unrated
from tco.evaluation.varied_input import DATE
from tco.performance.serving.record import ServingResult
from tco.performance.software_maturity import REACH
from tco.sampling.drivers import leading_drivers, rank_share
from tco.sampling.median import DRAWS
from tco.sampling.scenario_quantity import (
    SampledScenario,
    ScenarioQuantity,
    finite_or_none,
    metric_or_nan,
    ratios,
    sample_with_moves,
)
from tco.sampling.uncertainty import (
    COST,
    draw_statistics,
    error_of_share,
    sample_of,
    share,
    why_endless,
)
from tco.scenario.beliefs import Dice
from tco.scenario.evaluate_samples import Draws
from tco.scenario.metrics import TOKENS, perf_per_tco
from tco.scenario.result import Result, why_incomparable

SOFTWARE_DRAWS = 128  # draws that are repeated with the software at an end of its reach
SHOWN = ("p10", "p50", "p90")  # percentiles of metrics
ALONG = ("p5", "p10", "p50", "p90", "p95")  # percentiles of points of the curve
NO_END = {"perf_per_tco_vs_baseline": None, "probability": None}  # of software that has no ends
# ends of the reach of an owner's software, and their names
ENDS = {"public": 0.0, "best": 1.0}
UNREACHED = "no plan that fits memory gives a user {:g} tokens/s"


class SampledSide(NamedTuple):
    """A scenario of a comparison with its samples, or the reason why it has none."""

    evaluation: Evaluation
    speeds: tuple[float, ...]  # tokens/s per user, in rising order
    function: ScenarioFunction | None = None
    samples: SampledScenario | None = None
    reason: str = ""  # why it has no samples
    # by speed: cost of tokens of whole engines on a number of racks, over that of a fleet
    rack_factors: Mapping[float, float] = {}

    @property
    def result(self) -> Result:
        """Result of the base case."""
        return self.evaluation.result

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return self.result.scenario

    @property
    def own_speed(self) -> float | None:
        """Speed that the workload asks for, tokens/s per user."""
        return speed_of(self.result)

    def draws_at_speed(self, draws: Draws, speed: float | None) -> Draws:
        """Return draws at a speed; None is the speed of the workload."""
        return draws if speed in (None, self.own_speed) else draws.by_speed[speed]

    def rack_factor(self, speed: float | None, metric: str) -> float:
        """Return the factor on a metric at a speed for chips of the racks that engines leave idle.

        It is 1 for metrics other than the cost per million output tokens.
        """
        own_speed = self.own_speed if speed is None else speed
        if metric != COST or own_speed is None:
            return 1.0
        return self.rack_factors.get(own_speed, 1.0)

    def metric_at_speed(self, draws: Draws, speed: float | None, metric: str) -> FloatArray:
        """Return a metric of draws at a speed; None is the speed of the workload."""
        metric_draws = metric_or_nan(self.draws_at_speed(draws, speed), metric)
        return metric_draws * self.rack_factor(speed, metric)

    def drawn_metric(self, speed: float | None, metric: str) -> FloatArray:
        """Return a metric in all draws at a speed, nan without samples."""
        if self.samples is None:
            return np.full(DRAWS, np.nan)
        return self.metric_at_speed(self.samples.draws, speed, metric)

    def point(self, speed: float | None, metric: str = COST) -> float | None:
        """Return a metric of the base case at a speed.

        An unknown or infinite value is None. Without samples only the workload's own speed has a
        value.
        """
        if speed in (None, self.own_speed):
            metric_value = self.result.metrics[metric]
            return (
                None
                if metric_value is None
                else finite_or_none(metric_value * self.rack_factor(speed, metric))
            )
        if self.samples is None:
            return None
        return finite_or_none(self.metric_at_speed(self.samples.single_moves, speed, metric)[0])


@dataclass(frozen=True)
class Contest:
    """The rated scenarios of a comparison, and their costs of the work by speed."""

    names: list[str]
    costs: Mapping[float | None, Costs]  # by speed, each with a row per name
    has_draws: bool  # whether the costs are draws, not base cases

    @cached_property
    def stakes(self) -> Mapping[float | None, Mapping[str, Stake]]:
        """Stakes by speed and scenario; none without draws or without a choice."""
        return {
            speed: dict(zip(self.names, stakes(costs.drawn), strict=True))
            for speed, costs in self.costs.items()
            if self.has_draws and len(self.names) > 1
        }

    @cached_property
    def stakes_at_ends(self) -> Mapping[float | None, Mapping[str, list[Stake]]]:
        """Stakes with the software at either end of its reach, by speed and end."""
        return {
            speed: {end: stakes(costs) for end, costs in self.costs[speed].ends.items()}
            for speed in self.stakes
        }

    def regimes(self, late: Mapping[str, str] = NONE_LATE) -> list[Regime]:
        """Return the regimes of all speeds; `late` are racks that come too late for the order."""
        speeds = [speed for speed in self.costs if speed is not None]
        return regimes_of(self.names, speeds, list(self.costs.values()), self.has_draws, late)


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
    drawn = with_progress(
        evaluations, lambda evaluation: f"drawing the inputs of {evaluation.name}"
    )
    sides = [sample_side(evaluation, request, dice) for evaluation in drawn]
    scenario_results = [side.result for side in sides]
    base = next(side for side in sides if side.name == baseline)
    contest = _contest_of(sides, base, request.ranges)
    curve = [
        _with_stakes(point, contest)
        for side in sides
        for point in _curve_points(side, base, request.ranges, dice)
    ]
    regimes = contest.regimes(late_racks(scenario_results))
    samples = {id(side.function): side.samples for side in sides if side.samples is not None}
    if request.why:
        regimes = [
            _with_evidence(regime, _quantity_of(regime, sides, dice, samples), contest)
            for regime in regimes
        ]
    sureness = []
    own_stakes = contest.stakes.get(base.own_speed, {})
    for side in sides if request.ranges else ():
        side_sureness = _sureness(side, base, dice, samples, request.hold)
        sureness.append(side_sureness._replace(**_stake_fields(own_stakes.get(side.name))))
    confidence = Confidence(
        sureness,
        curve,
        regimes,
        unrated(scenario_results, baseline),
        _rated_choices(request.choose, contest) if request.choose is not None else [],
        turns=turns_at(base.own_speed, sides, regimes, contest, dice),
    )
    if request.hold or not request.ranges:
        return confidence
    later = _later_comparison(evaluations, baseline, confidence, request, dice)
    return confidence._replace(later=later)


def sample_side(
    evaluation: Evaluation, request: ConfidenceRequest, dice: Dice, moves: bool = True
) -> SampledSide:
    """Evaluate a scenario in all draws, or with every input at its value.

    Args:
        evaluation: Evaluation of the scenario.
        request: Speeds and draws of the comparison.
        dice: Random source of the draws.
        moves: Whether each input is also moved alone, and software to the ends of its reach.

    """
    scenario_result = evaluation.result
    own_speed = speed_of(scenario_result)
    speeds = tuple(request.speeds) if own_speed is not None else ()
    side = SampledSide(evaluation, speeds, reason=evaluation.why_undrawable(request.hold) or "")
    if request.racks is not None:
        side = side._replace(rack_factors=_rack_factors(evaluation, speeds, request.racks))
    if side.reason:
        return side
    function = evaluation.drawn_function(request.hold)
    other_speeds = [speed for speed in speeds if speed != own_speed]
    if request.ranges and moves:
        ends = [{REACH: end} for end in ENDS.values()] if REACH in function.ranges else []
        samples = sample_with_moves(function, dice, other_speeds, ends, SOFTWARE_DRAWS)
        return side._replace(function=function, samples=samples)
    # without moves the draws, or the base case, stand for both parts of the samples
    if request.ranges:
        draws = function.sample(dice, other_speeds)
    elif own_speed is not None:
        target = {SPEED: (np.array([own_speed]), scenario_result.inputs[SPEED].unit)}
        draws = function.draws(target, speeds=other_speeds)
    else:
        return side._replace(function=function)
    return side._replace(function=function, samples=SampledScenario(draws, draws))


def _rack_factors(
    evaluation: Evaluation, speeds: Sequence[float], racks: int
) -> dict[float, float]:
    """Return the cost of tokens of whole engines on `racks` racks over that of a fleet.

    Returns:
        Factors by speed, at least 1; infinite where no engine fits on the racks.

    """
    factors_or_inf = {}
    for speed in speeds:
        scenario_result = evaluation.result
        if speed != speed_of(scenario_result):
            scenario_result = evaluation.function(refuse=False).result({SPEED: f"{speed} token/s"})
        metrics, serving = scenario_result.metrics, scenario_result.serving
        chips = int(racks * float(metrics["chips"]) / float(metrics["racks"]))
        on_racks = serving.on(chips) if isinstance(serving, ServingResult) else None
        fleet_rate = metrics[TOKENS]
        if on_racks is None or not fleet_rate:
            factors_or_inf[speed] = np.inf
        else:
            factors_or_inf[speed] = max(fleet_rate / on_racks.output_tokens_per_s_per_chip, 1.0)
    return factors_or_inf


def _contest_of(sides: Sequence[SampledSide], base: SampledSide, has_draws: bool) -> Contest:
    """Return the scenarios that are rated against each other, with their costs of the work.

    Args:
        sides: All scenarios of the comparison.
        base: The baseline, which gives the speeds.
        has_draws: Whether the draws count; False takes the base cases.

    """
    metric = rated_by([side.result for side in sides])
    unrated_names = unrated([side.result for side in sides], base.name)
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
    return Contest([side.name for side in rated_sides], costs, has_draws)


def _costs_at_speed(
    sides: Sequence[SampledSide], speed: float | None, metric: str, has_draws: bool
) -> Costs:
    if not has_draws:
        return Costs(np.array([[side.point(speed, metric)] for side in sides], dtype=float))
    draws_at_ends = [side.samples.fixed if side.samples is not None else () for side in sides]
    ends = {}
    # without samples at the ends of software there is no end
    for end, end_draws in zip(ENDS, zip(*draws_at_ends, strict=True), strict=False):
        ends[end] = np.array(
            [
                side.metric_at_speed(draws, speed, metric)[1:]  # the first is the base case
                for side, draws in zip(sides, end_draws, strict=True)
            ]
        )
    return Costs(np.array([side.drawn_metric(speed, metric) for side in sides]), ends)


def turns_at(
    speed: float | None,
    sides: Sequence[SampledSide],
    regimes: Sequence[Regime],
    contest: Contest,
    dice: Dice,
) -> list[PriceTurn]:
    """Return the prices most likely to change the pick at a speed."""
    regime = next((regime for regime in regimes if speed in (regime.speeds or (None,))), None)
    if regime is None or regime.foremost is None or speed not in contest.stakes:
        return []
    named = {side.name: side for side in sides}
    metric = str(rated_by([side.result for side in sides]))
    costs = contest.costs[speed].drawn
    racks = [_priced_alone(named[scenario_name], speed, metric) for scenario_name in contest.names]
    return price_turns(racks, costs, contest.names[least_regret(costs)[0]], dice)


def _priced_alone(side: SampledSide, speed: float | None, metric: str) -> Priced:
    """Return a metric of the base case and with each input moved alone."""
    if side.function is None or side.samples is None:
        return Priced(side.name, {}, np.nan, {})
    # the base case, then the low and the high end of each input
    base_value, *end_values = side.metric_at_speed(
        side.samples.single_moves, speed, metric
    ).tolist()
    ends_by_input = zip(end_values[0::2], end_values[1::2], strict=True)
    ends = dict(zip(side.function.ranges, ends_by_input, strict=True))
    return Priced(side.name, side.function.ranges, base_value, ends)


def _stake_fields(stake: Stake | None) -> JsonObject:
    """Return the chance of being cheapest and the share of the best, none without a stake."""
    if stake is None:
        return {}
    return {
        "share_cheapest": stake.share_cheapest,
        "share_of_best": stake.share_of_best._asdict(),
    }


def _with_stakes(point: AtSpeed, contest: Contest) -> AtSpeed:
    """Return a point with its stakes, also with the software at either end of its reach."""
    speed = point.tokens_per_s_per_user
    stake = contest.stakes.get(speed, {}).get(point.scenario)
    if stake is None:
        return point
    scenario_index = contest.names.index(point.scenario)
    by_software = {
        end: {
            **(point.by_software or {}).get(end, NO_END),
            "share_of_best": end_stakes[scenario_index].share_of_best.mean,
        }
        for end, end_stakes in contest.stakes_at_ends[speed].items()
    }
    return point._replace(
        share_nobody=stake.share_nobody, by_software=by_software or None, **_stake_fields(stake)
    )


def _with_evidence(regime: Regime, ratio: ScenarioQuantity | None, contest: Contest) -> Regime:
    """Return a regime with what moves its ratio of leader to rival, if there is one."""
    from tco.comparison.evidence_value import regime_with_evidence  # few ask why

    if ratio is None:
        return regime
    costs = contest.costs[regime.middle_speed].drawn
    return regime_with_evidence(regime, ratio, costs, ratio.dice.catalogue)


def _rated_choices(choices_text: str, contest: Contest) -> list[JsonObject]:
    """Return the share of the best of each choice at every speed."""
    return [
        {
            "choice": choice.text,
            "tokens_per_s_per_user": speed,
            "share_of_best": share_of_mix(choice, contest.names, costs.drawn)._asdict(),
        }
        for choice in parse_mixes(choices_text, contest.names)
        for speed, costs in contest.costs.items()
    ]


# ---------------------------------------------------------------- when all racks are available
def _later_comparison(
    evaluations: Sequence[Evaluation],
    baseline: str,
    now: Confidence,
    request: ConfidenceRequest,
    dice: Dice,
) -> Later | None:
    """Return the comparison at the date when all racks are available.

    Returns:
        None where all are available within three months of the order, where fewer than two are
        rated, or where a scenario is a saved result.

    """
    rated_now = [
        evaluation for evaluation in evaluations if evaluation.result.scenario not in now.unrated
    ]
    scenario_results = [evaluation.result for evaluation in rated_now]
    if not now.regimes or not late_racks(scenario_results):
        return None
    if any(evaluation.saved for evaluation in rated_now):
        return None
    date = max(
        scenario_result.available.volume
        for scenario_result in scenario_results
        if scenario_result.available is not None
    )
    sides = [
        sample_side(evaluation.with_settings({DATE: date}, refuse=False), request, dice, False)
        for evaluation in rated_now
    ]
    base = next((side for side in sides if side.name == baseline), sides[0])
    regimes = _contest_of(sides, base, True).regimes()
    if not regimes:
        return None
    return Later(date, DRAWS, regimes, _picks_by_speed(regimes) != _picks_by_speed(now.regimes))


def _picks_by_speed(regimes: Sequence[Regime]) -> Mapping[float | None, tuple[str, ...]]:
    return {speed: regime.picks for regime in regimes for speed in regime.speeds or (None,)}


# ---------------------------------------------------------------- at each speed
def _curve_points(
    side: SampledSide, base: SampledSide, has_draws: bool, dice: Dice
) -> Iterator[AtSpeed]:
    """Yield the cost per million tokens at each speed, compared with the baseline."""
    comparable = side is base or not why_incomparable(side.result, base.result)
    costs = _monotone_costs_by_speed(side)
    references = _monotone_costs_by_speed(base) if comparable else {}
    for speed in side.speeds:
        cost, reference = costs[speed], references.get(speed)
        point = AtSpeed(side.name, speed, cost)
        if cost is None:
            why = side.reason or side.result.costless or UNREACHED.format(speed)
            point = point._replace(note=why)
        elif reference is not None:
            point = point._replace(perf_per_tco_vs_baseline=float(perf_per_tco(reference, cost)))
        if has_draws and side.samples is not None:
            statistics = draw_statistics(COST, side.drawn_metric(speed, COST)) or {}
            point = point._replace(
                meets=share(side.draws_at_speed(side.samples.draws, speed).meets),
                median_usd_per_million_output_tokens=statistics.get("p50"),
                p10_usd_per_million_output_tokens=statistics.get("p10"),
                p90_usd_per_million_output_tokens=statistics.get("p90"),
            )
            if side is not base and comparable and base.samples and speed in base.speeds:
                point = _with_ratio(point, side, base, dice)
        yield point


def _with_ratio(point: AtSpeed, side: SampledSide, base: SampledSide, dice: Dice) -> AtSpeed:
    """Return a point with its ratio to the baseline in the draws."""
    speed = point.tokens_per_s_per_user
    draws = ratios(base.drawn_metric(speed, COST), side.drawn_metric(speed, COST))
    is_better = draws > 1
    note = point.note
    if note is None and np.isnan(draws).all():
        note = "neither it nor the baseline reaches this speed in any draw"
    return point._replace(
        range=metric_percentiles("perf_per_tco_vs_baseline", draws, ALONG),
        probability_better_than_baseline=share(is_better),
        probability_error=error_of_share(is_better),
        ties=share(np.isnan(draws)),
        by_software=_ratios_at_ends(side, base, speed),
        software_share_of_range=_software_share(side, base, draws, dice),
        note=note,
    )


def _monotone_costs_by_speed(side: SampledSide) -> dict[float, float | None]:
    """Return cost per million output tokens at each speed, made monotone.

    A plan that reaches a quicker speed reaches a slower one, which so never costs more.
    """
    costs: dict[float, float | None] = {}
    least: float | None = None
    for speed in reversed(side.speeds):
        cost = side.point(speed)
        if cost is not None and (least is None or cost < least):
            least = cost
        costs[speed] = least
    return costs


def _ratios_at_ends(
    side: SampledSide, base: SampledSide, speed: float
) -> dict[str, dict[str, float | None]] | None:
    """Return performance per cost and chance with the software at either end of its reach."""
    if side.samples is None or base.samples is None:
        return None
    if not side.samples.fixed or not base.samples.fixed:
        return None
    by_end = {}
    for end, draws, references in zip(ENDS, side.samples.fixed, base.samples.fixed, strict=True):
        end_ratios = ratios(
            base.metric_at_speed(references, speed, COST), side.metric_at_speed(draws, speed, COST)
        )
        by_end[end] = {
            "perf_per_tco_vs_baseline": finite_or_none(end_ratios[0]),
            "probability": share(end_ratios[1:] > 1),
        }
    return by_end


def _software_share(
    side: SampledSide, base: SampledSide, draws: FloatArray, dice: Dice
) -> float | None:
    """Return the share of the ratio's variance that the reach of software explains."""
    for function in (side.function, base.function):
        if function is not None and REACH in function.ranges:
            return rank_share(draws, [dice.correlated_deviates(function.ranges[REACH])])
    return None


def _quantity_of(
    regime: Regime,
    sides: Sequence[SampledSide],
    dice: Dice,
    samples: dict[int, SampledScenario],
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
        metric,
        leader.function,
        rival.function,
        dice,
        samples,
        None if speed == leader.own_speed else speed,
    )


# ---------------------------------------------------------------- at the workload's own speed
def _sureness(
    side: SampledSide,
    base: SampledSide,
    dice: Dice,
    samples: dict[int, SampledScenario],
    hold: bool,
) -> Sureness:
    """Return ranges, chance and drivers of a scenario against its baseline."""
    if side.function is None or side.samples is None:
        return Sureness({}, None, None, [], side.reason)
    reference = None if why_incomparable(side.result, base.result) else base.samples
    sample = sample_of(side.samples.draws, reference and reference.draws)
    ranges = {metric: metric_percentiles(metric, draws) for metric, draws in sample.metrics.items()}
    drivers: Sequence[Driver] = []
    metric = rated_by([side.result, base.result])
    if reference is not None and side is not base and metric is not None:
        ratio = ScenarioQuantity(metric, side.function, base.function, dice, samples)
        drivers = LazySequence(
            lambda: leading_drivers(ratio.ranges, ratio.one_at_a_time_values(), ratio.together)
        )
    return Sureness(
        ranges,
        share(sample.better),
        share(sample.meets),
        drivers,
        draws=DRAWS,
        probability_error=None if side is base else error_of_share(sample.better),
        ties=share(sample.ties),
        hold=hold,
    )


def metric_percentiles(
    metric: str, draws: FloatArray, percentile_names: Sequence[str] = SHOWN
) -> JsonObject | None:
    """Return percentiles of the draws of a metric, with the reason where one has no value.

    Returns:
        Percentiles by name, and the reason; None where the draws have no percentiles.

    """
    statistics = draw_statistics(metric, draws)
    if statistics is None:
        return None
    percentiles: JsonObject = {
        percentile_name: statistics[percentile_name] for percentile_name in percentile_names
    }
    if None in percentiles.values():
        percentiles["reason"] = why_endless(metric, draws)
    return percentiles
