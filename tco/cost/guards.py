"""Prices of a bill that no independent published figure checks.

`data/guards.csv` has a row for each price in force at the date of the headline comparison. The row
counts the published figures that fail if this price alone is 50 % higher or a third lower. `python
-m tco.evidence.guarding` writes the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tco.core.files import data_directory, read_csv
from tco.core.provenance import Input

GUARDS = "guards.csv"
COLUMNS = ("path", "as_of", "dearer", "cheaper", "figures")
LEAST_NAMED_SHARE = 0.03  # smallest share of a bill at which a note names a part
NAMED_PARTS = 6  # parts that a note names, those with the largest sums


class PartPrice(NamedTuple):
    """Amount of a part in a bill (USD), with its dated prices."""

    part: str
    usd: float
    prices: tuple[Input, ...]


@cache
def _failing_figures() -> dict[tuple[str, str], int]:
    guard_rows = read_csv(data_directory() / GUARDS, COLUMNS)
    return {
        (guard_row["path"], guard_row["as_of"]): int(guard_row["dearer"])
        + int(guard_row["cheaper"])
        for _, guard_row in guard_rows
    }


def _is_unguarded(part_price: PartPrice) -> bool:
    """Return whether no published figure checks any shipped price of a part."""
    failing_counts = [
        _failing_figures().get((price_input.path, price_input.as_of))
        for price_input in part_price.prices
        if not price_input.overlay
    ]
    return bool(failing_counts) and all(count == 0 for count in failing_counts)


def unguarded_notes(part_prices: Iterable[PartPrice]) -> list[str]:
    """Return a note on the parts of a bill that no published figure checks.

    Args:
        part_prices: Lines of a bill; lines of the same part are added up.

    Returns:
        A list of one note. The list is empty if a figure checks each part above
        `LEAST_NAMED_SHARE` of the bill.

    """
    sums: dict[str, float] = {}
    unchecked: set[str] = set()
    bill_usd = 0.0
    for part_price in part_prices:
        bill_usd += part_price.usd
        sums[part_price.part] = sums.get(part_price.part, 0.0) + part_price.usd
        if _is_unguarded(part_price):
            unchecked.add(part_price.part)
    parts = sorted(
        (part for part in unchecked if sums[part] > LEAST_NAMED_SHARE * bill_usd),
        key=lambda part: (-sums[part], part),
    )
    if not parts:
        return []
    share = sum(sums[part] for part in parts) / bill_usd
    rest = f" and {len(parts) - NAMED_PARTS} more" if len(parts) > NAMED_PARTS else ""
    part_names = ", ".join(parts[:NAMED_PARTS]) + rest
    return [f"no independent published figure checks {share * 100:.0f} % of the bill: {part_names}"]
