"""Checks of catalogue files, with a complete list of their faults.

They serve the `check` commands, the tests and the files of a user.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from pydantic import ValidationError

from tco.catalog.catalogue import Catalogue, values_of
from tco.catalog.halls import in_each_hall
from tco.catalog.rows import CatalogueRow, attribute, to_input
from tco.catalog.schema import ScenarioSchema, SystemSchema, problems
from tco.catalog.system_tree import load_system, single_variants
from tco.core.entry_kinds import ENTRY_KINDS
from tco.core.errors import DataError, TcoError
from tco.core.provenance import DIRECTNESS
from tco.core.types import JsonObject


def check_row(
    catalogue: Catalogue, row: CatalogueRow, path: str, group: str, name: str
) -> Iterator[str]:
    """Yield the faults of a catalogue row, as messages.

    Faults lie in its cells, unit and bounds, in an unlisted source, or in a source of unknown
    directness.
    """
    try:
        given = to_input(row, path, attribute(group, name, row.where))
        if not given.directness and not row.overlay and given.source not in catalogue.directness:
            yield (
                f"{row.where}: of source {given.source!r} directness.csv does not say how "
                "direct "
                "it is"
            )
    except DataError as error:
        yield str(error)
    source = str(row.cells.get("source", ""))
    if source and source not in catalogue.sources:
        yield f"{row.where}: source {source!r} is not in sources.csv"


def check_parts(catalogue: Catalogue) -> list[str]:
    """Return everything wrong with the parts and the share prices."""
    found = [
        f"directness.csv: {source}: {said!r} is not one of {', '.join(DIRECTNESS)}"
        for source, said in catalogue.directness.items()
        if said not in DIRECTNESS
    ]
    for group in ("parts", "shares", "rebates", "site"):
        for (name, key), rows in catalogue.rows(group).items():
            path = f"{group}.{name}.{key}"
            for row in rows:
                found += check_row(catalogue, row, path, group, key)
            try:
                if not found:
                    catalogue.chosen(rows, group, key, path, "2026-01")
            except DataError as error:
                found.append(str(error))
    return found


def check_documents(catalogue: Catalogue, folder_name: str) -> list[str]:
    """Return everything wrong with sites, terms, workloads, clusters, performance priors or
    rebates.
    """
    found: list[str] = []
    kind = ENTRY_KINDS.get(folder_name)
    group = kind.group if kind else folder_name
    for name in catalogue.ids(folder_name):
        path, document = catalogue.document(folder_name, name, group)
        prefix = f"{group}.{name}" if group in ("rebates", "performance") else group
        try:
            halls = list(in_each_hall(document, path))
        except DataError as error:
            found.append(str(error))
            continue
        for hall, stated in halls:
            table = f"halls.{hall}." if hall else ""
            try:
                values_of(stated, prefix, path, False, table=table)
            except DataError as error:
                found.append(str(error))
            for key, cells in stated.items():
                if isinstance(cells, dict) and "value" in cells:
                    found += check_row(
                        catalogue,
                        CatalogueRow(cells, f"{path}:{table}{key}", False),
                        f"{prefix}.{key}",
                        group,
                        key,
                    )
    return found


def check_systems(catalogue: Catalogue) -> list[str]:
    """Return everything wrong with the systems, each variant by itself."""
    found: list[str] = []
    for name in catalogue.ids("systems"):
        try:
            path, document = catalogue.document("systems", name, "system")
            schema = SystemSchema.model_validate(document)
        except ValidationError as error:
            found += problems(str(path), error)
            continue
        except DataError as error:
            found.append(str(error))
            continue
        if schema.source not in catalogue.sources:
            found.append(f"{path}: source {schema.source!r} is not in sources.csv")
        for variant in single_variants(document):
            try:
                load_system(catalogue, name, variant)
            except TcoError as error:
                found.append(str(error))
    return found


def check_scenario(path: Path, document: JsonObject, sources: Container[str] = ()) -> list[str]:
    """Return everything wrong with a scenario's file by itself."""
    try:
        schema = ScenarioSchema.model_validate(document)
    except ValidationError as error:
        return list(problems(str(path), error))
    return [
        f"{path}: source {figure.source!r} is not in sources.csv"
        for figure in schema.published
        if figure.source not in sources
    ]
