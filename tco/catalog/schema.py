"""Pydantic schemas of every file kind: used by `check`, by the tests and for a person's own files."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from tco.catalog.catalogue import Catalogue, values_of
from tco.catalog.rows import ALTERNATIVE, Row, attribute, to_input
from tco.catalog.systems import load_system
from tco.foundation.dates import period
from tco.foundation.errors import DataError, TcoError
from tco.foundation.provenance import DIRECTNESS, KINDS


class RowSchema(BaseModel):
    """One row of a CSV table, or one value table of a TOML document."""

    model_config = ConfigDict(extra="forbid")

    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    as_of: str = ""
    kind: Literal["measured", "vendor", "filing", "analyst", "press", "derived", "estimate", "assumed"]
    source: str = Field(min_length=1)
    note: str = ""
    use: Literal["", "alternative"] = ""
    directness: Literal["", "first-hand", "quoted", "second-hand", "analogy", "recalled", "estimate"] = ""

    @field_validator("low", "high", mode="before")
    @classmethod
    def blank_is_none(cls, cell: Any) -> Any:
        """An empty cell states nothing."""
        return None if cell == "" else cell

    @field_validator("as_of")
    @classmethod
    def is_date(cls, cell: str) -> str:
        """A date is one of the calendar."""
        try:
            if cell:
                period(cell)
        except DataError as error:
            raise ValueError(str(error)) from None
        return cell

    @model_validator(mode="after")
    def ordered(self) -> RowSchema:
        """An estimate has a range, and every range holds its value."""
        if self.kind in ("estimate", "assumed") and (self.low is None or self.high is None):
            raise ValueError(f"an {self.kind} value needs low and high")
        if (self.low is not None and self.low > self.value) or (self.high is not None and self.high < self.value):
            raise ValueError(f"low {self.low} <= value {self.value} <= high {self.high} does not hold")
        return self


class BranchSchema(BaseModel):
    """What an option of a variant changes."""

    model_config = ConfigDict(extra="forbid")

    assemblies: dict[str, dict[str, float]] = {}
    alternatives: dict[str, dict[str, float]] = {}
    fabric: dict[str, Any] = {}
    network: dict[str, Any] = {}
    set: dict[str, str] = {}
    racks: float | None = Field(default=None, gt=0)


class VariantSchema(BaseModel):
    """The options of a variant, by name, and which of them stands if none is asked for."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, BranchSchema]

    default: str


class SystemSchema(BaseModel):
    """A system's file."""

    model_config = ConfigDict(extra="forbid")

    name: str
    chip: str
    owner_pays: Literal["built-up", "selling-price"]
    builder: str = ""
    cooling: Literal["air", "liquid"]
    source: str
    note: str = ""
    racks: float = Field(gt=0)
    rebates: list[str] = []
    assemblies: dict[str, dict[str, float]]
    alternatives: dict[str, dict[str, float]] = {}
    spares: dict[str, float] = {}
    variants: dict[str, VariantSchema] = {}
    owners: dict[str, dict[str, str]] = {}
    fabric: dict[str, Any]
    network: dict[str, Any] = {}


class TokenFormatSchema(BaseModel):
    """A format of tokens on the wire: bytes of an element and of a scale, and elements of a block."""

    model_config = ConfigDict(extra="forbid")

    element: float = Field(gt=0)
    scale: float = Field(ge=0)
    block: float = Field(gt=0)


class LibrarySchema(BaseModel):
    """A library of collectives: what it offers, to all groups or inside a domain alone."""

    model_config = ConfigDict(extra="forbid")

    name: str = ""
    source: str = ""
    note: str = ""
    extends: str = ""
    every: bool = False
    caller: str = ""
    called: list[str] = []
    exchange: str = ""
    offers: dict[str, list[str]] = {}
    inside_domain: dict[str, list[str]] = {}
    formats: dict[str, TokenFormatSchema] = {}


class FigureSchema(BaseModel):
    """A figure of a publication in a scenario's file; one that must come out states a value, within a tenth at most."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["arithmetic", "own-source", "independent", "power", "ratio"]
    metric: str
    value: float | None = None
    unit: str = ""
    tolerance: float | None = Field(default=None, gt=0)
    low: float | None = None
    high: float | None = None
    source: str = Field(min_length=1)
    note: str = ""
    reason: str = ""
    system: str = ""
    variant: dict[str, str] = {}
    set: dict[str, str] = {}
    lines: list[str] = []
    parts: list[str] = []
    over: str = ""

    @model_validator(mode="after")
    def strict(self) -> FigureSchema:
        """What must come out does so within a tenth, and needs no reason for missing."""
        if self.kind != "independent" and (self.value is None or self.tolerance is None or self.tolerance > 0.10 or self.reason):
            raise ValueError(f"a figure of kind {self.kind} takes a value and a tolerance of at most 0.10, and no reason")
        return self


class ScenarioSchema(BaseModel):
    """A scenario's file."""

    model_config = ConfigDict(extra="forbid")

    title: str = ""
    note: str = ""
    system: str
    site: str
    terms: str
    workload: str
    cluster: str
    rebates: list[str] | None = None
    variant: dict[str, str] = {}
    set: dict[str, str] = {}
    published: list[FigureSchema] = []


