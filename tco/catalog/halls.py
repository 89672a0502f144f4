"""The halls of a site: one owner, tariff and country, and a hall per way of cooling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tco.core.errors import DataError, refuse_unknown
from tco.core.types import JsonMapping, JsonObject

# the key by which a site, or a document on top of one, picks a hall for all racks
COOLING = "cooling"
COOLINGS = ("air", "liquid")

Document = JsonMapping


def halls_of(document: Document, where: str | Path) -> dict[str, Document]:
    """Return the halls that a site's document states, by their cooling.

    Raises:
        DataError: if `halls` is no table of tables, or a hall is named for no known cooling.

    """
    halls = document.get("halls", {})
    if not isinstance(halls, dict) or not all(isinstance(hall, dict) for hall in halls.values()):
        raise DataError(f"{where}: halls: expected a table for each hall, such as [halls.air.pue]")
    refuse_unknown("hall", halls, COOLINGS, f"{where}: halls")
    return halls


def hall_cooling(
    documents: Sequence[Document], rack_cooling: str, stated: str | None
) -> str | None:
    """Return the cooling of the hall in which a rack stands.

    Args:
        documents: the documents of the site, the one it is based on first.
        rack_cooling: the cooling that the rack is built for.
        stated: the cooling that a user sets for all racks, if any.

    Returns:
        What is stated, else what the last document picks for all racks, else the hall that the
        rack's cooling asks for, else the site's only hall; None of a site without halls.

    """
    picked = stated or next(
        (str(document[COOLING]) for document in reversed(documents) if COOLING in document), None
    )
    halls = [cooling for document in documents for cooling in document.get("halls", {})]
    if picked is not None or not halls:
        return picked
    return rack_cooling if rack_cooling in halls else halls[0]


def in_hall(document: Document, cooling: str | None) -> JsonObject:
    """Return a site's document as it reads inside one of its halls."""
    halls: dict[str, Document] = document.get("halls", {})
    in_common = {
        document_key: cells for document_key, cells in document.items() if document_key != "halls"
    }
    return in_common | dict(halls.get(cooling or "", {}))


def in_each_hall(document: Document, where: str | Path) -> Iterator[tuple[str, Document]]:
    """Yield each hall of a site with its own values.

    The first item has an empty name and the values that all halls have in common.

    Args:
        document: Document of the site.
        where: Path of the document, for errors.

    Raises:
        DataError: `halls` is malformed, or a hall has the name of no known cooling.

    """
    yield (
        "",
        {
            document_key: cells
            for document_key, cells in document.items()
            if document_key != "halls"
        },
    )
    yield from halls_of(document, where).items()
