"""Monthly rents of chips beside their cost: answer of `tco rents`."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.comparison.rents import Rent
from tco.report.record import Answer, Document, Member, Record

ROW = Record(
    Member("chip", label="chip"),
    Member("statistic", label="what it is"),
    Member("publisher", label="by"),
    Member("date", label="date"),
    Member("usd_per_chip_hour", float, label="rent", unit="USD/chip/h"),
    Member("low", float | None),
    Member("high", float | None),
    Member("cost_usd_per_chip_hour", float | None, label="cost", show=3, unit="USD/chip/h"),
    Member(
        "margin",
        float | None,
        label="margin",
        show=lambda one: "-" if one.margin is None else f"{one.margin:.0%}",
    ),
)
RENTS = Document("rents", Member("rows", [ROW], lambda found: found))


def rents_answer(catalogue: Catalogue, found: Sequence[Rent]) -> Answer:
    """Return a row for each rent.

    Args:
        catalogue: Catalogue of the answer.
        found: Rents beside costs, in USD per chip-hour.

    """
    title = "What chips are let for, USD a chip-hour with all around it"
    below = [
        "cost: ours of an installed chip-hour at the prices of the month, a cloud's (neocloud), of "
        "chips that are not for sale their builder's.",
        "margin: the share of the rent that is left where every hour is paid; a list price is what "
        "is asked, not what is paid.",
    ]
    return RENTS.answer(
        catalogue, found, lambda: [ROW.table(found, title, (), below)], (ROW, found)
    )
