"""Where a system may stand: whether the site takes its rack, and what an air-cooled hall adds to a liquid-cooled one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tco.foundation.dates import period
from tco.foundation.errors import UnavailableError
from tco.foundation.values import Values, as_number
from tco.hardware.bill import Bill

if TYPE_CHECKING:
    from tco.chain.inputs import Inputs

SITE_POWER = "site.power"  # what the grid gives a site that is to be filled
SIDECAR = "cdu-sidecar"  # takes the heat of a liquid-cooled rack into the air of the hall


def needs_sidecar(inputs: Inputs) -> bool:
    """Say whether liquid-cooled racks are to stand where only air cools."""
    return inputs.system.cooling == "liquid" and inputs.cooling == "air"


class MisfitError(UnavailableError):
    """A rack that draws more than a position of the site takes."""


def place(inputs: Inputs, bill: Bill) -> list[str]:
    """Return notes on how the racks of a bill stand in the site; a rack beyond what a position takes raises `MisfitError`.

    Where several worlds share a rack, as many stand in one as its position takes. Of many values asked together those beyond are noted,
    unless all are.
    """
    values = inputs.values(as_number)
    site, system = inputs.scenario.documents["site"], inputs.system
    rack, most = bill.power / system.racks, values.number("site.rack_kw_max")
    inputs.judged |= set(values.inputs)
    over, notes = rack > most * (1 + 1e-9), not_ready(inputs)
    power = bill.power
    if np.ndim(over):
        if np.any(over):
            notes.append(f"{site}: in {np.mean(over):.1%} of the cases a rack draws more than a position takes")
        over, rack, most, power = np.all(over), np.mean(rack), np.mean(most), np.mean(power)
    if over:
        fit = worlds_in_a_rack(most, power, system.racks)
        if fit < 1:
            raise MisfitError(
                f"{site}: a rack position takes {most / 1e3:g} kW (site.rack_kw_max), a rack of {system.id} draws "
                f"{power / 1e3:.1f} kW / {system.racks:g} = {rack / 1e3:.1f} kW; take another site or set site.rack_kw_max"
            )
        notes.append(
            f"{site}: a rack position takes {most / 1e3:g} kW, so {fit} of {system.id} stand in a rack where {1 / system.racks:g} would draw "
            f"{rack / 1e3:.1f} kW; what a rack itself holds is priced as if it were full{told_apart(inputs, 1 / fit)}"
        )
        rack = fit * power
    if not needs_sidecar(inputs):
        return notes
    price = float(np.mean(values.number(f"parts.{SIDECAR}.price_per_power")))
    share, left = (float(np.mean(values.number(f"parts.{SIDECAR}.{name}"))) for name in ("power_share", "hall_share"))
    cooler = (
        f"each rack of {system.id} takes a liquid-to-air sidecar, {rack / 1e3:.1f} kW at {price * 1e3:,.0f} USD/kW, "
        f"which draws {share:.0%} more and leaves {left:.0%} of the hall"
    )
    return [*notes, f"{site} is cooled by air: {cooler}"]


def told_apart(inputs: Inputs, racks: float) -> str:
    """Return which variant of the system prices racks as they stand, if one does."""
    _, document = inputs.catalogue.document("systems", inputs.system.id, "system")
    for key, branches in document.get("variants", {}).items():
        for value, branch in branches.items():
            if isinstance(branch, dict) and math.isclose(branch.get("racks", 0), racks):
                return f"; {key}={value} prices it as it stands"
    return ""


def not_ready(inputs: Inputs) -> list[str]:
    """Return a note where a site opens after the date of the prices."""
    ready = inputs.texts.get("site.ready")
    if ready is None or period(ready, "site.ready").first <= period(inputs.date).last:
        return []
    return [f"{inputs.scenario.documents['site']} is ready from {ready}, after the date of the prices, {inputs.date}"]


def beyond_a_position(values: Values, bill: Bill, racks: float) -> Any:
    """Say whether a rack draws more than a position of the site takes, of worlds that share a rack if a single one does: as `place` refuses it."""
    most = values.number("site.rack_kw_max")
    over = bill.power / racks > most * (1 + 1e-9)
    return over & (most / bill.power * (1 + 1e-9) < 1) if racks < 1 else over


def worlds_in_a_rack(most: float, power: float, racks: float) -> int:
    """Return how many worlds of some power a rack position takes, of those that share a rack by design; none of one that spans racks."""
    return min(math.floor(most / power * (1 + 1e-9)), math.floor(1 / racks + 1e-9)) if racks < 1 else 0
