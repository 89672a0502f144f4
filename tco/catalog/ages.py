"""How old a price may be before an answer says so: the limits of `data/price_ages.csv`, by kind of price."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tco.catalog.rows import attributes, number
from tco.foundation.files import data_directory, read_csv
from tco.foundation.provenance import Input

ANY = "*"


@cache
def limits() -> dict[tuple[str, str], float]:
    """Return the days a price may be older than the date it is used at, by group and table (the file its row stands in)."""
    path = data_directory() / "price_ages.csv"
    return {
        (row["group"], row["table"]): number(row["days"], "days", f"{path}:{line}")
        for line, row in read_csv(path, ("group", "table", "days", "note"))
    }


@cache
def limit_at(group: str, where: str) -> float | None:
    """Return the limit of a group's rows in the file a row stands in; a file without one of its own has that of the group."""
    table = Path(where.rpartition(":")[0]).stem
    return limits().get((group, table), limits().get((group, ANY)))


def limit_of(given: Input) -> float | None:
    """Return the days a price may be old; None for what has no limit."""
    return limit_at(given.path.partition(".")[0], given.where)


@cache
def is_dated(path: str) -> bool:
    """Say whether what a path names moves with the date."""
    group, _, rest = path.partition(".")
    found = attributes().get((group, rest.rpartition(".")[2]))
    return found is not None and found.dated


def moves(given: Input) -> bool:
    """Say whether an input is a price of a stated date, such as move with it."""
    return bool(given.as_of) and is_dated(given.path)
