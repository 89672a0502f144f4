"""The ledger itself: reading it, computing each claim anew, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.rows import number
from tco.chain.inputs import plain_inputs
from tco.foundation.errors import DataError, unknown
from tco.foundation.files import read_csv
from tco.foundation.units import unit
from tco.foundation.values import as_number
from tco.studies.claims.context import COMPUTED, Claim, Context, Underived

VERDICTS = ("holds", "arithmetic", "not-shown", "off", "contradicts", "not-derivable")
HOLDS, ARITHMETIC, NOT_SHOWN, OFF, CONTRADICTS, NOT_DERIVABLE = VERDICTS
MAY = {"holding": (HOLDS, ARITHMETIC), "failing": (OFF, CONTRADICTS, NOT_SHOWN), "verdict": VERDICTS}  # what a row may expect
RELATIONS = ("equal", "at-most", "at-least")
COLUMNS = ("id", "source", "claim", "claimed", "unit", "tolerance", "relation", "given", "holding", "failing", "error", "against", "verdict", "note")


class Finding(NamedTuple):
    """A claim with what the catalogue gives for it."""

    claim: Claim
    computed: float | None  # in the claim's unit
    verdict: str
    rests_on: list[str]  # paths of the inputs
    reason: str = ""  # why nothing was computed

    @property
    def note(self) -> str:
        """Return the ledger's note, with why nothing was computed."""
        return " ".join(filter(None, (self.claim.note, self.reason and f"Not now: {self.reason}.")))

    @property
    def as_expected(self) -> bool:
        """Say whether the verdict is the one the ledger expects."""
        return self.verdict == self.claim.verdict


def check_claims(catalogue: Catalogue, settings: Mapping[str, str]) -> tuple[list[Finding], list[str]]:
    """Return the finding of every claim, and notes on settings no claim rests on; an unknown path raises `DataError`."""
    ledger = read_ledger(catalogue)
    found = [finding(claim, Context(catalogue, settings, ledger, claim)) for claim in ledger.values()]
    inputs = plain_inputs(catalogue, settings)
    values = inputs.values(as_number)
    values.inputs |= {path: values.input(path) for path in {p for one in found for p in one.rests_on} & settings.keys()}
    return found, [f"{path} is set, but no claim rests on it" for path in values.check_given(inputs.is_known)]


def finding(claim: Claim, context: Context) -> Finding:
    """Return what the catalogue gives for one claim; one without a function, a feasible plan or a finite value cannot be derived."""
    computation = COMPUTED.get(claim.id)
    if computation is None:
        return Finding(claim, None, NOT_DERIVABLE, [])
    try:
        computed = float(computation.function(context)) / unit(computation.unit).factor
    except Underived as reason:
        return Finding(claim, None, NOT_DERIVABLE, context.rests_on, str(reason))
    except ZeroDivisionError:
        computed = math.inf
    if not math.isfinite(computed):
        return Finding(claim, None, NOT_DERIVABLE, context.rests_on, "a divisor is zero")
    return Finding(claim, computed, verdict(claim, computed), context.rests_on)


def verdict(claim: Claim, computed: float) -> str:
    """Return whether a computed value bears a claim out, within the exactness the source states it with.

    A bound that lies within the error of the model is shown by neither side of it. What rests on nothing but the claim is arithmetic.
    """
    excess = computed / claim.claimed - 1
    slack = claim.tolerance + 1e-12
    if claim.error and claim.relation != "equal" and abs(excess) <= claim.error:
        return NOT_SHOWN
    holds = {"equal": abs(excess) <= slack, "at-most": excess <= slack, "at-least": excess >= -slack}[claim.relation]
    return claim.holding if holds else claim.failing


def read_ledger(catalogue: Catalogue) -> dict[str, Claim]:
    """Return every claim by id; in an overlay's ledger a claim of the same id replaces ours."""
    found: dict[str, Claim] = {}
    for folder in catalogue.folders:
        path = folder / "claims" / "ledger.csv"
        if path.is_file():
            found |= {row["id"]: to_claim(row, f"{path}:{line}") for line, row in read_csv(path, COLUMNS)}
    return found


def to_claim(row: Mapping[str, str], where: str) -> Claim:
    """Return a row as a claim; a broken one raises `DataError`."""
    for column, known in {"relation": RELATIONS, **MAY}.items():
        if row[column] not in known:
            raise unknown(column, row[column], known, where)
    claimed, tolerance, error = (number(row[column], column, where) for column in ("claimed", "tolerance", "error"))
    if claimed <= 0 or tolerance < 0 or error < 0:
        raise DataError(f"{where}: claimed {claimed:g}, tolerance {tolerance:g} and error {error:g}: expected a number above zero and two not below")
    given = premises(row["given"], where)
    before, after = (row["holding"], row["failing"]), (row["against"], row["verdict"], row["note"])
    return Claim(row["id"], row["source"], row["claim"], claimed, row["unit"], tolerance, row["relation"], given, *before, error, *after)


def premises(text: str, where: str) -> dict[str, float]:
    """Return premises such as 'buildings=7; port=400 Gb/s' in base units."""
    found = {}
    for term in filter(None, (term.strip() for term in text.split(";"))):
        name, sign, quantity = term.partition("=")
        amount, _, unit_text = quantity.strip().partition(" ")
        if not sign:
            raise DataError(f"{where}: given {term!r}: expected NAME=QUANTITY")
        found[name.strip()] = number(amount, f"given {name.strip()}", where) * unit(unit_text.strip()).factor
    return found
