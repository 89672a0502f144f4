"""What a chip and its scale-up domain offer at most, side by side: the figures systems are compared by before any workload runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tco.catalog import Catalogue
from tco.chain.inputs import Inputs
from tco.foundation.values import Values
from tco.hardware.chip import device_capacity, domain_bandwidth, domain_capacity, domain_peak
from tco.performance.chip.roofline import machine_balance

FORMATS = ("bf16", "fp8", "fp4")


@dataclass(slots=True)
class Figures:
    """Figures of one chip, and of all chips of its domain; None where one cannot be computed, with the reason in `notes`."""

    chip: dict[str, Any] = field(default_factory=dict)
    domain: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def figures_of(inputs: Inputs, values: Values) -> Figures:
    """Return the peaks, memory and intensities of a system's chip, and the sums over its scale-up domain."""
    system = inputs.system
    found = Figures(domain={"chips": system.chips})
    capacity = stated(found, inputs.catalogue, values, system.chip, "hbm_capacity")
    bandwidth = stated(found, inputs.catalogue, values, system.chip, "hbm_bandwidth")
    for name in FORMATS:
        peak = stated(found, inputs.catalogue, values, system.chip, f"peak_{name}")
        found.chip[f"peak_{name}_flop_per_s"] = peak
        found.domain[f"peak_{name}_flop_per_s"] = None if peak is None else domain_peak(system.chips, peak)
        found.chip[f"flop_per_byte_{name}"] = machine_balance(peak, bandwidth) if peak and bandwidth else None
        if peak == 0:
            found.notes.append(f"flop_per_byte_{name}: {system.chip} computes no {name.upper()}")
    found.chip |= {"hbm_bytes": capacity, "hbm_byte_per_s": bandwidth}
    if capacity is not None and inputs.catalogue.has_part_value(system.chip, "cores_per_device"):
        part = f"parts.{system.chip}"
        found.chip["logical_device_bytes"] = device_capacity(capacity, values[f"{part}.cores_per_device"], values[f"{part}.cores"])
    found.domain["hbm_bytes"] = None if capacity is None else domain_capacity(system.chips, capacity)
    found.domain["hbm_byte_per_s"] = None if bandwidth is None else domain_bandwidth(system.chips, bandwidth)
    return found


def stated(found: Figures, catalogue: Catalogue, values: Values, chip: str, attribute: str) -> Any:
    """Return an attribute of the chip; one that nobody states is None, and noted."""
    path = f"parts.{chip}.{attribute}"
    if values.has(path) or catalogue.has_part_value(chip, attribute):
        return values[path]
    found.notes.append(f"{path} is missing, so what follows from it is not computed")
    return None
