"""The ledger of claims: reading its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import parse_finite_number
from tco.core.errors import DataError, located, unknown
from tco.core.files import read_csv
from tco.core.provenance import refuse_own
from tco.core.units import unit

VERDICTS = ("holds", "open", "arithmetic", "not-shown", "off", "contradicts", "not-derivable")
HOLDS, OPEN, ARITHMETIC, NOT_SHOWN, OFF, CONTRADICTS, NOT_DERIVABLE = VERDICTS
KINDS = ("computed", "arithmetic", "unstated", "drawn")
COMPUTED, _, UNSTATED, DRAWN = KINDS
RELATIONS = ("equal", "at-most", "at-least")
COLUMNS = (
    *(
        "id",
        "source",
        "article",
        "words",
        "claim",
        "claimed",
        "unit",
        "tolerance",
        "relation",
        "given",
        "formula",
        "formula_unit",
    ),
    *("kind", "against", "verdict", "note"),
)


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
    claimed: float
    unit: str  # as published, remarks included
    tolerance: float  # relative: how exactly the source states it
    relation: str  # what the computed value must be to the claimed one: equal, at-most, at-least
    given: dict[str, Premise]  # what the claim itself says of its case
    formula: str  # what computes it anew; empty where nothing can
    formula_unit: str  # that the computed value is shown in
    # arithmetic: what it rests on was typed from it; unstated: of a case that the source leaves
    # open; drawn: judged by draws
    kind: str
    against: str  # the source it contradicts
    verdict: str  # the expected one; none of what draws judge
    note: str
    where: str  # file and line
    command: str = ""  # that shows it by itself: of a conclusion

    def holds(self, computed: Any) -> Any:
        """Say whether a computed value, or each of some, bears the claim out within the exactness
        the source states it with.
        """
        excess, slack = computed - self.claimed, (self.tolerance + 1e-12) * abs(self.claimed)
        within = {
            "equal": (-slack, slack),
            "at-most": (-math.inf, slack),
            "at-least": (-slack, math.inf),
        }[self.relation]
        return (within[0] <= excess) & (excess <= within[1])


def read_ledger(catalogue: Catalogue) -> dict[str, Claim]:
    """Return every claim by id; in an overlay's ledger a claim of the same id replaces ours."""
    found: dict[str, Claim] = {}
    for folder in catalogue.folders:
        path = folder / "claims" / "ledger.csv"
        if path.is_file():
            if catalogue.is_overlay(path):
                refuse_own(f"{path}: claims of your own")
            found |= {
                row["id"]: to_claim(row, f"{path}:{line}")
                for line, row in read_csv(path, COLUMNS, optional=("command",))
            }
    return found


def to_claim(row: Mapping[str, str], where: str) -> Claim:
    """Return a row as a claim; a broken one raises `DataError`."""
    judged = ("",) if row["kind"] == DRAWN else VERDICTS
    for column, known in {"relation": RELATIONS, "kind": KINDS, "verdict": judged}.items():
        if row[column] not in known:
            raise unknown(column, row[column], known, where)
    claimed, tolerance = (
        parse_finite_number(row[column], column, where) for column in ("claimed", "tolerance")
    )
    if tolerance < 0:
        raise DataError(f"{where}: tolerance is {tolerance:g}, expected zero or more")
    if bool(row["article"]) != bool(row["words"]):
        raise DataError(
            f"{where}: article and words go together: the file that says it, and a few of its words"
        )
    factor_of(row["formula_unit"], where)
    numbers = {"claimed": claimed, "tolerance": tolerance}
    return Claim(**{**row, **numbers, "given": parse_premises(row["given"], where), "where": where})  # type: ignore[arg-type]


def parse_premises(text: str, where: str) -> dict[str, Premise]:
    """Return premises such as 'buildings=7; port=400 Gb/s'."""
    found = {}
    for term in filter(None, (term.strip() for term in text.split(";"))):
        name, sign, quantity = (part.strip() for part in term.partition("="))
        amount, _, unit_text = (part.strip() for part in quantity.partition(" "))
        if not sign:
            raise DataError(f"{where}: given {term!r}: expected NAME=QUANTITY")
        found[name] = Premise(
            quantity,
            parse_finite_number(amount, f"given {name}", where) * factor_of(unit_text, where),
            unit_text,
        )
    return found


def factor_of(unit_text: str, where: str) -> float:
    """Return the factor of a unit to base units."""
    with located(where):
        return unit(unit_text).factor
