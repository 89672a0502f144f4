"""Conclusions judged by draws: the formula of a claim on what each scenario comes to in each draw.

The draws are those of a comparison. A side that misses its target costs without end, and does
nothing; a draw in which nothing is known of either side decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tco.core.expression import DimensionedQuantity
from tco.core.types import FloatArray
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import speed_of
from tco.evidence.questions import Context, Underived, metric_amount
from tco.sampling.median import DRAWS, SEED
from tco.sampling.scenario_quantity import finite_or_none, metric_or_nan
from tco.sampling.uncertainty import quantiles
from tco.scenario.beliefs import Dice
from tco.scenario.document import load_scenario
from tco.scenario.evaluate import evaluate
from tco.scenario.evaluate_samples import Draws
from tco.scenario.metrics import MORE_IS_BETTER, PERFORMANCE

TAIL = 0.1  # P10 to P90 is what a figure ranges over


class SpeedProbability(NamedTuple):
    """Probability of a conclusion at one speed."""

    tokens_per_s_per_user: float
    probability: float


class ConclusionProbability(NamedTuple):
    """Probability of a conclusion over the draws, overall and by speed."""

    probability: float
    low: float | None  # P10 of the figure, none where it has no end
    high: float | None  # P90
    # empty where the figure does not depend on the speed
    by_speed: Sequence[SpeedProbability]
    # speed where the probability passes a half: half way, in ratio, between two speeds
    turns_at_tokens_per_s_per_user: float | None


class ClaimUnderDraws(Context):
    """The catalogue as one claim sees it in draws: a metric of a scenario is an array.

    Args:
        context: The catalogue as the claim sees it without draws.
        speeds: Speeds that are asked for beside the speed of each workload, tokens/s per user.

    """

    def __init__(self, context: Context, speeds: Sequence[float]) -> None:
        super().__init__(context.catalogue, context.settings, context.ledger, context.claim)
        self.speeds = speeds
        self.speed: float | None = None  # of the next answer; None is the workload's
        self.depends_on_speed = False  # whether anything that was asked for does

    def metric(self, scenario: str, metric: str, **settings: str) -> DimensionedQuantity:
        """Return a metric of a scenario in every draw."""
        works = metric in PERFORMANCE
        draws, own_speed = self.draws_of(scenario, {**settings, **self.settings}, works)
        if works and self.speed not in (None, own_speed):
            draws = draws.by_speed.get(self.speed, draws._replace(metrics={}))
            self.depends_on_speed = True
        if draws.metrics.get(metric) is None:
            raise Underived(f"{scenario} has no {metric} in the draws")
        metric_draws = metric_or_nan(draws, metric)
        missed = 0.0 if metric in MORE_IS_BETTER else np.inf
        return metric_amount(metric, np.where(np.isnan(metric_draws), missed, metric_draws))

    def draws_of(
        self, scenario: str, settings: Mapping[str, str], works: bool
    ) -> tuple[Draws, float | None]:
        """Return the draws of a scenario, made once for all conclusions, and its workload's speed.

        Args:
            scenario: Name of the scenario.
            settings: Settings by input path.
            works: Whether what the chips do is asked for. Else no plan is searched for, and no
                other speed is asked.

        Raises:
            Underived: The scenario cannot be drawn.

        """

        def draw() -> tuple[Draws, float | None]:
            stated = settings if works else {**settings, "workload": "stated"}
            document = load_scenario(self.catalogue, scenario)
            scenario_result = evaluate(document, stated, catalogue=self.catalogue)
            evaluation = Evaluation(scenario, stated, self.catalogue, scenario_result)
            if works and (reason := evaluation.why_undrawable()) is not None:
                raise Underived(f"{scenario}: {reason}")
            own_speed = speed_of(scenario_result)
            dice = Dice(self.catalogue, SEED, 0, DRAWS)
            has_speed = works and own_speed is not None
            speeds = [speed for speed in self.speeds if has_speed and speed != own_speed]
            return evaluation.drawn_function().sample(dice, speeds), own_speed

        draws_key = ("claims in draws", scenario, works, *self.speeds, *sorted(settings.items()))
        return self.catalogue.once(draws_key, draw)

    def figure_samples(self) -> FloatArray:
        """Return the figure of the claim in every draw in which it is known.

        Raises:
            Underived: It is known in none.

        """
        with np.errstate(invalid="ignore", divide="ignore"):
            samples = np.atleast_1d(np.asarray(self.claim_figure(), dtype=float))
        known_samples: FloatArray = samples[~np.isnan(samples)]
        if not len(known_samples):
            raise Underived("no side of it is known in any draw")
        return known_samples

    def agreeing_share(self, samples: FloatArray) -> float:
        """Return the share of the samples of a figure that agree with the claim."""
        return sum(map(self.claim.claimed.agrees, samples.tolist())) / len(samples)


def conclusion_probability(context: Context, speeds: Sequence[float]) -> ConclusionProbability:
    """Return the probability that a claim holds, and the range of its figure.

    Args:
        context: The catalogue as the claim sees it without draws.
        speeds: Speeds at which the claim is judged as well, tokens/s per user.

    Raises:
        Underived: The figure is known in no draw at the speed of its own case.

    """
    scope = ClaimUnderDraws(context, speeds)
    samples = scope.figure_samples()
    low, high = map(finite_or_none, quantiles(samples, np.array([TAIL, 1 - TAIL])))
    by_speed = []
    try:
        for speed in speeds:
            scope.speed = speed
            probability = scope.agreeing_share(scope.figure_samples())
            by_speed.append(SpeedProbability(speed, probability))
    except Underived:  # the figure rests on what is known at its own speed alone
        by_speed = []
    if not scope.depends_on_speed:
        by_speed = []
    turns = (
        (slower.tokens_per_s_per_user * faster.tokens_per_s_per_user) ** 0.5
        for slower, faster in pairwise(by_speed)
        if (slower.probability >= 0.5) != (faster.probability >= 0.5)
    )
    probability = scope.agreeing_share(samples)
    return ConclusionProbability(probability, low, high, by_speed, next(turns, None))
