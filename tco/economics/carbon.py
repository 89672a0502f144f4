"""Greenhouse gas beside the cost: what the grid emits for the energy of a chip, and what was emitted to make it. No price is put on it."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import (
    Byte,
    Chip,
    Gram,
    GramPerByte,
    GramPerChip,
    GramPerChipHour,
    GramPerSquareMillimetre,
    GramPerWatt,
    GramPerWattHour,
    HourPerYear,
    Pure,
    SecondPerHour,
    SquareMillimetre,
    TokenPerMillion,
    TokenPerSecondPerChip,
    WattPerChip,
    Year,
)


@formula(unit="g/chip/h", source="tco-model")
def grid_carbon(it_power: WattPerChip, load_factor: Pure, pue: Pure, intensity: GramPerWattHour) -> Any:
    """Gas a grid emits for a chip and calendar hour: g = P x load x PUE x intensity; the average of a year's grid, whatever was bought."""
    return it_power * load_factor * pue * intensity


@formula(unit="mm^2", source="tco-model")
def logic_area(die_area: SquareMillimetre, dies: Pure) -> Any:
    """Area of the logic dies of a package: A = a n."""
    return die_area * dies


@formula(unit="g", source="tco-model")
def carbon_of_chip(area: SquareMillimetre, logic: GramPerSquareMillimetre, capacity: Byte, memory: GramPerByte, board: Gram) -> Any:
    """Gas emitted to make a chip on its board: m = A f_logic + C f_memory + b."""
    return area * logic + capacity * memory + board


@formula(unit="g/chip", source="tco-model")
def carbon_per_power(it_power: WattPerChip, factor: GramPerWatt) -> Any:
    """Gas emitted to make what stands around a chip, by its power: m = P f."""
    return it_power * factor


@formula(unit="g/chip/h", source="tco-model")
def embodied_carbon(
    made: Gram, rack: GramPerChip, life: Year, building: GramPerChip, life_building: Year, one_chip: Chip = 1, hours_per_year: HourPerYear = 8760
) -> Any:
    """Gas of making a chip, its share of the rack and of the building, over the hours each serves: g = ((m + m_r) / n + m_b / n_b) / 8,760 h."""
    return ((made / one_chip + rack) / life + building / life_building) / hours_per_year


@formula(unit="g/Mtoken", source="tco-model")
def carbon_of_tokens(
    hour: GramPerChipHour,
    goodput: Pure,
    utilisation: Pure,
    rate: TokenPerSecondPerChip,
    seconds_per_hour: SecondPerHour = 3600,
    tokens_per_million: TokenPerMillion = 1e6,
) -> Any:
    """Gas for a million output tokens: g / (goodput x utilisation x 3,600 x tokens per second and chip) x 1e6; idle hours count."""
    return hour / (goodput * utilisation * rate * seconds_per_hour) * tokens_per_million