def problems(where: str, error: ValidationError) -> Iterator[str]:
    """Yield what pydantic found, a line each, with the key and what was expected."""
    for found in error.errors():
        key = ".".join(str(part) for part in found["loc"])
        yield f"{where}: {key + ': ' if key else ''}{found['msg']}, found {found['input']!r}"[:400]


def check_row(catalogue: Catalogue, row: Row, path: str, group: str, name: str) -> Iterator[str]:
    """Yield what is wrong with one row: its schema, its unit and bounds, a source nobody lists or of which nobody says how direct it is."""
    cells = {key: cell for key, cell in row.cells.items() if key not in ("part", "company", "agreement", "region", "attribute")}
    try:
        RowSchema.model_validate(cells)
        given = to_input(row, path, attribute(group, name, row.where))
        if not given.directness and not row.overlay and given.source not in catalogue.directness:
            yield f"{row.where}: of source {given.source!r} directness.csv does not say how direct it is"
    except ValidationError as error:
        yield from problems(row.where, error)
    except DataError as error:
        yield str(error)
    source = str(cells.get("source", ""))
    if source and source not in catalogue.sources:
        yield f"{row.where}: source {source!r} is not in sources.csv"


def check_parts(catalogue: Catalogue) -> list[str]:
    """Return everything wrong with the parts and the share prices."""
    found = [
        f"directness.csv: {source}: {said!r} is not one of {', '.join(DIRECTNESS)}"
        for source, said in catalogue.directness.items()
        if said not in DIRECTNESS
    ]
    for group, table in (
        ("parts", catalogue.part_rows),
        ("shares", catalogue.share_rows),
        ("rebates", catalogue.vesting_rows),
        ("site", catalogue.grid_rows),
    ):
        for (name, key), rows in table.items():
            path = f"{group}.{name}.{key}"
            for row in rows:
                found += check_row(catalogue, row, path, group, key)
            live = [row for row in rows if row.cells.get("use", "") != ALTERNATIVE]
            try:
                if not found:
                    catalogue.chosen(rows, attribute(group, key, live[0].where if live else rows[0].where), path, "2026-01")
            except DataError as error:
                found.append(str(error))
    return found


def check_documents(catalogue: Catalogue, folder_name: str, group: str) -> list[str]:
    """Return everything wrong with sites, terms, workloads, clusters, performance priors or rebates."""
    found: list[str] = []
    for name in catalogue.ids(folder_name):
        path, document = catalogue.document(folder_name, name, group)
        prefix = f"{group}.{name}" if group in ("rebates", "performance") else group
        try:
            values_of(document, prefix, path, False)
        except DataError as error:
            found.append(str(error))
        for key, cells in document.items():
            if isinstance(cells, dict) and "value" in cells:
                found += check_row(catalogue, Row(cells, f"{path}:{key}", False), f"{prefix}.{key}", group, key)
    return found


def expect_system(path: Path, document: dict[str, Any]) -> None:
    """Raise `DataError` with the first thing wrong with a system's file by itself; its alternatives and spares are judged where they are placed."""
    expect(SystemSchema, path, {key: value for key, value in document.items() if key not in ("alternatives", "spares")})


def expect_library(path: Path, document: dict[str, Any]) -> None:
    """Raise `DataError` with the first thing wrong with a library's file by itself."""
    expect(LibrarySchema, path, document)


def expect(schema: type[BaseModel], path: Path, document: dict[str, Any]) -> None:
    """Raise `DataError` with the first thing wrong with a file by its schema."""
    try:
        schema.model_validate(document)
    except ValidationError as error:
        raise DataError(next(problems(str(path), error))) from None


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
        for variant in [{}, *({key: option} for key, options in schema.variants.items() for option in options.__pydantic_extra__)]:
            try:
                load_system(catalogue, name, variant)
            except TcoError as error:
                found.append(str(error))
    return found


def check_scenario(path: Path, document: dict[str, Any], sources: Container[str] = ()) -> list[str]:
    """Return everything wrong with a scenario's file by itself."""
    try:
        schema = ScenarioSchema.model_validate(document)
    except ValidationError as error:
        return list(problems(str(path), error))
    return [f"{path}: source {figure.source!r} is not in sources.csv" for figure in schema.published if figure.source not in sources]


def check_sources(catalogue: Catalogue) -> list[str]:
    """Return the sources without title, or with a date nobody can read."""
    return [f"sources.csv: {source.id}: the title is missing" for source in catalogue.sources.values() if not source.title]


assert set(KINDS) == set(RowSchema.model_fields["kind"].annotation.__args__)  # type: ignore[union-attr] # one list of kinds
