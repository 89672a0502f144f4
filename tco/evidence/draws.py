"""A conclusion judged by draws: its formula read on what every scenario comes to in each draw, the
same draws as those of a comparison.

What misses its target costs without end, and does nothing; a draw in which nothing is known of
either side decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tco.comparison.curve import DRAWS, SEED
from tco.comparison.records import speed_of
from tco.core.expression import DimensionedQuantity, amount, amount_in_unit, evaluate_formula
from tco.core.files import place_in
from tco.core.types import AnyArray
from tco.core.units import unit
from tco.evaluation.evaluated_scenario import Evaluation
from tco.evidence.ledger import Claim
from tco.evidence.questions import Context, Underived
from tco.sampling.response import ended, response_of, valued, why_undrawable
from tco.sampling.uncertainty import quantiles
from tco.scenario.beliefs import Dice
from tco.scenario.document import load_scenario
from tco.scenario.evaluate import evaluate as centre
from tco.scenario.evaluate_samples import Draws
from tco.scenario.metrics import METRICS, MORE_IS_BETTER, PERFORMANCE

TAIL = 0.1  # P10 to P90 is what a figure ranges over


class ConclusionProbability(NamedTuple):
    """Probability of a conclusion over the draws, overall and by speed."""

    probability: float
    low: float | None  # P10 of the figure, none where it has no end
    high: float | None
    # chance at each speed, where the figure depends on it
    by_speed: tuple[tuple[float, float], ...] = ()
    turns_at: float | None = (
        # tokens/s a user where the chance passes a half: half way, in ratio, between two speeds
        None
    )


class ClaimUnderDraws(Context):
    """The catalogue as one claim sees it in draws: a metric of a scenario is an array of them, at a
    speed where one is named.
    """

    others: Sequence[float] = ()  # speeds that are asked for beside each workload's own
    speed: float | None = None
    follows: bool = False  # whether anything asked for depends on the speed

    def metric(self, scenario: str, metric: str, **settings: str) -> DimensionedQuantity:
        """Return a metric of a scenario in every draw."""
        drawn, own = self.draws_of(scenario, {**settings, **self.settings}, metric in PERFORMANCE)
        if self.speed is not None and self.speed != own and metric in PERFORMANCE:
            drawn, self.follows = drawn.at.get(self.speed, drawn._replace(metrics={})), True
        if drawn.metrics.get(metric) is None:
            raise Underived(f"{scenario} has no {metric} in the draws")
        many = valued(drawn, metric)
        missed = 0.0 if metric in MORE_IS_BETTER else np.inf
        text = METRICS[metric].unit
        return amount(np.where(np.isnan(many), missed, many) * unit(text).factor, text)  # type: ignore[arg-type]

    def draws_of(
        self, scenario: str, settings: Mapping[str, str], works: bool
    ) -> tuple[Draws, float | None]:
        """Return a scenario in all draws, made once for all conclusions that ask, and the speed its
        workload asks for.

        Where what it costs alone is asked for no plan is searched for, and no other speed is asked.
        """

        def make() -> tuple[Draws, float | None]:
            given = settings if works else {**settings, "workload": "stated"}
            result = centre(
                load_scenario(self.catalogue, scenario), given, catalogue=self.catalogue
            )
            asked = Evaluation(scenario, given, self.catalogue, result)
            if works and (why := why_undrawable(asked)) is not None:
                raise Underived(f"{scenario}: {why}")
            own, response = speed_of(asked.result), response_of(asked)
            speeds = (
                [speed for speed in self.others if speed != own]
                if works and own is not None
                else []
            )
            return response.evaluate_at(
                Dice(self.catalogue, SEED, 0, DRAWS).settings(response.ranges), speeds=speeds
            ), own

        found: tuple[Draws, float | None] = self.catalogue.once(
            ("claims in draws", scenario, works, *self.others, *sorted(settings.items())), make
        )
        return found


def conclusion_probability(
    claim: Claim, context: Context, speeds: Sequence[float] = ()
) -> ConclusionProbability:
    """Return the chance that a claim bears out, at the speed of its own case and at others, and
    between what its figure lies.
    """
    drawn = ClaimUnderDraws(context.catalogue, context.settings, context.ledger, claim)
    drawn.others = speeds
    many = claim_figure_samples(claim, drawn)
    low, high = (ended(one) for one in quantiles(many, np.array([TAIL, 1 - TAIL])))
    by_speed = []
    try:
        for drawn.speed in speeds:
            by_speed.append(
                (drawn.speed, claim_probability(claim, claim_figure_samples(claim, drawn)))
            )
    except Underived:  # the figure rests on what is known at its own speed alone
        by_speed = []
    if not drawn.follows:
        by_speed = []
    turns = [
        (at * other) ** 0.5
        for (at, one), (other, next_one) in pairwise(by_speed)
        if (one >= 0.5) != (next_one >= 0.5)
    ]
    return ConclusionProbability(
        claim_probability(claim, many), low, high, tuple(by_speed), turns[0] if turns else None
    )


def claim_figure_samples(claim: Claim, drawn: ClaimUnderDraws) -> AnyArray:
    """Return the figure of a claim in every draw in which it is known; in none raises
    `Underived`.
    """
    place = place_in(claim.where, claim.formula)
    with np.errstate(invalid="ignore", divide="ignore"):
        many = np.atleast_1d(
            np.asarray(
                amount_in_unit(
                    evaluate_formula(claim.formula, drawn, place), claim.formula_unit, place
                ),
                dtype=float,
            )
        )
    known: AnyArray = many[~np.isnan(many)]
    if not len(known):
        raise Underived("no side of it is known in any draw")
    return known


def claim_probability(claim: Claim, many: AnyArray) -> float:
    """Return the share of some figures that bear a claim out."""
    return float(np.mean(claim.holds(many)))
