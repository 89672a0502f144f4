"""One kernel or collective with its bound, and the operators of a phase against their bounds.

A kernel: its time, what it consists of, how it is cut, its bound. A collective: every algorithm of
a fabric over a range of sizes, with times, their parts, and rates as nccl-tests counts them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from tco.catalog import Catalogue
from tco.core.errors import DataError, UsageError, refuse_unknown
from tco.core.inputs import Values
from tco.core.types import JsonMapping, JsonObject, is_whole_number
from tco.fabric.collective_costs import algorithm_bandwidth, bus_factor
from tco.fabric.collective_times import AlgorithmTiming
from tco.fabric.collectives import (
    algorithm_named,
    algorithms_for,
    reach,
    timings_of_available,
    with_caller_overhead,
)
from tco.fabric.expert_exchange import Tokens, reported_bytes
from tco.fabric.libraries import EXCHANGES
from tco.fabric.links import Links, RankGroup
from tco.performance.chip.engine_corrections import Correction, asked_correction, is_of_engine
from tco.performance.chip.families import family_of
from tco.performance.chip.formats import Computed, computed_on
from tco.performance.chip.gemm import Tiling, operands, tiling, traits_of
from tco.performance.chip.kernel_times import BARE, SHAPES, KernelTime, chip_on, kernel_timing
from tco.performance.layer.chip_model import WAITS
from tco.performance.layer.operators import waited_for
from tco.scenario.metrics import METRICS
from tco.scenario.result import Result

# what the time of an algorithm consists of
PARTS = (
    "call",
    "start",
    "ends",
    "steps",
    "reduction",
    "wire",
    "chunks",
)
PASSES = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}


def bus_bandwidth(operation: str, ranks: int, size: float, seconds: float) -> float:
    """Return the bus bandwidth in GB/s as nccl-tests defines it."""
    factor = float(bus_factor(ranks, PASSES[operation])) if operation in PASSES else 1.0
    return factor * float(algorithm_bandwidth(size, seconds)) / 1e9


class Measured(NamedTuple):
    """One algorithm at one size: its time and the parts of it, in microseconds, and its rates."""

    size: float
    algorithm: str
    time_us: float
    rate: float
    bus: float
    chosen: bool
    offered: bool  # by the library
    parts: dict[str, float]


def _collective_time_breakdown(timing: AlgorithmTiming, ends: float) -> dict[str, float]:
    """Return the parts of a collective's time, in microseconds, by name.

    The engine counts trips to memory as a part of the start. The breakdown lists them apart from
    the start.
    """
    start, stepping, latency, wire, time, call = (
        float(timing_value) * 1e6
        for timing_value in (
            timing.start,
            timing.stepping,
            timing.latency,
            timing.wire,
            timing.time,
            timing.call,
        )
    )
    ends *= 1e6
    parts = (
        call,
        start - ends,
        ends,
        stepping - start,
        latency - stepping,
        wire,
        time - latency - wire - call,
    )
    return {
        part_name: max(0.0, round(part, 9)) for part_name, part in zip(PARTS, parts, strict=True)
    }


def candidate_rows(
    links: Links,
    operation: str,
    group: RankGroup,
    size: float | Tokens,
    algorithm: str | None = None,
) -> list[Measured]:
    """Return the timed algorithms of a collective, the chosen algorithm first.

    The chosen algorithm is `algorithm`, or else the quickest that the library offers. The library's
    other algorithms follow, then the fabric's algorithms that the library does not offer. Both
    parts are sorted by time.

    Args:
        links: Rates and latencies of the fabric and the network.
        operation: Name of the collective, such as `all-reduce`.
        group: Ranks of the collective and the domains they stand in.
        size: Bytes of the whole buffer; in expert exchanges the tokens of a rank.
        algorithm: Name of the algorithm to choose; None chooses the quickest.

    Returns:
        Rows with sizes in bytes, times in microseconds and rates in GB/s.

    Raises:
        DataError: The operation or algorithm is unknown, or not offered by the library.

    """
    group_links = reach(links, group)
    algorithms = algorithms_for(group_links, operation, size)
    chosen = algorithms
    if algorithm is not None:
        chosen = {algorithm: algorithm_named(algorithms, operation, algorithm)}
    open_ = timings_of_available(group_links, operation, chosen, size)
    best = min(open_, key=lambda algorithm_name: float(open_[algorithm_name].time))
    rest = timings_of_available(group_links, operation, algorithms, size)
    timings_by_name = {
        algorithm_name: rest[algorithm_name]
        if algorithm_name in rest
        else with_caller_overhead(group_links, operation, time_algorithm(), size)
        for algorithm_name, time_algorithm in algorithms.items()
    }
    buffer_bytes = float(reported_bytes(group_links, size))
    ordered_timings = sorted(
        timings_by_name.items(),
        key=lambda timing_item: (
            *(timing_item[0] != best, timing_item[0] not in rest),
            float(timing_item[1].time),
        ),
    )
    measured_rows = []
    for algorithm_name, timing in ordered_timings:
        time, ends = float(timing.time), float(links.latencies.ends) * float(timing.kernels)
        bus = bus_bandwidth(operation, group.ranks, buffer_bytes, time)
        rates = (time * 1e6, buffer_bytes / time / 1e9, bus)
        flags = (algorithm_name == best, algorithm_name in rest)
        parts = _collective_time_breakdown(timing, ends)
        measured_rows.append(Measured(buffer_bytes, algorithm_name, *rates, *flags, parts))
    return measured_rows


def in_a_step(
    input_values: Values, family: str, operation: str, ranks: float, links: Links, time: float
) -> float:
    """Return the time of a collective inside an engine's step, in seconds.

    The software of the step is mature. The collective waits until its last rank has come.

    Args:
        input_values: Values by input path.
        family: Family of chips whose waits apply.
        operation: Name of the collective.
        ranks: Number of ranks.
        links: Links of the ranks; beyond `links.world` ranks the wait is longer.
        time: Time of the collective alone, in seconds.

    """
    waits = {wait_name: input_values[f"performance.{family}.{wait_name}"] for wait_name in WAITS}
    wait_name = "exchange_wait" if operation in (*EXCHANGES, "all-to-all") else "collective_wait"
    return float(waited_for(time, waits, wait_name, ranks, links.world))


def parse_group_limits(groups_text: str) -> tuple[int, int]:
    """Return the groups of experts a token may reach, and all groups.

    Args:
        groups_text: Both counts with a slash between them, such as `4/8`.

    Raises:
        DataError: The text has another form, or the first count is not between 1 and the second.

    """
    drawn, slash, groups = groups_text.partition("/")
    is_stated = slash and is_whole_number(drawn) and is_whole_number(groups)
    if not (is_stated and 0 < int(drawn) <= int(groups)):
        raise DataError(
            f"--groups: {groups_text!r}, expected D/G such as 4/8: a token reaches D of G groups "
            "of experts"
        )
    return int(drawn), int(groups)


def doublings(first: float, last: float) -> list[float]:
    """Return the sizes from `first` to `last`, each twice the size before.

    Args:
        first: First size, in bytes.
        last: Largest size, in bytes; part of the result if a doubling meets the size.

    Raises:
        DataError: `last` is below `first`, or `first` is not above zero.

    """
    if not 0 < first <= last:
        raise DataError(f"--to: {last:g} bytes is below --size, {first:g} bytes")
    return [first * 2**step for step in range(math.floor(math.log2(last / first) + 1e-9) + 1)]


def as_engine_runs(
    measured_row: Measured, learnt: Correction, operation: str, ranks: int, tokens: float
) -> Measured:
    """Return a collective's row with the time of an engine's kernel.

    Args:
        measured_row: Algorithm at one size, timed by physics.
        learnt: Correction of the engine's kernel.
        operation: Name of the collective.
        ranks: Number of ranks.
        tokens: Tokens of a rank.

    Returns:
        The row with corrected time and rates; the parts stay those of physics.

    """
    time = float(
        learnt.of(
            operation,
            measured_row.time_us / 1e6,
            {"ranks": float(ranks), "size": measured_row.size, "tokens": tokens},
        )
    )
    return measured_row._replace(
        time_us=time * 1e6,
        rate=measured_row.size / time / 1e9,
        bus=bus_bandwidth(operation, ranks, measured_row.size, time),
    )


OPERATIONS = ("gemm", "grouped", "experts", "attention", "elementwise")
PHASES = ("prefill", "decode", "latent")
STATED = {  # what the rows of practice of a library state that runs a kernel
    "gemm": "casts_activations",
    "grouped": "casts_activations",
    "experts": "expert_stages",
    "prefill": "prefill_stages",
    "decode": "decode_stages",
    "latent": "latent_stages",
    "elementwise": "casts_activations",
}


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """A kernel that was asked for, and the answer."""

    chip: str
    operation: str  # of the shapes of kernels
    form: Computed
    library: str
    shape: JsonObject
    kernel_time: KernelTime
    cut: Tiling | None
    peak: float
    correction: Correction | None = None  # of an engine's kernel
    factor: float | None = None  # of its time over that of physics

    @property
    def bound(self) -> str:
        """Name of the longest part."""
        return max(
            self.kernel_time.parts, key=lambda part_name: float(self.kernel_time.parts[part_name])
        )

    @property
    def rate(self) -> float:
        """FLOP a second."""
        return float(self.kernel_time.flops / self.kernel_time.time)


def operation_of(operation_name: str, phase: str) -> str:
    """Return the kernel that an operation and an attention phase mean.

    Args:
        operation_name: Operation, such as `gemm` or `attention`.
        phase: Phase of attention: `prefill`, `decode` or `latent`.

    Returns:
        The phase for attention, else the name of the operation.

    Raises:
        DataError: The operation or the phase is unknown.

    """
    refuse_unknown("operation", [operation_name], OPERATIONS, "--op")
    refuse_unknown("phase", [phase], PHASES, "--phase")
    return phase if operation_name == "attention" else operation_name


def _refuse_missing_sides(operation: str, sides: JsonMapping) -> None:
    """Refuse a shape that lacks a side of its operation."""
    missing = [side_name for side_name in SHAPES[operation] if sides.get(side_name) is None]
    if missing:
        raise UsageError(
            f"{operation} needs "
            f"{', '.join('--' + side_name.replace('_', '-') for side_name in missing)}"
        )


def _refuse_unknown_library(catalogue: Catalogue, operation: str, library: str) -> None:
    known_libraries = sorted(
        family
        for family, parameter_name in catalogue.calibration_rows
        if parameter_name == STATED[operation]
    )
    refuse_unknown("library", [library], known_libraries, "--library")


def answer_kernel_query(
    catalogue: Catalogue,
    input_values: Values,
    chip: str,
    operation: str,
    precision: str,
    sides: JsonMapping,
    library: str | None,
    cores: float | None,
) -> KernelAnswer:
    """Return the time, parts and tiling of a kernel of some shape.

    Args:
        catalogue: Holds the families of chips and the calibration rows.
        input_values: Values by input path.
        chip: Id of the chip.
        operation: Name of the kernel, as `operation_of` returns.
        precision: Number format of the kernel.
        sides: Sides of the shape by name; sides that the operation does not take are left out.
        library: Library of the kernel, or ENGINE/KERNEL; None takes kernels called alone.
        cores: Number of cores at work; None takes all.

    Raises:
        UsageError: The operation lacks a side, or `cores` does not fit the operation or the chip.
        DataError: The chip, library or format is unknown, or the kernel takes no finite time.

    """
    family_of(catalogue, chip)
    _refuse_missing_sides(operation, sides)
    of_engine = library is not None and is_of_engine(library)
    if library is not None and not of_engine:
        _refuse_unknown_library(catalogue, operation, library)
    shape = {side_name: sides[side_name] for side_name in SHAPES[operation]}
    if cores is not None:
        _refuse_cores(catalogue, input_values, chip, operation, cores)
    form = computed_on(input_values, chip, precision, "kernel.precision")
    on = chip_on(catalogue, input_values, chip)
    runs = BARE if library is None or of_engine else library
    kernel_time, learnt, factor = kernel_timing(on, operation, form, shape, runs, cores), None, None
    if library is not None and of_engine:
        learnt = asked_correction(catalogue, operation, library, precision, chip, "--library")
        physics, runs = kernel_time.time, learnt.kernel
        kernel_time = kernel_timing(on, operation, form, shape, BARE, cores, learnt)
        factor = float(kernel_time.time / physics)
    if not 0 < float(kernel_time.time) < math.inf:
        raise DataError(
            f"{operation} of "
            f"{', '.join(f'{side_name} {side:g}' for side_name, side in shape.items())}: "
            "takes no finite time"
        )
    is_product = operation in ("gemm", "grouped")
    cut = tiling(operands(on, form), *shape.values()) if is_product else None
    peak = float(input_values[f"parts.{chip}.{form.peak}"])
    return KernelAnswer(chip, operation, form, runs, shape, kernel_time, cut, peak, learnt, factor)


def _refuse_cores(
    catalogue: Catalogue, input_values: Values, chip: str, operation: str, cores: float
) -> None:
    """Refuse a part of the cores where it is not possible, and more cores than there are.

    Only products on chips whose cores software assigns may have some of them.
    """
    if operation not in ("gemm", "grouped") or not traits_of(catalogue, chip).logical:
        raise UsageError(
            "--cores: only products on chips whose cores software hands out may have some of them"
        )
    chip_cores = input_values.structure(f"parts.{chip}.cores")
    if cores > chip_cores:
        raise UsageError(f"--cores {cores:g}: {chip} has {chip_cores:g}")


DECIDES = {  # the figures a phase decides; those that are a time fall with it, the others grow
    "step": ("step_s", "mfu", "train_tokens_per_s"),
    "decode": ("tpot_s", "tokens_per_s_per_user", "output_tokens_per_s_per_chip"),
    "prefill": ("ttft_s", "input_tokens_per_s_per_chip"),
}


def performance_bound_rows(scenario_result: Result) -> list[JsonObject]:
    """Return the performance figures of a result, each with its bound.

    The bound takes most of the figure's phase. The gap is the time of the phase over the ideal time
    of the operators under that bound.

    Args:
        scenario_result: Result of a scenario.

    Returns:
        Row per figure that has a value: metric, value, phase, bound, the bound's share of the
        phase, the figure at the bound alone and the gap. The last two are None where no ideal time
        is known.

    """
    bound_rows = []
    for phase, phase_profile in scenario_result.report.phases.items():
        for metric in DECIDES.get(phase, ()):
            metric_value = scenario_result.metrics.get(metric)
            if metric_value is None:
                continue
            timed_profile = (
                phase_profile.single_prompt or phase_profile
                if metric == "ttft_s"
                else phase_profile
            )
            shares, lines = timed_profile.shares, timed_profile.lines
            bound = max(shares, key=lambda bound_name: shares[bound_name])
            # the time of what it binds at its peak
            floor = sum(
                line.ideal for line in lines if line.bound == bound and line.ideal is not None
            )
            gap = float(timed_profile.time) / floor if floor else None
            at_bound = None
            if gap is not None:
                is_time = METRICS[metric].unit == "s"
                at_bound = metric_value / gap if is_time else metric_value * gap
            bound_rows.append(
                {
                    "metric": metric,
                    "value": metric_value,
                    "phase": phase,
                    "bound": bound,
                    "bound_share": shares[bound],
                    "at_bound": at_bound,
                    "gap": gap,
                }
            )
    return bound_rows
