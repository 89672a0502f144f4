"""Known deployments: what operators print of fleets that read prompts and decode on pools apart.

Each figure is asked as the plan that the program chooses under public software of its month, at the
speed and lengths that the source states. A decode rate is per chip that decodes, a prefill rate per
chip that reads prompts, cache hits counted; a total rate is of all tokens and per chip of both
pools, as frontiers of published runs print it. No fit sees these rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.types import JsonObject
from tco.performance.serving.record import ServingResult
from tco.scenario.evaluate import evaluate
from tco.validation.inference import parse_framework
from tco.validation.measured import first_stated, numeric_column, refused, texts
from tco.validation.naming import model_ids
from tco.validation.row_dates import row_dates
from tco.validation.score import Prediction
from tco.validation.specifications import Specifications, command_line, command_line_text

DECODE, PREFILL = "decode_tput_tok_s_per_decode_gpu", "prefill_tput_tok_s_per_prefill_gpu"
TOTAL = "total_tput_tok_s_per_gpu"
OUTPUT, INPUT = "output_tokens_per_s_per_chip", "input_tokens_per_s_per_chip"
METRICS = {DECODE: OUTPUT, PREFILL: INPUT, TOTAL: OUTPUT}
NUMBERS = {  # column -> input and its unit, where the row states it
    "isl_tokens": ("workload.input_tokens", ""),
    "osl_tokens": ("workload.output_tokens", ""),
    "interactivity_tok_s_per_user": ("workload.interactivity", "token/s"),
    "cache_hit": ("workload.cache_hit", ""),
    "ttft_promise_s": ("workload.ttft", "s"),
    "draft_tokens": ("workload.draft_tokens", ""),
}
FORMATS = {  # column -> input
    "precision": "workload.precision",
    "expert_format": "workload.expert_format",
    "cache_format": "workload.cache_format",
    "attention_core_format": "workload.attention_core_format",
}


def predict_deployments(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of known deployments."""
    catalogue = chips.catalogue
    models, dates = model_ids(catalogue, table), row_dates(catalogue, table)
    target, names = first_stated(table, *METRICS)
    lengths = (numeric_column(table, "isl_tokens") > 0) & (numeric_column(table, "osl_tokens") > 0)
    speed = numeric_column(table, "interactivity_tok_s_per_user")
    skip = refused(
        table,
        (models == "", "unknown-model"),
        (chips.parts == "", "unknown-accelerator"),
        (~lengths, "unstated lengths"),
        (~(speed > 0), "unstated speed: interactivity_tok_s_per_user"),
        (dates == "", "unstated date"),
        (np.isnan(target), "unstated result"),
    )
    predicted, scale = np.full(len(table), np.nan), np.full(len(table), np.nan)
    command, key = (np.full(len(table), "", dtype=object) for _ in range(2))
    for row in np.flatnonzero(skip == "").tolist():
        settings = deployment_settings(catalogue, table, row, models[row], dates[row])
        settings |= chips.settings
        result = evaluate(chips.parts[row], settings, catalogue=catalogue, refuse=False)
        metric = METRICS[str(names[row])]
        rate = result.metrics[metric]
        if rate is None or not isinstance(result.serving, ServingResult):
            skip[row] = "unsupported: no plan reaches the speed"
            continue
        share = float(result.serving.prefill_share)
        answers = numeric_column(table, "osl_tokens")[row]
        tokens = numeric_column(table, "isl_tokens")[row] + answers
        factors = {DECODE: 1 / (1 - share), PREFILL: 1 / share, TOTAL: tokens / answers}
        scale[row] = factors[str(names[row])]
        predicted[row] = rate * scale[row]
        command[row] = command_line(["perf", chips.parts[row]], {}, settings)
        key[row] = f"metrics/{metric}"
    return Prediction(target, predicted, names, skip, command, key, scale)


def deployment_settings(
    catalogue: Catalogue, table: pd.DataFrame, row: int, model: str, date: str
) -> JsonObject:
    """Return the inputs that a row states of its deployment, as texts."""
    engine, _ = parse_framework(catalogue, str(texts(table, "framework")[row]), date)
    settings = {"workload.model": model, "workload.engine": engine, "workload.software": date}
    for name, path in FORMATS.items():
        if stated := str(texts(table, name)[row]):
            settings[path] = stated
    for name, (path, unit) in NUMBERS.items():
        number = float(numeric_column(table, name)[row])
        if not np.isnan(number):
            settings[path] = f"{command_line_text(number)} {unit}".strip()
    return settings
