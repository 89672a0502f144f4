"""Picks among racks for each shipped workload, every workload with its own draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tco.comparison.confidence import confidence_of
from tco.core.columns import Hidden
from tco.core.progress import with_progress
from tco.core.types import TextMapping
from tco.evaluation.evaluation import evaluate_each
from tco.evaluation.side_by_side import compare_results

WORKLOADS = (
    "deepseek-v3-8k-1k",
    "chat",
    "reasoning",
    "agent",
    "long-context",
    "moe-3t-decode",
    "llama-3.1-405b-training",
)


class Cell(NamedTuple):
    """Pick and shares of a scenario at a speed of a workload.

    The shares are None where no scenario reaches the speed. The speed is None for a workload
    without a target speed.
    """

    workload: str
    tokens_per_s_per_user: float | None
    scenario: str
    choose: bool  # whether it is the pick, or one of a tie
    share_cheapest: float | None
    share_of_best: Hidden[Mapping[str, float] | None]


def matrix(
    scenario_names: Sequence[str], settings: TextMapping, data_folder: Path | None
) -> list[Cell]:
    """Return the cells of every workload, speed and system in `scenario_names`.

    Args:
        scenario_names: Scenarios or systems by name, or scenario files.
        settings: Values by input path, as a user sets them.
        data_folder: Folder of data that comes after the shipped data; None for no folder.

    """
    workloads = with_progress(WORKLOADS, lambda workload: f"rating {workload}")
    return [
        cell
        for workload in workloads
        for cell in cells_of(workload, scenario_names, settings, data_folder)
    ]


def cells_of(
    workload: str,
    scenario_names: Sequence[str],
    settings: TextMapping,
    data_folder: Path | None,
) -> list[Cell]:
    """Return the cells of one workload."""
    evaluations = evaluate_each(
        scenario_names, data_folder, {**settings, "workload": workload}, refuse=False
    )
    base, _ = compare_results([evaluation.result for evaluation in evaluations])
    confidence = confidence_of(evaluations, base)
    picks = {
        speed: regime.picks for regime in confidence.regimes for speed in regime.speeds or (None,)
    }
    points: list[tuple[float | None, str, float | None, Mapping[str, float] | None]]
    points = [
        (
            curve_point.tokens_per_s_per_user,
            curve_point.scenario,
            curve_point.share_cheapest,
            curve_point.share_of_best,
        )
        for curve_point in confidence.curve
    ]
    points = points or [
        (None, evaluation.result.scenario, sure.share_cheapest, sure.share_of_best)
        for evaluation, sure in zip(evaluations, confidence.sure, strict=True)
    ]
    return [
        Cell(
            workload,
            speed,
            scenario_name,
            scenario_name in picks.get(speed, ()),
            cheapest,
            share_of_best,
        )
        for speed, scenario_name, cheapest, share_of_best in points
    ]
