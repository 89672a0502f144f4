"""Maps of a metric over two inputs, with new plans in every cell, and the best scenario.

An input that a scenario does not rest on leaves it as it is, so that the price of one maker's chip
moves against another maker's rack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tco.catalog.labels import axis_label
from tco.core.errors import DataError, UsageError
from tco.core.notebook_display import Shown
from tco.core.types import FloatArray, TextMapping
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.varied_input import Ends, log_or_linear_grid, varied_input
from tco.sampling.scenario_quantity import metric_or_nan
from tco.scenario.metrics import MORE_IS_BETTER, NEITHER, RATIOS, refuse_unknown_metrics

if TYPE_CHECKING:
    from tco.scenario.result import Result

STEPS = 13  # values of an input
NOBODY = -1
WIDE = 3.0  # how many times smaller and larger than today's an input is, unless the user says where


class MapAxis(NamedTuple):
    """An input of a map: its values, evenly spaced in ratio or difference, and today's value."""

    path: str
    unit: str
    today: float | None
    values: Sequence[float]

    @property
    def words(self) -> str:
        """The input with its unit."""
        return axis_label(self.path, self.unit)


@dataclass(repr=False)
class Map(Shown):
    """A metric of scenarios over two inputs: rows of the second input, columns of the first."""

    scenarios: list[str]
    metric: str
    x: MapAxis
    y: MapAxis
    # scenarios by rows by columns; nan where a scenario has none: no plan meets the target
    values: FloatArray
    results: Sequence[Result]  # of today

    @property
    def best(self) -> FloatArray:
        """Place of the scenario with the best value at every point; NOBODY where none has one."""
        has_value, more = np.isfinite(self.values), self.metric in MORE_IS_BETTER
        ranked = np.where(has_value, self.values, -np.inf if more else np.inf)
        return np.where(
            has_value.any(axis=0), ranked.argmax(axis=0) if more else ranked.argmin(axis=0), NOBODY
        )

    @property
    def leaders(self) -> dict[str, float]:
        """The share of the cells in which each scenario is the best."""
        best = self.best
        return {
            scenario_name: float(np.mean(best == scenario_index))
            for scenario_index, scenario_name in enumerate(self.scenarios)
        }

    @property
    def line(self) -> str:
        """In how much of the map each is the best."""
        return f"best by {self.metric}: " + ", ".join(
            f"{scenario_name} {share:.0%}" for scenario_name, share in self.leaders.items()
        )

    def to_frame(self) -> Any:
        """Return the best scenario by second input (rows) and first input (columns)."""
        import pandas as pd

        best_names = [
            [
                self.scenarios[scenario_index] if scenario_index != NOBODY else None
                for scenario_index in best_row
            ]
            for best_row in self.best
        ]
        return pd.DataFrame(
            best_names,
            index=pd.Index(self.y.values, name=self.y.words),
            columns=pd.Index(self.x.values, name=self.x.words),
        )


def field_of(
    scenarios: Sequence[str],
    vary: Sequence[str],
    metric: str,
    ends: Sequence[Ends] = ((None, None), (None, None)),
    data_folder: Path | None = None,
    set: TextMapping | None = None,  # noqa: A002 - as in `evaluate`
    variant: TextMapping | None = None,
    steps: int = STEPS,
) -> Map:
    """Return a metric of scenarios over a grid of two inputs.

    Args:
        scenarios: Names of the scenarios.
        vary: Paths of the two inputs: columns first, then rows.
        metric: Name of the metric.
        ends: Lowest and highest value of each input, as texts with units; None for a third and for
            three times today's value.
        data_folder: Folder of further user data; None without a further folder.
        set: Inputs by path, as `--set` takes them, for all scenarios.
        variant: Variants of the systems by key.
        steps: Values of each input.

    Raises:
        UsageError: `vary` does not name two different inputs, or a range is empty or reversed.
        DataError: The metric is unknown, or no scenario has a value of the metric.

    """
    if len(vary) != 2 or vary[0] == vary[1]:
        raise UsageError(
            "a map moves two inputs: name both, such as --vary site.electricity_price --vary "
            "terms.life"
        )
    refuse_unknown_metrics([metric])
    sides = [
        side
        for scenario_name in scenarios
        for side in evaluate_each([scenario_name], data_folder, set or {}, variant, priced=False)
    ]
    if all(side.result.metrics[metric] is None for side in sides):
        sides[0].metric(metric)  # says why
    settings = set or {}
    resting = {path: _sides_resting_on(sides, path, settings) for path in vary}
    x, y = (
        _map_axis_around(sides, path, pair, steps) for path, pair in zip(vary, ends, strict=True)
    )
    metric_values = np.array([_on_grid(side, metric, (x, y), resting) for side in sides])
    _refuse_replaced_input(x, y, metric_values)
    return Map(list(scenarios), metric, x, y, metric_values, [side.result for side in sides])


