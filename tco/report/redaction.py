"""Redaction of answers: only what is equal under several stand-ins of own values is shown.

An original answer and its counterpart come from two runs of one command, with different stand-ins
in place of the user's own values. A part that differs between them depends on own values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tco.core.redaction_values import WITHHELD

WITHHELD_LINE = "What was said here rests on your own values, and is withheld."
WITHHELD_NOTE = "what rests on your own values is withheld"
# keys whose values identify the entries of a list, so that an entry finds its counterpart
IDENTITY_KEYS = ("id", "path", "scenario", "metric", "part", "name", "ref", "month")
# a word that is a number, with the signs before and after it
NUMBER_WORD = re.compile(rf"([(~<>+\-$]*)(?:\d[^\s]*?|{WITHHELD})([),.;:%]*)")
# fields that never depend on own values, by record; each other field needs a redaction
PUBLIC_FIELDS: Mapping[str, frozenset[str]] = {
    "Table": frozenset({"align", "width"}),
    "Section": frozenset({"id", "paper"}),
    "ReportPage": frozenset({"provenance", "links"}),
    "Member": frozenset({"key", "shape", "read", "label", "show", "unit", "csv", "optional"}),
}


class EntryPair(NamedTuple):
    """Entry of an original, with its counterpart; None without one."""

    original: Any
    counterpart: Any


def redact_differences(original: Any, counterpart: Any) -> Any:
    """Return a document without its differences from a counterpart, in all nested parts.

    A number that differs becomes None. A text that differs loses its numbers, or becomes
    `WITHHELD`.

    Args:
        original: Document, or any part of a document.
        counterpart: The same part of the answer with other stand-ins.

    """
    if isinstance(original, dict) and isinstance(counterpart, dict):
        return {
            document_key: redact_differences(original_value, counterpart.get(document_key))
            for document_key, original_value in original.items()
        }
    if hasattr(original, "_fields"):
        return _redact_record(original, counterpart)
    if isinstance(original, (list, tuple)) and isinstance(counterpart, (list, tuple)):
        return [
            redact_differences(*pair) for pair in _paired(original, counterpart, _entry_identity)
        ]
    if type(original) is type(counterpart) and original == counterpart:
        return original
    return redact_text(original, counterpart) if isinstance(original, str) else blank(original)


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


def redact_text(original_text: str, counterpart: Any) -> str:
    """Return a text with `WITHHELD` in place of each number that differs.

    The whole text is withheld if it is a single word, or if it differs in more than numbers, since
    the rest would not read.

    Args:
        original_text: Text of an answer.
        counterpart: The same text of the answer with other stand-ins; a value of another type
            withholds the whole text.

    """
    words = original_text.split(" ")
    counterpart_words = counterpart.split(" ") if isinstance(counterpart, str) else []
    if len(words) != len(counterpart_words) or len(words) < 2:
        return WITHHELD
    redacted_words = []
    for word, counterpart_word in zip(words, counterpart_words, strict=True):
        if word == counterpart_word:
            redacted_words.append(word)
            continue
        number_match = NUMBER_WORD.fullmatch(word)
        if number_match is None or NUMBER_WORD.fullmatch(counterpart_word) is None:
            return WITHHELD
        redacted_words.append(WITHHELD + number_match[2].replace("%", ""))
    return " ".join(redacted_words)


def redact_rows(
    original_rows: Sequence[Sequence[Any]], counterpart_rows: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Return the rows of a table or CSV without the cells that differ.

    A row finds its counterpart by its first cell. A cell without a counterpart is withheld.
    """
    redacted_rows = []
    for row, counterpart_row in _paired(original_rows, counterpart_rows, _first_cell):
        # None stands for each cell that the counterpart lacks; cells that it has beyond are unused
        counterpart_cells = [*(counterpart_row or ()), *[None] * len(row)]
        redacted_rows.append(list(map(redact_differences, row, counterpart_cells)))
    return redacted_rows


