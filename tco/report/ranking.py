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
from tco.report.table import Table, significant
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
    "tco_usd_per_chip_hour": "USD a chip-hour",
    "output_tokens_per_s_per_chip": "tokens/s a chip",
}
COST = {
    "usd_per_million_output_tokens": ("USD a million", 1.0),
    "train_usd_per_trillion_tokens": ("million USD a trillion", 1e6),
}
DIGITS = 3


def ranking_answer(ranking: Ranking) -> Answer:
    """Answer with the systems in the order of their cost, or the reason why one has no rank."""
    results = [row.result for row in ranking.rows]
    content = {
        "ranked_by": ranking.metric,
        "baseline": HEADLINE_SYSTEM,
        "inputs": values_by_scenario(results),
        "set": {path: text for result in results for path, text in set_of(result).items()},
        "rows": ranking.rows,
    }
    return RANKING.answer(
        ranking.catalogue, content, lambda: [ranking_table(ranking)], (ROW, ranking.rows)
    )


def ranking_table(ranking: Ranking) -> Table:
    """Tabulate a line for each system, below those with a cost those without."""
    heading, size = COST[ranking.metric]
    rows = [_ranked_cells(row, ranking.metric, size) for row in ranking.rows]
    results = [row.result for row in ranking.rows]
    title = f"{len(rows)} systems by cost: {workload_title(results)}"
    below = [
        "Measured: runs published on this chip, or in brackets on its relatives. How sure a rank "
        "is: tco compare SYSTEM SYSTEM."
    ]
    columns = (
        "",
        "system",
        f"{heading}, middle",
        "at its values",
        *BESIDE.values(),
        "hall",
        "chip out",
        "measured",
    )
    return Table(columns, rows, title, premises_without_halls(results), below, align="rlrrrrllr")


def _ranked_cells(row: Ranked, metric: str, size: float) -> tuple[str, ...]:
    """Return the cells of a system; of one without a cost the reason in place of it."""
    result = row.result
    if row.rank is None:
        reason = (row.reason or "").partition(";")[0]
        return (f"-  {result.system}: {reason}", *("" for _ in range(8)))
    median, base = (
        marked(result, metric, significant(None if cost is None else float(cost) / size, DIGITS))
        for cost in (row.median_usd_per_million_output_tokens, result.metrics[metric])
    )
    standing = result.standing
    measured = f"{standing.validated_rows:,}"
    if standing.anchored_rows and not standing.validated_rows:
        measured = f"({standing.anchored_rows:,})"
    return (
        str(row.rank),
        result.system,
        median,
        base,
        *(significant(result.metrics[name], DIGITS) or "-" for name in BESIDE),
        result.hall_cooling or "",
        row.released or "",
        measured,
    )
