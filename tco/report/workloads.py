"""The answer of `tco compare --workloads`: which rack to choose for which work at which speed, and
what it keeps of the best.
"""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.comparison.workloads import Cell
from tco.report.curve import KEPT
from tco.report.ranges import rounded_percent
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table

CELL = Record(
    "workload",
    Member("tokens_per_s_per_user", float | None),
    "scenario",
    Member("choose", bool),
    Member("share_cheapest", float | None),
)
KEPT_OF = tuple(
    Member(f"share_of_best_{at}", float | None, f"share_of_best.{at}")
    for at in ("mean", "p10", "p50")
)
ROW = Record(CELL, Member("share_of_best", Maybe(KEPT)))
WORKLOADS = Document("compare", Member("workloads", [ROW]))


def workloads_answer(catalogue: Catalogue, found: Sequence[Cell]) -> Answer:
    """Return the answer on racks and workloads.

    The table has the rack to choose. CSV and JSON have the share of the best that every rack keeps.

    Args:
        catalogue: Holds the data, whose hash the answer states.
        found: Cells of every workload, speed and rack.

    """
    return WORKLOADS.answer(
        catalogue,
        {"workloads": found},
        lambda: [workloads_table(found)],
        (Record(CELL, *KEPT_OF), found),
    )


def workloads_table(found: Sequence[Cell]) -> Table:
    """Return a row for each workload and speed, the choice marked."""
    names = list(dict.fromkeys(one.scenario for one in found))
    at = {(one.workload, one.tokens_per_s_per_user, one.scenario): one for one in found}
    places = dict.fromkeys((one.workload, one.tokens_per_s_per_user) for one in found)
    rows = [
        (
            workload,
            "-" if speed is None else f"{speed:g}",
            *(cell_of(at[workload, speed, name]) for name in names),
        )
        for workload, speed in places
    ]
    below = [
        "Share of the best cost that each keeps on average, * the pick or all of a tie; each "
        "workload has draws of its own."
    ]
    return Table(("workload", "tokens/s", *names), rows, "Which rack for which work", below=below)


def cell_of(one: Cell) -> str:
    """Return the table cell of a rack: mean share of best cost.

    A star marks the pick. The cell is `-` for a rack without a share.
    """
    return (
        "-"
        if one.share_of_best is None
        else f"{'*' if one.choose else ''}{rounded_percent(one.share_of_best['mean'])}"
    )
