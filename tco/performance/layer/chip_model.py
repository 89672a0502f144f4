"""Chip model of a serving engine or training job: rates and formats.

`machine` builds the record of a serving engine and `trainer` the record of a training job, both
from the values of the catalogue. Every field may be a number, an array or a traced value, so a
scenario, a trace and measured rows share the same construction.

Parameters stand under `performance`: those of kernels under the chip's family, those of host time
and habits under the engine or `training`, and those of every pass through a layer under `layer`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tco.core.elementwise import elementwise_maximum, exp
from tco.core.errors import refuse_unknown
from tco.core.formula import Known, formula, in_use, select
from tco.core.inputs import Readable
from tco.core.mappings import lists_by_key
from tco.core.types import Quantity
from tco.core.units import Pure, Second
from tco.fabric.links import Latencies, Links, known_of
from tco.performance.chip.formats import (
    FORMATS,
    NARROWEST_CACHE,
    WIDE,
    Computed,
    Structured,
    computed_on,
    element_size,
    plain_weight_format,
)
from tco.performance.chip.gemm import Chip, Operands, Traits, kernels_on, operands
from tco.performance.chip.roofline import (
    exponential_rate,
    power_limited_time,
    repeated,
    usable_memory,
)
from tco.performance.deployment import Deployer
from tco.performance.software_maturity import MEASURED, SoftwareMaturity, reached_time

# owners of parameters, under `performance`
LAYER = "layer"  # of every pass through a layer
ENGINES = "serving"  # of every engine that serves


@formula("s", source="tco-calibration")
def times_as_long(time: Second, factor: Pure) -> Quantity:
    """Time of an operation that takes longer by a factor: t f.

    The factor is that of young software, of a slower engine, or of the way back.
    """
    return time * factor


@formula("", source="tco-calibration")
def maturity(overhead: Pure, decline: Pure, months: Pure) -> Quantity:
    """Gaps and waits of a port m months after the chip's release: 1 + y exp(-r m).

    They are relative to those of a mature port, whose kernels were written for the chip long ago.
    """
    return 1 + overhead * exp(-decline * elementwise_maximum(months, 0))


@formula("", source="tco-calibration")
def port_age(months: Pure, released: Pure, began: Pure, months_of_a_year: Pure = 12) -> Quantity:
    """Age of a port in months, m months after its chip's release: m - max(12 (b - r), 0).

    r is the year of the release. Kernels that were rewritten at a later year b are younger.
    """
    return months - months_of_a_year * elementwise_maximum(began - released, 0)


@formula("")
def age_left(age: Pure, gap: Pure) -> Quantity:
    """Factor a of a port's age where a share g of the gap to the best software remains: a^g."""
    return age**gap


@formula("", source="tco-calibration")
def months_before(
    grown_up: Pure, released: Pure, months: Pure, months_of_a_year: Pure = 12
) -> Quantity:
    """Months from an engine's release to the date of mature engines: a = max(12 (g - r) - m, 0).

    g is the year of mature engines, r the year of the chip's release, and m the months from there
    to the engine's release.
    """
    return elementwise_maximum(months_of_a_year * (grown_up - released) - months, 0)


@formula("", source="tco-calibration")
def older_release(gain: Pure, months: Pure) -> Quantity:
    """Time of a pass relative to a mature engine's, whose release is a months later: 1 + g a."""
    return 1 + gain * months


@formula("", source="aiter-untuned-2026-01")
def untuned_release(
    release: Pure,
    months: Pure,
    released: Pure,
    since: Pure,
    until: Pure,
    factor: Pure,
    months_of_a_year: Pure = 12,
) -> Quantity:
    """Time of a pass relative to that of a tuned release: r f in untuned months, otherwise r.

    The month c = m + 12 y is m months after the chip's release in the year y. It is untuned if
    s <= c < u.
    """
    calendar_month = months + months_of_a_year * released
    return release * select(
        calendar_month >= since, select(calendar_month < until, factor, 1.0), 1.0
    )


