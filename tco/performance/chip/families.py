"""Families of chips: those of one family share the parameters of practice."""

from __future__ import annotations

from tco.catalog import Catalogue
from tco.foundation.errors import unknown


def families_of(catalogue: Catalogue) -> dict[str, str]:
    """Return the family of every chip; a folder of one's own names those of its chips."""

    def read() -> dict[str, str]:
        paths = [path for folder in catalogue.folders if (path := folder / "performance" / "families.toml").is_file()]
        return {part: str(family) for path in paths for part, family in catalogue.toml(path).items()}

    found: dict[str, str] = catalogue.once("families", read)
    return found


def chips_of(catalogue: Catalogue, family: str) -> frozenset[str]:
    """Return the chips of a family."""
    return frozenset(part for part, own in families_of(catalogue).items() if own == family)


def family_of(catalogue: Catalogue, chip: str) -> str:
    """Return the family whose practical parameters a chip shares."""
    families = families_of(catalogue)
    if chip not in families:
        raise unknown("chip", chip, families, "performance/families.toml")
    return families[chip]
