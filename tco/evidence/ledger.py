"""The ledger of claims: its rows, read and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from tco.catalog import Catalogue
from tco.catalog.rows import parse_finite_number
from tco.catalog.statements import Statement, read_statement
from tco.core.errors import DataError, located, refuse_unknown
from tco.core.files import read_csv
from tco.core.provenance import refuse_own
from tco.core.units import unit
from tco.evidence.verdicts import ClaimKind, Verdict

# what a computed value must be to the claimed one, and the ends that it leaves open
RELATIONS = {"equal": {}, "at-most": {"low": -math.inf}, "at-least": {"high": math.inf}}


class Premise(NamedTuple):
    """A quantity that a claim itself states."""

    text: str
    value: float  # in base units
    unit: str


class Claim(NamedTuple):
    """One published statement of a number."""

    id: str
    source: str  # `own`: no article says it
    article: str  # its file
    words: str  # a few that a search finds in it
    claim: str
    claimed: Statement
    unit: str  # as published, remarks included
    tolerance: str  # share of the value: how exactly the source states it
    relation: str  # a key of RELATIONS
    premises: dict[str, Premise]  # what the claim itself says of its case
    formula: str  # what computes it anew; empty where nothing can
    formula_unit: str  # unit of the computed value
    kind: ClaimKind
    against: str  # the source it contradicts
    verdict: Verdict | Literal[""]  # the expected one; none of what draws judge
    note: str
    where: str  # file and line
    command: str = ""  # that shows it by itself: of a conclusion


COLUMNS = [
    "given" if field_name == "premises" else field_name
    for field_name in Claim._fields[: Claim._fields.index("where")]
]


def read_ledger(catalogue: Catalogue) -> dict[str, Claim]:
    """Return every claim by id; in an overlay's ledger a claim of the same id replaces ours."""
    claims: dict[str, Claim] = {}
    for path in catalogue.folder_files("claims/ledger.csv"):
        if catalogue.is_overlay(path):
            refuse_own(f"{path}: claims of your own")
        for line, claim_row in read_csv(path, COLUMNS, optional=("command",)):
            claims[claim_row["id"]] = _parse_claim(claim_row, f"{path}:{line}")
    return claims


def _parse_claim(claim_row: Mapping[str, str], where: str) -> Claim:
    """Return a row as a claim.

    Args:
        claim_row: Cells of the row by column.
        where: File and line of the row.

    Raises:
        DataError: A word is unknown, a number or a unit is broken, or only one of article and words
            is stated.

    """
    vocabulary = {
        "relation": RELATIONS,
        "kind": get_args(ClaimKind),
        "verdict": ("",) if claim_row["kind"] == "drawn" else get_args(Verdict),
    }
    for column, words in vocabulary.items():
        refuse_unknown(column, [claim_row[column]], words, where)
    statement = read_statement(claim_row, where, "claimed")
    if bool(claim_row["article"]) != bool(claim_row["words"]):
        raise DataError(
            f"{where}: article and words go together: the file that says it, and a few of its words"
        )
    _unit_factor(claim_row["formula_unit"], where)
    parsed = {
        "claimed": statement._replace(**RELATIONS[claim_row["relation"]]),
        "premises": _parse_premises(claim_row["given"], where),
    }
    texts = {column: cell for column, cell in claim_row.items() if column != "given"}
    return Claim(**{**texts, **parsed}, where=where)  # type: ignore[arg-type]


def _parse_premises(premises_text: str, where: str) -> dict[str, Premise]:
    """Return premises such as 'buildings=7; port=400 Gb/s'."""
    premises = {}
    for term in filter(None, map(str.strip, premises_text.split(";"))):
        premise_name, sign, quantity = map(str.strip, term.partition("="))
        amount, _, unit_text = map(str.strip, quantity.partition(" "))
        if not sign:
            raise DataError(f"{where}: given {term!r}: expected NAME=QUANTITY")
        number = parse_finite_number(amount, f"given {premise_name}", where)
        premises[premise_name] = Premise(
            quantity, number * _unit_factor(unit_text, where), unit_text
        )
    return premises


def _unit_factor(unit_text: str, where: str) -> float:
    with located(where):
        return unit(unit_text).factor
