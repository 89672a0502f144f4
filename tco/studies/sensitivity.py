"""What drives a metric: every input with a range at its low and its high, alone (a tornado), and all of them together (Sobol indices).

The plan and all else that was decided is held, its batch included, unless each point is to choose anew: then the batch is solved for the
target, and a point at which no plan meets it has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tco.chain.draws import CELLS, evaluate_draws
from tco.foundation.errors import DataError, UsageError
from tco.foundation.provenance import SOURCED, Input
from tco.studies.ranges import range_of
from tco.studies.sides import Array, Side, joined, sides_of
from tco.studies.sobol import Indices, design, indices

P95 = 1.6448536269514722  # standard deviations to the 95th percentile, at which a high lies, and a low at the 5th
ROUNDING = 1e-12  # a relative change that is none
EVERY = 1.0  # share of the best rate that a plan may lie below it: at an end another plan may be far better than those near it
WORTH = 3  # inputs that are named as worth finding out
OF_THE_WORKLOAD = ("token", "step_s", "ttft", "tpot", "mfu")  # words of metrics that a point without a plan has nowhere


class Swing(NamedTuple):
    """An input, and the metric at both ends of its range; none where no plan meets the target there."""

    given: Input
    at_low: float | None
    at_high: float | None
    meets_low: bool  # some batch of the plan, or with plans chosen anew some plan
    meets_high: bool

    @property
    def swing(self) -> float | None:
        """From the low end to the high one."""
        return None if self.at_low is None or self.at_high is None else self.at_high - self.at_low


class Driver(NamedTuple):
    """The Sobol indices of an input."""

    first: float
    total: float
    first_error: float
    total_error: float


class Sensitivity(NamedTuple):
    """What drives a metric of a scenario, the strongest first."""

    metric: str
    sides: Sequence[Side]
    replan: bool
    centre: float
    swings: list[Swing]
    drivers: dict[str, Driver]  # by path; empty where indices were not asked for

    @property
    def variance(self) -> float:
        """The squares of all swings together: were the metric a sum, a measure of its variance."""
        return sum((one.swing or 0.0) ** 2 for one in self.swings)

    def share(self, one: Swing) -> float | None:
        """Return how much of the variance an input is for: its first-order index, or what the squares of the swings make of it."""
        if self.drivers:
            return self.drivers[one.given.path].first if one.given.path in self.drivers else 0.0
        return None if one.swing is None else one.swing**2 / (self.variance or 1.0)

    @property
    def worth(self) -> list[Swing]:
        """The inputs that nobody states and that move the metric most: what is worth finding out."""
        guessed = [one for one in self.swings if one.given.kind not in SOURCED and one.swing != 0]
        return sorted(guessed, key=lambda one: -(1.0 if (share := self.share(one)) is None else share))[:WORTH]

    def narrows(self, one: Swing) -> float | None:
        """Return by which share the range of the metric narrows once an input is known: 1 - sqrt(1 - its share of the variance)."""
        share = self.share(one)
        return None if share is None else float(1 - (1 - min(max(share, 0.0), 1.0)) ** 0.5)

    def groups(self, name: Callable[[Input], str]) -> dict[str, float]:
        """Return the share of the squares of all swings by some name of an input, the largest first."""
        found: dict[str, float] = {}
        for one in self.swings:
            if one.swing:
                found[name(one.given)] = found.get(name(one.given), 0.0) + one.swing**2 / self.variance
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def sensitivity(
    scenario: str,
    metric: str,
    data: Path | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - as in `evaluate`
    variant: Mapping[str, str] | None = None,
    *,
    baseline: str | None = None,
    replan: bool = False,
    sobol: int | None = None,
    seed: int = 0,
) -> Sensitivity:
    """Return what drives a metric of a scenario; `sobol` is the size of a sample, a power of two, from which Sobol indices are taken.

    >>> found = sensitivity("gb200-nvl72", "tco_usd_per_chip_hour")
    >>> found.swings[0].given.path
    'terms.life'
    """
    if sobol is not None and replan:
        raise UsageError("Sobol indices hold the plan: ask for them without replanning")
    read, sides = sides_of(scenario, metric, data, set or {}, variant or {}, baseline)
    if replan and any(side.centre.plan is None for side in sides):
        raise DataError(f"{scenario}: no plan to choose anew")
    ranged = {path: one for side in reversed(sides) for path, one in side.centre.inputs.items() if has_range(one)}
    if not ranged:
        raise DataError(f"{scenario}: none of its inputs has a range")
    ends = [ends_of(side, read, list(ranged), replan) for side in sides]
    values = joined([value for value, _ in ends])
    meets = np.logical_and.reduce([met for _, met in ends])
    swings = sorted((swing_of(ranged[path], values, meets, 2 * at + 1) for at, path in enumerate(ranged)), key=rank)
    settled = [swing if abs(swing.swing or 0.0) > ROUNDING * abs(values[0]) or swing.swing is None else still(swing) for swing in swings]
    drivers = drivers_of(sides, read, settled, sobol, seed) if sobol else {}
    return Sensitivity(metric, sides, replan, float(values[0]), settled, drivers)


def has_range(given: Input) -> bool:
    """Say whether an input has a range."""
    return given.low is not None and given.high is not None and given.low < given.high


def rank(one: Swing) -> tuple[float, str]:
    """Return what swings are ordered by: the largest first, before them those with an end that has no value."""
    return -np.inf if one.swing is None else -abs(one.swing), one.given.path


def still(one: Swing) -> Swing:
    """Return a swing that is but rounding as none."""
    return one._replace(at_high=one.at_low)


def swing_of(given: Input, values: Array, meets: Array, at: int) -> Swing:
    """Return the swing of an input from its two points."""
    low, high = (None if np.isnan(value) else float(value) for value in values[at : at + 2])
    return Swing(given, low, high, bool(meets[at]), bool(meets[at + 1]))


# ---------------------------------------------------------------- one at a time
def ends_of(side: Side, metric: str, paths: list[str], replan: bool) -> tuple[Array, Array]:
    """Return a metric at the centre and at both ends of every path, and whether the targets are met there."""
    count = 2 * len(paths) + 1
    own = {path: at for at, path in enumerate(paths) if path in side.centre.inputs and has_range(side.centre.inputs[path])}
    alone = {} if replan else {path: at for path, at in own.items() if decides(side, path)}
    moved = {path: points(side.centre.inputs[path], 2 * at + 1, count) for path, at in own.items() if path not in alone}
    met, of_the_workload = np.ones(count, dtype=bool), any(word in metric for word in OF_THE_WORKLOAD)
    if not moved:
        return np.full(count, side.metric(side.centre, metric)), met
    if replan:
        return replanned(side, metric, moved)
    values = np.broadcast_to(side.metric(side.evaluate(moved, structure=side.centre.structure), metric), count).astype(float)
    if of_the_workload and side.centre.plan is not None:
        how = {"structure": side.centre.structure, "catalogue": side.catalogue, "variant": None}
        met = evaluate_draws(side.scenario, {**side.settings, **moved}, **how).meets  # type: ignore[arg-type]
    for path, at in alone.items():
        given = side.centre.inputs[path]
        for place, end in ((2 * at + 1, given.low), (2 * at + 2, given.high)):
            values[place], met[place] = alone_at(side, metric, {path: (end, given.unit)}, side.centre.plan)
    return values, met


def replanned(side: Side, metric: str, moved: Mapping[str, tuple[Array, str]]) -> tuple[Array, Array]:
    """Return a metric for arrays of inputs with the plan chosen anew at every point, and whether the targets are met there."""
    count = len(next(iter(moved.values()))[0])

    def alone(place: int) -> tuple[float, bool]:
        settings = {path: (float(many[place]), unit) for path, (many, unit) in moved.items()}
        given = side.centre.inputs
        return alone_at(side, metric, {path: one for path, one in settings.items() if one != (given[path].value, given[path].unit)}, None)

    found: Any = np.full(count, np.nan)
    met = np.ones(count, dtype=bool)
    places: Sequence[int] = range(count)
    if side.centre.plan is not None:
        draws = evaluate_draws(side.scenario, {**side.settings, **moved}, replan=True, near=EVERY, catalogue=side.catalogue, variant=side.variant)
        found = draws.metrics[metric]
        if found is None:
            raise DataError(f"{metric} has no value for {side.scenario.name} at any end of an input")
        # what was weighed met the target at the centre; where none of it does all plans are searched
        places = np.flatnonzero(~draws.meets).tolist() if any(word in metric for word in OF_THE_WORKLOAD) else []
    for place in places:
        found[place], met[place] = alone(place)
    return found, met


def decides(side: Side, path: str) -> bool:
    """Say whether the number of an input decides what exists, so that its ends have structures of their own."""
    structure = side.centre.structure
    return structure is not None and not isinstance(structure.readings.get(path, True), bool)


def points(given: Input, at: int, count: int) -> tuple[Array, str]:
    """Return an input at every point: its low and high at two of them, its value at all others."""
    many = np.full(count, given.value, dtype=float)
    many[at : at + 2] = given.low, given.high
    return many, given.unit


def alone_at(side: Side, metric: str, settings: Mapping[str, Any], plan: Any) -> tuple[float, bool]:
    """Return a metric on a plan, without one on the best, all else decided anew, and whether it can be so."""
    try:
        value = side.evaluate(settings, plan=plan).metrics[metric]
    except DataError:
        value = None
    return (np.nan, False) if value is None else (float(value), True)


# ---------------------------------------------------------------- all together
def drivers_of(sides: Sequence[Side], metric: str, swings: Sequence[Swing], count: int, seed: int) -> dict[str, Driver]:
    """Return the Sobol indices of the inputs that move a metric, all others at their values."""
    if count & (count - 1) or not 2 <= count <= CELLS:
        raise UsageError(f"{count} samples: expected a power of two up to {CELLS}")
    moving = [one.given for one in swings if one.swing != 0 and not any(decides(side, one.given.path) for side in sides)]
    if not moving:
        return {}
    a, b = (np.column_stack([spread(one, part[:, at]) for at, one in enumerate(moving)]) for part in design(count, len(moving), seed))

    def function(rows: Array) -> Array:
        values = []
        for side in sides:
            known = {one.path: (rows[:, at], one.unit) for at, one in enumerate(moving) if one.path in side.centre.inputs}
            result = side.evaluate(known, structure=side.centre.structure)
            values.append(np.broadcast_to(side.metric(result, metric), count))
        return np.asarray(joined(values))

    found: Indices = indices(function, a, b)
    return {one.path: Driver(*(float(part[at]) for part in found)) for at, one in enumerate(moving)}


def spread(given: Input, places: Array) -> Array:
    """Return an input at quantiles: its value at one half, low and high at 5 % and 95 %, normal in its logarithm where all are above zero."""
    from scipy.special import ndtri

    return range_of(given).at(ndtri(places))
