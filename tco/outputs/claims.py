"""What others publish beside what comes out: the answer of `tco claims`, and the figures that `tco scenarios check` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.outputs.record import Answer, Document, Member, Record
from tco.outputs.table import Table, significant
from tco.studies.claims import Finding
from tco.studies.claims.ledger import VERDICTS
from tco.studies.published import Figure

CLAIM = Record(
    Record("id", "claim", "source", Member("claimed", float), "unit").within("claim"),
    Member("computed", float | None),
    Member("low", float | None, lambda found: found.range and found.range[0]),
    Member("high", float | None, lambda found: found.range and found.range[1]),
    *("verdict", "note"),
    Member("command", str | None, lambda found: found.claim.command or None),
    Member("against", str | None, lambda found: found.claim.against or None),
    Member("expected", read="claim.verdict"),
    Member("rests_on", [str], csv=False),
)
CLAIMS = Document("claims", Member("claims", [CLAIM], lambda findings: findings))


def claims_answer(catalogue: Catalogue, findings: Sequence[Finding], notes: Sequence[str]) -> Answer:
    """Return the verdict on every claim."""
    return CLAIMS.answer(catalogue, findings, lambda: [claims_table(catalogue, findings)], (CLAIM, findings), notes)


def claims_table(catalogue: Catalogue, findings: Sequence[Finding]) -> Table:
    """Return the ledger, each claim with its note on a line of its own, and how many claims hold."""
    rows: list[Sequence[str]] = []
    for found in findings:
        claim = found.claim
        between = "" if not claim.error or found.range is None else "-".join(significant(end, 3) for end in found.range)
        rows.append((claim.id, found.verdict, significant(claim.claimed, 6), significant(found.computed, 5), between, claim.unit, claim.claim))
        remarks = [found.claim.command, found.note, "" if found.as_expected else f"The ledger expects: {claim.verdict}."]
        rows += [("", "", "", "", "", "", f"~ {remark}") for remark in remarks if remark]
    counts = Counter(found.verdict for found in findings)
    moved = sum(not found.as_expected for found in findings)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    sources = dict.fromkeys(found.claim.source for found in findings)
    below = [f"{said or 'no claim'}; {f'{moved} not as the ledger expects' if moved else 'all as the ledger expects'}."]
    below += [f"{source}: {catalogue.source_title(source)}" for source in sources]
    columns = ("id", "verdict", "claimed", "computed", "from-to", "unit", "claim")
    return Table(columns, rows, f"{len(findings)} claims of published sources against the catalogue", [], below, "llrrrll")


# ---------------------------------------------------------------- figures of publications
def published_table(kind: str, figures: Sequence[Figure]) -> Table:
    """Return figures of a kind with what comes out and how far it is from what was published, and below why some miss."""
    rows = []
    for one in figures:
        off = "" if one.tolerance is None or one.computed is None else f"{(one.computed / one.published - 1) * 100:+.1f} %"
        stated = f"{significant(one.low)}-{significant(one.high)}" if one.tolerance is None else significant(one.published)
        within = "" if one.tolerance is None else f"{one.tolerance * 100:g} %"
        rows.append((one.scenario, one.system, one.metric, one.unit, stated, significant(one.computed), off, within, "" if one.ok else "no"))
    missed = [f"{one.scenario}, {one.metric} of {one.system} misses: {one.reason}" for one in figures if not one.ok and one.reason]
    below = [f"{sum(one.ok for one in figures)} of {len(figures)} come out.", *missed]
    return Table(
        ("scenario", "system", "what", "unit", "published", "computed", "off", "within", ""), rows, f"{kind} figures", [], below, "llllrrrrl"
    )
