"""Labels of inputs by path: names of `data/words/labels.csv`, else the words of the path."""

from __future__ import annotations

import re
from functools import cache

from tco.core.files import data_directory, read_csv


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the names of `data/words/labels.csv` with the pattern of their paths.

    `*` stands for one part of a path, or for some of it.
    """
    rows = (
        row for _, row in read_csv(data_directory() / "words" / "labels.csv", ("pattern", "name"))
    )
    return [
        (re.compile(re.escape(row["pattern"]).replace(r"\*", r"([\w-]+)")), row["name"])
        for row in rows
    ]


@cache
def short_name(path: str) -> str:
    """Return an input in words, from `data/words/labels.csv` or from its path.

    A path without a label gives its owner, if any, and its name.

    Args:
        path: Path of the input.

    """
    for pattern, name in _patterns():
        if match := pattern.fullmatch(path):
            return name.format(*match.groups())
    _, *owner, name = path.split(".")
    return " ".join([*owner, name]).replace("_", " ")


def axis_label(path: str, unit: str) -> str:
    """Return an input in words with its unit.

    Args:
        path: Path of the input.
        unit: Unit in words; empty for a label without a unit.

    """
    return f"{short_name(path)}, {unit}" if unit else short_name(path)


def count_with_noun(number: int, noun: str) -> str:
    """Return `number` and `noun`, plural unless `number` is 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
