"""The list of parts: what each is, its latest price, and what is known of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tco.catalog import Catalogue
from tco.foundation.files import read_csv

EVER = "2099"  # the date after all rows: each price is the latest
PRICED = ("price", "own_price")  # a whole part, or what an assembly adds to parts that are priced for themselves


def part_items(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return every part; one that is built up from silicon, or comes inside another, has no price of its own."""
    names = names_of(catalogue)
    shelves, own = dict[str, str](), set[str]()
    for (part, _), rows in catalogue.part_rows.items():
        shelves.setdefault(part, Path(rows[0].where.rpartition(":")[0]).stem)
        if any(row.overlay for row in rows):
            own.add(part)
    return [
        {"id": part, "name": names.get(part, ""), "shelf": shelves[part], **price_of(catalogue, part), "attributes": len(known), "own": part in own}
        for part, known in sorted(catalogue.parts.items())
    ]


def price_of(catalogue: Catalogue, part: str) -> dict[str, Any]:
    """Return the latest price of a part, and what it rests on."""
    priced_as = next((name for name in PRICED if catalogue.has_part_value(part, name)), "")
    if not priced_as:
        return {"price_usd": None, "priced_as": "", "as_of": "", "kind": "", "source": ""}
    found = catalogue.part_input(part, priced_as, EVER)
    return {"price_usd": found.value, "priced_as": priced_as, "as_of": found.as_of, "kind": found.kind, "source": found.source}


def names_of(catalogue: Catalogue) -> dict[str, str]:
    """Return what accelerators are called: the first name of each."""
    found: dict[str, str] = {}
    for folder in catalogue.folders:
        path = folder / "accelerators.csv"
        if path.is_file():
            for _, row in read_csv(path, ("name", "part")):
                found.setdefault(row["part"], row["name"])
    return found
