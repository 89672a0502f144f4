"""Checks of catalogue files, which return a complete list of faults.

The `check` commands and the tests use them, for shipped files and for the user's files.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from pydantic import ValidationError

from tco.catalog.catalogue import Catalogue, values_of
from tco.catalog.halls import site_sections
from tco.catalog.rows import CatalogueRow, read_row
from tco.catalog.schema import ScenarioSchema, SystemSchema, problems
from tco.catalog.system_tree import load_system, single_variants
from tco.core.entry_kinds import ENTRY_KINDS
from tco.core.errors import DataError, TcoError
from tco.core.provenance import DIRECTNESS
from tco.core.types import JsonObject


def _check_row(catalogue: Catalogue, catalogue_row: CatalogueRow, path: str) -> Iterator[str]:
    """Yield the faults of a catalogue row, as messages.

    A fault is a wrong cell, unit or bound, an unlisted source, or a source of unknown directness.
    """
    try:
        row_input = read_row(catalogue_row, path)
        if (
            not row_input.directness
            and not catalogue_row.overlay
            and row_input.source not in catalogue.directness
        ):
            yield (
                f"{catalogue_row.where}: of source {row_input.source!r} directness.csv does not "
                "say how direct it is"
            )
    except DataError as error:
        yield str(error)
    source = str(catalogue_row.cells.get("source", ""))
    if source and source not in catalogue.sources:
        yield f"{catalogue_row.where}: source {source!r} is not in sources.csv"


def check_parts(catalogue: Catalogue) -> list[str]:
    """Return the faults of parts and share prices."""
    findings = [
        f"directness.csv: {source}: {directness!r} is not one of {', '.join(DIRECTNESS)}"
        for source, directness in catalogue.directness.items()
        if directness not in DIRECTNESS
    ]
    for group in ("parts", "shares", "rebates", "site"):
        for (owner, attribute_name), attribute_rows in catalogue.rows(group).items():
            path = f"{group}.{owner}.{attribute_name}"
            for catalogue_row in attribute_rows:
                findings += _check_row(catalogue, catalogue_row, path)
            try:
                if not findings:
                    catalogue.chosen(attribute_rows, path, "2026-01")
            except DataError as error:
                findings.append(str(error))
    return findings


def check_documents(catalogue: Catalogue, folder: str) -> list[str]:
    """Return the faults of the values of a folder's documents."""
    kind = ENTRY_KINDS.get(folder)
    group = kind.group if kind else folder
    findings: list[str] = []
    for document_name in catalogue.ids(folder):
        path, document = catalogue.document(folder, document_name, group)
        prefix = f"{group}.{document_name}" if group in ("rebates", "performance") else group
        try:
            sections = list(site_sections(document, path))
        except DataError as error:
            findings.append(str(error))
            continue
        for hall, entries in sections:
            table = f"halls.{hall}." if hall else ""
            try:
                values_of(entries, prefix, path, False, table=table)
            except DataError as error:
                findings.append(str(error))
            for attribute_name, entry in entries.items():
                if isinstance(entry, dict) and "value" in entry:
                    catalogue_row = CatalogueRow(entry, f"{path}:{table}{attribute_name}", False)
                    findings += _check_row(catalogue, catalogue_row, f"{prefix}.{attribute_name}")
    return list(dict.fromkeys(findings))  # both checks above report a faulty value


def check_systems(catalogue: Catalogue) -> list[str]:
    """Return the faults of all systems, with each option of their variants."""
    findings: list[str] = []
    for system_name in catalogue.ids("systems"):
        try:
            path, document = catalogue.document("systems", system_name, "system")
            schema = SystemSchema.model_validate(document)
        except ValidationError as error:
            findings += problems(str(path), error)
            continue
        except DataError as error:
            findings.append(str(error))
            continue
        if schema.source not in catalogue.sources:
            findings.append(f"{path}: source {schema.source!r} is not in sources.csv")
        for variant in single_variants(document):
            try:
                load_system(catalogue, system_name, variant)
            except TcoError as error:
                findings.append(str(error))
    return findings


def check_scenario(path: Path, document: JsonObject, sources: Container[str] = ()) -> list[str]:
    """Return the faults of the file of a scenario, without a check of the files that it names."""
    try:
        schema = ScenarioSchema.model_validate(document)
    except ValidationError as error:
        return list(problems(str(path), error))
    return [
        f"{path}: source {figure.source!r} is not in sources.csv"
        for figure in schema.published
        if figure.source not in sources
    ]
