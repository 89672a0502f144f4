"""The claims ledger: the table, the rows and the document of `tco claims`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tco.catalog import Catalogue
from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.claims import Finding
from tco.studies.claims.ledger import VERDICTS

HEADER = ("id", "claim", "source", "claimed", "unit", "computed", "verdict", "note", "against", "expected")


def claim_cells(found: Finding) -> list[Any]:
    """Return the raw cells of a claim."""
    claim = found.claim
    return [
        claim.id,
        claim.claim,
        claim.source,
        claim.claimed,
        claim.unit,
        found.computed,
        found.verdict,
        found.note,
        claim.against or None,
        claim.verdict,
    ]


def claims_table(catalogue: Catalogue, findings: Sequence[Finding]) -> Table:
    """Return the ledger, each claim with its note on a line of its own, and how many claims hold."""
    rows: list[Sequence[str]] = []
    for found in findings:
        claim = found.claim
        rows.append((claim.id, found.verdict, significant(claim.claimed, 6), significant(found.computed, 5), claim.unit, claim.claim))
        remarks = [found.note, "" if found.as_expected else f"The ledger expects: {claim.verdict}."]
        rows += [("", "", "", "", "", f"~ {remark}") for remark in remarks if remark]
    counts = Counter(found.verdict for found in findings)
    moved = sum(not found.as_expected for found in findings)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    sources = dict.fromkeys(found.claim.source for found in findings)
    below = [f"{said or 'no claim'}; {f'{moved} not as the ledger expects' if moved else 'all as the ledger expects'}."]
    below += [f"{source}: {catalogue.source_title(source)}" for source in sources]
    columns = ("id", "verdict", "claimed", "computed", "unit", "claim")
    return Table(columns, rows, f"{len(findings)} claims of published sources against the catalogue", [], below, "llrrll")


def claims_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the content of the JSON document."""
    claims = []
    for found in findings:
        cells = dict(zip(HEADER, claim_cells(found), strict=True))
        cells |= {"claimed": number(found.claim.claimed), "computed": number(found.computed), "rests_on": found.rests_on}
        claims.append(cells)
    return {"claims": claims}
