"""One input moved alone: a metric of several scenarios at each value, the plan chosen anew.

A scenario that does not rest on the input keeps its metric, as in `tco solve`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog.labels import axis_label, short_name
from tco.comparison.break_even import EXACT, Mover, moved_sides, ratio_or_own, rounded_text
from tco.core.errors import DataError
from tco.core.notebook_display import Shown
from tco.core.types import TextMapping
from tco.evaluation.evaluation import own_and_baseline
from tco.evaluation.varied_input import Ends, VariedInput
from tco.scenario.metrics import METRICS

if TYPE_CHECKING:
    from tco.scenario.result import Result

WIDE = 3.0  # how many times smaller and larger than today's an input is, unless the user says where
BY_RATIOS = 20.0  # ratio of the ends from which values are spaced by ratios
STEPS = 25  # values of the input beside today's


class LinePoint(NamedTuple):
    """A scenario's metric at one value of the input."""

    scenario: str
    value: float  # in the unit of the input; of a date the ordinal of its day
    metric: float | None  # None where the scenario has none
    base_case: bool  # whether the value is today's


class InputLine(NamedTuple):
    """A scenario's metric over the values of the input."""

    result: Result  # of today
    points: Sequence[LinePoint]
    is_moved: bool  # whether the scenario rests on the input
    missing: Mapping[float, str]  # values without a metric, with the reason

    @property
    def finite_points(self) -> list[tuple[float, float]]:
        """Values of the input with the metric there, where there is one."""
        return [(point.value, point.metric) for point in self.points if point.metric is not None]


@dataclass(repr=False)
class InputLines(Shown):
    """A metric of some scenarios over one input."""

    metric: str
    today: VariedInput
    lines: Sequence[InputLine]
    hold: bool

    @property
    def path(self) -> str:
        """Path of the input."""
        return self.today.path

    @property
    def input_values(self) -> list[float]:
        """Values of the input, ascending."""
        return [point.value for point in self.lines[0].points]

    @property
    def points(self) -> list[LinePoint]:
        """Points of all scenarios, a scenario after the other."""
        return [point for line in self.lines for point in line.points]

    @property
    def value_unit(self) -> str:
        """Unit of the values of the input; empty for a date."""
        return "" if self.today.stepwise else self.today.unit

    @property
    def words(self) -> str:
        """The input with its unit."""
        return axis_label(self.path, self.value_unit)

    @property
    def notes(self) -> list[str]:
        """Notes on scenarios at rest, and on values without a metric."""
        label = METRICS[self.metric].label
        notes = [
            f"{line.result.scenario}: {short_name(self.path)} does not move its {label}"
            for line in self.lines
            if not line.is_moved
        ]
        for line in self.lines:
            if line.missing:
                first_value, why = next(iter(line.missing.items()))
                first = f"the first at {rounded_text(self.today, first_value)}: {why}"
                notes.append(
                    f"{line.result.scenario}: no answer at {len(line.missing)} of the "
                    f"{len(line.points)} values, {first}"
                )
        return notes

    @property
    def line(self) -> str:
        """The metric, the input and its ends."""
        low, high = (rounded_text(self.today, self.input_values[end]) for end in (0, -1))
        return f"{self.metric} over {self.path} from {low} to {high}"

    def to_frame(self) -> Any:
        """Return a row for each value of the input, and a column for each scenario."""
        import pandas as pd

        return pd.DataFrame(
            {line.result.scenario: [point.metric for point in line.points] for line in self.lines},
            index=pd.Index(map(self.today.plain, self.input_values), name=self.words),
        )


def lines_of(
    scenarios: Sequence[str],
    vary: str,
    metric: str,
    ends: Ends = (None, None),
    data_folder: Path | None = None,
    set: TextMapping | None = None,  # noqa: A002 - as in `evaluate`
    variant: TextMapping | None = None,
    *,
    baseline: str | None = None,
    hold: bool = False,
    steps: int = STEPS,
) -> InputLines:
    """Return a metric of scenarios over one input.

    Args:
        scenarios: Names of the scenarios.
        vary: Path of the input, or `terms.date`.
        metric: Name of the metric.
        ends: Lowest and highest value of the input, as texts with units; None for a third and for
            three times today's value, of a date for its own and two years on.
        data_folder: Folder of further user data; None without a further folder.
        set: Values of other inputs by path, for all scenarios.
        variant: Variants of the systems by key.
        baseline: Scenario that a ratio is relative to; None takes the usual baseline.
        hold: True holds the plans of today.
        steps: Values of the input; today's stands among them besides. Of a date all months.

    Raises:
        UsageError: The range is reversed or empty.
        DataError: The scenario, metric or input is unknown, or the input moves no scenario.

    """
    read, groups = metric, []
    for scenario_name in dict.fromkeys(scenarios):
        read, sides = own_and_baseline(
            scenario_name, metric, data_folder, set or {}, variant or {}, baseline
        )
        groups.append(sides)
    today, movers = moved_sides(
        [side for sides in groups for side in sides], vary, ends, read, hold
    )
    grid = today.grid(ends, steps, WIDE, BY_RATIOS)
    remaining = iter(movers)
    lines = [_line([next(remaining) for _ in sides], today, grid) for sides in groups]
    input_lines = InputLines(metric, today, lines, hold)
    _refuse_idle_input(input_lines)
    return input_lines


def _line(movers: Sequence[Mover], today: VariedInput, grid: Sequence[float]) -> InputLine:
    """Return the line of a scenario, from its mover and for a ratio the baseline's."""
    side = movers[0].side
    points, missing = [], {}
    for input_value in grid:
        metric_value: float | None = None
        try:
            metric_value = ratio_or_own([mover.metric_at(input_value) for mover in movers])
        except (DataError, ArithmeticError) as error:
            missing[input_value] = str(error)
        if metric_value is not None and not math.isfinite(metric_value):
            metric_value, missing[input_value] = None, "it is no finite number there"
        points.append(
            LinePoint(side.result.scenario, input_value, metric_value, input_value == today.value)
        )
    is_moved = any(mover.function is not None for mover in movers)
    return InputLine(side.result, points, is_moved, missing)


def _refuse_idle_input(input_lines: InputLines) -> None:
    """Refuse an input at which no scenario has the metric, or that moves none."""
    levels = [[level for _, level in line.finite_points] for line in input_lines.lines]
    names = ", ".join(line.result.scenario for line in input_lines.lines)
    low, high = (rounded_text(input_lines.today, input_lines.input_values[end]) for end in (0, -1))
    if not any(levels):
        why = next(iter(input_lines.lines[0].missing.values()))
        raise DataError(f"{input_lines.metric} of {names} has no value from {low} to {high}: {why}")
    if all(
        len(level) > 1 and max(level) - min(level) <= EXACT * max(map(abs, level))
        for level in levels
    ):
        first = input_lines.lines[0].result.scenario
        raise DataError(
            f"{input_lines.path} does not move {input_lines.metric} of {names} from {low} to "
            f"{high}; `tco sensitivity {first} --metric {input_lines.metric}` says what does"
        )
