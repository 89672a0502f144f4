"""Results side by side: their ratios to a baseline, the speeds they serve, and what rates them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.core.columns import Hidden
from tco.core.errors import DataError
from tco.core.notebook_display import Shown
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
            f"{result.scenario} {result.metrics[cost]:.3g}"
            if result.metrics[cost] is not None
            else f"{result.scenario} none"
            for result in self.results
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
    copies = [
        replace(result, metrics=dict(result.metrics), notes=list(result.notes))
        for result in results
    ]
    return ScenarioComparison(evaluate.fill_ratio_to_baseline(copies, baseline), copies)


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
    catalogue_value: Hidden[tuple[float, str] | None]  # value and unit as the catalogue writes them


SPEEDS = (20.0, 30.0, 50.0, 75.0, 100.0)  # tokens/s a user, where nobody names others
SPEED = "workload.interactivity"


def speed_of(result: Result) -> float | None:
    """Return the speed that a scenario must serve, tokens/s per user.

    Args:
        result: Result of the scenario.

    Returns:
        Speed; None for training, stated rates and offline serving, which have no speed.

    """
    speed = result.inputs.get(SPEED) if result.texts["workload.kind"] == "serving" else None
    return None if speed is None else speed.value


def speeds_of(result: Result, chosen: Sequence[float] = ()) -> tuple[float, ...]:
    """Return the speeds of a curve, chosen or usual with the workload's own, in order."""
    workload_speed = speed_of(result)
    if workload_speed is None:
        return ()
    return tuple(sorted({*(chosen or (*SPEEDS, workload_speed))}))


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
    """Return the month in which racks come that come too late for the order, by scenario."""
    return {
        result.scenario: result.available.volume
        for result in results
        if result.available is not None and result.available.months > LATE
    }


def unrated(results: Sequence[Result], baseline: str) -> dict[str, str]:
    """Return the reason against rating a scenario with the others, by scenario.

    Args:
        results: Results of the compared scenarios.
        baseline: Scenario that says what the work is.

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
