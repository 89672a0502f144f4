"""Predictions for measured training runs: the engine's own step, on arrays of rows of one model at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tco.models.architecture import Architecture, load_model
from tco.performance.chip.flops import flops_per_token
from tco.performance.training.job import FORMATS, Job, Practice, Products, practice_in, products
from tco.performance.training.memory import recomputed_share
from tco.performance.training.plans import Plan
from tco.performance.training.schedule import partly_recomputed
from tco.performance.training.step import micro_batch, pipeline, shape_of, step
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications
from tco.studies.validation.training_rows import EVALUATION, SEARCHED, TrainingRows

Array = np.ndarray[Any, Any]
SHARED = ("cores", "hbm_bandwidth", "hbm_capacity", "scale_up_bandwidth", "scale_out_bandwidth", "tdp")  # what the cores of a chip share
NOT_CAUSAL = ("maxtext_tpu_tables",)  # sources whose FLOPs count attention without its causal half
RECOMPUTED_FLOPS = 4 / 3  # a publisher's hardware FLOPs over those of the model where every layer is computed again


@dataclass(slots=True)
class Domains:
    """The scale-up domain of every plan."""

    chips: Any
    injection: Any
    hops_mean: Any = 1.0


class RowValues(dict[str, Any]):
    """Values of the plans of some rows: those of their chip and their family as arrays, those all share as they are."""

    def __init__(self, rows: TrainingRows, index: Array, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.rows, self.index = rows, index

    def __missing__(self, path: str) -> Any:
        group, owner, name = path.split(".")
        chips = self.rows.chips
        if owner != "rows":
            value: Any = chips.values[path]
        elif group == "parts":
            whole = chips.part(name)
            split = name in SHARED or name.startswith("peak_")
            value = (whole / self.rows.cores if split else whole)[self.index]
        else:
            value = chips.practice(name)[self.index]
            if name == "host_factor":
                value = np.where(self.rows.compiled[self.index], 0.0, value)
        self[path] = value
        return value


def machines(values: RowValues, formats: Array, domain: Array) -> Practice:
    """Return the machine of every plan, each in its own number format."""
    scope = Domains(domain, values["parts.rows.scale_up_bandwidth"])
    made = {name: products(name, name, "rows", values, "rows") for name in FORMATS if name in set(formats)}
    first, *others = made.items()
    found = first[1]
    for name, other in others:
        chosen = formats == name
        found = Products(
            name,
            peak=np.where(chosen, other.peak, found.peak),
            rate=np.where(chosen, other.rate, found.rate),
            grouped=np.where(chosen, other.grouped, found.grouped),
            input_size=np.where(chosen, other.input_size, found.input_size),
            conversion=np.where(chosen, other.conversion or 0.0, 0.0 if found.conversion is None else found.conversion),
        )
    return practice_in(found, found, "rows", [scope], values, "rows")


def step_times(rows: TrainingRows, plans: dict[str, Array], model: Architecture, fused: bool, frozen: bool, schedule: str) -> tuple[Array, Array]:
    """Return the step of every plan with the quickest recomputation and sharding a row leaves open: of those that fit, and of all."""
    index = plans["row"]
    values = RowValues(
        rows,
        index,
        {
            "workload.global_batch": plans["batch"],
            "workload.sequence_length": rows.sequence[index],
            "workload.gradient_size": 2.0 if fused else 4.0,
            "workload.optimizer_size": 12.0,
            "workload.accumulator_size": 4.0,
            "cluster.oversubscription": 1.0,
        },
    )
    machine = machines(values, rows.formats[index], plans["domain"])
    job = Job(model, plans["chips"], 0, 0, fused, False, values, rows.fused_experts[index], frozen)
    base = Plan(
        tensor=plans["tensor"],
        context=plans["context"],
        pipeline=plans["pipeline"],
        data=plans["data"],
        expert=plans["expert"],
        order=0,
        micro_batch=plans["micro_batch"],
        interleave=plans["interleave"],
        schedule=schedule,
        sequence_parallel=int(fused),
        overlap=np.where(fused & (rows.cores[index] == 1), 1, 0),
        offload=rows.offload[index],
    )
    micro = micro_batch(job, machine, shape_of(base))
    fitting, any_plan = np.full(len(index), np.inf), np.full(len(index), np.inf)
    allowed = {level: np.array([level in rows.recompute[row] for row in index]) for level in SEARCHED}
    pipes = {level: pipeline(job, machine, base._replace(recompute=level), micro) for level in SEARCHED if allowed[level].any()}
    for zero, hybrid in ((1, 0), (3, 0), (3, 1)):
        possible = rows.torus[index] if hybrid else (~rows.sharded[index] | (zero == 3)) & ~rows.torus[index]
        if not possible.any():
            continue
        steps = {level: step(job, machine, base._replace(recompute=level, zero=zero, hybrid=hybrid), micro, pipe) for level, pipe in pipes.items()}
        for level, made in steps.items():
            time = np.where(allowed[level] & possible, made.time, np.inf)
            any_plan = np.minimum(any_plan, time)
            fitting = np.minimum(fitting, np.where(made.held <= machine.memory, time, np.inf))
            if level != "full" and "full" in steps:  # as many layers again as memory asks for
                again = recomputed_share(made.held, steps["full"].held, machine.memory)
                time = partly_recomputed(made.time, steps["full"].time, again)
                fits = allowed[level] & allowed["full"] & possible & (steps["full"].held <= machine.memory)
                fitting = np.minimum(fitting, np.where(fits, time, np.inf))
    return fitting, any_plan


def publisher_flops(rows: TrainingRows, model: Architecture, index: Array) -> Any:
    """Return the FLOPs of a token as the row's publisher counts them: without the causal half, attention is that of twice the length."""
    return flops_per_token(model, rows.sequence[index] * np.where(np.isin(rows.source[index], NOT_CAUSAL), 2.0, 1.0))


