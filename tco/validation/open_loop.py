"""First tokens of fleets under ladders of stated rates, predicted by simulation.

Rows that differ in their rate alone are stages of one ladder, in the order of the file. Servers,
router, prompts and settings are those that rows state. Nothing here is fitted to the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.mappings import lists_by_key
from tco.core.trace import untraced_value
from tco.core.types import AnyArray, BoolArray, FloatArray
from tco.models.architecture import load_model
from tco.performance.service.engine import Engine, engine_for_plan
from tco.performance.service.ladder import first_tokens_of_ladder
from tco.performance.serving.plans import DecodePlan
from tco.scenario.resolve import system_inputs
from tco.scenario.workload import serving_workload
from tco.validation.command_lines import command_line_text
from tco.validation.inference import checkpoint_formats, parse_framework
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import read_pattern_table
from tco.validation.score import Prediction

TARGETS = ("ttft_s_mean", "ttft_s_p90")
POSITIVE = (
    "servers",
    "tp",
    "offered_requests_per_s",
    "stage_duration_s",
    "question_tokens",
    "output_tokens",
)
TEXTS = ("source_url", "model", "engine", "date", "routing", "notes")
NUMBERS = (
    *("servers", "tp", "prefix_tokens", "prefix_groups", "prompts_per_group"),
    *("question_tokens", "output_tokens"),
)
MOST = 50_000  # requests of a stage, prompts and servers of a ladder
SEEDS = 3  # runs of a ladder, each with draws of its own
STATED = {  # settings of engines as rows write them
    "memory_taken": re.compile(r"(?:gpu-memory-utilization|mem-fraction-static)\W+(0?\.\d+)"),
    "token_budget": re.compile(r"(?:max-num-batched-tokens|chunked-prefill-size)\W+(\d+)"),
    "most_sequences": re.compile(r"(?:max-num-seqs|max-running-requests)\W+(\d+)"),
}


def predict_open_loop_runs(measurements: MeasuredRows) -> Prediction:
    """Predict the first token of every row of a file of services under load."""
    count = len(measurements)
    target, target_names = measurements.first_stated(*TARGETS)
    prefix, groups = measurements["prefix_tokens"], measurements["prefix_groups"]
    routers = [
        _stated_router(measurements.catalogue, routing_text)
        for routing_text in measurements["routing"]
    ]
    blank = [
        (~(measurements[column_name] > 0), f"unstated {column_name}") for column_name in POSITIVE
    ]
    at_random = ["poisson" in arrivals_text.lower() for arrivals_text in measurements["arrivals"]]
    requests = _stage_requests(measurements)
    skip = measurements.refused(
        (measurements.parts == "", "unknown-accelerator"),
        (measurements.models == "", "unknown-model"),
        *blank,
        (
            _unsimulable_rows(measurements),
            "unsupported size: too many requests, prompts or servers",
        ),
        (~(prefix >= 0), "unstated prefix_tokens"),
        ((prefix > 0) & ~(groups > 0), "unstated prefix_groups"),
        (np.logical_not(at_random), "unstated arrivals"),
        ([router is None for router in routers], "unstated routing"),
        (measurements.dates == "", "unstated date"),
        (requests < 1, "suspect: a stage without a request"),
        (np.isnan(target), "unstated result"),
    )
    predicted = np.full(count, np.nan)
    for ladder_rows in _ladders(measurements, skip):
        router = routers[ladder_rows[0]]
        assert router is not None
        try:
            times = _ladder_times(measurements, router, ladder_rows)
        except DataError as error:
            skip[ladder_rows] = f"unsupported: {error}"
            continue
        for row_index, first_tokens in zip(ladder_rows, times, strict=True):
            is_mean = target_names[row_index] == TARGETS[0]
            predicted[row_index] = (
                first_tokens.mean() if is_mean else np.quantile(first_tokens, 0.9)
            )
    # of the shipped file
    command = np.where(skip == "", "tco validate open-loop --rows", "").astype(object)
    answer_keys = [
        f"rows/{row_position}/predicted" if reason == "" else ""
        for row_position, reason in enumerate(skip)
    ]
    return Prediction(
        target,
        np.broadcast_to(predicted, (*measurements.sets, count)),
        target_names,
        skip,
        command,
        np.array(answer_keys, dtype=object),
        np.ones(count),
    )


def _stage_requests(measurements: MeasuredRows) -> FloatArray:
    rate: FloatArray = measurements["offered_requests_per_s"]
    return rate * measurements["stage_duration_s"]


def _unsimulable_rows(measurements: MeasuredRows) -> BoolArray:
    groups, servers = measurements.filled("prefix_groups", 0.0), measurements["servers"]
    prompts = groups * measurements.filled("prompts_per_group", 0.0)
    sizes = (_stage_requests(measurements), prompts, servers, groups)
    return np.asarray(np.any([*(size > MOST for size in sizes), servers < 1], axis=0))


def _stated_router(catalogue: Catalogue, routing: str) -> dict[str, float] | None:
    columns = ("pattern", "sticky_share", "queue_limit_s", "source")
    for router_row in read_pattern_table(catalogue, "serving_routers.csv", columns, re.IGNORECASE):
        if router_row["pattern"].search(routing):
            return {
                setting_name: float(router_row[setting_name])
                for setting_name in ("sticky_share", "queue_limit_s")
            }
    return None


def _ladders(measurements: MeasuredRows, skip: AnyArray) -> Iterator[list[int]]:
    """Yield the rows of each ladder."""
    columns = [measurements[text_column] for text_column in TEXTS]
    columns += [np.nan_to_num(measurements[number_column]) for number_column in NUMBERS]
    rows_by_ladder = lists_by_key(
        (tuple(column[row_index] for column in columns), row_index)
        for row_index in np.flatnonzero(skip == "").tolist()
    )
    yield from rows_by_ladder.values()


def _ladder_times(
    measurements: MeasuredRows, router: dict[str, float], ladder_rows: list[int]
) -> list[AnyArray]:
    """Return times to first token of the stages of a ladder, in seconds."""
    first_row = ladder_rows[0]
    numbers = {
        number_column: float(np.nan_to_num(measurements[number_column][first_row]))
        for number_column in NUMBERS
    }
    texts = {text_column: measurements[text_column][first_row] for text_column in TEXTS}
    catalogue = measurements.catalogue
    engine, start = engine_for(
        measurements,
        measurements.parts[first_row],
        measurements.models[first_row],
        parse_framework(catalogue, texts["engine"], measurements.dates[first_row]),
        _stated_settings(catalogue, texts["source_url"], texts["notes"]),
        numbers["tp"],
        (numbers["prefix_tokens"] + numbers["question_tokens"], numbers["output_tokens"]),
    )
    rates, seconds = measurements["offered_requests_per_s"], measurements["stage_duration_s"]
    stages = [(float(rates[stage]), float(seconds[stage])) for stage in ladder_rows]
    runs = [first_tokens_of_ladder(engine, numbers | router, stages, seed) for seed in range(SEEDS)]
    return [np.concatenate(times) + start for times in zip(*runs, strict=True)]


def _stated_settings(catalogue: Catalogue, address: str, notes: str) -> dict[str, float]:
    """Return the settings of its engine that a row or its deployment's manifest states."""
    columns = ("pattern", "setting", "value", "source")
    settings = dict[str, float]()
    for setting_row in read_pattern_table(catalogue, "serving_settings.csv", columns):
        if setting_row["pattern"].search(address):
            settings[setting_row["setting"]] = float(setting_row["value"])
    for setting_name, pattern in STATED.items():
        match = pattern.search(notes)
        if match is not None:
            settings[setting_name] = float(match[1])
    return settings