@formula("", source="semianalysis-trn3")
def permute_passes(passes: Pure, dereferences: Pure) -> Quantity:
    """Passes that sort tokens by expert: p (1 - d).

    Engines that read tokens through their indices need none (d = 1).
    """
    return passes * (1 - dereferences)


# parameters: how long ranks wait for each other
WAITS = ("collective_wait", "exchange_wait", "network_wait")


class Machine(NamedTuple):
    """One chip of a system at one set of number formats, as a pass through a layer finds it."""

    chip: str
    family: str  # whose kernels it shares
    # of attention projections, dense parts and experts
    formats: tuple[Computed, Computed, Computed]
    operands: tuple[Operands, ...]  # of the same three, and of products in 16 bits
    core: Computed  # format of the products of attention
    kernels: Chip
    bandwidth: Quantity  # byte/s that long streams reach
    row_bandwidth: Quantity  # byte/s that elementwise kernels reach
    exponentials: Quantity  # per second
    memory: Any  # bytes that weights and caches may take
    activation_size: Quantity  # bytes of a number
    cache_size: Quantity  # bytes of a number
    launch: Quantity  # seconds, gap before each kernel of a step
    elementwise: Quantity  # traffic of elementwise kernels over that of the least passes
    # traffic of the kernels between the products of experts, over that of the least passes
    expert_gates: Quantity
    permutes: Quantity  # passes over tokens that sort them by expert
    imbalance: Quantity  # of the experts' load
    # share of a pass's time beyond all known terms; None where it is left out
    unexplained: Quantity | None
    links: Links
    values: Readable  # all inputs by path, for parameters that only some operators read
    wait_times: Known  # times already computed for groups on these links with these waits
    # of an engine that serves
    engine: str = ""  # whose host time and habits it has
    attention_size: Any = None  # bytes of a stored weight
    expert_size: Any = None  # bytes of a stored weight
    dispatch_size: Any = None  # bytes of a number of a token on its way to experts
    overhead: Any = None  # seconds, host time of a step that no kernel hides
    waits: Mapping[str, Any] = {}  # seconds by name of the parameter, of `WAITS`
    expert_factor: Quantity | None = None  # time of the engine's grouped kernels over the best
    whole_factor: Any = None  # the same for experts that are not split between ranks
    # prompts are padded to a multiple of so many tokens; None without padding
    bucket: Quantity | None = None
    # seconds before the weights of an expert arrive; None where kernels fetch them themselves
    expert_start: Quantity | None = None
    # time of a pass over that of a mature engine; None for a mature engine
    release: Quantity | None = None
    # deployment efficiency of chosen plans; None for stated plans and loads
    deployed: Any = None
    # who deploys chosen plans; None for stated plans and loads
    deployer: Deployer | None = None
    # whether deployments of the chip's family and engine run speculative decoding
    drafting: bool = True
    # share of a prompt's exchanges that compute hides; None where it hides none
    exchange_overlap: Any = None
    # of a training job
    gradient_form: Computed | None = None  # of the products that make gradients
    gradients: tuple[Operands, ...] = ()  # in the order of `operands`
    separate_experts: bool = False  # every expert has kernels of its own, which share no waves
    # bytes of a number in the stated format; None where the chip computes in that format
    asked_size: Quantity | None = None

    def counted(self, parameter_name: str) -> Any:
        """Return a parameter of every pass through a layer."""
        return self.values[f"performance.{LAYER}.{parameter_name}"]

    def shared(self, parameter_name: str) -> Any:
        """Return a parameter that all engines share."""
        return self.values[f"performance.{ENGINES}.{parameter_name}"]

    def habit(self, parameter_name: str) -> Any:
        """Return a parameter of the engine."""
        return self.values[f"performance.{self.engine}.{parameter_name}"]

    def within_power(self, size: Any, time: Any, flops: Quantity, bytes_moved: Any) -> Any:
        """Return the time of matrix products under the power limit, in seconds.

        `time` is the time without a limit, and `size` is the bytes of a number. Families whose
        `flop_energy` is zero hold their peaks, and `time` is returned unchanged.
        """
        flop_energy = self.values.unless_zero(f"performance.{self.family}.flop_energy")
        if flop_energy is None:
            return time
        return power_limited_time(
            time,
            flops,
            bytes_moved,
            size,
            self.activation_size,
            flop_energy,
            self.counted("byte_flops"),
            self.kernels.part("tdp"),
        )

    def peak(self, operand_index: int) -> Any:
        """Return the dense peak in FLOP/s of the products of one of the operands."""
        is_wide = operand_index >= len(self.formats)
        form = WIDE_FORM if is_wide else self.formats[operand_index]
        return self.kernels.part(form.peak)


