"""The ledger of claims: reading its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import number
from tco.foundation.errors import DataError, located, unknown
from tco.foundation.files import read_csv
from tco.foundation.provenance import refuse_own
from tco.foundation.units import unit

VERDICTS = ("holds", "arithmetic", "not-shown", "off", "contradicts", "not-derivable")
HOLDS, ARITHMETIC, NOT_SHOWN, OFF, CONTRADICTS, NOT_DERIVABLE = VERDICTS
MAY = {"holding": (HOLDS, ARITHMETIC), "failing": (OFF, CONTRADICTS, NOT_SHOWN), "verdict": VERDICTS}  # what a row may expect
RELATIONS = ("equal", "at-most", "at-least")
COLUMNS = (
    *("id", "source", "claim", "claimed", "unit", "tolerance", "relation", "given", "formula", "formula_unit"),
    *("holding", "failing", "error", "against", "verdict", "note"),
)


class Premise(NamedTuple):
    """A quantity that a claim itself states."""

    text: str
    value: float  # in base units
    unit: str


class Claim(NamedTuple):
    """One published statement of a number."""

    id: str
    source: str
    claim: str
    claimed: float
    unit: str  # as published, remarks included
    tolerance: float  # relative: how exactly the source states it
    relation: str  # what the computed value must be to the claimed one: equal, at-most, at-least
    given: dict[str, Premise]  # what the claim itself says of its case
    formula: str  # what computes it anew; empty where nothing can
    formula_unit: str  # that the computed value is shown in
    holding: str  # the verdict where it holds: arithmetic where what it rests on was typed from it
    failing: str  # the verdict where it does not hold
    error: float  # relative: how far off the model may be in such a figure
    against: str  # the source it contradicts
    verdict: str  # the expected one
    note: str
    where: str  # file and line
    command: str = ""  # that shows it by itself: of a conclusion


def read_ledger(catalogue: Catalogue) -> dict[str, Claim]:
    """Return every claim by id; in an overlay's ledger a claim of the same id replaces ours."""
    found: dict[str, Claim] = {}
    for folder in catalogue.folders:
        path = folder / "claims" / "ledger.csv"
        if path.is_file():
            if catalogue.is_overlay(path):
                refuse_own(f"{path}: claims of your own")
            found |= {row["id"]: to_claim(row, f"{path}:{line}") for line, row in read_csv(path, COLUMNS, optional=("command",))}
    return found


def to_claim(row: Mapping[str, str], where: str) -> Claim:
    """Return a row as a claim; a broken one raises `DataError`."""
    for column, known in {"relation": RELATIONS, **MAY}.items():
        if row[column] not in known:
            raise unknown(column, row[column], known, where)
    claimed, tolerance, error = (number(row[column], column, where) for column in ("claimed", "tolerance", "error"))
    if claimed <= 0 or tolerance < 0 or error < 0:
        raise DataError(f"{where}: claimed {claimed:g}, tolerance {tolerance:g} and error {error:g}: expected a number above zero and two not below")
    numbers = {"claimed": claimed, "tolerance": tolerance, "error": error}
    factor_of(row["formula_unit"], where)
    return Claim(**{**row, **numbers, "given": premises(row["given"], where), "where": where})  # type: ignore[arg-type]


def premises(text: str, where: str) -> dict[str, Premise]:
    """Return premises such as 'buildings=7; port=400 Gb/s'."""
    found = {}
    for term in filter(None, (term.strip() for term in text.split(";"))):
        name, sign, quantity = (part.strip() for part in term.partition("="))
        amount, _, unit_text = (part.strip() for part in quantity.partition(" "))
        if not sign:
            raise DataError(f"{where}: given {term!r}: expected NAME=QUANTITY")
        found[name] = Premise(quantity, number(amount, f"given {name}", where) * factor_of(unit_text, where), unit_text)
    return found


def factor_of(unit_text: str, where: str) -> float:
    """Return the factor of a unit to base units."""
    with located(where):
        return unit(unit_text).factor
