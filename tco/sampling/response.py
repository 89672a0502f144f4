"""Scenario as a vectorised function of its inputs, for sampling and sensitivity.

The function takes values of inputs by path and returns metrics. The plan is re-optimised or held.

Ranges, drivers, maps and shares of variance are evaluations of this function. Inputs take the
values of random draws, move alone to both ends of their ranges, or move together. A case that
misses the target has no performance and no cost of performance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.core.elementwise import as_array
from tco.core.errors import DataError
from tco.core.provenance import P95
from tco.core.types import FloatArray
from tco.evaluation.evaluated_scenario import Evaluation
from tco.scenario import metrics as joined
from tco.scenario.beliefs import Dice, Range, beliefs_of
from tco.scenario.document import Scenario
from tco.scenario.evaluate_samples import Draws, Many, evaluate_draws
from tco.scenario.metrics import PERFORMANCE

if TYPE_CHECKING:
    from tco.catalog import Catalogue
    from tco.scenario.structure import Structure

CENTRE = 1  # of the places at which an input is looked at, P5, its value and P95: that of its value


class Sampled(NamedTuple):
    """A scenario in many draws."""

    drawn: Draws
    # all inputs at their values first, then each at its low and its high, all others at theirs
    alone: Draws
    # of each way to fix some inputs: all others at their values first, then the first few draws
    fixed: Sequence[Draws] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """A scenario as a function of its inputs, small enough to travel to a worker."""

    scenario: Scenario
    catalogue: Catalogue
    settings: Mapping[str, str]
    structure: Structure | None  # that is held; none: every point decides its own
    ranges: dict[str, Range]
    variant: Mapping[str, str] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """It travels without its catalogue, which is read where it arrives."""
        from tco.evaluation.workers import folders_of

        data = folders_of(self.catalogue), self.catalogue.anchors
        return arrived, (
            self.scenario,
            data,
            dict(self.settings),
            self.structure,
            self.ranges,
            dict(self.variant),
        )

    def evaluate_at(self, values: Many, solve: bool = True, speeds: Sequence[float] = ()) -> Draws:
        """Evaluate it for many values of some inputs, all others as they are, and at other speeds;
        without `solve` the batch is held as well.
        """
        every = {**self.settings, **values}
        return evaluate_draws(
            self.scenario,
            every,
            structure=self.structure,
            catalogue=self.catalogue,
            variant=self.variant,
            solve=solve,
            speeds=speeds,
        )

    def drawn(self, dice: Dice) -> Draws:
        """Evaluate it in the draws that some dice give."""
        return self.evaluate_at(dice.settings(self.ranges))

    def sampled(
        self,
        dice: Dice,
        speeds: Sequence[float] = (),
        fixed: Sequence[Mapping[str, float]] = (),
        few: int = 0,
    ) -> Sampled:
        """Evaluate it in the draws that some dice give, with every input moved alone, and with some
        inputs fixed in the first few draws.
        """
        alone, sizes = (
            one_at_a_time(self.ranges),
            [dice.count, 1 + 2 * len(self.ranges), *([1 + few] * len(fixed))],
        )
        many = {}
        for path, (drawn, unit) in dice.settings(self.ranges).items():
            one = self.ranges[path]
            own = np.concatenate([[one.value], drawn[:few]])
            parts = [np.full(1 + few, values[path]) if path in values else own for values in fixed]
            many[path] = np.concatenate([drawn, alone[path], *parts]), unit
        ends = np.cumsum(sizes).tolist()
        every = self.evaluate_at(many, speeds=speeds)
        drawn_, alone_, *fixed_ = (
            every.part(slice(end - size, end)) for end, size in zip(ends, sizes, strict=True)
        )
        return Sampled(drawn_, alone_, fixed_)


def arrived(
    scenario: Scenario, data: tuple[tuple[str, ...], tuple[Any, ...]], *rest: Any
) -> Response:
    """Return the response of `scenario` on the catalogue of this process."""
    from tco.evaluation.workers import catalogue_on

    return Response(scenario, catalogue_on(*data), *rest)


def response_of(asked: Evaluation, hold: bool = False) -> Response:
    """Return a scenario as a function of its inputs.

    Args:
        asked: Evaluation of the scenario.
        hold: Whether the structure, such as the plan, stays as evaluated. The inputs that decide
            structure then keep their values.

    """
    ranges = {
        path: one for path, one in beliefs_of(asked.result).items() if not (hold and one.steps)
    }
    return Response(
        asked.scenario,
        asked.catalogue,
        asked.settings,
        asked.result.structure if hold else None,
        ranges,
        asked.variant,
    )


def drawable(asked: Evaluation, hold: bool = False) -> Response:
    """Return the response of a scenario; one that has nothing to draw raises `DataError` with the
    reason.
    """
    if (why := why_undrawable(asked, hold)) is not None:
        raise DataError(f"{asked.name}: {why}")
    return response_of(asked, hold)


def why_undrawable(asked: Evaluation, hold: bool = False) -> str | None:
    """Return the reason against sampling a scenario, or None.

    Args:
        asked: Evaluation of the scenario.
        hold: Whether the samples are to hold the plan of the evaluation.

    """
    result = asked.result
    if asked.saved:
        return "it was saved on other data, and has no draws; name its scenario"
    if result.texts["workload.kind"] == "stated":
        return "its rates are stated, not computed: nothing of them is drawn"
    if hold and result.plan is None:
        return (
            "no plan meets the target at the centre, so there is none to hold: "
            f"{result.serving.reason if result.serving else ''}"
        )
    if result.costless:
        return f"it {result.costless}"
    return None if beliefs_of(result) else "no input of it has a range"


def decides(asked: Evaluation, path: str) -> bool:
    """Say whether the number of an input decides structure.

    The low and the high of such an input have structures of their own.

    Args:
        asked: Evaluation of the scenario.
        path: Path of the input.

    """
    structure = asked.result.structure
    return structure is not None and not isinstance(structure.readings.get(path, True), bool)


def valued(draws: Draws, metric: str) -> FloatArray:
    """Return a metric in every draw, nan where a draw lacks the metric.

    A metric that rests on the workload is also nan where memory or a target is missed.

    Args:
        draws: Draws of a scenario.
        metric: Name of the metric.

    Returns:
        Array of shape (draws,), in the unit of the metric.

    """
    many = draws.metrics[metric]
    if many is None:
        return np.full(len(draws.meets), np.nan)
    return np.where(draws.meets, many, np.nan) if metric in PERFORMANCE else many


def ended(value: Any) -> float | None:
    """Return a finite number, or None.

    Args:
        value: Number or None.

    Returns:
        The number; None where `value` is None, infinite or nan.

    """
    return float(value) if value is not None and np.isfinite(value) else None


# ---------------------------------------------------------------- one input at a time
def three_point_deviates(one: Range) -> FloatArray:
    """Return the places at which an input is looked at: P5, its value, P95."""
    return np.array([-P95, one.home, P95])


def one_at_a_time(ranges: Mapping[str, Range]) -> dict[str, FloatArray]:
    """Return every input where each is moved alone: all at their values first, then each at its low
    and its high.
    """
    found = {
        path: np.full(1 + 2 * len(ranges), one.value, dtype=float) for path, one in ranges.items()
    }
    for at, (path, one) in enumerate(ranges.items()):
        found[path][1 + 2 * at :][:2] = one.low, one.high
    return found


@dataclass(frozen=True)
class ScenarioQuantity:
    """A metric as inputs move: that of a scenario, or the ratio of a baseline's to it, in which
    both are moved; at one speed.

    Of a ratio a point at which only one misses the target is zero or without end, and none where
    both do.
    """

    metric: str
    own: Response
    baseline: Response | None
    dice: Dice
    # of responses, which several quantities may share
    samples: dict[int, Sampled] = field(default_factory=dict)
    # one of those that the responses are sampled at; none: the workload's own
    speed: float | None = None

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """The inputs that move it."""
        return {**(self.baseline.ranges if self.baseline is not None else {}), **self.own.ranges}

    def sampled(self, one: Response) -> Sampled:
        """Return a response in all draws, and with every input moved alone."""
        if id(one) not in self.samples:
            self.samples[id(one)] = one.sampled(self.dice)
        return self.samples[id(one)]

    def metric_at_speed(self, draws: Draws) -> FloatArray:
        """Return the metric of some draws at the speed."""
        return valued(draws if self.speed is None else draws.at[self.speed], self.metric)

    def over(self, values: list[FloatArray]) -> FloatArray:
        """Return the metric, or the ratio, of values of the scenario and of the baseline if there
        is one.
        """
        return ratios(values[1], values[0]) if values[1:] else values[0]

    @property
    def sides(self) -> list[Response]:
        """The scenario, and the baseline if there is one."""
        return [self.own] if self.baseline is None else [self.own, self.baseline]

    def drawn(self) -> FloatArray:
        """Return it in all draws."""
        return self.over([self.metric_at_speed(self.sampled(one).drawn) for one in self.sides])

    def one_at_a_time_values(self) -> dict[str, FloatArray]:
        """Return it at the low, the value and the high of each input; what one side does not rest
        on leaves that where it is.
        """
        found: dict[str, list[FloatArray]] = {path: [] for path in self.ranges}
        for one in self.sides:
            many = self.metric_at_speed(self.sampled(one).alone)
            low, high = (
                dict(zip(one.ranges, many[1::2], strict=True)),
                dict(zip(one.ranges, many[2::2], strict=True)),
            )
            for path, values in found.items():
                values.append(np.array([low.get(path, many[0]), many[0], high.get(path, many[0])]))
        return {path: self.over(values) for path, values in found.items()}

    def together(self, places: Mapping[str, FloatArray]) -> FloatArray:
        """Return it where some inputs are moved to some places together."""
        found, count = [], len(next(iter(places.values())))
        for one in self.sides:
            alone = self.sampled(one).alone
            if places.keys().isdisjoint(one.ranges):
                found.append(np.full(count, self.metric_at_speed(alone)[0]))
                continue
            # every input is given, those that stay too: what was found of all of them in the draws
            # holds here
            every = {
                path: (
                    of.quantile(places[path]) if path in places else np.full(count, of.value),
                    of.unit,
                )
                for path, of in one.ranges.items()
            }
            found.append(self.metric_at_speed(one.evaluate_at(every, speeds=tuple(alone.at))))
        return self.over(found)


def ratios(baseline: FloatArray, own: FloatArray) -> FloatArray:
    """Return the performance per cost relative to the baseline in every draw.

    Args:
        baseline: Costs of the baseline by draw, nan where the target is missed.
        own: Costs of the scenario by draw in the same unit, nan where the target is missed.

    Returns:
        Ratios by draw: zero where only `own` is missed, inf where only `baseline` is missed, and
        nan where both are missed.

    """
    missed, its = np.isnan(own), np.isnan(baseline)
    return np.where(
        its,
        np.where(missed, np.nan, np.inf),
        np.where(missed, 0.0, as_array(joined.perf_per_tco(baseline, own))),
    )