class Stored(NamedTuple):
    """Stored formats of attention, dense and expert weights and caches, and the core's format."""

    attention: str
    dense: str
    experts: str
    cache: str
    core: str = "bf16"


def machine(
    chip: str,
    links: Links,
    input_values: Readable,
    family: str,
    stored: Stored,
    traits: Traits,
    engine: str,
    unexplained: Quantity | None,
    reach: SoftwareMaturity = MEASURED,
    fused_by: str = LAYER,
) -> Machine:
    """Return the chip model of a serving engine on `links`.

    Args:
        chip: Id of the chip.
        links: Rates and latencies of the fabric and the network.
        input_values: Values by input path.
        family: Family whose kernels the chip shares.
        stored: Formats of the weights, the caches and the products of attention.
        traits: Traits of the chip that decide the timing of kernels.
        engine: Id of the engine, whose parameters stand under `performance`.
        unexplained: Share of a pass beyond all known terms, or None.
        reach: Maturity of the software at a date.
        fused_by: Owner of the traffic of elementwise kernels and of the passes over experts'
            tokens: public engines, an engine with rows of its own, or a fleet.

    Raises:
        DataError: A number format is unknown, or the chip has no peak for the format.

    """
    part, engine_path = f"parts.{chip}", f"performance.{engine}"
    formats, core, wide = _computed_formats(input_values, chip, stored)
    kernels = kernels_on(input_values, chip, family, traits, reach)
    passes = reach.parameter(input_values, f"performance.{fused_by}.expert_passes")
    permutes = _permutes_of(input_values, chip, traits, passes)
    elementwise = reach.parameter(input_values, f"performance.{fused_by}.elementwise_traffic")
    factor_names = _expert_factor_names(input_values, part, stored.experts)
    software = _software_times(input_values, chip, family, engine, links, traits, reach)
    on_kernels = _machine_on(kernels, chip, family, (*formats, core, wide))
    memory = usable_memory(
        input_values[f"{part}.hbm_capacity"], input_values[f"{engine_path}.memory_reserve"]
    )
    bare_machine = on_kernels(
        memory=memory,
        activation_size=element_size(WIDE),
        cache_size=element_size(max(FORMATS[stored.cache].bits, NARROWEST_CACHE)),
        launch=software.launch,
        elementwise=elementwise,
        expert_gates=elementwise,
        permutes=permutes,
        imbalance=input_values[f"performance.{LAYER}.expert_imbalance"],
        unexplained=unexplained,
        links=software.links,
        values=input_values,
        wait_times=known_of(software.links, *software.waits),
        engine=engine,
    )
    return _with_engine_habits(bare_machine, stored, factor_names, software, reach)


def _computed_formats(
    input_values: Readable, chip: str, stored: Stored
) -> tuple[tuple[Computed, Computed, Computed], Computed, Computed]:
    """Return the formats of the layers' products, of attention's core, and of 16 bits."""
    # first, so that an unknown format is reported for the input that the others follow by default
    dense = computed_on(input_values, chip, stored.dense, "workload.precision")
    formats = (
        computed_on(input_values, chip, stored.attention, "workload.attention_format"),
        dense,
        computed_on(input_values, chip, stored.experts, "workload.expert_format"),
    )
    refuse_unknown("cache format", [stored.cache], FORMATS, "workload.cache_format")
    core = computed_on(input_values, chip, stored.core, "workload.attention_core_format")
    return formats, core, computed_on(input_values, chip, "bf16", "workload.precision")


