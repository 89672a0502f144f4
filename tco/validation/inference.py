"""Measured serving points as questions to the engine: software, formats, pools and load by row.

Rows of one chip, model, engine and set of formats are asked for at once; the plan of each is the
one it states. What is read depends on what a row's own columns say, never on who published it. What
a row leaves unstated is the checkpoint's own format, the date of its source, or skips the row with
a reason. So does a row whose figures contradict each other: requests in flight are the rate of
requests times the time one takes (Little's law). Of a closed loop the left side is the stated
concurrency, and the right side follows from the printed throughput and latencies. Of the 1,281
shipped rows that state both, 94 in 100 agree within 15 %, and all lie between 0.73 and 1.17 but for
a group of 36 from 0.02 to 0.68. Medians printed for means explain the first, nothing the second:
rate, latency or concurrency are of another run.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.catalog.system_tree import is_bare_chip
from tco.core.calendar_months import parse_calendar_month
from tco.core.memory import once_per_owner
from tco.core.types import AnyArray, JsonObject
from tco.models.architecture import Architecture, load_model
from tco.performance.chip.formats import computed_on
from tco.performance.layer.chip_model import Machine
from tco.performance.serving.plans import (
    DecodePlan,
    PrefillPlan,
    ServingPlan,
    as_prefill_plan,
    workload_on,
)
from tco.performance.serving.result import evaluate_serving_plan
from tco.performance.software_maturity import MEASURED
from tco.scenario.choices import checkpoint_of
from tco.scenario.resolve import system_inputs
from tco.scenario.resolved import ResolvedScenario
from tco.scenario.workload import machine_of
from tco.validation.audited import (
    SUBMISSION,
    all_at_once,
    as_serving_rows,
    is_audited,
    refused_runs,
    same_lengths,
    submitted_formats,
)
from tco.validation.command_lines import command_line, plan_axes_text
from tco.validation.measured import map_values
from tco.validation.measured_rows import MeasuredRows, RowValues
from tco.validation.naming import read_pattern_table
from tco.validation.score import OFFLINE, Prediction
from tco.validation.whole_engines import Engines, engines_inside_domain

MILLI = 1e3
ANY = "0.001 token/s"  # a row asks for no interactivity
# input -> what stands in for it
DRAFTS = {
    "draft_tokens": "draft_tokens",
    "spec_acceptance": "draft_acceptance",
    "spec_decline": "draft_decline",
    "draft_cost": "draft_share",
}
KEYS = {
    "total_tput_tok_s_per_gpu": "metrics/output_tokens_per_s_per_chip",
    "output_tput_tok_s_per_gpu": "metrics/output_tokens_per_s_per_chip",
    "tpot_ms_mean": "metrics/tpot_s",
}
BREAKS = "suspect: breaks Little's law: rate x time of a request is not the stated concurrency"
GROWN = "2026-01"  # sweeps of models that predict ahead say so from then on
TOLERANCE = 1.4  # ratio of the two sides, either way


def _requests_in_flight(measurements: MeasuredRows) -> tuple[AnyArray, AnyArray]:
    """Return the requests that are being answered and those that wait for a first token.

    Rates and latencies imply them; they are nan where unstated. The output rate of separate pools
    is printed per chip of either all pools or one, so that only the rate of all tokens is read
    there.
    """
    prompt, answer = measurements["isl_tokens"], measurements["osl_tokens"]
    separate = measurements["prefill_gpus"] > 0
    output = np.where(separate, np.nan, measurements["output_tput_tok_s_per_gpu"])
    total = measurements["total_tput_tok_s_per_gpu"] * answer / (prompt + answer)
    rate = measurements["n_gpus"] * np.where(np.isnan(total), output, total) / answer
    first_token, per_token = (
        measurements.first_stated(f"{latency_metric}_mean", f"{latency_metric}_median")[0] / MILLI
        for latency_metric in ("ttft_ms", "tpot_ms")
    )
    of_speed = 1 / measurements["interactivity_tok_s_per_user"]
    per_token = np.where(np.isnan(per_token), of_speed, per_token)
    return rate * (answer - 1) * per_token, rate * first_token


def _breaks_littles_law(measurements: MeasuredRows) -> AnyArray:
    """Return which rows have figures that contradict each other.

    Without a time to first token there are only too many requests.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        stated = measurements["concurrency"]
        # offline there is nothing to hold the other side against
        concurrency = np.where(np.isinf(stated), np.nan, stated)
        answered, waiting = (
            requests / concurrency for requests in _requests_in_flight(measurements)
        )
        excess = answered + np.nan_to_num(waiting) > TOLERANCE
        return np.asarray(excess | (answered + waiting < 1 / TOLERANCE))


