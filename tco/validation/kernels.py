"""Measured kernels as questions to `tco kernel`: chip, shape, format and library of each row.

Rows of one structure are predicted together.

What rows say of operation, shape, number format, library and result is read in the words that
publishers use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.mappings import lists_by_key
from tco.core.memory import once_per_owner
from tco.core.types import AnyArray, JsonMapping, JsonObject
from tco.performance.chip.engine_corrections import Correction, correction_of_rows
from tco.performance.chip.formats import Computed, computed_on
from tco.performance.chip.gemm import Traits, kernels_on, traits_of
from tco.performance.chip.kernel_times import (
    BARE,
    SHAPES,
    KernelTime,
    kernel_timing,
    skew_of_power_law,
)
from tco.validation.command_lines import command_line
from tco.validation.measured_rows import CHIP, FAMILY, MeasuredRows, RowValues
from tco.validation.naming import read_pattern_table
from tco.validation.score import OfEngine, Prediction
from tco.validation.wording import interpret_note

# of the model an elementwise row comes from
WIDTHS = re.compile(r"hidden (\d+), ffn (\d+), (\d+)/(\d+) heads")
HEAD = 128  # width of the heads of those models
# times an element is read or written
PASSES = {
    "copy": 2,
    "add": 3,
    "input_layernorm": 3,
    "mlp_act": 3,
    "attn_rope": 2,
}
# shapes that share a time to its printed digits: the table repeats it, and nobody measured it on
# all of them
COPIED = 4
MOST = 0.5  # of the rows of a table
DIGITS = 6  # of a time that two shapes share by chance at most
POWER_LAW = re.compile(r"power_law_([\d.]+)")
FLAT = ("copy", "add")  # elementwise kernels that know no rows
# where a column has another name than the side of the kernel
COLUMNS = {
    "heads": "heads_q",
    "kv_heads": "heads_kv",
}
STATED = ("causal", "passes", "by_row", "skew", "even")  # sides that are words of a row


class KernelKind(NamedTuple):
    """Properties shared by kernel rows that are predicted together."""

    kernel: str  # of SHAPES; empty for an unknown operation
    elementwise: str  # which elementwise kernel
    number_format: str  # empty for an unknown one
    library: str
    form: Computed | None  # how the chip computes the format
    traits: Traits
    part_of_chip: bool = False  # on some of its cores
    engine: str = ""  # the kernel of an engine whose table the rows are of

    @property
    def of_engine(self) -> tuple[str, str, str]:
        """Key of a correction: operation, engine kernel and number format."""
        return self.kernel, self.engine, self.number_format


def _format_of(catalogue: Catalogue, kernel: str, dtype: str) -> str:
    """Return the number format of a row; decoding reads that of the cache.

    Prompts with an FP8 cache compute in FP8 too.
    """
    operand_dtype, _, cache = dtype.partition("/kv ")
    if kernel in ("decode", "latent"):
        return interpret_note(catalogue, "kernel format", cache or operand_dtype)
    number_format = interpret_note(catalogue, "kernel format", operand_dtype)
    if kernel == "prefill" and (number_format.startswith("fp8") or cache == "fp8"):
        return "fp8"
    return number_format


def _elementwise_width(operation: str, notes: str, split: float) -> float:
    """Return an elementwise row's width by the model in its notes; NaN without one."""
    widths_match = WIDTHS.search(notes)
    if not widths_match:
        return np.nan
    hidden, inner, heads, kv_heads = (float(width_text) for width_text in widths_match.groups())
    return {"mlp_act": inner / split, "attn_rope": (heads + kv_heads) * HEAD / split}.get(
        operation, hidden
    )


def _cores_of(catalogue: Catalogue, source: str) -> float:
    """Return the cores that a kernel's source says it had; NaN where it had the whole chip."""
    core_rows = read_pattern_table(catalogue, "kernel_cores.csv", ("pattern", "cores"))
    return next(
        (
            float(cores_match[1]) * float(core_row["cores"])
            for core_row in core_rows
            if (cores_match := core_row["pattern"].search(source))
        ),
        np.nan,
    )


