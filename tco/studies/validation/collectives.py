"""Predictions for measured collectives: each row's own configuration through the formulas of `performance.collectives`.

A library decides which algorithms are open: NCCL chooses among ring, tree and in-switch reduction; TensorRT-LLM adds a one-shot
all-reduce; DeepEP exchanges expert tokens by low-latency or by normal kernels.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from tco.fabric import costs as cost
from tco.studies.validation.measured import base_skips, column, texts
from tco.studies.validation.score import Prediction
from tco.studies.validation.specifications import Specifications

Array = np.ndarray[Any, Any]
PLATEAU_SIZE = 8 * 2.0**30  # bytes taken for a row that states only its plateau at large messages
DEEPEP_CORES = 20.0  # the library's default where a row states none
FP8_BLOCK, SCALE_SIZE = 128.0, 4.0  # one FP32 scale for 128 numbers
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "send_recv", "ep_dispatch", "ep_combine", "p2p_link")


def skips(table: pd.DataFrame, chips: Specifications) -> pd.Series[str]:
    """Return why rows are not scored; empty where they are."""
    reasons = base_skips(table)

    def mark(rows: Any, reason: str) -> None:
        reasons[(reasons == "") & rows] = reason

    mark(chips.parts == "", "unknown-accelerator")
    mark(np.isnan(column(table, "n_gpus")), "unstated rank count")
    fabric = texts(table, "fabric")
    mark((column(table, "nodes", 1) > 1) & ((fabric == "") | (fabric == "mixed")), "unstated network")
    operations = texts(table, "op")
    mark(~np.isin(operations, OPERATIONS), "unsupported operation")
    expert = np.char.startswith(operations.astype(str), "ep_")
    mark(expert & np.isnan(column(table, "tokens_per_rank")), "unstated token count")
    nothing = np.isnan(column(table, "time_us")) & np.isnan(column(table, "algbw_gb_s")) & np.isnan(column(table, "busbw_gb_s"))
    mark(nothing, "unstated result")
    mark(column(table, "time_us", 1.0) == 0, "suspect: zero time")
    return reasons


def nic_rate(table: pd.DataFrame, default: Array) -> Array:
    """Return the NIC rate of a rank: stated in the fabric's text as count x rate of a node or as one rate, else the chip's."""
    rates = default.copy()
    per_node = column(table, "gpus_per_node", 8)
    for row, fabric in enumerate(texts(table, "fabric")):
        many, one = re.search(r"(\d+)x(\d+)G", str(fabric)), re.search(r"(\d+)G IB", str(fabric))
        if many:
            rates[row] = float(many[1]) * float(many[2]) * 1e9 / 8 / per_node[row]
        elif one:
            rates[row] = float(one[1]) * 1e9 / 8
    return rates


class Rows:
    """The stated configuration of some rows, as arrays."""

    def __init__(self, table: pd.DataFrame, chips: Specifications) -> None:
        self.table, self.chips = table, chips
        self.ranks = column(table, "n_gpus")
        domain = chips.part("scale_up_domain")
        inside = np.where(domain > 8, np.minimum(self.ranks, domain), np.minimum(self.ranks, column(table, "gpus_per_node", 8)))
        self.domains = np.asarray(cost.domains_of(self.ranks, inside))
        self.per_domain = self.ranks / self.domains
        self.size = column(table, "message_size_bytes", PLATEAU_SIZE)
        fabric, self.notes = texts(table, "fabric").astype(str), texts(table, "notes").astype(str)
        self.library = texts(table, "library").astype(str)
        self.algorithm = texts(table, "algo").astype(str)
        self.algorithm[(self.algorithm == "") & has(self.notes, "maintainer: ring")] = "Ring"
        scale = cost.latency_scale(
            chips.part("max_clock"), chips.part("dies"), chips.practice("die_latency_factor"), chips.practice("reference_clock")
        )
        over_pcie = np.where(chips.part("pcie_only") > 0, chips.practice("pcie_step_ratio"), 1.0)
        launch, trip = (cost.scaled_latency(chips.practice(name), scale) for name in ("collective_start", "endpoint_latency"))
        ends = cost.trips_to_memory(trip, chips.practice("endpoint_in_memory"))
        self.start = cost.start_with_ends(launch, ends)
        self.direct_start = cost.start_with_ends(cost.scaled_latency(launch, chips.practice("direct_start_ratio")), ends)
        self.reduction = cost.scaled_latency(chips.practice("reduction_latency"), scale)
        self.step = cost.scaled_latency(chips.practice("collective_step"), scale, over_pcie)
        self.chunk = cost.scaled_latency(chips.practice("collective_chunk"), scale)
        self.kernel = cost.start_with_ends(cost.scaled_latency(chips.practice("expert_kernel_latency"), scale), ends)
        self.network = np.where(has(fabric, "EFA"), chips.practice("efa_step"), chips.practice("network_step"))
        injected = cost.mesh_injection(chips.part("scale_up_bandwidth"), chips.part("point_to_point"), self.per_domain, domain)
        self.inside, self.direct = injected * chips.practice("link_efficiency"), injected * chips.practice("direct_efficiency")
        self.outside = nic_rate(table, chips.part("scale_out_bandwidth")) * chips.practice("link_efficiency")


def has(texts_of: Array, words: str) -> Array:
    """Say which texts hold some words."""
    return np.array([words in text for text in texts_of], dtype=bool)


def ring(rows: Rows, passes: int, reduces: bool) -> Any:
    """Time of a ring, or for a reduction to all of the quicker of ring and tree."""
    latency = cost.ring_latency(rows.start, passes, rows.ranks, rows.domains, rows.step, rows.network)
    if reduces:
        latency = cost.reducing_latency(latency, rows.ranks - 1, rows.reduction)
    if passes == 2:
        board = rows.chips.part("board_chips")
        tree = cost.tree_latency(rows.start, passes, rows.per_domain, board, rows.domains, rows.step, rows.network)
        depth = cost.tree_latency(0.0, 1, rows.per_domain, board, rows.domains, 1.0, 1.0)
        latency = np.minimum(latency, cost.reducing_latency(tree, depth, rows.reduction))
    inner = cost.ring_bytes(rows.size, rows.ranks, passes)
    outer = cost.outer_share(rows.size, rows.domains, rows.per_domain, passes)
    return cost.pipelined_time(latency, cost.wire_time(inner, rows.inside, outer, rows.outside), rows.chunk)


def all_reduce(rows: Rows) -> Any:
    """Time of NCCL's all-reduce: ring or tree, or in the switch where it reduces and the row does not say ring."""
    outer = cost.outer_share(rows.size, rows.domains, rows.per_domain, 2)
    wire = cost.wire_time(cost.in_network_bytes(rows.size, rows.per_domain), rows.direct, outer, rows.outside)
    latency = cost.in_network_latency_of(rows.start, rows.chips.practice("in_network_latency"), rows.domains, rows.network)
    in_switch = cost.pipelined_time(latency, wire, rows.chunk)
    possible = (rows.chips.part("in_network_reduction") > 0) & (rows.per_domain > 2) & (rows.algorithm != "Ring")
    around = np.where(possible & (rows.algorithm == "NVLS"), np.inf, ring(rows, 2, reduces=True))
    return np.minimum(around, np.where(possible, in_switch, np.inf))


