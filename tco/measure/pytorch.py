"""Kernels and collectives of one machine by PyTorch, which is imported on demand.

A GPU replays a captured graph of calls, timed by its own events: what is measured is the kernel,
not the launching program. Of collectives a process is a rank, with NCCL between GPUs and gloo
between processes of a CPU; every rank takes the slowest rank's time as its own, so all of them
decide alike how often to call and when to stop.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from tco.core.errors import DataError
from tco.core.streams import tell
from tco.measure.run import CallTiming, Effort, Operation, Outcome, measure_shapes
from tco.measure.sweeps import STREAMS, Collective, MeasuredKernel

READINGS = "clocks.sm,power.draw,power.limit"
INTERVAL = "100"  # milliseconds between readings


def processor_name(facts: Path = Path("/proc/cpuinfo")) -> str:
    """Return the model name of the processor."""
    try:
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            fact_name, _, fact_value = line.partition(":")
            if fact_name.strip() == "model name" and fact_value.strip():
                return fact_value.strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine() or "CPU"


class Meter:
    """Clock and power of a GPU by nvidia-smi during the work, silent without either.

    A reading taken after the work shows an idle chip, so readings are collected all the time and
    those since the last question are averaged.
    """

    def __init__(self, device: str) -> None:
        self.program = shutil.which("nvidia-smi") if device == "cuda" else None
        self.readings: list[tuple[float, float, float]] = []
        self.last = ""
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Meter:
        """Start reading."""
        if self.program:
            first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
            command = [
                self.program,
                f"--query-gpu={READINGS}",
                "--format=csv,noheader,nounits",
                f"--id={first}",
                f"--loop-ms={INTERVAL}",
            ]
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop reading."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.reader.join()
            if self.process.stdout is not None:
                self.process.stdout.close()

    def read(self) -> None:
        """Collect readings until the program ends, and skip unreadable lines.

        A chip without a sensor gives such lines.
        """
        if self.process is None or self.process.stdout is None:
            return
        for line in self.process.stdout:
            try:
                clock, power, limit = (float(cell) for cell in line.split(","))
            except ValueError:
                continue
            self.readings.append((clock, power, limit))

    def conditions(self) -> str:
        """Return mean clock and power since the last call, or the last known ones."""
        taken, self.readings = self.readings, []
        if taken:
            clock, power, limit = (
                sum(sensor_values) / len(taken) for sensor_values in zip(*taken, strict=True)
            )
            self.last = f"SM clock {clock:.0f} MHz, power {power:.0f} of {limit:.0f} W"
        return self.last


INSTALL = "pip install '.[measure]'"
GRAPH_TIME, MOST_CALLS = 1e-3, 64  # seconds of a captured graph, roughly, and most calls in it


def load_torch() -> Any:
    """Return the module of PyTorch.

    Raises:
        DataError: PyTorch is not installed; the message says the command that installs it.

    """
    try:
        import torch
    except ImportError:
        raise DataError(f"measuring needs PyTorch, which is not installed: {INSTALL}") from None
    return torch


def choose_device(torch: Any, requested_device: str | None) -> str:
    """Return the device to measure: the wanted device, or a GPU if found.

    Without a GPU the processor is measured.

    Args:
        torch: Module of PyTorch.
        requested_device: `cuda`, `cpu`, or None for a choice.

    Returns:
        `cuda` or `cpu`.

    Raises:
        DataError: `cuda` is wanted and PyTorch finds no GPU.

    """
    has_gpu = bool(torch.cuda.is_available())
    if requested_device == "cuda" and not has_gpu:
        raise DataError(
            "--device cuda: PyTorch finds no GPU, expected one; --device cpu measures the processor"
        )
    return requested_device or ("cuda" if has_gpu else "cpu")


def device_name(torch: Any, device: str) -> str:
    """Return the name of the first GPU, or of the processor.

    Args:
        torch: Module of PyTorch.
        device: `cuda` or `cpu`.

    """
    return str(torch.cuda.get_device_name(0)) if device == "cuda" else processor_name()


def _torch_dtype(torch: Any, dtype: str) -> Any:
    return {"bfloat16": torch.bfloat16, "fp32": torch.float32}[dtype]


class TorchKernels:
    """Backend of one device, with normal random operands that all calls share."""

    def __init__(self, torch: Any, device: str, meter: Meter) -> None:
        self.torch, self.device, self.meter = torch, device, meter

    def conditions(self) -> str:
        """Return clock and power of a GPU, or the threads of a CPU."""
        return (
            self.meter.conditions()
            if self.device == "cuda"
            else f"threads: {self.torch.get_num_threads()}"
        )

    def ready(self, kernel: MeasuredKernel) -> Operation:
        """Return the kernel, its operands in place."""
        call = self.call(kernel)
        call()
        return (
            self.captured(call)
            if self.device == "cuda"
            else Operation(lambda rounds: _timed_by_clock(call, rounds))
        )

    def call(self, kernel: MeasuredKernel) -> Callable[[], Any]:
        """Return a function that runs the kernel once."""
        torch, dtype = self.torch, _torch_dtype(self.torch, kernel.dtype)

        def operand(*sizes: int) -> Any:
            return torch.randn(sizes, dtype=dtype, device=self.device)

        if kernel.op == "gemm":  # weights lie as a linear layer keeps them: a row for each output
            a = operand(kernel.m, kernel.k)
            weights = operand(kernel.n, kernel.k).t()
            out = operand(kernel.m, kernel.n)
            return lambda: torch.mm(a, weights, out=out)
        if kernel.op in STREAMS:
            a = operand(kernel.m, kernel.n)
            b = operand(kernel.m, kernel.n)
            out = operand(kernel.m, kernel.n)
            return (
                (lambda: out.copy_(a))
                if kernel.op == "elementwise:copy"
                else (lambda: torch.add(a, b, out=out))
            )
        # In decoding the query heads of one key-value head stand where a prompt has its tokens: the
        # products are the same.
        query_rows = (
            kernel.heads_q // kernel.heads_kv if kernel.op == "attention_decode" else kernel.seq_q
        )
        cache_keys, cache_values = (
            operand(kernel.batch, kernel.heads_kv, kernel.seq_kv, kernel.head_dim) for _ in range(2)
        )
        queries = operand(kernel.batch, kernel.heads_kv, query_rows, kernel.head_dim)
        causal = kernel.op == "attention_prefill"
        attention = torch.nn.functional.scaled_dot_product_attention
        return lambda: attention(queries, cache_keys, cache_values, is_causal=causal)

    def captured(self, call: Callable[[], Any]) -> Operation:
        """Return a graph of calls on the GPU, long enough to hide the cost of its replay."""
        torch = self.torch
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def seconds(work: Callable[[], Any], rounds: int) -> float:
            begin.record()
            for _ in range(rounds):
                work()
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) / 1e3

        seconds(call, 1)
        calls = max(1, min(MOST_CALLS, int(GRAPH_TIME / max(seconds(call, 1), 1e-6))))
        torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        return Operation(lambda rounds: seconds(graph.replay, rounds), calls, operands=call)


def _timed_by_clock(call: Callable[[], Any], rounds: int) -> float:
    begin = time.perf_counter()
    for _ in range(rounds):
        call()
    return time.perf_counter() - begin


PATIENCE = timedelta(seconds=120)  # a rank that waits longer for the others gives up
RESULTS, MEETING = "results.json", "meeting"


@dataclass(slots=True)
class TorchCollectives:
    """Backend of one rank."""

    torch: Any
    device: str
    meter: Meter

    def conditions(self) -> str:
        """Return clock and power of the first GPU, or the threads of a process."""
        return (
            self.meter.conditions()
            if self.device == "cuda"
            else f"threads a rank: {self.torch.get_num_threads()}"
        )

    def ready(self, collective: Collective) -> Operation:
        """Return the collective; every rank must have room for it, or none starts."""
        try:
            call, reason = self.call(collective), ""
        except RuntimeError as error:
            call, reason = None, str(error)
        if self.slowest(0.0 if call else 1.0) or call is None:
            raise RuntimeError(reason or "another rank has no room for it")
        return Operation(lambda rounds: self.seconds(call, rounds))

    def call(self, collective: Collective) -> Callable[[], Any]:
        """Return a function that starts the collective once."""
        torch, group = self.torch, self.torch.distributed
        dtype = _torch_dtype(torch, collective.dtype)
        full_buffer, second_buffer = (
            torch.zeros(collective.numbers, dtype=dtype, device=self.device) for _ in range(2)
        )
        share = second_buffer[: collective.numbers // collective.ranks]
        # the name of older releases
        gather = getattr(group, "all_gather_single", None) or group.all_gather_into_tensor
        scatter = getattr(group, "reduce_scatter_single", None) or group.reduce_scatter_tensor
        return {
            "all_reduce": lambda: group.all_reduce(full_buffer),
            "all_gather": lambda: gather(full_buffer, share),
            "reduce_scatter": lambda: scatter(share, full_buffer),
            "alltoall": lambda: group.all_to_all_single(second_buffer, full_buffer),
        }[collective.op]

    def seconds(self, call: Callable[[], Any], rounds: int) -> float:
        """Return the seconds the slowest rank needs for some calls that all begin together."""
        self.slowest(0.0)  # nobody leaves before all have come
        begin = time.perf_counter()
        for _ in range(rounds):
            call()
        self.wait()
        return self.slowest(time.perf_counter() - begin)

    def wait(self) -> None:
        """Wait until the device has done what was started."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def slowest(self, rank_value: float) -> float:
        """Return the largest value of all ranks."""
        value_tensor = self.torch.tensor([rank_value], dtype=self.torch.float64, device=self.device)
        self.torch.distributed.all_reduce(value_tensor, op=self.torch.distributed.ReduceOp.MAX)
        return float(value_tensor.item())


