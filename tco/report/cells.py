"""Cells of a trace for live outputs: in order of computation, with inputs in readable units.

The workbook and the page both write one cell for each call of a formula; what they share stands
here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator

from tco.core.provenance import Input
from tco.core.trace import Node
from tco.core.units import unit
from tco.scenario.metrics import AGAINST_BASELINE, PRICED

FIRST = ("site", "terms", "workload", "cluster")  # what is changed most stands on top
TOKENS, GROSS = "usd_per_million_output_tokens", "usd_per_million_output_tokens_gross"
HOUR, GROSS_HOUR = "tco_usd_per_chip_hour", "tco_gross_usd_per_chip_hour"
# what is held against the baseline -> by which cost
RATIOS = {
    "perf_per_tco_vs_baseline": TOKENS,
    "perf_per_tco_gross_vs_baseline": GROSS,
}


def ordered(roots: Iterable[Node]) -> list[Node]:
    """Return every node below some roots once, inputs before what is computed from them."""
    visited_ids: set[int] = set()
    ordered_nodes: list[Node] = []
    for root in roots:
        stack: list[tuple[Node, Iterator[tuple[str, Node]]]] = []
        if id(root) not in visited_ids:
            visited_ids.add(id(root))
            stack.append((root, iter(root.inputs)))
        while stack:
            node, below = stack[-1]
            inner = next((inner for _, inner in below if id(inner) not in visited_ids), None)
            if inner is None:
                ordered_nodes.append(node)
                stack.pop()
            else:
                visited_ids.add(id(inner))
                stack.append((inner, iter(inner.inputs)))
    return ordered_nodes


def cost_behind(ratio: str, metric_names: Collection[str]) -> str | None:
    """Return the cost behind a ratio to the baseline among the given metrics.

    Of training, the ratio before rebates has none.
    """
    if RATIOS[ratio] in metric_names:
        return RATIOS[ratio]
    return (
        next((cost for cost in PRICED if cost in metric_names), None)
        if ratio in AGAINST_BASELINE
        else None
    )


def input_sort_key(path: str) -> tuple[int, str]:
    """Return the sort key of an input path: site and terms first."""
    group = path.partition(".")[0]
    return (FIRST.index(group) if group in FIRST else len(FIRST), path)


def own_unit(node: Node | Input) -> tuple[float, str, float]:
    """Return an input's value and unit as its file writes them, and the factor to the base unit."""
    if node.stated_quantity is not None:
        shown_value, unit_name = node.stated_quantity
        factor = unit(unit_name).factor / unit(node.unit).factor
        if math.isclose(shown_value * factor, node.value, rel_tol=1e-12, abs_tol=0):
            return shown_value, unit_name, factor
    return node.value, node.unit, 1.0
