"""Published claims and figures beside the computed results.

`claims_answer` is the answer of `tco claims`. `published_table` holds the figures of `tco scenarios
check`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tco.catalog import Catalogue
from tco.catalog.labels import PLAIN_NUMBERS
from tco.catalog.statements import ReproducedFigure
from tco.evidence.check import Finding
from tco.evidence.draws import ConclusionProbability, SpeedProbability
from tco.evidence.ledger import Claim
from tco.evidence.verdicts import Verdict
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import NARROW_SCREEN, Table, headed, significant
from tco.report.verdict import listed_names

# claims up to which their notes and commands are printed
MOST_DETAILED = 40
# what a reader acts on comes first
VERDICTS: dict[Verdict, str] = {
    "contradicts": "the computed figure differs, and another source differs too",
    "off": "the computed figure differs; no other source is compared",
    "open": "undecided: the claim is true in 10 to 90 % of the draws",
    "holds": "the computed figure agrees with the claim",
    "arithmetic": "it agrees, but it was computed from the claim itself: no proof",
    "not-shown": "cannot be judged: the source leaves out its conditions, or the model "
    "is not exact enough",
    "not-derivable": "cannot be computed: the data for it are missing",
}
LISTED: tuple[Verdict, ...] = ("contradicts", "off", "open")  # among many claims
# what the verdicts come to, in the sentence that stands first
OUTCOMES: dict[str, tuple[Verdict, ...]] = {
    "agree with the computed figure": ("holds", "arithmetic"),
    "differ": ("contradicts", "off"),
    "are undecided": ("open",),
    "cannot be judged": ("not-shown", "not-derivable"),
}
BOUND_REMARK = re.compile(r" \((upper|lower)( bound)?\)$|^>0 ")  # of a unit
RATIO_UNIT = re.compile(r"^x\b")
UNITLESS = ("yes", *PLAIN_NUMBERS)
BOUNDS = {"equal": "", "at-least": "at least ", "at-most": "at most "}
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
        lambda: _claims_tables(catalogue, findings),
        (FINDING, findings),
        notes,
    )


def _claims_tables(catalogue: Catalogue, findings: Sequence[Finding]) -> list[Table]:
    """Return the tables of verdicts, of claims by verdict and of sources."""
    detailed = len(findings) <= MOST_DETAILED
    groups = {
        verdict: [finding for finding in findings if finding.verdict == verdict]
        for verdict in VERDICTS
    }
    present = [verdict for verdict, group in groups.items() if group]
    listed = present if detailed or len(present) == 1 else LISTED
    sources = list(dict.fromkeys(finding.claim.source for finding in findings))
    numbers = {source: str(number) for number, source in enumerate(sources, 1)}
    verdict_tables = [
        _claims_table(
            catalogue,
            f"{verdict} ({len(groups[verdict])}): {VERDICTS[verdict]}",
            groups[verdict],
            numbers,
            detailed,
        )
        for verdict in listed
        if groups[verdict]
    ]
    surprises = [
        finding for finding in findings if not finding.as_expected and finding.verdict not in listed
    ]
    if surprises:
        title = "Not the verdict that the ledger expects"
        verdict_tables.insert(0, _claims_table(catalogue, title, surprises, numbers, detailed))
    omitted = [verdict for verdict in present if verdict not in listed]
    return [
        _summary_table(findings, groups),
        *verdict_tables,
        _closing_table(catalogue, numbers, omitted, detailed),
    ]


def _summary_table(
    findings: Sequence[Finding], groups: Mapping[Verdict, Sequence[Finding]]
) -> Table:
    """Return the count and the meaning of each verdict."""
    summary_rows = [
        (verdict, str(len(groups[verdict])), meaning)
        for verdict, meaning in VERDICTS.items()
        if groups[verdict]
    ]
    unexpected = sum(not finding.as_expected for finding in findings)
    expectation = (
        f"Verdicts that have changed since the last review: {unexpected}. Exit code 1."
        if unexpected
        else "No verdict has changed since the last review."
    )
    below = [
        expectation,
        "claimed: what the source states. computed: base case of the data and the model. times: "
        "the number is a ratio.",
        "deviation: computed against claimed; +8 % is 108 where 100 is claimed.",
        "Ids: C is a figure, P a conclusion from figures. source: who says it, by its number in "
        "the list at the end.",
    ]
    return Table(
        ("verdict", "claims", "meaning"),
        summary_rows,
        f"{len(findings)} published claims, checked against the data and the model",
        above=_outcome_words(groups),
        below=below,
        align="lrl",
        width=NARROW_SCREEN,
    )


def _claims_table(
    catalogue: Catalogue,
    title: str,
    findings: Sequence[Finding],
    numbers: Mapping[str, str],
    detailed: bool,
) -> Table:
    """Return claims with their figures and remarks.

    Args:
        catalogue: Holds the titles of sources.
        title: What the claims have in common.
        findings: The claims.
        numbers: Number of each source in the closing list.
        detailed: Whether notes and commands are printed.

    """
    claim_rows: list[Sequence[str]] = []
    for finding in findings:
        claim = finding.claim
        claim_rows.append(
            (
                claim.id,
                headed(claim.claim, _unit_words(claim)),
                BOUNDS[claim.relation] + significant(claim.claimed.value, 4),
                significant(finding.computed, 4),
                _deviation_text(finding),
                numbers[claim.source],
            )
        )
        remarks = _claim_remarks(catalogue, finding, detailed)
        claim_rows += [(f"      {remark}", "", "", "", "", "") for remark in remarks]
    columns = ("id", "what is claimed, unit", "claimed", "computed", "deviation", "source")
    return Table(columns, claim_rows, title, align="llrrrr", width=NARROW_SCREEN)


def _unit_words(claim: Claim) -> str:
    """Return the unit of a claim, unless its words say what is counted; a ratio counts times."""
    words = RATIO_UNIT.sub("times", BOUND_REMARK.sub("", claim.unit))
    is_noun = words.isalpha() and words.islower()
    is_said = is_noun and re.search(rf"\b{words}\b", claim.claim, re.IGNORECASE) is not None
    return "" if is_said or words in UNITLESS else words


def _outcome_words(groups: Mapping[Verdict, Sequence[Finding]]) -> list[str]:
    """Return a sentence on the counts of outcomes; nothing where all claims have the same."""
    counts = {
        words: sum(len(groups[verdict]) for verdict in verdicts)
        for words, verdicts in OUTCOMES.items()
    }
    outcomes = [f"{count} {words}" for words, count in counts.items() if count]
    return [f"{listed_names(outcomes)}."] if len(outcomes) > 1 else []


def _claim_remarks(catalogue: Catalogue, finding: Finding, detailed: bool) -> list[str]:
    """Return the sentences below a claim."""
    claim, conclusion = finding.claim, finding.conclusion
    remarks = (
        conclusion and _probability_text(conclusion),
        detailed and claim.against and f"Against: {catalogue.source_title(claim.against)}.",
        detailed and finding.note,
        detailed and claim.command,
        not finding.as_expected and f"The ledger expects: {claim.verdict}.",
    )
    return [remark for remark in remarks if remark]


def _deviation_text(finding: Finding) -> str:
    """Return the deviation of the computed figure, in percent or points."""
    claimed, computed = finding.claim.claimed.value, finding.computed
    if computed is None or finding.verdict == "open":
        return ""
    if finding.claim.unit.startswith("%"):
        return f"{_signed(computed - claimed)} points"
    return f"{_signed((computed / claimed - 1) * 100)} %" if claimed else ""


def _signed(difference: float) -> str:
    return ("+" if difference > 0 else "") + significant(difference, 2)


def _closing_table(
    catalogue: Catalogue,
    numbers: Mapping[str, str],
    omitted: Sequence[Verdict],
    detailed: bool,
) -> Table:
    """Return the commands for further claims and reasons, and the sources."""
    commands = []
    if omitted:
        commands.append(f"The other claims: tco claims --verdict WORD; words: {', '.join(omitted)}")
    if not detailed:
        commands.append("Why they differ: tco claims --verdict contradicts; --verdict off")
        commands.append("Every claim with its note and its source: tco claims --format csv")
    source_lines = [
        f"  {number}  {catalogue.source_title(source)}" for source, number in numbers.items()
    ]
    if numbers:
        source = next(iter(numbers))
        commands.append(f"A source with its link and its values: tco sources show {source}")
    return Table(
        (), (), above=[*commands, "Sources of the claims:", *source_lines], width=NARROW_SCREEN
    )


def _probability_text(conclusion: ConclusionProbability) -> str:
    """Return a sentence on the probability of a conclusion, by speed, and where it turns."""
    by_speed = ", ".join(
        f"{point.probability * 100:.0f} % at {point.tokens_per_s_per_user:g}"
        for point in conclusion.by_speed
    )
    speeds = f" ({by_speed})" if by_speed else ""
    turn = conclusion.turns_at_tokens_per_s_per_user
    turns = "" if turn is None else f"; it turns at about {turn:.3g} tokens/s per user"
    low, high = (significant(end, 3) or "no end" for end in (conclusion.low, conclusion.high))
    return (
        f"True in {conclusion.probability * 100:.0f} % of the draws{speeds}{turns}; computed "
        f"P10 to P90 {low} to {high}."
    )


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
