"""A person's own rows: each is checked when its folder is laid over the shipped data, and each
counts or is named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tco.catalog.catalogue import TABLES, Catalogue
from tco.catalog.rows import CatalogueRow, read_row
from tco.core.errors import DataError, nearest
from tco.core.provenance import Input

NAMED = 3  # rows that a note names
LOOKED = 100  # rows that are held against the names of all parts, for the nearest


def own_rows(catalogue: Catalogue) -> list[tuple[str, CatalogueRow]]:
    """Return the path and the row of every value in the tables of a person's own folders."""
    found: list[tuple[str, CatalogueRow]] = catalogue.once(
        "own rows",
        lambda: [
            (f"{group}.{name}.{key}", row)
            for group in TABLES
            for (name, key), rows in catalogue.rows(group).items()
            for row in rows
            if row.overlay
        ],
    )
    return found


def check_own_rows(catalogue: Catalogue) -> None:
    """Refuse rows of the user's own tables that cannot be read.

    Args:
        catalogue: Holds the rows.

    Raises:
        DataError: A row cannot be read; the message tells the first fault and counts the rest.

    """
    faults = []
    for path, row in own_rows(catalogue):
        try:
            read_row(row, path)
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError(
            faults[0] + (f" (and {len(faults) - 1} more rows)" if len(faults) > 1 else "")
        )


def own_note(catalogue: Catalogue, inputs: Mapping[str, Input]) -> list[str]:
    """Return a note on the user's own values in a result.

    The note counts the values in force, and names values that are not used, with the nearest
    shipped part.

    Args:
        catalogue: Holds the rows.
        inputs: Inputs of the result by path.

    Returns:
        A list with the note; empty where the user has no own values.

    """
    rows = dict(own_rows(catalogue))
    if not rows:
        return []
    places = {one.where for one in inputs.values()}  # a row of a grid stands for any site on it
    in_force = {path for path, row in own_rows(catalogue) if path in inputs or row.where in places}
    shipped = {
        part
        for (part, _), found in catalogue.part_rows.items()
        if not all(row.overlay for row in found)
    }
    known = shipped | _in_own_trees(catalogue)
    unread = [(path, row) for path, row in rows.items() if path not in in_force]
    idle = [
        (path, row, hint(path, known) if place < LOOKED else "")
        for place, (path, row) in enumerate(unread)
    ]
    idle.sort(key=lambda one: not one[2])  # what looks like a slip comes first
    named = [f"{row.where} {path.partition('.')[2]}{slip}" for path, row, slip in idle[:NAMED]]
    more = [f"{len(idle) - NAMED} more"] if len(idle) > NAMED else []
    return [
        f"own values: {len(rows) - len(idle)} in force, {len(idle)} not "
        f"used{': ' if idle else ''}{', '.join([*named, *more])}"
    ]


def _in_own_trees(catalogue: Catalogue) -> set[str]:
    """Return the parts that trees of a person's own systems name: new ones, and no slips."""
    found: set[str] = set()
    for folder in catalogue.folders[1:]:
        for path in (folder / "systems").glob("*.toml"):
            assemblies = catalogue.toml(path).get("assemblies")
            for children in assemblies.values() if isinstance(assemblies, dict) else ():
                found.update(children if isinstance(children, dict) else ())
    return found


def hint(path: str, parts: Collection[str]) -> str:
    """Return the nearest known part where the row's part is none of them, most likely a slip."""
    group, part, *_ = path.split(".")
    found = nearest(part, parts) if group == "parts" and part not in parts else ""
    return found and f" ({found.removeprefix('; ')})"
