"""The style of every file: no file breaks a rule of style."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

from tests.house.measures import MEASURES, ROOT, counts_by_file, measure

NAMED_TWICE = {  # commands that have the name of a public function, or of a kind of plot
    "bom",
    "compare",
    "diff",
    "fabric",
    "frontier",
    "sensitivity",
    "solve",
    "sweep",
    "uncertainty",
}


@pytest.mark.parametrize("name", MEASURES)
def test_no_file_breaks_a_rule(name):
    counts = {file: count[name] for file, count in counts_by_file().items() if count[name]}
    assert counts == {}, f"{name}: see Style in CONTRIBUTING.md"


def test_each_rule_is_measured():
    source = (
        '"""What a file holds,\nand more."""\n\n\n'
        "def long(one):\n" + "    found = 1\n" * 61 + f"    return {'1 + ' * 30}1\n"
    )
    assert measure(source) == {
        "empty_names": 62,
        "long_lines": 1,
        "long_functions": 1,
        "clause_docstrings": 1,
        "wrapped_summaries": 1,
    }


def top_level_names():
    """Return the modules of the program that define each function and class, by its name."""
    modules = defaultdict(set)
    for path in (ROOT / "tco").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                modules[node.name].add(str(path.relative_to(ROOT)))
    return modules


def test_every_function_and_class_has_a_name_of_its_own():
    twice = {name for name, modules in top_level_names().items() if len(modules) > 1}
    assert twice == NAMED_TWICE


def attribute_names():
    """Return every name of an attribute, and every key of a table that is written out."""
    names = set()
    for path in (ROOT / "tco").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                names.add(node.attr)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Dict):
                names |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
    return names


def attributes_read_by_text():
    """Yield the texts by which members of records read attributes."""
    for path in (ROOT / "tco").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Member"):
                continue
            read = [keyword.value for keyword in node.keywords if keyword.arg == "read"]
            for argument in (*node.args[2:3], *read):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def test_attributes_that_are_read_by_a_text_exist():
    texts = list(attributes_read_by_text())
    defined_attributes = attribute_names()
    assert len(texts) > 50
    unknown = {
        name for text in texts for name in text.split(".") if name and not name.isdigit()
    } - defined_attributes
    assert unknown == set()


def test_no_package_has_the_name_of_a_public_function():
    import tco

    packages = {path.name for path in (ROOT / "tco").iterdir() if path.is_dir()}
    assert packages & set(tco.__all__) == set()
