"""Side of a comparison: one scenario with its base case, its draws and its metrics by speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tco.comparison.records import ConfidenceRequest
from tco.core.types import FloatArray
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction
from tco.evaluation.side_by_side import SPEED, speed_of
from tco.performance.serving.record import ServingResult
from tco.performance.software_maturity import REACH
from tco.sampling.median import DRAWS
from tco.sampling.scenario_quantity import (
    MetricWhereFixed,
    SampledScenario,
    finite_or_none,
    metric_or_nan,
    sample_with_moves,
)
from tco.sampling.uncertainty import COST
from tco.scenario.beliefs import Dice
from tco.scenario.evaluate_samples import Draws
from tco.scenario.metrics import OUTPUT_RATE
from tco.scenario.result import Result

SOFTWARE_ENDS = {"public": 0.0, "best": 1.0}  # ends of the reach of an owner's software, by name
SOFTWARE_DRAWS = 128  # draws that are repeated with the software at an end of its reach


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

    def base_case_metric(self, speed: float | None, metric: str) -> float | None:
        """Return a metric of the base case at a speed.

        An unknown or infinite value is None. Without samples only the workload's own speed has a
        value.
        """
        if speed in (None, self.own_speed):
            metric_value = self.result.metrics[metric]
            if metric_value is None:
                return None
            return finite_or_none(metric_value * self.rack_factor(speed, metric))
        if self.samples is None:
            return None
        metric_of = partial(self.metric_at_speed, speed=speed, metric=metric)
        return finite_or_none(self.samples.metric_at_moves(metric_of).base_case)

    def metric_at_software_ends(
        self, speed: float | None, metric: str
    ) -> dict[str, MetricWhereFixed]:
        """Return a metric at a speed with the software at each end of its reach, by end.

        Empty without samples at the ends.
        """
        if self.samples is None or not self.samples.fixed:
            return {}
        metric_of = partial(self.metric_at_speed, speed=speed, metric=metric)
        return dict(zip(SOFTWARE_ENDS, self.samples.metric_where_fixed(metric_of), strict=True))


def sample_side(
    evaluation: Evaluation, request: ConfidenceRequest, dice: Dice, moves: bool = True
) -> SampledSide:
    """Evaluate a scenario in all draws, or in its base case where none are asked for.

    Args:
        evaluation: Evaluation of the scenario.
        request: Speeds and draws of the comparison.
        dice: Random source of the draws.
        moves: Whether each input is also moved alone, and software to the ends of its reach.

    """
    own_speed = speed_of(evaluation.result)
    speeds = tuple(request.speeds) if own_speed is not None else ()
    side = SampledSide(evaluation, speeds, reason=evaluation.why_undrawable(request.hold) or "")
    if request.racks is not None:
        side = side._replace(rack_factors=_rack_factors(evaluation, speeds, request.racks))
    if side.reason:
        return side
    function = evaluation.drawn_function(request.hold)
    other_speeds = [speed for speed in speeds if speed != own_speed]
    samples = None
    if not request.ranges:
        samples = _sample_base_case(function, evaluation.result, other_speeds)
    elif moves:
        ends = [{REACH: end} for end in SOFTWARE_ENDS.values()] if REACH in function.ranges else []
        samples = sample_with_moves(function, dice, other_speeds, ends, SOFTWARE_DRAWS)
    else:
        samples = SampledScenario(function.sample(dice, other_speeds))
    return side._replace(function=function, samples=samples)


def _sample_base_case(
    function: ScenarioFunction, scenario_result: Result, other_speeds: Sequence[float]
) -> SampledScenario | None:
    """Evaluate the base case at other speeds; None where the workload asks for no speed."""
    own_speed = speed_of(scenario_result)
    if own_speed is None:
        return None
    target = {SPEED: (np.array([own_speed]), scenario_result.inputs[SPEED].unit)}
    base_case = function.draws(target, speeds=other_speeds)
    # the base case is the only draw, and no input is moved away from it
    return SampledScenario(draws=base_case, single_moves=base_case)


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
        fleet_rate = metrics[OUTPUT_RATE]
        if on_racks is None or not fleet_rate:
            factors_or_inf[speed] = np.inf
        else:
            factors_or_inf[speed] = max(fleet_rate / on_racks.output_tokens_per_s_per_chip, 1.0)
    return factors_or_inf
