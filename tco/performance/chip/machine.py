"""What a chip and its links reach in practice under a serving engine: kernels, formats, memory, gaps and waits, from the catalogue's values.

One construction for a scenario, a trace and measured rows: every field may be a number, an array or a traced value. Kernels take the
parameters of the kernel file; the engine has those a kernel cannot show, under its own name; what all engines share stands under `serving`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tco.fabric.links import Latencies, Links
from tco.fabric.paces import known_of
from tco.foundation.errors import unknown
from tco.foundation.formula import formula, in_use, select
from tco.foundation.known import Known
from tco.foundation.units import FLOPPerSecond, Pure, Second
from tco.foundation.values import Readable
from tco.performance.chip.formats import FORMATS, NARROWEST_CACHE, WIDE, Computed, computed_on, element_size
from tco.performance.chip.memory import usable_memory
from tco.performance.chip.moe import dependent_reads_time, permute_passes
from tco.performance.chip.products import Chip, Operands, chip_of, operands
from tco.performance.chip.roofline import exponential_rate

SHARED = "serving"  # owner of what every engine has in common


@formula(unit="FLOP/s", source="tco-calibration")
def share_of_rate(rate: FLOPPerSecond, share: Pure) -> Any:
    """Rate of a kind of operator against dense products: P_k = P x share."""
    return rate * share


@formula(unit="", source="semianalysis-trn3")
def device_efficiency(cores_per_device: Pure, cores: Pure, whole_chip: Pure) -> Any:
    """Efficiency of a chip by its logical devices: that of a whole chip where one device has all cores, else 1."""
    return select(cores_per_device >= cores, whole_chip, 1)


@formula(unit="s", source="tco-calibration")
def aged(time: Second, age: Pure) -> Any:
    """A gap or a wait under software of some age: t a."""
    return time * age


@formula(unit="", source="tco-calibration")
def maturity(overhead: Pure, decline: Pure, months: Pure) -> Any:
    """Gaps and waits of a port over those of one that has grown up, m months after the chip's release: 1 + y exp(-r m)."""
    return 1 + overhead * np.exp(-decline * np.maximum(months, 0))


def devices_share(values: Mapping[str, Any], chip: str, family: str) -> Any:
    """Return the efficiency of a chip whose cores form logical devices."""
    part = f"parts.{chip}"
    return device_efficiency(values[f"{part}.cores_per_device"], values[f"{part}.cores"], values[f"performance.{family}.whole_chip_efficiency"])


WEIGHTS = {4: "fp4", 8: "fp8", 16: "bf16"}  # of experts, by the bits of a number
WAITS = ("collective_wait", "exchange_wait", "network_wait")


class Machine(NamedTuple):
    """One chip of a system at one set of number formats, under one engine."""

    chip: str
    family: str  # whose kernels it shares
    engine: str  # whose host time and habits it has
    formats: tuple[Computed, Computed, Computed]  # of attention projections, dense parts and experts
    operands: tuple[Operands, ...]  # of the same, and of products in 16 bits
    core: Computed  # the products of attention
    kernels: Chip
    bandwidth: Any  # that long streams reach
    row_bandwidth: Any  # that elementwise kernels reach
    exponentials: Any
    memory: Any
    attention_size: Any
    expert_size: Any
    activation_size: Any
    dispatch_size: Any
    cache_size: Any
    launch: Any  # gap before each kernel of a step
    overhead: Any  # host time of a step that no kernel hides
    collective_wait: Any
    exchange_wait: Any
    network_wait: Any
    elementwise: Any  # traffic of elementwise kernels over that of the least passes
    permutes: Any
    imbalance: Any
    expert_factor: Any  # time of the engine's grouped kernels over the best
    bucket: Any  # tokens that prompts are padded to a multiple of; None where each has a program of its length
    expert_start: Any  # gap before the weights of one expert arrive; None where kernels fetch them themselves
    exchange_overlap: Any  # share of a prompt's exchanges that compute hides; none where it hides none
    unexplained: Any  # of a pass's time, beyond all that the model knows; none where none is asked for
    links: Links
    values: Readable  # counts and habits that single operators ask for
    known: Known  # of groups on these links that wait as long for each other; with other links it is another

    def shared(self, name: str) -> Any:
        """Return a parameter that all engines share."""
        return self.values[f"performance.{SHARED}.{name}"]

    def habit(self, name: str) -> Any:
        """Return a parameter of the engine."""
        return self.values[f"performance.{self.engine}.{name}"]


class Traits(NamedTuple):
    """What a chip has that others lack."""

    systolic: bool  # large arrays that small products leave unfilled
    logical: bool  # cores that software groups into logical devices
    dereferencing: bool  # engines that may read tokens through their indices
    fed: bool = False  # DMA engines bring what the cores read, experts by descriptors made when tokens have chosen them


