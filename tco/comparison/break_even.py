"""Break-even: the value of an input at which a metric reaches a target, with new plans.

The target is a value, a change relative to today's, or the metric of another scenario, in which an
input that it rests on is moved too. Plans, tiers and switches come whole, so a metric may move in
steps: a target that lies within one is reached with it. A date moves by months.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.catalog.labels import short_name
from tco.core.errors import DataError, UsageError, located
from tco.core.notebook_display import Shown
from tco.core.own_values import question_number_and_unit, question_quantity
from tco.core.provenance import period
from tco.core.types import TextMapping
from tco.cost.price_dates import newest_price
from tco.evaluation.evaluation import evaluate_each, own_and_baseline
from tco.evaluation.scenario_function import Evaluation, ScenarioFunction
from tco.evaluation.varied_input import DATE, Ends, VariedInput, price_date, varied_input
from tco.scenario.metrics import METRICS, RATIOS, perf_per_tco

if TYPE_CHECKING:
    from tco.sampling.median import DrawnMetric
    from tco.scenario.result import Result

POINTS = 33  # of the grid where plans are held
SEARCHED = 17  # where each is searched
EXACT = 1e-9  # relative to the target: a metric that comes no closer steps over it


class Break(NamedTuple):
    """A value of the input, its metric, and the metric just before it.

    Where the two differ, the metric steps over the target.
    """

    value: float
    metric: float
    short: float


class Mover(NamedTuple):
    """A side as an input is moved."""

    side: Evaluation
    function: ScenarioFunction | None  # None where the side does not rest on the input
    # metric at a value of the input, evaluated once; one without a value raises `DataError`
    metric_at: Callable[[float], float]

    @property
    def searches_plan(self) -> bool:
        """Whether a plan is searched at every value of the input."""
        return self.function is not None and self.function.plan is None


@dataclass(repr=False)
class Solution(Shown):
    """Where a metric reaches its target, the nearest to today's first, or the reason for none."""

    scenario: str
    metric: str
    words: str  # the target as it was asked for
    today: VariedInput
    movers: Sequence[Mover]
    target: float | None  # none where it moves with the input: what the second mover has
    centre: float  # the metric today
    # values at which the metric has none, and why
    missing: dict[float, str] = field(default_factory=dict)
    breaks: list[Break] = field(default_factory=list)
    points: list[tuple[float, float | None]] = field(default_factory=list)  # of the grid
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    hold: bool = False  # whether every draw keeps the plan of the base case

    @property
    def path(self) -> str:
        """Path of the input."""
        return self.today.path

    @property
    def base_case_result(self) -> Result:
        """Today's result."""
        return self.movers[0].side.result

    @property
    def plan(self) -> str:
        """Treatment of the plan at every value: `held` or `re-optimised`."""
        searched = any(
            mover.searches_plan and mover.side.result.plan is not None for mover in self.movers
        )
        return "re-optimised" if searched else "held"

    @cached_property
    def drawn(self) -> DrawnMetric | None:
        """Percentiles of the metric today, over draws of every input."""
        from tco.sampling.median import drawn_metric

        reference = self.movers[1].side if self.metric in RATIOS else None
        return drawn_metric(self.movers[0].side, self.metric, self.hold, reference)

    def metric_at(self, input_value: float) -> float:
        """Return the metric at a value of the input."""
        return ratio_or_own(
            [
                mover.metric_at(input_value)
                for mover in (self.movers if self.target is not None else self.movers[:1])
            ]
        )

    def target_at(self, input_value: float) -> float:
        """Return the target at a value of the input."""
        return self.movers[1].metric_at(input_value) if self.target is None else self.target

    def gap(self, input_value: float) -> float | None:
        """Return by how much the metric is above the target; none where either has no value."""
        try:
            metric_gap = self.metric_at(input_value) - self.target_at(input_value)
        except (DataError, ArithmeticError) as error:
            self.missing[input_value] = str(error)
            return None
        if not math.isfinite(metric_gap):
            self.missing[input_value] = "it is no finite number there"
            return None
        return metric_gap

    @property
    def line(self) -> str:
        """The input, and the value at which the metric reaches its target."""
        crossing_text = (
            self.today.text(self.breaks[0].value) if self.breaks else f"none, {self.reason}"
        )
        return f"{self.scenario}: {self.metric} {self.words} at {self.path} {crossing_text}"

    def to_frame(self) -> Any:
        """Return the metric over the range of the input, crossings among it."""
        import pandas as pd

        frame_rows = [(input_value, metric, False) for input_value, metric in self.points] + [
            (break_point.value, break_point.metric, True) for break_point in self.breaks
        ]
        return pd.DataFrame(
            sorted(frame_rows, key=lambda frame_row: frame_row[0]),
            columns=[self.path, self.metric, "crossing"],
        ).assign(**self.base_case_result.context)