def _rank_of_group(
    rank: int,
    ranks: int,
    device: str,
    shapes: Sequence[Collective],
    effort: Effort,
    folder: str,
    loud: bool,
) -> None:
    """Run one rank through a sweep; the first writes what all of them found."""
    torch = load_torch()
    if device == "cuda":
        torch.cuda.set_device(rank)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // ranks))
        if sys.platform == "linux":
            # the ranks share a machine, whatever its host name resolves to
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    group, first = torch.distributed, rank == 0  # the first rank speaks, reads the meter and writes
    group.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=f"file://{folder}/{MEETING}",
        rank=rank,
        world_size=ranks,
        timeout=PATIENCE,
    )
    outcome_records = []
    with Meter(device if first else "") as meter:
        for outcome in measure_shapes(TorchCollectives(torch, device, meter), shapes, effort):
            outcome_records.append((outcome.timing, outcome.conditions, outcome.failure))
            if first and loud:
                tell(f"{len(outcome_records)}/{len(shapes)} {outcome.shape}")
    group.destroy_process_group()
    if first:
        (Path(folder) / RESULTS).write_text(json.dumps(outcome_records), encoding="utf-8")


def measure_group(
    ranks: int, device: str, shapes: Sequence[Collective], effort: Effort, loud: bool
) -> list[Outcome[Collective]]:
    """Return the outcomes of a sweep over some ranks; a group that breaks raises `DataError`."""
    torch = load_torch()
    with tempfile.TemporaryDirectory() as folder:
        try:
            torch.multiprocessing.spawn(
                _rank_of_group, (ranks, device, shapes, effort, folder, loud), nprocs=ranks
            )
        except Exception as error:  # the library wraps whatever a rank ran into
            last = str(error).strip().splitlines()
            raise DataError(
                f"the group of {ranks} ranks broke: {last[-1] if last else type(error).__name__}"
            ) from None
        outcome_records = json.loads((Path(folder) / RESULTS).read_text(encoding="utf-8"))
    return [
        Outcome(shape, CallTiming(*timing) if timing else None, conditions, failure)
        for shape, (timing, conditions, failure) in zip(shapes, outcome_records, strict=True)
    ]


def library_name(torch: Any, device: str) -> str:
    """Return the collective library and its version, and that of PyTorch.

    On the CPU the library is gloo, without a version.
    """
    if device == "cpu":
        moves = "gloo"
    else:
        version = ".".join(str(part) for part in torch.cuda.nccl.version())
        moves = f"{'RCCL' if torch.version.hip else 'NCCL'} {version}"
    return f"{moves} via PyTorch {torch.__version__}"
