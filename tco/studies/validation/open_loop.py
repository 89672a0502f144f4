"""Measured services under requests that come at a stated rate, as questions to the simulation: nothing of it is fitted to them.

Requests come at random for as long as the row's stage lasts, to servers that begin with nothing to do and with the prefixes of earlier stages;
each server has its share of them by lot, which is how a Kubernetes service spreads them, whatever it is called. A router that weighs prefixes
against load does so by rules that rows do not state. An engine told to take more memory than it does by itself reserves the least of its range.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from tco.chain.inputs import system_inputs
from tco.chain.workloads import server_of
from tco.foundation.trace import plain
from tco.models.architecture import load_model
from tco.performance.service.engine import Engine, engine_of
from tco.performance.service.stage import first_tokens
from tco.performance.serving.plans import DecodePlan, request_of
from tco.studies.validation.inference import formats_of, software_of
from tco.studies.validation.measured import column, first_stated, mapped, refused, texts
from tco.studies.validation.naming import model_ids
from tco.studies.validation.row_dates import row_dates
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications, written

TARGETS = ("ttft_s_mean", "ttft_s_p90")
NUMBERS = ("servers", "tp", "offered_requests_per_s", "stage_duration_s", "prefix_tokens", "prefix_groups", "question_tokens", "output_tokens")
BY_ITSELF = 0.9  # of the memory, that an engine takes unless it is told

Array = np.ndarray[Any, Any]


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict the first token of every row of a file of services under load."""
    models, numbers = model_ids(chips.catalogue, table), {name: column(table, name) for name in NUMBERS}
    target, names = first_stated(table, *TARGETS)
    arrivals, routing, notes = (texts(table, name).astype(str) for name in ("arrivals", "routing", "notes"))
    framework, date = texts(table, "engine").astype(str), row_dates(chips.catalogue, table)
    blank = [(~(numbers[name] > 0), f"unstated {name}") for name in NUMBERS]
    skip = refused(
        *(table, (chips.parts == "", "unknown-accelerator"), (models == "", "unknown-model"), *blank),
        (mapped(arrivals, lambda text: "poisson" not in text.lower(), bool), "unstated arrivals"),
        (mapped(routing, lambda text: "affinity" in text, bool), "unstated routing: how a router weighs prefixes against load"),
        (date == "", "unstated date"),
        (np.isnan(target), "unstated result"),
    )
    kept, predicted = dict[tuple[Any, ...], tuple[Engine, float]](), np.full(len(table), np.nan)
    for row in np.flatnonzero(skip == ""):
        one = {name: float(many[row]) for name, many in numbers.items()}
        lengths = one["prefix_tokens"] + one["question_tokens"], one["output_tokens"]
        asked = chips.parts[row], models[row], framework[row], date[row], "gpu-memory-utilization" in notes[row] and notes[row], one["tp"], *lengths
        if asked not in kept:
            kept[asked] = engine_for(chips, *asked)
        engine, start = kept[asked]
        servers, _, rate, *stage = one.values()
        first = first_tokens(engine, rate / servers, *stage) + start
        predicted[row] = first.mean() if names[row] == TARGETS[0] else np.quantile(first, 0.9)
    command = np.where(skip == "", "tco validate open-loop --rows", "").astype(object)  # of the shipped file
    key = np.array([f"rows/{row}/predicted" if why == "" else "" for row, why in enumerate(skip)], dtype=object)
    return Prediction(target, np.broadcast_to(predicted, (*chips.sets, len(table))), names, skip, command, key, np.ones(len(table)))


def engine_for(
    chips: Specifications, chip: str, name: str, framework: str, date: str, told: Any, tensor: float, prompt: float, answer: float
) -> tuple[Engine, float]:
    """Return the engine that a row states, in the formats of its checkpoint, and the time of a first token outside it."""
    catalogue, model = chips.catalogue, load_model(chips.catalogue, name)
    engine, released = software_of(catalogue, framework, date)
    attention, experts, dense = formats_of(catalogue, name, "", any(block.feed_forward.experts for block in model.blocks))
    cache = "fp8" if experts in ("fp8", "nvfp4") and chips.values.structure(f"parts.{chip}.peak_fp8") > 0 else "bf16"
    asked = {"model": name, "engine": engine, "precision": dense, "attention_format": attention, "expert_format": experts, "cache_format": cache}
    asked |= {"software": released, "as_deployed": "0", "draft_tokens": "0"}
    asked |= {"input_tokens": written(prompt), "output_tokens": written(answer)}
    settings = {f"workload.{key}": text for key, text in asked.items()}
    share = re.search(r"gpu-memory-utilization (0\.\d+)", str(told))
    if share is not None and float(share[1]) > BY_ITSELF:
        path = f"performance.{engine}.memory_reserve"
        settings[path] = written(float(chips.values.input(path).low or 0))
    inputs = system_inputs(catalogue, chip, settings, {})
    values = inputs.values()
    machine, served = server_of(inputs, values)
    plan = DecodePlan(tensor, tensor, 1.0, 1.0, 0.0, 1.0, tensor if served.expert_parameters else 0.0)
    made = engine_of(machine, served, request_of(values)._replace(drafts=None), plan)
    return made, float(plain(machine.shared("first_token_start")))
