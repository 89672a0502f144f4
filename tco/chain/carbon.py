"""The metrics of greenhouse gas of a scenario: of the grid, of making the chips, and of a million tokens."""

from __future__ import annotations

from typing import Any

from tco.chain.inputs import Inputs
from tco.economics.carbon import carbon_of_chip, carbon_of_tokens, carbon_per_power, embodied_carbon, grid_carbon, logic_area
from tco.economics.cost import Cost
from tco.economics.flows import LIVES, OPERATION
from tco.foundation.formula import total
from tco.foundation.trace import scope
from tco.foundation.values import Values

GRID = "site.grid_carbon"
TOKENS = "output_tokens_per_s_per_chip"


def add_carbon(inputs: Inputs, values: Values, cost: Cost, found: dict[str, Any]) -> None:
    """Add the metrics of gas that can be computed: a site that states no intensity of its grid, or a chip no area of its dies, has none."""
    hours = []
    if inputs.states(GRID, values):
        with scope("metrics", "grid_co2e_g_per_chip_hour"):
            terms = (values[path] for path in ("site.load_factor", "site.pue", GRID))
            hours.append(grid_carbon(cost.it_power_per_chip, *terms))
        found["grid_co2e_g_per_chip_hour"] = hours[-1]
    with scope("metrics", "embodied_co2e_g_per_chip_hour"):
        area = area_of(inputs, values)
        if area is not None:
            hours.append(embodied(inputs, values, cost, area))
            found["embodied_co2e_g_per_chip_hour"] = hours[-1]
    if len(hours) == 2 and TOKENS in found:
        name = "co2e_g_per_million_output_tokens"
        with scope("metrics", name):
            used = cost.goodput, values["terms.utilisation"]
            found[name] = carbon_of_tokens(total("carbon", hours), *used, found[TOKENS])


def area_of(inputs: Inputs, values: Values) -> Any:
    """Return the area of a chip's logic dies, stated or of the dies it is built up from; None where nobody knows it."""
    part, has = f"parts.{inputs.system.chip}", inputs.catalogue.has_part_value
    stated = f"{part}.logic_area"
    if has(inputs.system.chip, "logic_area") or values.has(stated):
        return values[stated]
    return logic_area(values[f"{part}.die_area"], values[f"{part}.dies"]) if has(inputs.system.chip, "die_area") else None


def embodied(inputs: Inputs, values: Values, cost: Cost, area: Any) -> Any:
    """Return the gas of making a chip, its rack and its building a chip-hour; a renter's contract is no life of either."""
    chip = (values["carbon.logic"], values[f"parts.{inputs.system.chip}.hbm_capacity"], values["carbon.memory"], values["carbon.board"])
    lives = ("carbon.life", "carbon.life_building") if inputs.perspective.rents else (OPERATION, LIVES["building"])
    with scope("rack"):
        rack = carbon_per_power(cost.it_power_per_chip, values["carbon.rack"])
    with scope("building"):
        building = carbon_per_power(cost.it_power_per_chip, values["carbon.building"])
    return embodied_carbon(carbon_of_chip(area, *chip), rack, values[lives[0]], building, values[lives[1]])
