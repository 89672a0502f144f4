"""Published figures beside what comes out: the tables and the document of `tco scenarios check`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tco.outputs.document import number
from tco.outputs.table import Table, significant
from tco.studies.published import Figure, Publication


def published_document(publications: Sequence[Publication]) -> dict[str, Any]:
    """Return what the JSON document adds."""
    figures = [one for found in publications for one in found.figures]
    return {
        "published": [item(one) for one in figures if one.kind == "published"],
        "cross_checks": [item(one) for one in figures if one.kind == "cross_check"],
    }


def item(one: Figure) -> dict[str, Any]:
    """Return one figure for the document."""
    shown = one._asdict() | {"computed": number(one.computed), "ok": one.ok}
    return {key: value for key, value in shown.items() if key != "kind"}


def published_tables(publications: Sequence[Publication]) -> tuple[Table, Table]:
    """Return the table of figures that must come out, and that of cross-checks."""
    must, may = ([one for found in publications for one in found.figures if one.kind == kind] for kind in ("published", "cross_check"))
    return table(must, "published figures", "come out"), table(may, "cross-checks with others", "hold")


def table(figures: Sequence[Figure], title: str, verb: str) -> Table:
    """Return figures with what comes out and how far it is from what was published."""
    rows = []
    for one in figures:
        off = "" if one.published is None or one.computed is None else f"{(one.computed / one.published - 1) * 100:+.1f} %"
        stated = f"{significant(one.low)}-{significant(one.high)}" if one.published is None else significant(one.published)
        within = "" if one.tolerance is None else f"{one.tolerance * 100:g} %"
        rows.append((one.scenario, one.system, one.metric, one.unit, stated, significant(one.computed), off, within, "" if one.ok else "no"))
    below = [f"{sum(one.ok for one in figures)} of {len(figures)} {verb}."]
    return Table(("scenario", "system", "what", "unit", "published", "computed", "off", "within", ""), rows, title, [], below, "llllrrrrl")
