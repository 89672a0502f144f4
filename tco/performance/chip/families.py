"""Families of chips: chips of a family share the parameters of their software.

A chip that nobody has measured takes the parameters of its family.
"""

from __future__ import annotations

from tco.catalog import Catalogue
from tco.core.errors import refuse_unknown
from tco.core.memory import once_per_owner


@once_per_owner
def families_of(catalogue: Catalogue) -> dict[str, str]:
    """Return the family of every chip, by id.

    A user's own folder names the families of its chips.

    Args:
        catalogue: Holds the data folders with `performance/families.toml`.

    """
    return {
        part: str(family)
        for path in catalogue.folder_files("performance/families.toml")
        for part, family in catalogue.toml(path).items()
    }


def chips_of_family(catalogue: Catalogue, family: str) -> frozenset[str]:
    """Return the chips of a family.

    Args:
        catalogue: Holds the family of every chip.
        family: Name of the family.

    Returns:
        Ids of the chips; empty for an unknown family.

    """
    return frozenset(
        part for part, part_family in families_of(catalogue).items() if part_family == family
    )


def family_of(catalogue: Catalogue, chip: str) -> str:
    """Return the family whose practical parameters a chip shares.

    Args:
        catalogue: Holds the family of every chip.
        chip: Id of the chip.

    Raises:
        DataError: The chip has no family.

    """
    families = families_of(catalogue)
    refuse_unknown("chip", [chip], families, "performance/families.toml")
    return families[chip]
