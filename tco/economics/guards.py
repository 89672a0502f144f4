"""Which prices of a bill no published figure of somebody else checks.

`data/guards.csv` says of each price in force at the headline's date how many published figures
fail where it alone costs half as much again, or a third less; `python -m tco.studies.guarding`
writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tco.foundation.files import data_directory, read_csv
from tco.foundation.provenance import Input

GUARDS = "guards.csv"
COLUMNS = ("path", "as_of", "dearer", "cheaper", "figures")
LEAST_SHARE = 0.03  # of a bill from which a part is named
NAMED_PARTS = 6  # parts that a note names, those of the largest sums


class PartPrice(NamedTuple):
    """What a bill pays for one part, and the dated prices that this rests on."""

    part: str
    usd: float
    prices: tuple[Input, ...]


@cache
def guarded_rows() -> frozenset[tuple[str, str]]:
    """Return path and date of each price that a published figure checks."""
    rows = read_csv(data_directory() / GUARDS, COLUMNS)
    return frozenset((row["path"], row["as_of"]) for _, row in rows if int(row["dearer"]) + int(row["cheaper"]))


def is_unguarded(part_price: PartPrice) -> bool:
    """Say whether a part rests on catalogue prices that nothing checks."""
    own = any(given.overlay or not given.as_of for given in part_price.prices)
    return not own and not any((given.path, given.as_of) in guarded_rows() for given in part_price.prices)


def unguarded_notes(part_prices: Iterable[PartPrice]) -> list[str]:
    """Return a note on the parts of a bill that no published figure checks.

    Args:
        part_prices: Lines of a bill; those of one part are added up.

    Returns:
        One note, or none where each part above `LEAST_SHARE` of the bill is checked.
    """
    sums: dict[str, float] = {}
    unchecked: set[str] = set()
    bill_usd = 0.0
    for part_price in part_prices:
        bill_usd += part_price.usd
        sums[part_price.part] = sums.get(part_price.part, 0.0) + part_price.usd
        if part_price.prices and is_unguarded(part_price):
            unchecked.add(part_price.part)
    parts = sorted((part for part in unchecked if sums[part] > LEAST_SHARE * bill_usd), key=lambda part: -sums[part])
    if not parts:
        return []
    share = sum(sums[part] for part in parts) / bill_usd
    rest = f" and {len(parts) - NAMED_PARTS} more" if len(parts) > NAMED_PARTS else ""
    return [
        f"unguarded: {share:.0%} of the bill is priced by rows that no published figure of another checks: "
        f"{', '.join(parts[:NAMED_PARTS])}{rest}"
    ]
