"""What a training job rests on: the machine in practice and the workload, read from the catalogue's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from tco.fabric.links import Route, link_rate, network_of
from tco.foundation.errors import DataError, unknown
from tco.foundation.trace import plain
from tco.models.architecture import Architecture
from tco.performance.chip import formats
from tco.performance.chip.clock import sustained_clock
from tco.performance.chip.formats import element_size
from tco.performance.chip.machine import share_of_rate
from tco.performance.chip.memory import usable_memory
from tco.performance.chip.roofline import achieved_bandwidth, exponential_rate
from tco.performance.training.compute import sustained_rate
from tco.performance.training.traffic import Fabric, Scope, fabric_of


class Format(NamedTuple):
    """A number format of the linear layers: bits of an input with its scales, peak it computes at, and names of its parameters."""

    bits: float
    peak: str
    efficiency: str | None  # relative to BF16
    conversion: str | None  # traffic of turning an activation into it
    grouped: str | None = None  # name of the efficiency of its grouped products, where it differs
    takes: str | None = None  # attribute of chips whose matrix units take the format's blocks as they are; none needs no such units


# Narrow to wide; a format a chip does not compute runs as the next wider one. Parameters of each: rate, conversion, grouped products.
FOUR = ("fp4_efficiency", "fp4_conversion", "fp4_grouped_efficiency")
PARAMETERS: dict[str, tuple[str | None, str | None, str | None]] = {
    "mxfp4": FOUR,
    "nvfp4": FOUR,
    "fp4": FOUR,
    "mxfp8": ("mxfp8_efficiency", "fp8_conversion", None),
    "fp8": ("fp8_efficiency", "fp8_conversion", None),
    "bf16": (None, None, None),
}
FORMATS = {
    name: Format(formats.FORMATS[name].bits, formats.FORMATS[name].peaks[0], *parameters, takes=formats.FORMATS[name].takes or None)
    for name, parameters in PARAMETERS.items()
}
CHOICES = {
    "workload.attention": ("fused", "unfused"),
    "workload.dropout": ("yes", "no"),
    "workload.expert_kernels": ("fused", "separate"),
    "workload.trained": ("all", "adapters"),
}


class Readable(Protocol):
    """Values by path."""

    def __getitem__(self, path: str, /) -> Any:
        """Return the value of a path."""


@dataclass(slots=True)
class Products:
    """Linear layers in the format of a pass."""

    computed_as: str
    peak: Any  # dense
    rate: Any
    grouped: Any  # grouped products of very wide experts
    input_size: Any
    conversion: Any  # bytes an activation costs when it is turned into the format; None in BF16
    expanded: bool = False  # by the matrix units, from the narrower format of the workload


class Precision(NamedTuple):
    """The number formats of a job: of activations and weights forward, and of the products that make gradients."""

    forward: str
    backward: str


@dataclass(slots=True)
class Practice:
    """One chip of a system and its fabric as a training job finds them."""

    forward: Products  # its peak is the denominator of MFU
    backward: Products  # of gradients, the same object where they have the same format
    wide_rate: Any  # products in BF16
    attention: Any
    peak_wide: Any
    exponentials: Any
    bandwidth: Any
    row_bandwidth: Any  # kernels that go row by row
    peak_bandwidth: Any
    memory: Any
    fabric: Fabric
    host_factor: Any
    communication_cores: Any  # share of the compute cores a collective beside compute takes
    traffic_classes: Any  # one where links let the collectives a chip waits for go before the others
    dereferences: Any = 0.0  # one where engines read tokens through their indices


@dataclass(slots=True)
class Job:
    """A model trained on a number of chips."""

    model: Architecture
    chips: Any  # whole numbers
    batch: int  # sequences of a step
    length: int  # tokens of a sequence
    fused: bool
    dropout: bool
    values: Readable
    fused_experts: Any = False  # experts run as few kernels, permutation and exchange inside them
    frozen: bool = False  # the model's weights stay; only small adapters are trained

    def value(self, name: str) -> Any:
        """Return one of the parameters all training runs share."""
        return self.values[f"performance.training.{name}"]

    @property
    def sequences(self) -> Any:
        """Sequences of a step, as the values give them."""
        return self.values["workload.global_batch"]

    @property
    def sequence(self) -> Any:
        """Tokens of a sequence, as the values give them."""
        return self.values["workload.sequence_length"]

    @property
    def wide_size(self) -> Any:
        """Bytes of a number in BF16."""
        return element_size(16)


def whole(values: Readable, path: str) -> int:
    """Return an input that must be a whole number, as plans divide by it."""
    number = float(plain(values[path]))
    if number != int(number):
        raise DataError(f"{path} is {number:g}, expected a whole number: plans divide it")
    return int(number)


def job_of(model: Architecture, texts: dict[str, str], values: Readable) -> Job:
    """Return the job of a workload; `texts` are its inputs that are no numbers."""
    for path, allowed in CHOICES.items():
        if texts[path] not in allowed:
            raise unknown(path, texts[path], allowed)
    chips, batch, length = (whole(values, path) for path in ("cluster.chips", "workload.global_batch", "workload.sequence_length"))
    return Job(
        model,
        chips,
        batch,
        length,
        fused=texts["workload.attention"] == "fused",
        dropout=texts["workload.dropout"] == "yes",
        values=values,
        fused_experts=texts["workload.expert_kernels"] == "fused",
        frozen=texts["workload.trained"] == "adapters",
    )


def computing_format(values: Readable, chip: str, precision: str) -> str:
    """Return the narrowest format, not narrower than `precision`, that the chip computes."""
    names = list(FORMATS)
    for name in names[names.index(precision) :]:
        form = FORMATS[name]
        if name != precision and form.bits <= FORMATS[precision].bits:
            continue  # another format of the same width
        taken = form.takes is None or takes(values, chip, form)
        slower = values[f"parts.{chip}.peak_fp8"] if form.peak == "peak_fp4" else 0.0  # four bits at the rate of eight are computed as eight
        if name == "bf16" or (taken and np.all(plain(values[f"parts.{chip}.{form.peak}"]) > plain(slower))):
            return name
    return "bf16"


def takes(values: Readable, chip: str, form: Format) -> bool:
    """Say whether the matrix units of a chip take the blocks of a format."""
    return form.takes is not None and bool(np.all(plain(values[f"parts.{chip}.{form.takes}"]) > 0))


def practice(chip: str, scopes: Sequence[Scope], values: Readable, family: str, precision: Precision, route: Route | None = None) -> Practice:
    """Return what the chip and its fabric reach in training at a precision, or at the next wider one the chip computes."""
    for path, name in zip(("workload.precision", "workload.backward_precision"), precision, strict=True):
        if name not in FORMATS:
            raise unknown("precision", name, FORMATS, path)
    made = {name: products(name, computing_format(values, chip, name), chip, values, family) for name in precision}
    return practice_in(made[precision.forward], made[precision.backward], chip, scopes, values, family, route)


def products(asked: str, computed: str, chip: str, values: Readable, family: str) -> Products:
    """Return what linear layers reach in a format the chip computes, for inputs in another it may have to convert by software."""
    part, shared, own = f"parts.{chip}", "performance.training", f"performance.{family}"
    form = FORMATS[computed]
    clock = clock_of(part, values, own)
    peak, factor, efficiency = values[f"{part}.{form.peak}"], values[f"{own}.training_factor"], values[f"{shared}.gemm_efficiency"]
    rate = sustained_rate(peak, efficiency, values[f"{shared}.{form.efficiency}"] if form.efficiency else 1.0, clock, factor)
    narrow = FORMATS[asked]
    expanded = form.bits > narrow.bits and takes(values, chip, narrow)  # by the matrix units themselves
    conversion = "software_conversion" if form.conversion and form.bits > narrow.bits and not expanded else form.conversion
    return Products(
        computed_as=computed,
        peak=peak,
        rate=rate,
        grouped=sustained_rate(peak, efficiency, values[f"{shared}.{form.grouped}"], clock, factor) if form.grouped else rate,
        input_size=element_size(narrow.bits if expanded else form.bits),
        conversion=values[f"{shared}.{conversion}"] if conversion else None,
        expanded=expanded,
    )


def clock_of(part: str, values: Readable, own: str) -> Any:
    """Return the clock a chip sustains over the one its peak is quoted at."""
    wide, exponent = values[f"{part}.peak_bf16"], values["performance.training.clock_exponent"]
    return sustained_clock(values[f"{part}.tdp"], wide, values[f"{own}.clock_knee"], exponent)


def practice_in(
    forward: Products, backward: Products, chip: str, scopes: Sequence[Scope], values: Readable, family: str, route: Route | None = None
) -> Practice:
    """Return what the chip and its fabric reach with the products of both passes; without a route a network is as measured ones are."""
    part, shared, own = f"parts.{chip}", "performance.training", f"performance.{family}"
    wide, clock = values[f"{part}.peak_bf16"], clock_of(part, values, own)
    factor, efficiency = values[f"{own}.training_factor"], values[f"{shared}.gemm_efficiency"]
    out, reached, step = values[f"{part}.scale_out_bandwidth"], values[f"{shared}.network_efficiency"], values[f"{shared}.network_latency"]
    network, step = network_of(values, route, out, reached, step) if route else (link_rate(out, reached), step)
    fabric = fabric_of(
        scopes,
        values[f"{shared}.link_efficiency"],
        values[f"{shared}.round_latency"],
        values[f"{own}.hop_latency"],
        network,
        step,
    )
    return Practice(
        forward=forward,
        backward=backward,
        wide_rate=sustained_rate(wide, efficiency, 1.0, clock, factor),
        attention=sustained_rate(wide, values[f"{shared}.attention_efficiency"], 1.0, clock, factor),
        peak_wide=wide,
        exponentials=exponential_rate(values[f"{part}.cores"], values[f"{part}.exponentials_per_clock"], values[f"{part}.clock"], clock),
        bandwidth=achieved_bandwidth(values[f"{part}.hbm_bandwidth"], values[f"{shared}.memory_efficiency"]),
        row_bandwidth=achieved_bandwidth(values[f"{part}.hbm_bandwidth"], values[f"{own}.row_efficiency"]),
        peak_bandwidth=values[f"{part}.hbm_bandwidth"],
        memory=usable_memory(values[f"{part}.hbm_capacity"], values[f"{shared}.memory_reserve"]),
        fabric=fabric,
        host_factor=values[f"{own}.host_factor"],
        communication_cores=values[f"{own}.communication_cores"],
        traffic_classes=values[f"{part}.traffic_classes"],
    )


def of_devices(made: Practice, share: Any) -> Practice:
    """Return what a chip reaches at some share of its rates and bandwidth, as the logical devices its cores form leave it."""

    def slowed(found: Products) -> Products:
        return replace(found, rate=share_of_rate(found.rate, share), grouped=share_of_rate(found.grouped, share))

    forward = slowed(made.forward)
    return replace(
        made,
        forward=forward,
        backward=forward if made.backward is made.forward else slowed(made.backward),
        wide_rate=share_of_rate(made.wide_rate, share),
        attention=share_of_rate(made.attention, share),
        bandwidth=achieved_bandwidth(made.bandwidth, share),
        row_bandwidth=achieved_bandwidth(made.row_bandwidth, share),
    )
