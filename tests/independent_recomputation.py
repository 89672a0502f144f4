"""A trace computed again from the values of its leaves, as a workbook or a page does it."""

from __future__ import annotations

from tests.registry import greatest, least, total

GATHERED = {"total": total, "least": least, "greatest": greatest}


def recomputed(roots, overrides):
    """Return the values of the roots with some inputs changed, by path.

    A leaf whose path is not among them keeps the value it was traced with.
    """
    values = {}
    stack = [(root, False) for root in roots.values()]
    while stack:
        node, ready = stack.pop()
        if id(node) in values:
            continue
        if not ready:
            stack += [(node, True), *((inner, False) for _, inner in node.inputs)]
        elif node.formula is not None:
            values[id(node)] = node.formula.function(
                **{name: values[id(inner)] for name, inner in node.inputs}
            )
        elif node.operation is not None:
            values[id(node)] = GATHERED[node.operation](
                node.name, [values[id(inner)] for _, inner in node.inputs]
            )
        else:
            values[id(node)] = overrides.get(node.path, node.value)
    return {metric: values[id(root)] for metric, root in roots.items()}
