"""How old a price may be at the date it is used at: by its attribute, its table, or its group."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tco.catalog.rows import attributes, number
from tco.foundation.files import data_directory, read_csv
from tco.foundation.provenance import Input

ANY = "*"


@cache
def limits() -> dict[tuple[str, str], float]:
    """Return the days a price may be older than the date it is used at, by group, and table or attribute."""
    path = data_directory() / "price_ages.csv"
    return {(row["group"], row["of"]): number(row["days"], "days", f"{path}:{line}") for line, row in read_csv(path, ("group", "of", "days", "note"))}


ACCELERATORS = "accelerators"  # the folder of parts in which every chip has a file of its own


@cache
def table_of(where: str) -> str:
    """Return the table that a row stands in: its file, or what all files of chips are together."""
    path = Path(where.rpartition(":")[0])
    return ACCELERATORS if path.parent.name == ACCELERATORS else path.stem


def limit_of(given: Input) -> float | None:
    """Return the days a price may be old: what its attribute may, else its table, else its group; None for what has no limit."""
    group, name = given.path.partition(".")[0], given.path.rpartition(".")[2]
    return next((limits()[group, one] for one in (name, table_of(given.where), ANY) if (group, one) in limits()), None)


@cache
def is_dated(path: str) -> bool:
    """Say whether what a path names moves with the date."""
    group, _, rest = path.partition(".")
    found = attributes().get((group, rest.rpartition(".")[2]))
    return found is not None and found.dated


def moves(given: Input) -> bool:
    """Say whether an input is a price of a stated date, such as move with it."""
    return bool(given.as_of) and is_dated(given.path)