def predict_model(rows: TrainingRows, plans: dict[str, Array], model: Architecture, fused: bool, frozen: bool) -> tuple[Array, Array]:
    """Return the rows of some plans, and each row's target by the quickest of its plans."""
    first = np.flatnonzero(np.r_[True, plans["row"][1:] != plans["row"][:-1]])
    index = plans["row"][first]
    times = np.full((2, len(plans["row"])), np.inf)
    interleaved = (plans["interleave"] > 1) & (plans["pipeline"] > 1)
    for schedule, chosen in (("1f1b", ~interleaved), ("interleaved", interleaved)):
        if chosen.any():
            some = {name: values[chosen] for name, values in plans.items()}
            times[:, chosen] = step_times(rows, some, model, fused, frozen, schedule)
    fitting, any_plan = np.minimum.reduceat(times / plans["batch"], first, axis=1)
    sequence_time = np.where(np.isfinite(fitting), fitting, any_plan)
    tokens = rows.sequence[index] / (sequence_time * rows.accelerators[index])
    evaluated = np.where(np.char.startswith(rows.source[index].astype(str), "mlperf"), EVALUATION.get(model.id, 1.0), 1.0)
    names, flops = rows.target_name[index], publisher_flops(rows, model, index)
    again = np.array([RECOMPUTED_FLOPS if rows.recompute[row] == ("full",) else 1.0 for row in index])
    kinds = {
        "step_time_s": sequence_time * plans["batch"][first],
        "tokens_s_per_accelerator": tokens / evaluated,
        "model_tflops_per_accelerator": tokens * flops / 1e12,
        "hw_tflops_per_accelerator": tokens * flops * again / 1e12,
    }
    return index, np.select([names == name for name in kinds], list(kinds.values()))


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of training runs."""
    rows = TrainingRows(table, chips)
    predicted = np.full(len(table), np.nan)
    plans = rows.candidates()
    of = plans["row"].astype(int)
    groups = pd.DataFrame({"model": rows.models[of], "fused": rows.modern[of], "frozen": rows.frozen[of]})
    for (name, fused, frozen), members in groups.groupby(["model", "fused", "frozen"]).indices.items():
        chosen = {field: values[members] for field, values in plans.items()}
        index, made = predict_model(rows, chosen, load_model(chips.catalogue, str(name)), bool(fused), bool(frozen))
        predicted[index] = made
    return Prediction(rows.target, predicted, rows.target_name, rows.skip)
