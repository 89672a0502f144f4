"""Meaning of the wording in columns of measured rows.

The columns state recomputation, sharding, precision, attention kernel, schedule, yes and no.

The words are data (`words/note_patterns.csv`): patterns against a text in small letters, with
spaces for hyphens and underscores. A text without a known pattern stays unstated. It is never taken
as the usual choice.
"""

from __future__ import annotations

import re

from tco.catalog import Catalogue
from tco.core.memory import once_per_owner
from tco.validation.naming import read_pattern_table

COLUMNS = ("subject", "pattern", "means")
ASIDE = re.compile(r"\(.*?\)")


def _level_text(text: str) -> str:
    return re.sub(r"[\s_\-]+", " ", text.lower()).strip(" ,;.") or text.strip()


def _wording_patterns(catalogue: Catalogue, subject: str) -> list[tuple[re.Pattern[str], str]]:
    return [
        (pattern_row["pattern"], pattern_row["means"])
        for pattern_row in read_pattern_table(catalogue, "words/note_patterns.csv", COLUMNS)
        if pattern_row["subject"] == subject
    ]


def interpret_note(catalogue: Catalogue, subject: str, note_text: str) -> str:
    """Return the meaning of the first pattern found in `note_text`.

    The meaning is empty where no pattern is found.
    """
    level = _level_text(note_text)
    return next(
        (
            means
            for pattern, means in _wording_patterns(catalogue, subject)
            if pattern.search(level)
        ),
        "",
    )


@once_per_owner
def precisions(catalogue: Catalogue, precision_text: str) -> tuple[str, ...]:
    """Return the number formats that a text names, in order; brackets count only without others."""
    level = _level_text(ASIDE.sub(" ", precision_text)) or _level_text(precision_text)
    format_matches: list[tuple[int, str]] = []
    taken: set[int] = set()
    for pattern, means in _wording_patterns(catalogue, "precision"):
        for match in pattern.finditer(level):
            if not taken.intersection(range(*match.span())):
                taken.update(range(*match.span()))
                format_matches.append((match.start(), means))
    return tuple(dict.fromkeys(means for _, means in sorted(format_matches)))
