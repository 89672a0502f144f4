"""An answer that withholds own values: only what is equal under several stand-ins is shown."""

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


def redact_differences(original: Any, counterpart: Any) -> Any:
    """Return a document without its differences from another making.

    A number that differs becomes null, a text a word. The same holds in all nested parts.

    Args:
        original: Document, or any part of a document.
        counterpart: The same part of the other making, with other values in place of the user's
            own.

    """
    if isinstance(original, dict) and isinstance(counterpart, dict):
        return {
            document_key: redact_differences(original_value, counterpart.get(document_key))
            for document_key, original_value in original.items()
        }
    if hasattr(original, "_fields"):
        return original._replace(
            **{
                field_name: MEMBERS[field_name](
                    getattr(original, field_name), getattr(counterpart, field_name, ())
                )
                for field_name in original._fields
                if field_name in MEMBERS
            }
        )
    if isinstance(original, (list, tuple)) and isinstance(counterpart, (list, tuple)):
        return [
            redact_differences(*pair)
            for pair in _paired(list(original), list(counterpart), _entry_identity)
        ]
    if type(original) is type(counterpart) and original == counterpart:
        return original
    return alike_text(original, counterpart) if isinstance(original, str) else blank(original)


def blank(withheld_value: Any) -> Any:
    """Return the shape of a withheld value that has no counterpart.

    A dictionary keeps its keys and a list becomes empty. A text becomes `WITHHELD`, any other
    value None.
    """
    if isinstance(withheld_value, dict):
        return {document_key: blank(inner) for document_key, inner in withheld_value.items()}
    if isinstance(withheld_value, (list, tuple)):
        return []
    return WITHHELD if isinstance(withheld_value, str) else None


def alike_text(original_text: str, counterpart: Any) -> str:
    """Return a text without the numbers that differ between two makings.

    A text that differs in more than numbers is withheld as a whole, as the rest would not read. A
    single word is withheld too.

    Args:
        original_text: Text of a document.
        counterpart: Counterpart in the other making; any other type than text withholds the whole
            text.

    """
    words = original_text.split(" ")
    counterpart_words = counterpart.split(" ") if isinstance(counterpart, str) else []
    if len(words) != len(counterpart_words) or len(words) < 2:
        return WITHHELD
    redacted_words = []
    for word, counterpart_word in zip(words, counterpart_words, strict=True):
        figure = FIGURE.fullmatch(word)
        if word != counterpart_word and not (figure and FIGURE.fullmatch(counterpart_word)):
            return WITHHELD
        redacted_words.append(
            word
            if word == counterpart_word or not figure
            else WITHHELD + figure[2].replace("%", "")
        )
    return " ".join(redacted_words)


def _lines_alike(original_lines: Sequence[str], counterpart_lines: Sequence[str]) -> list[str]:
    lines = redact_differences(list(original_lines), list(counterpart_lines))
    return list(dict.fromkeys(SENTENCE if line == WITHHELD else line for line in lines))


def _entry_identity(entry: Any) -> Any:
    if isinstance(entry, dict):
        return tuple(
            (identity_key, entry[identity_key])
            for identity_key in NAMES
            if isinstance(entry.get(identity_key), (str, int))
        )
    if hasattr(entry, "_fields"):
        return getattr(entry, "id", ())
    return entry if isinstance(entry, str) else ()


def _paired(
    originals: list[Any], counterparts: list[Any], identity_of: Any
) -> list[tuple[Any, Any]]:
    """Return each entry with its counterpart, by name and by order among equal names."""
    if len(originals) == len(counterparts) and all(
        isinstance(entry, str) for entry in (*originals, *counterparts)
    ):
        return list(zip(originals, counterparts, strict=True))
    likes = dict(zip(_numbered(map(identity_of, counterparts)), counterparts, strict=True))
    return [
        (entry, likes.get(numbered_name))
        for numbered_name, entry in zip(
            _numbered(map(identity_of, originals)), originals, strict=True
        )
    ]


def _numbered(entry_names: Iterable[Any]) -> list[tuple[str, int]]:
    """Return names made distinct: each with how many of its like came before."""
    met: Counter[str] = Counter()
    numbered_names = []
    for entry_name in map(str, entry_names):
        numbered_names.append((entry_name, met[entry_name]))
        met[entry_name] += 1
    return numbered_names


def alike_rows(
    original_rows: Sequence[Sequence[Any]], counterpart_rows: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Return the rows of a table or CSV without the cells that differ; first cells name rows."""
    pairs = _paired(
        list(original_rows),
        list(counterpart_rows),
        lambda table_row: table_row[0] if table_row else "",
    )
    return [
        [
            redact_differences(cell, counterpart_cell)
            for cell, counterpart_cell in zip(
                original_row, like or [None] * len(original_row), strict=False
            )
        ]
        for original_row, like in pairs
    ]


MEMBERS: dict[
    str, Callable[[Any, Any], Any]
] = {  # of a table, or a page: how it stands alike; figures and the what-if whole or not at all
    **dict.fromkeys(
        ("columns", "title", "tables", "folded", "sections"),
        lambda original, counterpart: redact_differences(original, counterpart or type(original)()),
    ),
    **dict.fromkeys(("above", "below", "words", "verdict", "premises"), _lines_alike),
    "rows": alike_rows,
    "figures": lambda originals, counterparts: [
        figure
        for figure, counterpart_figure in zip(originals, counterparts, strict=False)
        if figure == counterpart_figure
    ],
    "what_if": lambda original, counterpart: original if original == counterpart else None,
    "notes": lambda originals, counterparts: [
        note for note in redact_differences(list(originals), list(counterparts)) if note != WITHHELD
    ],
}
