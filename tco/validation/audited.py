"""Audited rows of MLPerf Inference, read as serving points: lengths, load, plan, and runs to leave
out.

An offline run has all requests at once. A server or interactive run is read as a closed loop at the
load its log shows: requests in flight are requests per second times the mean time of one (Little's
law). A run without a log is left out: its limits bind the 99th percentile of a random stream, and
logged means lie anywhere from 0.1 to 0.9 of them, so that a load read from limits would be a guess.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.core.types import AnyArray, JsonObject
from tco.validation.measured import mapped, numeric_column, texts
from tco.validation.naming import named_model, read_pattern_table
from tco.validation.wording import interpret_note

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


def is_audited(table: pd.DataFrame) -> AnyArray:
    """Say of every row whether it is one of MLPerf Inference: it names its division."""
    divisions = texts(table, "division")
    return np.array([isinstance(division, str) and division != "" for division in divisions], bool)


def as_serving_rows(catalogue: Catalogue, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose audited rows have the columns of serving rows; all others stay."""
    rows = is_audited(table)
    if not rows.any():
        return table
    columns = serving_columns(catalogue, table[rows])
    return table.assign(**{name: replaced(table, rows, name, columns[name]) for name in columns})


def replaced(table: pd.DataFrame, rows: AnyArray, name: str, values: AnyArray) -> AnyArray:
    """Return a column with the values of some rows replaced; blank where it did not exist."""
    text = np.asarray(values).dtype == object
    column_values = texts(table, name) if text else numeric_column(table, name)
    column_values = column_values.copy()
    column_values[rows] = values
    return column_values


def serving_columns(catalogue: Catalogue, table: pd.DataFrame) -> dict[str, AnyArray]:
    """Return the columns of serving rows that audited ones state, by name."""
    nominal = nominal_lengths(catalogue, table)
    answers, prompts = numeric_column(table, "osl_tokens"), numeric_column(table, "isl_tokens")
    answers = np.where(np.isnan(answers), nominal[:, 1], answers)
    prompts = np.where(np.isnan(prompts), nominal[:, 0], prompts)
    words = texts(table, "parallel").astype(str)
    chips = numeric_column(table, "n_gpus")
    plans = pd.DataFrame(map(stated_plan, words, chips))
    drafts = mapped(words, stated_drafts, float)
    flight = requests_in_flight_of_log(table, answers)
    return {name: plans[name].to_numpy() for name in plans} | {
        "isl_tokens": prompts,
        "osl_tokens": answers,
        "concurrency": np.where(all_at_once(catalogue, table), np.nan, flight),
        "spec_decoding": np.where(drafts > 0, "mtp", texts(table, "spec_decoding")).astype(object),
        "draft_tokens": np.where(drafts > 0, drafts, np.nan),
    }


def all_at_once(catalogue: Catalogue, table: pd.DataFrame) -> AnyArray:
    """Say of every row whether it states that all its requests wait at once."""
    arrivals = texts(table, "arrivals").astype(str)
    return mapped(
        arrivals, lambda text: interpret_note(catalogue, "arrivals", text) == "at once", bool
    )


def requests_in_flight_of_log(table: pd.DataFrame, answers: AnyArray) -> AnyArray:
    """Return the requests in flight that rate and mean latencies of a log imply; NaN without
    one.
    """
    rate = numeric_column(table, "requests_per_s")
    first_token, per_token = (
        numeric_column(table, "ttft_ms_mean"),
        numeric_column(table, "tpot_ms_mean"),
    )
    return np.asarray(rate * (first_token + (answers - 1) * per_token) / 1e3)


def nominal_lengths(catalogue: Catalogue, table: pd.DataFrame) -> AnyArray:
    """Return mean prompt and answer of the data set of every row; NaN where it is unknown."""
    columns = ("benchmark", "model", "input_tokens", "output_tokens", "source", "note")
    data_sets = read_pattern_table(catalogue, LENGTHS, columns)

    def lengths(cells: tuple[str, str]) -> tuple[float, float]:
        source, model = cells[0], named_model(catalogue, cells[1])
        for row in data_sets:
            if source.startswith(row["benchmark"]) and model == row["model"]:
                return float(row["input_tokens"]), float(row["output_tokens"])
        return np.nan, np.nan

    cells = zip(texts(table, "source_id"), texts(table, "model"), strict=True)
    return np.array([lengths((str(source), str(name))) for source, name in cells]).reshape(-1, 2)


def same_lengths(catalogue: Catalogue, table: pd.DataFrame, stated: AnyArray) -> AnyArray:
    """Return the lengths that audited runs of one data set share; of other rows those stated."""
    nominal = nominal_lengths(catalogue, table)
    shared = is_audited(table)[:, None] & ~np.isnan(nominal)
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
        f"{side}_{name}": np.nan for side in ("prefill", "decode") for name in POOL_COLUMNS
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
    degrees = {name: float(size) for name, size in DEGREE.findall(words)}
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


def refused_runs(catalogue: Catalogue, table: pd.DataFrame) -> AnyArray:
    """Return the reason for leaving out each audited row, as text.

    The text is empty for rows that are not left out.
    """
    reasons = np.full(len(table), "", dtype=object)
    audited = is_audited(table)
    reasons[texts(table, "division") == "open"] = OPEN
    reasons[audited & repeated_runs(table)] = TWICE
    names = ("source_id", "submitter", "accelerator", "model", "scenario")
    for row in read_pattern_table(catalogue, SUSPECTS, (*names, "reason")):
        matches = np.ones(len(table), dtype=bool)
        for name in names:
            if row[name]:
                matches &= texts(table, name) == row[name]
        reasons[audited & matches] = f"suspect: {row['reason']}"
    return reasons


def repeated_runs(table: pd.DataFrame) -> AnyArray:
    """Say of every row whether an earlier one is the same run under another accuracy."""
    names = texts(table, "model").astype(str)
    columns = ("source_id", "submitter", "platform", "division", "scenario")
    runs = pd.DataFrame({name: texts(table, name).astype(str) for name in columns})
    runs = runs.assign(model=mapped(names, lambda name: ACCURACY.sub("", name)))
    runs = runs.assign(
        chips=numeric_column(table, "n_gpus"), rate=numeric_column(table, "output_tok_s_per_gpu")
    )
    first = runs.assign(name=names).groupby(list(runs), dropna=False)["name"].transform("first")
    return np.asarray(first.to_numpy(object) != names)
