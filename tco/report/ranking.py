"""Every system on a line of its own, the cheapest first: the answer of `tco compare --all`."""

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

PLACE = Record(
    Member("rank", int | None),
    Member("median_usd_per_million_output_tokens", float | None, "median"),
    *("vendor", "cooling", Member("released", str | None), Member("reason", str | None)),
)
ROW = Record(OF_RESULT.read_via("result"), PLACE)
RANKING = Document(
    *("compare", "ranked_by", "baseline"),
    Member("inputs", dict),
    Member("set", {str: str}),
    Member("rows", [ROW]),
)
# What a line shows beside the cost: metric -> heading
BESIDE = {
    "tco_usd_per_chip_hour": "USD a chip-hour",
    "output_tokens_per_s_per_chip": "tokens/s a chip",
}
COST = {
    "usd_per_million_output_tokens": ("USD a million", 1.0),
    "train_usd_per_trillion_tokens": ("million USD a trillion", 1e6),
}
DIGITS = 3


def ranking_answer(found: Ranking) -> Answer:
    """Return the answer that lists systems in the order of their cost.

    Every system has its place, or the reason why there is none.

    Args:
        found: Ranking of the systems.

    """
    results = [row.result for row in found.rows]
    said = {
        "ranked_by": found.metric,
        "baseline": HEADLINE_SYSTEM,
        "inputs": values_by_scenario(results),
        "rows": found.rows,
    }
    said["set"] = {path: text for result in results for path, text in set_of(result).items()}
    row = Record(COMPARISON_ROW.read_via("result"), PLACE)
    return RANKING.answer(found.catalogue, said, lambda: [ranking_table(found)], (row, found.rows))


def ranking_table(found: Ranking) -> Table:
    """Return the table: a line a system, below those with a cost those without."""
    heading, size = COST[found.metric]
    placed = sorted(found.rows, key=lambda row: (row.rank is None, row.rank or 0))
    rows = [line_of(row, found.metric, size) for row in placed]
    results = [row.result for row in found.rows]
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


def line_of(row: Ranked, metric: str, size: float) -> tuple[str, ...]:
    """Return the line of a system; one without a cost says in place of it why."""
    result = row.result
    if row.rank is None:
        return (
            f"-  {result.system}: {(row.reason or '').partition(';')[0]}",
            *("" for _ in range(8)),
        )
    costs = [
        None if one is None else float(one) / size for one in (row.median, result.metrics[metric])
    ]
    cost, base = (marked(result, metric, significant(one, DIGITS)) for one in costs)
    beside = (significant(result.metrics[name], DIGITS) or "-" for name in BESIDE)
    own, relatives = result.standing.validated_rows, result.standing.anchored_rows
    measured = f"({relatives:,})" if relatives and not own else f"{own:,}"
    return (
        str(row.rank),
        result.system,
        cost,
        base,
        *beside,
        result.hall_cooling or "",
        row.released or "",
        measured,
    )
