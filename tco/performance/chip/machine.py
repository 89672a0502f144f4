"""What a chip and its links reach in practice: rates by operand, latencies and memory, from the catalogue's values.

Every field may be a number, an array (many chips or formats at once) or a traced value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.fabric.links import Links
from tco.foundation.errors import unknown
from tco.foundation.formula import formula, select
from tco.foundation.units import FLOPPerSecond, Pure
from tco.foundation.values import Values
from tco.performance.chip.formats import FORMATS, NARROWEST_CACHE, WIDE, Computed, computed_on, element_size
from tco.performance.chip.memory import usable_memory
from tco.performance.chip.moe import permute_passes
from tco.performance.chip.roofline import achieved_bandwidth, achieved_rate, exponential_rate


@formula(unit="FLOP/s", source="tco-calibration")
def share_of_rate(rate: FLOPPerSecond, share: Pure) -> Any:
    """Rate of a kind of operator against dense products: P_k = P x share."""
    return rate * share


@formula(unit="", source="semianalysis-trn3")
def device_efficiency(cores_per_device: Pure, cores: Pure, whole_chip: Pure) -> Any:
    """Efficiency of a chip by its logical devices: that of a whole chip where one device has all cores, else 1."""
    return select(cores_per_device >= cores, whole_chip, 1)


def devices_share(values: Mapping[str, Any], chip: str, family: str) -> Any:
    """Return the efficiency of a chip whose cores form logical devices."""
    part = f"parts.{chip}"
    return device_efficiency(values[f"{part}.cores_per_device"], values[f"{part}.cores"], values[f"performance.{family}.whole_chip_efficiency"])


class Array(NamedTuple):
    """Systolic array of a core: rows that sum, in 16 bits and joined for narrow formats, and columns."""

    rows: Any
    joined_rows: Any
    columns: Any
    least_moving: Any  # rows that pass while the next weights load


class Machine(NamedTuple):
    """One chip of a system at one set of number formats."""

    chip: str
    formats: tuple[Computed, ...]  # of attention projections, dense parts and experts; none where every field is an array of chips
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
    exponentials: Any
    vector: Any
    softmax_operations: Any
    exchange_overlap: Any  # share of a prompt's exchanges that compute hides
    links: Links
    unpacking: Any = None  # vector operations a number that software unpacks
    array: Array | None = None  # large systolic arrays; chips with many small cores have none
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


class Traits(NamedTuple):
    """What a chip has that others lack."""

    systolic: bool  # large arrays that small products leave unfilled
    logical: bool  # cores that software groups into logical devices
    dereferencing: bool  # engines that may read tokens through their indices


class Stored(NamedTuple):
    """Formats the weights of attention projections, dense parts and experts are stored in, and the format of caches."""

    attention: str
    dense: str
    experts: str
    cache: str


def machine(chip: str, links: Links, values: Values, family: str, stored: Stored, traits: Traits) -> Machine:
    """Return what a chip on some links reaches with weights in some formats."""
    prior, part = f"performance.{family}", f"parts.{chip}"
    dense = computed_on(values, chip, stored.dense, "workload.precision")
    formats = (
        computed_on(values, chip, stored.attention, "workload.attention_format"),
        dense,
        computed_on(values, chip, stored.experts, "workload.expert_format"),
    )
    if stored.cache not in FORMATS:
        raise unknown("cache format", stored.cache, FORMATS, "workload.cache_format")

    share = devices_share(values, chip, family) if traits.logical else None

    def reached(rate: Any) -> Any:
        return rate if share is None else share_of_rate(rate, share)

    def rate(peak: str, efficiency: str) -> Any:
        return reached(achieved_rate(values[f"{part}.{peak}"], values[f"{prior}.gemm_efficiency_{efficiency}"]))

    rates = [rate(form.peak, form.efficiency) for form in formats]
    wide = rate("peak_bf16", "bf16")
    core = share_of_rate(wide, values[f"{prior}.attention_share"])
    activation = element_size(WIDE)
    permutes = values[f"{prior}.expert_passes"]
    if traits.dereferencing:
        permutes = permute_passes(permutes, values[f"{part}.dereferences"])
    hbm = values[f"{part}.hbm_bandwidth"]
    hbm = hbm if share is None else achieved_bandwidth(hbm, share)
    sizes = [element_size(FORMATS[name].bits) for name in stored[:3]]
    wire = max(FORMATS[stored.dense].bits, NARROWEST_CACHE)
    return Machine(
        chip=chip,
        formats=formats,
        attention_gemm=rates[0],
        dense_gemm=rates[1],
        expert_gemm=share_of_rate(rates[2], values[f"{prior}.grouped_share_{formats[2].efficiency}"]),
        head_gemm=wide,
        core=core,
        index=share_of_rate(core, 2),  # the indexer computes in FP8
        recurrent=share_of_rate(core, values[f"{prior}.recurrent_share"]),
        bandwidth=achieved_bandwidth(hbm, values[f"{prior}.memory_efficiency"]),
        cache_bandwidth=achieved_bandwidth(hbm, values[f"{prior}.cache_efficiency"]),
        memory=usable_memory(values[f"{part}.hbm_capacity"], values[f"{prior}.memory_reserve"]),
        attention_size=sizes[0],
        dense_size=sizes[1],
        expert_size=sizes[2],
        head_size=activation,
        activation_size=activation,
        dispatch_size=element_size(wire),
        cache_size=element_size(max(FORMATS[stored.cache].bits, NARROWEST_CACHE)),
        launch=values[f"{prior}.launch_time"],
        overhead=values[f"{prior}.step_overhead"],
        collective_wait=values[f"{prior}.collective_wait"],
        exchange_wait=values[f"{prior}.exchange_wait"],
        passes=values[f"{prior}.residual_passes"],
        permutes=permutes,
        imbalance=values[f"{prior}.expert_imbalance"],
        expert_engine=1.0,
        exponentials=exponential_rate(values[f"{part}.cores"], values[f"{part}.exponentials_per_clock"], values[f"{part}.clock"], 1.0),
        vector=values[f"{part}.peak_vector"],
        softmax_operations=values[f"{prior}.softmax_operations"],
        exchange_overlap=values[f"{prior}.exchange_overlap"],
        links=links,
        unpacking=values[f"{prior}.unpacking_operations"] if any(form.unpacked for form in formats) else None,
        array=Array(*(values[f"{part}.{name}"] for name in ("array_rows", "mx_array_rows", "array_columns", "array_least_moving")))
        if traits.systolic
        else None,
        family=family,
    )


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
