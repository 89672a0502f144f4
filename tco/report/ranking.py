"""Answer of `tco compare --all`: every system on a line of its own, the cheapest first."""

from __future__ import annotations

from tco.comparison.ranking import Ranked, Ranking
from tco.report.assumptions import (
    marked,
    premises_without_halls,
    values_by_scenario,
    workload_title,
)
from tco.report.comparison import COMPARISON_ROW, OF_RESULT
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, fixed_digits
from tco.scenario.document import HEADLINE_SYSTEM
from tco.scenario.result import set_of

RANKING = Document(
    "compare",
    "ranked_by",
    "baseline",
    Member("inputs", dict),
    Member("set", {str: str}),
    Member("rows", [Record(OF_RESULT.read_via("result"), Ranked)]),
)
ROW = Record(COMPARISON_ROW.read_via("result"), Ranked)
# what a line shows beside the cost: metric -> heading
BESIDE = {
    "tco_usd_per_chip_hour": "USD per chip-hour",
    "output_tokens_per_s_per_chip": "tokens/s per chip",
}
COST = {
    "usd_per_million_output_tokens": ("USD per million", 1.0),
    "train_usd_per_trillion_tokens": ("million USD per trillion", 1e6),
}


def ranking_answer(ranking: Ranking) -> Answer:
    """Answer with the systems in the order of their cost, or the reason why one has no rank."""
    scenario_results = [ranked_row.result for ranked_row in ranking.rows]
    content = {
        "ranked_by": ranking.metric,
        "baseline": HEADLINE_SYSTEM,
        "inputs": values_by_scenario(scenario_results),
        "set": {
            path: setting_text
            for scenario_result in scenario_results
            for path, setting_text in set_of(scenario_result).items()
        },
        "rows": ranking.rows,
    }
    return RANKING.answer(
        ranking.catalogue, content, lambda: [ranking_table(ranking)], (ROW, ranking.rows)
    )


def ranking_table(ranking: Ranking) -> Table:
    """Tabulate a line for each system, below those with a cost those without."""
    heading, size = COST[ranking.metric]
    table_rows = [_ranked_cells(ranked_row, ranking.metric, size) for ranked_row in ranking.rows]
    scenario_results = [ranked_row.result for ranked_row in ranking.rows]
    title = f"{len(table_rows)} systems by cost: {workload_title(scenario_results)}"
    below = [
        "Median: of the draws; USD per chip-hour and tokens/s: base case. Released: the chip's "
        "month. Published runs: of the chip, or in brackets of stand-ins. How sure a rank is: tco "
        "compare SYSTEM SYSTEM."
    ]
    columns = (
        "",
        "system",
        f"median, {heading}",
        *BESIDE.values(),
        "hall",
        "released",
        "published runs",
    )
    return Table(
        columns,
        table_rows,
        title,
        premises_without_halls(scenario_results),
        below,
        align="rlrrrllr",
    )


def _ranked_cells(ranked_row: Ranked, metric: str, size: float) -> tuple[str, ...]:
    """Return the cells of a system; of one without a cost the reason in place of it."""
    scenario_result = ranked_row.result
    if ranked_row.rank is None:
        reason = (ranked_row.reason or "").partition(";")[0]
        return (f"-  {scenario_result.system}: {reason}", *("" for _ in range(7)))
    median = ranked_row.median_usd_per_million_output_tokens
    shown_median = None if median is None else float(median) / size
    standing = scenario_result.standing
    measured = f"{standing.validated_rows:,}"
    if standing.anchored_rows and not standing.validated_rows:
        measured = f"({standing.anchored_rows:,})"
    return (
        str(ranked_row.rank),
        scenario_result.system,
        marked(scenario_result, metric, fixed_digits(shown_median)),
        *(fixed_digits(scenario_result.metrics[metric_name]) or "-" for metric_name in BESIDE),
        scenario_result.hall_cooling or "",
        ranked_row.released or "",
        measured,
    )
