"""Cost per million tokens by user speed: recommended scenario and its probability.

All scenarios are evaluated in one set of draws and at all speeds in one pass. Beside the draws
every input is moved alone. In the first of the draws the software of all chips lies at either end
of its reach. A draw in which no plan reaches a speed is a loss at that speed: a scenario that
misses the speed loses to all scenarios that reach it. The recommended scenario keeps most of the
best on average. Its probability is its chance against the rival that it beats least often.
Neighbouring speeds with the same recommendation are a regime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tco.comparison.records import (
    SPEED,
    AtSpeed,
    Confidence,
    Driver,
    PriceTurn,
    Regime,
    Sureness,
    late_racks,
    rated_by,
    speed_of,
    unrated,
)
from tco.comparison.regimes import Costs, regimes_of
from tco.comparison.regret import Stake, choices_in, least_regret, rated, stakes
from tco.comparison.turning_points import Priced, price_turns
from tco.core.types import AnyArray, JsonObject
from tco.evaluation.evaluated_scenario import Evaluation
from tco.performance.serving.record import ServingResult
from tco.performance.software_maturity import REACH
from tco.sampling.drivers import leading_drivers, rank_share
from tco.sampling.response import (
    Response,
    Sampled,
    ScenarioQuantity,
    ended,
    ratios,
    response_of,
    valued,
    why_undrawable,
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

DRAWS, SEED = 512, 0
FEW = 128  # of them in which software lies at an end
SHOWN = ("p10", "p50", "p90")
ALONG = ("p5", "p10", "p50", "p90", "p95")
NO_END = {"perf_per_tco_vs_baseline": None, "probability": None}
# of how far an owner's software reaches, and what they are called
ENDS = {
    "public": 0.0,
    "best": 1.0,
}
UNREACHED = "no plan that fits memory gives a user {:g} tokens/s"


class CurveSamples(NamedTuple):
    """A scenario of a comparison, and what became of it in the draws; or why it has none."""

    result: Result
    speeds: tuple[float, ...]
    response: Response | None = None
    made: Sampled | None = None
    reason: str = ""
    # by speed, how many times what a fleet's tokens cost those of whole engines on some racks do
    dearer: Mapping[float, float] = {}

    @property
    def own_speed(self) -> float | None:
        """The speed its workload asks for."""
        return speed_of(self.result)

    def metric_at_speed(self, draws: Draws, speed: float | None, metric: str) -> AnyArray:
        """Return a metric of some draws at a speed; none is that of the workload."""
        found: AnyArray = self.on_racks(
            valued(self.draws_at_speed(draws, speed), metric), speed, metric
        )
        return found

    def on_racks(self, value: Any, speed: float | None, metric: str) -> Any:
        """Return a metric as it is on the racks that are bought: tokens cost more where engines
        leave chips of them idle.
        """
        at = speed_of(self.result) if speed is None else speed
        factor = self.dearer.get(at, 1.0) if at is not None and metric == COST else 1.0
        return value if value is None or factor == 1 else value * factor

    def draws_at_speed(self, draws: Draws, speed: float | None) -> Draws:
        """Return some draws at a speed."""
        return draws if speed is None or speed == speed_of(self.result) else draws.at[speed]

    def point(self, speed: float | None, metric: str = COST) -> float | None:
        """Return `metric` of the base case at `speed`.

        An unknown or infinite value is None. Without samples only the workload's own speed has a
        value.
        """
        if speed in (None, speed_of(self.result)):
            return ended(self.on_racks(self.result.metrics[metric], speed, metric))
        if self.made is None:
            return None
        return ended(self.metric_at_speed(self.made.alone, speed, metric)[0])


def confidence_in(
    asked: Sequence[Evaluation],
    baseline: str,
    speeds: tuple[float, ...],
    hold: bool,
    ranges: bool,
    why: bool,
    seed: int,
    choose: str | None,
    racks: int | None = None,
) -> Confidence:
    """Draw the inputs of some scenarios, and find what became of each against the baseline, at its
    own speed and at others.

    Without `ranges` only the points are found, with `why` also what moves each regime. With a
    number of `racks` tokens cost what whole engines on these make of them, and the draws as many
    times as much as the base case does.
    """
    dice = Dice(asked[0].catalogue, seed, 0, DRAWS)
    sides = [sample_scenario(one, speeds, dice, hold, ranges) for one in asked]
    if racks is not None:
        sides = [
            side._replace(dearer=on_racks(one, side.speeds, racks))
            for side, one in zip(sides, asked, strict=True)
        ]
    base = next(side for side in sides if side.result.scenario == baseline)
    names, rated_at, costs, drawn = contest(sides, base, ranges)
    each = list(zip(rated_at or (None,), costs, strict=True)) if len(names) > 1 and ranges else []
    table = {speed: dict(zip(names, stakes(one.drawn), strict=True)) for speed, one in each}
    ends = {speed: {end: stakes(many) for end, many in one.ends.items()} for speed, one in each}
    curve = [
        staked(point, names, table, ends)
        for side in sides
        for point in costs_by_speed(side, base, ranges, dice)
    ]
    regimes = regimes_of(names, rated_at, costs, drawn, late_racks([side.result for side in sides]))
    samples = {
        id(side.response): side.made
        for side in sides
        if side.response is not None and side.made is not None
    }
    if why:
        from tco.comparison.evidence_value import regime_with_evidence

        drawn_at = dict(zip(rated_at or (None,), costs, strict=True)) if names else {}
        catalogue = asked[0].catalogue
        regimes = [
            regime_with_evidence(one, rivals, drawn_at[middle_speed(one)].drawn, catalogue)
            if (rivals := quantity_of(one, sides, dice, samples))
            else one
            for one in regimes
        ]
    own_speed = speed_of(base.result) if rated_at else None
    own_stakes = table.get(own_speed, {})
    turns = turns_at(own_speed, sides, regimes, dict(each), names, dice)
    sure = [sureness(side, base, dice, samples, hold) for side in sides] if ranges else []
    return Confidence(
        [
            one._replace(**stake_of(own_stakes.get(side.result.scenario)))
            for one, side in zip(sure, sides, strict=bool(sure))
        ],
        curve,
        regimes,
        unrated([side.result for side in sides], base.result.scenario),
        choices_of(choose, names, rated_at, costs) if choose is not None else [],
        turns=turns,
    )


def turns_at(
    speed: float | None,
    sides: Sequence[CurveSamples],
    regimes: Sequence[Regime],
    costs: Mapping[Any, Costs],
    names: Sequence[str],
    dice: Dice,
) -> list[PriceTurn]:
    """Return the prices most likely to change the pick at a speed."""
    regime = next((regime for regime in regimes if speed in (regime.speeds or (None,))), None)
    if regime is None or regime.foremost is None or speed not in costs:
        return []
    named = {side.result.scenario: side for side in sides}
    metric = rated_by([side.result for side in sides])
    racks = [priced_alone(named[name], speed, str(metric)) for name in names]
    return price_turns(racks, costs[speed].drawn, foremost_at(costs[speed], names), dice)


def foremost_at(costs: Costs, names: Sequence[str]) -> str:
    """Return the rack of least mean regret."""
    return names[least_regret(costs.drawn)[0]]


def priced_alone(side: CurveSamples, speed: float | None, metric: str) -> Priced:
    """Return `metric` of the base case and with each input moved alone."""
    ranges = side.response.ranges if side.response is not None else {}
    alone = (
        side.metric_at_speed(side.made.alone, speed, metric)
        if side.made is not None
        else np.array([np.nan])
    )
    ends = {
        path: (float(low), float(high))
        for path, low, high in zip(ranges, alone[1::2], alone[2::2], strict=True)
    }
    return Priced(side.result.scenario, ranges, float(alone[0]), ends)


def stake_of(one: Stake | None) -> JsonObject:
    """Return the chance of being cheapest and share of best as fields.

    The record is empty where there is no stake.
    """
    return (
        {}
        if one is None
        else {"share_cheapest": one.share_cheapest, "share_of_best": one.share_of_best._asdict()}
    )


def staked(
    point: AtSpeed,
    names: Sequence[str],
    table: Mapping[Any, Mapping[str, Stake]],
    ends: Mapping[Any, Mapping[str, list[Stake]]],
) -> AtSpeed:
    """Return a point with what its choice stands to lose there, with the software of all at either
    end of its reach too.
    """
    own = table.get(point.tokens_per_s_per_user, {}).get(point.scenario)
    if own is None:
        return point
    at = names.index(point.scenario)
    kept = {
        end: {"share_of_best": many[at].share_of_best.mean}
        for end, many in ends[point.tokens_per_s_per_user].items()
    }
    both = {end: {**(point.by_software or {}).get(end, NO_END), **one} for end, one in kept.items()}
    return point._replace(share_nobody=own.share_nobody, by_software=both or None, **stake_of(own))


def choices_of(
    text: str, names: Sequence[str], speeds: Sequence[float], costs: Sequence[Costs]
) -> list[JsonObject]:
    """Return the share of best of each choice at every speed."""
    asked = choices_in(text, names)
    return [
        {
            "choice": one.text,
            "tokens_per_s_per_user": speed,
            "share_of_best": rated(one, names, many.drawn)._asdict(),
        }
        for one in asked
        for speed, many in zip(speeds or (None,), costs, strict=True)
    ]


def sample_scenario(
    asked: Evaluation, speeds: tuple[float, ...], dice: Dice, hold: bool, ranges: bool
) -> CurveSamples:
    """Evaluate a scenario in all draws, or with every input at its value."""
    result = asked.result
    own = speeds if speed_of(result) is not None else ()
    others = [speed for speed in own if speed != speed_of(result)]
    if (why := why_undrawable(asked, hold)) is not None:
        return CurveSamples(result, own, reason=why)
    response = response_of(asked, hold)
    if not ranges:
        speed = speed_of(result)
        found = (
            None
            if speed is None
            else response.evaluate_at(
                {SPEED: (np.array([speed]), result.inputs[SPEED].unit)}, speeds=others
            )
        )
        return CurveSamples(result, own, response, None if found is None else Sampled(found, found))
    ends = [{REACH: end} for end in ENDS.values()] if REACH in response.ranges else []
    return CurveSamples(result, own, response, response.sampled(dice, others, ends, FEW))


def on_racks(asked: Evaluation, speeds: Sequence[float], racks: int) -> dict[float, float]:
    """Return by speed how many times what a fleet's tokens cost those of whole engines on some
    racks do; without end where none find room.
    """
    found = {}
    for speed in speeds:
        result = (
            asked.result
            if speed == speed_of(asked.result)
            else asked.again({SPEED: f"{speed} token/s"}, refuse=False)
        )
        chips = int(racks * float(result.metrics["chips"]) / float(result.metrics["racks"]))
        made = result.serving.on(chips) if isinstance(result.serving, ServingResult) else None
        rate = result.metrics[TOKENS]
        found[speed] = (
            np.inf
            if made is None or not rate
            else max(rate / made.output_tokens_per_s_per_chip, 1.0)
        )
    return found


# ---------------------------------------------------------------- at each speed
def costs_by_speed(
    own: CurveSamples, base: CurveSamples, ranges: bool, dice: Dice
) -> Iterator[AtSpeed]:
    """Yield cost per million tokens at each speed, compared with the baseline."""
    alike = own is base or not why_incomparable(own.result, base.result)
    costs, references = monotone_costs_by_speed(own), monotone_costs_by_speed(base) if alike else {}
    for speed in own.speeds:
        cost, reference = costs[speed], references.get(speed)
        ratio = None if cost is None or reference is None else float(perf_per_tco(reference, cost))
        why = (
            None
            if cost is not None
            else own.reason or own.result.costless or UNREACHED.format(speed)
        )
        found = AtSpeed(own.result.scenario, speed, cost, perf_per_tco_vs_baseline=ratio, note=why)
        if not ranges or own.made is None:
            yield found
            continue
        reached = own.draws_at_speed(own.made.drawn, speed).meets
        middle = draw_statistics(COST, own.metric_at_speed(own.made.drawn, speed, COST))
        found = found._replace(
            meets=share(reached),
            median_usd_per_million_output_tokens=None if middle is None else middle["p50"],
        )
        if own is base or not alike or base.made is None or speed not in base.speeds:
            yield found
            continue
        many = ratios(
            base.metric_at_speed(base.made.drawn, speed, COST),
            own.metric_at_speed(own.made.drawn, speed, COST),
        )
        better = many > 1
        yield found._replace(
            range=metric_percentiles("perf_per_tco_vs_baseline", many, ALONG),
            probability_better_than_baseline=share(better),
            probability_error=error_of_share(better),
            ties=share(np.isnan(many)),
            by_software=at_ends(own, base, speed),
            software_share_of_range=software_share(own, base, many, dice),
            note=why
            or (
                "neither it nor the baseline reaches this speed in any draw"
                if np.isnan(many).all()
                else None
            ),
        )


def monotone_costs_by_speed(side: CurveSamples) -> dict[float, float | None]:
    """Return cost per million output tokens at each speed, made monotone.

    A slower promise never costs more than the plan of a quicker promise.
    """
    found: dict[float, float | None] = {}
    least: float | None = None
    for speed in reversed(side.speeds):
        own = side.point(speed)
        least = least if own is None else own if least is None else min(own, least)
        found[speed] = least
    return found


def at_ends(
    own: CurveSamples, base: CurveSamples, speed: float
) -> dict[str, dict[str, float | None]] | None:
    """Return performance per cost and the chance to beat the baseline with the software of all at
    either end of its reach.
    """
    if own.made is None or base.made is None or not own.made.fixed or not base.made.fixed:
        return None
    found = {}
    for end, mine, theirs in zip(ENDS, own.made.fixed, base.made.fixed, strict=True):
        many = ratios(
            base.metric_at_speed(theirs, speed, COST), own.metric_at_speed(mine, speed, COST)
        )
        found[end] = {
            "perf_per_tco_vs_baseline": ended(many[0]),
            "probability": share(many[1:] > 1),
        }
    return found


def software_share(
    own: CurveSamples, base: CurveSamples, many: AnyArray, dice: Dice
) -> float | None:
    """Return the share of the ratio's variance that goes away once it is known how far software
    reaches.
    """
    ranges = {
        **(base.response.ranges if base.response else {}),
        **(own.response.ranges if own.response else {}),
    }
    return rank_share(many, [dice.correlated_deviates(ranges[REACH])]) if REACH in ranges else None


def contest(
    sides: Sequence[CurveSamples], base: CurveSamples, ranges: bool
) -> tuple[list[str], tuple[float, ...], list[Costs], bool]:
    """Return compared scenarios, their speeds, costs in every draw, and `ranges`.

    The costs have an entry for each speed. Without `ranges` the base case stands for the draws.
    """
    metric = rated_by([side.result for side in sides])
    left = unrated([side.result for side in sides], base.result.scenario)
    rated = [
        side
        for side in sides
        if metric is not None
        and not side.reason
        and side.result.scenario not in left
        and side.speeds == base.speeds
    ]
    # so that nothing rests on the order in which they were named
    rated.sort(key=lambda side: side.result.scenario)
    costs = []
    for speed in base.speeds or (None,):
        if not ranges:
            costs.append(
                Costs(np.array([[side.point(speed, str(metric))] for side in rated], dtype=float))
            )
            continue
        drawn = np.array(
            [
                side.metric_at_speed(side.made.drawn, speed, str(metric))  # type: ignore[union-attr]
                for side in rated
            ]
        )
        fixed = zip(ENDS, zip(*(side.made.fixed for side in rated), strict=True), strict=False)  # type: ignore[union-attr]
        ends = {
            end: np.array(
                [
                    side.metric_at_speed(one, speed, str(metric))[1:]
                    for side, one in zip(rated, many, strict=True)
                ]
            )
            for end, many in fixed
        }
        costs.append(Costs(drawn, ends))
    return [side.result.scenario for side in rated], base.speeds, costs, ranges


def middle_speed(regime: Regime) -> float | None:
    """Return the speed in the middle of a regime's; none where no speed is asked for."""
    return regime.speeds[len(regime.speeds) // 2] if regime.speeds else None


def quantity_of(
    regime: Regime, sides: Sequence[CurveSamples], dice: Dice, samples: dict[int, Sampled]
) -> ScenarioQuantity | None:
    """Return the performance per cost of a regime's leader over its rival's, at the middle of its
    speeds; none where nobody is held against another.

    Where the ends of software have other leaders these are held against each other.
    """
    ends = list(dict.fromkeys(names[0] for names in regime.by_software.values() if names))
    pair = ends[::-1] if regime.kind == "software" else [regime.foremost, regime.rival]
    named = {side.result.scenario: side for side in sides}
    own, base = (named.get(str(name)) for name in (pair if len(pair) == 2 else (None, None)))
    metric = rated_by([side.result for side in sides])
    if (
        own is None
        or base is None
        or own.response is None
        or base.response is None
        or metric is None
    ):
        return None
    middle = middle_speed(regime)
    return ScenarioQuantity(
        metric,
        own.response,
        base.response,
        dice,
        samples,
        None if middle == speed_of(own.result) else middle,
    )


# ---------------------------------------------------------------- at the workload's own speed
def sureness(
    own: CurveSamples, base: CurveSamples, dice: Dice, samples: dict[int, Any], hold: bool
) -> Sureness:
    """Hold what became of a scenario against what became of its baseline."""
    if own.response is None or own.made is None:
        return Sureness({}, None, None, [], own.reason)
    alike = (
        base.response is not None
        and base.made is not None
        and not why_incomparable(own.result, base.result)
    )
    sample = sample_of(own.made.drawn, base.made.drawn if alike else None)  # type: ignore[union-attr]
    ranges = {metric: metric_percentiles(metric, many) for metric, many in sample.metrics.items()}
    drivers: list[Driver] = []
    if alike and own is not base and (metric := rated_by([own.result, base.result])) is not None:
        ratio = ScenarioQuantity(metric, own.response, base.response, dice, samples)
        drivers = leading_drivers(ratio.ranges, ratio.one_at_a_time_values(), ratio.together)
    error = None if own is base else error_of_share(sample.better)
    return Sureness(
        ranges,
        share(sample.better),
        share(sample.meets),
        drivers,
        draws=DRAWS,
        probability_error=error,
        ties=share(sample.ties),
        hold=hold,
    )


def metric_percentiles(
    metric: str, many: AnyArray, shown: Sequence[str] = SHOWN
) -> dict[str, float | str | None] | None:
    """Return percentiles of the draws of a metric, with the reason where one has no value; none
    where there are none.
    """
    found = draw_statistics(metric, many)
    if found is None:
        return None
    some: dict[str, float | str | None] = {at: found[at] for at in shown}
    return some | {"reason": why_endless(metric, many)} if None in some.values() else some