def _expert_factor_names(input_values: Readable, part: str, expert_format: str) -> tuple[str, str]:
    """Return the names of an engine's factors of experts, and of experts that are not split."""
    weight_format = plain_weight_format(expert_format)
    # matrix units take the blocks of mxfp8
    has_other_blocks = FORMATS[expert_format].block != FORMATS["mxfp8"].block
    if (
        weight_format == "fp8"
        and has_other_blocks
        and input_values.exists(f"{part}.takes_block_scales")
    ):
        return weight_format, "whole"
    return weight_format, weight_format


def _machine_on(
    kernels: Chip,
    chip: str,
    family: str,
    formats: tuple[Computed, Computed, Computed, Computed, Computed],
) -> Callable[..., Machine]:
    """Return a function that makes a machine on some kernels; it takes the other fields by name.

    `formats` are of attention, dense parts and experts, of attention's core, and of 16 bits.
    """
    attention, dense, experts, core, wide = formats
    return partial(
        Machine,
        chip=chip,
        family=family,
        formats=(attention, dense, experts),
        operands=_operands_of(kernels, (attention, dense, experts, wide)),
        core=core,
        kernels=kernels,
        bandwidth=kernels.bandwidth("stream_efficiency"),
        row_bandwidth=kernels.bandwidth("row_efficiency"),
        exponentials=_exponentials_of(kernels),
    )


def _with_engine_habits(
    machine: Machine,
    stored: Stored,
    factor_names: tuple[str, str],
    software: _SoftwareTimes,
    reach: SoftwareMaturity,
) -> Machine:
    """Return a serving machine with the sizes of its numbers and the habits of its engine."""
    input_values, engine_path = machine.values, f"performance.{machine.engine}"
    expert_factor, whole_factor = (
        f"{engine_path}.expert_factor_{factor_name}" for factor_name in factor_names
    )
    bucket = f"{engine_path}.prompt_bucket"
    is_padded = input_values.decided(operator.gt, bucket, rest=(1,))
    return machine._replace(
        attention_size=element_size(FORMATS[stored.attention].bits),
        expert_size=element_size(FORMATS[stored.experts].bits),
        dispatch_size=element_size(max(FORMATS[stored.dense].bits, NARROWEST_CACHE)),
        expert_factor=reach.parameter(input_values, expert_factor),
        whole_factor=reach.parameter(input_values, whole_factor),
        bucket=input_values[bucket] if is_padded else None,
        exchange_overlap=input_values.unless_zero(f"performance.{machine.family}.exchange_overlap"),
        overhead=software.overhead,
        waits=dict(zip(WAITS, software.waits, strict=True)),
        expert_start=software.expert_start,
        release=software.release,
    )


class _SoftwareTimes(NamedTuple):
    """Times of an engine's software at a date, in seconds, and the links with their latencies."""

    launch: Quantity
    overhead: Quantity  # host time of a step
    waits: list[Quantity]  # in the order of `WAITS`
    expert_start: Quantity | None
    links: Links
    release: Quantity | None  # factor, as in `Machine`


def _software_times(
    input_values: Readable,
    chip: str,
    family: str,
    engine: str,
    links: Links,
    traits: Traits,
    reach: SoftwareMaturity,
) -> _SoftwareTimes:
    """Return the times of software, which shrink as it matures, at the maturity of `reach`."""
    family_path, part = f"performance.{family}", f"parts.{chip}"
    engine_path = f"performance.{engine}"
    expert_start: Quantity | None = None
    if traits.fed:
        transfer_start = input_values[f"{part}.dma_start"]
        expert_start = repeated(transfer_start, input_values[f"{family_path}.expert_reads"])
    time_paths = (
        f"{family_path}.launch_time",
        f"{engine_path}.host_time",
        *(f"{family_path}.{wait_name}" for wait_name in WAITS),
    )
    times = [reach.parameter(input_values, path) for path in time_paths]
    release: Quantity | None = None
    if expert_start is not None and reach.gap is not None:
        # the best software hides all transfers but one
        expert_start = reached_time(expert_start, input_values[f"{part}.dma_start"], reach.gap)
    if reach.months is not None:
        age_factor = _age_factor(input_values, family_path, part, reach, reach.months)
        times = [times_as_long(time, age_factor) for time in times]
        if expert_start is not None:
            expert_start = times_as_long(expert_start, age_factor)
        latencies = [
            None if latency is None else times_as_long(latency, age_factor)
            for latency in links.latencies
        ]
        links = links._replace(latencies=Latencies._make(latencies))
        release = _release_factor(input_values, part, engine_path, reach, reach.months)
    launch, overhead, *waits = times
    return _SoftwareTimes(launch, overhead, waits, expert_start, links, release)


