"""Points of frontiers compared: the certainty of each, and which designs beat which.

A design is a system on one of its plans.

At each point every input is drawn within its range, and each draw chooses its plan anew. The draws
are those of a comparison, and so is what is asked of them: the interactivity is the point's own,
and the batch is solved for it in each draw. The band of the plan that a workload chooses is the
range `compare` gives it. A draw in which no plan reaches the interactivity lies beyond the worse
end of every metric. With `hold` the plan is the point's own in every draw.

A design beats another that it is behind in nothing and ahead of in something. Figures count at the
digits that are shown, so that a batch solved to the last sequence beats none that is as good. Only
designs that serve one workload are held against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tco.comparison.curve_points import metric_percentiles
from tco.comparison.frontier_records import BANDED, Band
from tco.core.types import AnyArray
from tco.evaluation.scenario_function import ScenarioFunction
from tco.evaluation.side_by_side import SPEED
from tco.performance.serving.plans import DecodePlan, PrefillPlan, ServingPlan
from tco.sampling.median import DRAWS, SEED
from tco.sampling.scenario_quantity import metric_or_nan
from tco.scenario.beliefs import Dice
from tco.scenario.draw_case import ArraysWithUnits
from tco.scenario.evaluate_samples import Draws
from tco.scenario.metrics import MORE_IS_BETTER

if TYPE_CHECKING:
    from tco.comparison.frontier_records import Frontier, Point

# points, so few that pilot draws lie near each: what is best at the quickest is best at no other
AT_ONCE = 8


def add_bands(frontier: Frontier, hold: bool) -> None:
    """Draw the inputs of a frontier at each of its points, those of both pools one system."""
    if not frontier.points or frontier.point_plans is None:
        return
    pool, frontier.hold = frontier.decode, hold
    function = pool.evaluation.drawn_function(hold)
    if not function.ranges:
        frontier.unsure = "no input of it has a range"
        return
    dice = Dice(function.catalogue, SEED, 0, DRAWS)
    draws = dice.settings(function.ranges)
    speeds = np.array(
        [
            pool.values[SPEED] if point.chosen else point.tokens_per_s_per_user
            for point in frontier.points
        ]
    )
    fixed_plan_indices = [
        point_index for point_index, point in enumerate(frontier.points) if hold or point.chosen
    ]
    bands: dict[int, Band] = {}
    for start in range(0, len(speeds) if not hold else 0, AT_ONCE):
        bands |= enumerate(
            _bands_in(_at_speeds(function, draws, speeds[start : start + AT_ONCE])), start
        )
    # so few draws are weighed with every plan, as those of a comparison are, or each has a plan of
    # its own
    for point_index in fixed_plan_indices:
        fixed, plan = function.structure, _plan_of_point(frontier.point_plans, point_index)
        on_plan = function._replace(structure=fixed and fixed._replace(plan=plan))
        (bands[point_index],) = _bands_in(
            _at_speeds(on_plan, draws, speeds[point_index : point_index + 1])
        )
    frontier.bands = [bands[point_index] for point_index in range(len(speeds))]


def _plan_of_point(plans: ServingPlan, point_index: int) -> ServingPlan:
    decode, prefill = (
        [float(axis[point_index]) for axis in pool] for pool in (plans.decode, plans.prefill)
    )
    return ServingPlan(DecodePlan(*decode), PrefillPlan(*prefill))


def _at_speeds(function: ScenarioFunction, draws: ArraysWithUnits, speeds: AnyArray) -> Draws:
    tiled_draws = {
        path: (np.tile(input_draws, len(speeds)), unit)
        for path, (input_draws, unit) in draws.items()
    }
    return function.draws(tiled_draws | {SPEED: (np.repeat(speeds, DRAWS), "token/s")})


def _bands_in(scenario_draws: Draws) -> list[Band]:
    """Return the bands of some points, whose draws stand one after the other."""
    points = len(scenario_draws.meets) // DRAWS
    draws = {
        metric: metric_or_nan(scenario_draws, metric).reshape(points, DRAWS)
        for metric in BANDED
        if scenario_draws.metrics[metric] is not None
    }
    draws_by_point = [
        {metric: metric_draws[point_index] for metric, metric_draws in draws.items()}
        for point_index in range(points)
    ]
    return [
        Band(
            {
                metric: metric_percentiles(metric, metric_draws)
                for metric, metric_draws in point_draws.items()
            },
            point_draws,
        )
        for point_draws in draws_by_point
    ]


AXES = (
    "usd_per_million_output_tokens",
    "output_tokens_per_s_per_chip",
    "tokens_per_s_per_user",
    "tokens_per_s_per_facility_mw",
)
DIGITS = 4


class Design(NamedTuple):
    """A system, or a pair of pools, on one of its plans."""

    frontier: Frontier
    point_index: int  # of its point on the frontier
    by: Design | None = None  # that beats it; none where no design does

    @property
    def point(self) -> Point:
        """The plan, and what it gives."""
        return self.frontier.points[self.point_index]

    @property
    def band(self) -> Band | None:
        """The draws of the point, where some were made."""
        return self.frontier.bands[self.point_index] if self.frontier.bands else None

    @property
    def figures(self) -> list[float]:
        """Figures by which designs are compared, in the order of `AXES`."""
        return [getattr(self.point, axis) for axis in AXES]

    @property
    def changes(self) -> dict[str, float]:
        """Relative change on each axis from this design to `by`.

        A value is below zero where `by` has less. There are none where no design beats this design.
        """
        if self.by is None:
            return {}
        return {
            axis: theirs / own_figure - 1
            for axis, own_figure, theirs in zip(AXES, self.figures, self.by.figures, strict=True)
        }

    @property
    def chance(self) -> float | None:
        """Return the share of draws in which the design is still beaten, or None without draws.

        Only draws in which either design keeps its interactivity count.
        """
        own_band, theirs = self.band, None if self.by is None else self.by.band
        if (
            own_band is None
            or theirs is None
            or not (either := own_band.meets | theirs.meets).any()
        ):
            return None
        leads = [
            _sign_of(axis) * (theirs.draws[axis] - own_band.draws[axis])
            for axis in AXES
            if axis in own_band.draws
        ]
        beaten = theirs.meets & (~own_band.meets | (np.minimum.reduce(leads) >= 0))
        return float(beaten[either].mean())


def designs_of(frontiers: Sequence[Frontier]) -> list[Design]:
    """Return every point of some frontiers as a design.

    A design names the design that beats it, if any.

    The frontier of a system holds everything that the system can do: on one system, or one pair of
    pools, a plan that makes more at a speed also costs and draws less per token. Where several
    designs beat a design, the named design is furthest ahead on the axis of its smallest lead.

    Args:
        frontiers: Frontiers of one or more workloads.

    Returns:
        Designs by workload, in the order of the frontiers, and the quickest first in each workload.
        Only designs of the same workload beat each other.

    """
    designs = []
    for workload in dict.fromkeys(frontier.decode.workload for frontier in frontiers):
        alike = [
            Design(frontier, point_index)
            for frontier in frontiers
            if frontier.decode.workload == workload
            for point_index in range(len(frontier.points))
        ]
        alike.sort(
            key=lambda design: (
                -design.point.tokens_per_s_per_user,
                design.point.usd_per_million_output_tokens,
            )
        )
        best = beaten_by(merits([design.figures for design in alike])) if alike else ()
        designs += [
            design._replace(by=None if by < 0 else alike[by])
            for design, by in zip(alike, best, strict=True)
        ]
    return designs


def merits(figures: Sequence[Sequence[float]]) -> AnyArray:
    """Return log figures by design at the digits that count; higher is better."""
    rounded = np.array(
        [
            [float(f"{figure:.{DIGITS - 1}e}") for figure in design_figures]
            for design_figures in figures
        ]
    )
    merit_logs: AnyArray = np.array([_sign_of(axis) for axis in AXES]) * np.log(rounded)
    return merit_logs


def _sign_of(axis: str) -> float:
    return 1.0 if axis in MORE_IS_BETTER else -1.0


def beaten_by(merits: AnyArray) -> AnyArray:
    """Return each row's index of the row that beats it most clearly, or -1.

    What beats a row is at least as good on every axis and better on one; it is itself beaten by
    none.
    """
    least, most = np.full((len(merits),) * 2, np.inf), np.full((len(merits),) * 2, -np.inf)
    for axis in merits.T:  # rows that may beat stand in columns
        ahead = axis[None, :] - axis[:, None]
        least, most = np.minimum(least, ahead), np.maximum(most, ahead)
    beats = np.asarray((least >= 0) & (most > 0))
    free = ~beats.any(axis=1)
    lead = np.where(beats & free, least, -1.0)
    return np.where(free, -1, lead.argmax(axis=1))