def exchange(rows: Rows) -> Any:
    """Time of an all-to-all."""
    inner = cost.inner_exchange(rows.size, rows.ranks, rows.per_domain)
    outer = cost.outer_exchange(rows.size, rows.ranks, rows.per_domain)
    latency = cost.exchange_latency(rows.start, rows.ranks, rows.domains, rows.step, rows.network)
    return cost.pipelined_time(latency, cost.wire_time(inner, rows.inside, outer, rows.outside), rows.chunk)


def transfer(rows: Rows) -> Any:
    """Time of one transfer to a neighbour, inside the domain or over the network."""
    inner, outer = cost.staying_bytes(rows.size, rows.domains), cost.crossing_bytes(rows.size, rows.domains)
    latency = rows.start + np.where(rows.domains > 1, rows.network, rows.step)
    return cost.direct_time(latency, cost.wire_time(inner, rows.inside, outer, rows.outside))


def custom_all_reduce(rows: Rows) -> Any:
    """Time of TensorRT-LLM's all-reduce: one-shot inside a domain while it is quicker than NCCL."""
    wire = cost.wire_time(cost.one_shot_bytes(rows.size, rows.ranks), rows.direct, 0.0, rows.outside)
    latency = cost.direct_latency(rows.direct_start, 1, rows.ranks, rows.domains, rows.step, rows.network)
    one_shot = cost.direct_time(cost.reducing_latency(latency, 1, rows.reduction), wire)
    return np.minimum(np.where(rows.domains == 1, one_shot, np.inf), all_reduce(rows))


def places(rows: Rows, units: Array) -> Any:
    """Distinct places the experts of a token fall on; routing limited to 4 of 8 groups draws them without replacement."""
    limited, active = has(rows.notes, "group-limited"), column(rows.table, "topk", 1)
    groups, drawn = 8.0, 4
    missed = np.ones(len(units))
    for draw in range(drawn):
        missed = missed * np.maximum(groups - groups / np.minimum(units, groups) - draw, 0) / (groups - draw)
    per_group = np.maximum(units / groups, 1)
    fine = drawn * np.asarray(cost.distinct_places(per_group, active / drawn))
    grouped = np.where(units > groups, fine, units * (1 - missed))
    return np.where(limited, grouped, cost.distinct_places(units, active))


