"""No module imports itself by way of others: imports inside functions and for types count."""

import ast
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import tco

ROOT = Path(tco.__file__).parent


def modules():
    """Return the file of every module by its name."""
    return {
        ".".join(("tco", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(ROOT.rglob("*.py"))
    }


def imported(name, path, known):
    """Return the modules that a module imports, wherever it does."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            found |= {
                inner if (inner := f"{base}.{one.name}") in known else base for one in node.names
            }
        waiting += ast.iter_child_nodes(node)
    return found & known.keys() - {name, "tco"}  # the package itself gives its version


def test_no_module_imports_itself_by_way_of_others():
    known = modules()
    graph = {name: imported(name, path, known) for name, path in known.items()}
    assert sum(map(len, graph.values())) > len(graph)  # imports are found
    # raises `CycleError` with the circle
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)
