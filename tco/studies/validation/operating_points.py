"""Reading serving rows: what each states of its engine, its formats, its pools and its load. One rule for all rows.

What is read depends on what a row's own columns say, never on who published it. What a row leaves unstated is the checkpoint's own
format, software that has grown up, or skips the row with a reason. So does a row whose figures contradict each other: requests in flight are
the rate of requests times the time one takes (Little's law). Of a closed loop the left side is the stated concurrency, and the right side
follows from the printed throughput and latencies. Of the 1,281 shipped rows that state both, 94 in 100 agree within 15 %, and all lie between
0.73 and 1.17 but for a group of 36 from 0.02 to 0.68. Medians printed for means explain the first, nothing the second: rate, latency or
concurrency are of another run.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tco.catalog import Catalogue
from tco.chain.texts import checkpoint_of, month_of
from tco.models.architecture import Architecture, load_model
from tco.studies.validation.measured import column, first_stated, refused, texts
from tco.studies.validation.naming import model_ids, rows_of
from tco.studies.validation.specifications import Specifications
from tco.studies.validation.wording import meaning

BREAKS = "suspect: breaks Little's law: rate x time of a request is not the stated concurrency"
TOLERANCE = 1.4  # ratio of the two sides, either way


def requests_in_flight(table: pd.DataFrame) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the requests that are being answered and those that wait for a first token, as rates and latencies imply; NaN where unstated.

    The output rate of separate pools is printed per chip of either all pools or one, so that only the rate of all tokens is read there.
    """
    prompt, answer = column(table, "isl_tokens"), column(table, "osl_tokens")
    separate = column(table, "prefill_gpus") > 0
    output = np.where(separate, np.nan, column(table, "output_tput_tok_s_per_gpu"))
    total = column(table, "total_tput_tok_s_per_gpu")
    rate = column(table, "n_gpus") * np.where(np.isnan(total), output, total * answer / (prompt + answer)) / answer
    first = first_stated(table, "ttft_ms_mean", "ttft_ms_median")[0] / 1e3
    each = first_stated(table, "tpot_ms_mean", "tpot_ms_median")[0] / 1e3
    each = np.where(np.isnan(each), 1 / column(table, "interactivity_tok_s_per_user"), each)
    return rate * (answer - 1) * each, rate * first


def breaks_littles_law(table: pd.DataFrame) -> np.ndarray[Any, Any]:
    """Say of every row whether its own figures contradict each other; without a time to first token there are only too many requests."""
    with np.errstate(divide="ignore", invalid="ignore"):
        stated = column(table, "concurrency")
        concurrency = np.where(np.isinf(stated), np.nan, stated)  # offline there is nothing to hold the other side against
        answered, waiting = (requests / concurrency for requests in requests_in_flight(table))
        return np.asarray((answered + np.nan_to_num(waiting) > TOLERANCE) | (answered + waiting < 1 / TOLERANCE))


Array = np.ndarray[Any, Any]
GROWN = "2026-01"  # sweeps of models that predict ahead say so from then on


def software_of(catalogue: Catalogue, framework: str, date: str) -> tuple[str, str]:
    """Return the engine a framework names (that of the chip's family where it names none) and the date of its software, empty if unstated."""
    table, text = rows_of(catalogue, "serving_engines.csv", ("pattern", "engine", "version", "date")), framework.lower()
    engine = next((row["engine"] for row in table if row["pattern"].pattern and row["pattern"].search(text)), "family")
    released = [row["date"] for row in table if row["version"] and re.search(rf"{row['engine']} {re.escape(row['version'])}", text)]
    text = released[-1] if released else date
    return engine, text if month_of(text) is not None else ""


def formats_of(catalogue: Catalogue, model: str, precision: str, sparse: bool) -> tuple[str, str, str]:
    """Return the formats of attention, experts and dense parts; a dense model's FP4 takes in its attention too."""
    row = checkpoint_of(catalogue, model, precision)
    return row.attention if sparse else row.dense, row.experts, row.dense


