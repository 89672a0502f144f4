"""Results side by side: their ratios to a baseline, the speeds they serve, and what rates them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tco.core.columns import Hidden
from tco.core.errors import DataError
from tco.core.notebook_display import Shown
from tco.core.trace import Node, Traced, recording, walk
from tco.scenario.metrics import PRICED, perf_per_tco, training_perf_per_tco
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
            f"{scenario_result.scenario} {scenario_result.metrics[cost]:.3g}"
            if scenario_result.metrics[cost] is not None
            else f"{scenario_result.scenario} none"
            for scenario_result in self.results
        )
        return f"{cost}: {', '.join(costs)}; baseline {self.baseline}"

    def to_frame(self) -> Any:
        """Return the metrics as a pandas data frame, a column for each scenario."""
        import pandas as pd

        return pd.DataFrame(
            {scenario_result.scenario: scenario_result.metrics for scenario_result in self.results}
        )


def compare_results(
    scenario_results: Sequence[Result], baseline: str | None = None
) -> ScenarioComparison:
    """Return a comparison of results, with the results unchanged.

    Args:
        scenario_results: Results of the scenarios, at least one.
        baseline: Scenario that all results are compared with; None takes the usual baseline.

    Returns:
        Comparison of copies whose performance per cost is relative to the baseline.

    Raises:
        DataError: There are no results, or the baseline is not among them.

    """
    from tco.scenario.baseline_ratio import fill_ratio_to_baseline

    if not scenario_results:
        raise DataError("nothing to compare: name a scenario")
    copies = [
        replace(
            scenario_result,
            metrics=dict(scenario_result.metrics),
            notes=list(scenario_result.notes),
        )
        for scenario_result in scenario_results
    ]
    return ScenarioComparison(fill_ratio_to_baseline(copies, baseline), copies)


class Driver(NamedTuple):
    """An input that moves the performance per cost of a scenario."""

    path: str
    # change of the ratio to the baseline from the input's P5 to its P95; None where the ratio is
    # infinite or has no value at an end
    swing: float | None
    # break-even value of the input, at which the ratio passes one; None without one in the range
    flips_at: float | None
    unit: str
    value: Hidden[float]
    catalogue_value: Hidden[tuple[float, str] | None]  # value and unit as the catalogue writes them


def ratio_node(scenario_result: Result, baseline: Result, cost: str) -> Node:
    """Return the node of a performance per TCO, with both costs of work below it.

    Args:
        scenario_result: Traced result of the scenario.
        baseline: Traced result of the baseline. The ids of its nodes get its name in front, so that
            no two nodes have the same.
        cost: Name of the metric that prices the work of both.

    """
    roots = [baseline.nodes[cost], scenario_result.nodes[cost]]
    for baseline_node in walk(roots[0]):
        baseline_node.id = f"{baseline.scenario}/{baseline_node.id}"
    ratio_of = perf_per_tco if cost == PRICED[0] else training_perf_per_tco
    with recording():
        ratio: Any = ratio_of(*(Traced(root.value, root) for root in roots))
    node: Node = ratio.node
    return node


SPEEDS = (20.0, 30.0, 50.0, 75.0, 100.0)  # tokens/s a user, where nobody names others
SPEED = "workload.interactivity"


def speed_of(scenario_result: Result) -> float | None:
    """Return the speed that a scenario must serve, tokens/s per user.

    Args:
        scenario_result: Result of the scenario.

    Returns:
        Speed; None for training, stated rates and offline serving, which have no speed.

    """
    speed = (
        scenario_result.inputs.get(SPEED)
        if scenario_result.texts["workload.kind"] == "serving"
        else None
    )
    return None if speed is None else speed.value


def speeds_of(scenario_result: Result, chosen: Sequence[float]) -> tuple[float, ...]:
    """Return the speeds of a curve, chosen or usual with the workload's own, in order."""
    workload_speed = speed_of(scenario_result)
    if workload_speed is None:
        return ()
    return tuple(sorted({*(chosen or (*SPEEDS, workload_speed))}))


def nearest_speed(speeds: Iterable[float], target: float) -> float:
    """Return the speed nearest to a target, tokens/s per user; the lower of two as near."""
    return min(sorted(speeds), key=lambda speed: abs(speed - target))


def rated_by(scenario_results: Sequence[Result]) -> str | None:
    """Return the name of the cost of work that rates results.

    Args:
        scenario_results: Results of the compared scenarios.

    Returns:
        First metric of `PRICED` with a value in any result; None where no result has a cost of
        work.

    """
    return next(
        (
            metric_name
            for metric_name in PRICED
            if any(
                scenario_result.metrics[metric_name] is not None
                for scenario_result in scenario_results
            )
        ),
        None,
    )


LATE = 3  # months from the order from which a rack comes too late for it


def late_racks(scenario_results: Sequence[Result]) -> dict[str, str]:
    """Return the month in which racks come that come too late for the order, by scenario."""
    return {
        scenario_result.scenario: scenario_result.available.volume
        for scenario_result in scenario_results
        if scenario_result.available is not None and scenario_result.available.months > LATE
    }


def unrated(scenario_results: Sequence[Result], baseline: str) -> dict[str, str]:
    """Return the reason against rating a scenario with the others, by scenario.

    Args:
        scenario_results: Results of the compared scenarios.
        baseline: Scenario that says what the work is.

    """
    reference = next(
        scenario_result
        for scenario_result in scenario_results
        if scenario_result.scenario == baseline
    )
    return {
        scenario_result.scenario: why
        for scenario_result in scenario_results
        if (why := scenario_result.costless or why_incomparable(scenario_result, reference))
    }


def why_unrated(scenario_result: Result) -> str:
    """Return the reason for a missing cost of work in `scenario_result`.

    Args:
        scenario_result: Result without the cost of work.

    Returns:
        Words that follow the scenario's name in a sentence.

    """
    if scenario_result.costless:
        return scenario_result.costless
    if (
        scenario_result.serving is not None
        and scenario_result.plan is None
        and scenario_result.serving.reason
    ):
        return f"no plan: {scenario_result.serving.reason}"
    return "states no rate of this work"
