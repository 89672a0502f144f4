"""The explanation of a number: its equation, its inputs and their sources, as a tree read off the trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tco.catalog import Catalogue
from tco.foundation.equation import equation
from tco.foundation.provenance import SOURCED
from tco.foundation.trace import STRUCTURE, Node
from tco.outputs.document import number
from tco.outputs.table import significant

GATHERED = {"total": "sum of {} terms", "least": "least of {} candidates", "greatest": "greatest of {} candidates"}
STRUCTURE_TITLE = "counts and shapes of the system, the model and the plan"


def node_equation(node: Node) -> str | None:
    """Return the equation of a node as the code computes it; None for a leaf."""
    if node.formula is not None:
        return equation(node.formula)
    if node.operation is not None:
        return GATHERED[node.operation].format(len(node.inputs))
    return None


def numbered(root: Node) -> dict[int, str]:
    """Return an id for every node, in the order a reader meets them."""
    ids: dict[int, str] = {}

    def visit(node: Node) -> None:
        if id(node) not in ids:
            ids[id(node)] = f"n{len(ids) + 1}"
            for _, inner in node.inputs:
                visit(inner)

    visit(root)
    return ids


def explanation_document(metric: str, root: Node, catalogue: Catalogue, redact: bool = False, own: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the content of the JSON document; `own` are the paths of a person's own values."""
    ids = numbered(root)
    seen: set[int] = set()

    def branch(name: str, node: Node) -> dict[str, Any]:
        if id(node) in seen:
            return {"ref": ids[id(node)]}
        seen.add(id(node))
        value, unit = node.shown or (node.value, node.unit)
        hidden = redact and node.path in own
        made: dict[str, Any] = {
            "id": ids[id(node)],
            "name": name,
            "value": None if hidden else number(value),
            "unit": unit,
            "equation": node_equation(node),
            "source": source_text(node, catalogue),
        }
        if node.formula is not None:
            made["formula"] = node.formula.name
        if node.path is not None:
            made["path"] = node.path
        if node.is_leaf:
            made["kind"] = node.kind
            if node.note:
                made["note"] = node.note
        else:
            made["inputs"] = [branch(name, inner) for name, inner in node.inputs]
        return made

    return {"metric": metric, "tree": branch(metric, root)}


def source_text(node: Node, catalogue: Catalogue) -> str:
    """Return the source of a node by its title."""
    return STRUCTURE_TITLE if node.source == STRUCTURE else catalogue.source_title(node.source)


def explanation_lines(
    metric: str, root: Node, catalogue: Catalogue, depth: int, redact: bool = False, own: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the lines of the tree, `depth` levels deep; a node met again is named by its number."""
    ids = numbered(root)
    seen: set[int] = set()

    def visit(name: str, node: Node, lead: str, tail: str, level: int) -> Iterator[str]:
        value, unit = node.shown or (node.value, node.unit)
        mark = "" if node.kind is None or node.kind in SOURCED else "~"
        shown = "(own value, left out)" if redact and node.path in own else f"{mark}{significant(value, 6)} {unit}".rstrip()
        label = node.path if node.is_leaf and node.path else name
        if id(node) in seen and not node.is_leaf:
            yield f"{lead}{label} = {shown}  (see {ids[id(node)]})"
            return
        seen.add(id(node))
        if node.is_leaf:
            yield f"{lead}{label} = {shown}  [{node.kind}; {source_text(node, catalogue)}]"
            return
        yield f"{lead}{label} = {shown}  ({ids[id(node)]})"
        yield f"{tail}  = {node_equation(node)}  [{source_text(node, catalogue)}]"
        if level >= depth:
            yield f"{tail}  ... {len(node.inputs)} inputs below; --depth {depth + 1} shows them"
            return
        for position, (inner_name, inner) in enumerate(node.inputs):
            last = position == len(node.inputs) - 1
            yield from visit(inner_name, inner, tail + ("`- " if last else "|- "), tail + ("   " if last else "|  "), level + 1)

    yield from visit(metric, root, "", "", 0)


def explanation_rows(root: Node, catalogue: Catalogue, redact: bool = False, own: frozenset[str] = frozenset()) -> list[list[Any]]:
    """Return the CSV rows: every node once, parents before inputs."""
    ids = numbered(root)
    rows: list[list[Any]] = []
    seen: set[int] = set()

    def visit(name: str, node: Node) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        value, unit = node.shown or (node.value, node.unit)
        inputs = ";".join(ids[id(inner)] for _, inner in node.inputs)
        hidden = redact and node.path in own
        cells = [ids[id(node)], name, node.path or "", None if hidden else value, unit, node_equation(node) or ""]
        rows.append([*cells, node.kind or "", source_text(node, catalogue), inputs])
        for inner_name, inner in node.inputs:
            visit(inner_name, inner)

    visit(root.path or root.name, root)
    return rows


HEADER = ("id", "name", "path", "value", "unit", "equation", "kind", "source", "inputs")
