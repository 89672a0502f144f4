"""Labels of inputs by path: names from `data/words/labels.csv`, or else the words of the path."""

from __future__ import annotations

import re
from functools import cache

from tco.core.files import data_directory, read_csv

PLAIN_NUMBERS = ("ratio", "count")  # units that labels leave out


@cache
def _patterns() -> list[tuple[str, str, str]]:
    """Return the beginning, the pattern and the name of each label in `data/words/labels.csv`.

    A `*` matches a part of a path, or a piece of a part. The beginning is the text before the first
    `*`, which rules out most patterns quickly.
    """
    patterns = []
    for _, label_row in read_csv(data_directory() / "words" / "labels.csv", ("pattern", "name")):
        path_pattern = label_row["pattern"]
        pattern = re.escape(path_pattern).replace(r"\*", r"([\w-]+)")
        patterns.append((path_pattern.partition("*")[0], pattern, label_row["name"]))
    return patterns


@cache
def short_name(path: str) -> str:
    """Return an input in words, from `data/words/labels.csv` or from its path.

    The words of an input without a label are its owner, if any, and its attribute.

    Args:
        path: Path of the input.

    """
    for beginning, pattern, label_name in _patterns():
        if path.startswith(beginning) and (match := re.fullmatch(pattern, path)):
            return label_name.format(*match.groups())
    _, *owner, label_name = path.split(".")
    return " ".join([*owner, label_name]).replace("_", " ")


def part_label(part: str) -> str:
    """Return the id of a part, with words where its id could mislead."""
    return short_name(f"parts.{part}")


def axis_label(path: str, unit: str) -> str:
    """Return an input in words, with its unit unless the words begin with the unit.

    Args:
        path: Path of the input.
        unit: Unit in words; empty for a label without a unit.

    """
    name = short_name(path)
    if unit in ("", *PLAIN_NUMBERS) or name.startswith(unit.replace("token", "tokens")):
        return name
    return f"{name}, {unit}"


def count_with_noun(number: int, noun: str) -> str:
    """Return `number` and `noun`, plural unless `number` is 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
