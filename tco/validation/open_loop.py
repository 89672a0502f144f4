"""First tokens of fleets under ladders of stated rates, predicted by simulation.

Rows that differ in their rate alone are stages of one ladder, in the order of the file. Servers,
router, prompts and settings are those that rows state. Nothing here is fitted to the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tco.core.errors import DataError
from tco.core.trace import untraced_value
from tco.core.types import AnyArray
from tco.models.architecture import load_model
from tco.performance.service.engine import Engine, engine_for_plan
from tco.performance.service.ladder import first_tokens_of_ladder
from tco.performance.serving.plans import DecodePlan, request_of
from tco.scenario.resolve import system_inputs
from tco.scenario.workload import server_of
from tco.validation.inference import checkpoint_formats, parse_framework
from tco.validation.measured import first_stated, mapped, numeric_column, refused, texts
from tco.validation.naming import model_ids, read_pattern_table
from tco.validation.row_dates import row_dates
from tco.validation.score import Prediction
from tco.validation.specifications import Specifications, command_line_text

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


def predict_open_loop_runs(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict the first token of every row of a file of services under load."""
    models = model_ids(chips.catalogue, table)
    target, names = first_stated(table, *TARGETS)
    dates = row_dates(chips.catalogue, table)
    prefix, groups = numeric_column(table, "prefix_tokens"), numeric_column(table, "prefix_groups")
    routers = [stated_router(chips, str(text)) for text in texts(table, "routing")]
    blank = [(~(numeric_column(table, name) > 0), f"unstated {name}") for name in POSITIVE]
    requests = numeric_column(table, "offered_requests_per_s") * numeric_column(
        table, "stage_duration_s"
    )
    skip = refused(
        table,
        (chips.parts == "", "unknown-accelerator"),
        (models == "", "unknown-model"),
        *blank,
        (unsimulable_rows(table), "unsupported size: too many requests, prompts or servers"),
        (~(prefix >= 0), "unstated prefix_tokens"),
        ((prefix > 0) & ~(groups > 0), "unstated prefix_groups"),
        (~mapped(texts(table, "arrivals"), drawn_at_random, bool), "unstated arrivals"),
        ([router is None for router in routers], "unstated routing"),
        (dates == "", "unstated date"),
        (requests < 1, "suspect: a stage without a request"),
        (np.isnan(target), "unstated result"),
    )
    predicted = np.full(len(table), np.nan)
    for rows in ladders(table, skip):
        router = routers[rows[0]]
        assert router is not None
        try:
            times = ladder_times(table, chips, models[rows[0]], router, rows, dates[rows[0]])
        except DataError as error:
            skip[rows] = f"unsupported: {error}"
            continue
        for row, first in zip(rows, times, strict=True):
            mean = names[row] == TARGETS[0]
            predicted[row] = first.mean() if mean else np.quantile(first, 0.9)
    # of the shipped file
    command = np.where(skip == "", "tco validate open-loop --rows", "").astype(object)
    keys = [f"rows/{row}/predicted" if why == "" else "" for row, why in enumerate(skip)]
    shape = (*chips.sets, len(table))
    return Prediction(
        target,
        np.broadcast_to(predicted, shape),
        names,
        skip,
        command,
        np.array(keys, dtype=object),
        np.ones(len(table)),
    )


def unsimulable_rows(table: pd.DataFrame) -> AnyArray:
    """Return which rows are too large to simulate, or have less than a whole server."""
    requests = numeric_column(table, "offered_requests_per_s") * numeric_column(
        table, "stage_duration_s"
    )
    prompts = numeric_column(table, "prefix_groups", 0.0) * numeric_column(
        table, "prompts_per_group", 0.0
    )
    servers = numeric_column(table, "servers")
    large = (requests > MOST) | (prompts > MOST) | (servers > MOST)
    return np.asarray(large | (servers < 1) | (numeric_column(table, "prefix_groups", 0.0) > MOST))


def drawn_at_random(arrivals: Any) -> bool:
    """Whether requests come at random."""
    return "poisson" in str(arrivals).lower()


def stated_router(chips: Specifications, routing: str) -> dict[str, float] | None:
    """Return the rules of the router that a row names; None where nothing is known of it."""
    columns = ("pattern", "sticky_share", "queue_limit_s", "source")
    for row in read_pattern_table(chips.catalogue, "serving_routers.csv", columns, re.IGNORECASE):
        if row["pattern"].search(routing):
            return {name: float(row[name]) for name in ("sticky_share", "queue_limit_s")}
    return None


