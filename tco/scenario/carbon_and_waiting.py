"""Metrics beside cost and rate: carbon per chip-hour and per token, and the cost of waiting.

The carbon of a chip-hour is that of the grid's energy, and that embodied in chip, rack and
building, spread over their lives. The cost of waiting counts the months from the scenario's date
until the system is available in volume.
"""

from __future__ import annotations

from tco.core.formula import total
from tco.core.inputs import Values
from tco.core.trace import scope
from tco.core.types import JsonObject, Quantity
from tco.cost.cash_flows import LIVES, OPERATION
from tco.cost.ledger import Cost
from tco.cost.site import (
    carbon_of_chip,
    carbon_of_tokens,
    carbon_per_power,
    embodied_carbon,
    grid_carbon,
    logic_area,
)
from tco.cost.waiting import waiting_cost
from tco.scenario.metrics import METRICS, OUTPUT_RATE
from tco.scenario.resolved import ResolvedScenario

GRID_INTENSITY = "site.grid_carbon"
GRID = "grid_co2e_g_per_chip_hour"
EMBODIED = "embodied_co2e_g_per_chip_hour"
TOKEN_CARBON = "co2e_g_per_million_output_tokens"
WAITING = "waiting_usd_per_chip"


def add_carbon(
    inputs: ResolvedScenario, input_values: Values, cost: Cost, metrics: JsonObject
) -> None:
    """Add the carbon metrics for which the grid's intensity or the area of the dies is known."""
    chip_hour_carbon = []
    if inputs.states(GRID_INTENSITY, input_values):
        with scope("metrics", GRID):
            metrics[GRID] = grid_carbon(
                cost.it_power_per_chip,
                cost.draw,
                input_values["site.pue"],
                input_values[GRID_INTENSITY],
            )
        chip_hour_carbon.append(metrics[GRID])
    with scope("metrics", EMBODIED):
        area = _logic_area_of_chip(inputs, input_values)
        if area is not None:
            metrics[EMBODIED] = _embodied_carbon_of_chip_hour(inputs, input_values, cost, area)
            chip_hour_carbon.append(metrics[EMBODIED])
    if len(chip_hour_carbon) == 2 and OUTPUT_RATE in metrics:
        with scope("metrics", TOKEN_CARBON):
            utilisation = input_values["terms.utilisation"]
            metrics[TOKEN_CARBON] = carbon_of_tokens(
                total("carbon", chip_hour_carbon), cost.goodput, utilisation, metrics[OUTPUT_RATE]
            )


def add_waiting(
    inputs: ResolvedScenario, input_values: Values, cost: Cost, metrics: JsonObject
) -> None:
    """Add the cost of waiting for a system that is not available at the date.

    A system without a dated part has no such cost.
    """
    with scope("metrics", WAITING):
        # None unless the terms make waiting a cost line; a second wait would count that line too
        waiting = cost.waiting_per_chip
        if waiting is None:
            waiting = waiting_cost(
                input_values, inputs.system, cost, inputs.date, inputs.catalogue.has_part_value
            )
        if waiting is not None:
            metrics[WAITING] = input_values.derived(
                f"metrics.{WAITING}", METRICS[WAITING].unit, lambda: waiting
            )


def _logic_area_of_chip(inputs: ResolvedScenario, input_values: Values) -> Quantity | None:
    """Return the area of a chip's logic dies, stated or summed; None where it is unknown."""
    chip, has_part_value = inputs.system.chip, inputs.catalogue.has_part_value
    stated_path = f"parts.{chip}.logic_area"
    if has_part_value(chip, "logic_area") or input_values.has(stated_path):
        stated_area: Quantity = input_values[stated_path]
        return stated_area
    if has_part_value(chip, "die_area"):
        die_area, dies = input_values[f"parts.{chip}.die_area"], input_values[f"parts.{chip}.dies"]
        return logic_area(die_area, dies)
    return None


def _embodied_carbon_of_chip_hour(
    inputs: ResolvedScenario, input_values: Values, cost: Cost, area: Quantity
) -> Quantity:
    """Return the embodied carbon of chip, rack and building per chip-hour.

    The terms of an owner set the lives; the contract of a renter sets neither.
    """
    logic = input_values["carbon.logic"]
    capacity = input_values[f"parts.{inputs.system.chip}.hbm_capacity"]
    memory = input_values["carbon.memory"]
    board = input_values["carbon.board"]
    if inputs.perspective.rents:
        life_path, building_life_path = "carbon.life", "carbon.life_building"
    else:
        life_path, building_life_path = OPERATION, LIVES["building"]
    with scope("rack"):
        rack = carbon_per_power(cost.it_power_per_chip, input_values["carbon.rack"])
    with scope("building"):
        building = carbon_per_power(cost.it_power_per_chip, input_values["carbon.building"])
    chip = carbon_of_chip(area, logic, capacity, memory, board)
    life, building_life = input_values[life_path], input_values[building_life_path]
    return embodied_carbon(chip, rack, life, building, building_life)