def engine_for(
    measurements: MeasuredRows,
    chip: str,
    model_id: str,
    software: tuple[str, str],
    settings: dict[str, float],
    tensor: float,
    lengths: tuple[float, float],
) -> tuple[Engine, float]:
    """Return an engine, in its checkpoint's formats, and the time to a first token outside it."""
    catalogue = measurements.catalogue
    model = load_model(catalogue, model_id)
    attention, experts, dense = checkpoint_formats(catalogue, model_id, "", model.has_experts)
    eight_bits = measurements.values.structure(f"parts.{chip}.peak_fp8") > 0
    engine, released = software
    workload_texts = {
        "model": model_id,
        "engine": engine,
        "precision": dense,
        "attention_format": attention,
        "expert_format": experts,
        "cache_format": "fp8" if experts in ("fp8", "nvfp4") and eight_bits else "bf16",
        "software": released,
        "operated_by": "server",
        "as_deployed": "0",
        "draft_tokens": "0",
        "input_tokens": command_line_text(lengths[0]),
        "output_tokens": command_line_text(lengths[1]),
    }
    inputs = {
        f"workload.{input_name}": input_text for input_name, input_text in workload_texts.items()
    }
    inputs |= _memory_settings(measurements, chip, engine, settings)
    if "token_budget" in settings:
        inputs[f"performance.{engine}.token_budget"] = command_line_text(settings["token_budget"])
    user_settings = measurements.values.given.items()
    inputs |= {path: setting.text for path, setting in user_settings}  # what `--set` says
    resolved_inputs = system_inputs(catalogue, chip, inputs, {})
    workload = serving_workload(resolved_inputs, resolved_inputs.values())
    workload = workload._replace(request=workload.request._replace(drafts=None))
    experts_over = tensor if workload.model.expert_parameters else 0.0
    plan = DecodePlan(tensor, tensor, 1.0, 1.0, 0.0, 1.0, experts_over)
    service_engine = engine_for_plan(workload, plan, settings.get("most_sequences", np.inf))
    return service_engine, float(untraced_value(workload.machine.shared("first_token_start")))


def _memory_settings(
    measurements: MeasuredRows, chip: str, engine: str, settings: dict[str, float]
) -> dict[str, str]:
    """Return the input that holds back what an engine leaves of the HBM, as it measures it."""
    attribute_names = ("memory_taken", "activation_memory")
    taken, activations = (
        measurements.values.unset(f"performance.{engine}.{attribute_name}")
        for attribute_name in attribute_names
    )
    if taken is None or activations is None:
        return {}
    capacity = measurements.values.structure(f"parts.{chip}.hbm_capacity")
    reported = measurements.values.unset(f"parts.{chip}.driver_memory") or capacity
    memory = settings.get("memory_taken", taken) * reported - activations
    return {
        f"performance.{engine}.memory_reserve": command_line_text(max(1 - memory / capacity, 0.0))
    }
