"""Predictions for measured serving points: rows are read into the mapping a scenario gives, and the serving engine is asked.

Rows of one chip, model, engine and set of formats are asked for at once; the plan of each is the one it states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tco.chain.inputs import Inputs, system_inputs
from tco.chain.texts import month_of
from tco.chain.workloads import machine_of
from tco.performance.chip.software import MEASURED
from tco.performance.serving.plans import DecodePlan, PrefillPlan, ServingPlan, reading
from tco.performance.serving.result import evaluated
from tco.studies.validation.measured import column, first_stated
from tco.studies.validation.operating_points import Points
from tco.studies.validation.score import OFFLINE, Prediction
from tco.studies.validation.specifications import RowValues, Specifications, axes_text, command_line

Array = np.ndarray[Any, Any]
MILLI = 1e3
ANY = "0.001 token/s"  # a row asks for no interactivity
LONG_AGO = 1e4  # months: software whose age no row states has grown up
GROWN_UP = f"{LONG_AGO:g} months"  # the same as a workload states it
DRAFTS = {
    "draft_tokens": "draft_tokens",
    "spec_acceptance": "draft_acceptance",
    "spec_decline": "draft_decline",
    "draft_cost": "draft_share",
}  # input -> what stands in for it
KEYS = {
    "total_tput_tok_s_per_gpu": "metrics/output_tokens_per_s_per_chip",
    "output_tput_tok_s_per_gpu": "metrics/output_tokens_per_s_per_chip",
    "tpot_ms_mean": "metrics/tpot_s",
}


def targets(table: pd.DataFrame, by_token: Array) -> tuple[Array, Array]:
    """Return the measured value of every row and what it is: tokens per second and GPU (all, else output), else time per token.

    Rows whose notes say so are held by their time per token first.
    """
    output = column(table, "output_tput_tok_s_per_gpu")
    output = np.where(np.isnan(output), column(table, "system_tput_tok_s") / column(table, "n_gpus"), output)
    per_token, _ = first_stated(table, "tpot_ms_mean", "tpot_ms_median")
    known = table.assign(output_tput_tok_s_per_gpu=output, tpot_ms_mean=per_token)
    (rate, named), (time, timed) = first_stated(known, *KEYS), first_stated(known, "tpot_ms_mean", *KEYS)
    return np.where(by_token, time, rate), np.where(by_token, timed, named)


class Asked:
    """The rows of a file with what they ask: everything that no parameter under fit changes."""

    def __init__(self, table: pd.DataFrame, chips: Specifications) -> None:
        self.points, self.chips = Points(table, chips), chips
        self.target, self.names = targets(table, self.points.says("time per token"))
        self.skip = self.points.reasons.copy()
        self.skip[(self.skip == "") & np.isnan(self.target)] = "unstated result"
        points = self.points
        months = np.array([np.nan if (month := month_of(text)) is None else month for text in points.date])
        self.months = months
        kinds = {"chip": chips.parts, "model": points.models, "engine": points.engine, "apart": points.apart, "ahead": points.speculative}
        kinds |= {"offline": points.offline}
        kinds |= {name: points.formats[:, place] for place, name in enumerate(("attention", "experts", "dense"))}
        asked = np.flatnonzero(self.skip == "")
        frame = pd.DataFrame(kinds).iloc[asked]
        self.groups = [(dict(zip(kinds, key, strict=True)), asked[rows]) for key, rows in frame.groupby(list(kinds)).indices.items()]
        self.inputs = {chip: system_inputs(chips.catalogue, chip, {}, {}) for chip in {kind["chip"] for kind, _ in self.groups}}

    def texts(self, kind: dict[str, Any]) -> dict[str, str]:
        """Return the inputs of a group that are texts."""
        eight = self.chips.values.structure(f"parts.{kind['chip']}.peak_fp8") > 0
        cache = "fp8" if eight and kind["experts"] in ("fp8", "nvfp4") else "bf16"
        return {
            "workload.model": kind["model"],
            "workload.precision": kind["dense"],
            "workload.attention_format": kind["attention"],
            "workload.expert_format": kind["experts"],
            "workload.cache_format": cache,
            "workload.attention_core_format": "bf16",
            "workload.engine": kind["engine"],
            "workload.software": "public",
        }

    def numbers(self, kind: dict[str, Any], rows: Array, values: Any) -> dict[str, Any]:
        """Return the inputs of a group that are numbers; what a row that predicts ahead leaves unsaid is what recipes do."""
        points = self.points
        found = {
            "workload.concurrency": points.concurrency[rows],
            "workload.offline": 1.0 * kind["offline"],
            "workload.input_tokens": points.prompt[rows],
            "workload.output_tokens": points.answer[rows],
        }
        if not kind["ahead"]:
            return found | {"workload.draft_tokens": 0.0}
        return found | {f"workload.{path}": values[f"performance.serving.{stands_in}"] for path, stands_in in DRAFTS.items()}

    def plan(self, rows: Array, apart: bool) -> ServingPlan:
        """Return the plans that rows state."""
        decode, prefill = ({name: values[rows] for name, values in pool.items()} for pool in (self.points.decode, self.points.prefill))
        chosen = DecodePlan(decode["size"], decode["size"] / decode["groups"], 1.0, 1.0, 0.0, 1.0, decode["experts"])
        if not apart:
            return ServingPlan(chosen, reading(chosen), 1.0)
        before = PrefillPlan(prefill["size"], prefill["size"] / prefill["groups"], 1.0, 1.0, 0.0, prefill["experts"])
        return ServingPlan(chosen, before, decode["workers"], prefill["workers"])

    def axes(self, row: int) -> dict[str, float]:
        """Return the plan of a row as a command line takes it."""
        points, found = self.points, dict[str, float]()
        for prefix, pool in (("", points.decode), ("prefill_", points.prefill))[: 2 if points.apart[row] else 1]:
            size, groups, experts, workers = (float(pool[name][row]) for name in ("size", "groups", "experts", "workers"))
            own = {"chips": size, "tp": size / groups, "pp": 1.0, "ep": experts, "cp": 1.0, "workers": workers}
            found |= {f"{prefix}{name}": value for name, value in own.items()}
        return found

    def settings(self, kind: dict[str, Any], row: int) -> dict[str, Any]:
        """Return the inputs of a row as a command line sets them."""
        numbers = self.numbers(kind, np.array([row]), self.chips.values)
        silent = "workload.concurrency" if kind["offline"] else "workload.offline"
        asked = {path: float(np.ravel(value)[0]) for path, value in numbers.items() if path != silent}
        software = {"workload.software": self.points.date[row] or GROWN_UP}
        return self.texts(kind) | software | asked | {"workload.interactivity": ANY}

    def commands(self) -> tuple[Array, Array, Array]:
        """Return the command line that gives the prediction of each row again, the key of its number, and what that times gives it."""
        command, key, scale = (np.full(len(self.skip), missing, dtype=object) for missing in ("", "", np.nan))
        for kind, rows in self.groups:
            for row in rows:
                command[row] = command_line(["perf", kind["chip"]], {"plan": axes_text(self.axes(row))}, self.settings(kind, row))
                key[row] = KEYS[self.names[row]]
                prompt, answer = self.points.prompt[row], self.points.answer[row]
                scale[row] = {"total_tput_tok_s_per_gpu": (prompt + answer) / answer, "tpot_ms_mean": MILLI}.get(self.names[row], 1.0)
        return command, key, scale


def predict_group(asked: Asked, chips: Specifications, kind: dict[str, Any], rows: Array) -> tuple[dict[str, Array], Array]:
    """Return the predictions of the rows of a group by what they are, and which rows have a plan that fits."""
    inputs: Inputs = asked.inputs[kind["chip"]]
    named = asked.texts(kind)
    values = RowValues(chips, asked.numbers(kind, rows, chips.values))
    released = chips.values.structure(f"parts.{kind['chip']}.released")
    months = asked.months[rows] - released * 12
    machine = machine_of(inputs, values, named.__getitem__, MEASURED._replace(months=np.where(np.isnan(months), LONG_AGO, months)))
    made = evaluated(machine, asked.points.model(kind["model"]), values, asked.plan(rows, kind["apart"]))
    output, per_token = made.rates["output_tokens_per_s_per_chip"], made.rates["tpot_s"]
    prompt, answer = asked.points.prompt[rows], asked.points.answer[rows]
    found = {
        "total_tput_tok_s_per_gpu": output * ((prompt + answer) / answer),
        "output_tput_tok_s_per_gpu": output,
        "tpot_ms_mean": per_token * MILLI,
    }
    return found, np.broadcast_to(made.fits, (*chips.sets, len(rows)))


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of serving points."""
    asked: Asked = chips.once("asked", lambda: Asked(table, chips))
    skip, predicted = asked.skip.copy(), np.full((*chips.sets, len(table)), np.nan)
    for kind, rows in asked.groups:
        made, fits = predict_group(asked, chips, kind, rows)
        predicted[..., rows] = np.select([asked.names[rows] == name for name in made], [np.broadcast_to(one, fits.shape) for one in made.values()])
        if kind["offline"]:
            skip[rows] = OFFLINE
        skip[rows[~fits.reshape(-1, len(rows))[0]]] = "unsupported: the plan does not fit memory"
    return Prediction(asked.target, predicted, asked.names, skip, *(asked.commands() if not chips.sets else ()))
