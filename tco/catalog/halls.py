"""Halls of a site: a site has an owner, a tariff and a country, and a hall for each cooling.

A document of a site states values that all halls share, and a table `halls` with the values of each
hall by its cooling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tco.core.errors import DataError, refuse_unknown
from tco.core.types import JsonMapping, JsonObject

COOLING_KEY = "cooling"  # of a document that picks one hall of its site, or of its base, for all
COOLING_KINDS = ("air", "liquid")
HALLS_KEY = "halls"

SiteDocument = JsonMapping


class SiteSection(NamedTuple):
    """Values that a site's document states for one hall, or for all halls."""

    hall: str  # cooling of the hall; empty for all halls
    entries: JsonMapping  # by key


def halls_of(document: SiteDocument, where: str | Path) -> dict[str, JsonMapping]:
    """Return the values of the halls that a site's document states, by cooling.

    Args:
        document: Document of the site.
        where: Path of the document, for errors.

    Raises:
        DataError: `halls` is no table of tables, or a hall has the name of no known cooling.

    """
    halls = document.get(HALLS_KEY, {})
    if not isinstance(halls, dict) or not all(isinstance(hall, dict) for hall in halls.values()):
        raise DataError(f"{where}: halls: expected a table for each hall, such as [halls.air.pue]")
    refuse_unknown("hall", halls, COOLING_KINDS, f"{where}: halls")
    return halls


def hall_cooling(
    documents: Sequence[SiteDocument], rack_cooling: str, stated_cooling: str | None
) -> str | None:
    """Return the cooling of the hall in which a rack stands.

    Args:
        documents: Documents of the site, the one that the others are based on first.
        rack_cooling: Cooling that the rack is built for.
        stated_cooling: Cooling that a user sets for all racks, if any.

    Returns:
        The stated cooling, else the cooling that the last document picks for all racks, else that
        of the rack if the site has such a hall, else that of the site's first hall; None for a site
        without halls.

    """
    if stated_cooling:
        return stated_cooling
    for document in reversed(documents):
        if COOLING_KEY in document:
            return str(document[COOLING_KEY])
    halls = [cooling for document in documents for cooling in document.get(HALLS_KEY, {})]
    if not halls:
        return None
    return rack_cooling if rack_cooling in halls else halls[0]


def document_in_hall(document: SiteDocument, cooling: str | None) -> JsonObject:
    """Return the values of a site's document that hold in one of its halls, by key.

    Args:
        document: Document of the site.
        cooling: Cooling of the hall; None returns the values that all halls share.

    """
    halls: JsonMapping = document.get(HALLS_KEY, {})
    return {**_shared_entries(document), **halls.get(cooling or "", {})}


def site_sections(document: SiteDocument, where: str | Path) -> Iterator[SiteSection]:
    """Yield the values that all halls share, and then the values of each hall.

    Args:
        document: Document of the site.
        where: Path of the document, for errors.

    Raises:
        DataError: `halls` is malformed, or a hall has the name of no known cooling.

    """
    yield SiteSection("", _shared_entries(document))
    for hall, entries in halls_of(document, where).items():
        yield SiteSection(hall, entries)


def _shared_entries(document: SiteDocument) -> JsonObject:
    return {entry_key: entry for entry_key, entry in document.items() if entry_key != HALLS_KEY}
