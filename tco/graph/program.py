"""A program: the steps of a trace, each once, with inputs by path and results by name.

The chain walks a scenario and its structure once and leaves a trace; its steps are the calls of formulas and the sums in it, those that
are computed alike from the same steps being one. Whoever asks for other numbers reads the program and walks nothing. What the structure
states is a number, or a row of numbers along an axis of plans: plans of a search are asked for together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tco.foundation.formula import Formula
from tco.foundation.trace import Node

Array = np.ndarray[Any, Any]


class Row(NamedTuple):
    """Numbers of the structure along one axis of plans."""

    axis: int
    numbers: Array


class Step(NamedTuple):
    """A call of a formula, or a gathering of terms, and the steps whose results it takes."""

    function: Formula | str
    taken: tuple[int, ...]


class Program:
    """Steps in the order they are computed in: leaves have a number, a row, or an input whose number may be another each time."""

    def __init__(self) -> None:
        self.steps: list[Step | None] = []  # none of a leaf
        self.leaves: dict[int, float | Row] = {}
        self.inputs: dict[str, list[int]] = {}  # by path, several leaves where the catalogue knows it at several dates
        self.met: dict[Any, int] = {}

    def add(self, results: Mapping[str, Node]) -> dict[str, int]:
        """Take in what some results rest on, and return their places: steps that others rest on as well are there already."""
        place: dict[int, int] = {}
        for node in ordered(results.values()):
            place[id(node)] = self.leaf(node) if node.is_leaf else self.step(node, place)
        return {name: place[id(node)] for name, node in results.items()}

    def leaf(self, node: Node) -> int:
        """Return the place of a leaf: inputs of one path and number are one, and so are numbers of the structure."""
        number = number_or_row(node.value)
        key = (node.path if node.given is not None else None, (number.axis, number.numbers.tobytes()) if isinstance(number, Row) else number)
        if key not in self.met:
            self.met[key] = len(self.steps)
            self.leaves[len(self.steps)] = number
            if node.given is not None:
                self.inputs.setdefault(node.given.path, []).append(len(self.steps))
            self.steps.append(None)
        return self.met[key]

    def step(self, node: Node, place: Mapping[int, int]) -> int:
        """Return the place of a step, a new one unless it is computed already."""
        one = Step(node.formula or str(node.operation), tuple([place[id(inner)] for _, inner in node.inputs]))
        if one not in self.met:
            self.met[one] = len(self.steps)
            self.steps.append(one)
        return self.met[one]


def ordered(roots: Iterable[Node]) -> Iterable[Node]:
    """Yield the nodes some results rest on, each once and after all that it takes."""
    seen: set[int] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend([(inner, False) for _, inner in node.inputs if id(inner) not in seen])


def number_or_row(value: Any) -> float | Row:
    """Return what a leaf holds: one number, or those of the plans along the one axis on which they differ."""
    if not isinstance(value, np.ndarray) or value.size == 1:
        return float(value)
    (axis,) = (place for place, length in enumerate(value.shape) if length > 1)
    return Row(axis, value.ravel())
