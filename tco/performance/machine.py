"""What an accelerator and its fabric reach in practice: rates, latencies and memory, from the catalogue's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tco.catalog import Catalogue
from tco.errors import DataError, unknown
from tco.formula import formula
from tco.performance.links import Links
from tco.performance.memory import usable_memory
from tco.performance.roofline import achieved_bandwidth, achieved_rate
from tco.units import Byte, Pure
from tco.values import Values

# Number formats, narrow to wide: name -> (bits stored per number, attribute of the peak that computes it). A format a chip does
# not compute runs as the next wider one.
FORMATS = {"fp4": (4, "peak_fp4"), "fp8": (8, "peak_fp8"), "bf16": (16, "peak_bf16")}


@formula(unit="byte", source="ocp-mx")
def element_size(bits: Pure, byte_per_bit: Byte = 0.125) -> Any:
    """Bytes of one stored number: b = bits / 8."""
    return bits * byte_per_bit


@dataclass(slots=True)
class Machine:
    """One chip of a system, at one number format."""

    chip: str
    precision: str
    computed_as: str
    compute: Any
    grouped: Any
    attention: Any
    bandwidth: Any
    memory: Any
    launch: Any
    overhead: Any
    expert_imbalance: Any
    weight_size: Any
    activation_size: Any
    cache_size: Any
    links: Links


def family_of(catalogue: Catalogue, chip: str) -> str:
    """Return the family whose practical parameters a chip shares."""
    path, families = catalogue.document("performance", "families", "file")
    if chip not in families:
        raise unknown("chip", chip, families, str(path))
    return str(families[chip])


def computing_format(values: Values, chip: str, precision: str) -> str:
    """Return the narrowest format, not narrower than `precision`, that the chip computes."""
    if precision not in FORMATS:
        raise unknown("precision", precision, FORMATS, "workload.precision")
    names = list(FORMATS)
    for name in names[names.index(precision) :]:
        if values.input(f"parts.{chip}.{FORMATS[name][1]}").value > 0:
            return name
    raise DataError(f"parts.{chip}: computes none of {', '.join(names)}")


def machine(chip: str, links: Links, values: Values, family: str, precision: str) -> Machine:
    """Return what a chip on some links reaches at a number format."""
    prior = f"performance.{family}"
    computed = computing_format(values, chip, precision)
    peak = values[f"parts.{chip}.{FORMATS[computed][1]}"]
    bits = FORMATS[precision][0]
    return Machine(
        chip=chip,
        precision=precision,
        computed_as=computed,
        compute=achieved_rate(peak, values[f"{prior}.gemm_efficiency"]),
        grouped=achieved_rate(peak, values[f"{prior}.grouped_gemm_efficiency"]),
        attention=achieved_rate(values[f"parts.{chip}.peak_bf16"], values[f"{prior}.attention_efficiency"]),
        bandwidth=achieved_bandwidth(values[f"parts.{chip}.hbm_bandwidth"], values[f"{prior}.memory_efficiency"]),
        memory=usable_memory(values[f"parts.{chip}.hbm_capacity"], values[f"{prior}.memory_reserve"]),
        launch=values[f"{prior}.launch_time"],
        overhead=values[f"{prior}.step_overhead"],
        expert_imbalance=values[f"{prior}.expert_imbalance"],
        weight_size=element_size(bits),
        activation_size=element_size(16),
        cache_size=element_size(max(bits, 8)),
        links=links,
    )