def _kernel_library_name(catalogue: Catalogue, source: str, part: str) -> str:
    """Return the library whose parameters a kernel takes, by its name and chip, or why it has none.

    A bare kernel follows none.
    """
    library_rows = read_pattern_table(
        catalogue, "kernel_libraries.csv", ("name", "parts", "library")
    )
    return next(
        (
            library_row["library"]
            for library_row in library_rows
            if source.startswith(library_row["name"])
            and (not library_row["parts"] or part in library_row["parts"].split())
        ),
        BARE,
    )


def _kernel_kinds(measurements: MeasuredRows) -> list[KernelKind]:
    """Return the kind of every row."""
    catalogue, input_values = measurements.catalogue, measurements.values

    @cache
    def kind(operation: str, dtype: str, source: str, engine: str, part: str) -> KernelKind:
        kernel = interpret_note(catalogue, "kernel", operation)
        number_format = _format_of(catalogue, kernel, dtype)
        computed = (
            computed_on(input_values, part, number_format, "dtype")
            if number_format and part
            else None
        )
        traits = traits_of(catalogue, part) if part else Traits(tiled=True, logical=False)
        part_of_chip = (
            kernel in ("gemm", "grouped")
            and traits.logical
            and not np.isnan(_cores_of(catalogue, source))
        )
        library = BARE if engine else _kernel_library_name(catalogue, source, part)
        elementwise = operation.removeprefix("elementwise:") if kernel == "elementwise" else ""
        return KernelKind(
            kernel, elementwise, number_format, library, computed, traits, part_of_chip, engine
        )

    columns = (
        measurements[column_name]
        for column_name in ("op", "dtype", "kernel_source", "engine_kernel")
    )
    return [kind(*cells) for cells in zip(*columns, measurements.parts, strict=True)]


def _widths(measurements: MeasuredRows) -> AnyArray:
    operations = [
        operation_name.removeprefix("elementwise:") for operation_name in measurements["op"]
    ]
    cells = zip(operations, measurements["notes"], measurements.filled("tp", 1.0), strict=True)
    of_model = np.array([_elementwise_width(*row_cells) for row_cells in cells], dtype=float)
    stated = np.where(np.isnan(measurements["n"]), of_model, measurements["n"])
    return np.where(np.isnan(measurements["width"]), stated, measurements["width"])


def _kernel_skip_reasons(
    measurements: MeasuredRows, kinds: list[KernelKind], target: AnyArray, target_names: AnyArray
) -> AnyArray:
    """Return the reason to skip each row, empty for a scored row."""
    kernels = np.array([kind.kernel for kind in kinds], dtype=object)
    library = np.array([kind.library for kind in kinds], dtype=object)
    unstated = [
        (
            np.any(
                [
                    ~(_sided(measurements, side_name) > 0)
                    for side_name in sides
                    if side_name not in STATED
                ],
                axis=0,
            )
            & (kernels == kernel),
            "unstated shape",
        )
        for kernel, sides in SHAPES.items()
    ]
    return measurements.refused(
        (measurements.parts == "", "unknown-accelerator"),
        (
            [operation_name.startswith("sparse") for operation_name in measurements["op"]],
            "unsupported sparse attention",
        ),
        (kernels == "", "unsupported operation"),
        ([":" in kind.library for kind in kinds], library),
        (
            _copied_expert_times(measurements, kinds),
            "suspect: the same time stands for other shapes",
        ),
        ([not kind.number_format for kind in kinds], "unsupported number format"),
        *unstated,
        (np.isnan(target), "unstated result"),
        (target == 0, "suspect: zero result"),
        (
            (target_names == "tflops") & (kernels == "elementwise"),
            "unsupported target: TFLOP/s of an elementwise kernel",
        ),
    )


def _sided(measurements: MeasuredRows, side_name: str) -> AnyArray:
    sides = measurements[COLUMNS.get(side_name, side_name)]
    if side_name == "value_dim":
        return np.where(np.isnan(sides), measurements["head_dim"], sides)
    return sides


