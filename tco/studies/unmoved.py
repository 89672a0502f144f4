"""Settings that move nothing: no input is set in silence. Each that leaves every metric as it is gets a note that says why.

An input may not be read at all, or be read to check or to choose and the choice stays, or enter a formula in which another side binds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isclose
from typing import Any

from tco.chain.result import Result
from tco.chain.texts import DOCUMENTS, TEXTS
from tco.foundation.errors import DataError
from tco.foundation.trace import walk

Ask = Callable[..., Result]  # takes settings, and the structure to hold if any
BY_MONTH = "money."  # inputs of the money by month, and of what a hall earns


def unmoved(result: Result, paths: Iterable[str], settings: Mapping[str, Any], ask: Ask) -> list[str]:
    """Return a note on each of some settings that the answer reads, and without which all metrics are what they are with it."""
    reasons = {path: why_unmoved(path, result, settings, ask) for path in paths if path not in DOCUMENTS}
    return [f"{path} is set, but moves no metric here: {why}" for path, why in reasons.items() if why]


def why_unmoved(path: str, result: Result, settings: Mapping[str, Any], ask: Ask) -> str:
    """Return why a setting moves nothing; nothing where it moves something, is what it would be anyway, or is not read and said to be so."""
    if path in TEXTS and path not in result.texts:
        return "nothing in this answer reads it"
    if any(note.startswith(f"{path} is set") for note in result.notes):
        return ""
    others = {other: setting for other, setting in settings.items() if other != path}
    try:
        if path not in TEXTS and moves(result, ask(others, structure=result.structure)):
            return ""
        without = ask(others)
    except DataError:  # there is no answer without it
        return ""
    if moves(result, without) or is_the_same(path, result, without):
        return ""
    if path.startswith(BY_MONTH):
        return "the money by month and the margin of a site rest on it, no metric does"
    return "it is read to choose, and the choice stays" if path in TEXTS else where_it_ends(path, result, settings, others, ask)


def moves(one: Result, other: Result) -> bool:
    """Say whether two answers differ in a metric."""
    return any(not same(value, other.metrics[name]) for name, value in one.metrics.items())


def same(one: float | None, other: float | None) -> bool:
    """Say whether two values of a metric are one but for rounding."""
    return one == other if one is None or other is None else isclose(one, other, rel_tol=1e-12)


def is_the_same(path: str, one: Result, other: Result) -> bool:
    """Say whether an input is set to what it is without being set."""
    if path in TEXTS:
        return one.texts[path] == other.texts.get(path)
    return path in other.inputs and same(one.inputs[path].value, other.inputs[path].value)


def where_it_ends(path: str, result: Result, settings: Mapping[str, Any], others: Mapping[str, Any], ask: Ask) -> str:
    """Return at which cell of the trace the way of an input to the metrics ends, or that it is in none."""
    now, before = (
        {node.id: node for root in ask(some, structure=result.structure, trace=True).nodes.values() for node in walk(root)}
        for some in (settings, others)
    )
    moved = {name for name, node in now.items() if node.path == path or (name in before and not same(node.value, before[name].value))}
    ends = [node for name, node in now.items() if name not in moved and any(inner.id in moved for _, inner in node.inputs)]
    if not ends:
        return "it is read to check or to choose, and all that is chosen stays"
    more = f", as do {len(ends) - 1} more" if len(ends) > 1 else ""
    return f"it is read but does not bind: {ends[0].id} stays {ends[0].value:.4g} {ends[0].unit}".rstrip() + more