def solve(
    scenario: str,
    vary: str,
    until: str,
    ends: Ends = (None, None),
    data: Path | None = None,
    set: TextMapping | None = None,  # noqa: A002 - as in `evaluate`
    variant: TextMapping | None = None,
    *,
    baseline: str | None = None,
    hold: bool = False,
) -> Solution:
    """Return the values of `vary` at which a scenario's metric meets `until`.

    Args:
        scenario: Name or path of the scenario.
        vary: Path of the input that varies, or `terms.date`.
        until: Metric and target: a value, a change such as `tco_usd_per_chip_hour=+10%`, or a
            scenario whose metric is the target.
        ends: Lowest and highest value of `vary` with units; None takes the usual end.
        data: Folder of own data; None takes no further data.
        set: Values of other inputs by path.
        variant: Variants of the system by key.
        baseline: Scenario that a ratio is relative to; None takes the usual baseline.
        hold: True holds the plans of today.

    Returns:
        Solution; its list of values is empty if the metric never meets its target.

    Raises:
        UsageError: `until` has another form than METRIC=TARGET.
        DataError: The scenario, metric, input or target is unknown or unfit.

    >>> found = solve("gb200-nvl72", "terms.rate", "tco_usd_per_chip_hour=+10%")
    >>> round(found.breaks[0].metric / found.centre, 9)
    1.1
    >>> found.today.text(found.breaks[0].value)[:3]
    '0.1'
    """
    metric, words = target_of(until)
    read, sides = own_and_baseline(scenario, metric, data, set or {}, variant or {}, baseline)
    centre, target = ratio_or_own([side.metric(read) for side in sides]), None
    if is_number_text(words):
        target = level(words, centre, metric)
    else:  # equal to another scenario: a ratio is so where the costs behind it are
        metric, sides = read, [sides[0], *evaluate_each([words], data, set or {}, priced=False)]
        centre = sides[0].metric(metric)
    today, movers = moved_sides(sides, vary, ends, read, hold)
    searched = any(mover.searches_plan for mover in movers)
    solution = Solution(scenario, metric, words, today, movers, target, centre, hold=hold)
    fill(solution, today.grid(ends, SEARCHED if searched else POINTS))
    return solution


def fill(solution: Solution, grid: list[float]) -> None:
    """Find where the metric reaches the target on a grid."""
    gaps = {grid_value: solution.gap(grid_value) for grid_value in grid}
    valid_values = [grid_value for grid_value in grid if gaps[grid_value] is not None]
    if not valid_values:
        raise DataError(
            f"{solution.metric} has no value from {solution.today.text(grid[0])} to "
            f"{solution.today.text(grid[-1])}: {solution.missing[grid[0]]}"
        )
    _refuse_unmoved(solution, valid_values)
    if len(valid_values) > 1 and all(
        abs(gaps[valid_value] or 0.0) <= EXACT * abs(solution.target_at(valid_value))
        for valid_value in valid_values
    ):
        raise DataError(
            f"{solution.metric} of {solution.scenario} meets {solution.words} at every value of "
            f"{solution.path}: there is nothing to find"
        )
    solution.points = [
        (grid_value, solution.metric_at(grid_value) if grid_value in valid_values else None)
        for grid_value in grid
    ]
    solution.breaks = [
        broken(solution, crossing)
        for crossing in crossings(solution.gap, grid, solution.today.stepwise)
    ]
    if (today := solution.today.value) is not None:
        solution.breaks.sort(key=lambda break_point: abs(break_point.value - today))
    solution.reason = "" if solution.breaks else _no_crossing(solution, valid_values)
    solution.notes = _solution_notes(solution, grid, valid_values)


# ---------------------------------------------------------------- what is asked
def target_of(until: str) -> tuple[str, str]:
    """Return the metric and the target of METRIC=TARGET, as texts.

    Args:
        until: Text such as `tco_usd_per_chip_hour=+10%`.

    Raises:
        UsageError: The metric, the target or the equals sign is missing.

    """
    metric, sign, words = (part.strip() for part in until.partition("="))
    if not (sign and metric and words):
        raise UsageError(
            f"--until {until!r}: expected METRIC=VALUE, METRIC=+10% or METRIC=SCENARIO"
        )
    return metric, words


def is_number_text(words: str) -> bool:
    """Say whether a target is a number, not a scenario's name.

    Args:
        words: Target, such as `2.5 USD`, `+10%` or `gb200-nvl72`.

    """
    return re.match(r"[+-]?(\d|\.\d)", words) is not None


