"""Reading training rows: what each states of its model, its formats, its groups and its software. One rule for all rows.

What a row leaves unstated is searched over (micro-batch, interleave, recomputation, sharding) or follows a rule below; a row that
lacks what no rule gives is skipped with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tco.foundation.errors import DataError
from tco.models.architecture import load_model
from tco.performance.training.plans import parts_allowed
from tco.studies.validation.measured import base_skips, column, texts
from tco.studies.validation.model_naming import model_ids
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
TARGETS = ("step_time_s", "tokens_s_per_accelerator", "model_tflops_per_accelerator", "hw_tflops_per_accelerator")
SEQUENCE = 4096.0  # tokens, where unstated
STEP_TOKENS = 4.0e6  # of a step, where the batch is unstated
SIZES = (1, 2, 4, 8, 16)  # micro-batches tried where unstated
INTERLEAVES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
RECOMPUTED = {"full": ("full",), "qkv_proj_offloaded": ("full",), "none": ("none",), "minimal": ("none",), "selective": ("selective",)}
SEARCHED = ("none", "selective", "full")
MODERN = 2022.9  # decimal year from which software fuses attention, splits sequences and overlaps its collectives
FUSED_EXPERTS = 2026.41  # decimal year from which gated experts in block-scaled FP8 run as few kernels
COMPILED = "maxtext"  # sources of compiled programs: sharded weights, no launches by the host, no gradient accumulation
SPLIT_CORES = ("trainium", "trainium1")  # publishers count groups in cores, of which a chip has several
EVALUATION = {"gpt3-175b": 1 + 5660 / 24576 / 3}  # MLPerf's rate counts forward passes over 5,660 sequences after every 24,576
FIELDS = ("row", "tensor", "context", "pipeline", "data", "expert", "micro_batch", "interleave", "batch", "chips", "domain")


def targets(table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the measured value of every row and what it is: time of a step, else tokens per second and chip, else TFLOP/s."""
    found = [column(table, name) for name in TARGETS]
    stated = [~np.isnan(values) for values in found]
    return np.select(stated, found, np.nan), np.select(stated, TARGETS, "")


def format_of(precision: str) -> str:
    """Return the number format of the linear layers."""
    text = precision.lower()
    named = next((form for word, form in (("nvfp4", "fp4"), ("mxfp8", "mxfp8")) if word in text), "")
    return named or ("fp8" if text.startswith(("fp8", "int8")) else "bf16")


def year_of(date: str) -> float:
    """Return a date as a decimal year."""
    found = re.match(r"(\d{4})(?:-(\d{2}))?", date)
    return int(found[1]) + (int(found[2] or 1) - 1) / 12 if found else MODERN


def usable_domain(domain: int, chips: int) -> int:
    """Return the chips of a scale-up domain a job uses: all that divide it, else the largest power of two."""
    if chips <= domain:
        return chips
    return domain if chips % domain == 0 else 1 << (domain.bit_length() - 1)


