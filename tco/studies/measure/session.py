"""One session of measuring: the sweep of a kind on a device, as the columns and the rows of a measured file: times, and the rates that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tco.fabric.costs import bus_factor
from tco.foundation.errors import DataError
from tco.performance.chip.roofline import attention_flops, gemm_flops
from tco.studies.measure.pytorch import Meter, TorchKernels, library_name, measure_group
from tco.studies.measure.run import FULL, QUICK, Backend, Outcome, Shape, Timing, measure
from tco.studies.measure.sweeps import NUMBER_SIZES, Collective, Kernel, collectives, kernels, rank_counts

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


Say = Callable[[str], None]


class Session(NamedTuple):
    """What is asked of a session, and whom it tells how far it is."""

    torch: Any
    device: str
    quick: bool
    accelerator: str
    date: str
    loud: bool
    say: Say

    def origin(self, library: str) -> Origin:
        """Return what the rows share."""
        return Origin(self.accelerator, library, self.date)


def kernel_session(asked: Session) -> tuple[Sequence[str], list[list[Any]]]:
    """Return the columns and the rows of a device's kernels."""
    with Meter(asked.device) as meter:
        return KERNEL_COLUMNS, kernel_rows(asked, TorchKernels(asked.torch, asked.device, meter))


def kernel_rows(asked: Session, backend: Backend[Kernel]) -> list[list[Any]]:
    """Return the rows of the kernels that a backend can run."""
    shapes = list(kernels(asked.device, asked.quick))
    found = watched(measure(backend, shapes, QUICK if asked.quick else FULL), len(shapes), asked.say)
    return rows_of(found, kernel_row, asked.origin(f"PyTorch {asked.torch.__version__}"), asked.say)


def collective_session(asked: Session) -> tuple[Sequence[str], list[list[Any]]]:
    """Return the columns and the rows of the collectives among a machine's devices; no row where there are fewer than two."""
    available = asked.torch.cuda.device_count() if asked.device == "cuda" else 2
    found: list[Outcome[Collective]] = []
    for ranks in rank_counts(asked.device, available, asked.quick):
        shapes = list(collectives(asked.device, ranks, asked.quick))
        asked.say(f"{len(shapes)} collectives over {ranks} ranks")
        found += measure_group(ranks, asked.device, shapes, QUICK if asked.quick else FULL, asked.loud)
    if not found:
        asked.say(f"note: collectives need two devices and PyTorch finds {available}: skipped, nothing is written")
        return COLLECTIVE_COLUMNS, []
    return COLLECTIVE_COLUMNS, rows_of(found, collective_row, asked.origin(library_name(asked.torch, asked.device)), asked.say)


def watched(found: Iterable[Outcome[Shape]], count: int, say: Say) -> Iterator[Outcome[Shape]]:
    """Yield outcomes, saying how far the sweep is."""
    for position, outcome in enumerate(found, start=1):
        say(f"{position}/{count} {outcome.shape}")
        yield outcome


def rows_of(found: Iterable[Outcome[Shape]], row: Callable[[Outcome[Shape], Timing, Origin], list[Any]], origin: Origin, say: Say) -> list[list[Any]]:
    """Return the rows of what was measured; what was not is said, and nothing at all raises `DataError`."""
    rows, failure = [], ""
    for outcome in found:
        if outcome.timing is None:
            failure = f"{outcome.shape}: not measured ({outcome.failure})"
            say(f"note: {failure}")
        else:
            rows.append(row(outcome, outcome.timing, origin))
    if not rows:
        raise DataError(f"nothing could be measured; the last was {failure}")
    return rows
