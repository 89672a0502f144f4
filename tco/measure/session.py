"""A measuring session: the sweep of a kind on a device, as columns and rows of a file."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tco.core.errors import DataError
from tco.core.files import data_directory
from tco.core.types import JsonObject
from tco.fabric.collective_costs import bus_factor
from tco.measure.pytorch import Meter, TorchKernels, library_name, measure_group
from tco.measure.run import FULL, QUICK, CallTiming, Outcome, measure_shapes
from tco.measure.sweeps import (
    NUMBER_SIZES,
    Collective,
    MeasuredKernel,
    collectives,
    kernels,
    rank_counts,
)
from tco.performance.chip.kernels import products_flops
from tco.performance.chip.roofline import attention_flops

SOURCE, TITLE = "own-measurement", "Measured on one's own machine with tco measure"
SHAPE = ("m", "n", "k", "batch", "seq_q", "seq_kv", "heads_q", "heads_kv", "head_dim")
COUNTED = {
    "attention_prefill": "TFLOP/s count the causal half",
    "attention_decode": "GB/s count keys and values read only",
}
DIGITS = 6  # significant ones that a clock gives


@cache
def _columns_of(kind: str) -> list[str]:
    with gzip.open(
        data_directory() / "measured" / f"{kind}.csv.gz", "rt", encoding="utf-8"
    ) as stream:
        return next(csv.reader(stream))


def _round_measured_number(measured_value: Any) -> float:
    return float(f"{float(measured_value):.{DIGITS}g}")


def _flops_of(kernel: MeasuredKernel) -> Any:
    """Return the work of a kernel, or None where it only moves data.

    Under the causal mask a query meets half of the keys.
    """
    if kernel.op == "gemm":
        return products_flops(kernel.m, kernel.n, kernel.k, 1)
    if kernel.op == "attention_prefill":
        queries = kernel.batch * kernel.seq_q
        return attention_flops(
            queries, kernel.seq_kv / 2, kernel.heads_q, kernel.head_dim, kernel.head_dim
        )
    return None


def kernel_cells(kernel: MeasuredKernel, timing: CallTiming, library: str) -> JsonObject:
    """Return the cells of a kernel's result row, keyed by column."""
    attention, flops = kernel.op.startswith("attention"), _flops_of(kernel)
    return {shape_field: getattr(kernel, shape_field) or None for shape_field in SHAPE} | {
        "op": kernel.op,
        "kernel_source": library,
        "dtype": f"{kernel.dtype}/kv {kernel.dtype}" if attention else kernel.dtype,
        "causal": 1 if attention else None,
        "tflops": None if flops is None else _round_measured_number(flops / timing.seconds / 1e12),
        "gb_s": None
        if kernel.op == "attention_prefill"
        else _round_measured_number(
            kernel.numbers * NUMBER_SIZES[kernel.dtype] / timing.seconds / 1e9
        ),
        "notes": COUNTED.get(kernel.op, ""),
    }


def collective_cells(collective: Collective, timing: CallTiming, library: str) -> JsonObject:
    """Return the cells of a collective's result row, keyed by column."""
    bandwidth = collective.size / timing.seconds / 1e9
    return {
        "n_gpus": collective.ranks,
        "nodes": 1,
        "gpus_per_node": collective.ranks,
        "library": library,
        "op": collective.op,
        "dtype": collective.dtype,
        "message_size_bytes": collective.size,
        "algbw_gb_s": _round_measured_number(bandwidth),
        "busbw_gb_s": _round_measured_number(
            bandwidth * bus_factor(collective.ranks, 2 if collective.op == "all_reduce" else 1)
        ),
        "notes": "size of the whole buffer as nccl-tests counts it; slowest rank",
    }


Cells = Callable[[Any, CallTiming, str], JsonObject]


