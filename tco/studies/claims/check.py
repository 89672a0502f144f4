"""Each claim computed anew, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.chain.inputs import plain_inputs
from tco.foundation.errors import DataError
from tco.foundation.expression import Amount, powers_of
from tco.foundation.units import dimension_text, unit
from tco.foundation.values import as_number
from tco.studies.claims.ledger import NOT_DERIVABLE, NOT_SHOWN, Claim, place_in, read_ledger
from tco.studies.claims.questions import Context, Underived


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
    inputs = plain_inputs(catalogue, settings)
    values = inputs.values(as_number)
    inputs.unused(values)  # what is wrong with a setting is no fault of a row's
    ledger = read_ledger(catalogue)
    found = [finding(claim, Context(catalogue, settings, ledger, claim)) for claim in ledger.values()]
    used = {path for one in found for path in one.rests_on}
    return found, [f"{path} is set, but no claim rests on it" for path in values.given if path not in used]


def finding(claim: Claim, context: Context) -> Finding:
    """Return what the catalogue gives for one claim; one without a formula, a feasible plan or a finite value cannot be derived."""
    if not claim.formula:
        return Finding(claim, None, NOT_DERIVABLE, [])
    shown = unit(claim.formula_unit)
    try:
        found = context.computed(claim.id)
    except Underived as reason:
        return Finding(claim, None, NOT_DERIVABLE, context.rests_on, str(reason))
    except ZeroDivisionError:
        found = Amount(math.inf, powers_of(shown.dimension))
    if found.powers != powers_of(shown.dimension):
        where = place_in(claim.where, claim.formula)(0)
        raise DataError(
            f"{where}: the formula gives {dimension_text(found.powers)}, formula_unit is {claim.formula_unit or '1'!r} ({shown.dimension})"
        )
    computed = float(found.value) / shown.factor
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
