"""Two inputs moved together: a metric of several scenarios on a grid of both, with the plan chosen anew in every cell.

An input that a scenario does not rest on leaves it as it is, so that the price of one maker's chip moves against another maker's rack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tco.chain.metrics import METRICS
from tco.foundation.errors import UsageError, unknown
from tco.studies.plans import replanned
from tco.studies.sides import Array, Side, side_of
from tco.studies.varied import Ends, amount_of, between, told_in

if TYPE_CHECKING:
    from tco.chain.result import Result

STEPS = 13  # values of an input
WIDE = 3.0  # how many times smaller and larger than today's an input is, unless the user says where


class Axis(NamedTuple):
    """An input that is moved: its values in the unit it is told in, evenly spaced in ratio or in difference, and that of today."""

    path: str
    unit: str
    values: Sequence[float]
    today: float | None

    @property
    def words(self) -> str:
        """The input with its unit."""
        return f"{self.path}, {self.unit}" if self.unit else self.path


class Field(NamedTuple):
    """A metric of some scenarios on a grid of two inputs; none where it has no value."""

    results: Sequence[Result]  # of today
    metric: str
    x: Axis
    y: Axis
    values: Sequence[Sequence[Sequence[float | None]]]  # of each scenario the rows, of each row the cells


def field_of(
    scenarios: Sequence[str],
    vary: Sequence[str],
    metric: str,
    ends: Sequence[Ends] = ((None, None), (None, None)),
    data: Path | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - as in `evaluate`
    variant: Mapping[str, str] | None = None,
    steps: int = STEPS,
) -> Field:
    """Return a metric of some scenarios wherever two inputs may lie."""
    if len(vary) != 2 or vary[0] == vary[1]:
        raise UsageError("a map moves two inputs: name both, such as --vary site.electricity_price --vary terms.life")
    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    sides = [side_of(name, data, set or {}, variant or {}) for name in scenarios]
    if all(side.centre.metrics[metric] is None for side in sides):
        sides[0].metric(sides[0].centre, metric)  # says why
    x, y = (axis_of(sides, path, pair, steps) for path, pair in zip(vary, ends, strict=True))
    values = [on_grid(side, metric, x, y) for side in sides]
    return Field([side.centre for side in sides], metric, x, y, values)


def axis_of(sides: Sequence[Side], path: str, ends: Ends, steps: int) -> Axis:
    """Return an input's values between two ends, or around that of today; in equal ratios where all are above zero."""
    today = told_in(amount_of(sides, path)[0], ends)
    low, high = between(path, today, ends, WIDE)
    many = np.geomspace(low, high, steps) if low > 0 else np.linspace(low, high, steps)
    return Axis(path, today.unit, [low, *many[1:-1].tolist(), high], today.value)


def on_grid(side: Side, metric: str, x: Axis, y: Axis) -> list[list[float | None]]:
    """Return a metric of a scenario in every cell, row by row of the second input."""
    grid = np.array(list(product(y.values, x.values)))
    moved = {axis.path: (grid[:, at], axis.unit) for axis, at in ((x, 1), (y, 0)) if axis.path in side.centre.inputs}
    if moved:
        found = replanned(side, metric, moved)
    else:
        value = side.centre.metrics[metric]
        found = np.full(len(grid), np.nan if value is None else float(value))
    return in_rows(found, len(x.values))


def in_rows(found: Array, wide: int) -> list[list[float | None]]:
    """Return numbers in rows of some width, none for what is none."""
    return [[None if np.isnan(one) else float(one) for one in row] for row in found.reshape(-1, wide)]
