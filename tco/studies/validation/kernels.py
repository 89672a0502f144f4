"""Predictions for measured kernels: each row's own shape and format through `performance.kernel_times`, many rows of one kind at a time.

A serving library's linear layer casts its own wide input and its attention is a chain of kernels; other libraries' rows are bare kernels.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tco.performance.chip import kernel_times
from tco.performance.chip.kernel_times import Chip
from tco.studies.validation.measured import base_skips, column, texts
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
TILED = ("nvidia", "amd")  # families of many small cores
SERVING_LIBRARY = "TensorRT-LLM"
WIDTHS = re.compile(r"hidden (\d+), ffn (\d+), (\d+)/(\d+) heads")  # of the model an elementwise row comes from
HEAD = 128  # width of the heads of those models
PASSES = {"copy": 2, "add": 3, "input_layernorm": 3, "mlp_act": 3, "attn_rope": 2}  # times an element is read or written
NAMES = {"bfloat16": "bf16", "bf16": "bf16", "fp16": "bf16", "float16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}
FLAT = ("copy", "add")  # elementwise kernels that know no rows
NO = ("0", "0.0", "false", "no")
SHAPES = {
    "gemm": ("m", "n", "k"),
    "grouped_gemm": ("m", "n", "k", "groups"),
    "prefill": ("batch", "seq_q", "seq_kv", "heads_q", "heads_kv", "head_dim"),
    "decode": ("batch", "seq_kv", "heads_q", "heads_kv", "head_dim"),
    "elementwise": ("m", "width"),
}


class Kind(NamedTuple):
    """What rows predicted together share."""

    kernel: str  # of SHAPES; empty for an unknown operation
    operation: str
    number_format: str  # empty for an unknown one
    library: bool  # whether the serving library ran it
    tiled: bool


def kernel_of(operation: str) -> str:
    """Return the kind of kernel of an operation; empty if there is none."""
    if operation == "grouped_gemm" or operation.startswith("gemm"):
        return "grouped_gemm" if operation == "grouped_gemm" else "gemm"
    if operation.startswith("elementwise:"):
        return "elementwise" if operation.removeprefix("elementwise:") in PASSES else ""
    return {"attention_prefill": "prefill", "attention_fwd": "prefill", "attention_decode": "decode"}.get(operation, "")


def format_of(kernel: str, dtype: str) -> str:
    """Return the number format of a row; an FP8 cache makes the prefill compute in FP8, whatever its input."""
    own, _, cache = dtype.partition("/kv ")
    if own.startswith("fp8 e4m3"):
        return "fp8_block"
    found = NAMES.get(own, "")
    if kernel == "prefill" and (found.startswith("fp8") or cache == "fp8"):
        return "fp8"
    return found


def width_of(operation: str, notes: str, split: float) -> float:
    """Return the width of an elementwise row from the model its notes describe; NaN where they do not."""
    found = WIDTHS.search(notes)
    if not found:
        return np.nan
    hidden, inner, heads, kv_heads = (float(text) for text in found.groups())
    return {"mlp_act": inner / split, "attn_rope": (heads + kv_heads) * HEAD / split}.get(operation, hidden)


def kinds_of(table: pd.DataFrame, chips: Specifications) -> list[Kind]:
    """Return the kind of every row."""
    operations, types, libraries = (texts(table, name).astype(str) for name in ("op", "dtype", "kernel_source"))
    found = []
    for operation, dtype, library, family in zip(operations, types, libraries, chips.families, strict=True):
        kernel = kernel_of(operation)
        found.append(Kind(kernel, operation, format_of(kernel, dtype), library.startswith(SERVING_LIBRARY), family in TILED))
    return found


def widths(table: pd.DataFrame) -> Array:
    """Return the width of the elementwise rows: stated as n, else of their model."""
    operations = [text.removeprefix("elementwise:") for text in texts(table, "op").astype(str)]
    read = [width_of(*row) for row in zip(operations, texts(table, "notes").astype(str), column(table, "tp", 1.0), strict=True)]
    return np.where(np.isnan(column(table, "n")), read, column(table, "n"))


def skips(table: pd.DataFrame, chips: Specifications, kinds: list[Kind], target: Array) -> Array:
    """Return why rows are not scored; empty where they are."""
    reasons = base_skips(table)

    def mark(rows: Any, reason: Any) -> None:
        chosen = (reasons == "") & rows
        reasons[chosen] = reason

    mark(chips.parts == "", "unknown-accelerator")
    operations = texts(table, "op").astype(str)
    mark(np.array([text.startswith("sparse") for text in operations], dtype=bool), "unsupported sparse attention")
    mark(np.array([not kind.kernel for kind in kinds], dtype=bool), "unsupported operation")
    mark(np.array([not kind.number_format for kind in kinds], dtype=bool), "unsupported number format")
    for kernel, names in SHAPES.items():
        missing = np.any([~(column(table, name) > 0) for name in names], axis=0)
        mark(missing & np.array([kind.kernel == kernel for kind in kinds], dtype=bool), "unstated shape")
    mark(np.isnan(target), "unstated result")
    mark(target == 0, "suspect: zero result")
    return np.array(reasons, dtype=object)


def targets(table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the measured value of every row and what it is: its time, else its rate of computing, else of moving."""
    names = ["time_us", "tflops", "gb_s"]
    values = [column(table, name) for name in names]
    stated = [~np.isnan(value) for value in values]
    return np.select(stated, values, np.nan), np.select(stated, names, "").astype(object)


