"""Read audited rows of MLPerf Inference as serving points, and leave out unusable runs.

An offline run has all requests at once. A server or interactive run is read as a closed loop at the
load its log shows: requests in flight are requests per second times the mean time of one (Little's
law). A run without a log is left out: its limits bind the 99th percentile of a random stream, and
logged means lie anywhere from 0.1 to 0.9 of them, so that a load read from limits would be a guess.

Whatever engine a submission is built on, it is no release of that engine: it runs kernels that its
vendor fused and tuned for the model. All of them run the engine `mlperf`.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from tco.core.types import AnyArray, JsonObject
from tco.validation.measured import map_values
from tco.validation.measured_rows import MeasuredRows
from tco.validation.naming import named_model, read_pattern_table

SUBMISSION = "mlperf"  # engine of vendors' own submissions
LENGTHS, SUSPECTS = "benchmark_lengths.csv", "suspect_rows.csv"
DEGREE = re.compile(r"\b(tp|pp|ep|dep)([1-9]\d*)\b")
GROUPED = re.compile(r"\battention-dp")
POOLS = re.compile(
    r"([1-9]\d*) prefill x (?:dep)?([1-9]\d*).* \+ ([1-9]\d*) decode x (?:dep)?([1-9]\d*)"
)
APART = re.compile(r"disagg")
DRAFTS = re.compile(r"\bMTP (\d+) drafts?\b")
ACCURACY = re.compile(r"-99(\.9)?$")
TWICE = "unsupported: one run, entered for 99 and for 99.9 % of accuracy"
OPEN = "unsupported: open division: model and accuracy are the submitter's own"
POOL_COLUMNS = ("gpus", "workers", "tp", "ep", "dp")


def is_audited(measurements: MeasuredRows) -> AnyArray:
    """Return which rows are of MLPerf Inference: they name their division."""
    return np.asarray(measurements["division"] != "")


def as_serving_rows(measurements: MeasuredRows) -> MeasuredRows:
    """Return rows of which the audited ones have the columns of serving rows."""
    audited = is_audited(measurements)
    if not audited.any():
        return measurements
    columns = _serving_columns(measurements.chosen(audited))
    for column_name, stated in columns.items():
        columns[column_name] = measurements[column_name].copy()
        columns[column_name][audited] = stated
    return measurements.assign(**columns)


def _serving_columns(measurements: MeasuredRows) -> dict[str, AnyArray]:
    """Return the columns of serving rows that audited ones state, by name."""
    nominal = _nominal_lengths(measurements)
    answers, prompts = measurements["osl_tokens"], measurements["isl_tokens"]
    answers = np.where(np.isnan(answers), nominal[:, 1], answers)
    prompts = np.where(np.isnan(prompts), nominal[:, 0], prompts)
    words = measurements["parallel"]
    plans = pd.DataFrame(map(stated_plan, words, measurements["n_gpus"]))
    drafts = map_values(words, stated_drafts, float)
    gaps = (answers - 1) * measurements["tpot_ms_mean"]
    times = measurements["ttft_ms_mean"] + gaps
    flight = np.asarray(measurements["requests_per_s"] * times / 1e3)
    return {column_name: plans[column_name].to_numpy() for column_name in plans} | {
        "isl_tokens": prompts,
        "osl_tokens": answers,
        "concurrency": np.where(all_at_once(measurements), np.nan, flight),
        "spec_decoding": np.where(drafts > 0, "mtp", measurements["spec_decoding"]),
        "draft_tokens": np.where(drafts > 0, drafts, np.nan),
    }


def submitted_formats(measurements: MeasuredRows, formats: AnyArray) -> AnyArray:
    """Return formats in which four bits of a submission are in the blocks that its chip takes.

    A submitter quantises the weights itself: to MXFP4 for chips whose matrix units take no NVFP4.
    """
    takes_nvfp4 = map_values(
        measurements.parts,
        lambda part: part == "" or measurements.values.exists(f"parts.{part}.takes_nvfp4"),
        bool,
    )
    in_other_blocks = is_audited(measurements) & ~takes_nvfp4
    return np.where(in_other_blocks[:, None] & (formats == "nvfp4"), "mxfp4", formats)


def all_at_once(measurements: MeasuredRows) -> AnyArray:
    """Return which rows state that all their requests wait at once."""
    return np.asarray(measurements.meanings("arrivals", "arrivals") == "at once")


def _nominal_lengths(measurements: MeasuredRows) -> AnyArray:
    """Return mean prompt and answer of the data set of every row; nan where it is unknown."""
    catalogue = measurements.catalogue
    columns = ("benchmark", "model", "input_tokens", "output_tokens", "source", "note")
    data_sets = read_pattern_table(catalogue, LENGTHS, columns)

    def lengths(cells: tuple[str, str]) -> tuple[float, float]:
        source, model = cells[0], named_model(catalogue, cells[1])
        for table_row in data_sets:
            if source.startswith(table_row["benchmark"]) and model == table_row["model"]:
                return float(table_row["input_tokens"]), float(table_row["output_tokens"])
        return np.nan, np.nan

    cells = zip(measurements["source_id"], measurements["model"], strict=True)
    return np.array(list(map(lengths, cells))).reshape(-1, 2)


def same_lengths(measurements: MeasuredRows, stated: AnyArray) -> AnyArray:
    """Return the lengths that audited runs of one data set share; of other rows those stated."""
    nominal = _nominal_lengths(measurements)
    shared = is_audited(measurements)[:, None] & ~np.isnan(nominal)
    return np.where(shared, nominal, stated)


def stated_drafts(words: str) -> float:
    """Return the tokens that a plan's words say are drafted a step; zero where they say none."""
    drafted = DRAFTS.search(words)
    return float(drafted[1]) if drafted else 0.0


