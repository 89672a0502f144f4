"""The metrics of greenhouse gas of a scenario: of the grid, of making the chips, and of a million tokens."""

from __future__ import annotations

from typing import Any

from tco.chain.inputs import Inputs
from tco.economics.carbon import carbon_of_tokens, embodied_carbon, grid_carbon
from tco.economics.cost import Cost
from tco.economics.flows import OPERATION
from tco.foundation.formula import total
from tco.foundation.trace import scope
from tco.foundation.values import Values

GRID, MADE = "site.grid_carbon", "embodied_carbon"
TOKENS = "output_tokens_per_s_per_chip"


def add_carbon(inputs: Inputs, values: Values, cost: Cost, found: dict[str, Any]) -> None:
    """Add the metrics of gas that can be computed: a site that states no intensity of its grid, or a chip no gas of its making, has none."""
    part = inputs.system.chip
    hours = []
    if inputs.states(GRID, values):
        with scope("metrics", "grid_co2e_g_per_chip_hour"):
            terms = (values[path] for path in ("site.load_factor", "site.pue", GRID))
            hours.append(grid_carbon(cost.it_power_per_chip, *terms))
        found["grid_co2e_g_per_chip_hour"] = hours[-1]
    if inputs.catalogue.has_part_value(part, MADE) or values.has(f"parts.{part}.{MADE}"):
        with scope("metrics", "embodied_co2e_g_per_chip_hour"):
            hours.append(embodied_carbon(values[f"parts.{part}.{MADE}"], values[OPERATION]))
        found["embodied_co2e_g_per_chip_hour"] = hours[-1]
    if len(hours) == 2 and TOKENS in found:
        name = "co2e_g_per_million_output_tokens"
        with scope("metrics", name):
            used = cost.goodput, values["terms.utilisation"]
            found[name] = carbon_of_tokens(total("carbon", hours), *used, found[TOKENS])
