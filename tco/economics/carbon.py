"""Greenhouse gas beside the cost: what the grid emits for the energy of a chip, and what was emitted to make it. No price is put on it."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import (
    Chip,
    Gram,
    GramPerChipHour,
    GramPerWattHour,
    HourPerYear,
    Pure,
    SecondPerHour,
    TokenPerMillion,
    TokenPerSecondPerChip,
    WattPerChip,
    Year,
)


@formula(unit="g/chip/h", source="tco-model")
def grid_carbon(it_power: WattPerChip, load_factor: Pure, pue: Pure, intensity: GramPerWattHour) -> Any:
    """Gas a grid emits for a chip and calendar hour: g = P x load x PUE x intensity; the average of a year's grid, whatever was bought."""
    return it_power * load_factor * pue * intensity


@formula(unit="g/chip/h", source="tco-model")
def embodied_carbon(made: Gram, life: Year, one_chip: Chip = 1, hours_per_year: HourPerYear = 8760) -> Any:
    """Gas emitted to make a chip with its share of the rack, over the hours of its life: g = m / (n x 8,760 h)."""
    return made / (one_chip * life * hours_per_year)


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