class Stored(NamedTuple):
    """Formats the weights of attention projections, dense parts and experts are stored in, of caches, and of the products of attention."""

    attention: str
    dense: str
    experts: str
    cache: str
    core: str = "bf16"


def machine(chip: str, links: Links, values: Readable, family: str, stored: Stored, traits: Traits, engine: str, months: Any = None) -> Machine:
    """Return what a chip on some links reaches with weights in some formats, under an engine.

    `months` is how long after the chip's release its software was written; None stands for mature software.
    """
    prior, part, own, shared = f"performance.{family}", f"parts.{chip}", f"performance.{engine}", f"performance.{SHARED}"
    dense = computed_on(values, chip, stored.dense, "workload.precision")  # first: the others follow it where nobody gives them
    formats = (
        computed_on(values, chip, stored.attention, "workload.attention_format"),
        dense,
        computed_on(values, chip, stored.experts, "workload.expert_format"),
    )
    if stored.cache not in FORMATS:
        raise unknown("cache format", stored.cache, FORMATS, "workload.cache_format")
    core = computed_on(values, chip, stored.core, "workload.attention_core_format")
    wide = computed_on(values, chip, "bf16", "workload.precision")
    share = devices_share(values, chip, family) if traits.logical else None
    kernels = chip_of(values, chip, family, not traits.systolic, share, traits.fed)
    permutes = values[f"{shared}.expert_passes"]
    if traits.dereferencing:
        permutes = permute_passes(permutes, values[f"{part}.dereferences"])
    activation, wire = element_size(WIDE), max(FORMATS[stored.dense].bits, NARROWEST_CACHE)
    expert = dependent_reads_time(values[f"{prior}.expert_reads"], values[f"{part}.dma_start"]) if traits.fed else None
    waits = [values[path] for path in (f"{prior}.launch_time", f"{own}.host_time", *(f"{prior}.{name}" for name in WAITS))]
    if months is not None:
        age = maturity(values[f"{prior}.port_overhead"], values[f"{prior}.port_decline"], months)
        waits = [aged(wait, age) for wait in waits]
        expert = None if expert is None else aged(expert, age)
        links = links._replace(latencies=Latencies(*(None if one is None else aged(one, age) for one in links.latencies)))
    return Machine(
        chip=chip,
        family=family,
        engine=engine,
        formats=formats,
        operands=operands_of(kernels, (*formats, wide)),
        core=core,
        kernels=kernels,
        bandwidth=kernels.bandwidth("stream_efficiency"),
        row_bandwidth=kernels.bandwidth("row_efficiency"),
        exponentials=exponential_rate(values[f"{part}.cores"], values[f"{part}.exponentials_per_clock"], values[f"{part}.clock"], 1.0),
        memory=usable_memory(values[f"{part}.hbm_capacity"], values[f"{own}.memory_reserve"]),
        attention_size=element_size(FORMATS[stored.attention].bits),
        expert_size=element_size(FORMATS[stored.experts].bits),
        activation_size=activation,
        dispatch_size=element_size(wire),
        cache_size=element_size(max(FORMATS[stored.cache].bits, NARROWEST_CACHE)),
        launch=waits[0],
        overhead=waits[1],
        collective_wait=waits[2],
        exchange_wait=waits[3],
        network_wait=waits[4],
        elementwise=values[f"{shared}.elementwise_traffic"],
        permutes=permutes,
        imbalance=values[f"{shared}.expert_imbalance"],
        expert_factor=values[f"{own}.expert_factor_{WEIGHTS[int(FORMATS[stored.experts].element)]}"],
        bucket=values[f"{own}.prompt_bucket"] if values.structure(f"{own}.prompt_bucket") > 1 else None,
        expert_start=expert,
        exchange_overlap=values.unless_zero(f"{prior}.exchange_overlap"),
        unexplained=values.unless_zero(f"{prior}.unexplained_serving"),
        links=links,
        values=values,
        known=known_of(links, *waits[2:]),
    )


def operands_of(kernels: Chip, forms: tuple[Computed, ...]) -> tuple[Operands, ...]:
    """Return what products rest on in each of some formats: once for those that are alike, while a trace is recorded for each by itself."""
    if in_use() is not None:
        return tuple(operands(kernels, form) for form in forms)
    made = {form: operands(kernels, form) for form in dict.fromkeys(forms)}
    return tuple(made[form] for form in forms)


def notes_on(machine: Machine) -> list[str]:
    """Say where a chip computes another format than a part of the model is stored in."""
    parts: dict[Computed, list[str]] = {}
    for name, form in zip(("attention", "dense parts", "experts"), machine.formats, strict=True):
        if not form.own:
            parts.setdefault(form, []).append(name)
    found = []
    for form, names in parts.items():
        which = "" if len(names) == len(machine.formats) else f" ({' and '.join(names)})"
        how = ", unpacked by the vector units" if form.unpacked else ""
        found.append(f"{machine.chip} does not compute {form.stored}{which}: computed as {form.computed_as}{how}")
    return found
