"""What is fitted on which kind of measurements, what is tied to it, and the rows a fit becomes.

Kernels pin the efficiencies of single operators; what they settle is held while collectives, training and serving are fitted. AMD
shares every parameter of kernels and engines with NVIDIA but its rate of products and the overhead of its young ports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.rows import attribute
from tco.foundation.values import Values
from tco.studies.validation import fit as fitting
from tco.studies.validation.measured import texts
from tco.studies.validation.run import PREDICTORS
from tco.studies.validation.score import Prediction, scores
from tco.studies.validation.specifications import Specifications

SHARED_BY_GPUS = (
    *("launch_time", "cache_efficiency", "grouped_share_bf16", "grouped_share_fp8", "residual_passes", "host_sglang", "host_vllm"),
    *("speculative_tokens", "speculative_accepted", "collective_wait", "exchange_wait"),
)
FLASH_AND_TILES = ("tile_efficiency_fp4", "flash_efficiency_bf16", "flash_efficiency_fp8")  # follow the rate of products
KERNELS = (
    *("kernel_launch", "kernel_stage", "fp4_inner_latency", "core_load", "stream_efficiency", "row_load", "row_efficiency", "softmax_cost"),
    *("attention_preparation", "tail_exposed", "decode_splits", "decode_block_time", "vector_efficiency", "cache_kept"),
)
FREE: dict[str, dict[str, Sequence[str]]] = {
    "kernels": {"nvidia": ("tile_efficiency", *FLASH_AND_TILES, *KERNELS), "amd": ("tile_efficiency",)},
    "collectives": {
        "nvidia": (
            *("collective_start", "collective_step", "die_latency_factor", "link_efficiency", "collective_chunk", "direct_efficiency"),
            *("direct_start_ratio", "expert_kernel_latency", "core_copy_rate", "efa_step", "eager_overhead"),
        )
    },
    "training": {
        "training": (
            *(
                "fp8_efficiency",
                "mxfp8_efficiency",
                "fp4_efficiency",
                "fp4_grouped_efficiency",
                "data_exposed",
                "clock_exponent",
                "elementwise_passes",
                "grouped_half_width",
                "permute_passes",
                "mixer_passes",
            ),
            *("tensor_exposed", "expert_exposed_across", "host_expert_block_time", "host_update_rate"),
        ),
        "nvidia": ("clock_knee",),
        "amd": ("training_factor",),
        "tpu": ("training_factor",),
        "trainium1": ("training_factor",),
    },
    "inference": {
        "nvidia": (*SHARED_BY_GPUS, "block_fp8_engine"),
        "amd": ("port_overhead", "gemm_efficiency_bf16"),
        "trainium1": ("gemm_efficiency_bf16", "launch_time", "cache_efficiency"),
    },
}
LEAVE_OUT = {
    "training": ("accelerator", "model", "source_id"),
    "kernels": ("accelerator", "source_id"),
    "collectives": ("accelerator", "source_id"),
    "inference": ("accelerator", "model", "source_id"),
}
REFIT_ROUNDS = {"kernels": 12}  # steps of a refit without a group, where they are quick enough to end; else three
NORMAL_P95 = 1.645
COLUMNS = ("family", "attribute", "value", "unit", "low", "high", "as_of", "kind", "source", "note", "use", "residual")


@dataclass(slots=True)
class Calibration:
    """A fit, its rows, and the errors of what was left out by kind of group."""

    kind: str
    fit: fitting.Fit
    rows: list[dict[str, Any]]
    accuracy: dict[str, dict[str, Any]]


def tie(values: Values, kind: str) -> list[str]:
    """Set the parameters that follow fitted ones; return their paths."""
    if kind == "collectives":
        return []
    if kind == "training":
        follows = {
            "performance.training.context_exposed": "performance.training.tensor_exposed",
            "performance.amd.clock_knee": "performance.nvidia.clock_knee",
        }
        for path, followed in follows.items():
            values[path] = values[followed]
        return list(follows)
    tied = []
    for name in KERNELS if kind == "kernels" else SHARED_BY_GPUS:
        values[f"performance.amd.{name}"] = values[f"performance.nvidia.{name}"]
        tied.append(f"performance.amd.{name}")
    if kind == "kernels":
        rate = values["performance.amd.tile_efficiency"] / values["performance.nvidia.tile_efficiency"]
        for name in FLASH_AND_TILES:
            values[f"performance.amd.{name}"] = values[f"performance.nvidia.{name}"] * rate
            tied.append(f"performance.amd.{name}")
        return tied
    for family, like in (("amd", "nvidia"), ("trainium1", None)):
        own, wide = f"performance.{family}.gemm_efficiency_", "gemm_efficiency_bf16"
        for narrow in ("fp8", "fp4"):
            share = values[f"performance.{like}.gemm_efficiency_{narrow}"] / values[f"performance.{like}.{wide}"] if like else 1.0
            values[own + narrow] = values[own + "bf16"] * share
            tied.append(own + narrow)
    return tied


def calibrate(
    kind: str, table: pd.DataFrame, catalogue: Catalogue, values: Values, date: str, progress: Callable[[str], None] = lambda _: None
) -> Calibration:
    """Fit the shared parameters of one kind of measurements, then refit without each accelerator, model and source."""
    paths = [f"performance.{family}.{name}" for family, names in FREE[kind].items() for name in names]
    free = fitting.parameters(values, paths)

    def predict(rows: pd.DataFrame, chips: Specifications) -> Prediction:
        tie(chips.values, kind)
        return PREDICTORS[kind](rows, chips)

    def make(rows: pd.DataFrame) -> Specifications:
        return Specifications(catalogue, values, texts(rows, "accelerator"))

    progress(f"fitting {len(free)} parameters on {len(table):,} {kind}")
    found = fitting.fit(predict, table, make(table), free)
    accuracy = {"nothing": found.score}
    shifts: dict[str, list[float]] = {path: [] for path in paths}
    for name in LEAVE_OUT[kind]:
        progress(f"leaving out one {name} at a time")
        targets, made = [], []
        for _, target, predicted in fitting.left_out(predict, table, make, free, name, REFIT_ROUNDS.get(kind, 3), shifts):
            targets.append(target)
            made.append(predicted)
        if targets:
            accuracy["source" if name == "source_id" else name] = scores(np.concatenate(targets), np.concatenate(made))
    tied = tie(values, kind)  # after the refits, which moved what follows
    rows = list(rows_of(values, found, tied, shifts, int(found.score["n"] or 0), date))
    return Calibration(kind, found, rows, accuracy)


def rows_of(
    values: Values, found: fitting.Fit, tied: Sequence[str], shifts: Mapping[str, Sequence[float]], count: int, date: str
) -> Iterator[dict[str, Any]]:
    """Yield the catalogue rows of a fit: ranges cover its own spread and what leaving groups out moved."""
    for path in [*found.values, *tied]:
        _, family, name = path.split(".")
        value = float(values[path])
        base = path if path in found.spread else f"performance.nvidia.{name}" if f"performance.nvidia.{name}" in found.spread else None
        half = NORMAL_P95 * min(found.spread[base], 1.0) if base else 0.15
        moved = max((abs(math.log(other / value)) for other in shifts.get(path, ()) if other > 0), default=0.0)
        half = max(half, moved, 0.02)
        wanted = attribute("performance", name, path)
        low, high = max(value * math.exp(-half), wanted.minimum), min(value * math.exp(half), wanted.maximum)
        note = f"fitted on {count:,} rows" if path in found.spread else "follows a fitted parameter"
        cells = (
            family,
            name,
            rounded(value),
            wanted.unit,
            rounded(low),
            rounded(high),
            date,
            "derived",
            "tco-calibration",
            note,
            "",
            error_of(found),
        )
        yield dict(zip(COLUMNS, cells, strict=True))


def rounded(value: float) -> float:
    """Return a number at the four digits a fit can claim."""
    return float(f"{value:.4g}")


def error_of(found: fitting.Fit) -> float:
    """Return the median error of a fit, as its rows carry it."""
    return rounded(float(found.score["median_ape"] or 0.0))
