"""Bill of a system without a workload, on the site and terms of the headline comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.system_tree import System, load_system
from tco.core.errors import DataError
from tco.core.inputs import Values
from tco.core.provenance import Input
from tco.cost.guards import PartPrice, unguarded_notes
from tco.cost.ownership import Rebate, refuse_misfit
from tco.cost.price_dates import is_dated_price
from tco.scenario.pricing import excess_notes, rebates_on_bill
from tco.scenario.resolve import system_inputs
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.result_notes import range_notes_of_inputs
from tco.system.bill import Bill, BillLine, bill_of_materials


class SystemBill(NamedTuple):
    """Bill of a system without a workload, in USD."""

    system: System
    bill: Bill
    rebates: list[Rebate]
    date: str  # of the prices
    notes: list[str]
    inputs: ResolvedScenario
    unguarded: list[str]  # notes on the parts that no published figure checks


def bill_of_system(
    catalogue: Catalogue,
    system_id: str,
    set: Mapping[str, str],  # noqa: A002 - the name of the option
    variant: Mapping[str, str],
) -> SystemBill:
    """Return the bill of a system on the headline's site and terms.

    Args:
        catalogue: Holds the documents, parts and rows.
        system_id: Id of the system; `ID@key=value,...` names variants.
        set: Values of inputs by path.
        variant: Variants by key; they win over the variants in `system_id`.

    Raises:
        DataError: The id, a variant or an input is unknown, a part has no price or power, or the id
            is of a chip alone.
        UnavailableError: The owner cannot have the system.

    """
    inputs = system_inputs(catalogue, system_id, set, variant)
    if inputs.system.bare:
        raise no_bill_error(catalogue, system_id)
    refuse_misfit(catalogue, inputs.perspective, inputs.system, inputs.owner)
    input_values = inputs.values()
    bill = bill_of_materials(inputs.system, input_values, catalogue, inputs.text("terms.yield"))
    rebates = rebates_on_bill(inputs, input_values, bill)
    part_prices = [
        PartPrice(line.part, float(line.extended or 0.0), _dated_prices(input_values, line))
        for line in bill.lines
    ]
    notes = [
        *inputs.notes,
        *excess_notes(inputs, input_values, rebates),
        *inputs.unused_notes(input_values, "this bill"),
        *range_notes_of_inputs(catalogue, input_values),
    ]
    return SystemBill(
        system=inputs.system,
        bill=bill,
        rebates=rebates,
        date=inputs.date,
        notes=notes,
        inputs=inputs,
        unguarded=unguarded_notes(part_prices),
    )


def _dated_prices(input_values: Values, line: BillLine) -> tuple[Input, ...]:
    """Return the catalogue prices of a line of a bill that move with the date."""
    prices = [input_values.input(path) for path in line.inputs]
    return tuple(price for price in prices if is_dated_price(price))


def no_bill_error(catalogue: Catalogue, chip: str) -> DataError:
    """Return the error for a bill of a chip alone.

    The message names the systems that have the chip and a bill.

    Args:
        catalogue: Holds the systems.
        chip: Id of the chip.

    """
    systems = [
        system_id
        for system_id in catalogue.ids("systems")
        if load_system(catalogue, system_id).chip == chip
    ]
    advice = f"systems with it: {', '.join(systems)}" if systems else "no system has it"
    return DataError(f"{chip} is a chip alone and has no bill; {advice}")