def _redact_record(original: Any, counterpart: Any) -> Any:
    """Return a named tuple, such as a table or a page, without its differences.

    Raises:
        TypeError: A field is neither public nor has a redaction.

    """
    record_name = type(original).__name__
    redacted_fields = {}
    for field_name in original._fields:
        if field_name in PUBLIC_FIELDS.get(record_name, ()):
            continue
        if field_name not in FIELD_REDACTIONS:
            raise TypeError(
                f"{record_name}.{field_name}: expected a field in PUBLIC_FIELDS or "
                "FIELD_REDACTIONS; add it to one of them"
            )
        redacted_fields[field_name] = FIELD_REDACTIONS[field_name](
            getattr(original, field_name), getattr(counterpart, field_name, ())
        )
    return original._replace(**redacted_fields)


def _redact_part(original: Any, counterpart: Any) -> Any:
    return redact_differences(original, counterpart or type(original)())


def _redact_lines(original_lines: Sequence[str], counterpart_lines: Sequence[str]) -> list[str]:
    """Return lines of prose; one sentence stands for all lines that are withheld."""
    lines = redact_differences(list(original_lines), list(counterpart_lines))
    return list(dict.fromkeys(WITHHELD_LINE if line == WITHHELD else line for line in lines))


def _redact_notes(original_notes: Sequence[str], counterpart_notes: Sequence[str]) -> list[str]:
    notes = redact_differences(list(original_notes), list(counterpart_notes))
    return [note for note in notes if note != WITHHELD]


def _equal_figures(original_figures: Sequence[Any], counterparts: Sequence[Any]) -> list[Any]:
    # a mark of a figure tells its value by its place, so a figure is shown as a whole or not at all
    return [
        figure
        for figure, counterpart in zip(original_figures, counterparts, strict=False)
        if figure == counterpart
    ]


def _equal_or_none(original: Any, counterpart: Any) -> Any:
    return original if original == counterpart else None


def _equal_entries(original: Mapping[Any, Any], counterpart: Any) -> dict[Any, Any]:
    counterpart_entries = dict(counterpart)
    return {
        entry_key: entry
        for entry_key, entry in original.items()
        if counterpart_entries.get(entry_key) == entry
    }


# how a field of a record is redacted, given its value in the original and in the counterpart
FIELD_REDACTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "columns": _redact_part,
    "title": _redact_part,
    "tables": _redact_part,
    "folded": _redact_part,
    "sections": _redact_part,
    "above": _redact_lines,
    "below": _redact_lines,
    "words": _redact_lines,
    "verdict": _redact_lines,
    "premises": _redact_lines,
    "rows": redact_rows,
    "emphasis": _equal_entries,
    "figures": _equal_figures,
    "what_if": _equal_or_none,
    "notes": _redact_notes,
}


def _paired(
    originals: Sequence[Any],
    counterparts: Sequence[Any],
    identity_of: Callable[[Any], Any],
) -> list[EntryPair]:
    """Return each entry with its counterpart, by identity and by order among equal identities.

    Texts of two lists of equal length are paired by order.
    """
    if len(originals) == len(counterparts) and all(
        isinstance(entry, str) for entry in (*originals, *counterparts)
    ):
        return list(map(EntryPair, originals, counterparts))
    counterpart_identities = _numbered(map(identity_of, counterparts))
    counterpart_of = dict(zip(counterpart_identities, counterparts, strict=True))
    original_identities = _numbered(map(identity_of, originals))
    return [
        EntryPair(entry, counterpart_of.get(identity))
        for identity, entry in zip(original_identities, originals, strict=True)
    ]


def _entry_identity(entry: Any) -> Any:
    if isinstance(entry, dict):
        return tuple(
            (identity_key, entry[identity_key])
            for identity_key in IDENTITY_KEYS
            if isinstance(entry.get(identity_key), (str, int))
        )
    if hasattr(entry, "_fields"):
        return getattr(entry, "id", ())
    return entry if isinstance(entry, str) else ()


def _first_cell(table_row: Sequence[Any]) -> Any:
    return table_row[0] if table_row else ""


def _numbered(identities: Iterable[Any]) -> list[tuple[str, int]]:
    """Return identities made distinct by the number of equal ones before each."""
    counts: Counter[str] = Counter()
    numbered_identities = []
    for identity in map(str, identities):
        numbered_identities.append((identity, counts[identity]))
        counts[identity] += 1
    return numbered_identities
