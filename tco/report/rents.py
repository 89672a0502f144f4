"""Monthly rents of chips beside their cost: answer of `tco rents`."""

from __future__ import annotations

from collections.abc import Container, Sequence

from tco.catalog import Catalogue
from tco.comparison.rents import Rent, chip_prices
from tco.cost.ledger import RENTS as RENT_STATISTICS
from tco.cost.ownership import BUILT_UP
from tco.report.record import Answer, Document, Member, Record
from tco.report.table import Table
from tco.scenario.document import HEADLINE_SYSTEM

ROW = Record(Rent)
OF_CHIP = ROW.only(*(member.key for member in ROW.members if member.key != "chip"))
UPPER_BOUND = RENT_STATISTICS["rent_bound"]
RENTS = Document("rents", Member("rows", [ROW]))


def rents_answer(
    catalogue: Catalogue, rents: Sequence[Rent], settings: Container[str] = ()
) -> Answer:
    """Make a row for each rent.

    Args:
        catalogue: Catalogue of the answer.
        rents: Rents beside costs, in USD per chip-hour.
        settings: Paths of the inputs that were set for the costs.

    """
    latest = list({(rent.chip, rent.statistic, rent.publisher): rent for rent in rents}.values())
    below = [
        "Rent: USD per chip-hour, with power, hall and staff. A list price is what is asked, not "
        "what is paid.",
        "Cost: USD per installed chip-hour at the prices of that month (base case). It is a "
        "cloud's, or the builder's where a chip is not for sale.",
        "Margin: share of the rent left after this cost, if every hour is rented. It is negative "
        "where the rent is below the cost. The cost counts depreciation and the cost of capital "
        "(terms.rate), so that the margin lies below the gross margin in a company's accounts.",
        "Sources: the CSV has their ids and titles; a link is in "
        f"`tco sources show {rents[-1].source}`.",
    ]
    if any(rent.statistic == UPPER_BOUND for rent in latest):
        below.append(
            "Upper bound: nobody states a rent of this chip. What others say of it allows no more "
            "than this; it is no market price."
        )

    def tables() -> list[Table]:
        chips = list(dict.fromkeys(rent.chip for rent in rents))
        if len(chips) == 1:
            earlier = [rent for rent in rents if rent not in latest]
            if f"parts.{chips[0]}.price" not in settings:
                below.extend(_price_lines(catalogue, rents))
            history = [OF_CHIP.table(earlier, f"Earlier rents of {chips[0]}")] if earlier else []
            below.extend(_own_another(catalogue, chips[0]))
            title = f"Rents of {chips[0]}, the latest of each kind"
            return [OF_CHIP.table(latest, title, (), below), *history]
        below.append("The price of a chip counts from its month until a newer price is known.")
        more = f"{len(rents) - len(latest)} earlier rents: tco rents CHIP, or --format csv."
        return [ROW.table(latest, "Rents, the latest of each kind", (), [*below, more])]

    return RENTS.answer(catalogue, {"rows": rents}, tables, (ROW, rents))


def _price_lines(catalogue: Catalogue, rents: Sequence[Rent]) -> list[str]:
    """Say from which month each price of a chip counts, as the cost stands still between them."""
    chip, dates = rents[0].chip, [rent.date for rent in rents]
    prices = chip_prices(catalogue, chip, max(dates))
    if not prices:
        return []
    words = ", ".join(f"{price.value:,.0f} USD from {price.as_of}" for price in prices)
    line = (
        f"Price of {chip} in this cost: {words}. While it holds, only other inputs move the cost."
    )
    if chip_prices(catalogue, chip, min(dates)):
        return [line]
    return [f"{line} Earlier costs use the first price too."]


def _own_another(catalogue: Catalogue, chip: str) -> list[str]:
    """Return the command that compares renting with owning, of a chip that is not for sale."""
    documents = {
        system: catalogue.document("systems", system, "system")[1]
        for system in catalogue.ids("systems")
    }
    systems = [
        system
        for system, document in documents.items()
        if document.get("chip") == chip and document.get("owner_pays") == BUILT_UP
    ]
    command = f"tco compare {HEADLINE_SYSTEM} {{}} --set terms.perspective=on-premises"
    return [f"Rent it, or own a GB200: {command.format(system)}" for system in systems[-1:]]
