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


def limit_of(given: Input) -> float | None:
    """Return the days a price may be old; None for what has no limit. A table without one of its own has that of its group."""
    group = given.path.partition(".")[0]
    table = Path(given.where.rpartition(":")[0]).stem
    return limits().get((group, table), limits().get((group, ANY)))


def moves(given: Input) -> bool:
    """Say whether an input is a price of a stated date, such as move with it."""
    group, _, rest = given.path.partition(".")
    found = attributes().get((group, rest.rpartition(".")[2]))
    return bool(given.as_of and found and found.dated)
