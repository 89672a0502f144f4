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


def imported(name, path, module_paths):
    """Return the modules that a module imports, wherever it does."""
    tree, imported_modules = ast.parse(path.read_text(encoding="utf-8")), set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            imported_modules |= {import_alias.name for import_alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            imported_modules |= {
                inner if (inner := f"{base}.{import_alias.name}") in module_paths else base
                for import_alias in node.names
            }
        waiting += ast.iter_child_nodes(node)
    return imported_modules & module_paths.keys() - {
        name,
        "tco",
    }  # the package itself gives its version


def test_no_module_imports_itself_by_way_of_others():
    module_paths = modules()
    graph = {name: imported(name, path, module_paths) for name, path in module_paths.items()}
    assert sum(map(len, graph.values())) > len(graph)  # imports are found
    # raises `CycleError` with the circle
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)
