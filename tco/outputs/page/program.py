"""The trace as a program the page runs: numbered cells, and for each call of a formula one line that says which function takes which cells.

Cells that are computed alike from the same cells are one, whichever scenarios read them; lines stand in the order they are computed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tco.chain.result import Result
from tco.foundation.provenance import Input
from tco.foundation.trace import Node
from tco.outputs.cells import identity, ordered, with_ratios


@dataclass(slots=True)
class Entry:
    """An input: the cells that a setting of it reaches, several where scenarios have values of their own, and the scenarios that read it."""

    given: Input
    cells: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Program:
    """Cells and lines, and where inputs and metrics lie among the cells."""

    leaves: list[Node] = field(default_factory=list)  # the first cells: inputs, counts of the structure, constants
    lines: list[tuple[int, ...]] = field(default_factory=list)  # function and cells it takes; each gives the cell after those before it
    functions: list[str] = field(default_factory=list)  # names, as the lines number them
    inputs: dict[str, Entry] = field(default_factory=dict)  # by path
    metrics: list[dict[str, int]] = field(default_factory=list)  # of each scenario, name -> cell

    def document(self) -> dict[str, Any]:
        """Return the program as the script reads it."""
        return {"leaves": [float(node.value) for node in self.leaves], "lines": self.lines, "metrics": self.metrics}


def program_of(results: Sequence[Result], baseline: str) -> Program:
    """Return the program of some traced results, side by side and each held against the baseline."""
    roots = with_ratios(results, baseline)
    found = Program()
    walked = [ordered(nodes.values()) for nodes in roots]
    numbers: dict[Any, int] = {}
    for at, nodes in enumerate(walked):
        for node in (one for one in nodes if one.is_leaf):
            place_leaf(found, numbers, node, at)
    functions: dict[str, int] = {}
    for nodes in walked:
        for node in (one for one in nodes if not one.is_leaf):
            name = node.formula.name if node.formula else str(node.operation)
            line = (functions.setdefault(name, len(functions)), *(numbers[id(inner)] for _, inner in node.inputs))
            if line not in numbers:
                numbers[line] = len(found.leaves) + len(found.lines)
                found.lines.append(line)
            numbers[id(node)] = numbers[line]
    found.functions = list(functions)
    found.metrics = [{name: numbers[id(node)] for name, node in nodes.items()} for nodes in roots]
    return found


def place_leaf(program: Program, numbers: dict[Any, int], node: Node, scenario: int) -> None:
    """Give a leaf its cell: an input that others read alike shares theirs, a count or a constant that of its number."""
    key = ("input", identity(node)) if node.given is not None else ("number", float(node.value))
    if key not in numbers:
        numbers[key] = len(program.leaves)
        program.leaves.append(node)
    cell = numbers[id(node)] = numbers[key]
    if node.given is not None:
        entry = program.inputs.setdefault(node.given.path, Entry(node.given))
        for known, one in ((entry.cells, cell), (entry.readers, scenario)):
            if one not in known:
                known.append(one)
