"""Whose cost it is: what an owner pays for, whose agreements count, and the terms he has unless a scenario says otherwise.

A perspective is a document of `data/perspectives`. Its values are those of `terms`, below what the scenario's own terms state.
"""

from __future__ import annotations

from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.systems import System
from tco.foundation.dates import period
from tco.foundation.errors import DataError, UnavailableError, unknown

FOLDER = "perspectives"
BUILT_UP, SELLING_PRICE, RENT = BASES = ("built-up", "selling-price", "rent")  # what is paid for a system
WORDS = {BUILT_UP: "is built by {builder} for its own use", SELLING_PRICE: "is sold at its vendor's price"}


class Perspective(NamedTuple):
    """What a document of a perspective says beside its values."""

    id: str
    name: str
    owner: str  # who buys what is for sale; empty: nobody in particular
    pays: tuple[str, ...]
    note: str

    @property
    def rents(self) -> bool:
        """Say whether hours are paid for, and nothing is owned."""
        return self.pays == (RENT,)


def load_perspective(catalogue: Catalogue, name: str) -> Perspective:
    """Return the perspective of `data/perspectives/<name>.toml`; an unknown name, a missing key or an unknown basis raises `DataError`."""
    found: Perspective = catalogue.once(("perspective", name), lambda: read_perspective(catalogue, name))
    return found


def read_perspective(catalogue: Catalogue, name: str) -> Perspective:
    """Read the file of a perspective."""
    if name not in catalogue.once("perspectives", lambda: catalogue.ids(FOLDER)):
        raise unknown("perspective", name, catalogue.ids(FOLDER), "terms.perspective")
    path, document = catalogue.document(FOLDER, name, "perspective")
    for key in ("name", "as_of", "owner", "pays"):
        if key not in document:
            raise DataError(f"{path}: the key {key!r} is missing")
    period(str(document["as_of"]), f"{path}: as_of")
    for basis in document["pays"]:
        if basis not in BASES:
            raise unknown("basis of cost", str(basis), BASES, f"{path}: pays")
    return Perspective(name, str(document["name"]), str(document["owner"]), tuple(document["pays"]), str(document.get("note", "")))


def owner_of(perspective: Perspective, system: System) -> str:
    """Return who owns a system: its builder where it is built for his own use, else the buyer of the perspective."""
    return perspective.owner if perspective.rents else system.builder or perspective.owner


def refuse_misfit(catalogue: Catalogue, perspective: Perspective, system: System, owner: str) -> None:
    """Raise `UnavailableError` where an owner cannot have a system: it is not for sale, or sold when only own ones count."""
    if perspective.rents or system.bare:
        return
    if system.owner_pays not in perspective.pays:
        fit = [name for name in catalogue.ids(FOLDER) if {system.owner_pays, RENT} & set(load_perspective(catalogue, name).pays)]
        how = WORDS[system.owner_pays].format(builder=system.builder or "its owner")
        raise UnavailableError(
            f"terms.perspective={perspective.id} pays {' or '.join(perspective.pays)}, {system.id} {how}; those that fit: {', '.join(fit)}"
        )
    if system.builder and owner != system.builder:
        raise UnavailableError(
            f"terms.owner={owner}: {system.id} {WORDS[BUILT_UP].format(builder=system.builder)}; others rent it (terms.perspective=renter)"
        )
