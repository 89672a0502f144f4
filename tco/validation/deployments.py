"""Known deployments: what operators print of fleets that read prompts and decode on pools apart.

Each figure is asked as the plan that the program chooses under public software of its month, at the
speed and lengths that the source states. A decode rate is per chip that decodes, a prefill rate per
chip that reads prompts, cache hits counted; a total rate is of all tokens and per chip of both
pools, as frontiers of published runs print it. No fit sees these rows.
"""

from __future__ import annotations

import numpy as np

from tco.core.types import JsonObject
from tco.performance.serving.record import ServingResult
from tco.scenario.evaluate import evaluate
from tco.validation.command_lines import command_line, command_line_text
from tco.validation.inference import parse_framework
from tco.validation.measured_rows import MeasuredRows
from tco.validation.score import Prediction

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


def predict_deployments(measurements: MeasuredRows) -> Prediction:
    """Predict every row of a file of known deployments."""
    dates = measurements.dates
    prompt = measurements["isl_tokens"]
    answer = measurements["osl_tokens"]
    target, target_names = measurements.first_stated(*METRICS)
    speed = measurements["interactivity_tok_s_per_user"]
    skip = measurements.refused(
        (measurements.models == "", "unknown-model"),
        (measurements.parts == "", "unknown-accelerator"),
        (~((prompt > 0) & (answer > 0)), "unstated lengths"),
        (~(speed > 0), "unstated speed: interactivity_tok_s_per_user"),
        (dates == "", "unstated date"),
        (np.isnan(target), "unstated result"),
    )
    predicted, scale = np.full((2, len(measurements)), np.nan)
    command, answer_keys = np.full((2, len(measurements)), "", dtype=object)
    for row_index in np.flatnonzero(skip == "").tolist():
        part, target_name = measurements.parts[row_index], str(target_names[row_index])
        settings = _deployment_settings(measurements, row_index) | measurements.settings
        scenario_result = evaluate(part, settings, catalogue=measurements.catalogue, refuse=False)
        rate = scenario_result.metrics[METRICS[target_name]]
        if rate is None or not isinstance(scenario_result.serving, ServingResult):
            skip[row_index] = "unsupported: no plan reaches the speed"
            continue
        share = float(scenario_result.serving.prefill_share)
        tokens = prompt[row_index] + answer[row_index]
        factors = {DECODE: 1 / (1 - share), PREFILL: 1 / share, TOTAL: tokens / answer[row_index]}
        scale[row_index] = factors[target_name]
        predicted[row_index] = rate * scale[row_index]
        command[row_index] = command_line(["perf", part], {}, settings)
        answer_keys[row_index] = f"metrics/{METRICS[target_name]}"
    return Prediction(target, predicted, target_names, skip, command, answer_keys, scale)


def _deployment_settings(measurements: MeasuredRows, row_index: int) -> JsonObject:
    """Return the inputs that a row states of its deployment, as texts."""
    date = measurements.dates[row_index]
    engine, _ = parse_framework(measurements.catalogue, measurements["framework"][row_index], date)
    settings = {
        "workload.model": measurements.models[row_index],
        "workload.engine": engine,
        "workload.software": date,
    }
    for column_name, path in FORMATS.items():
        if stated := measurements[column_name][row_index]:
            settings[path] = stated
    for column_name, (path, unit) in NUMBERS.items():
        number = measurements[column_name][row_index]
        if not np.isnan(number):
            settings[path] = f"{command_line_text(number)} {unit}".strip()
    return settings