def routing(measurements: MeasuredRows, sides: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return skew and evenness of the tokens' choice of experts, by row.

    Tokens choose in turn if the routing is balanced, and by a power law of popularity if the row
    states its exponent. Where the row says nothing, tokens choose at random.
    """
    texts = measurements["routing"]
    laws = [POWER_LAW.fullmatch(routing_text) for routing_text in texts]
    exponent = np.array([float(law[1]) if law else np.nan for law in laws])
    skew = skew_of_power_law(exponent, sides["tokens"], sides["topk"], sides["experts"])
    return {
        "skew": np.where(np.isnan(exponent), 0.0, skew),
        "even": np.where(texts == "balanced", 1.0, 0.0),
    }


def _copied_expert_times(measurements: MeasuredRows, kinds: Sequence[KernelKind]) -> AnyArray:
    """Return which expert layers have a time that, to its last digit, other shapes have too.

    Where most of a table has, all of it counts.
    """
    expert_rows = np.array([kind.kernel == "experts" for kind in kinds], dtype=bool)
    table = measurements.table
    shape = [
        shape_column for shape_column in (*SHAPES["experts"], "dtype") if shape_column in table
    ]
    if not expert_rows.any() or "time_us" not in table:
        return np.zeros_like(expert_rows)
    times = table["time_us"].map(lambda measured_time: f"{measured_time:.{DIGITS}g}")
    experts = table.assign(printed=times)[expert_rows].drop_duplicates(
        ["accelerator", "printed", *shape]
    )
    shared = experts.groupby(["accelerator", "printed"]).size()
    time_keys = pd.MultiIndex.from_arrays([table["accelerator"], times])
    copied = expert_rows & (shared.reindex(time_keys).fillna(0).to_numpy() >= COPIED)
    sources = measurements["source_url"]
    share_of_table = pd.Series(copied[expert_rows]).groupby(sources[expert_rows]).mean()
    mostly = expert_rows & (share_of_table.reindex(sources).to_numpy() > MOST)
    return np.asarray(copied | mostly, dtype=bool)


def _kernel_arguments(kind: KernelKind, measurements: MeasuredRows) -> JsonObject:
    """Return the sides of the rows of one kind by the names a kernel takes them under."""
    sides: JsonObject = {
        side_name: _sided(measurements, side_name)
        for side_name in SHAPES[kind.kernel]
        if side_name not in STATED
    }
    if kind.kernel == "experts":
        sides |= routing(measurements, sides)
    if kind.kernel == "prefill":
        sides["causal"] = np.where(measurements.meanings("answer", "causal") != "no", 1.0, 0.0)
    if "window" in measurements.table and kind.kernel in ("prefill", "decode"):
        causal = sides.get("causal", 0.0)
        sides["seq_kv"] = _in_window(sides["seq_kv"], measurements["window"], causal)
    if kind.kernel == "elementwise":
        sides |= {"passes": PASSES[kind.elementwise], "by_row": kind.elementwise not in FLAT}
    if kind.part_of_chip:
        sources = measurements["kernel_source"]
        sides["cores"] = np.array(
            [_cores_of(measurements.catalogue, source_text) for source_text in sources]
        )
    return sides


def _in_window(key_count: AnyArray, window: AnyArray, causal: Any) -> AnyArray:
    attended = np.where(causal > 0, window * (2 - window / key_count), window)
    return np.where((window > 0) & (window < key_count), attended, key_count)


# what a row states -> key of `tco kernel`'s answer
ANSWERS = {
    "time_us": "time_us",
    "tflops": "tflops",
    "gb_s": "gb_per_s",
}


def commands(kind: KernelKind, sides: JsonMapping, parts: AnyArray) -> list[str]:
    """Return the command line that asks for the kernel of every row again."""
    attention = kind.kernel in ("prefill", "decode", "latent")
    options: JsonObject = {"op": "attention" if attention else kind.kernel}
    options |= {"phase": kind.kernel if attention else None, "precision": kind.number_format}
    options["library"] = kind.engine or (None if kind.library == BARE else kind.library)
    named = {
        side_name.replace("_", "-"): side
        for side_name, side in sides.items()
        if side_name not in ("causal", "by_row", "even")
    }
    full = sides["causal"] == 0 if "causal" in sides else np.zeros(len(parts), dtype=bool)
    even = sides.get("even", np.zeros(len(parts)))
    flat = True if sides.get("by_row") is False else None
    command_lines = []
    for row_index, part in enumerate(parts):
        row_sides = {
            side_name: side[row_index] if np.ndim(side) else side
            for side_name, side in named.items()
        }
        command_lines.append(
            command_line(
                ["kernel", part],
                {
                    **options,
                    **row_sides,
                    "full": bool(full[row_index]) or None,
                    "even": bool(even[row_index]) or None,
                    "flat": flat,
                },
                {},
            )
        )
    return command_lines


class KernelRows(NamedTuple):
    """Measured kernel rows of a file, grouped by kind with their arguments."""

    target: AnyArray
    names: AnyArray
    skip: AnyArray
    questions: list[tuple[KernelKind, list[int], JsonObject]]
    commands: AnyArray


@once_per_owner
def _kernel_rows(measurements: MeasuredRows) -> KernelRows:
    """Return the targets, skip reasons and kernel arguments of rows.

    Callers keep the result, because a fit asks for it many times.
    """
    measurements = measurements.assign(width=_widths(measurements))
    # its time, else its rate of computing, else of moving
    target, target_names = measurements.first_stated(*ANSWERS)
    kinds = _kernel_kinds(measurements)
    skip = _kernel_skip_reasons(measurements, kinds, target, target_names)
    scored = np.flatnonzero(skip == "").tolist()
    members = lists_by_key((kinds[row_index], row_index) for row_index in scored)
    questions, lines = [], np.full(len(measurements), "", dtype=object)
    for kind, row_indices in members.items():
        sides = _kernel_arguments(kind, measurements.chosen(np.array(row_indices)))
        questions.append((kind, row_indices, sides))
        lines[row_indices] = commands(kind, sides, measurements.parts[row_indices])
    return KernelRows(target, target_names, skip, questions, lines)


def _predicted_kernel(
    kind: KernelKind,
    row_indices: list[int],
    sides: JsonMapping,
    measurements: MeasuredRows,
    learnt: Correction | None = None,
) -> KernelTime:
    """Return the kernels of rows of one kind.

    They follow physics and the practice of their library, or a table of their engine.
    """
    assert kind.form is not None
    row_values = RowValues(measurements.chosen(np.array(row_indices)))
    chip = kernels_on(row_values, CHIP, FAMILY, kind.traits)
    return kernel_timing(
        chip, kind.kernel, kind.form, sides, kind.library, sides.get("cores"), learnt
    )


def engine_kernel_rows(measurements: MeasuredRows) -> tuple[AnyArray, list[OfEngine]]:
    """Return the measured times of rows of engines' tables, in seconds, and physics beside.

    The rows of every kernel have the times that physics gives them.
    """
    parsed = _kernel_rows(measurements)
    return parsed.target / 1e6, [
        OfEngine(
            *kind.of_engine,
            row_indices,
            _predicted_kernel(kind, row_indices, sides, measurements).time,
            sides,
        )
        for kind, row_indices, sides in parsed.questions
        if kind.engine
    ]


def predict_kernels(measurements: MeasuredRows) -> Prediction:
    """Predict every row of a file of kernels."""
    parsed = _kernel_rows(measurements)
    predicted = np.full((*measurements.sets, len(measurements)), np.nan)
    for kind, row_indices, sides in parsed.questions:
        learnt = None
        if kind.engine:
            parts = measurements.parts[row_indices]
            learnt = correction_of_rows(measurements.catalogue, *kind.of_engine, parts)
        kernel_time = _predicted_kernel(kind, row_indices, sides, measurements, learnt)
        figures = {
            "time_us": kernel_time.time * 1e6,
            "tflops": kernel_time.flops / kernel_time.time / 1e12,
            "gb_s": kernel_time.bytes / kernel_time.time / 1e9,
        }
        predicted[..., row_indices] = np.select(
            [parsed.names[row_indices] == figure_name for figure_name in figures],
            list(figures.values()),
        )
    answer_keys = np.array(
        [ANSWERS.get(target_name, "") for target_name in parsed.names], dtype=object
    )
    return Prediction(
        parsed.target,
        predicted,
        parsed.names,
        parsed.skip.copy(),
        parsed.commands,
        answer_keys,
        np.ones(len(measurements)),
    )
