"""An answer that keeps a person's own values back: made several times with others in their place,
and only what stands alike in all is shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tco.core.redaction_values import WITHHELD

SENTENCE = "What was said here rests on your own values, and is withheld."
NOTE = "what rests on your own values is withheld"
# what tells the entries of a list apart
NAMES = (
    "id",
    "path",
    "scenario",
    "metric",
    "part",
    "name",
    "ref",
    "month",
)
# a word that is a number, with what stands around it
FIGURE = re.compile(rf"([(~<>+\-$]*)(?:\d[^\s]*?|{WITHHELD})([),.;:%]*)")


def redact_differences(one: Any, other: Any) -> Any:
    """Return a document without its differences from another making.

    A number that differs becomes null, a text a word. The same holds in all nested parts.

    Args:
        one: Document, or any part of a document.
        other: The same part of the other making, with other values in place of the user's own.

    """
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: redact_differences(value, other.get(key)) for key, value in one.items()}
    if hasattr(one, "_fields"):
        return one._replace(
            **{
                name: MEMBERS[name](getattr(one, name), getattr(other, name, ()))
                for name in one._fields
                if name in MEMBERS
            }
        )
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return [
            redact_differences(*pair) for pair in _paired(list(one), list(other), _entry_identity)
        ]
    if type(one) is type(other) and one == other:
        return one
    return alike_text(one, other) if isinstance(one, str) else blank(one)


def blank(value: Any) -> Any:
    """Return the shape of a withheld value that has no counterpart.

    A dictionary keeps its keys and a list becomes empty. A text becomes `WITHHELD`, any other
    value None.
    """
    if isinstance(value, dict):
        return {key: blank(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return []
    return WITHHELD if isinstance(value, str) else None


def alike_text(one: str, other: Any) -> str:
    """Return a text without the numbers that differ between two makings.

    A text that differs in more than numbers is withheld as a whole, as the rest would not read. A
    single word is withheld too.

    Args:
        one: Text of a document.
        other: Counterpart in the other making; any other type than text withholds the whole text.

    """
    words, others = one.split(" "), other.split(" ") if isinstance(other, str) else []
    if len(words) != len(others) or len(words) < 2:
        return WITHHELD
    found = []
    for word, its in zip(words, others, strict=True):
        figure = FIGURE.fullmatch(word)
        if word != its and not (figure and FIGURE.fullmatch(its)):
            return WITHHELD
        found.append(word if word == its or not figure else WITHHELD + figure[2].replace("%", ""))
    return " ".join(found)


def _lines_alike(one: Sequence[str], other: Sequence[str]) -> list[str]:
    lines = redact_differences(list(one), list(other))
    return list(dict.fromkeys(SENTENCE if line == WITHHELD else line for line in lines))


def _entry_identity(entry: Any) -> Any:
    if isinstance(entry, dict):
        return tuple((key, entry[key]) for key in NAMES if isinstance(entry.get(key), (str, int)))
    if hasattr(entry, "_fields"):
        return getattr(entry, "id", ())
    return entry if isinstance(entry, str) else ()


def _paired(one: list[Any], other: list[Any], name: Any) -> list[tuple[Any, Any]]:
    """Return each entry with its like of the other making: by name, and by order among those of one
    name.
    """
    if len(one) == len(other) and all(isinstance(entry, str) for entry in (*one, *other)):
        return list(zip(one, other, strict=True))
    likes = dict(zip(_numbered(map(name, other)), other, strict=True))
    return [
        (entry, likes.get(key)) for key, entry in zip(_numbered(map(name, one)), one, strict=True)
    ]


def _numbered(names: Iterable[Any]) -> list[tuple[str, int]]:
    """Return names made distinct: each with how many of its like came before."""
    met: Counter[str] = Counter()
    found = []
    for name in map(str, names):
        found.append((name, met[name]))
        met[name] += 1
    return found


def alike_rows(one: Sequence[Sequence[Any]], other: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return the rows of a table or a CSV without the cells that differ; the first cell names a
    row.
    """
    pairs = _paired(list(one), list(other), lambda row: row[0] if row else "")
    return [
        [
            redact_differences(cell, its)
            for cell, its in zip(row, like or [None] * len(row), strict=False)
        ]
        for row, like in pairs
    ]


MEMBERS: dict[
    str, Callable[[Any, Any], Any]
] = {  # of a table, or a page: how it stands alike; figures and the what-if whole or not at all
    **dict.fromkeys(
        ("columns", "title", "tables", "folded", "sections"),
        lambda one, other: redact_differences(one, other or type(one)()),
    ),
    **dict.fromkeys(("above", "below", "words", "verdict", "premises"), _lines_alike),
    "rows": alike_rows,
    "figures": lambda one, other: [
        figure for figure, its in zip(one, other, strict=False) if figure == its
    ],
    "what_if": lambda one, other: one if one == other else None,
    "notes": lambda one, other: [
        note for note in redact_differences(list(one), list(other)) if note != WITHHELD
    ],
}
