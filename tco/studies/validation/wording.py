"""What words in the columns of measured rows mean: recomputation, sharding, precision, attention kernel, schedule, yes and no.

The words are data (`wording.csv`), patterns against a text in small letters whose hyphens and underscores are spaces. What a text
says nothing known of stays unstated; it is never taken as the usual choice.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.studies.validation.naming import rows_of

COLUMNS = ("subject", "pattern", "means")
SAID = {"yes": True, "no": False}
GROUP = re.compile(r"\b(?:fsdp2?|hsdp)[ _](\d+)\b")  # members of a group that shares the weights
OFFLOADED = re.compile(r"\boffload(ed|ing)?\b")
ASIDE = re.compile(r"\(.*?\)")


class Sharding(NamedTuple):
    """What a row says of the model's state: optimizer (1), gradients (2) and weights (3) spread over data-parallel groups, or nothing (0)."""

    level: int | None = None  # None: unstated
    hybrid: bool = False  # spread inside groups, copied between them
    group: int | None = None  # members of such a group, where printed
    offload: bool = False  # to the memory of the CPU


def level_text(text: str) -> str:
    """Return a text in small letters with single spaces for hyphens and underscores."""
    return re.sub(r"[\s_\-]+", " ", text.lower()).strip(" ,;.") or text.strip()


def words_of(catalogue: Catalogue, subject: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of a subject in order, each with what it means."""
    return [(row["pattern"], row["means"]) for row in rows_of(catalogue, "wording.csv", COLUMNS) if row["subject"] == subject]


def meaning(catalogue: Catalogue, subject: str, text: str) -> str:
    """Return what the first pattern that a text holds means; empty where it holds none."""
    level = level_text(text)
    return next((means for pattern, means in words_of(catalogue, subject) if pattern.search(level)), "")


def yes_or_no(catalogue: Catalogue, text: str) -> bool | None:
    """Return whether a text says yes or no; None where it says neither."""
    return SAID.get(meaning(catalogue, "answer", text))


def recomputation(catalogue: Catalogue, text: str) -> tuple[str, bool | None]:
    """Return what a text says of recomputed activations, and whether sequences are split in the same breath; empty and None are unstated.

    The first is one of `full`, `partial`, `selective` and `none`.
    """
    return meaning(catalogue, "recomputation", text), SAID.get(meaning(catalogue, "sequence parallel", text))


def sharding(catalogue: Catalogue, text: str) -> Sharding:
    """Return what a text says of how the model's state is spread."""
    level, _, hybrid = meaning(catalogue, "sharding", text).partition(" ")
    group = GROUP.search(text.lower())
    offload = OFFLOADED.search(level_text(text)) is not None
    return Sharding(int(level) if level else None, bool(hybrid), int(group[1]) if group else None, offload)


def precisions(catalogue: Catalogue, text: str) -> tuple[str, ...]:
    """Return the number formats a text names, in its order; what stands in brackets counts only where nothing else is said."""

    def read() -> tuple[str, ...]:
        level = level_text(ASIDE.sub(" ", text)) or level_text(text)
        found: list[tuple[int, str]] = []
        taken: set[int] = set()
        for pattern, means in words_of(catalogue, "precision"):
            for match in pattern.finditer(level):
                if not taken.intersection(range(*match.span())):
                    taken.update(range(*match.span()))
                    found.append((match.start(), means))
        return tuple(dict.fromkeys(means for _, means in sorted(found)))

    formats: tuple[str, ...] = catalogue.once(("precisions", text), read)
    return formats


def precision(catalogue: Catalogue, text: str) -> str:
    """Return the number format a text names first; empty where it names none."""
    return next(iter(precisions(catalogue, text)), "")
