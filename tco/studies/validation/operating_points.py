"""Reading serving rows: what each states of its engine, its formats, its pools and its load. One rule for all rows.

Attention data parallel and expert parallel are degrees; the raw InferenceX rows state them as flags. Lengths that a benchmark draws
from 0.8-1.0 of nominal count at 0.9. What a row leaves unstated is the checkpoint's own format, or skips the row with a reason.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from tco.models.architecture import load_model
from tco.studies.validation.littles_law import BREAKS, breaks_littles_law
from tco.studies.validation.measured import base_skips, column, texts
from tco.studies.validation.model_naming import model_ids
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
PREDICTS_AHEAD = ("deepseek-r1", "qwen3.5-397b-a17b", "glm-5")  # checkpoints that ship layers predicting further tokens
NATIVE = {"deepseek": "fp8", "kimi-k2.5": "int4", "minimax": "fp8", "gpt-oss": "mxfp4"}  # format of the published checkpoint; else bf16
ENGINES = (("neuron", "neuron"), ("atom", "atom"), ("sglang", "sglang"), ("vllm", "vllm"), ("trt", "trtllm"), ("tensorrt", "trtllm"))
RELEASES = {  # months of versions in rows whose own date is only that of an upload
    "trtllm 1.0.0rc3": "2025-07",
    "trtllm 1.2.0rc6": "2025-12",
    "trtllm 1.3.0rc1": "2026-01",
    "trtllm 1.3.0rc5": "2026-02",
    "sglang 0.5.1": "2025-08",
    "sglang 0.5.6": "2025-12",
    "sglang 0.5.8": "2026-01",
    "sglang 0.5.9": "2026-02",
    "vllm 0.12.0": "2025-12",
    "vllm 0.16.0": "2026-02",
}
DRAWN = 0.9  # mean of a length drawn evenly from 0.8-1.0 of nominal


def engine_of(framework: str) -> str:
    """Return the family of a serving engine."""
    text = framework.lower()
    return next((family for word, family in ENGINES if word in text), "other")


def months_of(source: str, framework: str, date: str) -> float:
    """Return the months from January 2026 to the row's software."""
    text = date
    if source == "aic_inhouse":
        text = next((month for version, month in RELEASES.items() if framework.startswith(version)), date)
    if not re.match(r"\d{4}-\d{2}", text):
        return 0.0
    day = int(text[8:10]) if len(text) >= 10 else 15
    return (int(text[:4]) - 2026) * 12 + int(text[5:7]) - 1 + (day - 15) / 30


def formats_of(model: str, precision: str, sparse: bool) -> tuple[str, str, str]:
    """Return the formats of attention, experts and dense parts: FP4 checkpoints of sparse models keep attention in 8 bits."""
    native = next((form for start, form in NATIVE.items() if model.startswith(start)), "bf16")
    text = precision.lower() or native
    if model.startswith("gpt-oss"):
        return "bf16", "mxfp4", "bf16"
    if "int8" in text:
        return "int8", "int8", "int8"
    if text == "int4":
        return "bf16", "int4", "bf16"
    if "fp4" in text:
        return ("weight8" if sparse else "nvfp4"), "nvfp4", "nvfp4"
    if "fp8" in text:
        return "fp8", "fp8", "fp8"
    return "bf16", "bf16", "bf16"


