"""Number formats of kernels, serving and training: stored bits, the computing peak, and casts.

A format that a chip does not compute runs as the next wider one; what is stored stays as narrow as
it is.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tco.catalog import Catalogue
from tco.core.errors import DataError, unknown
from tco.core.formula import formula
from tco.core.memory import once_per_owner
from tco.core.types import Quantity
from tco.core.units import FLOP, Byte, FLOPPerSecond, Pure


@once_per_owner
def families_of(catalogue: Catalogue) -> dict[str, str]:
    """Return the family of every chip, by id.

    A user's own folder names the families of its chips.

    Args:
        catalogue: Holds the data folders with `performance/families.toml`.

    """
    return {
        part: str(family)
        for path in catalogue.folder_files("performance/families.toml")
        for part, family in catalogue.toml(path).items()
    }


def chips_of_family(catalogue: Catalogue, family: str) -> frozenset[str]:
    """Return the chips of a family.

    Args:
        catalogue: Holds the family of every chip.
        family: Name of the family.

    Returns:
        Ids of the chips; empty for an unknown family.

    """
    return frozenset(
        part for part, part_family in families_of(catalogue).items() if part_family == family
    )


def family_of(catalogue: Catalogue, chip: str) -> str:
    """Return the family whose practical parameters a chip shares.

    Args:
        catalogue: Holds the family of every chip.
        chip: Id of the chip.

    Raises:
        DataError: The chip has no family.

    """
    families = families_of(catalogue)
    if chip not in families:
        raise unknown("chip", chip, families, "performance/families.toml")
    return families[chip]


class Structured(Protocol):
    """Values by path that say which of them decide structure."""

    def exists(self, path: str) -> bool:
        """Say whether an input is above zero."""


class Format(NamedTuple):
    """A number format: bits per element and per block scale, computing peaks, and activations."""

    element: float  # bits
    peaks: tuple[str, ...]  # narrow to wide
    scale: float = 0  # bits
    block: int = 1  # elements that share a scale
    # attribute of chips whose matrix units take the format's blocks as they are; none needs no such
    # units
    takes: str = ""
    packed: bool = False  # always unpacked to the wider format that computes it
    activations: str = ""  # format of the activations beside such weights, where it is another
    casts: int = 0  # dependent kernels that cast an activation to it
    reads: int = 0  # times they read the activation
    # attribute of chips whose matrix units apply the scales of blocks of partial sums; elsewhere
    # vector units do
    scales: str = ""

    @property
    def bits(self) -> float:
        """Bits a number is stored in, with its share of the block's scale."""
        return self.element + self.scale / self.block


FOUR, EIGHT = ("peak_fp4", "peak_fp8", "peak_bf16"), ("peak_fp8", "peak_bf16")
FORMATS = {
    "nvfp4": Format(4, FOUR, 8, 16, takes="takes_nvfp4", casts=1, reads=1),
    "mxfp4": Format(4, FOUR, 8, 32, takes="takes_mx", casts=1, reads=1),
    "fp4": Format(
        4, FOUR, 8, 16, casts=1, reads=1
    ),  # the block-scaled four bits of the chip's own kind
    "w4a8": Format(4, EIGHT, 8, 32, takes="takes_mx", activations="mxfp8"),  # weights in MXFP4
    "w4a16": Format(4, ("peak_bf16",), 8, 32, packed=True),  # weights in MXFP4, activations wide
    "int4": Format(4, ("peak_bf16",), 16, 32, packed=True),
    "fp8": Format(
        8, EIGHT, casts=3, reads=2
    ),  # one scale a tensor, read once for its largest number
    "fp8_block": Format(
        8, EIGHT, 32, 128, casts=1, reads=1, scales="takes_block_scales"
    ),  # scales of 1 x 128 activations, 128 x 128 weights
    "mxfp8": Format(8, EIGHT, 8, 32, casts=1, reads=1),
    "int8": Format(8, ("peak_int8", "peak_bf16"), casts=1, reads=1),  # one scale a token
    "bf16": Format(16, ("peak_bf16",)),
}
# named after the peaks that have been measured
EFFICIENCIES = {
    "peak_fp4": "fp4",
    "peak_fp8": "fp8",
    "peak_int8": "fp8",
    "peak_bf16": "bf16",
}
# by the bits of a number, what parameters of practice of weights are named after
WIDTHS = {
    4: "fp4",
    8: "fp8",
    16: "bf16",
}
NARROWEST_CACHE = 8  # bits: caches and tokens on the wire are kept in 8 bits or wider
WIDE = 16  # bits of activations and of the output head


class Computed(NamedTuple):
    """A format on a chip: its stored format, its computing peak, and whether software unpacks."""

    stored: str
    peak: str
    unpacked: bool

    @property
    def computed_as(self) -> str:
        """Name of the format that the peak belongs to."""
        return self.peak.removeprefix("peak_")

    @property
    def activations(self) -> str:
        """Name of the format of the activations beside the weights."""
        return (
            self.computed_as if self.unpacked else FORMATS[self.stored].activations or self.stored
        )

    @property
    def efficiency(self) -> str:
        """Ending of the names of the peak's efficiencies."""
        return EFFICIENCIES[self.peak]

    @property
    def tile_efficiency(self) -> str:
        """Name of the efficiency of its tiles: wide products and those in 8 bits have one."""
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
    if format_name not in FORMATS:
        raise unknown(where.rpartition(".")[2].replace("_", " "), format_name, FORMATS, where)
    form, part = FORMATS[format_name], f"parts.{chip}"
    taken = not form.takes or input_values.exists(f"{part}.{form.takes}")
    # FP4 units that do not take these blocks are of no use to them
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