def parse_framework(catalogue: Catalogue, framework: str, date: str) -> tuple[str, str]:
    """Return the engine that a framework names and its release date.

    They default to the family's engine and to the date of the row.
    """
    table = read_pattern_table(
        catalogue, "serving_engines.csv", ("pattern", "engine", "version", "date")
    )
    framework_text = framework.lower()
    engine = next(
        (
            engine_row["engine"]
            for engine_row in table
            if engine_row["pattern"].pattern and engine_row["pattern"].search(framework_text)
        ),
        "family",
    )
    released = [
        engine_row["date"]
        for engine_row in table
        if engine_row["version"]
        and re.search(rf"{engine_row['engine']} {re.escape(engine_row['version'])}", framework_text)
    ]
    return engine, released[-1] if released else date


def checkpoint_formats(
    catalogue: Catalogue, model: str, precision: str, sparse: bool
) -> tuple[str, str, str]:
    """Return the formats of attention, experts and dense parts.

    FP4 of a dense model covers its attention too.
    """
    checkpoint_row = checkpoint_of(catalogue, model, precision)
    return (
        checkpoint_row.attention if sparse else checkpoint_row.dense,
        checkpoint_row.experts,
        checkpoint_row.dense,
    )


class ServingRows:
    """Rows of a serving file as arrays: all that no parameter under fit changes."""

    def __init__(self, measurements: MeasuredRows) -> None:
        self.measurements = measurements = as_serving_rows(measurements)
        catalogue, self.models = measurements.catalogue, measurements.models
        software = zip(measurements["framework"], measurements.dates, strict=True)
        self.engine, self.date = (
            map_values(software, lambda cells: parse_framework(catalogue, *cells)).reshape(-1, 2).T
        )
        self.engine = np.where(is_audited(measurements), SUBMISSION, self.engine)
        self.apart = measurements.meanings("answer", "disaggregated") == "yes"
        prompt, answer = measurements["isl_tokens"], measurements["osl_tokens"]
        drawn = self.drawn(prompt, answer)
        self.searched = measurements.filled("searched", 0.0) > 0
        # rate of the slowest engine that a row without a plan may have had
        self.slowest = np.full(len(measurements), np.nan)
        self.prompt, self.answer = prompt * drawn, answer * drawn
        self.nominal = same_lengths(measurements, np.stack([self.prompt, self.answer], axis=-1))
        # offline all requests wait at once, so that the batch is what memory holds
        stated = measurements["concurrency"]
        without_users = measurements.meanings("load", "scenario") == "offline"
        self.gpus = measurements["n_gpus"]
        self.offline = np.isinf(stated) | (np.isnan(stated) & without_users)
        self.at_once = all_at_once(measurements)
        self.concurrency = np.where(self.offline, 0.0, stated)
        formats = map_values(
            zip(self.models, measurements["precision"], strict=True),
            lambda cells: checkpoint_formats(catalogue, cells[0], cells[1], self.sparse(cells[0])),
        ).reshape(-1, 3)
        self.formats = submitted_formats(measurements, formats)
        self.speculative, self.unstated_speculation = self.speculation(drawn)
        self.drafts = measurements["draft_tokens"]
        self.decode, self.prefill = self.pool("decode"), self.pool("prefill")
        self.target, self.names = _inference_targets(measurements, self.says("time per token"))
        self.skip = self.reasons()
        self.months = map_values(
            self.date,
            lambda date_text: (
                np.nan if (month := parse_calendar_month(date_text)) is None else month
            ),
            float,
        )
        self.groups = self.alike_rows((drawn == 1) & ~is_audited(measurements))
        self.inputs = {
            chip: system_inputs(catalogue, chip, {}, {})
            for chip in {kind["chip"] for kind, _ in self.groups}
        }

    def alike_rows(self, equal_lengths: AnyArray) -> list[tuple[JsonObject, AnyArray]]:
        """Return the usable rows by what one evaluation has in common."""
        kinds = {
            "chip": self.measurements.parts,
            "model": self.models,
            "engine": self.engine,
            "apart": self.apart,
            "ahead": self.speculative,
            "offline": self.offline,
            "equal": equal_lengths,
            "searched": self.searched,
        }
        kinds |= {
            format_role: self.formats[:, format_index]
            for format_index, format_role in enumerate(("attention", "experts", "dense"))
        }
        usable_rows = np.flatnonzero(self.skip == "")
        frame = pd.DataFrame(kinds).iloc[usable_rows]
        return [
            (dict(zip(kinds, group_key, strict=True)), usable_rows[row_positions])
            for group_key, row_positions in frame.groupby(list(kinds)).indices.items()
        ]

    def model(self, model_name: str) -> Architecture:
        """Return the model of a row."""
        return load_model(self.measurements.catalogue, model_name)

    def sparse(self, model_name: str) -> bool:
        """Say whether a model has experts."""
        return bool(model_name) and self.model(model_name).has_experts

    def says(self, subject: str) -> AnyArray:
        """Return which rows carry a note on how columns of theirs are to be read."""
        return np.asarray(self.measurements.meanings(subject, "notes") == "yes")

    def drawn(self, prompt: AnyArray, answer: AnyArray) -> AnyArray:
        """Return the mean of what a benchmark draws its lengths from, over the nominal length."""
        scenario, share = self.measurements["scenario"], np.ones(len(self.measurements))
        columns = ("scenario", "lengths", "drawn", "note")
        for benchmark_row in read_pattern_table(
            self.measurements.catalogue, "benchmarks.csv", columns
        ):
            lengths = [float(length_text) for length_text in benchmark_row["lengths"].split()]
            matches = np.isin(prompt, lengths) & np.isin(answer, lengths)
            matches &= np.array(
                [benchmark_row["scenario"] in scenario_text for scenario_text in scenario],
                dtype=bool,
            )
            share[matches] = float(benchmark_row["drawn"])
        return share

    def speculation(self, drawn: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return which rows predict several tokens, and for which it is unstated.

        Exports of a sweep may lack that column: a sweep whose own rows all predict ahead does, one
        whose rows do not does not, and other recent rows of models that ship prediction layers stay
        unstated.
        """
        stated = self.measurements["spec_decoding"] == "mtp"
        sweep_columns = ("accelerator", "precision", "date", "scenario")
        sweep = pd.DataFrame(
            {sweep_column: self.measurements[sweep_column] for sweep_column in sweep_columns}
        )
        sweep = sweep.assign(model=self.models, engine=self.engine, apart=self.apart)
        export = self.says("no speculation column")
        ahead_by_sweep = (
            sweep[~export]
            .assign(ahead=stated[~export])
            .groupby(list(sweep.columns))
            .ahead.agg(["min", "max"])
        )
        joined = sweep.merge(
            ahead_by_sweep, left_on=list(sweep.columns), right_index=True, how="left"
        )
        # a missing sweep is neither true nor false
        all_ahead = export & (joined["min"] == True).to_numpy(bool)  # noqa: E712
        none = (joined["max"] == False).to_numpy(bool)  # noqa: E712
        recent = self.measurements["date"] >= GROWN
        predicts = map_values(
            self.models,
            lambda model_name: bool(model_name) and self.model(model_name).prediction_layers > 0,
            bool,
        )
        return stated | all_ahead, export & (drawn < 1) & predicts & recent & ~all_ahead & ~none

    def pool(self, side: str) -> dict[str, AnyArray]:
        """Return chips, workers, attention groups and expert groups of a side's worker.

        One pool serves both sides when aggregated.
        """
        measurements = self.measurements
        chips, workers = measurements[f"{side}_gpus"], measurements[f"{side}_workers"]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_pool = np.where((chips > 0) & (workers > 0), chips / workers, np.nan)
        size = np.where(self.apart, of_pool, self.gpus)
        experts = np.where(
            self.apart, measurements.filled(f"{side}_ep", 1), measurements.filled("ep", 1)
        )
        stated = pd.to_numeric(pd.Series(measurements["dp_attention"]), errors="coerce")
        groups = np.where(self.apart, measurements[f"{side}_dp"], stated.to_numpy(float))
        experts = np.minimum(np.maximum(experts, 1), size)
        # attention data parallel is a degree; where nothing says that degrees are stated, one is a
        # flag that goes with experts over all chips
        degrees = ~np.isnan(measurements["pp"]) | self.says("degrees")
        flag = ~degrees & (groups == 1) & ((experts == size) | (measurements[f"{side}_tp"] == 1))
        degree = np.maximum(np.minimum(np.nan_to_num(groups, nan=1), size), 1)
        plans = {
            "size": size,
            "workers": np.where(self.apart, workers, 1.0),
            "groups": np.where(flag, size, degree),
            "experts": experts,
            "stages": np.ones(len(size)),
            "stated": ~np.isnan(groups),
        }
        stated_as_words = is_audited(measurements) & ~self.apart
        engine = measurements["engine_chips"]
        audited = {
            "size": engine,
            "workers": np.round(self.gpus / engine),
            "groups": measurements["groups"],
            "experts": measurements["ep"],
            "stages": measurements["pp"],
        }
        return plans | {
            pool_field: np.where(stated_as_words, stated, plans[pool_field])
            for pool_field, stated in audited.items()
        }

    def reasons(self) -> AnyArray:
        """Return the reason against scoring each row; empty for usable rows.

        The reasons do not depend on the model's prediction.
        """
        measurements = self.measurements
        unstated_parallelism = self.apart & ~self.decode["stated"] & ~self.prefill["stated"]
        context = map_values(
            self.models,
            lambda model_name: self.model(model_name).context if model_name else np.inf,
            float,
        )
        audited = refused_runs(measurements)
        pools = np.isnan(self.decode["size"]) | np.isnan(self.prefill["size"])
        pools = np.where(self.searched, ~(self.gpus >= 1) | (self.gpus % 1 > 0), pools)
        bare = map_values(
            measurements.parts,
            lambda part: part != "" and not is_bare_chip(measurements.catalogue, part),
            bool,
        )
        return measurements.refused(
            (audited != "", audited),
            (_breaks_littles_law(measurements), BREAKS),
            (self.models == "", "unknown-model"),
            (measurements.parts == "", "unknown-accelerator"),
            (bare, "unsupported: no server of this chip is known"),
            (~((self.prompt > 0) & (self.answer > 0)), "unstated lengths"),
            (~self.offline & ~(self.concurrency > 0), "unstated concurrency"),
            (np.isnan(self.gpus) | pools, "unstated workers"),
            (unstated_parallelism, "unstated attention parallelism"),
            (self.date == "", "unstated date"),
            (self.unstated_speculation, "unstated speculative decoding"),
            (
                ~np.isin(measurements["spec_decoding"].astype(str), ("", "none", "mtp")),
                "unstated acceptance of drafts",
            ),
            (
                np.nan_to_num(self.prompt + self.answer) > context,
                "unsupported: longer than the model's context",
            ),
            (np.isnan(self.target), "unstated result"),
        )

    def texts(self, kind: JsonObject) -> dict[str, str]:
        """Return the inputs of a group that are texts."""
        return {
            "workload.model": kind["model"],
            "workload.precision": kind["dense"],
            "workload.attention_format": kind["attention"],
            "workload.expert_format": kind["experts"],
            "workload.cache_format": self.cache_format(kind),
            "workload.attention_core_format": "bf16",
            "workload.engine": kind["engine"],
            "workload.software": "public",
        }

    def cache_format(self, kind: JsonObject) -> str:
        """Return the format in which published recipes keep the caches of a group."""
        eight = self.measurements.values.structure(f"parts.{kind['chip']}.peak_fp8") > 0
        narrow = kind["experts"] in ("fp8", "nvfp4", "mxfp4") or (
            kind["experts"] == "w4a8" and self.computes_experts_natively(kind)
        )
        return "fp8" if eight and narrow else "bf16"

    def computes_experts_natively(self, kind: JsonObject) -> bool:
        """Say whether the chip itself computes the format of a group's experts."""
        return computed_on(
            self.measurements.values, kind["chip"], kind["experts"], "workload.expert_format"
        ).is_native

    def numbers(self, kind: JsonObject, row_indices: AnyArray, input_values: Any) -> JsonObject:
        """Return a group's numeric inputs; speculative rows take unstated drafts from recipes."""
        group_inputs = {
            "workload.concurrency": self.concurrency[row_indices],
            "workload.offline": 1.0 * kind["offline"],
            "workload.equal_lengths": 1.0 * kind["equal"],
            "workload.input_tokens": self.prompt[row_indices],
            "workload.output_tokens": self.answer[row_indices],
        }
        if not kind["ahead"]:
            return group_inputs | {"workload.draft_tokens": 0.0}
        group_inputs |= {
            f"workload.{path}": input_values[f"performance.serving.{stands_in}"]
            for path, stands_in in DRAFTS.items()
        }
        if not np.isnan(self.drafts[row_indices]).all():
            group_inputs["workload.draft_tokens"] = np.where(
                np.isnan(self.drafts[row_indices]),
                group_inputs["workload.draft_tokens"],
                self.drafts[row_indices],
            )
        return group_inputs

    def plan(self, row_indices: AnyArray, is_disaggregated: bool) -> ServingPlan:
        """Return the plans that rows state."""
        decode, prefill = (
            {pool_field: pool_values[row_indices] for pool_field, pool_values in pool.items()}
            for pool in (self.decode, self.prefill)
        )
        tensor = decode["size"] / decode["groups"] / decode["stages"]
        chosen = DecodePlan(
            decode["size"], tensor, 1.0, decode["stages"], 0.0, 1.0, decode["experts"]
        )
        if not is_disaggregated:
            return ServingPlan(chosen, as_prefill_plan(chosen), decode["workers"])
        before = PrefillPlan(
            prefill["size"], prefill["size"] / prefill["groups"], 1.0, 1.0, 0.0, prefill["experts"]
        )
        return ServingPlan(chosen, before, decode["workers"], prefill["workers"])

    def take_engines(self, row_indices: AnyArray, engines: Engines) -> None:
        """Let rows that state no plan have the engines that a search found."""
        self.decode["size"][row_indices] = engines.size
        self.decode["groups"][row_indices] = engines.size / engines.tensor
        self.decode["experts"][row_indices] = engines.experts
        self.decode["workers"][row_indices] = self.gpus[row_indices] / engines.size
        self.decode["stages"][row_indices] = 1.0

    def axes(self, row_index: int) -> dict[str, float]:
        """Return the plan of a row as a command line takes it."""
        plan_axes = dict[str, float]()
        for prefix, pool in (("", self.decode), ("prefill_", self.prefill))[
            : 2 if self.apart[row_index] else 1
        ]:
            size, groups, experts, workers, stages = (
                float(pool[pool_field][row_index])
                for pool_field in ("size", "groups", "experts", "workers", "stages")
            )
            pool_axes = {
                "chips": size,
                "tp": size / groups / stages,
                "pp": stages,
                "ep": experts,
                "cp": 1.0,
                "workers": workers,
            }
            plan_axes |= {
                f"{prefix}{axis_name}": axis_value for axis_name, axis_value in pool_axes.items()
            }
        return plan_axes

    def settings(self, kind: JsonObject, row_index: int) -> JsonObject:
        """Return the inputs of a row as a command line sets them."""
        numbers = self.numbers(kind, np.array([row_index]), self.measurements.values)
        silent = "workload.concurrency" if kind["offline"] else "workload.offline"
        workload_numbers = {
            path: float(np.ravel(input_number)[0])
            for path, input_number in numbers.items()
            if path != silent
        }
        software = {"workload.software": self.date[row_index]}
        return self.texts(kind) | software | workload_numbers | {"workload.interactivity": ANY}

    def commands(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return each row's command line, the key of its answer, and the factor to its unit."""
        command, answer_keys, scale = (
            np.full(len(self.skip), missing, dtype=object) for missing in ("", "", np.nan)
        )
        for kind, row_indices in self.groups:
            for row_index in row_indices:
                command[row_index] = command_line(
                    ["perf", kind["chip"]],
                    {"plan": plan_axes_text(self.axes(row_index))},
                    self.settings(kind, row_index),
                )
                answer_keys[row_index] = KEYS[self.names[row_index]]
                prompt, answer = self.prompt[row_index], self.answer[row_index]
                scale[row_index] = {
                    "total_tput_tok_s_per_gpu": (prompt + answer) / answer,
                    "tpot_ms_mean": MILLI,
                }.get(self.names[row_index], 1.0)
        return command, answer_keys, scale


def _inference_targets(measurements: MeasuredRows, by_token: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return the measured value of every row and its name.

    It is tokens per second and GPU (all, else output), else time per token. Rows whose notes say so
    are held by their time per token first.
    """
    system = measurements["system_tput_tok_s"] / measurements["n_gpus"]
    output = measurements["output_tput_tok_s_per_gpu"]
    per_token, _ = measurements.first_stated("tpot_ms_mean", "tpot_ms_median")
    filled_measurements = measurements.assign(
        output_tput_tok_s_per_gpu=np.where(np.isnan(output), system, output),
        tpot_ms_mean=per_token,
    )
    rate, named = filled_measurements.first_stated(*KEYS)
    time, timed = filled_measurements.first_stated("tpot_ms_mean", *KEYS)
    return np.where(by_token, time, rate), np.where(by_token, timed, named)


def _group_machine(serving_rows: ServingRows, kind: JsonObject, row_indices: AnyArray) -> Machine:
    """Return the chips that some rows of a group run on.

    The software is that of the rows' dates.
    """
    measurements = serving_rows.measurements
    row_values = RowValues(
        measurements, serving_rows.numbers(kind, row_indices, measurements.values)
    )
    released = measurements.values.structure(f"parts.{kind['chip']}.released")
    reach = MEASURED._replace(months=serving_rows.months[row_indices] - released * 12)
    inputs: ResolvedScenario = serving_rows.inputs[kind["chip"]]
    return machine_of(inputs, row_values, serving_rows.texts(kind).__getitem__, reach)


def _predict_plans(
    serving_rows: ServingRows,
    kind: JsonObject,
    row_indices: AnyArray,
    plan: ServingPlan,
) -> tuple[dict[str, AnyArray], AnyArray]:
    """Return the predictions of a group's rows on the given plans by quantity, and which fit."""
    machine = _group_machine(serving_rows, kind, row_indices)
    workload = workload_on(machine, serving_rows.model(kind["model"]))
    serving_result = evaluate_serving_plan(workload, plan)
    output = serving_result.rates["output_tokens_per_s_per_chip"]
    per_token = serving_result.rates["tpot_s"]
    prompt, answer = serving_rows.prompt[row_indices], serving_rows.answer[row_indices]
    predicted = {
        "total_tput_tok_s_per_gpu": output * ((prompt + answer) / answer),
        "output_tput_tok_s_per_gpu": output,
        "tpot_ms_mean": per_token * MILLI,
    }
    return predicted, np.broadcast_to(
        serving_result.fits, (*serving_rows.measurements.sets, len(row_indices))
    )


def predict_group(
    serving_rows: ServingRows, kind: JsonObject, row_indices: AnyArray
) -> tuple[dict[str, AnyArray], AnyArray]:
    """Return the predictions of a group's rows by quantity, and which rows have a plan that fits.

    Where rows state no plan, the best whole engine that divides their chips stands for it.
    """
    if not kind["searched"]:
        return _predict_plans(
            serving_rows, kind, row_indices, serving_rows.plan(row_indices, kind["apart"])
        )
    machine = _group_machine(serving_rows, kind, row_indices[:1])
    engines = engines_inside_domain(machine, serving_rows.model(kind["model"]))
    matches = [
        np.flatnonzero(serving_rows.gpus[row_index] % engines.size == 0)
        for row_index in row_indices
    ]
    repeated = np.repeat(row_indices, [len(match) for match in matches])
    chosen = np.concatenate(matches)
    candidates = Engines(*(axis[chosen] for axis in engines))
    predicted, fits = _predict_plans(
        serving_rows, kind, repeated, candidates.plan(serving_rows.gpus[repeated])
    )
    rates = np.where(fits, predicted["output_tput_tok_s_per_gpu"], -np.inf)
    ends = np.cumsum([len(match) for match in matches])
    best = np.stack(
        [
            start + np.argmax(rates[..., start:end], axis=-1)
            for start, end in zip([0, *ends[:-1]], ends, strict=True)
        ],
        axis=-1,
    )
    if not serving_rows.measurements.sets:
        serving_rows.take_engines(row_indices, Engines(*(axis[best] for axis in candidates)))
        slowest = np.where(fits, predicted["output_tput_tok_s_per_gpu"], np.inf)
        serving_rows.slowest[row_indices] = np.minimum.reduceat(slowest, [0, *ends[:-1]])

    def of_best(candidate_values: Any) -> AnyArray:
        return np.take_along_axis(np.broadcast_to(candidate_values, fits.shape), best, axis=-1)

    return {
        metric_name: of_best(metric_values) for metric_name, metric_values in predicted.items()
    }, of_best(fits)


@once_per_owner
def serving_rows_of(measurements: MeasuredRows) -> ServingRows:
    """Return the rows of a file of serving points with their questions, read once."""
    return ServingRows(measurements)


def predict_serving_runs(measurements: MeasuredRows) -> Prediction:
    """Predict every row of a file of serving points."""
    serving_rows = serving_rows_of(measurements)
    skip = serving_rows.skip.copy()
    predicted = np.full((*measurements.sets, len(measurements)), np.nan)
    for kind, row_indices in serving_rows.groups:
        group_predictions, fits = predict_group(serving_rows, kind, row_indices)
        predicted[..., row_indices] = np.select(
            [serving_rows.names[row_indices] == metric_name for metric_name in group_predictions],
            [
                np.broadcast_to(group_prediction, fits.shape)
                for group_prediction in group_predictions.values()
            ],
        )
        if kind["offline"]:
            skip[row_indices[~serving_rows.at_once[row_indices]]] = OFFLINE
        skip[row_indices[~fits.reshape(-1, len(row_indices))[0]]] = (
            "unsupported: the plan does not fit memory"
        )
    prediction = Prediction(serving_rows.target, predicted, serving_rows.names, skip)
    prediction.unstated = np.where(serving_rows.searched, "plan", "").astype(object)
    if not measurements.sets:
        prediction.command, prediction.key, prediction.scale = serving_rows.commands()
        # a run without a plan may have had the slowest of the engines that fit
        prediction.low = np.where(
            np.isfinite(serving_rows.slowest), serving_rows.slowest, predicted
        )
    return prediction