def _age_factor(
    input_values: Readable, family_path: str, part: str, reach: SoftwareMaturity, months: Quantity
) -> Quantity:
    """Return gaps and waits `months` after the chip's release, over those of a mature port."""
    if (began := input_values.unless_zero(f"{family_path}.port_began")) is not None:
        months = port_age(months, input_values[f"{part}.released"], began)
    factor = maturity(
        input_values[f"{family_path}.port_overhead"],
        input_values[f"{family_path}.port_decline"],
        months,
    )
    return factor if reach.gap is None else age_left(factor, reach.gap)


def _release_factor(
    input_values: Readable, part: str, engine_path: str, reach: SoftwareMaturity, months: Quantity
) -> Quantity | None:
    """Return the time of a pass over that of a mature engine; None for a mature engine."""
    release: Quantity | None = None
    if (gain := input_values.unless_zero(f"{engine_path}.release_gain")) is not None:
        release = older_release(
            gain,
            months_before(
                input_values[f"performance.{ENGINES}.grown_up"],
                input_values[f"{part}.released"],
                months,
            ),
        )
    for untuned_period in reach.untuned:
        release = untuned_release(
            1.0 if release is None else release,
            months,
            input_values[f"{part}.released"],
            untuned_period.since,
            untuned_period.until,
            input_values[untuned_period.factor_path],
        )
    return release if release is None or reach.gap is None else age_left(release, reach.gap)


def _exponentials_of(kernels: Chip) -> Quantity:
    return exponential_rate(
        kernels.part("cores"), kernels.part("exponentials_per_clock"), kernels.part("clock"), 1.0
    )


def _permutes_of(input_values: Readable, chip: str, traits: Traits, passes: Quantity) -> Quantity:
    if traits.dereferencing:
        return permute_passes(passes, input_values[f"parts.{chip}.dereferences"])
    return passes


def _operands_of(kernels: Chip, forms: tuple[Computed, ...]) -> tuple[Operands, ...]:
    if in_use() is not None:  # a trace shows the operands of each place by themselves
        return tuple(operands(kernels, form) for form in forms)
    operands_by_form = {form: operands(kernels, form) for form in dict.fromkeys(forms)}
    return tuple(operands_by_form[form] for form in forms)


def model_format_notes(machine: Machine) -> list[str]:
    """Return notes on the model parts computed in a non-native format.

    A note names the stored format, the format of the computation and the parts of the model.
    """
    names = "attention", "dense parts", "experts"
    parts = lists_by_key(
        (form, part_name)
        for form, part_name in zip(machine.formats, names, strict=True)
        if not form.is_native
    )
    format_notes = []
    for form, part_names in parts.items():
        which = "" if len(part_names) == len(machine.formats) else f" ({' and '.join(part_names)})"
        how = ", unpacked by the vector units" if form.unpacked else ""
        format_notes.append(
            f"{machine.chip} does not compute {form.stored}{which}: computed as "
            f"{form.computed_as}{how}"
        )
    return format_notes


# ---------------------------------------------------------------- training
TRAINED = ("mxfp4", "nvfp4", "fp4", "mxfp8", "fp8_block", "fp8", "int8", "bf16")
WIDE_FORM = Computed("bf16", "peak_bf16", unpacked=False)


class Passed(NamedTuple):
    """The number format of a pass: what the workload asks for, and how the chip computes it."""

    stated_format: str
    form: Computed


