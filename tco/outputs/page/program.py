"""The program of a trace as the script of the page computes it: its steps, and its formulas in JavaScript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tco.chain.result import Result
from tco.foundation.equation import Symbol, expression
from tco.foundation.formula import REGISTRY, normal_form
from tco.foundation.provenance import Input
from tco.foundation.trace import Node
from tco.outputs.cells import identity, ordered, with_ratios

WRITTEN = {  # operation -> how it is written; every operation keeps its brackets, so that what is rounded where stays as it is
    **{sign: f"({{}}{sign}{{}})" for sign in ("<", "<=", ">", ">=", "+", "-", "*", "/")},
    **{"**": "Math.pow({},{})", "neg": "(-{})", "max": "Math.max({},{})", "min": "Math.min({},{})", "select": "({}?{}:{})"},
    **{name: f"Math.{name}({{}})" for name in ("sqrt", "exp", "expm1", "log", "log1p", "log2", "ceil", "floor")},
    "normal_cdf": "normal_cdf({})",
}
GATHERED = {  # the sum in the order of its terms, as the engine adds them
    "total": "(...terms)=>terms.reduce((sum,term)=>sum+term,0)",
    "least": "(...terms)=>terms.reduce((one,other)=>Math.min(one,other))",
    "greatest": "(...terms)=>terms.reduce((one,other)=>Math.max(one,other))",
}


def printed(value: Any) -> str:
    """Return a symbol as an expression."""
    if not isinstance(value, Symbol):
        return repr(float(value)).removesuffix(".0") if value >= 0 else f"({float(value)!r})"
    if value.operation == "name":
        return named(value.arguments[0])
    return WRITTEN[value.operation].format(*map(printed, value.arguments))


def named(parameter: str) -> str:
    """Return the name of a parameter as the script has it, which is no word of the language."""
    return f"${parameter}"


def function(name: str) -> str:
    """Return a formula or a gathering by name as a function of its parameters, in their order."""
    if name in GATHERED:
        return GATHERED[name]
    formula = REGISTRY[name]
    return f"({','.join(map(named, formula.parameters))})=>{printed(expression(formula))}"


def script(names: Iterable[str]) -> str:
    """Return the functions of some formulas, one a line, as the list the program of the page numbers them by."""
    lines = [f"  {function(name)}, // {name}" for name in names]
    return "\n".join([f"const normal_cdf = {named('x')} => {printed(normal_form(Symbol('name', 'x')))};", "const FORMULAS = [", *lines, "];"])


@dataclass(slots=True)
class Entry:
    """An input: the cells that a setting of it reaches, several where scenarios have values of their own, and the scenarios that read it."""

    given: Input
    cells: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class PageProgram:
    """Cells and lines, and where inputs and metrics lie among the cells."""

    leaves: list[Node] = field(default_factory=list)  # the first cells: inputs, counts of the structure, constants
    lines: list[tuple[int, ...]] = field(default_factory=list)  # function and cells it takes; each gives the cell after those before it
    functions: list[str] = field(default_factory=list)  # names, as the lines number them
    inputs: dict[str, Entry] = field(default_factory=dict)  # by path
    metrics: list[dict[str, int]] = field(default_factory=list)  # of each scenario, name -> cell

    def document(self) -> dict[str, Any]:
        """Return the program as the script reads it."""
        return {"leaves": [float(node.value) for node in self.leaves], "lines": self.lines, "metrics": self.metrics}


def program_of(results: Sequence[Result], baseline: str, beside: Sequence[Mapping[str, Node]] = ()) -> PageProgram:
    """Return the program of some traced results, side by side and each held against the baseline; `beside` is what else is asked of each."""
    roots = [nodes | dict(beside[at] if beside else {}) for at, nodes in enumerate(with_ratios(results, baseline))]
    found = PageProgram()
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


def place_leaf(program: PageProgram, numbers: dict[Any, int], node: Node, scenario: int) -> None:
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
