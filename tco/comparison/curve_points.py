"""Points of a curve: cost per million tokens at each speed, and the ratio to the baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tco.comparison.contest import Contest
from tco.comparison.records import AtSpeed
from tco.comparison.regret import Stake
from tco.comparison.sampled_side import SampledSide
from tco.core.types import FloatArray, JsonObject
from tco.performance.software_maturity import REACH
from tco.sampling.drivers import rank_share
from tco.sampling.scenario_quantity import finite_or_none, ratios
from tco.sampling.uncertainty import COST, draw_statistics, error_of_share, share, why_endless
from tco.scenario.beliefs import Dice
from tco.scenario.metrics import perf_per_tco
from tco.scenario.result import why_incomparable

RATIO = "perf_per_tco_vs_baseline"
POINT_PERCENTILES = ("p5", "p10", "p50", "p90", "p95")  # of the ratio at a speed
RANGE_PERCENTILES = ("p10", "p50", "p90")  # of metrics
# ratio and chance where the software has no ends
NO_END: dict[str, float | None] = {RATIO: None, "probability": None}
UNREACHED = "no plan that fits memory gives a user {:g} tokens/s"
BOTH_MISS = "neither it nor the baseline reaches this speed in any draw"


def curve_points(
    side: SampledSide, base: SampledSide, contest: Contest, has_draws: bool, dice: Dice
) -> list[AtSpeed]:
    """Return the points of a scenario at each speed, compared with the baseline.

    Args:
        side: The scenario.
        base: The baseline.
        contest: Rated scenarios, which give the stakes at each speed.
        has_draws: Whether the draws count; False takes the base cases.
        dice: Random source of the draws.

    """
    is_comparable = side is base or not why_incomparable(side.result, base.result)
    costs = _monotone_costs_by_speed(side)
    references = _monotone_costs_by_speed(base) if is_comparable else {}
    points = []
    for speed in side.speeds:
        cost, reference = costs[speed], references.get(speed)
        point = AtSpeed(side.name, speed, cost)
        if cost is None:
            reason = side.reason or side.result.costless or UNREACHED.format(speed)
            point = point._replace(note=reason)
        elif reference is not None:
            point = point._replace(perf_per_tco_vs_baseline=float(perf_per_tco(reference, cost)))
        if has_draws and side.samples is not None:
            point = _with_draws(point, side)
            if side is not base and is_comparable and base.samples and speed in base.speeds:
                point = _with_ratio(point, side, base, dice)
        points.append(_with_stakes(point, contest))
    return points


def _monotone_costs_by_speed(side: SampledSide) -> dict[float, float | None]:
    """Return cost per million output tokens of the base case at each speed, made monotone.

    A plan that reaches a quicker speed also reaches a slower one, which therefore never costs more.
    """
    costs: dict[float, float | None] = {}
    least_cost: float | None = None
    for speed in reversed(side.speeds):
        cost = side.base_case_metric(speed, COST)
        if cost is not None and (least_cost is None or cost < least_cost):
            least_cost = cost
        costs[speed] = least_cost
    return costs


def _with_draws(point: AtSpeed, side: SampledSide) -> AtSpeed:
    """Return a point with the percentiles of its cost, and the share of draws that reach it."""
    if side.samples is None:
        return point
    speed = point.tokens_per_s_per_user
    statistics = draw_statistics(COST, side.drawn_metric(speed, COST)) or {}
    return point._replace(
        meets=share(side.draws_at_speed(side.samples.draws, speed).meets),
        median_usd_per_million_output_tokens=statistics.get("p50"),
        p10_usd_per_million_output_tokens=statistics.get("p10"),
        p90_usd_per_million_output_tokens=statistics.get("p90"),
    )


def _with_ratio(point: AtSpeed, side: SampledSide, base: SampledSide, dice: Dice) -> AtSpeed:
    """Return a point with its ratio to the baseline in the draws."""
    speed = point.tokens_per_s_per_user
    drawn_ratios = ratios(base.drawn_metric(speed, COST), side.drawn_metric(speed, COST))
    is_better = drawn_ratios > 1
    both_miss = np.isnan(drawn_ratios)
    note = point.note
    if note is None and both_miss.all():
        note = BOTH_MISS
    return point._replace(
        range=metric_percentiles(RATIO, drawn_ratios, POINT_PERCENTILES),
        probability_better_than_baseline=share(is_better),
        probability_error=error_of_share(is_better),
        ties=share(both_miss),
        by_software=_ratios_at_software_ends(side, base, speed),
        software_share_of_range=_software_share(side, base, drawn_ratios, dice),
        note=note,
    )


def _ratios_at_software_ends(
    side: SampledSide, base: SampledSide, speed: float
) -> dict[str, dict[str, float | None]] | None:
    """Return ratio and chance with the software of all at either end of its reach.

    None where the scenario or the baseline has no samples at the ends.
    """
    costs = side.metric_at_software_ends(speed, COST)
    references = base.metric_at_software_ends(speed, COST)
    if not costs or not references:
        return None
    by_software = {}
    for end, cost in costs.items():
        reference = references[end]
        (base_case_ratio,) = ratios(np.array([reference.base_case]), np.array([cost.base_case]))
        by_software[end] = {
            RATIO: finite_or_none(base_case_ratio),
            "probability": share(ratios(reference.draws, cost.draws) > 1),
        }
    return by_software


def _software_share(
    side: SampledSide, base: SampledSide, drawn_ratios: FloatArray, dice: Dice
) -> float | None:
    """Return the share of the ratio's variance that the reach of software explains."""
    for function in (side.function, base.function):
        if function is not None and REACH in function.ranges:
            return rank_share(drawn_ratios, [dice.correlated_deviates(function.ranges[REACH])])
    return None


def _with_stakes(point: AtSpeed, contest: Contest) -> AtSpeed:
    """Return a point with its stakes, also with the software at either end of its reach."""
    speed = point.tokens_per_s_per_user
    stake = contest.stakes_by_speed.get(speed, {}).get(point.scenario)
    if stake is None:
        return point
    by_software = {
        end: {
            **(point.by_software or {}).get(end, NO_END),
            "share_of_best": end_stakes[point.scenario].share_of_best.mean,
        }
        for end, end_stakes in contest.stakes_at_software_ends[speed].items()
    }
    return point._replace(
        share_nobody=stake.share_nobody, by_software=by_software or None, **stake_fields(stake)
    )


def stake_fields(stake: Stake | None) -> JsonObject:
    """Return the chance of being cheapest and the share of the best; empty without a stake."""
    if stake is None:
        return {}
    return {
        "share_cheapest": stake.share_cheapest,
        "share_of_best": stake.share_of_best._asdict(),
    }


def metric_percentiles(
    metric: str, draws: FloatArray, percentile_names: Sequence[str] = RANGE_PERCENTILES
) -> JsonObject | None:
    """Return percentiles of the draws of a metric, with the reason where one has no value.

    Args:
        metric: Name of the metric.
        draws: Metric in every draw.
        percentile_names: Percentiles to return, such as `p50`.

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
