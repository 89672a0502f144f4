"""Number formats on a chip: stored bits, computing peak and casts.

A chip computes a format that it does not support as the next wider one. Numbers stay stored in the
narrow format.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tco.core.errors import DataError, refuse_unknown
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import FLOP, Byte, FLOPPerSecond, Pure


class Structured(Protocol):
    """Inputs by path, of which a plan's structure may read whether they exist."""

    def exists(self, path: str) -> bool:
        """Return whether an input is above zero."""


class Format(NamedTuple):
    """A number format: bits per element and per block scale, computing peaks, and activations."""

    element: float  # bits
    peaks: tuple[str, ...]  # attributes of a chip, from the narrowest format to the widest
    scale: float = 0  # bits
    block: int = 1  # elements that share a scale
    # attribute of chips whose matrix units compute these blocks; empty where all units do
    takes: str = ""
    packed: bool = False  # always unpacked to the wider format that computes it
    activations: str = ""  # format of the activations, where it differs from that of the weights
    casts: int = 0  # dependent kernels that cast an activation to the format
    reads: int = 0  # times that these kernels read the activation
    # attribute of chips whose matrix units scale the partial sums of blocks; elsewhere vector units
    # scale them
    scales: str = ""

    @property
    def bits(self) -> float:
        """Bits a number is stored in, with its share of the block's scale."""
        return self.element + self.scale / self.block


FOUR, EIGHT = ("peak_fp4", "peak_fp8", "peak_bf16"), ("peak_fp8", "peak_bf16")
FORMATS = {
    "nvfp4": Format(4, FOUR, 8, 16, takes="takes_nvfp4", casts=1, reads=1),
    "mxfp4": Format(4, FOUR, 8, 32, takes="takes_mx", casts=1, reads=1),
    # blocks of four bits of the chip's own kind
    "fp4": Format(4, FOUR, 8, 16, casts=1, reads=1),
    # weights in MXFP4, activations in MXFP8 or in 16 bits
    "w4a8": Format(4, EIGHT, 8, 32, takes="takes_mx", activations="mxfp8"),
    "w4a16": Format(4, ("peak_bf16",), 8, 32, packed=True),
    "int4": Format(4, ("peak_bf16",), 16, 32, packed=True),
    # one scale per tensor: a kernel more reads the tensor for its largest number
    "fp8": Format(8, EIGHT, casts=3, reads=2),
    # scales of blocks of 1 x 128 activations and 128 x 128 weights
    "fp8_block": Format(8, EIGHT, 32, 128, casts=1, reads=1, scales="takes_block_scales"),
    "mxfp8": Format(8, EIGHT, 8, 32, casts=1, reads=1),
    # one scale per token
    "int8": Format(8, ("peak_int8", "peak_bf16"), casts=1, reads=1),
    "bf16": Format(16, ("peak_bf16",)),
}
# endings of measured efficiencies, by peak
EFFICIENCIES = {"peak_fp4": "fp4", "peak_fp8": "fp8", "peak_int8": "fp8", "peak_bf16": "bf16"}
# endings of parameters of practice of weights, by bits of a number
WIDTHS = {4: "fp4", 8: "fp8", 16: "bf16"}
NARROWEST_CACHE = 8  # bits of caches and of tokens on the wire, at least
WIDE = 16  # bits of activations and of the output head


class Computed(NamedTuple):
    """A format as a chip computes it."""

    stored: str  # a key of FORMATS
    peak: str  # attribute of the chip
    unpacked: bool  # whether software unpacks the stored numbers

    @property
    def computed_as(self) -> str:
        """Name of the format that the peak belongs to."""
        return self.peak.removeprefix("peak_")

    @property
    def activations(self) -> str:
        """Name of the format of the activations beside the weights."""
        if self.unpacked:
            return self.computed_as
        return FORMATS[self.stored].activations or self.stored

    @property
    def efficiency(self) -> str:
        """Ending of the names of the efficiencies at this peak."""
        return EFFICIENCIES[self.peak]

    @property
    def tile_efficiency(self) -> str:
        """Name of the efficiency of tiles: FP4 has one of its own, other formats share one."""
        return "tile_efficiency_fp4" if self.peak == FOUR[0] else "tile_efficiency"

    @property
    def is_native(self) -> bool:
        """Say whether the chip computes the format itself."""
        return not self.unpacked and self.peak == FORMATS[self.stored].peaks[0]


def computed_on(input_values: Structured, chip: str, format_name: str, where: str) -> Computed:
    """Return the peak and conversion with which a chip computes a format.

    Args:
        input_values: Inputs by path, with the peaks of the chip.
        chip: Id of the chip.
        format_name: Name of the format, a key of `FORMATS`.
        where: Input path that the error names for an unknown format.

    Raises:
        DataError: The format is unknown or has no peak on the chip.

    """
    refuse_unknown(where.rpartition(".")[2].replace("_", " "), [format_name], FORMATS, where)
    form, part = FORMATS[format_name], f"parts.{chip}"
    taken = not form.takes or input_values.exists(f"{part}.{form.takes}")
    # FP4 units cannot compute blocks that they do not take
    peaks = [peak for peak in form.peaks if taken or peak != FOUR[0]]
    for peak in peaks:
        if input_values.exists(f"{part}.{peak}"):
            is_native = taken and not form.packed and peak == form.peaks[0]
            return Computed(format_name, peak, not is_native)
    raise DataError(f"{part}: computes none of {', '.join(peaks)}")


@formula("byte", source="ocp-mx")
def element_size(bits: Pure, byte_per_bit: Byte = 0.125) -> Quantity:
    """Bytes of one stored number: b = bits / 8."""
    return bits * byte_per_bit


def plain_weight_format(form: str) -> str:
    """Return the narrowest plain format that is as wide as `form`.

    Parameters of practice of weights in `form` are named after it.
    """
    return WIDTHS[int(FORMATS[form].element)]


@formula("s")
def unpacking_time(
    numbers: Pure, operations: Pure, vector_rate: FLOPPerSecond, flop_per_operation: FLOP = 1
) -> Quantity:
    """Time in which vector units turn stored numbers into the matrix units' format: t = w o / V."""
    return numbers * operations * flop_per_operation / vector_rate
