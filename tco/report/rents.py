"""Monthly rents of chips beside their cost: answer of `tco rents`."""

from __future__ import annotations

from collections.abc import Sequence

from tco.catalog import Catalogue
from tco.comparison.rents import Rent
from tco.report.record import Answer, Document, Member, Record

ROW = Record(Rent)
RENTS = Document("rents", Member("rows", [ROW]))


def rents_answer(catalogue: Catalogue, rents: Sequence[Rent]) -> Answer:
    """Make a row for each rent.

    Args:
        catalogue: Catalogue of the answer.
        rents: Rents beside costs, in USD per chip-hour.

    """
    title = "What chips are let for, USD a chip-hour with all around it"
    below = [
        "cost: ours of an installed chip-hour at the prices of the month, a cloud's (neocloud), of "
        "chips that are not for sale their builder's.",
        "margin: the share of the rent that is left where every hour is paid; a list price is what "
        "is asked, not what is paid.",
    ]
    return RENTS.answer(
        catalogue, {"rows": rents}, lambda: [ROW.table(rents, title, (), below)], (ROW, rents)
    )