def stated_plan(words: str, chips: float) -> JsonObject:
    """Return the columns of a serving row that the words of a plan state.

    Args:
        words: The plan as published, such as "tp8 pp1 ep8 attention-dp (config)".
        chips: All chips of the run.

    Returns:
        The columns of both pools; `searched` is one where the words state no plan.

    """
    plan: JsonObject = {
        f"{side}_{pool_column}": np.nan
        for side in ("prefill", "decode")
        for pool_column in POOL_COLUMNS
    }
    plan |= {"disaggregated": "no", "searched": 0.0, "tp": np.nan, "pp": np.nan, "ep": np.nan}
    plan |= {"groups": np.nan, "engine_chips": np.nan}
    if APART.search(words):
        plan["disaggregated"] = "yes"
        pools = POOLS.search(words)
        if pools:
            for side, workers, size in (
                ("prefill", *pools.group(1, 2)),
                ("decode", *pools.group(3, 4)),
            ):
                plan[f"{side}_workers"] = float(workers)
                plan[f"{side}_gpus"] = float(workers) * float(size)
                plan[f"{side}_ep"] = plan[f"{side}_dp"] = float(size)
        return plan
    degrees = {degree_name: float(size) for degree_name, size in DEGREE.findall(words)}
    if not degrees:
        return plan | {"searched": 1.0}
    wide = degrees.get("dep", 0.0)
    tensor, stages = degrees.get("tp", wide or 1.0), degrees.get("pp", 1.0)
    size = tensor * stages
    return plan | {
        "tp": tensor,
        "pp": stages,
        "ep": degrees.get("ep", wide or 1.0),
        "groups": tensor if wide or GROUPED.search(words) else 1.0,
        "engine_chips": size if chips % size == 0 else np.nan,
    }


def refused_runs(measurements: MeasuredRows) -> AnyArray:
    """Return the reason for leaving out each audited row, as text.

    The text is empty for rows that are not left out.
    """
    reasons = np.full(len(measurements), "", dtype=object)
    audited = is_audited(measurements)
    reasons[measurements["division"] == "open"] = OPEN
    reasons[audited & _repeated_runs(measurements)] = TWICE
    run_columns = ("source_id", "submitter", "accelerator", "model", "scenario")
    for suspect_row in read_pattern_table(
        measurements.catalogue, SUSPECTS, (*run_columns, "reason")
    ):
        matches = audited
        for run_column in run_columns:
            if suspect_row[run_column]:
                matches = matches & (measurements[run_column] == suspect_row[run_column])
        reasons[matches] = f"suspect: {suspect_row['reason']}"
    return reasons


def _repeated_runs(measurements: MeasuredRows) -> AnyArray:
    """Return which rows are an earlier run under another accuracy."""
    model_names = measurements["model"]
    columns = ("source_id", "submitter", "platform", "division", "scenario", "n_gpus")
    runs = pd.DataFrame(
        {
            column_name: measurements[column_name]
            for column_name in (*columns, "output_tok_s_per_gpu")
        }
    ).assign(model=map_values(model_names, lambda model_name: ACCURACY.sub("", model_name)))
    first = (
        runs.assign(name=model_names).groupby(list(runs), dropna=False)["name"].transform("first")
    )
    return np.asarray(first.to_numpy(object) != model_names)
