"""Which prices of a bill no published figure of somebody else checks.

`data/guards.csv` says of each price in force at the headline's date how many published figures
fail where it alone costs half as much again, or a third less; `python -m tco.evidence.guarding`
writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from tco.core.files import data_directory, read_csv
from tco.core.provenance import Input

GUARDS = "guards.csv"
COLUMNS = ("path", "as_of", "dearer", "cheaper", "figures")
LEAST_SHARE = 0.03  # of a bill from which a part is named
NAMED_PARTS = 6  # parts that a note names, those of the largest sums


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
    """Say whether a part rests on prices in force that nothing checks."""
    counts = [
        _failing_figures().get((price_input.path, price_input.as_of))
        for price_input in part_price.prices
        if not price_input.overlay
    ]
    return bool(counts) and all(count == 0 for count in counts)


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
        if _is_unguarded(part_price):
            unchecked.add(part_price.part)
    parts = sorted(
        (part for part in unchecked if sums[part] > LEAST_SHARE * bill_usd),
        key=lambda part: (-sums[part], part),
    )
    if not parts:
        return []
    share = sum(sums[part] for part in parts) / bill_usd
    rest = f" and {len(parts) - NAMED_PARTS} more" if len(parts) > NAMED_PARTS else ""
    part_names = ", ".join(parts[:NAMED_PARTS]) + rest
    return [f"no independent published figure checks {share * 100:.0f} % of the bill: {part_names}"]
