"""Workbook contents: trace nodes of all scenarios as rows, scenarios as columns.

A row is a cell of the trace by its id, so the same quantity of two scenarios stands side by side.
An input that two scenarios read alike is a single cell, which moves both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from tco.core.mappings import lists_by_key
from tco.core.provenance import Input
from tco.core.trace import Node
from tco.report.cells import ordered
from tco.report.workbook.excel import LONGEST, MOST
from tco.scenario.result import Result

# terms of one sum: no reference to a cell is as long as 64 characters
SPLIT = min(MOST, LONGEST // 64) // 2


class InputCell(NamedTuple):
    """An input as a row of its sheet, and the scenarios that read it."""

    name: str  # the defined name of its cell in base units
    node: Node
    input_record: Input
    scenarios: list[int]


@dataclass(slots=True)
class SheetRow:
    """One quantity: its node in every scenario that has it."""

    node: Node
    nodes: dict[int, Node] = field(default_factory=dict)

    @property
    def scope_path(self) -> str:
        """Where the quantity is made."""
        return self.node.id.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Name of the quantity within its scope."""
        return self.node.id.rpartition("/")[2]


@dataclass(slots=True)
class Content:
    """All rows of a workbook."""

    results: Sequence[Result]
    inputs: list[InputCell] = field(default_factory=list)
    # counts of the structure and constants of the equations
    fixed: list[SheetRow] = field(default_factory=list)
    derived: list[SheetRow] = field(default_factory=list)
    # scenario and id of an input -> its name
    named: dict[tuple[int, str], str] = field(default_factory=dict)
    # scenario and id of what is computed -> its node
    computed: dict[tuple[int, str], Node] = field(default_factory=dict)


def content_of(scenario_results: Sequence[Result]) -> Content:
    """Return the rows of traced results, inputs before their uses and rows of a scope together."""
    content = Content(scenario_results)
    inputs: dict[tuple[Any, ...], InputCell] = {}
    rows: dict[tuple[str, str, str], SheetRow] = {}
    excel_names: set[str] = set()
    for scenario_index, scenario_result in enumerate(scenario_results):
        for node in _nodes_of_metrics(scenario_result):
            if node.given is None:
                kind = node.formula.name if node.formula else node.operation or ""
                sheet_row = rows.setdefault((node.id, node.unit, kind), SheetRow(node))
                sheet_row.nodes[scenario_index] = node
                continue
            input_key = _input_key(node, node.given)
            if input_key not in inputs:
                name = excel_name(node.id, excel_names)
                inputs[input_key] = InputCell(name, node, node.given, [])
            inputs[input_key].scenarios.append(scenario_index)
            content.named[scenario_index, node.id] = inputs[input_key].name
    content.inputs = sorted(inputs.values(), key=lambda leaf: (leaf.node.id, leaf.scenarios))
    rows_by_scope = lists_by_key((sheet_row.scope_path, sheet_row) for sheet_row in rows.values())
    for sheet_row in chain.from_iterable(rows_by_scope.values()):
        if sheet_row.node.is_leaf:
            content.fixed.append(sheet_row)
            continue
        content.derived.append(sheet_row)
        for scenario_index, node in sheet_row.nodes.items():
            content.computed[scenario_index, sheet_row.node.id] = node
    return content


def _nodes_of_metrics(scenario_result: Result) -> Iterator[Node]:
    """Yield the nodes below the metrics that have a value, inputs before their uses."""
    metrics = scenario_result.metrics
    valued = [
        node
        for metric_name, node in scenario_result.nodes.items()
        if metrics.get(metric_name) is not None
    ]
    return split_long_formulas(ordered(valued))


def _input_key(node: Node, input_record: Input) -> tuple[Any, ...]:
    """Return a key of an input that is equal for scenarios that read the input alike."""
    stated = (node.value, node.unit, node.stated_quantity, node.source)
    return (node.id, *stated, input_record.low, input_record.high, input_record.where)


def excel_name(label_text: str, taken: set[str]) -> str:
    """Return a unique defined name for an id, ignoring case, such as `site_electricity_price`."""
    base_name = "".join(mark if mark.isascii() and mark.isalnum() else "_" for mark in label_text)
    # without a line it could be the name of a cell
    if "_" not in base_name or not base_name[0].isalpha():
        base_name = f"input_{base_name}"
    candidate_name, number = base_name, 1
    while candidate_name.lower() in taken:
        number += 1
        candidate_name = f"{base_name}_{number}"
    taken.add(candidate_name.lower())
    return candidate_name


def split_long_formulas(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, with each gathering of too many terms split into nodes of parts before it."""
    for node in nodes:
        if node.operation is None or len(node.inputs) <= SPLIT:
            yield node
            continue
        aggregate_node = _aggregate_node(node, node.id, node.inputs)
        while len(aggregate_node.inputs) > SPLIT:
            level = f"{aggregate_node.id}-part-{len(aggregate_node.inputs)}"
            parts = [
                _aggregate_node(
                    node,
                    f"{level}-{part_start // SPLIT + 1}",
                    aggregate_node.inputs[part_start : part_start + SPLIT],
                )
                for part_start in range(0, len(aggregate_node.inputs), SPLIT)
            ]
            yield from parts
            aggregate_node.inputs = [(part.name, part) for part in parts]
        yield aggregate_node


def _aggregate_node(node: Node, node_name: str, inputs: list[tuple[str, Node]]) -> Node:
    """Return the gathering of a node over some of its terms."""
    from tco.core.formula import greatest, least, total

    aggregate_node = Node(node_name.rpartition("/")[2], None, node.unit, node.source)
    aggregate_node.id, aggregate_node.operation, aggregate_node.path, aggregate_node.inputs = (
        node_name,
        node.operation,
        node.path,
        list(inputs),
    )
    gather = {"total": total, "least": least, "greatest": greatest}[str(node.operation)]
    aggregate_node.value = gather(node_name, [inner.value for _, inner in inputs])
    return aggregate_node
