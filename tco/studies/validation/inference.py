"""Predictions for measured serving points: the engine's own operators and closed loop, on arrays of rows of one model at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tco.fabric.library import read_library
from tco.fabric.links import Links, Route, links_of_chips
from tco.models.architecture import Architecture, load_model
from tco.performance.chip.machine import Machine, share_of_rate
from tco.performance.chip.memory import usable_memory
from tco.performance.chip.roofline import achieved_bandwidth, achieved_rate, exponential_rate
from tco.performance.serving import closed_loop as loop
from tco.performance.serving.forward import forward_pass
from tco.performance.serving.operators import Pass, Shape
from tco.performance.serving.phases import held_in_memory
from tco.studies.validation.measured import column
from tco.studies.validation.operating_points import Points
from tco.studies.validation.row_values import CHIP, FAMILY, RowValues
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
ROUNDS = 6  # of the closed loop
STORED = {"weight8": 1.0, "mxfp4": 4.25 / 8, "nvfp4": 4.5 / 8, "int4": 4.5 / 8, "fp8": 1.0, "int8": 1.0, "bf16": 2.0}
WIDER = ("peak_fp4", "peak_fp8", "peak_bf16")
OPERANDS = ("attention", "expert", "dense")


def targets(table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the measured value of every row and what it is: tokens per second and GPU (all, else output), else time per token."""
    total, output = column(table, "total_tput_tok_s_per_gpu"), column(table, "output_tput_tok_s_per_gpu")
    output = np.where(np.isnan(output), column(table, "system_tput_tok_s") / column(table, "n_gpus"), output)
    per_token = column(table, "tpot_ms_mean")
    per_token = np.where(np.isnan(per_token), column(table, "tpot_ms_median"), per_token)
    kinds = [~np.isnan(total), ~np.isnan(output), ~np.isnan(per_token)]
    names = np.select(kinds, ["total_tput_tok_s_per_gpu", "output_tput_tok_s_per_gpu", "tpot_ms_mean"], "")
    return np.select(kinds, [total, output, per_token], np.nan), names


class Engines:
    """Machines of the rows of one model: every field an array."""

    def __init__(self, points: Points, rows: Array) -> None:
        self.points, self.rows = points, rows
        self.chips = points.chips.rows(rows)
        self.formats = points.formats[rows]
        self.engine = points.engine[rows]
        practice, part = self.chips.practice, self.chips.part
        self.nvidia = self.chips.families == "nvidia"
        self.young = np.asarray(loop.maturity(practice("port_overhead"), practice("port_decline"), points.months[rows] + 2))
        self.links = self.links_of()
        wide = achieved_rate(part("peak_bf16"), practice("gemm_efficiency_bf16"))
        rates = {operand: self.rate(index) for index, operand in enumerate(OPERANDS)}
        stored = [np.array([STORED[form] for form in self.formats[:, index]]) for index in range(3)]
        core, hbm = share_of_rate(wide, practice("attention_share")), part("hbm_bandwidth")
        self.machine = Machine(
            chip="",
            formats=(),
            attention_gemm=rates["attention"],
            dense_gemm=rates["dense"],
            expert_gemm=share_of_rate(rates["expert"], self.grouped_share()),
            head_gemm=wide,
            core=core,
            index=share_of_rate(core, 2),
            recurrent=share_of_rate(core, practice("recurrent_share")),
            bandwidth=achieved_bandwidth(hbm, practice("memory_efficiency")),
            cache_bandwidth=achieved_bandwidth(hbm, practice("cache_efficiency")),
            memory=usable_memory(part("hbm_capacity"), practice("memory_reserve")),
            attention_size=stored[0],
            dense_size=stored[2],
            expert_size=stored[1],
            head_size=2.0,
            activation_size=2.0,
            dispatch_size=1.0,
            cache_size=np.where(np.isin(self.formats[:, 1], ("fp8", "nvfp4")) & (part("peak_fp8") > 0), 1.0, 2.0),
            launch=practice("launch_time") * self.young,
            overhead=np.select([self.engine == "sglang", self.engine == "vllm"], [practice("host_sglang"), practice("host_vllm")], 0.0) * self.young,
            collective_wait=practice("collective_wait") * self.young,
            exchange_wait=practice("exchange_wait") * self.young,
            passes=practice("residual_passes"),
            permutes=practice("expert_passes"),
            imbalance=practice("expert_imbalance"),
            expert_engine=self.expert_engine(),
            exponentials=exponential_rate(part("cores"), part("exponentials_per_clock"), part("clock"), 1.0),
            vector=part("peak_vector"),
            softmax_operations=practice("softmax_operations"),
            exchange_overlap=practice("exchange_overlap"),
            links=self.links,
        )

    def computed(self, index: int) -> Array:
        """Return the peak that computes an operand: FP4 and FP8 where the chip has them, else 16 bits with narrow weights unpacked."""
        forms, part = self.formats[:, index], self.chips.part
        four, eight = part("peak_fp4") > 0, part("peak_fp8") > 0
        fp4 = (forms == "nvfp4") & four
        fp8 = ((forms == "mxfp4") & four) | ((forms == "fp8") & eight)
        return np.select([fp4, fp8], WIDER[:2], WIDER[2])

    def rate(self, index: int) -> Array:
        """Return the rate of large products of an operand."""
        used = self.computed(index)
        practice = self.chips.practice
        peaks = [achieved_rate(self.chips.part(peak), practice(f"gemm_efficiency_{peak.removeprefix('peak_')}")) for peak in WIDER]
        return np.select([used == peak for peak in WIDER], peaks)

    def grouped_share(self) -> Array:
        """Return the rate of grouped products over dense ones: those of FP4 kernels reach the dense rate."""
        used, practice = self.computed(1), self.chips.practice
        narrow = (used == "peak_fp4") | ((self.formats[:, 1] == "mxfp4") & (self.chips.part("peak_fp4") > 0))
        shares = np.where(used == "peak_fp8", practice("grouped_share_fp8"), practice("grouped_share_bf16"))
        return np.where(narrow, practice("grouped_share_fp4"), shares)

    def expert_engine(self) -> Array:
        """Return how much slower an engine's block-FP8 expert kernels are."""
        slower = (self.computed(1) == "peak_fp8") & (self.formats[:, 1] == "fp8") & self.nvidia & np.isin(self.engine, ("sglang", "vllm"))
        return np.where(slower, self.chips.practice("block_fp8_engine"), 1.0)

    def links_of(self) -> Links:
        """Return the links of every row's chip: its server or rack inside, the network outside."""
        values = RowValues(self.chips, {"cluster.oversubscription": 1.0})
        library = read_library(self.chips.catalogue, "best")
        return links_of_chips(values, CHIP, FAMILY, Route("leaf", 1), library, self.young)._replace(reduces=0.0, mesh=None)

    def forward(self, model: Architecture, shape: Shape, logits: Any) -> Any:
        """Return the time of a forward pass of every row."""
        operators = forward_pass(Pass(self.machine, model, shape), logits)
        return sum(operator.time for operator in operators)