def _refuse_replaced_input(x: MapAxis, y: MapAxis, metric_values: FloatArray) -> None:
    """Refuse an input that moves nothing because the other input of the same owner replaces it."""
    if x.path.rpartition(".")[0] != y.path.rpartition(".")[0]:
        return
    for axis, other_axis, grid_axis in ((x, y, 2), (y, x, 1)):
        first = metric_values.take([0], axis=grid_axis)
        if np.allclose(metric_values, first, rtol=1e-12, equal_nan=True):
            raise DataError(
                f"--vary {axis.path}: it moves nothing, {other_axis.path} stands in its place"
            )


def _sides_resting_on(
    sides: Sequence[Evaluation], path: str, settings: TextMapping
) -> list[Evaluation]:
    """Return the scenarios that read an input, given or derived; without one raise `DataError`."""
    resting = [side for side in sides if path in side.result.inputs]
    resting = resting or [side for side in sides if varied_input([side], path)[0].value is not None]
    if resting:
        return resting
    owner = path.rpartition(".")[0]
    overrides = [setting for setting in settings if setting.rpartition(".")[0] == owner]
    why = f": {' and '.join(overrides)} stands in its place" if overrides else ""
    scenario_names = ", ".join(side.name for side in sides)
    raise DataError(f"--vary {path}: no scenario of {scenario_names} reads it{why}")


def _map_axis_around(sides: Sequence[Evaluation], path: str, ends: Ends, steps: int) -> MapAxis:
    today = varied_input(sides, path)[0].in_unit_of(ends)
    axis_values = log_or_linear_grid(*today.interval(ends, WIDE), steps)
    return MapAxis(path, today.unit, today.value, axis_values)


def _on_grid(
    side: Evaluation,
    metric: str,
    axes: tuple[MapAxis, MapAxis],
    resting: Mapping[str, Sequence[Evaluation]],
) -> FloatArray:
    """Return a metric of a scenario in every cell, row by row of the second input."""
    x, y = axes
    grid = np.array(list(product(y.values, x.values)))
    input_values = {
        axis.path: (grid[:, grid_column], axis.unit)
        for axis, grid_column in ((x, 1), (y, 0))
        if side in resting[axis.path]
    }
    if input_values:
        metric_values = metric_or_nan(side.function().draws(input_values), metric)
    else:
        metric_value = side.result.metrics[metric]
        metric_values = np.full(len(grid), np.nan if metric_value is None else float(metric_value))
    return metric_values.reshape(len(y.values), len(x.values))


def map_of(
    scenarios: Sequence[str],
    vary: Sequence[str],
    metric: str = "usd_per_million_output_tokens",
    ends: Sequence[Ends] = ((None, None), (None, None)),
    set: TextMapping | None = None,  # noqa: A002 - as in `evaluate`
    data: Path | None = None,
    variant: TextMapping | None = None,
) -> Map:
    """Return the map of the best scenario over two varied inputs.

    Args:
        scenarios: Names of the scenarios.
        vary: Paths of the two inputs: columns first, then rows.
        metric: Name of the metric, a cost or a rate.
        ends: Lowest and highest value of each input, as texts with units; None for a third and for
            three times today's value.
        set: Inputs by path, as `--set` takes them, for all scenarios.
        data: Folder of further user data; None without a further folder.
        variant: Variants of the systems by key.

    Raises:
        UsageError: The metric has no best value, `vary` does not name two different inputs, or a
            range is empty or reversed.
        DataError: The metric is unknown, no scenario has a value, or the inputs do not move the
            metric of any scenario.

    >>> ends = ("10 token/s", "80 token/s"), ("20000 USD", "60000 USD")
    >>> inputs = "workload.interactivity", "parts.gb200-gpu.price"
    >>> found = map_of(["trn3-nl32x2", "gb200-nvl72"], inputs, ends=ends)
    >>> found.values.shape == (2, len(found.y.values), len(found.x.values))
    True
    """
    if metric in RATIOS or metric in NEITHER:
        raise UsageError(f"{metric}: of it no scenario has the best; name a cost or a rate")
    field = field_of(scenarios, vary, metric, ends, data, set, variant)
    if all(
        len(np.unique(scenario_values[np.isfinite(scenario_values)])) < 2
        for scenario_values in field.values
    ):
        raise DataError(f"{' and '.join(vary)} do not move {metric} of {', '.join(scenarios)}")
    return field