class Passes(NamedTuple):
    """Number formats of a job: activations and weights forward, and products of gradients."""

    forward: Passed
    backward: Passed


def passes_of(input_values: Structured, chip: str, forward: str, backward: str) -> Passes:
    """Return the computed formats of the forward and backward pass.

    Args:
        input_values: Values by input path.
        chip: Id of the chip.
        forward: Format of activations and weights in the forward pass.
        backward: Format of the products that make gradients.

    Raises:
        DataError: A format is unknown, or the chip has no peak for the format.

    """
    named = {"workload.precision": forward, "workload.backward_precision": backward}
    return Passes(
        *(
            _pass_format(input_values, chip, format_name, path)
            for path, format_name in named.items()
        )
    )


def _pass_format(input_values: Structured, chip: str, requested_format: str, where: str) -> Passed:
    """Return the format in which a chip computes `requested_format`.

    A chip without units for `requested_format` converts it to the next wider format that it has.
    An unknown format raises `DataError`, which names the input path `where`.
    """
    refuse_unknown("precision", [requested_format], TRAINED, where)
    computed_format = computed_on(input_values, chip, requested_format, where)
    if not computed_format.unpacked:
        return Passed(requested_format, computed_format)
    return Passed(
        requested_format,
        WIDE_FORM
        if computed_format.peak == WIDE_FORM.peak
        else Computed("mxfp8", computed_format.peak, unpacked=False),
    )


class KernelComposition(NamedTuple):
    """Kernel structure of a training job: compilation, permutes and separate experts."""

    compiled: bool = False  # whole steps are one program, which knows the memory it needs
    permutes: bool = True  # separate kernels sort tokens by expert
    separate_experts: bool = False


def trainer(
    chip: str,
    family: str,
    input_values: Readable,
    pass_formats: Passes,
    links: Links,
    traits: Traits,
    programs: KernelComposition,
    unexplained: Quantity | None,
    reach: SoftwareMaturity = MEASURED,
) -> Machine:
    """Return the chip model of a training job on `links`.

    Args:
        chip: Id of the chip.
        family: Family whose kernels the chip shares.
        input_values: Values by input path.
        pass_formats: Number formats of the forward and backward pass.
        links: Rates and latencies of the fabric and the network.
        traits: Traits of the chip that decide the timing of kernels.
        programs: Kernel structure of the job.
        unexplained: Share of a pass beyond all known terms, or None.
        reach: Maturity of the software at a date.

    """
    kernels = kernels_on(input_values, chip, family, traits, reach)
    forward, backward = pass_formats.forward, pass_formats.backward
    reserve = "compiled_reserve" if programs.compiled else "memory_reserve"
    gradient_operands = {
        form: operands(kernels, form, kernels.practice("gradient_efficiency"))
        for form in (backward.form, WIDE_FORM)
    }
    permutes: Quantity = 0.0
    if programs.permutes:
        passes = input_values[f"performance.{LAYER}.expert_passes"]
        permutes = _permutes_of(input_values, chip, traits, passes)
    forms = (forward.form, forward.form, forward.form, WIDE_FORM, WIDE_FORM)
    return _machine_on(kernels, chip, family, forms)(
        memory=usable_memory(
            kernels.part("hbm_capacity"), input_values[f"performance.training.{reserve}"]
        ),
        activation_size=element_size(WIDE),
        cache_size=element_size(WIDE),
        launch=kernels.practice("launch_time"),
        elementwise=input_values["performance.training.elementwise_traffic"],
        expert_gates=input_values[f"performance.{LAYER}.elementwise_traffic"],
        permutes=permutes,
        imbalance=input_values[f"performance.{LAYER}.expert_imbalance"],
        unexplained=unexplained,
        links=links,
        values=input_values,
        wait_times=known_of(links),
        gradient_form=backward.form,
        gradients=(*[gradient_operands[backward.form]] * 3, gradient_operands[WIDE_FORM]),
        separate_experts=programs.separate_experts,
        asked_size=None
        if forward.stated_format == forward.form.stored
        else element_size(FORMATS[forward.stated_format].bits),
    )
