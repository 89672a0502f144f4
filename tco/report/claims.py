"""Published claims and figures beside the computed results.

`claims_answer` is the answer of `tco claims`. `published_table` holds the figures of `tco scenarios
check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.catalog.statements import ReproducedFigure
from tco.evidence.check import Finding
from tco.evidence.draws import ConclusionProbability, SpeedProbability
from tco.evidence.verdicts import Verdict
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant

# claims up to which their notes and commands are printed
MOST_DETAILED = 40
PIPE_WIDTH = 100
VERDICTS: dict[Verdict, str] = {
    "holds": "the computed figure agrees with the claim",
    "open": "the draws do not decide the claim",
    "arithmetic": "it agrees, but its inputs come from the claim: this tests nothing",
    "not-shown": "the source leaves its case open, or the claim is within the model's error",
    "off": "the computed figure does not agree with the claim",
    "contradicts": "it does not agree, and neither does another source",
    "not-derivable": "nothing can be computed for it",
}
CONCLUSION_KEYS = ("low", "high", "probability", "turns_at_tokens_per_s_per_user")
CLAIM = Record(
    *("id", "claim", "source"),
    Member("claimed", float, "claimed.value"),
    "unit",
    Member("command", str | None, lambda claim: claim.command or None),
    Member("against", str | None, lambda claim: claim.against or None),
    Member("expected", str | None, lambda claim: claim.verdict or None),
    *("article", "words"),
).read_via("claim")
FINDING = Record(
    CLAIM.only("id", "claim", "source", "claimed", "unit"),
    Member("computed", float | None),
    *(
        Member(conclusion_key, float | None, f"conclusion.{conclusion_key}")
        for conclusion_key in CONCLUSION_KEYS
    ),
    *("verdict", "note"),
    CLAIM.only("command", "against", "expected", "article", "words"),
    Member(
        "by_speed",
        [SpeedProbability],
        lambda finding: finding.conclusion.by_speed if finding.conclusion else (),
        csv=False,
    ),
    Member("rests_on", [str], csv=False),
)
CLAIMS = Document("claims", Member("claims", [FINDING], lambda findings: findings))


def claims_answer(
    catalogue: Catalogue, findings: Sequence[Finding], notes: Sequence[str]
) -> Answer:
    """Return the verdict on every claim.

    Args:
        catalogue: Holds the data, whose hash the answer states.
        findings: Claims with their computed values and verdicts.
        notes: Notes for the reader.

    """
    return CLAIMS.answer(
        catalogue,
        findings,
        lambda: [_verdicts_table(catalogue, findings), _claims_table(findings)],
        (FINDING, findings),
        notes,
    )


def _verdicts_table(catalogue: Catalogue, findings: Sequence[Finding]) -> Table:
    """Return the count and the meaning of each verdict, and the sources of the claims."""
    counts = Counter(finding.verdict for finding in findings)
    verdict_rows = [
        (verdict, str(counts[verdict]), meaning)
        for verdict, meaning in VERDICTS.items()
        if counts[verdict]
    ]
    unexpected = sum(not finding.as_expected for finding in findings)
    agreement = f"{unexpected} are not" if unexpected else "All are"
    sources = dict.fromkeys(finding.claim.source for finding in findings)
    below = [
        f"{agreement} as the ledger of claims expects.",
        "Sources:",
        *(f"  {catalogue.source_title(source)}" for source in sources),
    ]
    title = f"{len(findings)} published claims, checked against the data and the model"
    return Table(
        ("verdict", "claims", "meaning"),
        verdict_rows,
        title,
        below=below,
        align="lrl",
        width=PIPE_WIDTH,
    )


def _claims_table(findings: Sequence[Finding]) -> Table:
    """Return each claim with its verdict and figures, of few claims with their notes."""
    detailed = len(findings) <= MOST_DETAILED
    claim_rows: list[Sequence[str]] = []
    for finding in findings:
        claim, conclusion = finding.claim, finding.conclusion
        ends = (conclusion.low, conclusion.high) if conclusion else ()
        claim_rows.append(
            (
                claim.id,
                finding.verdict,
                significant(claim.claimed.value, 6),
                significant(finding.computed, 5),
                " to ".join(significant(end, 3) or "no end" for end in ends),
                claim.unit,
            )
        )
        remarks = (
            claim.claim,
            conclusion and _probability_text(conclusion),
            detailed and claim.command,
            detailed and finding.note,
            not finding.as_expected and f"The ledger expects: {claim.verdict}.",
        )
        claim_rows += [(f"    {remark}", "", "", "", "", "") for remark in remarks if remark]
    columns = ("id", "verdict", "claimed", "computed", "P10 to P90", "unit")
    below = [] if detailed else ["Notes and commands of each claim: --format json."]
    return Table(columns, claim_rows, "Claims", below=below, align="llrrrl", width=PIPE_WIDTH)


def _probability_text(conclusion: ConclusionProbability) -> str:
    """Return a sentence on the probability of a conclusion, by speed, and where it turns."""
    by_speed = ", ".join(
        f"{point.probability * 100:.0f} % at {point.tokens_per_s_per_user:g}"
        for point in conclusion.by_speed
    )
    speeds = f" ({by_speed})" if by_speed else ""
    turn = conclusion.turns_at_tokens_per_s_per_user
    turns = "" if turn is None else f"; it turns at about {turn:.3g} tokens/s per user"
    return f"It holds in {conclusion.probability * 100:.0f} % of the draws{speeds}{turns}."


# ---------------------------------------------------------------- figures of publications
def published_table(kind: str, figures: Sequence[ReproducedFigure]) -> Table:
    """Return figures of a kind beside the computed ones, with the reasons of misses below.

    Args:
        kind: Kind of the figures.
        figures: Published figures with their computed values.

    """
    figure_rows = []
    for figure in figures:
        stated, tolerance = f"{significant(figure.low)}-{significant(figure.high)}", ""
        if figure.tolerance is not None:
            stated, tolerance = significant(figure.published), f"{figure.tolerance * 100:g} %"
        figure_rows.append(
            (
                figure.scenario,
                figure.system,
                figure.metric,
                figure.unit,
                stated,
                significant(figure.computed),
                "" if figure.excess is None else f"{figure.excess * 100:+.1f} %",
                tolerance,
                "" if figure.ok else "no",
            )
        )
    misses = [
        f"{figure.scenario}, {figure.metric} of {figure.system} misses: {figure.reason}"
        for figure in figures
        if not figure.ok and figure.reason
    ]
    return Table(
        ("scenario", "system", "what", "unit", "published", "computed", "off", "within", ""),
        figure_rows,
        f"{kind} figures",
        below=[f"{sum(figure.ok for figure in figures)} of {len(figures)} come out.", *misses],
        align="llllrrrrl",
    )