def expert_token(rows: Rows) -> Any:
    """Bytes of one token on the wire: FP8 with block scales, or BF16."""
    fp8 = has(texts(rows.table, "dtype").astype(str), "fp8")
    hidden = column(rows.table, "hidden", 0)
    return np.where(fp8, cost.token_bytes(hidden, 1.0, SCALE_SIZE, FP8_BLOCK), cost.token_bytes(hidden, 2.0, 0.0, FP8_BLOCK))


def expert_exchange(rows: Rows, kernels: int, low_latency: bool) -> Any:
    """Time of a DeepEP dispatch or combine."""
    tokens, active, token = column(rows.table, "tokens_per_rank"), column(rows.table, "topk", 1), expert_token(rows)
    network = cost.crossing_step(rows.network, rows.domains)
    outside = (rows.domains - 1) / rows.domains
    if low_latency:
        inner = cost.scattered_bytes(tokens, active, token, (rows.per_domain - 1) / rows.ranks)
        outer = cost.scattered_bytes(tokens, active, token, outside)
        return cost.expert_exchange_time(1, rows.kernel, network, cost.wire_time(inner, rows.direct, outer, rows.outside), 0.0)
    ranks = places(rows, rows.ranks)
    inner = cost.deduplicated_bytes(tokens, ranks, token, (rows.per_domain - 1) / rows.per_domain)
    outer = cost.deduplicated_bytes(tokens, places(rows, rows.domains), token, outside)
    cores = column(rows.table, "sms", DEEPEP_CORES)
    copying = cost.copy_time(tokens, token, ranks, cores, rows.chips.practice("core_copy_rate"))
    return cost.expert_exchange_time(kernels, rows.kernel, network, cost.wire_time(inner, rows.direct, outer, rows.outside), copying)


def times(rows: Rows, operation: str) -> Array:
    """Return the time of every row of one operation, in seconds, by its library."""
    if operation.startswith("ep_"):
        low = has(rows.library, "low-latency") | has(texts(rows.table, "fabric").astype(str), "pure RDMA")
        normal = expert_exchange(rows, 2 if operation == "ep_dispatch" else 3, low_latency=False)
        return np.asarray(np.where(low, expert_exchange(rows, 1, low_latency=True), normal))
    if operation == "p2p_link":
        return np.asarray(rows.size / rows.inside)
    if operation == "send_recv":
        return np.asarray(transfer(rows))
    if operation == "all_reduce":
        made = np.where(has(rows.library, "custom all-reduce"), custom_all_reduce(rows), all_reduce(rows))
    else:
        made = exchange(rows) if operation == "alltoall" else ring(rows, 1, reduces=operation == "reduce_scatter")
    return np.asarray(made + np.where(has(rows.library, "PyTorch"), rows.chips.practice("eager_overhead"), 0.0))


def reported_bytes(rows: Rows) -> Any:
    """Bytes the publisher divides by the time: the buffer, or the copies that a DeepEP rank or node receives."""
    tokens = column(rows.table, "tokens_per_rank", 0)
    received = tokens * expert_token(rows) * np.where(rows.domains > 1, places(rows, rows.domains), places(rows, rows.ranks))
    return np.where(tokens > 0, received, rows.size)


def predict(table: pd.DataFrame, chips: Specifications) -> Prediction:
    """Predict every row of a file of collectives: its time, or the bandwidth it gives instead."""
    skip = np.array(skips(table, chips), dtype=object)
    target, predicted = np.full(len(table), np.nan), np.full(len(table), np.nan)
    names = np.full(len(table), "", dtype=object)
    operations = texts(table, "op")
    for operation in OPERATIONS:
        chosen = (skip == "") & (operations == operation)
        if not chosen.any():
            continue
        rows = Rows(table[chosen], chips.rows(chosen))
        seconds = times(rows, operation)
        measured = column(rows.table, "time_us")
        stated = ~np.isnan(measured)
        bandwidth = column(rows.table, "algbw_gb_s")
        target[chosen] = np.where(stated, measured, bandwidth)
        predicted[chosen] = np.where(stated, seconds * 1e6, reported_bytes(rows) / seconds / 1e9)
        names[chosen] = np.where(stated, "time_us", "algbw_gb_s")
    lost = (skip == "") & np.isnan(target)
    skip[lost] = "unsupported target: bus bandwidth alone"
    return Prediction(target, predicted, names, skip)
