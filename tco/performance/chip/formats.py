"""Number formats of serving: how many bits are stored, which peak computes them, and whether numbers are unpacked in software first.

A format that a chip does not compute runs as the next wider one; what is stored stays as narrow as it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tco.foundation.errors import DataError, unknown
from tco.foundation.formula import formula
from tco.foundation.units import FLOP, Byte, FLOPPerSecond, Pure
from tco.foundation.values import Values


class Format(NamedTuple):
    """A number format: bits a number takes with its share of the block's scale, the peaks that compute it, narrow to wide."""

    bits: float
    peaks: tuple[str, ...]
    takes: str = ""  # attribute of chips whose matrix units take the format's blocks as they are; none needs no such units
    packed: bool = False  # always unpacked to the wider format that computes it


FORMATS = {
    "nvfp4": Format(4.5, ("peak_fp4", "peak_fp8", "peak_bf16"), "takes_nvfp4"),
    "mxfp4": Format(4.25, ("peak_fp4", "peak_fp8", "peak_bf16"), "takes_mx"),
    "fp4": Format(4.5, ("peak_fp4", "peak_fp8", "peak_bf16")),
    "w4a8": Format(4.25, ("peak_fp8", "peak_bf16"), "takes_mx"),  # weights in MXFP4 beside activations in 8 bits
    "int4": Format(4.5, ("peak_bf16",), packed=True),
    "fp8": Format(8, ("peak_fp8", "peak_bf16")),
    "mxfp8": Format(8.25, ("peak_fp8", "peak_bf16")),
    "int8": Format(8, ("peak_int8", "peak_bf16")),
    "bf16": Format(16, ("peak_bf16",)),
}
EFFICIENCIES = {"peak_fp4": "fp4", "peak_fp8": "fp8", "peak_int8": "fp8", "peak_bf16": "bf16"}  # named after the peaks that have been measured
NARROWEST_CACHE = 8  # bits: caches and tokens on the wire are kept in 8 bits or wider
WIDE = 16  # bits of activations and of the output head


class Computed(NamedTuple):
    """A format on a chip: what it is stored in, the peak that computes it, and whether software unpacks it."""

    stored: str
    peak: str
    unpacked: bool

    @property
    def computed_as(self) -> str:
        """Name of the format that the peak belongs to."""
        return self.peak.removeprefix("peak_")

    @property
    def efficiency(self) -> str:
        """Ending of the names of the peak's efficiencies."""
        return EFFICIENCIES[self.peak]

    @property
    def own(self) -> bool:
        """Say whether the chip computes the format itself."""
        return not self.unpacked and self.peak == FORMATS[self.stored].peaks[0]


def computed_on(values: Values, chip: str, name: str, where: str) -> Computed:
    """Return how a chip computes a format; an unknown one, or one it has no peak for, raises `DataError`."""
    if name not in FORMATS:
        raise unknown(where.rpartition(".")[2].replace("_", " "), name, FORMATS, where)
    form, part = FORMATS[name], f"parts.{chip}"
    taken = not form.takes or values.input(f"{part}.{form.takes}").value > 0
    peaks = [peak for peak in form.peaks if taken or peak != "peak_fp4"]  # FP4 units that do not take these blocks are of no use to them
    for peak in peaks:
        if values.input(f"{part}.{peak}").value > 0:
            own = taken and not form.packed and peak == form.peaks[0]
            return Computed(name, peak, not own)
    raise DataError(f"{part}: computes none of {', '.join(peaks)}")


@formula(unit="byte", source="ocp-mx")
def element_size(bits: Pure, byte_per_bit: Byte = 0.125) -> Any:
    """Bytes of one stored number: b = bits / 8."""
    return bits * byte_per_bit


@formula(unit="s", source="tco-model")
def unpacking_time(numbers: Pure, operations: Pure, vector_rate: FLOPPerSecond, flop_per_operation: FLOP = 1) -> Any:
    """Time the vector units take to turn stored numbers into those the matrix units take: t = w o / V."""
    return numbers * operations * flop_per_operation / vector_rate
