"""Cost difference between two systems by group of causes, for `tco diff`.

The table has a line for each group.
"""

from __future__ import annotations

import math

from tco.regression.counterfactual import HOUR, USED, Counterfactual
from tco.regression.difference import ChangeContribution, Side
from tco.report.record import Member, Record
from tco.report.table import NARROW_SCREEN, Table, fixed_digits, significant
from tco.scenario.metrics import METRICS

LABELS = {  # cause -> heading
    "chip": "chip, with its memory",
    "rack": "boards, CPUs, switches, rack",
    "network": "network and storage",
    "site": "building and staff",
    "energy": "energy",
    "upkeep": "maintenance and repairs",
    "rebates": "suppliers' rebates",
    "other": "other costs",
    "hours lost": "hours paid for one used",
    "arithmetic": "peak arithmetic (FP8)",
    "memory": "memory (HBM)",
    "links": "scale-up links",
    "latency": "latency (of a launch)",
    "software": "software",
}
WORK_CAUSES = ("arithmetic", "memory", "links", "latency", "software")
COST_HEADING, WORK_HEADING = "cost, USD per chip-hour", "speed of the work"
TITLES = {  # metric -> (what costs that, unit, size of the unit)
    "usd_per_million_output_tokens": ("a million output tokens cost", "USD", 1.0),
    "train_usd_per_trillion_tokens": ("training on a trillion tokens costs", "million USD", 1e6),
    HOUR: ("a chip-hour costs", "USD", 1.0),
    USED: ("a used chip-hour costs", "USD", 1.0),
}
RATES = {  # cost of work -> rate of the work
    "usd_per_million_output_tokens": "output_tokens_per_s_per_chip",
    "train_usd_per_trillion_tokens": "train_tokens_per_s",
}


def _step_label(step: ChangeContribution) -> str:
    first, *rest = (LABELS.get(cause.path, cause.path) for cause in step.causes)
    return f"{first} to {rest[-1]}" if rest else first


STEP_BETWEEN_SYSTEMS = Record(
    Member("cause", read="name"),
    Member("of", read="last_cause.kind"),
    Member("label", read=_step_label),
    Member("own", float | str | None, "last_cause.old"),
    Member("other", float | str | None, "last_cause.new"),
    Member("from", float, "start"),
    Member("to", float, "end"),
    Member("change", float, "difference"),
    Member("set", {str: str}, "settings"),
)


def counterfactual_table(walk: Counterfactual) -> Table:
    """Return the table of the walk: what each step adds to the cost, and what it leaves."""
    words, unit, size = TITLES[walk.metric]
    start, end = walk.ends
    decimals = max(2 - math.floor(math.log10(abs(end / size))), 0) if end else 2
    step_rows: list[tuple[str, ...]] = []
    for step in walk.steps:
        if significant(step.start, 3) == significant(step.end, 3):
            continue
        cause = step.last_cause
        heading = WORK_HEADING if cause.path in WORK_CAUSES else COST_HEADING
        if (heading,) not in [step_row[:1] for step_row in step_rows]:
            step_rows.append((heading, "", "", "", "", ""))
        cells = _step_cells(step.start / size, step.end / size, decimals)
        step_rows.append(
            (f"  {_step_label(step)}", *map(_side_cell, (cause.old, cause.new)), *cells)
        )
    rate = RATES.get(walk.metric)
    if rate:
        cells = _step_cells((end - walk.residual) / size, end / size, decimals)
        step_rows.append((f"  rest{_with_software(walk)}", "", "", *cells))
    system_names = (walk.source.system, walk.target.system)
    sides, ratio = _sides_and_ratio(start / size, end / size)
    title = f"{walk.source.scenario} -> {walk.target.scenario}: {words} {sides} {unit}"
    parts = "; ".join(_part_text(walk, metric) for metric in (HOUR, rate) if metric)
    above = [f"Base case, {ratio}. {parts}."]
    below = [f"Rows add up from the top. adds, leaves: {unit}. All that differs: --full"]
    columns = ("", *system_names, "adds", "times", "leaves")
    return Table(columns, step_rows, title, above, below, align="lrr", width=NARROW_SCREEN)


def _with_software(walk: Counterfactual) -> str:
    """Return by how much software and all else act together: neither says much by itself."""
    software = next((step for step in walk.steps if step.last_cause.path == "software"), None)
    if software is None or not software.start:
        return ": domain, cores"
    return f" (with software {walk.ends[1] / software.start:.2f})"


def _part_text(walk: Counterfactual, metric: str) -> str:
    """Return one factor of a cost: the cost of a chip-hour, or the rate of a chip."""
    label = "Cost per chip-hour, USD" if metric == HOUR else METRICS[metric].label
    start, end = (
        float(scenario_result.metrics[metric]) for scenario_result in (walk.source, walk.target)
    )
    return f"{label}: {', '.join(_sides_and_ratio(start, end))}"


def _sides_and_ratio(start: float, end: float) -> tuple[str, str]:
    ratio = f"{end / start:.3g} times" if start else "-"
    return f"{fixed_digits(start)} -> {fixed_digits(end)}", ratio


def _step_cells(start: float, end: float, decimals: int) -> tuple[str, str, str]:
    """Return the cells of a step: added cost, ratio and new cost."""
    ratio = f"{end / start:.2f}" if start else "-"
    return f"{end - start:+,.{decimals}f}", ratio, f"{end:,.{decimals}f}"


def _side_cell(side_value: Side) -> str:
    return side_value if isinstance(side_value, str) else fixed_digits(side_value)
