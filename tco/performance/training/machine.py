"""One chip of a system and its links as a training job finds them: kernels at the clock long products sustain, formats, memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tco.fabric.links import Links
from tco.foundation.errors import unknown
from tco.foundation.values import Readable
from tco.performance.chip.clock import sustained_clock
from tco.performance.chip.formats import Computed, Structured, computed_on
from tco.performance.chip.kernel_times import Traits, kernels_on
from tco.performance.chip.memory import usable_memory
from tco.performance.chip.products import Chip, Operands, operands
from tco.performance.chip.roofline import achieved_rate

TRAINED = ("mxfp4", "nvfp4", "fp4", "mxfp8", "fp8_block", "fp8", "int8", "bf16")
CONVERSIONS = {
    "fp8": "fp8_conversion",
    "int8": "fp8_conversion",
    "fp8_block": "mxfp8_conversion",
    "mxfp8": "mxfp8_conversion",
}  # else that of four bits
WIDE = Computed("bf16", "peak_bf16", unpacked=False)


class Passed(NamedTuple):
    """The number format of a pass: what the workload asks for, and how the chip computes it."""

    asked: str
    form: Computed

    @property
    def conversion(self) -> str | None:
        """Name of the traffic of turning an activation into the format; the wide one needs none."""
        if self.form.stored == WIDE.stored:
            return None
        return CONVERSIONS.get(self.form.stored, "fp4_conversion") if self.form.stored == self.asked else "software_conversion"


class Passes(NamedTuple):
    """The number formats of a job: of activations and weights forward, and of the products that make gradients."""

    forward: Passed
    backward: Passed


def passes_of(values: Structured, chip: str, forward: str, backward: str) -> Passes:
    """Return how a chip computes both passes; an unknown format raises `DataError`."""
    named = {"workload.precision": forward, "workload.backward_precision": backward}
    return Passes(*(passed(values, chip, name, path) for path, name in named.items()))


def passed(values: Structured, chip: str, asked: str, where: str) -> Passed:
    """Return how a chip computes a format: what it has no units for is turned into the next wider format that it has."""
    if asked not in TRAINED:
        raise unknown("precision", asked, TRAINED, where)
    found = computed_on(values, chip, asked, where)
    if not found.unpacked:
        return Passed(asked, found)
    return Passed(asked, WIDE if found.peak == WIDE.peak else Computed("mxfp8", found.peak, unpacked=False))


class Products(NamedTuple):
    """Linear layers in the format of a pass."""

    passed: Passed
    peak: Any  # dense
    made: Operands  # at the clock long products sustain
    conversion: Any  # bytes an activation costs when it is turned into the format; None in BF16


@dataclass(slots=True)
class Practice:
    """One chip of a system and its fabric as a training job finds them."""

    chip: Chip
    forward: Products  # its peak is the denominator of MFU
    backward: Products  # of gradients, the same object where they have the same format
    wide: Products  # of the output head
    bandwidth: Any
    row_bandwidth: Any  # kernels that go row by row
    peak_bandwidth: Any
    launch: Any  # of a kernel
    memory: Any
    links: Links
    host_factor: Any
    communication_cores: Any  # share of the compute cores a collective beside compute takes
    traffic_classes: Any  # one where links let the collectives a chip waits for go before the others
    unexplained: Any = None  # of a step's time, beyond all that the model knows
    dereferences: Any = 0.0  # one where engines read tokens through their indices


def clock_of(chip: Chip, values: Mapping[str, Any]) -> Any:
    """Return the clock a chip sustains over the one its peak is quoted at."""
    exponent = values["performance.training.clock_exponent"]
    return sustained_clock(chip.part("tdp"), chip.part("peak_bf16"), chip.practice("clock_knee"), exponent)


def products(chip: Chip, found: Passed, clock: Any, values: Mapping[str, Any]) -> Products:
    """Return what linear layers rest on in the format of a pass."""
    made = operands(chip, found.form)
    factor = chip.practice("training_factor")
    if found.form.peak == "peak_fp4":
        factor = achieved_rate(factor, chip.practice("training_factor_fp4"))
    slowed = {name: achieved_rate(achieved_rate(value, clock), factor) for name in ("rate", "core") if (value := getattr(made, name)) is not None}
    made = made._replace(**slowed, latency=0.0)  # products of training are large: kernels hide the steps along their inner side
    conversion = values[f"performance.training.{found.conversion}"] if found.conversion else None
    return Products(found, chip.part(found.form.peak), made, conversion)


def practice(chip: str, family: str, values: Readable, found: Passes, links: Links, traits: Traits, compiled: bool = False) -> Practice:
    """Return what the chip and its links reach in training with the formats of both passes; compiled programs know the memory they need."""
    kernels = kernels_on(values, chip, family, traits)
    clock, reserve = clock_of(kernels, values), "compiled_reserve" if compiled else "memory_reserve"
    made = {one: products(kernels, one, clock, values) for one in {*found, Passed(WIDE.stored, WIDE)}}
    return Practice(
        chip=kernels,
        forward=made[found.forward],
        backward=made[found.backward],
        wide=made[Passed(WIDE.stored, WIDE)],
        bandwidth=kernels.bandwidth("stream_efficiency"),
        row_bandwidth=kernels.bandwidth("row_efficiency"),
        peak_bandwidth=kernels.part("hbm_bandwidth"),
        launch=kernels.practice("kernel_launch"),
        memory=usable_memory(kernels.part("hbm_capacity"), values[f"performance.training.{reserve}"]),
        links=links,
        host_factor=kernels.practice("host_factor"),
        communication_cores=kernels.practice("communication_cores"),
        traffic_classes=kernels.part("traffic_classes"),
        unexplained=values.unless_zero(f"performance.{family}.unexplained_training"),
    )
