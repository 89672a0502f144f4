"""Who wins where: which scenario has the best of a metric in every cell of a grid of two inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tco.chain.metrics import MORE_IS_BETTER, NEITHER, RATIOS
from tco.foundation.errors import DataError, UsageError
from tco.studies.fields import Axis, field_of
from tco.studies.sides import Array
from tco.studies.varied import Ends

NOBODY = -1


class Map(NamedTuple):
    """A metric of some scenarios over two inputs: the second one's values are the rows, the first one's the columns."""

    scenarios: list[str]
    metric: str
    x: Axis
    y: Axis
    values: Array  # scenarios by rows by columns; nan where a scenario has none: no plan meets the target
    best: Array  # place of the scenario with the best value; NOBODY where none has one

    @property
    def leaders(self) -> dict[str, float]:
        """The share of the cells in which each scenario is the best."""
        return {name: float(np.mean(self.best == place)) for place, name in enumerate(self.scenarios)}


def map_of(
    scenarios: Sequence[str],
    vary: Sequence[str],
    metric: str = "usd_per_million_output_tokens",
    ends: Sequence[Ends] = ((None, None), (None, None)),
    set: Mapping[str, str] | None = None,  # noqa: A002 - as in `evaluate`
    data: Path | None = None,
    variant: Mapping[str, str] | None = None,
) -> Map:
    """Return who has the best of a metric as two inputs move; inputs that move it nowhere raise `DataError`.

    >>> ends = ("10 token/s", "80 token/s"), ("20000 USD", "60000 USD")
    >>> found = map_of(["trn3-nl32x2", "gb200-nvl72"], ("workload.interactivity", "parts.gb200-gpu.price"), ends=ends)
    >>> found.values.shape == (2, len(found.y.values), len(found.x.values))
    True
    """
    if metric in RATIOS or metric in NEITHER:
        raise UsageError(f"{metric}: of it no scenario has the best; name a cost or a rate")
    field = field_of(scenarios, vary, metric, ends, data, set, variant)
    values = np.array(field.values, dtype=float)
    if all(len(np.unique(one[np.isfinite(one)])) < 2 for one in values):
        raise DataError(f"{' and '.join(vary)} do not move {metric} of {', '.join(scenarios)}")
    return Map(list(scenarios), metric, field.x, field.y, values, leading(values, metric))


def leading(values: Array, metric: str) -> Array:
    """Return the place of the best value at every point; NOBODY where there is none."""
    known, more = np.isfinite(values), metric in MORE_IS_BETTER
    ranked = np.where(known, values, -np.inf if more else np.inf)
    return np.where(known.any(axis=0), ranked.argmax(axis=0) if more else ranked.argmin(axis=0), NOBODY)
