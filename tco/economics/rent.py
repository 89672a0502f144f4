"""The cost of a world to somebody who rents it: one line, and nothing that is owned."""

from __future__ import annotations

from typing import Any

from tco.economics.cost import Cost, Ledger, per_chip, power_per_chip, world_power_share
from tco.foundation.formula import formula, total
from tco.foundation.trace import scope
from tco.foundation.units import Chip, HourPerYear, USDPerChipHour
from tco.foundation.values import Values
from tco.hardware.bill import Bill
from tco.hardware.network import Network


@formula(unit="USD/year", source="tco-model")
def yearly_chip_rent(chips: Chip, rent: USDPerChipHour, hours_per_year: HourPerYear = 8760) -> Any:
    """Rent of some chips for every hour of a year, used or not: R = n r x 8,760 h."""
    return chips * rent * hours_per_year


COMMITTED = "committed"
COMMITMENTS = {COMMITTED: "rent", "on-demand": "rent_on_demand", "spot": "rent_spot"}  # of a renter, and what a chip's rent is called for it
CIRCULAR = "tco-circular"  # source of a rent that follows from this program's own cost: nothing is to be held against it


def cost_of_rent(values: Values, bill: Bill, network: Network, rent: str, chips: float, goodput: Any) -> Cost:
    """Return the cost of a world to a renter at a chip's rent; racks and network draw their power all the same, and the rent pays for it."""
    with scope("cost"):
        ledger = Ledger(values, chips)
        hour = ledger.yearly("rent", "rent", yearly_chip_rent, chips, rent)
        network_power = world_power_share(network.power, chips, values["cluster.chips"])
        it_power = total("it_power", [bill.power, network_power])
        power = per_chip(power_per_chip, "it_power", it_power, chips)
        return Cost(ledger.lines, 0.0, 0.0, 0.0, 0.0, it_power, power, 0.0, hour, hour, goodput, values["terms.utilisation"])
