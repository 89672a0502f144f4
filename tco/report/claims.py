"""Published claims and figures beside the computed results.

`claims_answer` is the answer of `tco claims`. `published_table` holds the figures of `tco scenarios
check`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.evidence import Finding
from tco.evidence.draws import ConclusionProbability
from tco.evidence.ledger import VERDICTS
from tco.evidence.published import ReproducedFigure
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table, significant

DRAWN = (  # of what draws judge
    ("low", lambda found: found.judged and found.judged.low),
    ("high", lambda found: found.judged and found.judged.high),
    ("probability", lambda found: found.judged and found.judged.probability),
    ("turns_at_tokens_per_s_per_user", lambda found: found.judged and found.judged.turns_at),
)
AT = Record(
    Member("tokens_per_s_per_user", float, lambda one: one[0]),
    Member("probability", float, lambda one: one[1]),
)
CLAIM = Record(
    Record("id", "claim", "source", Member("claimed", float), "unit").read_via("claim"),
    Member("computed", float | None),
    *(Member(name, float | None, read) for name, read in DRAWN),
    *("verdict", "note"),
    Member("command", str | None, lambda found: found.claim.command or None),
    Member("against", str | None, lambda found: found.claim.against or None),
    Member("expected", str | None, lambda found: found.claim.verdict or None),
    Record("article", "words").read_via("claim"),
    Member(
        "by_speed", [AT], lambda found: found.judged.by_speed if found.judged else (), csv=False
    ),
    Member("rests_on", [str], csv=False),
)
CLAIMS = Document("claims", Member("claims", [CLAIM], lambda findings: findings))


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
        catalogue, findings, lambda: [claims_table(catalogue, findings)], (CLAIM, findings), notes
    )


def claims_table(catalogue: Catalogue, findings: Sequence[Finding]) -> Table:
    """Return the ledger, each claim with its note on a line of its own, and how many claims
    hold.
    """
    rows: list[Sequence[str]] = []
    for found in findings:
        claim = found.claim
        between, judged = "", found.judged
        if judged is not None:
            between = " to ".join(
                significant(end, 3) or "no end" for end in (judged.low, judged.high)
            )
        rows.append(
            (
                claim.id,
                found.verdict,
                significant(claim.claimed, 6),
                significant(found.computed, 5),
                between,
                claim.unit,
                claim.claim,
            )
        )
        remarks = [
            chances_text(judged) if judged else "",
            found.claim.command,
            found.note,
            "" if found.as_expected else f"The ledger expects: {claim.verdict}.",
        ]
        rows += [("", "", "", "", "", "", f"~ {remark}") for remark in remarks if remark]
    counts = Counter(found.verdict for found in findings)
    moved = sum(not found.as_expected for found in findings)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    sources = dict.fromkeys(found.claim.source for found in findings)
    below = [
        f"{said or 'no claim'}; "
        f"{f'{moved} not as the ledger expects' if moved else 'all as the ledger expects'}."
    ]
    below += [f"{source}: {catalogue.source_title(source)}" for source in sources]
    columns = ("id", "verdict", "claimed", "computed", "from-to", "unit", "claim")
    return Table(
        columns,
        rows,
        f"{len(findings)} claims of published sources against the catalogue",
        [],
        below,
        "llrrrll",
    )


def chances_text(judged: ConclusionProbability) -> str:
    """Say with what chance a conclusion holds, at which speeds, and where that turns."""
    by_speed = ", ".join(f"{share * 100:.0f} % at {speed:g}" for speed, share in judged.by_speed)
    turns = (
        ""
        if judged.turns_at is None
        else f"; it turns at about {judged.turns_at:.3g} tokens/s a user"
    )
    return (
        f"It holds in {judged.probability * 100:.0f} % of the draws"
        + (f" ({by_speed})" if by_speed else "")
        + f"{turns}."
    )


# ---------------------------------------------------------------- figures of publications
def published_table(kind: str, figures: Sequence[ReproducedFigure]) -> Table:
    """Return figures of a kind with what comes out and how far it is from what was published, and
    below why some miss.
    """
    rows = []
    for one in figures:
        off = (
            ""
            if one.tolerance is None or one.computed is None
            else f"{(one.computed / one.published - 1) * 100:+.1f} %"
        )
        stated = (
            f"{significant(one.low)}-{significant(one.high)}"
            if one.tolerance is None
            else significant(one.published)
        )
        within = "" if one.tolerance is None else f"{one.tolerance * 100:g} %"
        rows.append(
            (
                one.scenario,
                one.system,
                one.metric,
                one.unit,
                stated,
                significant(one.computed),
                off,
                within,
                "" if one.ok else "no",
            )
        )
    missed = [
        f"{one.scenario}, {one.metric} of {one.system} misses: {one.reason}"
        for one in figures
        if not one.ok and one.reason
    ]
    below = [f"{sum(one.ok for one in figures)} of {len(figures)} come out.", *missed]
    return Table(
        ("scenario", "system", "what", "unit", "published", "computed", "off", "within", ""),
        rows,
        f"{kind} figures",
        [],
        below,
        "llllrrrrl",
    )
