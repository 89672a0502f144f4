"""Every system in its place by what its work costs in the middle of the draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.comparison.confidence import RANKED, RANKS
from tco.compile.execute import fork_map
from tco.core.columns import Hidden
from tco.core.errors import DataError, unknown
from tco.core.files import data_directory
from tco.core.progress import named_step
from tco.core.provenance import month_text
from tco.core.types import TextMapping
from tco.evaluation.evaluation import catalogue_for, evaluate_each
from tco.evaluation.scenario_function import Evaluation
from tco.evaluation.side_by_side import compare_results, rated_by
from tco.sampling.median import drawn_metric
from tco.scenario.document import HEADLINE_SYSTEM
from tco.scenario.metrics import PRICED
from tco.scenario.result import Result, why_absent


class Ranked(NamedTuple):
    """A system in its place."""

    rank: int | None  # none of what has no cost of its work
    result: Hidden[Result]
    median_usd_per_million_output_tokens: float | None  # of its draws
    vendor: str
    cooling: str
    released: str | None  # the month its chip came out, or is announced for
    reason: str | None  # why it has none


class Ranking(NamedTuple):
    """Systems in the order of their median cost; those without a rank come last."""

    catalogue: Catalogue
    metric: str  # the cost
    rows: list[Ranked]


def ranking(
    settings: TextMapping,
    data_folder: Path | None,
    vendor: str | None = None,
    air: bool = False,
) -> Ranking:
    """Rank systems by the median cost of their draws.

    Args:
        settings: Values by input path, as a user sets them.
        data_folder: Folder of own data; None takes the default data folders.
        vendor: Vendor of the systems, in any case; None takes all vendors.
        air: Whether to rank only systems that air cools.

    Returns:
        Systems in ascending order of the base-case cost, without a cost last. The rank of a system
        is by the median.

    Raises:
        DataError: The vendor is unknown, or air cools no system of the vendor.

    """
    catalogue = catalogue_for(None, data_folder)
    documents = {
        system: catalogue.document("systems", system, "system")[1]
        for system in catalogue.ids("systems")
    }
    # who builds or sells it
    vendors = {
        system: str(document.get("builder") or str(document["name"]).partition(" ")[0])
        for system, document in documents.items()
    }
    cooling = {system: str(document["cooling"]) for system, document in documents.items()}
    eligible_systems = _eligible_systems(vendors, cooling, vendor, air)
    compared_systems = list(dict.fromkeys([*eligible_systems, HEADLINE_SYSTEM]))
    evaluations = evaluate_each(compared_systems, data_folder, settings, refuse=False)
    all_results = [evaluation.result for evaluation in evaluations]
    scenario_results = [
        scenario_result
        for scenario_result in compare_results(all_results, HEADLINE_SYSTEM).results
        if scenario_result.system in eligible_systems
    ]
    metric = rated_by(scenario_results) or PRICED[0]
    medians = _median_costs(evaluations, eligible_systems, metric)
    order = sorted((median, system) for system, median in medians.items() if median is not None)
    ranks = {system: rank_number for rank_number, (_, system) in enumerate(order, 1)}
    ranked_rows = [
        Ranked(
            ranks.get(scenario_result.system),
            scenario_result,
            medians.get(scenario_result.system),
            vendors[scenario_result.system],
            cooling[scenario_result.system],
            _month_released(catalogue, documents[scenario_result.system]["chip"]),
            _why_unranked(scenario_result, metric, ranks),
        )
        for scenario_result in scenario_results
    ]
    ranked_rows.sort(key=lambda ranked_row: (ranked_row.rank is None, ranked_row.rank or 0))
    return Ranking(catalogue, metric, ranked_rows)


def _eligible_systems(
    vendors: TextMapping, cooling: TextMapping, vendor: str | None, air: bool
) -> list[str]:
    """Return the systems of a vendor, or of all, and only those that air cools if so asked."""
    if vendor is not None and vendor.lower() not in {
        vendor_name.lower() for vendor_name in vendors.values()
    }:
        raise unknown("vendor", vendor, sorted(set(vendors.values())), "--vendor")
    of_vendor = [
        system
        for system, vendor_name in vendors.items()
        if vendor is None or vendor_name.lower() == vendor.lower()
    ]
    eligible_systems = [system for system in of_vendor if not air or cooling[system] == "air"]
    if not eligible_systems:
        raise DataError(
            f"--vendor {vendor} --air: air cools no system of {vendor}; liquid cools "
            f"{', '.join(of_vendor)}"
        )
    return eligible_systems


def _median_costs(
    evaluations: list[Evaluation], systems: Sequence[str], metric: str
) -> dict[str, float | None]:
    """Return the median cost of the draws of some systems, None where most draws have none."""
    rated = [
        evaluation
        for evaluation in evaluations
        if evaluation.result.system in systems and evaluation.result.metrics[metric] is not None
    ]
    with named_step("drawing the inputs of systems"):
        median_by_index = dict(
            fork_map(lambda evaluation: _median_cost_of_draws(evaluation, metric), rated)
        )
    return {
        evaluation.result.system: median_by_index[evaluation_index]
        for evaluation_index, evaluation in enumerate(rated)
    }


def _month_released(catalogue: Catalogue, chip: str) -> str | None:
    if not catalogue.has_part_value(chip, "released"):
        return None
    return month_text(catalogue.part_input(chip, "released", "").value)


def _why_unranked(result: Result, metric: str, ranks: Mapping[str, int]) -> str | None:
    if result.metrics[metric] is None:
        return why_absent(result, metric)
    return None if result.system in ranks else MISSED


def _rewrite_ranking() -> None:
    """Rewrite `data/ranking.csv`: all shipped systems on the headline's terms, by cost."""
    ranked_rows = [
        ranked_row for ranked_row in ranking({}, None).rows if ranked_row.rank is not None
    ]
    lines = [",".join(RANKED)]
    for ranked_row in ranked_rows:
        result, median = ranked_row.result, ranked_row.median_usd_per_million_output_tokens
        volume = result.available.volume if result.available is not None else "unknown"
        lines.append(f'{result.system},{median:.3g},{volume},"{result.standing.evidence}"')
    (data_directory() / RANKS).write_text("\n".join(lines) + "\n", encoding="utf-8")


MISSED = "it misses what is promised in half of the draws"


def _median_cost_of_draws(evaluation: Evaluation, metric: str) -> float | None:
    """Return the median cost of the work in the draws, or the base case where none can be drawn."""
    if evaluation.why_undrawable() is not None:
        cost: float | None = evaluation.result.metrics[metric]
        return cost
    drawn = drawn_metric(evaluation, metric)
    return None if drawn is None else drawn.p50


if __name__ == "__main__":
    _rewrite_ranking()
