"""Answer of `tco compare --workloads`: the mean regret of each rack by workload and speed."""

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
    """Answer with the mean regret of every rack at each workload and speed.

    The table marks the picks.

    Args:
        catalogue: Holds the data, whose hash the answer states.
        cells: Cells of every workload, speed and rack.

    """
    return WORKLOADS.answer(
        catalogue, {"workloads": cells}, lambda: [_workloads_table(cells)], (ROW, cells)
    )


def _workloads_table(cells: Sequence[Cell]) -> Table:
    """Tabulate a row for each workload and speed, the picks marked."""
    scenario_names = dict.fromkeys(cell.scenario for cell in cells)
    texts: dict[tuple[str, float | None], dict[str, str]] = {}
    for cell in cells:
        regret_texts = texts.setdefault((cell.workload, cell.tokens_per_s_per_user), {})
        regret_texts[cell.scenario] = _regret_text(cell)
    regret_rows = [
        (
            workload,
            "-" if speed is None else f"{speed:g}",
            *(regret_texts[scenario_name] for scenario_name in scenario_names),
        )
        for (workload, speed), regret_texts in texts.items()
    ]
    below = [
        "Regret is the share of the spend that is lost against the cheapest rack of the draw.",
        "* marks the pick, or every rack of a tie. tokens/s: speed per user. Each workload has "
        "draws of its own.",
    ]
    if any("*" not in "".join(regret_texts.values()) for regret_texts in texts.values()):
        below.append("A row without a mark: no rack meets the speed in half of the draws.")
    return Table(
        ("workload", "tokens/s", *scenario_names),
        regret_rows,
        "Mean regret of each rack, by workload and speed: the least is the pick",
        below=below,
        emphasis=starred_emphasis(regret_rows),
    )


def _regret_text(cell: Cell) -> str:
    # a star marks the pick
    if cell.share_of_best is None:
        return "-"
    return "*" * cell.choose + rounded_percent(1 - cell.share_of_best["mean"])