def ladders(table: pd.DataFrame, skip: AnyArray) -> Iterator[list[int]]:
    """Yield the rows of each ladder."""
    found = dict[tuple[Any, ...], list[int]]()
    for row in np.flatnonzero(skip == "").tolist():
        words = [str(texts(table, name)[row]) for name in TEXTS]
        numbers = [float(np.nan_to_num(numeric_column(table, name)[row])) for name in NUMBERS]
        found.setdefault((*words, *numbers), []).append(row)
    yield from found.values()


def ladder_times(
    table: pd.DataFrame,
    chips: Specifications,
    model: str,
    router: dict[str, float],
    rows: list[int],
    date: str,
) -> list[AnyArray]:
    """Return times to first token of the stages of a ladder, in seconds."""
    row = rows[0]
    number = {name: float(np.nan_to_num(numeric_column(table, name)[row])) for name in NUMBERS}
    word = {name: str(texts(table, name)[row]) for name in TEXTS}
    prompt = number["prefix_tokens"] + number["question_tokens"]
    settings = stated_settings(chips, word["source_url"], word["notes"])
    engine, start = engine_for(
        chips,
        chips.parts[row],
        model,
        parse_framework(chips.catalogue, word["engine"], date),
        settings,
        number["tp"],
        (prompt, number["output_tokens"]),
    )
    rates, seconds = (
        numeric_column(table, "offered_requests_per_s"),
        numeric_column(table, "stage_duration_s"),
    )
    stages = [(float(rates[place]), float(seconds[place])) for place in rows]
    runs = [first_tokens_of_ladder(engine, number | router, stages, seed) for seed in range(SEEDS)]
    return [np.concatenate(times) + start for times in zip(*runs, strict=True)]


def stated_settings(chips: Specifications, address: str, notes: str) -> dict[str, float]:
    """Return the settings of its engine that a row or its deployment's manifest states."""
    columns = ("pattern", "setting", "value", "source")
    settings = dict[str, float]()
    for row in read_pattern_table(chips.catalogue, "serving_settings.csv", columns):
        if row["pattern"].search(address):
            settings[row["setting"]] = float(row["value"])
    for name, pattern in STATED.items():
        match = pattern.search(notes)
        if match is not None:
            settings[name] = float(match[1])
    return settings


def engine_for(
    chips: Specifications,
    chip: str,
    model_id: str,
    software: tuple[str, str],
    settings: dict[str, float],
    tensor: float,
    lengths: tuple[float, float],
) -> tuple[Engine, float]:
    """Return an engine, in its checkpoint's formats, and the time to a first token outside it."""
    catalogue = chips.catalogue
    model = load_model(catalogue, model_id)
    sparse = any(block.feed_forward.experts for block in model.blocks)
    attention, experts, dense = checkpoint_formats(catalogue, model_id, "", sparse)
    eight_bits = chips.values.structure(f"parts.{chip}.peak_fp8") > 0
    engine, released = software
    asked = {
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
    inputs = {f"workload.{key}": text for key, text in asked.items()}
    inputs |= memory_settings(chips, chip, engine, settings)
    if "token_budget" in settings:
        inputs[f"performance.{engine}.token_budget"] = command_line_text(settings["token_budget"])
    given = chips.values.given.items()
    inputs |= {path: setting.text for path, setting in given}  # what `--set` says
    found = system_inputs(catalogue, chip, inputs, {})
    values = found.values()
    machine, served = server_of(found, values)
    experts_over = tensor if served.expert_parameters else 0.0
    plan = DecodePlan(tensor, tensor, 1.0, 1.0, 0.0, 1.0, experts_over)
    request = request_of(values)._replace(drafts=None)
    most = settings.get("most_sequences", np.inf)
    made = engine_for_plan(machine, served, request, plan, most)
    return made, float(untraced_value(machine.shared("first_token_start")))


def memory_settings(
    chips: Specifications, chip: str, engine: str, settings: dict[str, float]
) -> dict[str, str]:
    """Return the input that holds back what an engine leaves of the HBM, as it measures it."""
    names = ("memory_taken", "activation_memory")
    taken, activations = (chips.values.unset(f"performance.{engine}.{name}") for name in names)
    if taken is None or activations is None:
        return {}
    capacity = chips.values.structure(f"parts.{chip}.hbm_capacity")
    reported = chips.values.unset(f"parts.{chip}.driver_memory") or capacity
    memory = settings.get("memory_taken", taken) * reported - activations
    return {
        f"performance.{engine}.memory_reserve": command_line_text(max(1 - memory / capacity, 0.0))
    }
