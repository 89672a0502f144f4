"""What a chip costs its owner when it is built up from wafer, packaging, test and the design partner."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.formula import formula
from tco.foundation.units import USD, Millimetre, PerSquareMillimetre, Pure, SquareMillimetre
from tco.foundation.values import Values

INPUTS = (
    "die_area",
    "dies",
    "wafer_price",
    "wafer_diameter",
    "defect_density",
    "defect_clustering",
    "recovered_share",
    "packaging_cost",
    "substrate_cost",
    "test_cost",
    "assembly_loss",
    "partner_margin",
)


@formula(unit="", source="devries2005")
def gross_dies_per_wafer(die_area: SquareMillimetre, wafer_diameter: Millimetre, pi: Pure = np.pi) -> Any:
    """Whole dies on a round wafer: n = pi (d/2)^2 / S - pi d / sqrt(2 S)."""
    return pi * (wafer_diameter / 2) ** 2 / die_area - pi * wafer_diameter / np.sqrt(2 * die_area)


@formula(unit="", source="stapper1983")
def die_yield(die_area: SquareMillimetre, defect_density: PerSquareMillimetre, defect_clustering: Pure, recovered_share: Pure) -> Any:
    """Usable share of the dies: y + r (1 - y), with the negative binomial yield y = (1 + D0 S / alpha)^-alpha."""
    perfect = (1 + defect_density * die_area / defect_clustering) ** -defect_clustering
    return perfect + recovered_share * (1 - perfect)


@formula(unit="USD", source="tco-model")
def die_cost(wafer_price: USD, gross_dies: Pure, usable_share: Pure) -> Any:
    """Cost of one usable die: c = wafer price / (gross dies x usable share)."""
    return wafer_price / (gross_dies * usable_share)


@formula(unit="USD", source="tco-model")
def chip_cost(die: USD, dies: Pure, packaging_cost: USD, substrate_cost: USD, test_cost: USD, assembly_loss: USD, partner_margin: Pure) -> Any:
    """Cost of a packaged chip without HBM: c = (dies x die + packaging + substrate + test + loss) (1 + margin)."""
    return (dies * die + packaging_cost + substrate_cost + test_cost + assembly_loss) * (1 + partner_margin)


def built_up_price(values: Values, part: str) -> Any:
    """Return what chip `part` costs without its HBM, from its wafer up."""
    area = values[f"parts.{part}.die_area"]
    gross = gross_dies_per_wafer(area, values[f"parts.{part}.wafer_diameter"])
    usable = die_yield(
        area,
        values[f"parts.{part}.defect_density"],
        values[f"parts.{part}.defect_clustering"],
        values[f"parts.{part}.recovered_share"],
    )
    die = values.derived(f"parts.{part}.die_cost", "USD", lambda: die_cost(values[f"parts.{part}.wafer_price"], gross, usable))
    rest = (
        values[f"parts.{part}.{name}"]
        for name in INPUTS
        if name in ("packaging_cost", "substrate_cost", "test_cost", "assembly_loss", "partner_margin")
    )
    return chip_cost(die, values[f"parts.{part}.dies"], *rest)
