"""Performance per TCO against a baseline: the baseline's cost of work over a scenario's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tco.core.errors import DataError
from tco.core.types import JsonMapping
from tco.scenario.document import HEADLINE_SYSTEM
from tco.scenario.metrics import gross_token_cost, perf_per_tco, priced_by
from tco.scenario.result import Result, why_incomparable


class WorkCosts(NamedTuple):
    """Costs of a scenario's work: numbers or arrays, None where there are no tokens.

    In USD per million output tokens, or USD per trillion trained tokens.
    """

    net: Any  # net of rebates
    gross: Any  # before rebates


def costs_of_work(metrics: JsonMapping) -> WorkCosts:
    """Return token cost net of rebates and before rebates.

    Args:
        metrics: Numbers or arrays by metric name.

    """
    cost_metric = priced_by(metrics)
    if cost_metric is None:
        return WorkCosts(None, None)
    net = metrics[cost_metric]
    gross_hour, net_hour = metrics["tco_gross_usd_per_chip_hour"], metrics["tco_usd_per_chip_hour"]
    return WorkCosts(net, gross_token_cost(net, gross_hour, net_hour))


def usual_baseline(scenario_names: Sequence[str]) -> str:
    """Return the default baseline among scenarios.

    Args:
        scenario_names: Names of the scenarios, at least one.

    Returns:
        The headline system if among `scenario_names`, else the first name.

    """
    return HEADLINE_SYSTEM if HEADLINE_SYSTEM in scenario_names else scenario_names[0]


def fill_ratio_to_baseline(scenario_results: list[Result], baseline: str | None = None) -> str:
    """Fill in `perf_per_tco_vs_baseline` of comparable results, and return the baseline's name.

    Args:
        scenario_results: Results to compare; a result that cannot be compared gets a note.
        baseline: Name of the baseline; None takes the usual baseline of those with a cost.

    Raises:
        DataError: The baseline is not among the results.

    """
    scenario_names = [scenario_result.scenario for scenario_result in scenario_results]
    if not baseline:
        priced_names = [
            scenario_result.scenario
            for scenario_result in scenario_results
            if priced_by(scenario_result.metrics)
        ]
        baseline = usual_baseline(priced_names or scenario_names)
    if baseline not in scenario_names:
        raise DataError(
            f"--baseline {baseline}: not among the compared scenarios ({', '.join(scenario_names)})"
        )
    baseline_result = scenario_results[scenario_names.index(baseline)]
    baseline_costs = costs_of_work(baseline_result.metrics)
    for scenario_result in scenario_results:
        reason = why_incomparable(scenario_result, baseline_result)
        if reason is None:
            _add_ratios(scenario_result, baseline_costs)
        elif not scenario_result.costless:  # whose notes say already that it has no cost
            scenario_result.notes.append(f"performance per TCO says nothing here: {reason}")
    return baseline


def _add_ratios(scenario_result: Result, baseline_costs: WorkCosts) -> None:
    metrics, costs = scenario_result.metrics, costs_of_work(scenario_result.metrics)
    if baseline_costs.net is not None and costs.net is not None:
        ratio = perf_per_tco(baseline_costs.net, costs.net)
        metrics["perf_per_tco_vs_baseline"] = float(ratio)
    if baseline_costs.gross is not None and costs.gross is not None:
        gross_ratio = perf_per_tco(baseline_costs.gross, costs.gross)
        metrics["perf_per_tco_gross_vs_baseline"] = float(gross_ratio)
