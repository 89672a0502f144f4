"""Published figures beside what comes out: the table and the document of `tco scenarios check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.published import KINDS, Figure, Publication


def published_document(publications: Sequence[Publication]) -> dict[str, Any]:
    """Return what the JSON document adds."""
    return {"published": [item(one) for found in publications for one in found.figures]}


def item(one: Figure) -> dict[str, Any]:
    """Return one figure for the document."""
    return one._asdict() | {"computed": number(one.computed), "ok": one.ok}


def published_tables(publications: Sequence[Publication]) -> list[Table]:
    """Return a table of figures for each kind that there is."""
    figures = [one for found in publications for one in found.figures]
    return [table([one for one in figures if one.kind == kind], kind) for kind in KINDS if any(one.kind == kind for one in figures)]


def table(figures: Sequence[Figure], kind: str) -> Table:
    """Return figures with what comes out and how far it is from what was published, and below why some miss."""
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
