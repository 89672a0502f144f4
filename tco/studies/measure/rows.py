"""Outcomes as rows of the measured files: times, and the rates that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tco.fabric.costs import bus_factor
from tco.performance.chip.roofline import attention_flops, gemm_flops
from tco.studies.measure.run import Outcome, Timing
from tco.studies.measure.sweeps import NUMBER_SIZES, Collective, Kernel

SOURCE, TITLE = "own-measurement", "Measured on one's own machine with tco measure"
KERNEL_COLUMNS = (
    *("source_id", "source_title", "source_url", "date", "accelerator", "op", "kernel_source", "dtype", "m", "n", "k", "groups", "batch"),
    *("seq_q", "seq_kv", "heads_q", "heads_kv", "head_dim", "causal", "tp", "time_us", "tflops", "gb_s", "peak_tflops_dense", "pct_of_peak"),
    *("value_kind", "notes"),
)
COLLECTIVE_COLUMNS = (
    *("source_id", "source_title", "source_url", "date", "accelerator", "n_gpus", "nodes", "gpus_per_node", "fabric", "library", "op", "dtype"),
    *("algo", "message_size_bytes", "time_us", "algbw_gb_s", "busbw_gb_s", "ep_size", "tokens_per_rank", "hidden", "topk", "experts", "sms"),
    *("value_kind", "notes"),
)
SHAPE = ("m", "n", "k", "batch", "seq_q", "seq_kv", "heads_q", "heads_kv", "head_dim")
COUNTED = {
    "attention_prefill": "TFLOP/s count the causal half",
    "attention_decode": "GB/s count keys and values read only",
}
DIGITS = 6  # significant ones that a clock gives


@dataclass(frozen=True, slots=True)
class Origin:
    """What all rows of a file share."""

    accelerator: str
    library: str
    date: str

    def cells(self) -> dict[str, Any]:
        """Return the cells they share."""
        return {"source_id": SOURCE, "source_title": TITLE, "date": self.date, "accelerator": self.accelerator, "value_kind": "measured"}


def rounded(value: Any) -> float:
    """Return a measured number at the digits a clock gives."""
    return float(f"{float(value):.{DIGITS}g}")


def flops_of(kernel: Kernel) -> Any:
    """Return the work of a kernel; None where it only moves data. Under the causal mask a query meets half the keys."""
    if kernel.op == "gemm":
        return gemm_flops(kernel.m, kernel.k, kernel.n)
    if kernel.op == "attention_prefill":
        queries = kernel.batch * kernel.seq_q
        return attention_flops(queries, kernel.seq_kv / 2, kernel.heads_q, kernel.head_dim, kernel.head_dim)
    return None


def kernel_row(outcome: Outcome[Kernel], timing: Timing, origin: Origin) -> list[Any]:
    """Return the row of a kernel, in the order of the columns; None where a column does not apply."""
    kernel = outcome.shape
    attention = kernel.op.startswith("attention")
    flops = flops_of(kernel)
    cells = origin.cells() | {name: getattr(kernel, name) or None for name in SHAPE}
    cells |= {
        "op": kernel.op,
        "kernel_source": origin.library,
        "dtype": f"{kernel.dtype}/kv {kernel.dtype}" if attention else kernel.dtype,
        "causal": 1 if attention else None,
        "time_us": rounded(timing.seconds * 1e6),
        "tflops": None if flops is None else rounded(flops / timing.seconds / 1e12),
        "gb_s": None if kernel.op == "attention_prefill" else rounded(kernel.numbers * NUMBER_SIZES[kernel.dtype] / timing.seconds / 1e9),
        "notes": notes(timing, COUNTED.get(kernel.op, ""), outcome.conditions),
    }
    return [cells.get(name) for name in KERNEL_COLUMNS]


def collective_row(outcome: Outcome[Collective], timing: Timing, origin: Origin) -> list[Any]:
    """Return the row of a collective, in the order of the columns; None where a column does not apply."""
    collective = outcome.shape
    bandwidth = collective.size / timing.seconds / 1e9
    cells = origin.cells() | {
        "n_gpus": collective.ranks,
        "nodes": 1,
        "gpus_per_node": collective.ranks,
        "library": origin.library,
        "op": collective.op,
        "dtype": collective.dtype,
        "message_size_bytes": collective.size,
        "time_us": rounded(timing.seconds * 1e6),
        "algbw_gb_s": rounded(bandwidth),
        "busbw_gb_s": rounded(bandwidth * bus_factor(collective.ranks, 2 if collective.op == "all_reduce" else 1)),
        "notes": notes(timing, "size of the whole buffer as nccl-tests counts it; slowest rank", outcome.conditions),
    }
    return [cells.get(name) for name in COLLECTIVE_COLUMNS]


def notes(timing: Timing, counted: str, conditions: str) -> str:
    """Return how a time was taken."""
    spread = f"P10-P90 {rounded(timing.low * 1e6):g}-{rounded(timing.high * 1e6):g} us"
    taken = f"median of {timing.runs} runs, calls a run: {timing.calls}, {spread}, same operands in every call"
    return "; ".join(part for part in (taken, counted, conditions) if part)
