"""Rents of chips by statistic and month, beside their cost per chip-hour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tco.catalog.rows import CatalogueRow, live, to_input
from tco.catalog.rows import attribute as attribute_of
from tco.core.columns import Column
from tco.core.errors import DataError, unknown
from tco.core.provenance import Input, period
from tco.core.types import TextMapping
from tco.cost.ledger import RENTS
from tco.evaluation.evaluation import catalogue_for

if TYPE_CHECKING:
    from tco.catalog import Catalogue


class Rent(NamedTuple):
    """A rent of a chip at a month, and what the chip costs its owner then."""

    chip: Annotated[str, Column("chip")]
    statistic: Annotated[str, Column("kind of price")]
    publisher: Annotated[str, Column("publisher")]
    date: Annotated[str, Column("date")]
    usd_per_chip_hour: Annotated[float, Column("rent, USD", "{:.2f}", unit="USD/chip/h")]
    low: float | None
    high: float | None
    cost_usd_per_chip_hour: Annotated[
        float | None, Column("cost, USD", "{:.2f}", unit="USD/chip/h")
    ]
    # share of the rent that is left
    margin: Annotated[
        float | None,
        Column(
            "margin, %", lambda rent: "-" if rent.margin is None else f"{rent.margin * 100:.0f}"
        ),
    ]
    source: str  # id
    source_title: str


def rents_of(
    chip_or_system: str | None, data_folder: Path | None, settings: TextMapping
) -> tuple[Catalogue, list[Rent]]:
    """Return the rents of a chip or of all chips.

    Args:
        chip_or_system: Id of a chip or its first words, or id of a system; None for all chips.
        data_folder: Folder of a person's own data.
        settings: Values by input path, for the cost of a chip-hour.

    Returns:
        The catalogue, and rents in USD per chip-hour in the order of chip, statistic and date.

    Raises:
        DataError: The chip has no rent, or the name may mean several chips.

    """
    catalogue = catalogue_for(None, data_folder)
    chips = sorted(
        {chip for chip, rent_attribute in catalogue.part_rows if rent_attribute in RENTS}
    )
    if chip_or_system is not None:
        chips = [_chip_with_rent(catalogue, chip_or_system, chips)]
    rents = [rent for chip in chips for rent in _chip_rents(catalogue, chip, settings)]
    return catalogue, rents


def _chip_with_rent(catalogue: Catalogue, chip_or_system: str, chips: Sequence[str]) -> str:
    """Return the one of `chips` that a name means; any other name raises `DataError`.

    The first words of an id stand for it, such as `h100` for `h100-sxm`.
    """
    name = chip_or_system.lower()
    if name in catalogue.ids("systems"):
        name = str(catalogue.document("systems", name, "system")[1]["chip"])
    if name in chips:
        return name
    meant = [chip for chip in chips if chip.startswith(f"{name}-")]
    if len(meant) > 1:
        commands = " or ".join(f"tco rents {chip}" for chip in meant)
        raise DataError(f"{chip_or_system!r} may mean several chips; try {commands}")
    if not meant:
        raise unknown("chip with a rent", chip_or_system, chips)
    return meant[0]


def _chip_rents(catalogue: Catalogue, chip: str, settings: TextMapping) -> list[Rent]:
    """Return every rent of a chip, by statistic and date."""
    costs: dict[str, float | None] = {}
    rents = []
    for rent_attribute in RENTS:
        rent_rows: Sequence[CatalogueRow] = catalogue.part_rows.get((chip, rent_attribute), [])
        path = f"parts.{chip}.{rent_attribute}"
        for rent_row in (
            sorted(live(rent_rows, True, path), key=lambda rent_row: rent_row.begins)
            if rent_rows
            else ()
        ):
            rent_input = to_input(
                rent_row, path, attribute_of("parts", rent_attribute, rent_row.where)
            )
            if rent_input.as_of not in costs:
                costs[rent_input.as_of] = _supplier_chip_hour_cost(
                    catalogue, chip, {**settings, "terms.date": rent_input.as_of}
                )
            cost = costs[rent_input.as_of]
            margin = (
                None if cost is None or not rent_input.value else 1 - cost / float(rent_input.value)
            )
            rent_fields = (
                chip,
                RENTS[rent_attribute],
                catalogue.publisher(rent_input.source),
                rent_input.as_of,
                float(rent_input.value),
                rent_input.low,
                rent_input.high,
            )
            source = rent_input.source
            rents.append(Rent(*rent_fields, cost, margin, source, catalogue.source_title(source)))
    return rents


def chip_prices(catalogue: Catalogue, chip: str, until: str) -> list[Input]:
    """Return the prices of a chip that begin by a month, the oldest first, USD.

    Args:
        catalogue: Catalogue of the prices.
        chip: Id of the chip.
        until: Last month, such as `2026-08`.

    """
    path = f"parts.{chip}.price"
    price_rows: Sequence[CatalogueRow] = catalogue.part_rows.get((chip, "price"), [])
    last_day = period(until).last
    dated_rows = sorted(
        live(price_rows, True, path) if price_rows else [], key=lambda price_row: price_row.begins
    )
    return [
        to_input(price_row, path, attribute_of("parts", "price", price_row.where))
        for price_row in dated_rows
        if price_row.begins <= last_day
    ]


def _supplier_chip_hour_cost(
    catalogue: Catalogue, chip: str, settings: TextMapping
) -> float | None:
    """Return the supplier's cost per chip-hour, USD; None without a price.

    The supplier is a cloud. A chip that only its builder may buy has the builder as supplier.
    """
    from tco.scenario.evaluate import evaluate

    for system_name in catalogue.ids("systems"):
        _, document = catalogue.document("systems", system_name, "system")
        if document.get("chip") == chip:
            whose = "hyperscaler" if document.get("owner_pays") == "built-up" else "neocloud"
            try:
                supplier_result = evaluate(
                    system_name,
                    {"terms.perspective": whose, **settings},
                    catalogue=catalogue,
                    refuse=False,
                    workload=False,
                )
            except DataError:
                return None  # a date before its prices
            cost: float | None = supplier_result.metrics["tco_usd_per_chip_hour"]
            return cost
    return None