class Session(NamedTuple):
    """Settings of a measurement session, and its progress callback."""

    torch: Any
    device: str
    quick: bool
    accelerator: str
    date: str
    loud: bool
    say: Callable[[str], None]

    def row(
        self,
        columns: Sequence[str],
        cells: Cells,
        library: str,
        outcome: Outcome[Any],
        timing: CallTiming,
    ) -> list[Any]:
        """Return a measured row in the order of the columns; None where a column does not apply."""
        row_cells = cells(outcome.shape, timing, library)
        low, high = (_round_measured_number(seconds * 1e6) for seconds in (timing.low, timing.high))
        spread = f"P10-P90 {low:g}-{high:g} us"
        taken = (
            f"median of {timing.runs} runs, calls a run: {timing.calls}, {spread}, same "
            "operands in every call"
        )
        row_cells |= {
            "source_id": SOURCE,
            "source_title": TITLE,
            "date": self.date,
            "accelerator": self.accelerator,
            "value_kind": "measured",
        }
        row_cells |= {
            "time_us": _round_measured_number(timing.seconds * 1e6),
            "notes": "; ".join(filter(None, (taken, row_cells["notes"], outcome.conditions))),
        }
        return [row_cells.get(column_name) for column_name in columns]

    def rows(
        self,
        columns: Sequence[str],
        cells: Cells,
        library: str,
        outcomes: Iterable[Outcome[Any]],
        count: int = 0,
    ) -> list[list[Any]]:
        """Return the measured rows, and report failures; no row at all raises `DataError`.

        With `count` it reports the progress.
        """
        measured_rows, failure = [], ""
        for position, outcome in enumerate(outcomes, start=1):
            if count:
                self.say(f"{position}/{count} {outcome.shape}")
            if outcome.timing is None:
                failure = f"{outcome.shape}: not measured ({outcome.failure})"
                self.say(f"note: {failure}")
            else:
                measured_rows.append(self.row(columns, cells, library, outcome, outcome.timing))
        if not measured_rows:
            raise DataError(f"nothing could be measured; the last was {failure}")
        return measured_rows


def kernel_session(session: Session) -> tuple[Sequence[str], list[list[Any]]]:
    """Return the columns and the rows of a device's kernels.

    Args:
        session: Settings of the session.

    Returns:
        Names of the columns, and a row for each measured kernel in the order of the columns.

    Raises:
        DataError: Not a single kernel was measured.

    """
    shapes = list(kernels(session.device, session.quick))
    with Meter(session.device) as meter:
        outcomes = measure_shapes(
            TorchKernels(session.torch, session.device, meter),
            shapes,
            QUICK if session.quick else FULL,
        )
        return _columns_of("kernels"), session.rows(
            _columns_of("kernels"),
            kernel_cells,
            f"PyTorch {session.torch.__version__}",
            outcomes,
            len(shapes),
        )


def collective_session(session: Session) -> tuple[Sequence[str], list[list[Any]]]:
    """Return the columns and the rows of the collectives among a machine's devices.

    Args:
        session: Settings of the session.

    Returns:
        Names of the columns, and a row for each measured collective; no rows for fewer than two
        devices.

    Raises:
        DataError: The machine has enough devices, but not a single collective was measured.

    """
    available = session.torch.cuda.device_count() if session.device == "cuda" else 2
    outcomes: list[Outcome[Collective]] = []
    for ranks in rank_counts(session.device, available, session.quick):
        shapes = list(collectives(session.device, ranks, session.quick))
        session.say(f"{len(shapes)} collectives over {ranks} ranks")
        outcomes += measure_group(
            ranks, session.device, shapes, QUICK if session.quick else FULL, session.loud
        )
    if not outcomes:
        session.say(
            f"note: collectives need two devices and PyTorch finds {available}: skipped, nothing "
            "is written"
        )
        return _columns_of("collectives"), []
    return _columns_of("collectives"), session.rows(
        _columns_of("collectives"),
        collective_cells,
        library_name(session.torch, session.device),
        outcomes,
    )