def level(words: str, centre: float, metric: str) -> float:
    """Return a target: a value, by default in the unit of the metric, or a change from today's."""
    unit = METRICS[metric].unit
    with located(f"--until {metric}={words}"):
        number, unit_text = question_number_and_unit(words) or (math.nan, words)
        if unit_text == "%" and words.startswith(("+", "-")):
            target = centre * (1 + number / 100)
        else:
            target = question_quantity(words, unit) if unit_text else number
    if not math.isfinite(target):
        raise DataError(f"--until {metric}={words}: expected a finite number")
    return target


def ratio_or_own(metric_values: Sequence[float]) -> float:
    """Return a scenario's own metric, or the ratio of the baseline's to it.

    Args:
        metric_values: Metric of the scenario, followed by the baseline's for a ratio.

    """
    own_metric, *baseline_metrics = metric_values
    return float(perf_per_tco(baseline_metrics[0], own_metric)) if baseline_metrics else own_metric


def moved_sides(
    sides: Sequence[Evaluation], vary: str, ends: Ends, metric: str, hold: bool
) -> tuple[VariedInput, list[Mover]]:
    """Return an input as of today, and the sides as it moves.

    Args:
        sides: Evaluated scenarios; those that do not rest on the input keep their metric.
        vary: Path of the input, or `terms.date`.
        ends: Texts of `--from` and `--to`, whose unit the input takes.
        metric: Name of the metric.
        hold: True holds the plans of today.

    Raises:
        DataError: The path is unknown or names a text.

    """
    today, resting = (price_date(sides[0]), sides) if vary == DATE else varied_input(sides, vary)
    today = today.in_unit_of(ends)
    movers = [
        _moved_side(side, today, metric, hold)
        if side in resting
        else Mover(side, None, partial(_metric_at_rest, side, metric))
        for side in sides
    ]
    return today, movers


def _moved_side(side: Evaluation, today: VariedInput, metric: str, hold: bool) -> Mover:
    """Return a side whose input moves, its plan fixed where it cannot rest on the input."""
    function, plan = side.function(), side.result.plan
    # another search would only find the plan again where it does not read the input
    is_searched = plan is not None and not hold
    if is_searched and (
        today.path in function.plan_inputs() or today.path not in side.result.inputs
    ):
        plan = None
    function = function._replace(plan=plan)

    @cache
    def metric_at(input_value: float) -> float:
        return side.metric(metric, function.result({today.path: today.text(input_value)}))

    return Mover(side, function, metric_at)


def _metric_at_rest(side: Evaluation, metric: str, _: float) -> float:
    return side.metric(metric)


# ---------------------------------------------------------------- what is found
def _refuse_unmoved(solution: Solution, valid_values: Sequence[float]) -> None:
    """Refuse an input that moves neither the metric nor the target."""
    for level_at in (solution.metric_at, solution.target_at):
        levels = [level_at(valid_value) for valid_value in valid_values]
        if len(valid_values) < 2 or max(levels) - min(levels) > EXACT * max(map(abs, levels)):
            return
    does = f"`tco sensitivity {solution.scenario} --metric {solution.metric}` says what does"
    raise DataError(
        f"{solution.path} does not move {solution.metric} of {solution.scenario}; {does}"
    )


def broken(solution: Solution, crossing: Crossing) -> Break:
    """Return a crossing as seen from today: the far side of a step, or the value that meets it."""
    sides = sorted(
        (crossing.before, crossing.beyond),
        key=lambda side_value: abs(side_value - (solution.today.value or 0.0)),
    )
    near, far = sides
    gaps = {side_value: abs(solution.gap(side_value) or 0.0) for side_value in sides}
    if min(gaps.values()) <= EXACT * abs(solution.target_at(near)):
        near = far = min(sides, key=lambda side_value: gaps[side_value])
    return Break(far, solution.metric_at(far), solution.metric_at(near))


def _no_crossing(solution: Solution, valid_values: Sequence[float]) -> str:
    """Return the explanation for a metric that never reaches its target."""
    levels = [solution.metric_at(valid_value) for valid_value in valid_values]
    low, high = (
        rounded_text(solution.today, end_value) for end_value in (valid_values[0], valid_values[-1])
    )
    metric = METRICS[solution.metric]
    input_words = (
        "at the prices" if solution.today.stepwise else f"with {short_name(solution.path)}"
    )
    where = (
        f"{input_words} from {low} to {high} the {metric.label} lies between "
        f"{_metric_level_text(min(levels))} and {_metric_level_text(max(levels))} {metric.unit}"
    ).rstrip()
    if solution.target is not None:
        return f"{where}; the target is {_metric_level_text(solution.target)}"
    side = "above" if levels[0] > solution.target_at(valid_values[0]) else "below"
    return f"{where}, {side} that of {solution.words} everywhere"


