"""The bill of a system without a workload, on the headline's site and terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.catalog.systems import System, load_system
from tco.chain.inputs import system_inputs
from tco.chain.ownership import rebates_of
from tco.economics.perspective import refuse_misfit
from tco.economics.rebates import Rebate
from tco.foundation.errors import DataError
from tco.foundation.values import as_number
from tco.hardware.bill import Bill, bill_of_materials


class SystemBill(NamedTuple):
    """The bill of a system without a workload."""

    system: System
    bill: Bill
    rebates: list[Rebate]
    date: str
    notes: list[str]


def bill_of_system(catalogue: Catalogue, name: str, set: Mapping[str, str], variant: Mapping[str, str]) -> SystemBill:  # noqa: A002
    """Return the bill of a system by its id, on the headline's site and terms."""
    inputs = system_inputs(catalogue, name, set, variant)
    if inputs.system.bare:
        raise without_bill(catalogue, name)
    refuse_misfit(catalogue, inputs.perspective, inputs.system, inputs.owner)
    values = inputs.values(as_number)
    bill = bill_of_materials(inputs.system, values, catalogue, inputs.dies)
    rebates = rebates_of(inputs, values, bill)
    notes = [*inputs.notes, *(f"{path} is set, but this bill does not rest on it" for path in inputs.unused(values))]
    return SystemBill(inputs.system, bill, rebates, inputs.date, notes)


def without_bill(catalogue: Catalogue, chip: str) -> DataError:
    """Return the error for a bill of a chip alone: it names the systems that have one."""
    systems = [name for name in catalogue.ids("systems") if load_system(catalogue, name).chip == chip]
    return DataError(f"{chip} is a chip alone and has no bill; {'systems with it: ' + ', '.join(systems) if systems else 'no system has it'}")
