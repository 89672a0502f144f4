"""Owner, rack and site facts that select a scenario's cost lines.

`holding_of` collects these facts. `needs_sidecar` decides on the line of sidecars.
`standing_cost_of` returns the cost lines that they select, but for energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tco.core.inputs import Values
from tco.cost.cash_flows import RATES
from tco.cost.failures import Failing
from tco.cost.ledger import (
    FLASH_CAPACITY,
    HALL_RATES,
    OBJECT_CAPACITY,
    StandingCost,
    standing_cost,
)
from tco.cost.ownership import (
    BUILT_UP,
    Holding,
    Rebate,
    StorageTiers,
)
from tco.system.bill import Bill
from tco.system.scale_out_network import Network, network_parts

if TYPE_CHECKING:
    from tco.scenario.resolved import ResolvedScenario


SIDECAR = "cdu-sidecar"  # part that moves the heat of a liquid-cooled rack into the hall's air


def needs_sidecar(inputs: ResolvedScenario) -> bool:
    """Say whether liquid-cooled racks are to stand where only air cools."""
    return inputs.text("site.cooling") == "air" and inputs.system.cooling == "liquid"


def holding_of(inputs: ResolvedScenario, input_values: Values) -> Holding:
    """Return the owner, rack and site facts that select cost lines."""
    system, catalogue = inputs.system, inputs.catalogue
    cooling = inputs.text("site.cooling")
    hall = cooling if inputs.states(HALL_RATES[cooling][0], input_values) else None
    battery = any(
        catalogue.has_part_value(part, BATTERY)
        for part, quantity in system.quantity.items()
        if quantity
    )
    design = system.chip if system.owner_pays == BUILT_UP else None
    backup = battery and inputs.states(BACKUP, input_values)
    demand = inputs.states(DEMAND, input_values)
    flash, objects = (
        inputs.states(path, input_values) for path in (FLASH_CAPACITY, OBJECT_CAPACITY)
    )
    quoted = inputs.document_inputs[PEAK].value if PEAK in inputs.document_inputs else None
    rates = frozenset(asset for asset, path in RATES.items() if inputs.states(path, input_values))
    return Holding(
        design,
        network_parts(system),
        hall,
        backup,
        demand,
        quoted,
        StorageTiers(flash=flash, objects=objects),
        rates,
        system.chip,
    )


def standing_cost_of(
    inputs: ResolvedScenario,
    input_values: Values,
    bill: Bill,
    network: Network,
    rebates: Sequence[Rebate] = (),
    broken: Sequence[Failing] = (),
) -> StandingCost:
    """Return the cost of a scenario's world to its owner, without the energy that it draws."""
    return standing_cost(
        input_values,
        bill,
        network,
        rebates,
        inputs.system.chips,
        inputs.text("site.tenure"),
        SIDECAR if needs_sidecar(inputs) else None,
        holding_of(inputs, input_values),
        broken,
    )


BACKUP, DEMAND, PEAK = "site.backup_usd_per_mw", "site.demand_charge", "site.pue_peak"


BATTERY = "backup_time"  # attribute of a part that supplies a rack when the power fails