def _metric_level_text(level_value: float) -> str:
    return f"{level_value:,.0f}" if abs(level_value) >= 1e4 else f"{level_value:,.4g}"


def rounded_text(varied: VariedInput, input_value: float) -> str:
    """Return a value of an input with three digits and its unit; a date in full."""
    if varied.stepwise:
        return varied.text(input_value)
    return f"{float(f'{input_value:.3g}'):,g} {varied.unit}".strip()


def _solution_notes(
    solution: Solution, grid: Sequence[float], valid_values: Sequence[float]
) -> list[str]:
    """Return notes on other scenarios moved, missing answers and steps."""
    (own_mover, *other_movers), breaks = solution.movers, solution.breaks
    manner = "too" if own_mover.function else "alone"
    notes = [
        f"{solution.path} is moved in {mover.side.scenario.name} {manner}"
        for mover in other_movers
        if mover.function
    ]
    lost = [grid_value for grid_value in grid if grid_value not in valid_values]
    if lost:
        first = f"the first at {rounded_text(solution.today, lost[0])}: {solution.missing[lost[0]]}"
        notes.append(f"no answer at {len(lost)} of the {len(grid)} values tried, {first}")
    if solution.today.stepwise:
        newest = newest_price(own_mover.side.catalogue)
        if breaks:
            notes.append(
                "the prices of a month are those of its last day; the month shown is the first, "
                "counted from today's date, that reaches the target"
            )
        if period(newest).last.toordinal() < grid[-1]:
            notes.append(
                f"{solution.today.text(grid[-1])} lies beyond the prices known: the last is of "
                f"{newest}, and counts from then on"
            )
    elif any(break_point.metric != break_point.short for break_point in breaks):
        notes.append(
            "the metric moves in steps, as plans, tiers and switches come whole: the value shown "
            "is where a step passes the target"
        )
    if len(breaks) > 1:
        notes.append(
            f"the target is reached at {len(breaks)} values; the nearest to today's comes first"
        )
    return notes


# ---------------------------------------------------------------- where a function of one number is
# zero
Gap = Callable[[float], float | None]
CLOSE = 4e-16  # of a number: two that are closer have none between
MOST = 200  # steps, of which every one at least halves a bracket


class Crossing(NamedTuple):
    """The last number before a zero and the first beyond it; both are the zero where it is met.

    The order is that of the grid.
    """

    before: float
    beyond: float


def crossings(gap: Gap, grid: Sequence[float], stepwise: bool = False) -> Iterator[Crossing]:
    """Yield the zeros of a function on a grid and between its neighbours.

    A stepwise function has no values between two neighbours.
    """
    grid_gaps = [(grid_value, gap(grid_value)) for grid_value in grid]
    for grid_index, (grid_value, grid_gap) in enumerate(grid_gaps):
        if grid_gap == 0:
            yield Crossing(grid_value, grid_value)
        elif grid_index + 1 < len(grid_gaps):
            next_value, next_gap = grid_gaps[grid_index + 1]
            if grid_gap is not None and next_gap is not None and grid_gap * next_gap < 0:
                crossing = (
                    Crossing(grid_value, next_value)
                    if stepwise
                    else _narrowed(gap, grid_value, next_value)
                )
                if crossing is not None:
                    yield crossing


def _narrowed(gap: Gap, a: float, b: float) -> Crossing | None:
    """Return the zero in a bracket or both sides of a jump; None where a value is missing."""
    at_a, at_b = gap(a), gap(b)
    for _ in range(MOST):
        middle = (a + b) / 2
        if abs(b - a) <= CLOSE * max(abs(a), abs(b)) or middle in (a, b):
            break
        at_middle = gap(middle)
        if at_a is None or at_b is None or at_middle is None:
            return None
        if at_middle == 0:
            return Crossing(middle, middle)
        slope = (at_middle**2 - at_a * at_b) ** 0.5
        guess = middle + (middle - a) * (1 if at_a > at_b else -1) * at_middle / slope
        at_guess = gap(guess)
        if at_guess is None:
            return None
        if at_guess == 0:
            return Crossing(guess, guess)
        bracket_points = sorted(
            [(a, at_a), (middle, at_middle), (guess, at_guess), (b, at_b)],
            key=lambda bracket_point: abs(bracket_point[0] - a),
        )
        (a, at_a), (b, at_b) = next(
            pair for pair in pairwise(bracket_points) if pair[0][1] * pair[1][1] < 0
        )
    return Crossing(a, b)
