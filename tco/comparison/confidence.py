"""Confidence of a comparison, and the shipped systems that cost less."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tco.comparison.curve import draw_confidence
from tco.comparison.records import Confidence, ConfidenceRequest
from tco.comparison.sampled_side import sample_side
from tco.core.files import data_directory, read_csv
from tco.evaluation.cost_changes import CostChange
from tco.evaluation.evaluation import figures_without_settings
from tco.evaluation.side_by_side import rated_by, speed_of, speeds_of
from tco.sampling.median import DRAWS
from tco.sampling.uncertainty import draw_statistics
from tco.scenario.beliefs import Dice
from tco.scenario.document import HEADLINE_DOCUMENTS

if TYPE_CHECKING:
    from tco.evaluation.scenario_function import Evaluation

# in the data: what every shipped system costs at the headline's terms, the least first
RANKS = "ranking.csv"
RANKED = ("system", "usd_per_million_output_tokens", "in_volume", "rests_on")
USUAL = ConfidenceRequest()


def confidence_of(
    evaluations: Sequence[Evaluation], baseline: str, request: ConfidenceRequest = USUAL
) -> Confidence:
    """Return the confidence of each scenario against the scenario `baseline`.

    Args:
        evaluations: Evaluations of the scenarios, the baseline among them.
        baseline: Name of the scenario that the other scenarios are held against.
        request: Speeds and draws of the comparison.

    Raises:
        UsageError: The text of choices cannot be read.
        DataError: A choice is not among the scenarios.

    """
    scenario_results = [evaluation.result for evaluation in evaluations]
    reference = next(
        scenario_result
        for scenario_result in scenario_results
        if scenario_result.scenario == baseline
    )
    request = request._replace(speeds=speeds_of(reference, request.speeds))
    return draw_confidence(evaluations, baseline, request)


def with_medians(
    changes: Sequence[CostChange],
    evaluations: Sequence[Evaluation],
    confidence: Confidence,
    request: ConfidenceRequest,
    data_folder: Path | None,
) -> list[CostChange]:
    """Return changes with the median of the draws, without the settings and with them.

    Args:
        changes: Changes of base cases, in the order of the evaluations.
        evaluations: Evaluations of the scenarios with the settings.
        confidence: Confidence of the comparison with the settings.
        request: Draws of the comparison; whole racks have no median of their own here.
        data_folder: Folder of the option `--data`; None without.

    """
    metric = rated_by([evaluation.result for evaluation in evaluations])
    if not changes or metric is None or not request.ranges or request.racks is not None:
        return [*changes]

    def median_of(evaluation: Evaluation) -> float | None:
        # sampled as a comparison samples it, whose choices of plans are cached
        speeds = speeds_of(evaluation.result, request.speeds)
        dice = Dice(evaluation.catalogue, request.seed, 0, DRAWS)
        side = sample_side(evaluation, request._replace(speeds=speeds), dice)
        return (draw_statistics(metric, side.drawn_metric(None, metric)) or {}).get("p50")

    figure_name = f"median {metric} {request.hold} {request.seed}"
    unset = figures_without_settings(evaluations, data_folder, figure_name, median_of)
    return [
        change._replace(
            median_before=median, median_after=(sureness.range(metric) or {}).get("p50")
        )
        for change, median, sureness in zip(changes, unset, confidence.sure, strict=True)
    ]


def _is_shipped(evaluation: Evaluation) -> bool:
    catalogue = evaluation.catalogue
    return evaluation.name in catalogue.scenarios and not (
        evaluation.settings or evaluation.saved or catalogue.anchors or len(catalogue.folders) > 1
    )


class Elsewhere(NamedTuple):
    """A shipped system outside the comparison: its median cost, and the evidence for it."""

    system: str
    cost: float
    in_volume: str  # month from which it can be had
    rests_on: str


def cheaper_elsewhere(evaluations: Sequence[Evaluation], confidence: Confidence) -> list[Elsewhere]:
    """Return the shipped systems that cost less than all compared systems.

    Args:
        evaluations: Evaluations of the compared scenarios.
        confidence: Confidence of the comparison, with the median costs at each speed.

    Returns:
        Systems with their median cost, USD per million output tokens; empty where a scenario is not
        shipped or is asked for other work than the headline's.

    """
    if not all(
        _is_shipped(evaluation) and evaluation.scenario.documents == HEADLINE_DOCUMENTS
        for evaluation in evaluations
    ):
        return []
    costs = [
        curve_point.median_usd_per_million_output_tokens
        for curve_point in confidence.curve
        if curve_point.tokens_per_s_per_user == speed_of(evaluations[0].result)
    ]
    rank_rows = [rank_row for _, rank_row in read_csv(data_directory() / RANKS, RANKED)]
    compared = {evaluation.result.system for evaluation in evaluations}
    if not costs:  # other speeds were asked for
        costs = [
            float(rank_row["usd_per_million_output_tokens"])
            for rank_row in rank_rows
            if rank_row["system"] in compared
        ]
    least = min((cost for cost in costs if cost is not None), default=0.0)
    shipped_systems = [
        Elsewhere(
            rank_row["system"],
            float(rank_row["usd_per_million_output_tokens"]),
            rank_row["in_volume"],
            rank_row["rests_on"],
        )
        for rank_row in rank_rows
    ]
    return [
        shipped_system
        for shipped_system in shipped_systems
        if shipped_system.cost < least and shipped_system.system not in compared
    ]
