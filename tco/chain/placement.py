"""Where a system may stand: whether the site takes its rack, and what an air-cooled hall adds to a liquid-cooled one."""

from __future__ import annotations

import numpy as np

from tco.chain.inputs import Inputs
from tco.foundation.errors import DataError
from tco.foundation.values import as_number
from tco.hardware.bill import Bill

SIDECAR = "cdu-sidecar"  # takes the heat of a liquid-cooled rack into the air of the hall


def needs_sidecar(inputs: Inputs) -> bool:
    """Say whether liquid-cooled racks are to stand where only air cools."""
    return inputs.system.cooling == "liquid" and inputs.cooling == "air"


def place(inputs: Inputs, bill: Bill) -> list[str]:
    """Return notes on how the racks of a bill stand in the site; a rack beyond what a position takes raises `DataError`.

    Of many values asked together those beyond are noted, unless all are.
    """
    values = inputs.values(as_number)
    site, system = inputs.scenario.documents["site"], inputs.system
    rack, most = bill.power / system.racks, values.number("site.rack_kw_max")
    inputs.judged |= set(values.inputs)
    over, notes = rack > most * (1 + 1e-9), []
    if np.ndim(over):
        notes = [f"{site}: in {np.mean(over):.1%} of the cases a rack draws more than a position takes"] if np.any(over) else []
        over, rack, most, power = np.all(over), np.mean(rack), np.mean(most), np.mean(bill.power)
    else:
        power = bill.power
    if over:
        raise DataError(
            f"{site}: a rack position takes {most / 1e3:g} kW (site.rack_kw_max), a rack of {system.id} draws "
            f"{power / 1e3:.1f} kW / {system.racks:g} = {rack / 1e3:.1f} kW; take another site or set site.rack_kw_max"
        )
    if not needs_sidecar(inputs):
        return notes
    price = float(np.mean(values.number(f"parts.{SIDECAR}.price_per_power")))
    return [
        *notes,
        f"{site} is cooled by air: each rack of {system.id} takes a liquid-to-air sidecar, {rack / 1e3:.1f} kW at {price * 1e3:,.0f} USD/kW",
    ]