def cache_sizes(table: pd.DataFrame) -> Array:
    """Return the bytes of a cached number of every row."""
    return np.array([1.0 if "kv fp8" in text else 2.0 for text in texts(table, "dtype").astype(str)])


def masks(table: pd.DataFrame) -> Array:
    """Return one for every row with a causal mask, as all prefill has that does not say otherwise."""
    return np.array([0.0 if text.strip().lower() in NO else 1.0 for text in texts(table, "causal").astype(str)])


def seconds(kind: Kind, chip: Chip, table: pd.DataFrame) -> Any:
    """Return the time of every row of one kind."""
    shape: list[Any] = [column(table, name) for name in SHAPES[kind.kernel]]
    form = kind.number_format
    if kind.kernel in ("gemm", "grouped_gemm"):
        rows, columns, inner, *groups = shape
        time = kernel_times.product_time(chip, rows, columns, inner, form, groups[0] if groups else None)
        return time + kernel_times.casting_time(chip, rows, inner, form) if kind.library else time
    if kind.kernel == "prefill":
        sequences, queries, keys, heads, kv_heads, width = shape
        mask, wide = masks(table), form == "bf16"
        return kernel_times.prefill_time(chip, sequences, queries, keys, heads, kv_heads, width, mask, "bf16" if wide else "fp8", kind.library)
    if kind.kernel == "decode":
        sequences, keys, heads, kv_heads, width = shape
        return kernel_times.decode_time(chip, sequences, keys, heads, kv_heads, width, cache_sizes(table), kind.library)
    operation = kind.operation.removeprefix("elementwise:")
    rows, width = shape
    return kernel_times.elementwise_time(chip, rows, width, PASSES[operation], by_row=operation not in FLAT)


def work(kind: Kind, table: pd.DataFrame) -> tuple[Any, Any]:
    """Return the FLOP and the bytes a publisher divides by the time: half the scores under a causal mask."""
    shape = [column(table, name) for name in SHAPES[kind.kernel]]
    size = kernel_times.FORMATS[kind.number_format].element
    if kind.kernel in ("gemm", "grouped_gemm"):
        rows, columns, inner = shape[:3]
        many = shape[3] if kind.kernel == "grouped_gemm" else 1.0
        return 2 * rows * columns * inner * many, many * (size * inner * (rows + columns) + 2 * rows * columns)
    if kind.kernel == "elementwise":
        return np.nan, 2.0 * PASSES[kind.operation.removeprefix("elementwise:")] * shape[0] * shape[1]
    sequences, *queries, keys, heads, kv_heads, width = shape
    asked = queries[0] if queries else 1.0
    causal = masks(table) if queries else 0.0
    return 4 * sequences * heads * asked * keys * width * (1 - causal / 2), 2 * sequences * keys * kv_heads * width * cache_sizes(table)


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of kernels."""
    table = table.assign(width=widths(table))
    target, names = targets(table)
    kinds = kinds_of(table, chips)
    skip = skips(table, chips, kinds, target)
    predicted = np.full(len(table), np.nan)
    members: dict[Kind, list[int]] = {}
    for row in np.flatnonzero(skip == "").tolist():
        members.setdefault(kinds[row], []).append(row)
    for kind, rows in members.items():
        part, own = table.iloc[rows], chips.rows(np.array(rows))
        time = seconds(kind, Chip(own.part, own.practice, kind.tiled), part)
        flops, moved = work(kind, part)
        asked = [names[rows] == name for name in ("time_us", "tflops", "gb_s")]
        predicted[rows] = np.select(asked, [time * 1e6, flops / time / 1e12, moved / time / 1e9])
    lost = (skip == "") & np.isnan(predicted)
    skip[lost] = "unsupported target: TFLOP/s of an elementwise kernel"
    return Prediction(target, predicted, names, skip)