class Points:
    """What the rows of a serving file state, as arrays, and why some are not scored."""

    def __init__(self, table: pd.DataFrame, chips: Specifications) -> None:
        self.table, self.chips, catalogue = table, chips, chips.catalogue
        self.models = model_ids(catalogue, table)
        software = {
            row: software_of(catalogue, *row)
            for row in set(zip(texts(table, "framework").astype(str), texts(table, "date").astype(str), strict=True))
        }
        found = [software[row] for row in zip(texts(table, "framework").astype(str), texts(table, "date").astype(str), strict=True)]
        self.engine, self.date = (np.array(part, dtype=object) for part in zip(*found, strict=True))
        self.apart = np.isin(texts(table, "disaggregated").astype(str), ("1", "1.0", "True", "true"))
        prompt, answer = column(table, "isl_tokens"), column(table, "osl_tokens")
        drawn = self.drawn(prompt, answer)
        self.prompt, self.answer = prompt * drawn, answer * drawn
        self.gpus, self.offline = column(table, "n_gpus"), self.without_users()
        self.concurrency = np.where(self.offline, 0.0, column(table, "concurrency"))
        sparse = {m: any(b.feed_forward.experts for b in self.model(m).blocks) for m in set(self.models) - {""}}
        pairs = list(zip(self.models, texts(table, "precision").astype(str), strict=True))
        formats = {pair: formats_of(catalogue, *pair, sparse.get(pair[0], False)) for pair in set(pairs)}
        self.formats = np.array([formats[pair] for pair in pairs], dtype=object).reshape(-1, 3)
        self.speculative, self.unstated_speculation = self.speculation(drawn)
        self.decode, self.prefill = self.pool("decode"), self.pool("prefill")

    def model(self, name: str) -> Architecture:
        """Return the model of a row."""
        return load_model(self.chips.catalogue, name)

    def says(self, meaning: str) -> Array:
        """Return which rows carry a note that means something: how columns of theirs are to be read."""
        notes = texts(self.table, "notes").astype(str)
        patterns = [row["pattern"] for row in rows_of(self.chips.catalogue, "row_notes.csv", ("pattern", "meaning")) if row["meaning"] == meaning]
        known = {text: any(pattern.search(text) for pattern in patterns) for text in set(notes)}
        return np.array([known[text] for text in notes], dtype=bool)

    def without_users(self) -> Array:
        """Return which rows run offline: all requests wait at once, so that the batch is what memory holds."""
        scenario, stated = texts(self.table, "scenario").astype(str), column(self.table, "concurrency")
        said = {text: meaning(self.chips.catalogue, "load", text) == "offline" for text in set(scenario)}
        return np.asarray(np.isinf(stated) | (np.isnan(stated) & np.array([said[text] for text in scenario], dtype=bool)))

    def drawn(self, prompt: Array, answer: Array) -> Array:
        """Return the mean of what a benchmark draws its lengths from, over the nominal length."""
        scenario, share = texts(self.table, "scenario").astype(str), np.ones(len(self.table))
        for row in rows_of(self.chips.catalogue, "benchmarks.csv", ("scenario", "lengths", "drawn", "note")):
            lengths = [float(text) for text in row["lengths"].split()]
            matches = np.array([row["scenario"] in text for text in scenario]) & np.isin(prompt, lengths) & np.isin(answer, lengths)
            share[matches] = float(row["drawn"])
        return share

    def speculation(self, drawn: Array) -> tuple[Array, Array]:
        """Return which rows predict several tokens, and for which it is unstated.

        Exports of a sweep may lack that column: a sweep whose own rows all predict ahead does, one whose rows do not does not, and
        other recent rows of models that ship prediction layers stay unstated.
        """
        stated = texts(self.table, "spec_decoding").astype(str) == "mtp"
        names = ("accelerator", "precision", "date", "scenario")
        sweep = pd.DataFrame({name: texts(self.table, name).astype(str) for name in names})
        sweep = sweep.assign(model=self.models, engine=self.engine, apart=self.apart)
        export = self.says("no speculation column")
        known = sweep[~export].assign(ahead=stated[~export]).groupby(list(sweep.columns)).ahead.agg(["min", "max"])
        joined = sweep.merge(known, left_on=list(sweep.columns), right_index=True, how="left")
        every = export & (joined["min"] == True).to_numpy(bool)  # noqa: E712 - a missing sweep is neither
        none = (joined["max"] == False).to_numpy(bool)  # noqa: E712
        recent = texts(self.table, "date").astype(str) >= GROWN
        ahead = {model: bool(model) and self.model(model).prediction_layers > 0 for model in set(self.models)}
        predicts = np.array([ahead[model] for model in self.models])
        return stated | every, export & (drawn < 1) & predicts & recent & ~every & ~none

    def pool(self, side: str) -> dict[str, Array]:
        """Return size, workers, attention groups and expert groups of a worker of one side; one pool serves both when aggregated."""
        chips, workers = column(self.table, f"{side}_gpus"), column(self.table, f"{side}_workers")
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.where(self.apart, np.where((chips > 0) & (workers > 0), chips / workers, np.nan), self.gpus)
        experts = np.where(self.apart, column(self.table, f"{side}_ep", 1), column(self.table, "ep", 1))
        stated = pd.to_numeric(pd.Series(texts(self.table, "dp_attention")), errors="coerce").to_numpy(float)
        groups = np.where(self.apart, column(self.table, f"{side}_dp"), stated)
        experts = np.minimum(np.maximum(experts, 1), size)
        # attention data parallel is a degree; where nothing says that degrees are stated, one is a flag that goes with experts over all chips
        degrees = ~np.isnan(column(self.table, "pp")) | self.says("degrees")
        flag = ~degrees & (groups == 1) & ((experts == size) | (column(self.table, f"{side}_tp") == 1))
        degree = np.maximum(np.minimum(np.nan_to_num(groups, nan=1), size), 1)
        return {
            "size": size,
            "workers": np.where(self.apart, workers, 1.0),
            "groups": np.where(flag, size, degree),
            "experts": experts,
            "stated": ~np.isnan(groups),
        }

    @cached_property
    def reasons(self) -> Array:
        """Why rows are not scored whatever the model says; empty where they may be."""
        apart = self.apart & ~self.decode["stated"] & ~self.prefill["stated"]
        context = np.array([self.model(model).context if model else np.inf for model in self.models])
        return refused(
            self.table,
            (breaks_littles_law(self.table), BREAKS),
            (self.models == "", "unknown-model"),
            (self.chips.parts == "", "unknown-accelerator"),
            (~((self.prompt > 0) & (self.answer > 0)), "unstated lengths"),
            (~self.offline & ~(self.concurrency > 0), "unstated concurrency"),
            (np.isnan(self.gpus) | np.isnan(self.decode["size"]) | np.isnan(self.prefill["size"]), "unstated workers"),
            (apart, "unstated attention parallelism"),
            (self.unstated_speculation, "unstated speculative decoding"),
            (~np.isin(texts(self.table, "spec_decoding").astype(str), ("", "none", "mtp")), "unstated acceptance of drafts"),
            (np.nan_to_num(self.prompt + self.answer) > context, "unsupported: longer than the model's context"),
        )
