"""Scenarios side by side, and the verdict on them: which does the work at the least cost, by how
much, and how sure that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tco.core.columns import Column, Hidden
from tco.core.errors import DataError
from tco.core.notebook_display import Shown
from tco.core.types import JsonMapping, JsonObject
from tco.scenario.metrics import PRICED
from tco.scenario.result import why_incomparable

if TYPE_CHECKING:
    from tco.scenario.result import Result


class SideBySide(NamedTuple):
    """Results, each held against the baseline."""

    baseline: str
    results: list[Result]


class ScenarioComparison(Shown, SideBySide):
    """Scenarios side by side, each held against the baseline."""

    @property
    def line(self) -> str:
        """Line with the cost of work of each scenario and the baseline.

        Without a cost of work the line gives the cost per chip-hour.
        """
        cost = rated_by(self.results) or "tco_usd_per_chip_hour"
        costs = (
            f"{one.scenario} {one.metrics[cost]:.3g}"
            if one.metrics[cost] is not None
            else f"{one.scenario} none"
            for one in self.results
        )
        return f"{cost}: {', '.join(costs)}; baseline {self.baseline}"

    def to_frame(self) -> Any:
        """Return the metrics as a pandas data frame, a column for each scenario."""
        import pandas as pd

        return pd.DataFrame({result.scenario: result.metrics for result in self.results})


def compare_results(results: Sequence[Result], baseline: str | None = None) -> ScenarioComparison:
    """Return a comparison of results, with the results unchanged.

    Args:
        results: Results of the scenarios, at least one.
        baseline: Scenario that all results are compared with; None takes the usual baseline.

    Returns:
        Comparison of copies whose performance per cost is relative to the baseline.

    Raises:
        DataError: There are no results, or the baseline is not among them.

    """
    from tco.scenario import evaluate

    if not results:
        raise DataError("nothing to compare: name a scenario")
    own = [
        replace(result, metrics=dict(result.metrics), notes=list(result.notes))
        for result in results
    ]
    return ScenarioComparison(evaluate.fill_ratio_to_baseline(own, baseline), own)


class Driver(NamedTuple):
    """An input that moves the performance per cost of a scenario."""

    path: str
    # of the ratio to the baseline, from the input's P5 to its P95; none where it has no end or no
    # value at one of them
    swing: float | None
    # where in between the ratio passes one; none where it is on one side of it at both ends
    flips_at: float | None
    unit: str
    value: Hidden[float]
    shown: Hidden[tuple[float, str] | None]  # value and unit as the catalogue writes them


class Sureness(NamedTuple):
    """Uncertainty of a scenario's results at its workload's target speed."""

    # P10, P50 and P90 of each metric that has some, with the reason where one is none
    ranges: dict[str, JsonObject | None]
    probability_better_than_baseline: float | None
    share_of_draws_that_meet_the_target: float | None
    drivers: list[Driver]
    reason: str | None = None  # why nothing is known
    draws: int = 0
    probability_error: float | None = None  # standard error of the probability
    # the share of draws in which neither it nor the baseline meets the target
    ties: float | None = None
    hold: bool = False  # whether the plan was that of the point in every draw
    share_cheapest: float | None = None  # at this speed
    share_of_best: dict[str, float] | None = None

    def range(self, metric: str) -> JsonObject | None:
        """P10, P50 and P90 of a metric; None where it has none."""
        return self.ranges.get(metric)


class AtSpeed(NamedTuple):
    """Cost of a scenario at a speed, and ratio to the baseline.

    None marks a figure without a value; `note` gives the reason.
    """

    scenario: str
    tokens_per_s_per_user: float
    usd_per_million_output_tokens: float | None = None
    # P50 of the draws; none where it misses the speed in half of them
    median_usd_per_million_output_tokens: float | None = None
    share_cheapest: float | None = None  # of all draws, ties split
    # of all draws, in which none of those compared reaches the speed
    share_nobody: float | None = None
    share_of_best: dict[str, float] | None = None  # mean, P10 and P50
    perf_per_tco_vs_baseline: float | None = None
    # percentiles of the performance per cost, with the reason where one is none
    range: JsonObject | None = None
    # of all draws: one in which it misses the speed is none
    probability_better_than_baseline: float | None = None
    probability_error: float | None = None
    meets: float | None = None  # the share of draws that reach the speed
    ties: float | None = None  # the share of draws in which neither it nor the baseline does
    # of the variance of its rank among the draws, what is known once every reach of software is
    software_share_of_range: float | None = None
    # the same with the software of all at either end of its reach
    by_software: dict[str, dict[str, float | None]] | None = None
    note: str | None = None


class Measurement(NamedTuple):
    """Something to measure, and by which share it would narrow a range."""

    kind: str  # of rows
    owner: str  # family of chips, engine, or what else is measured
    narrows: float
    worth: float = 0.0  # share of the best that the choice keeps more on average once it is known
    worth_with_error: float = 0.0  # the same of a measurement that is off as measured rows are


class Notice(NamedTuple):
    """Effect of an input on the prediction errors of measured rows.

    The rows are of a single `kind`, which is None where the input affects no measured rows.
    """

    path: str
    kind: str | None
    rows: int  # whose prediction it moves
    # of these at its P5, its value and its P95: the root mean square of log(predicted / measured)
    errors: Sequence[float | None]


class Regime(NamedTuple):
    """Speeds of which the same may be said: the picks, their regret, and how sure that is."""

    kind: str  # one of KINDS
    # all within sampling error of the least mean regret, by name; none where nobody serves
    picks: tuple[str, ...] = ()
    foremost: str | None = None  # of the picks the one with the least mean regret
    rival: str | None = None  # whom that beats least often
    # that it beats that one, at the speed where that is least; none where nothing was drawn
    probability: float | None = None
    # of the best on average, by the pick and at the speed where that is least
    keeps: float | None = None
    most: float | None = None  # where it is most
    worst: float | None = None  # in the worst tenth of the draws, where that is least
    # the picks with the software of all at either end of its reach
    by_software: Mapping[str, tuple[str, ...]] = {}
    # what the foremost of those keeps, at the speed where it is least
    by_software_keeps: Mapping[str, float] = {}
    speeds: tuple[float, ...] = ()  # that were looked at; none: at the one the workload asks for
    # tokens/s a user; half way in ratio to the next speed that was looked at, none: without end
    start: Annotated[float | None, Column(key="from")] = None
    end: Annotated[float | None, Column(key="to")] = None
    # what moves the choice's performance per cost over the rival's; empty where nobody asked
    drivers: Sequence[Driver] = ()
    measurements: Sequence[Measurement] = ()  # that would narrow its range most
    # picks that come later than three months from the order, and the month of their volume
    late: Mapping[str, str] = {}
    # the picks among the racks that can be had by then; empty where no pick is late
    available: tuple[str, ...] = ()

    @property
    def choose(self) -> str | None:
        """The pick; None where there is none, or several are tied."""
        return self.picks[0] if len(self.picks) == 1 else None

    @property
    def leader(self) -> str | None:
        """Older name of `choose`."""
        return self.choose


KINDS = ("alone", "clear", "likely", "software", "close", "tie", "nobody")  # from the surest on


class Later(NamedTuple):
    """The comparison at the date when all compared can be had, with that date's prices and
    software.
    """

    date: str
    draws: int
    regimes: Hidden[list[Regime]]
    differs: bool  # whether the picks of any speed are others than at the order's date


class PriceTurn(NamedTuple):
    """A price at which another rack has the least mean regret at the workload's speed."""

    path: str
    pick: str  # the rack of least mean regret now
    to: str  # and beyond that price
    unit: str
    value: float
    turns_at: float
    sigmas: float  # how far it lies from the value, in standard deviations of belief
    low: float | None  # 5th percentile of its range
    high: float | None  # 95th
    # price at which the base cases of both cost the same; none where they never do
    break_even: float | None
    shown: Hidden[tuple[float, str] | None]  # value and unit as the catalogue writes them


