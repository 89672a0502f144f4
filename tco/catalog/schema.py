"""Pydantic schemas of every kind of file, and the error for the first fault of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tco.core.errors import DataError, unknown
from tco.core.types import JsonObject


class Strict(BaseModel):
    """Table that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid")


class BranchSchema(Strict):
    """Changes that an option of a variant makes to a system."""

    assemblies: dict[str, dict[str, float]] = {}
    alternatives: dict[str, dict[str, float]] = {}
    fabric: JsonObject = {}
    network: JsonObject = {}
    set: dict[str, str] = {}
    spares: dict[str, float] = {}
    racks: float | None = Field(default=None, gt=0)


class VariantSchema(BaseModel):
    """Options of a variant, by name, with the name of the default option."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, BranchSchema]

    default: str


class SystemSchema(Strict):
    """A system's file."""

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
    fabric: JsonObject
    network: JsonObject = {}

    @model_validator(mode="after")
    def built(self) -> SystemSchema:
        """Refuse a `builder` for a system that is sold."""
        if self.builder and self.owner_pays != "built-up":
            raise ValueError(
                "builder names who builds a system for his own use, but owner_pays is "
                f"{self.owner_pays!r}, not 'built-up'"
            )
        return self


class TokenFormatSchema(Strict):
    """A wire format of tokens: bytes per element and per scale, and elements per block."""

    element: float = Field(gt=0)
    scale: float = Field(ge=0)
    block: float = Field(gt=0)


class LibrarySchema(Strict):
    """Library of collectives: algorithms for all groups (`offers`) or for one domain only."""

    name: str = ""
    source: str = ""
    note: str = ""
    extends: str = ""
    offers_all: bool = Field(default=False, alias="every")
    caller: str = ""
    called: list[str] = []
    exchange: str = ""
    offers: dict[str, list[str]] = {}
    inside_domain: dict[str, list[str]] = {}
    formats: dict[str, TokenFormatSchema] = {}


class FigureSchema(Strict):
    """A published figure in a scenario's file; a required one states a value within a tenth."""

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
    as_of: str = ""

    @model_validator(mode="after")
    def strict(self) -> FigureSchema:
        """Require a value and a tolerance up to 10 %, and no reason, except where independent."""
        if self.kind != "independent" and (
            self.value is None or self.tolerance is None or self.tolerance > 0.10 or self.reason
        ):
            raise ValueError(
                f"a figure of kind {self.kind} takes a value and a tolerance of at most 0.10, and "
                "no reason"
            )
        return self


class ScenarioSchema(Strict):
    """A scenario's file."""

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
    """Yield a line for each pydantic error: place, key, expectation and value."""
    for fault in error.errors():
        key_path = ".".join(str(part) for part in fault["loc"])
        fault_place = f"{where}: {key_path}: " if key_path else f"{where}: "
        yield f"{fault_place}{fault['msg']}, found {fault['input']!r}"[:400]


def expect_system(path: Path, document: JsonObject) -> None:
    """Raise `DataError` with the first fault of the file of a system.

    Alternatives and spares are not checked here, but when the tree is read.
    """
    expect(
        SystemSchema,
        path,
        {
            document_key: document_value
            for document_key, document_value in document.items()
            if document_key not in ("alternatives", "spares")
        },
    )


def expect(schema: type[BaseModel], path: Path, document: JsonObject) -> None:
    """Raise an error with the first fault of a file.

    Args:
        schema: Schema that the file must follow.
        path: File, named in the error.
        document: Content of the file.

    Raises:
        DataError: A key is unknown, a key is missing, or the value of a key is wrong.

    """
    try:
        schema.model_validate(document)
    except ValidationError as error:
        top_level_faults = {  # first faulty key, by type of the fault
            fault["type"]: str(fault["loc"][0])
            for fault in reversed(error.errors())
            if len(fault["loc"]) == 1
        }
        if faulty_key := top_level_faults.get("extra_forbidden"):
            raise unknown("key", faulty_key, schema.model_fields, str(path)) from None
        if faulty_key := top_level_faults.get("missing"):
            raise DataError(f"{path}: the key {faulty_key!r} is missing") from None
        raise DataError(next(problems(str(path), error))) from None
