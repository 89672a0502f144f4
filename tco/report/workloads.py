"""Answer of `tco compare --workloads`: the rack to choose for each workload and speed."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.comparison.workloads import Cell
from tco.report.curve import SHARE_OF_BEST
from tco.report.ranges import rounded_percent
from tco.report.record import Answer, Document, Maybe, Member, Record
from tco.report.table import Table, starred_emphasis

WORKLOADS = Document(
    "compare",
    Member("workloads", [Record(Cell, Member("share_of_best", Maybe(SHARE_OF_BEST)))]),
)
ROW = Record(Cell, SHARE_OF_BEST.read_via("share_of_best", "share_of_best_"))


def workloads_answer(catalogue: Catalogue, cells: Sequence[Cell]) -> Answer:
    """Answer with the share of the best that every rack keeps of each workload.

    The table marks the rack to choose.

    Args:
        catalogue: Holds the data, whose hash the answer states.
        cells: Cells of every workload, speed and rack.

    """
    return WORKLOADS.answer(
        catalogue, {"workloads": cells}, lambda: [_workloads_table(cells)], (ROW, cells)
    )


def _workloads_table(cells: Sequence[Cell]) -> Table:
    """Tabulate a row for each workload and speed, the choice marked."""
    scenario_names = dict.fromkeys(cell.scenario for cell in cells)
    texts: dict[tuple[str, float | None], dict[str, str]] = {}
    for cell in cells:
        share_texts = texts.setdefault((cell.workload, cell.tokens_per_s_per_user), {})
        share_texts[cell.scenario] = _share_text(cell)
    share_rows = [
        (
            workload,
            "-" if speed is None else f"{speed:g}",
            *(share_texts[scenario_name] for scenario_name in scenario_names),
        )
        for (workload, speed), share_texts in texts.items()
    ]
    below = [
        "Share of the best cost that each keeps on average, * the pick or all of a tie; each "
        "workload has draws of its own."
    ]
    return Table(
        ("workload", "tokens/s", *scenario_names),
        share_rows,
        "Which rack for which work",
        below=below,
        emphasis=starred_emphasis(share_rows),
    )


def _share_text(cell: Cell) -> str:
    # a star marks the pick
    if cell.share_of_best is None:
        return "-"
    return "*" * cell.choose + rounded_percent(cell.share_of_best["mean"])
