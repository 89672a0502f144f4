"""Cost difference between two systems by group of causes, for `tco diff`.

The table has a line for each group.
"""

from __future__ import annotations

from tco.regression.waterfall import (
    CHIP,
    ENERGY,
    HOUR,
    LOST,
    NETWORK,
    OTHER,
    RACK,
    REBATES,
    SITE,
    UPKEEP,
    USED,
    Counterfactual,
    Stride,
)
from tco.report.record import Member, Record
from tco.report.table import Table, significant
from tco.scenario.metrics import METRICS

LABELS = {  # cause -> what it is
    CHIP: "chip, with its memory",
    RACK: "boards, CPUs, switches, rack",
    NETWORK: "network and storage",
    SITE: "building and staff",
    ENERGY: "energy",
    UPKEEP: "maintenance and repairs",
    REBATES: "suppliers' rebates",
    OTHER: "other costs",
    LOST: "hours paid for one used",
    "arithmetic": "peak arithmetic (FP8)",
    "memory": "memory (HBM)",
    "links": "scale-up links",
    "latency": "latency (of a launch)",
    "software": "software",
}
TITLES = {  # metric -> (what costs that, unit, size of the unit)
    "usd_per_million_output_tokens": ("a million output tokens cost", "USD", 1.0),
    "train_usd_per_trillion_tokens": ("training on a trillion tokens costs", "million USD", 1e6),
    HOUR: ("a chip-hour costs", "USD", 1.0),
    USED: ("a utilised chip-hour costs", "USD", 1.0),
}
RATES = {
    "usd_per_million_output_tokens": "output_tokens_per_s_per_chip",
    "train_usd_per_trillion_tokens": "train_tokens_per_s",
}


def label(step: Stride) -> str:
    """Return the label of a step in words."""
    first, *rest = (LABELS.get(cause, cause) for cause in step.cause.split(" and "))
    return f"{first} to {rest[-1]}" if rest else first


STRIDE = Record(
    "cause",
    "of",
    Member("label", read=label),
    Member("own", float | str | None, "here"),
    Member("other", float | str | None, "there"),
    Member("from", float, "start"),
    Member("to", float, "end"),
    Member("change", float),
    Member("set", {str: str}, "settings"),
)


def way_table(way: Counterfactual) -> Table:
    """Return the way from one system to the other: what each step adds to the cost, by how much
    that multiplies it, and what it leaves.
    """
    words, unit, size = TITLES[way.metric]
    first, last = way.ends
    told = [step for step in way.steps if cost_text(step.start) != cost_text(step.end)]
    rows = [
        (
            label(step),
            system_value_cell(step.here),
            system_value_cell(step.there),
            *counterfactual_step_cells(step.start, step.end, size),
        )
        for step in told
    ]
    if way.metric in RATES:
        rows.append(
            (
                "rest: domain, cores, ...",
                "",
                "",
                *counterfactual_step_cells(last - way.residual, last, size),
            )
        )
    title = (
        f"{way.own.scenario} -> {way.other.scenario}: {words} {cost_text(first, size)} -> "
        f"{cost_text(last, size)} {unit}, {times(first, last)}"
    )
    names = (way.own.system, way.other.system)
    above = [
        f"Each line puts what {names[1]} has in the place of what {names[0]} has, all lines above "
        "it kept; costs are USD a chip-hour."
    ]
    return Table(
        ("", *names, unit, "times", "leaves"),
        rows,
        title,
        [*above, parts(way)],
        ["All that differs: --full"],
        align="lrr",
    )


def parts(way: Counterfactual) -> str:
    """Return the two halves of a cost: what a chip-hour costs, and what a chip does in it."""
    metrics = (HOUR, *filter(None, [RATES.get(way.metric)]))
    words = {HOUR: "chip-hour, USD", **{name: METRICS[name].label for name in RATES.values()}}
    pairs = [
        (words[name], float(way.own.metrics[name]), float(way.other.metrics[name]))
        for name in metrics
    ]
    return (
        "; ".join(
            f"{name}: {significant(a, 3)} -> {significant(b, 3)}, {times(a, b)}"
            for name, a, b in pairs
        )
        + "."
    )


def counterfactual_step_cells(start: float, end: float, size: float) -> tuple[str, str, str]:
    """Return the cells of a step: added cost, ratio and new cost."""
    return (
        f"{(end - start) / size:+.3g}",
        f"{end / start:.2f}" if start else "-",
        cost_text(end, size),
    )


def times(first: float, last: float) -> str:
    """Return a ratio in words."""
    return f"{last / first:.3g} times" if first else "-"


def cost_text(value: float, size: float = 1.0) -> str:
    """Return a cost."""
    return significant(value / size, 3)


def system_value_cell(value: str | float | None) -> str:
    """Return the cell of a system's value, to three significant digits.

    A text stays as written.
    """
    return value if isinstance(value, str) else significant(value, 3)
