"""Two inputs moved together: what a metric of each scenario is at every pair of their values, and who has the best.

Plans, batches and structure are chosen anew at every point, over all plans of the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.chain.draws import evaluate_draws
from tco.chain.metrics import METRICS, MORE_IS_BETTER, NEITHER, PERFORMANCE, RATIOS
from tco.foundation.errors import DataError, UsageError, unknown
from tco.studies.sensitivity import EVERY
from tco.studies.sides import Array, Side, side_of
from tco.studies.solve import Amount, amount_of, grid_of

STEPS = 12  # values of an input, and today's
NOBODY = -1
Ends = tuple[str | None, str | None]


class Map(NamedTuple):
    """A metric of some scenarios over two inputs: the second one's values are the rows, the first one's the columns."""

    scenarios: list[str]
    metric: str
    paths: tuple[str, str]
    today: tuple[Amount, Amount]
    x: Array  # values of the first input, in its unit today
    y: Array
    values: Array  # scenarios by rows by columns; nan where a scenario has none: no plan meets the target
    best: Array  # place of the scenario with the best value; NOBODY where none has one

    @property
    def leaders(self) -> dict[str, float]:
        """The share of the points at which each scenario is the best."""
        return {name: float(np.mean(self.best == place)) for place, name in enumerate(self.scenarios)}


def map_of(
    scenarios: Sequence[str],
    vary: tuple[str, str],
    metric: str = "usd_per_million_output_tokens",
    ends: tuple[Ends, Ends] = ((None, None), (None, None)),
    set: Mapping[str, str] | None = None,  # noqa: A002 - as in `evaluate`
    data: Path | None = None,
    variant: Mapping[str, str] | None = None,
) -> Map:
    """Return a metric of some scenarios over the values of two inputs; ends left out are a thirtieth of today's and thirty times it.

    An input that a scenario does not rest on leaves it where it is; one that none rests on raises `DataError`.

    >>> ends = ("10", "80"), ("20000", "60000")
    >>> found = map_of(["trn3-nl32x2", "gb200-nvl72"], ("workload.interactivity", "parts.gb200-gpu.price"), ends=ends)
    >>> found.values.shape == (2, len(found.y), len(found.x))
    True
    """
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if metric in RATIOS or metric in NEITHER:
        raise UsageError(f"{metric}: of it no scenario has the best; name a cost or a rate")
    if vary[0] == vary[1]:
        raise UsageError(f"--vary {vary[0]}: is given twice, expected two inputs")
    sides = [side_of(name, data, set or {}, variant or {}) for name in scenarios]
    for side in sides:
        side.metric(side.centre, metric)
    first, other = (amount_of(sides, path) for path in vary)
    axes = [np.array(grid_of(path, one[0], some, STEPS)) for path, one, some in zip(vary, (first, other), ends, strict=True)]
    columns, rows = (many.ravel() for many in np.meshgrid(*axes))
    values = np.empty((len(sides), len(rows)))
    for place, side in enumerate(sides):
        moved = {
            path: (many, one[0].unit) for path, one, many in zip(vary, (first, other), (columns, rows), strict=True) if any(side is a for a in one[1])
        }
        values[place] = along(side, metric, moved, len(rows))
    if all(len(np.unique(one[np.isfinite(one)])) < 2 for one in values):
        raise DataError(f"{vary[0]} and {vary[1]} do not move {metric} of {', '.join(scenarios)}")
    shape = (len(axes[1]), len(axes[0]))
    return Map(list(scenarios), metric, vary, (first[0], other[0]), *axes, values.reshape(-1, *shape), leading(values, metric).reshape(shape))


def along(side: Side, metric: str, moved: Mapping[str, tuple[Array, str]], count: int) -> Array:
    """Return a metric of a scenario at points of the inputs that move it; nan where no plan meets the target."""
    if not moved:
        return np.full(count, float(side.metric(side.centre, metric)))
    draws = evaluate_draws(side.scenario, {**side.settings, **moved}, replan=True, near=EVERY, catalogue=side.catalogue, variant=side.variant)
    found = draws.metrics[metric]
    if found is None:
        raise DataError(f"{metric} has no value for {side.scenario.name} at any of these values")
    return np.where(draws.meets, found, np.nan) if metric in PERFORMANCE else found


def leading(values: Array, metric: str) -> Array:
    """Return the place of the best value at every point; NOBODY where there is none."""
    known = np.isfinite(values)
    worst = -np.inf if metric in MORE_IS_BETTER else np.inf
    ranked = np.where(known, values, worst)
    best = ranked.argmax(axis=0) if metric in MORE_IS_BETTER else ranked.argmin(axis=0)
    return np.where(known.any(axis=0), best, NOBODY)
