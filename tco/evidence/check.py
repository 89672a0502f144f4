"""Verdicts on the claims of the ledger: each claim computed anew and held to what it states."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from os.path import exists
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.compile.execute import fork_map
from tco.core.array_cache import cached_arrays, text_array
from tco.core.errors import DataError
from tco.core.expression import amount_in_unit, evaluate_formula
from tco.core.files import source_positions
from tco.core.inputs import as_number
from tco.core.progress import named_step
from tco.evaluation.side_by_side import SPEEDS
from tco.evidence.draws import (
    ConclusionProbability,
    SpeedProbability,
    conclusion_probability,
)
from tco.evidence.ledger import Claim, read_ledger
from tco.evidence.questions import Context, Underived
from tco.evidence.verdicts import Verdict
from tco.scenario.resolve import plain_inputs

SURE = 0.9  # probability from which a conclusion holds; it is off where its contrary is as sure
FIGURE = re.compile(r"\{([^{}|]+?) *\| *([^{}|]*?) *\| *([1-9])\}")


class Finding(NamedTuple):
    """A claim with what the catalogue gives for it."""

    claim: Claim
    computed: float | None  # in the claim's unit
    verdict: Verdict
    rests_on: list[str]  # paths of the inputs
    reason: str = ""  # why nothing was computed
    conclusion: ConclusionProbability | None = None  # what the draws say of it

    @property
    def note(self) -> str:
        """The ledger's note, with why nothing was computed."""
        return " ".join(filter(None, (self.claim.note, self.reason and f"Not now: {self.reason}.")))

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the expected one; of what draws judge any verdict is expected."""
        return self.verdict == self.claim.verdict or (
            self.claim.kind == "drawn" and self.verdict != "not-derivable"
        )


def check_claims(
    catalogue: Catalogue, settings: Mapping[str, str], conclusions: bool = False
) -> tuple[list[Finding], list[str]]:
    """Return the finding on every claim, and notes on settings that no claim rests on.

    Args:
        catalogue: Holds the ledger and the data.
        settings: Settings by input path.
        conclusions: Whether to check only the claims that a command shows by itself.

    Raises:
        DataError: A path is unknown, or a row of the ledger is broken.

    """
    inputs = plain_inputs(catalogue, settings)
    input_values = inputs.values(as_number)
    inputs.unused(input_values)  # what is wrong with a setting is no fault of a row's
    ledger = read_ledger(catalogue)
    claims = [claim for claim in ledger.values() if claim.command or not conclusions]
    speeds = SPEEDS if conclusions else ()

    def check(claim: Claim) -> Finding:
        return check_claim(Context(catalogue, settings, ledger, claim), speeds)

    def check_all() -> list[list[Any]]:
        with named_step("checking claims"):
            findings = [finding for _, finding in sorted(fork_map(check, claims))]
            return [[finding.claim.note, *finding[1:]] for finding in findings]

    # a folder or file here may stand for a model or a scenario
    local_names = any(map(exists, (*catalogue.models, *catalogue.scenarios)))
    if settings or local_names or catalogue.anchors or len(catalogue.folders) > 1:
        finding_fields = check_all()
    else:
        claims_key = [b"claims", repr(speeds).encode()]
        (packed,) = cached_arrays(claims_key, lambda: [text_array(json.dumps(check_all()))])
        finding_fields = json.loads(packed.tobytes())
    findings = [
        _finding_of(claim, fields) for claim, fields in zip(claims, finding_fields, strict=True)
    ]
    used_paths = {path for finding in findings for path in finding.rests_on}
    return findings, [
        f"{path} is set, but no claim rests on it"
        for path in input_values.given
        if path not in used_paths
    ]


def _finding_of(claim: Claim, fields: list[Any]) -> Finding:
    note, computed, verdict, rests_on, reason, conclusion = fields
    if conclusion is not None:
        probability, low, high, by_speed, turns = conclusion
        by_speed = [SpeedProbability(*fields) for fields in by_speed]
        conclusion = ConclusionProbability(probability, low, high, by_speed, turns)
    return Finding(claim._replace(note=note), computed, verdict, rests_on, reason, conclusion)


def check_claim(context: Context, speeds: Sequence[float] = ()) -> Finding:
    """Return the finding on the claim of a context.

    A claim without a formula, a feasible plan or a finite value cannot be derived.

    Args:
        context: The catalogue as the claim sees it.
        speeds: Speeds at which a conclusion is judged as well, tokens/s per user.

    Raises:
        DataError: The formula or a figure in the note is malformed.

    """
    claim = context.claim
    note = FIGURE.sub(lambda figure: _render_note_figure(figure, context), claim.note)
    if "{" in note:
        raise DataError(
            f"{claim.where}: note: "
            f"{note[note.index('{') :][:40]!r} is no figure, expected {{FORMULA | UNIT | DIGITS}}"
        )
    claim = claim._replace(note=note)
    if not claim.formula:
        return Finding(claim, None, "not-derivable", [])
    computed = conclusion = None
    try:
        computed = _finite_figure(context)
        if claim.kind == "drawn":
            conclusion = conclusion_probability(context, speeds)
    except Underived as reason:
        return Finding(claim, computed, "not-derivable", context.rests_on, str(reason))
    verdict = _claim_verdict(claim, computed, conclusion)
    return Finding(claim, computed, verdict, context.rests_on, conclusion=conclusion)


def _finite_figure(context: Context) -> float:
    try:
        figure = context.claim_figure()
    except ZeroDivisionError:
        figure = math.inf
    if not math.isfinite(figure):
        raise Underived("a divisor is zero")
    return figure


def _render_note_figure(figure: re.Match[str], context: Context) -> str:
    """Return a figure of a note, such as `{C017 | % | 3}`, with its number of digits.

    The claim does not rest on what the figure reads.
    """
    formula, unit_text, digits_text = figure.groups()
    scope = Context(context.catalogue, context.settings, context.ledger, context.claim)
    position = source_positions(context.claim.where, formula)
    try:
        number = amount_in_unit(evaluate_formula(formula, scope, position), unit_text, position)
    except (Underived, ZeroDivisionError):
        return "none"
    if not math.isfinite(number):
        return "none"
    decimals = int(digits_text) - 1
    rounded = f"{number:.{decimals}e}"
    exponent = int(rounded.partition("e")[2])
    return f"{float(rounded):,.{max(decimals - exponent, 0)}f}"


def _claim_verdict(
    claim: Claim, computed: float, conclusion: ConclusionProbability | None
) -> Verdict:
    """Return the verdict on a claim by its computed value, or by the draws of a conclusion."""
    if conclusion is not None:
        if conclusion.probability >= SURE:
            return "holds"
        return "off" if 1 - conclusion.probability >= SURE else "open"
    # of a case that the source leaves open a value shows nothing
    if claim.kind == "unstated":
        return "not-shown"
    if not claim.claimed.agrees(computed):
        return "contradicts" if claim.against else "off"
    return "holds" if claim.kind == "computed" else "arithmetic"