class Confidence(NamedTuple):
    """Uncertainty of a comparison, by scenario, by speed and by regime.

    Each scenario is judged at its own speed, and all scenarios at every speed.
    """

    sure: list[Sureness]
    curve: list[AtSpeed]
    regimes: list[Regime]
    unrated: Mapping[str, str] = {}  # who is in no order with the others, and why
    choices: Sequence[JsonMapping] = ()  # what choices that somebody named keep at each speed
    # none where all can be had within three months, or nothing was drawn
    later: Later | None = None
    turns: Sequence[PriceTurn] = ()  # prices most likely to change the pick, the likeliest first


SPEEDS = (20.0, 30.0, 50.0, 75.0, 100.0)  # tokens/s a user, where nobody names others
SPEED = "workload.interactivity"


def speed_of(result: Result) -> float | None:
    """Return the speed that a scenario must serve, tokens/s per user.

    Args:
        result: Result of the scenario.

    Returns:
        Speed; None for training, stated rates and offline serving, which have no speed.

    """
    given = result.inputs.get(SPEED) if result.texts["workload.kind"] == "serving" else None
    return None if given is None else given.value


def speeds_of(result: Result, chosen: Sequence[float] = ()) -> tuple[float, ...]:
    """Return the speeds of a curve: those that were chosen, else the usual ones and the workload's
    own.
    """
    own = speed_of(result)
    return () if own is None else tuple(sorted({*(chosen or (*SPEEDS, own))}))


def rated_by(results: Sequence[Result]) -> str | None:
    """Return the name of the cost of work that rates results.

    Args:
        results: Results of the compared scenarios.

    Returns:
        First metric of `PRICED` with a value in any result; None where no result has a cost of
        work.

    """
    return next(
        (name for name in PRICED if any(result.metrics[name] is not None for result in results)),
        None,
    )


LATE = 3  # months from the order from which a rack comes too late for it


def late_racks(results: Sequence[Result]) -> dict[str, str]:
    """Return the racks that come later than three months from the order, with the month they come
    in numbers.
    """
    dated = [(result.scenario, result.available) for result in results]
    return {
        name: available.volume
        for name, available in dated
        if available is not None and available.months > LATE
    }


def unrated(results: Sequence[Result], baseline: str) -> dict[str, str]:
    """Return the scenarios that are in no order with the others, and why; `baseline` names the one
    that says what the work is.
    """
    reference = next(result for result in results if result.scenario == baseline)
    return {
        result.scenario: why
        for result in results
        if (why := result.costless or why_incomparable(result, reference))
    }


def why_unrated(result: Result) -> str:
    """Return the reason for a missing cost of work in `result`.

    Args:
        result: Result without the cost of work.

    Returns:
        Words that follow the scenario's name in a sentence.

    """
    if result.costless:
        return result.costless
    if result.serving is not None and result.plan is None and result.serving.reason:
        return f"no plan: {result.serving.reason}"
    return "states no rate of this work"
