"""Cost difference between two systems by group of causes, for `tco diff`.

The table has a line for each group.
"""

from __future__ import annotations

import math

from tco.regression.counterfactual import HOUR, USED, Counterfactual
from tco.regression.difference import ChangeCause, ChangeContribution, Side
from tco.report.record import Member, Record
from tco.report.table import NARROW_SCREEN, Table, fixed_digits
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
    "latency": "latency (shown: launch)",
    "software": "software",
    "software and rest": "software, domain size, cores",
    "rest": "domain size, cores",
}
SOFTWARE, SOFTWARE_AND_REST, REST = "software", "software and rest", "rest"
WORK_CAUSES = ("arithmetic", "memory", "links", "latency", SOFTWARE, SOFTWARE_AND_REST, REST)
COST_HEADING, WORK_HEADING = "cost of a chip-hour, USD", "speed of the work"
TITLES = {  # metric -> (what costs that, unit, size of the unit)
    "usd_per_million_output_tokens": ("a million output tokens cost", "USD", 1.0),
    "train_usd_per_trillion_tokens": ("training on a trillion tokens costs", "million USD", 1e6),
    HOUR: ("a chip-hour costs", "USD", 1.0),
    USED: ("a used chip-hour costs", "USD", 1.0),
}
WORK = {  # metric -> what its cost is per
    "usd_per_million_output_tokens": "million output tokens",
    "train_usd_per_trillion_tokens": "trillion tokens",
    HOUR: "chip-hour",
    USED: "used chip-hour",
}
SHORT_WORK = {  # metric -> the same in the head of a column
    "usd_per_million_output_tokens": "M",
    "train_usd_per_trillion_tokens": "T",
    HOUR: "h",
    USED: "h",
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
    """Return the table of the walk: what each step adds to the cost, and the cost after it."""
    _, unit, size = TITLES[walk.metric]
    short_unit = f"{unit}/{SHORT_WORK[walk.metric]}"
    unit = f"{unit} per {WORK[walk.metric]}"
    start, end = walk.ends
    decimals = max(2 - math.floor(math.log10(abs(end / size))), 0) if end else 2
    rate = RATES.get(walk.metric)
    steps = [*walk.steps]
    if rate:
        steps = [step for step in steps if step.last_cause.path != SOFTWARE]
        steps.append(_software_and_rest(walk))
    source_row = (
        f"cost of {walk.source.system}, {short_unit}",
        "",
        "",
        "",
        f"{start / size:,.{decimals}f}",
    )
    step_rows: list[tuple[str, ...]] = [source_row]
    for step in steps:
        added = f"{(step.end - step.start) / size:+,.{decimals}f}"
        if not added.strip("+-0.") and step != steps[-1]:
            continue
        cause = step.last_cause
        heading = WORK_HEADING if cause.path in WORK_CAUSES else COST_HEADING
        if (heading,) not in [step_row[:1] for step_row in step_rows]:
            step_rows.append((heading, "", "", "", ""))
        sides = map(_side_cell, (cause.old, cause.new))
        step_rows.append(
            (f"  {_step_label(step)}", *sides, added, f"{step.end / size:,.{decimals}f}")
        )
    sides_text = _sides_text(start / size, end / size)
    title = f"{walk.source.scenario} -> {walk.target.scenario}: {sides_text} {unit}"
    change = [_percent_or_times(end / start)] if start else []
    parts = [_part_text(walk, metric) for metric in (HOUR, rate) if metric]
    above = ["; ".join([*change, *parts])]
    below = ["Base case; rows add up in this order, another shifts them. All: --full"]
    columns = ("", walk.source.system, walk.target.system, "adds", "total")
    return Table(columns, step_rows, title, above, below, align="lrr", width=NARROW_SCREEN)


def _percent_or_times(ratio: float) -> str:
    """Return a change in per cent, or from the double on in times."""
    return f"{ratio:.2f} times" if ratio >= 2 else f"{(ratio - 1) * 100:+.0f} %"


def _software_and_rest(walk: Counterfactual) -> ChangeContribution:
    """Return the steps of software and of all else as one: software is fitted to its chips."""
    start, end = walk.ends[1] - walk.residual, walk.ends[1]
    for step in walk.steps:
        if step.last_cause.path == SOFTWARE:
            cause = step.last_cause._replace(path=SOFTWARE_AND_REST)
            return ChangeContribution((cause,), step.start, end)
    return ChangeContribution((ChangeCause("performance", REST, "", ""),), start, end)


def _part_text(walk: Counterfactual, metric: str) -> str:
    """Return one factor of a cost: the cost of a chip-hour, or the rate of a chip."""
    label = "USD per chip-hour" if metric == HOUR else METRICS[metric].label
    start, end = (
        float(scenario_result.metrics[metric]) for scenario_result in (walk.source, walk.target)
    )
    return f"{label} {_sides_text(start, end)}"


def _sides_text(start: float, end: float) -> str:
    return f"{fixed_digits(start)} -> {fixed_digits(end)}"


def _side_cell(side_value: Side) -> str:
    return side_value if isinstance(side_value, str) else f"{side_value or 0:,.3f}"
