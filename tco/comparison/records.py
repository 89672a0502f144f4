"""Records of a comparison: costs by speed, regimes with their picks, and how sure each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from tco.core.columns import Column, Hidden
from tco.core.types import JsonMapping, JsonObject
from tco.evaluation.side_by_side import Driver


class Sureness(NamedTuple):
    """Uncertainty of a scenario's results at its workload's target speed."""

    # P10, P50 and P90 of each metric that has some, with the reason where one is none
    ranges: dict[str, JsonObject | None]
    probability_better_than_baseline: float | None
    share_of_draws_that_meet_the_target: float | None
    drivers: Sequence[Driver]  # found where they are shown
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
    p10_usd_per_million_output_tokens: float | None = None
    p90_usd_per_million_output_tokens: float | None = None
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
    def middle_speed(self) -> float | None:
        """The speed that the drivers are of, tokens/s per user; None for work without a speed."""
        return self.speeds[len(self.speeds) // 2] if self.speeds else None

    @property
    def contenders(self) -> tuple[str, ...]:
        """The two racks whose ratio the drivers move; the leaders at both ends of software."""
        if self.kind == "software":
            leaders = [picks[0] for picks in self.by_software.values() if picks]
            return tuple(dict.fromkeys(leaders))[::-1]
        return tuple(filter(None, (self.foremost, self.rival)))


KINDS = ("alone", "clear", "likely", "software", "close", "tie", "nobody")  # from the surest on


class Later(NamedTuple):
    """The comparison at the date when all systems are available, with that date's inputs."""

    date: str
    draws: int
    regimes: Hidden[list[Regime]]
    differs: bool  # whether the picks of any speed are others than at the order's date


class PriceTurn(NamedTuple):
    """A price at which another rack has the least mean regret at the compared speed."""

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
    stated_quantity: Hidden[tuple[float, str] | None]  # value and unit as the catalogue writes them


class ConfidenceRequest(NamedTuple):
    """Speeds and draws of a comparison."""

    speeds: Sequence[float] = ()  # of the curve, tokens/s per user; empty takes the usual speeds
    hold: bool = False  # whether each scenario keeps the plan of its base case
    ranges: bool = True  # whether inputs are drawn; False finds only the base cases
    why: bool = False  # whether to find the inputs that move each regime
    seed: int = 0  # of the draws
    choose: str | None = None  # choices to rate at each speed; None rates none
    # racks that hold whole engines; None prices a fleet of any size
    racks: int | None = None


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
