"""Kernels on one device by PyTorch, which is imported only here and in `group`, and only when something is measured.

A GPU replays a captured graph of calls, timed by its own events: what is measured is the kernel, not the launching program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tco.foundation.errors import DataError
from tco.studies.measure.machine import Meter, processor_name
from tco.studies.measure.run import Operation
from tco.studies.measure.sweeps import STREAMS, Kernel

INSTALL = "pip install 'tco[measure]'"
GRAPH_TIME, MOST_CALLS = 1e-3, 64  # seconds of a captured graph, roughly, and most calls in it


def load_torch() -> Any:
    """Return PyTorch; where it is missing the error says how to get it."""
    try:
        import torch
    except ImportError:
        raise DataError(f"measuring needs PyTorch, which is not installed: {INSTALL}") from None
    return torch


def choose_device(torch: Any, wanted: str | None) -> str:
    """Return the device to measure: the wanted one, or the GPU where PyTorch finds one."""
    found = bool(torch.cuda.is_available())
    if wanted == "cuda" and not found:
        raise DataError("--device cuda: PyTorch finds no GPU, expected one; --device cpu measures the processor")
    return wanted or ("cuda" if found else "cpu")


def device_name(torch: Any, device: str) -> str:
    """Return the name the device's driver gives it."""
    return str(torch.cuda.get_device_name(0)) if device == "cuda" else processor_name()


def number_format(torch: Any, dtype: str) -> Any:
    """Return PyTorch's number format."""
    return {"bfloat16": torch.bfloat16, "fp32": torch.float32}[dtype]


class TorchKernels:
    """Backend of one device. Operands are normal random numbers, and calls follow each other on the same ones."""

    def __init__(self, torch: Any, device: str, meter: Meter) -> None:
        self.torch, self.device, self.meter = torch, device, meter

    def conditions(self) -> str:
        """Return clock and power of a GPU, or the threads of a CPU."""
        return self.meter.conditions() if self.device == "cuda" else f"threads: {self.torch.get_num_threads()}"

    def ready(self, kernel: Kernel) -> Operation:
        """Return the kernel, its operands in place."""
        call = self.call(kernel)
        call()
        return self.captured(call) if self.device == "cuda" else Operation(lambda rounds: timed_by_clock(call, rounds))

    def call(self, kernel: Kernel) -> Callable[[], Any]:
        """Return a function that runs the kernel once."""
        torch, dtype = self.torch, number_format(self.torch, kernel.dtype)

        def operand(*sizes: int) -> Any:
            return torch.randn(sizes, dtype=dtype, device=self.device)

        if kernel.op == "gemm":  # weights lie as a linear layer keeps them: a row for each output
            a, weights, out = operand(kernel.m, kernel.k), operand(kernel.n, kernel.k).t(), operand(kernel.m, kernel.n)
            return lambda: torch.mm(a, weights, out=out)
        if kernel.op in STREAMS:
            a, b, out = operand(kernel.m, kernel.n), operand(kernel.m, kernel.n), operand(kernel.m, kernel.n)
            return (lambda: out.copy_(a)) if kernel.op == "elementwise:copy" else (lambda: torch.add(a, b, out=out))
        # In decoding the query heads of one key-value head stand where a prompt has its tokens: the products are the same.
        rows = kernel.heads_q // kernel.heads_kv if kernel.op == "attention_decode" else kernel.seq_q
        keys, values = (operand(kernel.batch, kernel.heads_kv, kernel.seq_kv, kernel.head_dim) for _ in range(2))
        queries, causal = operand(kernel.batch, kernel.heads_kv, rows, kernel.head_dim), kernel.op == "attention_prefill"
        attention = torch.nn.functional.scaled_dot_product_attention
        return lambda: attention(queries, keys, values, is_causal=causal)

    def captured(self, call: Callable[[], Any]) -> Operation:
        """Return a graph of calls on the GPU, long enough that replaying it costs nothing beside it."""
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
        return Operation(lambda rounds: seconds(graph.replay, rounds), calls, held=call)


def timed_by_clock(call: Callable[[], Any], rounds: int) -> float:
    """Return the seconds of some calls that end before they return."""
    begin = time.perf_counter()
    for _ in range(rounds):
        call()
    return time.perf_counter() - begin
