"""What a chip and its links reach in practice: rates by operand, latencies and memory, from the catalogue's values.

Every field may be a number, an array (many chips or formats at once) or a traced value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.errors import DataError, unknown
from tco.formula import formula
from tco.performance.links import Links
from tco.performance.memory import usable_memory
from tco.performance.roofline import achieved_bandwidth, achieved_rate
from tco.units import Byte, FLOPPerSecond, Pure
from tco.values import Values


class Format(NamedTuple):
    """A number format: bits stored per number with its block scales, and the attributes of chip and family that compute it."""

    bits: float
    peak: str
    efficiency: str


# Narrow to wide. A format that a chip does not compute runs as the next wider one; what is stored stays as narrow as it is.
FORMATS = {
    "nvfp4": Format(4.5, "peak_fp4", "gemm_efficiency_fp4"),
    "mxfp4": Format(4.25, "peak_fp4", "gemm_efficiency_fp4"),
    "fp4": Format(4.5, "peak_fp4", "gemm_efficiency_fp4"),
    "w4a8": Format(4.25, "peak_fp8", "gemm_efficiency_fp8"),
    "int4": Format(4.5, "peak_bf16", "gemm_efficiency_bf16"),
    "fp8": Format(8, "peak_fp8", "gemm_efficiency_fp8"),
    "mxfp8": Format(8.25, "peak_fp8", "gemm_efficiency_fp8"),
    "int8": Format(8, "peak_bf16", "gemm_efficiency_bf16"),
    "bf16": Format(16, "peak_bf16", "gemm_efficiency_bf16"),
}
WIDER = ("peak_fp4", "peak_fp8", "peak_bf16")
NARROWEST_CACHE = 8  # bits: caches are kept in FP8 or wider
WIDE = 16  # bits of activations and of the output head


@formula(unit="byte", source="ocp-mx")
def element_size(bits: Pure, byte_per_bit: Byte = 0.125) -> Any:
    """Bytes of one stored number: b = bits / 8."""
    return bits * byte_per_bit


@formula(unit="FLOP/s", source="tco-calibration")
def share_of_rate(rate: FLOPPerSecond, share: Pure) -> Any:
    """Rate of a kind of operator against dense products: P_k = P x share."""
    return rate * share


@dataclass(slots=True)
class Machine:
    """One chip of a system at one set of number formats."""

    chip: str
    precision: str
    computed_as: str  # the format of the peak that computes it
    attention_gemm: Any
    dense_gemm: Any
    expert_gemm: Any
    head_gemm: Any
    core: Any
    index: Any
    recurrent: Any
    bandwidth: Any
    cache_bandwidth: Any
    memory: Any
    attention_size: Any
    dense_size: Any
    expert_size: Any
    head_size: Any
    activation_size: Any
    dispatch_size: Any
    cache_size: Any
    launch: Any
    overhead: Any
    collective_wait: Any
    exchange_wait: Any
    passes: Any
    permutes: Any
    imbalance: Any
    expert_engine: Any
    links: Links
    family: str = ""  # whose practical parameters it shares; none where every field is an array of chips


def family_of(catalogue: Catalogue, chip: str) -> str:
    """Return the family whose practical parameters a chip shares; a folder of one's own names the families of its chips."""

    def read() -> dict[str, str]:
        paths = [path for folder in catalogue.folders if (path := folder / "performance" / "families.toml").is_file()]
        return {part: str(family) for path in paths for part, family in catalogue.toml(path).items()}

    families: dict[str, str] = catalogue.once("families", read)
    if chip not in families:
        raise unknown("chip", chip, families, "performance/families.toml")
    return families[chip]


def computed_peak(values: Values, chip: str, precision: str) -> str:
    """Return the attribute of the narrowest peak, not narrower than the format's, that the chip has."""
    if precision not in FORMATS:
        raise unknown("precision", precision, FORMATS, "workload.precision")
    first = WIDER.index(FORMATS[precision].peak)
    for name in WIDER[first:]:
        if values.input(f"parts.{chip}.{name}").value > 0:
            return name
    raise DataError(f"parts.{chip}: computes none of {', '.join(WIDER[first:])}")


def machine(chip: str, links: Links, values: Values, family: str, precision: str) -> Machine:
    """Return what a chip on some links reaches at a number format."""
    prior, part = f"performance.{family}", f"parts.{chip}"
    peak = computed_peak(values, chip, precision)
    name = peak.removeprefix("peak_")
    gemm = achieved_rate(values[f"{part}.{peak}"], values[f"{prior}.gemm_efficiency_{name}"])
    wide = achieved_rate(values[f"{part}.peak_bf16"], values[f"{prior}.gemm_efficiency_bf16"])
    core = share_of_rate(wide, values[f"{prior}.attention_share"])
    bits = FORMATS[precision].bits
    stored, activation = element_size(bits), element_size(WIDE)
    hbm = values[f"{part}.hbm_bandwidth"]
    return Machine(
        chip=chip,
        precision=precision,
        computed_as=name,
        attention_gemm=gemm,
        dense_gemm=gemm,
        expert_gemm=share_of_rate(gemm, values[f"{prior}.grouped_share_{name}"]),
        head_gemm=wide,
        core=core,
        index=share_of_rate(core, 2),  # the indexer computes in FP8
        recurrent=share_of_rate(core, values[f"{prior}.recurrent_share"]),
        bandwidth=achieved_bandwidth(hbm, values[f"{prior}.memory_efficiency"]),
        cache_bandwidth=achieved_bandwidth(hbm, values[f"{prior}.cache_efficiency"]),
        memory=usable_memory(values[f"{part}.hbm_capacity"], values[f"{prior}.memory_reserve"]),
        attention_size=stored,
        dense_size=stored,
        expert_size=stored,
        head_size=activation,
        activation_size=activation,
        dispatch_size=element_size(max(bits, NARROWEST_CACHE)),
        cache_size=element_size(max(bits, NARROWEST_CACHE)),
        launch=values[f"{prior}.launch_time"],
        overhead=values[f"{prior}.step_overhead"],
        collective_wait=values[f"{prior}.collective_wait"],
        exchange_wait=values[f"{prior}.exchange_wait"],
        passes=values[f"{prior}.residual_passes"],
        permutes=values[f"{prior}.expert_passes"],
        imbalance=values[f"{prior}.expert_imbalance"],
        expert_engine=1.0,
        links=links,
        family=family,
    )
