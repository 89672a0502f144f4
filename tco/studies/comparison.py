"""Scenarios side by side, and the verdict on them: which does the work at the least cost, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.chain.metrics import PRICED, perf_per_tco
from tco.chain.result import apart
from tco.foundation.errors import DataError
from tco.studies.evaluation import HEADLINE, evaluate_all

if TYPE_CHECKING:
    from tco.chain.result import Result


class Comparison(NamedTuple):
    """Scenarios side by side, each held against the baseline."""

    baseline: str
    results: list[Result]

    def to_frame(self) -> Any:
        """Return the metrics as a pandas data frame, a column for each scenario."""
        import pandas as pd

        return pd.DataFrame({result.scenario: result.metrics for result in self.results})


def compare(
    scenarios: Sequence[str | Path | Result] = HEADLINE,
    baseline: str | None = None,
    set: Mapping[str, str] | None = None,  # noqa: A002 - the name users know from the command line
    data: Path | None = None,
) -> Comparison:
    """Return scenarios side by side; `set` replaces inputs of all of them."""
    return compared(evaluate_all(scenarios, data, dict(set or {}), refuse=False)[1], baseline)


def compared(results: Sequence[Result], baseline: str | None = None) -> Comparison:
    """Return results side by side, themselves left as they are."""
    from tco.chain import scenario

    if not results:
        raise DataError("nothing to compare: name a scenario")
    own = [replace(result, metrics=dict(result.metrics), notes=list(result.notes)) for result in results]
    return Comparison(scenario.compare(own, baseline), own)


class Driver(NamedTuple):
    """An input that moves the performance per cost of a scenario."""

    path: str
    swing: float | None  # of the ratio to the baseline, from the input's P5 to its P95; none where it has no end or no value at one of them
    flips_at: float | None  # where in between the ratio passes one; none where it is on one side of it at both ends
    unit: str
    value: float
    shown: tuple[float, str] | None  # value and unit as the catalogue writes them


class Lead(NamedTuple):
    """How the performance per cost of a scenario stands to another's, in the draws in which either meets the target; None is without end."""

    p10: float | None
    p50: float | None
    p90: float | None
    probability: float  # that it is the greater


class Sureness(NamedTuple):
    """How sure the figures of one scenario are."""

    ranges: dict[str, dict[str, Any] | None]  # P10, P50 and P90 of each metric that has some, with the reason where one is none
    probability: float | None  # the chance to beat the baseline, in the draws that are no tie
    meets: float | None  # the share of draws that meet the target
    drivers: list[Driver]
    reason: str | None = None  # why nothing is known
    draws: int = 0
    leads: Mapping[str, Lead] = {}  # against each of the others, by name
    error: float | None = None  # standard error of the chance
    ties: float | None = None  # the share of draws in which neither it nor the baseline meets the target
    hold: bool = False  # whether the plan was that of the point in every draw

    def range(self, metric: str) -> dict[str, Any] | None:
        """P10, P50 and P90 of a metric; None where it has none."""
        return self.ranges.get(metric)


class Verdict(NamedTuple):
    """Who does most of the work for a dollar, and how much more than the next."""

    metric: str | None = None  # the cost that decides; none where no scenario has one
    best: str | None = None
    cost: float | None = None  # of the best
    against: str | None = None  # the next best; none where no other can be held against it
    ratio: float | None = None  # of the work a dollar buys, the best's over that of the next
    lead: Lead | None = None  # the range of the ratio, and the chance that it is above one; none where nothing was drawn
    formats: bool = False  # whether the two compute in different formats
    unrated: Mapping[str, str] = {}  # scenario -> why it is in no order with the others

    @property
    def close(self) -> bool | None:
        """Whether the range reaches down to one, so that either may be the better; None where there is no range."""
        return None if self.lead is None else self.lead.p10 is not None and self.lead.p10 <= 1


def verdict_of(results: Sequence[Result], baseline: str, found: Sequence[Sureness] = ()) -> Verdict:
    """Return the verdict on some results; `baseline` names the one that says what the work is, `found` is how sure each of them is."""
    reference = next(result for result in results if result.scenario == baseline)
    metric = next((name for name in PRICED if any(result.metrics[name] is not None for result in (reference, *results))), None)
    if metric is None:
        return Verdict(unrated={result.scenario: why_unrated(result) for result in results})
    unrated = {result.scenario: why for result in results if (why := result.costless or apart(result, reference) or unpriced(result, metric))}
    rated = sorted((result for result in results if result.scenario not in unrated), key=lambda result: float(result.metrics[metric]))
    if not rated:
        return Verdict(metric, unrated=unrated)
    best, *others = rated
    cost = float(best.metrics[metric])
    if not others:
        return Verdict(metric, best.scenario, cost, unrated=unrated)
    other = others[0]
    sure = dict(zip((result.scenario for result in results), found, strict=bool(found)))
    lead = sure[best.scenario].leads.get(other.scenario) if sure else None
    ratio = float(perf_per_tco(other.metrics[metric], cost))
    return Verdict(metric, best.scenario, cost, other.scenario, ratio, lead, formats_of(best) != formats_of(other), unrated)


def unpriced(result: Result, metric: str) -> str | None:
    """Say why a result has no cost of its work, if so."""
    return why_unrated(result) if result.metrics[metric] is None else None


def why_unrated(result: Result) -> str:
    """Say why nothing is known of what the work costs a scenario."""
    if result.costless:
        return result.costless
    if result.serving is not None and result.plan is None and result.serving.reason:
        return f"no plan: {result.serving.reason}"
    return "states no rate of this work"


def formats_of(result: Result) -> dict[str, str]:
    """Return the formats a result computes in, by path."""
    return {path: text for path, text in result.texts.items() if path == "workload.precision" or path.endswith("_format")}