class TrainingRows:
    """What the rows of a training file state, as arrays, and why some are not scored."""

    def __init__(self, table: pd.DataFrame, chips: Specifications) -> None:
        self.table, self.chips = table, chips
        self.models = model_ids(chips.catalogue, table)
        self.source = texts(table, "source_id").astype(str)
        self.year = np.array([year_of(str(date)) for date in texts(table, "date")])
        self.modern = self.year >= MODERN
        self.target, self.target_name = targets(table)
        self.accelerators = column(table, "n_accelerators")
        self.cores = np.where(np.isin(chips.families, SPLIT_CORES), chips.part("cores"), 1.0)
        self.torus = chips.families == "tpu"
        self.compiled = self.torus | np.char.startswith(self.source, COMPILED)
        self.sequence = column(table, "seq_len", SEQUENCE)
        self.frozen = np.array(["LoRA" in str(name) for name in texts(table, "model")])
        sharding = texts(table, "sharding").astype(str)
        whole = [("FSDP" in text and "optimizer" not in text) or "ZeRO-3" in text for text in sharding]
        self.sharded = np.array(whole) | self.compiled
        self.offload = np.array(["CPU offload" in text for text in sharding])
        self.recompute = [RECOMPUTED.get(str(text), SEARCHED) for text in texts(table, "activation_recompute")]
        self.formats = self.number_formats()
        self.skip = self.skips()
        gated = self.formats == "mxfp8"
        self.fused_experts = gated & (self.year >= FUSED_EXPERTS) & np.array([self.has_gated_experts(name) for name in self.models])

    def number_formats(self) -> Array:
        """Return the format each row computes in; BF16 where the chip has no such peak."""
        asked = np.array([format_of(str(text)) for text in texts(self.table, "precision")], dtype=object)
        four, eight = self.chips.part("peak_fp4") > 0, (self.chips.part("peak_fp8") > 0)
        return np.where((asked == "fp4") & four, "fp4", np.where(np.isin(asked, ("fp8", "mxfp8")) & eight, asked, "bf16"))

    def has_gated_experts(self, name: str) -> bool:
        """Say whether a model has experts with gates, and no mixers."""
        if not name:
            return False
        blocks = load_model(self.chips.catalogue, name).blocks
        return any(b.feed_forward.experts for b in blocks) and all(b.mixer is None and b.feed_forward.matrices == 3 for b in blocks)

    def skips(self) -> Array:
        """Return why rows are not scored; empty where they are."""
        reasons = base_skips(self.table)

        def mark(rows: Array, reason: str) -> None:
            reasons[(reasons == "") & rows] = reason

        mark(self.models == "", "unknown-model")
        mark(self.chips.parts == "", "unknown-accelerator")
        mark(np.array([bool(family) and not self.known(family) for family in self.chips.families]), "unsupported accelerator")
        mark(np.isnan(self.target), "unstated result")
        mark(np.isnan(self.accelerators) | (self.accelerators <= 0), "unstated accelerators")
        groups = [column(self.table, name, 1.0) for name in ("tp", "pp", "cp")]
        chips = self.accelerators * np.where(np.isnan(self.cores), 1.0, self.cores)
        mark(chips % np.maximum(groups[0] * groups[1] * groups[2], 1.0) != 0, "unsupported: groups do not divide the accelerators")
        return np.array(reasons, dtype=object)

    def known(self, family: str) -> bool:
        """Say whether the family has parameters of training."""
        try:
            return bool(self.chips.values[f"performance.{family}.training_factor"] > 0)
        except DataError:
            return False

    def candidates(self) -> dict[str, Array]:
        """Return the plans of all scored rows, a column for each field; every row has at least one."""
        stated = {name: optional(column(self.table, name)) for name in ("tp", "pp", "vp", "cp", "ep", "global_batch_seqs", "micro_batch_seqs")}
        systems, domains = texts(self.table, "system"), self.chips.part("scale_up_domain")
        printed = {source for source, v in zip(self.source, stated["vp"], strict=True) if v is not None}
        made = []
        for row in np.flatnonzero(self.skip == ""):
            tp, pp, cp, ep = (int(stated[name][row] or 1) for name in ("tp", "pp", "cp", "ep"))
            chips = int(self.accelerators[row] * self.cores[row])
            dp = max(chips // (tp * pp * cp), 1)
            domain = usable_domain(int(domains[row] * self.cores[row]), chips)
            slices = re.match(r"\s*(\d+)x\s+v\d", str(systems[row]))
            if self.torus[row] and slices:
                domain = max(chips // int(slices[1]), 1)
            layers = load_model(self.chips.catalogue, self.models[row]).layers
            searched = bool(pp > 1 and self.source[row] not in printed)
            sizes = batches(stated["global_batch_seqs"][row], stated["micro_batch_seqs"][row], dp, self.sequence[row], bool(self.compiled[row]))
            for size, batch in sizes:
                parts = interleaves(stated["vp"][row], searched, pp, layers, batch / dp / size)
                made += [(row, tp, cp, pp, dp, ep, size, v, batch, chips, domain) for v in parts]
        columns = zip(*made, strict=True) if made else [()] * len(FIELDS)
        return {name: np.array(values) for name, values in zip(FIELDS, columns, strict=True)}


def optional(values: Array) -> list[float | None]:
    """Return numbers, None where a row states none."""
    return [None if np.isnan(value) else float(value) for value in values]


def batches(batch: float | None, size: float | None, data: int, sequence: float, compiled: bool) -> Iterator[tuple[float, float]]:
    """Yield (micro-batch, global batch) in sequences; compiled programs accumulate no gradients."""
    if compiled and batch is not None and size is None:
        yield batch / data, batch
        return
    for tried in SIZES if size is None else [size]:
        one = data * tried
        if batch is None:
            yield tried, one if compiled else max(one, round(STEP_TOKENS / sequence / one) * one)
        elif tried in (1, size) or (batch >= one and batch % one == 0):
            yield tried, batch


def interleaves(stated: float | None, searched: bool, stages: int, layers: int, micro_batches: float) -> list[int]:
    """Return the model parts a stage may have: the stated number, one where the source prints others, else all that divide."""
    if stated is not None:
        return [int(stated)]
    if not searched:
        return [1]
    more = [v for v in INTERLEAVES[1:] if v * stages <= layers and micro_batches >= stages and parts_allowed(layers, stages * v)]
    return [1, *more]
