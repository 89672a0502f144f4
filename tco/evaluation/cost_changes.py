"""Changes by settings: the cost of each scenario without the settings and with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tco.core.columns import Hidden
from tco.core.provenance import Input
from tco.evaluation.evaluation import figures_without_settings
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import rated_by
from tco.evaluation.what_if import UNMOVED
from tco.scenario.result import Result

LEAST_CHANGE = 0.05  # smallest change of a cost that is shown, in per cent


class CostChange(NamedTuple):
    """Cost of the work of a scenario, without the settings and with them."""

    scenario: str
    before: float | None  # cost in the base case without the settings
    after: float | None
    median_before: float | None = None  # median over the draws; None without draws
    median_after: float | None = None
    # on settings that do not move the cost, with the inputs that bind
    notes: Hidden[Sequence[str]] = ()
    # terms that the setting of a buyer changes, each without and with the settings
    terms: Hidden[Sequence[tuple[Input, Input]]] = ()
    is_other_work: Hidden[bool] = False  # whether the settings name another workload

    @property
    def has_medians(self) -> bool:
        """Whether the costs were drawn."""
        return (self.median_before, self.median_after) != (None, None)

    def of_medians(self) -> CostChange:
        """Return the change whose costs are the medians."""
        return CostChange(self.scenario, self.median_before, self.median_after)

    @property
    def percent(self) -> float | None:
        """Change relative to the cost before, in per cent; None without both costs."""
        if not self.before or self.after is None:
            return None
        return (self.after / self.before - 1) * 100

    @property
    def words(self) -> str:
        """Change as text, such as `+0.3 %`; `none` for no change, `-` without both costs."""
        if self.percent is None:
            return "-"
        return f"{self.percent:+.1f} %" if abs(self.percent) >= LEAST_CHANGE else "none"


def cost_changes(
    evaluations: Sequence[Evaluation],
    scenario_results: Sequence[Result],
    data_folder: Path | None,
) -> list[CostChange]:
    """Return the changes of the cost of work by settings, for each scenario.

    Args:
        evaluations: Scenarios evaluated with the settings.
        scenario_results: Their results side by side, in the same order.
        data_folder: Folder of further user data; None without a further folder.

    Returns:
        A change for each scenario; none where no scenario has a cost of work.

    """
    metric = rated_by(scenario_results)
    if metric is None:
        return []
    unset = figures_without_settings(
        evaluations, data_folder, metric, lambda evaluation: evaluation.result.metrics[metric]
    )
    changes = []
    for before, evaluation, scenario_result in zip(
        unset, evaluations, scenario_results, strict=True
    ):
        cost = scenario_result.metrics[metric]
        notes = [note for note in scenario_result.notes if UNMOVED in note]
        terms = [] if cost is None else implied_terms(evaluation)
        changes.append(
            CostChange(
                scenario_result.scenario,
                before,
                cost,
                notes=notes,
                terms=terms,
                is_other_work="workload" in evaluation.settings,
            )
        )
    return changes


def implied_terms(evaluation: Evaluation) -> list[tuple[Input, Input]]:
    """Return the terms that a buyer who is set brings, apart from those that are set too.

    Args:
        evaluation: Scenario evaluated with the settings.

    Returns:
        Each such term without the settings and with them.

    """
    if "terms.perspective" not in evaluation.settings:
        return []
    unset = evaluation._replace(settings={}).function().inputs({})
    return [
        (before, after)
        for path, after in evaluation.result.inputs.items()
        if path.startswith("terms.") and path not in evaluation.settings
        if (before := unset.document_inputs.get(path)) and before.value != after.value
    ]