def predict_model(points: Points, rows: Array, model: Architecture) -> dict[str, Array]:
    """Return rate and time per token of the rows of one model."""
    engines = Engines(points, rows)
    practice = engines.chips.practice
    decode, prefill = ({name: values[rows] for name, values in pool.items()} for pool in (points.decode, points.prefill))
    prompt, answer, apart = points.prompt[rows], points.answer[rows], points.apart[rows]
    ahead = points.speculative[rows]
    verify = np.where(ahead, practice("speculative_tokens"), 1.0)
    accepted = np.where(ahead, practice("speculative_accepted"), 1.0)
    draft = np.where(ahead, practice("draft_share"), 0.0)
    flight = points.concurrency[rows] / decode["workers"]

    def shape(pool: dict[str, Array], sequences: Any, tokens: Any, keys: Any, decoding: bool) -> Shape:
        return Shape(pool["size"], pool["size"] / pool["groups"], pool["experts"], tokens, keys, sequences, decoding)

    # a prompt on every attention group; engine time of one prompt, groups without a prompt idle
    batch = engines.forward(model, shape(prefill, 1.0, prompt, prompt / 2, False), 1.0)
    filled = np.where(apart, prefill["groups"], np.minimum(prefill["groups"], np.maximum(flight, 1.0)))
    one = batch / filled
    first = batch * np.minimum(flight, prefill["groups"]) / prefill["groups"] + practice("first_token_start")
    pool = one * decode["workers"] / prefill["workers"]
    # equal lengths keep all requests of a prefill-first engine in step: half of the prefill waits for the first token
    interference = np.where(points.fixed[rows] & (engines.engine == "sglang"), 0.5, practice("prefill_interference"))
    context = prompt + answer / 2
    running = np.minimum(flight, sequences_that_fit(engines.machine, model, shape(decode, 1.0, 1.0, context, True), context, decode["groups"]))
    size = running
    aggregated = np.where(apart, 0.0, 1.0)
    for _ in range(ROUNDS):
        share = np.maximum(size / decode["groups"], 1.0)
        step = loop.engine_step(
            engines.forward(model, shape(decode, share, share * verify, context, True), share * verify), draft, engines.machine.overhead, accepted
        )
        waiting = loop.waiting_for_prompts(size, one, aggregated)
        per_token = loop.time_per_output_token(step, waiting, interference, answer)
        ttft = loop.first_token_time(first, step, waiting, interference)
        rate = loop.request_rate(running, ttft, answer, per_token, pool)
        decoding = np.where(apart, loop.decoding_sequences(rate, answer, per_token), running)
        size = loop.settled_batch(size, decoding, running)
    per_chip = practice("steady_share") * rate * decode["workers"] / points.gpus[rows]
    return {
        "total_tput_tok_s_per_gpu": per_chip * (prompt + answer),
        "output_tput_tok_s_per_gpu": per_chip * answer,
        "tpot_ms_mean": np.asarray(per_token) * 1e3,
    }


def sequences_that_fit(machine: Machine, model: Architecture, shape: Shape, context: Array, groups: Array) -> Any:
    """Return the sequences whose caches a worker's memory holds beside the weights, at least one a group."""
    empty = held_in_memory(machine, model, shape._replace(sequences=0.0), context)
    one = held_in_memory(machine, model, shape, context) - empty
    return groups * np.maximum(np.maximum(machine.memory - empty, 0.02 * machine.memory) / one, 1.0)


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of serving points."""
    points = Points(table, chips)
    target, names = targets(table)
    skip = points.skips(target)
    predicted = np.full(len(table), np.nan)
    for name in sorted(set(points.models[skip == ""])):
        rows = np.flatnonzero((skip == "") & (points.models == name))
        made = predict_model(points, rows, load_model(chips.catalogue, name))
        predicted[rows] = np.select([names[rows] == kind for kind in made], list(made.values()))
    return Prediction(target, predicted, names, skip)
