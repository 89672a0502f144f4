"""What a chip costs its owner when it is built up from wafer, packaging, test and the design partner."""

from __future__ import annotations

from collections.abc import Callable
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
    "wafers_through_partner",
)


@formula(unit="", source="devries2005")
def gross_dies_per_wafer(die_area: SquareMillimetre, wafer_diameter: Millimetre, pi: Pure = np.pi) -> Any:
    """Whole dies on a round wafer: n = pi (d/2)^2 / S - pi d / sqrt(2 S)."""
    return pi * (wafer_diameter / 2) ** 2 / die_area - pi * wafer_diameter / np.sqrt(2 * die_area)


@formula(unit="", source="stapper1983")
def negative_binomial_yield(die_area: SquareMillimetre, defect_density: PerSquareMillimetre, defect_clustering: Pure) -> Any:
    """Share of the dies without a defect where defects come in clusters: y = (1 + D0 S / alpha)^-alpha."""
    return (1 + defect_density * die_area / defect_clustering) ** -defect_clustering


@formula(unit="", source="stapper1983")
def poisson_yield(die_area: SquareMillimetre, defect_density: PerSquareMillimetre) -> Any:
    """Share of the dies without a defect where defects fall anywhere alike: y = exp(-D0 S); the least of the three."""
    return np.exp(-defect_density * die_area)


@formula(unit="", source="murphy1964")
def murphy_yield(die_area: SquareMillimetre, defect_density: PerSquareMillimetre) -> Any:
    """Share of the dies without a defect where their density varies as a triangle around its mean: y = ((1 - exp(-D0 S)) / (D0 S))^2."""
    return (np.expm1(-defect_density * die_area) / (defect_density * die_area)) ** 2


@formula(unit="", source="stapper1983")
def usable_dies(perfect: Pure, recovered_share: Pure) -> Any:
    """Usable share of the dies, those that redundancy recovers among them: y + r (1 - y)."""
    return perfect + recovered_share * (1 - perfect)


@formula(unit="USD", source="tco-model")
def die_cost(wafer_price: USD, gross_dies: Pure, usable_share: Pure) -> Any:
    """Cost of one usable die: c = wafer price / (gross dies x usable share)."""
    return wafer_price / (gross_dies * usable_share)


@formula(unit="USD", source="tco-model")
def chip_cost(
    die: USD,
    dies: Pure,
    packaging_cost: USD,
    substrate_cost: USD,
    test_cost: USD,
    assembly_loss: USD,
    partner_margin: Pure,
    wafers_through_partner: Pure,
) -> Any:
    """Cost of a packaged chip without HBM: c = dies x die (1 + margin t) + (packaging + substrate + test + loss) (1 + margin).

    t is the share of the wafers that the design partner buys: the owner who buys them himself pays its margin on the rest alone.
    """
    made = packaging_cost + substrate_cost + test_cost + assembly_loss
    return dies * die * (1 + partner_margin * wafers_through_partner) + made * (1 + partner_margin)


YIELDS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {  # how defects lie on a wafer: the formula, and what it takes beside the area
    "negative-binomial": (negative_binomial_yield, ("defect_density", "defect_clustering")),
    "murphy": (murphy_yield, ("defect_density",)),
    "poisson": (poisson_yield, ("defect_density",)),
}
USUAL_YIELD = "negative-binomial"


def built_up_price(values: Values, part: str, model: str = USUAL_YIELD) -> Any:
    """Return what chip `part` costs without its HBM, from its wafer up, with one model of its yield."""
    area = values[f"parts.{part}.die_area"]
    gross = gross_dies_per_wafer(area, values[f"parts.{part}.wafer_diameter"])
    perfect, rests_on = YIELDS[model]
    usable = usable_dies(perfect(area, *(values[f"parts.{part}.{name}"] for name in rests_on)), values[f"parts.{part}.recovered_share"])
    die = values.derived(f"parts.{part}.die_cost", "USD", lambda: die_cost(values[f"parts.{part}.wafer_price"], gross, usable))
    rest = (values[f"parts.{part}.{name}"] for name in INPUTS[INPUTS.index("packaging_cost") :])
    return chip_cost(die, values[f"parts.{part}.dies"], *rest)


def inputs_of_silicon(part: str, model: str) -> tuple[str, ...]:
    """Return the paths that the price of a built-up chip rests on."""
    idle = {name for _, names in YIELDS.values() for name in names} - set(YIELDS[model][1])
    return tuple(f"parts.{part}.{name}" for name in INPUTS if name not in idle)
