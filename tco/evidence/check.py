"""Each claim computed anew, and the verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tco.catalog import Catalogue
from tco.comparison.records import SPEEDS
from tco.compile.execute import fork_map
from tco.core.errors import DataError
from tco.core.expression import amount_in_unit, evaluate_formula
from tco.core.files import place_in
from tco.core.inputs import as_number
from tco.evidence.ledger import (
    ARITHMETIC,
    COMPUTED,
    CONTRADICTS,
    DRAWN,
    HOLDS,
    NOT_DERIVABLE,
    NOT_SHOWN,
    OFF,
    OPEN,
    UNSTATED,
    Claim,
    read_ledger,
)
from tco.evidence.questions import Context, Underived
from tco.scenario.resolve import plain_inputs

if TYPE_CHECKING:
    from tco.evidence.draws import ConclusionProbability

SURE = 0.9  # chance from which a conclusion holds; it is off where its contrary is as sure
FIGURE = re.compile(r"\{([^{}|]+?) *\| *([^{}|]*?) *\| *([1-9])\}")


class Finding(NamedTuple):
    """A claim with what the catalogue gives for it."""

    claim: Claim
    computed: float | None  # in the claim's unit
    verdict: str
    rests_on: list[str]  # paths of the inputs
    reason: str = ""  # why nothing was computed
    judged: ConclusionProbability | None = None  # what the draws say of it

    @property
    def note(self) -> str:
        """Return the ledger's note, with why nothing was computed."""
        return " ".join(filter(None, (self.claim.note, self.reason and f"Not now: {self.reason}.")))

    @property
    def as_expected(self) -> bool:
        """Say whether the verdict is the one the ledger expects; of what draws judge it expects
        none.
        """
        return self.verdict == self.claim.verdict or (
            self.claim.kind == DRAWN and self.verdict != NOT_DERIVABLE
        )


def check_claims(
    catalogue: Catalogue, settings: Mapping[str, str], conclusions: bool = False
) -> tuple[list[Finding], list[str]]:
    """Return the finding of every claim, and notes on settings no claim rests on; an unknown path
    raises `DataError`.

    Conclusions are the claims that a command shows by itself.
    """
    inputs = plain_inputs(catalogue, settings)
    values = inputs.values(as_number)
    inputs.unused(values)  # what is wrong with a setting is no fault of a row's
    ledger = read_ledger(catalogue)
    asked = [claim for claim in ledger.values() if claim.command or not conclusions]
    speeds = SPEEDS if conclusions else ()
    made = dict(
        fork_map(
            lambda claim: finding(claim, Context(catalogue, settings, ledger, claim), speeds), asked
        )
    )
    found = [made[place] for place in range(len(asked))]
    used = {path for one in found for path in one.rests_on}
    return found, [
        f"{path} is set, but no claim rests on it" for path in values.given if path not in used
    ]


def finding(claim: Claim, context: Context, speeds: Sequence[float] = ()) -> Finding:
    """Return the catalogue's finding on a claim.

    A conclusion is judged at `speeds` as well. A claim without a formula, a feasible plan or a
    finite value cannot be derived. A malformed figure in the note raises `DataError`.
    """
    note = FIGURE.sub(lambda found: render_note_figure(found, claim, context), claim.note)
    if "{" in note:
        raise DataError(
            f"{claim.where}: note: "
            f"{note[note.index('{') :][:40]!r} is no figure, expected {{FORMULA | UNIT | DIGITS}}"
        )
    claim = claim._replace(note=note)
    if not claim.formula:
        return Finding(claim, None, NOT_DERIVABLE, [])
    try:
        computed = amount_in_unit(
            context.computed(claim.id), claim.formula_unit, place_in(claim.where, claim.formula)
        )
    except Underived as reason:
        return Finding(claim, None, NOT_DERIVABLE, context.rests_on, str(reason))
    except ZeroDivisionError:
        computed = math.inf
    if not math.isfinite(computed):
        return Finding(claim, None, NOT_DERIVABLE, context.rests_on, "a divisor is zero")
    if claim.kind != DRAWN:
        return Finding(claim, computed, claim_verdict(claim, computed), context.rests_on)
    from tco.evidence.draws import conclusion_probability

    try:
        found = conclusion_probability(claim, context, speeds)
    except Underived as reason:
        return Finding(claim, computed, NOT_DERIVABLE, context.rests_on, str(reason))
    word = HOLDS if found.probability >= SURE else OFF if found.probability <= 1 - SURE else OPEN
    return Finding(claim, computed, word, context.rests_on, judged=found)


def render_note_figure(found: re.Match[str], claim: Claim, asked: Context) -> str:
    """Return a figure of a note, such as `{C017 | % | 3}`, to so many digits; the claim does not
    rest on what it reads.
    """
    context = Context(asked.catalogue, asked.settings, asked.ledger, claim)
    formula, unit_text, digits = found.groups()
    place = place_in(claim.where, formula)
    try:
        number = amount_in_unit(evaluate_formula(formula, context, place), unit_text, place)
    except (Underived, ZeroDivisionError):
        return "none"
    rounded, _, power = f"{number:.{int(digits) - 1}e}".partition("e")
    return (
        f"{float(f'{rounded}e{power}'):,.{max(int(digits) - 1 - int(power), 0)}f}"
        if power
        else "none"
    )


def claim_verdict(claim: Claim, computed: float) -> str:
    """Return whether a computed value bears a claim out; of a case that the source leaves open a
    value shows nothing.
    """
    if claim.kind == UNSTATED:
        return NOT_SHOWN
    if not claim.holds(computed):
        return CONTRADICTS if claim.against else OFF
    return HOLDS if claim.kind == COMPUTED else ARITHMETIC