class Points:
    """What the rows of a serving file state, as arrays, and why some are not scored."""

    def __init__(self, table: pd.DataFrame, chips: Specifications) -> None:
        self.table, self.chips, catalogue = table, chips, chips.catalogue
        self.models = model_ids(catalogue, table)
        self.source = texts(table, "source_id").astype(str)
        framework, date = texts(table, "framework").astype(str), texts(table, "date").astype(str)
        self.engine = np.array([engine_of(text) for text in framework], dtype=object)
        self.months = np.array([months_of(*row) for row in zip(self.source, framework, date, strict=True)])
        self.apart = np.isin(texts(table, "disaggregated").astype(str), ("1", "1.0", "True", "true"))
        prompt, answer = column(table, "isl_tokens"), column(table, "osl_tokens")
        drawn = np.char.startswith(self.source.astype(str), "inferencex")
        drawn |= (self.source == "aic_inhouse") & np.isin(prompt, (1024, 8192)) & np.isin(answer, (1024, 8192))
        self.fixed = ~drawn
        self.prompt, self.answer = prompt * np.where(drawn, DRAWN, 1.0), answer * np.where(drawn, DRAWN, 1.0)
        self.concurrency, self.gpus = column(table, "concurrency"), column(table, "n_gpus")
        sparse = {m: any(b.feed_forward.experts for b in load_model(catalogue, m).blocks) for m in set(self.models) - {""}}
        precision = texts(table, "precision").astype(str)
        formats = [formats_of(m, p, sparse.get(m, False)) for m, p in zip(self.models, precision, strict=True)]
        self.formats = np.array(formats, dtype=object).reshape(-1, 3)
        self.speculative, self.unstated_speculation = self.speculation()
        self.decode, self.prefill = self.pool("decode"), self.pool("prefill")

    def speculation(self) -> tuple[Array, Array]:
        """Return which rows predict several tokens, and for which it is unstated.

        One source's export has no such column: a sweep whose raw rows all predict ahead does, one whose raw rows do not does not, and
        other recent rows of models that ship prediction layers stay unstated.
        """
        stated = texts(self.table, "spec_decoding").astype(str) == "mtp"
        sweep = pd.DataFrame(
            {
                "accelerator": texts(self.table, "accelerator"),
                "model": self.models,
                "precision": texts(self.table, "precision"),
                "engine": self.engine,
                "date": texts(self.table, "date").astype(str),
                "apart": self.apart,
            }
        )
        raw = self.source == "inferencex"
        known = sweep[raw].assign(ahead=stated[raw]).groupby(list(sweep.columns)).ahead.agg(["min", "max"])
        joined = sweep.merge(known, left_on=list(sweep.columns), right_index=True, how="left")
        notes = texts(self.table, "notes").astype(str)
        export = np.isin(self.source, ("inferencex_via_aic", "aic_inhouse")) & np.array(["origin db-dump" not in text for text in notes])
        every = export & (joined["min"] == True).to_numpy(bool)  # noqa: E712 - a missing sweep is neither
        none = (joined["max"] == False).to_numpy(bool)  # noqa: E712
        recent = texts(self.table, "date").astype(str) >= "2026-01"
        unstated = export & ~self.fixed & np.isin(self.models, PREDICTS_AHEAD) & recent & ~every & ~none
        return stated | every, unstated

    def pool(self, side: str) -> dict[str, Array]:
        """Return size, workers, attention groups and expert groups of a worker of one side; one pool serves both when aggregated."""
        flag = self.source == "inferencex"

        def degree(values: Array, size: Array) -> Array:
            return np.where(flag, np.where(values == 1, size, 1), np.maximum(np.minimum(np.nan_to_num(values, nan=1), size), 1))

        chips, workers = column(self.table, f"{side}_gpus"), column(self.table, f"{side}_workers")
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(self.apart, np.where((chips > 0) & (workers > 0), chips / workers, np.nan), self.gpus)
        experts = np.where(self.apart, column(self.table, f"{side}_ep", 1), column(self.table, "ep", 1))
        groups = np.where(self.apart, column(self.table, f"{side}_dp"), column(self.table, "dp_attention_degree"))
        if not self.apart.all():
            stated = pd.to_numeric(pd.Series(texts(self.table, "dp_attention")), errors="coerce").to_numpy(float)
            groups = np.where(self.apart, groups, stated)
        return {
            "size": size,
            "workers": np.where(self.apart, workers, 1.0),
            "groups": degree(groups, size),
            "experts": np.minimum(np.maximum(experts, 1), size),
        }

    def skips(self, target: Array) -> Array:
        """Return why rows are not scored; empty where they are."""
        reasons = base_skips(self.table)

        def mark(rows: Array, reason: str) -> None:
            reasons[(reasons == "") & rows] = reason

        mark(breaks_littles_law(self.table), BREAKS)
        mark(self.models == "", "unknown-model")
        mark(self.chips.parts == "", "unknown-accelerator")
        mark(np.isnan(self.prompt) | np.isnan(self.answer), "unstated lengths")
        mark(np.isnan(self.concurrency) | (self.concurrency <= 0), "unstated concurrency")
        mark((self.source == "inferencex_blog") & self.apart, "unstated attention parallelism")
        mark(np.isnan(self.gpus) | np.isnan(self.decode["size"]) | np.isnan(self.prefill["size"]), "unstated workers")
        mark(np.isnan(target), "unstated result")
        mark(self.unstated_speculation, "unstated speculative decoding")
        compressed = {m: any(a.compression for a in load_model(self.chips.catalogue, m).attentions) for m in set(self.models) - {""}}
        mark(np.array([compressed.get(m, False) for m in self.models]), "unsupported attention")
        return np.array(reasons, dtype=object)
