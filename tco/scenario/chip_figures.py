"""Figures of a chip and of its scale-up domain: peak rates, memory and intensities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tco.catalog import Catalogue
from tco.core.inputs import Values
from tco.core.types import JsonObject
from tco.fabric.collective_costs import lanes_rate
from tco.performance.chip.roofline import machine_balance
from tco.scenario.resolved import ResolvedScenario
from tco.system.bill import device_capacity, domain_peak, joint_capacity

FORMATS = ("bf16", "fp8", "fp4")


@dataclass(slots=True)
class ChipFigures:
    """Figures of a chip and of its scale-up domain by name; None where unknown."""

    chip: JsonObject = field(default_factory=dict)
    domain: JsonObject = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # reasons why figures are unknown


def chip_figures(inputs: ResolvedScenario, input_values: Values) -> ChipFigures:
    """Return the peaks, memory and intensities of a system's chip.

    Args:
        inputs: Scenario with its documents and system.
        input_values: Inputs by path.

    Returns:
        Figures of a chip and sums over its scale-up domain: peaks in FLOP/s by number format, HBM
        capacity in bytes and bandwidth in byte/s. The chip also has intensities in FLOP per byte.
        A figure that cannot be computed is None, and a note names the missing input.

    """
    system = inputs.system
    figures = ChipFigures(domain={"chips": system.chips})
    capacity = _chip_attribute_or_none(
        figures, inputs.catalogue, input_values, system.chip, "hbm_capacity"
    )
    bandwidth = _chip_attribute_or_none(
        figures, inputs.catalogue, input_values, system.chip, "hbm_bandwidth"
    )
    for format_name in FORMATS:
        peak = _chip_attribute_or_none(
            figures, inputs.catalogue, input_values, system.chip, f"peak_{format_name}"
        )
        figures.chip[f"peak_{format_name}_flop_per_s"] = peak
        figures.domain[f"peak_{format_name}_flop_per_s"] = (
            None if peak is None else domain_peak(system.chips, peak)
        )
        figures.chip[f"flop_per_byte_{format_name}"] = (
            machine_balance(peak, bandwidth) if peak and bandwidth else None
        )
        if peak == 0:
            figures.notes.append(
                f"flop_per_byte_{format_name}: {system.chip} computes no {format_name.upper()}"
            )
    figures.chip |= {"hbm_bytes": capacity, "hbm_byte_per_s": bandwidth}
    if capacity is not None and inputs.catalogue.has_part_value(system.chip, "cores_per_device"):
        part = f"parts.{system.chip}"
        figures.chip["logical_device_bytes"] = device_capacity(
            capacity, input_values[f"{part}.cores_per_device"], input_values[f"{part}.cores"]
        )
    figures.domain["hbm_bytes"] = (
        None if capacity is None else joint_capacity(system.chips, capacity)
    )
    figures.domain["hbm_byte_per_s"] = (
        None if bandwidth is None else lanes_rate(system.chips, bandwidth)
    )
    return figures


def _chip_attribute_or_none(
    figures: ChipFigures, catalogue: Catalogue, input_values: Values, chip: str, attribute: str
) -> Any:
    """Return an attribute of the chip; None with a note where it has no value."""
    path = f"parts.{chip}.{attribute}"
    if input_values.has(path) or catalogue.has_part_value(chip, attribute):
        return input_values[path]
    figures.notes.append(f"{path} is missing, so what follows from it is not computed")
    return None
