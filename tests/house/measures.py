"""Measures of a file's style: empty names, long lines and functions, docstrings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEASURES = ("empty_names", "long_lines", "long_functions", "clause_docstrings", "wrapped_summaries")
EMPTY_NAMES = frozenset(
    [
        "one",
        "ones",
        "each",
        "every",
        "found",
        "made",
        "said",
        "told",
        "kept",
        "held",
        "given",
        "asked",
        "known",
        "shown",
        "seen",
        "wanted",
        "moved",
        "thrown",
        "own",
        "other",
        "others",
        "its",
        "mine",
        "some",
        "many",
        "few",
        "whole",
        "way",
        "ways",
        "place",
        "places",
        "at",
        "apart",
        "alone",
        "beside",
        "within",
    ]
)
CLAUSE = re.compile(
    r"(Return|Yield|Say|Give|What|How)\s+(what|how|who|why|where|whatever)\b|^What |^The same|^How "
)
LONGEST_LINE = 100  # characters
LONGEST_FUNCTION = 60  # lines, without the docstring


def measured_files() -> list[Path]:
    """Return the Python files of the program and of its tests."""
    return sorted(path for room in ("tco", "tests") for path in (ROOT / room).rglob("*.py"))


def bound_names(tree: ast.AST) -> list[str]:
    """Return the names that a file gives to locals and parameters, one for each binding."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.FunctionDef | ast.Lambda):
            arguments = node.args
            names += [
                argument.arg
                for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs
            ]
    return names


def code_lines(function: ast.FunctionDef) -> int:
    """Return the lines of a function without its docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno
    first = function.body[0]
    if ast.get_docstring(function) is None:
        return lines
    return lines - ((first.end_lineno or first.lineno) - first.lineno + 1)


def measure(source: str) -> Counter[str]:
    """Return the number of times a source breaks each rule of style, by the name of the measure."""
    tree, counts = ast.parse(source), Counter(dict.fromkeys(MEASURES, 0))
    counts["empty_names"] = sum(name in EMPTY_NAMES for name in bound_names(tree))
    counts["long_lines"] = sum(len(line) > LONGEST_LINE for line in source.splitlines())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            counts["long_functions"] += code_lines(node) > LONGEST_FUNCTION
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        if text := ast.get_docstring(node):
            counts["clause_docstrings"] += bool(CLAUSE.match(text))
            counts["wrapped_summaries"] += "\n" in text.split("\n\n")[0]
    return counts


@cache
def counts_by_file() -> dict[str, Counter[str]]:
    """Return the counts of every file that breaks a rule."""
    counts = {
        str(path.relative_to(ROOT)): measure(path.read_text(encoding="utf-8"))
        for path in measured_files()
    }
    return {file: count for file, count in counts.items() if any(count.values())}
