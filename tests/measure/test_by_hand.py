"""Numbers, work and bandwidths of measured shapes by hand, and the operands that they run on."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco import DataError
from tco.measure import pytorch
from tco.measure.pytorch import Meter, TorchKernels
from tco.measure.run import FULL, QUICK, CallTiming, Effort, time_of
from tco.measure.session import collective_cells, kernel_cells
from tco.measure.sweeps import Collective, MeasuredKernel, collectives, rank_counts

PRODUCT = MeasuredKernel("gemm", "bfloat16", m=3, n=5, k=7)
COPY = MeasuredKernel("elementwise:copy", "fp32", m=3, n=5)
SUM = MeasuredKernel("elementwise:add", "fp32", m=3, n=5)
HEADS = {"heads_q": 8, "heads_kv": 2, "head_dim": 4}
PROMPT = MeasuredKernel("attention_prefill", "fp32", batch=3, seq_q=6, seq_kv=6, **HEADS)
STEP = MeasuredKernel("attention_decode", "bfloat16", batch=3, seq_q=1, seq_kv=6, **HEADS)
MICROSECOND = CallTiming(1e-6, 1e-6, 1e-6, 5, 1)


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [
        (PRODUCT, 3 * 7 + 7 * 5 + 3 * 5),
        (COPY, 2 * 15),
        (SUM, 3 * 15),
        (STEP, 2 * 3 * 6 * 2 * 4),  # keys and values of both heads
    ],
)
def test_a_kernel_moves_its_operands_and_its_result_once(kernel, numbers):
    assert kernel.numbers == numbers
    size = 2 if kernel.dtype == "bfloat16" else 4
    cells = kernel_cells(kernel, MICROSECOND, "torch 2.9")
    assert cells["gb_s"] == pytest.approx(numbers * size / 1e-6 / 1e9, rel=1e-5)


@pytest.mark.parametrize(
    ("kernel", "work"),
    [
        (PRODUCT, 2 * 3 * 5 * 7),
        # half of the keys of 18 queries and eight heads, read as keys and as values
        (PROMPT, 2 * 18 * (6 / 2) * 8 * (4 + 4)),
        (STEP, None),
        (COPY, None),
    ],
)
def test_work_of_a_kernel_counts_the_causal_half(kernel, work):
    cells = kernel_cells(kernel, MICROSECOND, "torch 2.9")
    assert cells["tflops"] == (None if work is None else pytest.approx(work / 1e-6 / 1e12))
    assert (cells["gb_s"] is None) == (kernel is PROMPT)
    assert cells["causal"] == (1 if kernel in (PROMPT, STEP) else None)


@pytest.mark.parametrize(
    ("op", "factor"),
    [("all_reduce", 2 * 3 / 4), ("all_gather", 3 / 4), ("alltoall", 3 / 4)],
)
def test_the_bus_of_a_collective_carries_what_nccl_tests_say(op, factor):
    cells = collective_cells(Collective(op, "bfloat16", 4, 500), MICROSECOND, "nccl 2.27")
    assert cells["message_size_bytes"] == 1000
    assert cells["algbw_gb_s"] == pytest.approx(1.0)
    assert cells["busbw_gb_s"] == pytest.approx(factor)


@pytest.mark.parametrize(
    ("device", "available", "quick", "counts"),
    [
        ("cuda", 8, False, [2, 4, 8]),
        ("cuda", 6, False, [2, 4, 6]),
        ("cuda", 8, True, [2]),
        ("cuda", 1, False, []),
        ("cuda", 1, True, []),
        ("cpu", 2, False, [2]),
    ],
)
def test_ranks_are_powers_of_two_and_all(device, available, quick, counts):
    assert rank_counts(device, available, quick) == counts


def test_each_operation_has_each_buffer_in_whole_shares():
    buffers, single = (list(collectives("cuda", ranks, quick=False)) for ranks in (3, 1))
    sizes_by_operation = {}
    for collective in buffers:
        sizes_by_operation.setdefault(collective.op, []).append(collective.size)
    assert len(sizes_by_operation) == 4
    assert len({tuple(sizes) for sizes in sizes_by_operation.values()}) == 1
    # a share of three ranks is cut by less than three numbers of two bytes
    assert all(0 <= full.size - cut.size < 6 for full, cut in zip(single, buffers, strict=True))


def test_a_full_measurement_has_an_odd_number_of_runs_whose_median_is_a_run():
    assert (FULL.runs, QUICK.runs) == (21, 5)


class Tensors:
    """A library that keeps the sizes of the operands it is asked for."""

    bfloat16 = float32 = None

    def __init__(self):
        self.sizes = []

    def randn(self, sizes, **_):
        self.sizes.append(sizes)
        return SimpleNamespace(t=lambda: None)


@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (PRODUCT, [(3, 7), (5, 7), (3, 5)]),
        (COPY, [(3, 5)] * 3),
        (PROMPT, [(3, 2, 6, 4), (3, 2, 6, 4), (3, 2, 6, 4)]),
        # four query heads of a key-value head stand in the place of tokens
        (STEP, [(3, 2, 6, 4), (3, 2, 6, 4), (3, 2, 4, 4)]),
    ],
)
def test_operands_have_the_sizes_of_the_kernel(kernel, sizes):
    tensors = Tensors()
    tensors.nn = SimpleNamespace(
        functional=SimpleNamespace(scaled_dot_product_attention=lambda *_, **__: None)
    )
    TorchKernels(tensors, "cpu", Meter("")).call(kernel)
    assert tensors.sizes == sizes


def test_conditions_are_means_of_the_readings_since_the_last_call():
    meter = Meter("")
    meter.readings = [(1000.0, 300.0, 700.0), (1500.0, 500.0, 700.0)]
    assert meter.conditions() == "SM clock 1250 MHz, power 400 of 700 W"
    assert meter.conditions() == "SM clock 1250 MHz, power 400 of 700 W"
    meter.readings = [(900.0, 100.0, 700.0)]
    assert meter.conditions() == "SM clock 900 MHz, power 100 of 700 W"


@pytest.mark.parametrize(
    ("overhead", "seconds_of_a_call", "calls"),
    [
        (0.0, 0.01, 1),
        (0.0, 0.004, 3),  # as many as the first call says
        (0.0085, 0.0005, 4),  # twice as many where more calls hardly take longer
    ],
)
def test_calls_of_a_run_are_as_many_as_take_the_shortest_time(overhead, seconds_of_a_call, calls):
    operation = SimpleNamespace(run=lambda rounds: overhead + rounds * seconds_of_a_call, calls=1)
    timing = time_of(operation, Effort(shortest=0.01, warm_up=0.0, longest=0.1, runs=5))
    assert timing.calls == calls
    assert timing.seconds == pytest.approx(overhead / calls + seconds_of_a_call, rel=1e-12)


@pytest.mark.parametrize(
    ("cpus", "ranks", "threads"), [(12, 4, 3), (12, 24, 1), (7, 2, 3), (None, 1, 1)]
)
def test_ranks_of_a_group_share_the_processors(monkeypatch, cpus, ranks, threads):
    counts, groups = [], []
    group = SimpleNamespace(
        init_process_group=lambda library, **named: groups.append((library, named["world_size"])),
        destroy_process_group=lambda: None,
    )
    torch = SimpleNamespace(set_num_threads=counts.append, distributed=group)
    monkeypatch.setattr(pytorch, "load_torch", lambda: torch)
    monkeypatch.setattr(pytorch, "measure_shapes", lambda *_: [])
    monkeypatch.setattr(pytorch.os, "cpu_count", lambda: cpus)
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    pytorch._rank_of_group(1, ranks, "cpu", [], QUICK, "folder", False)
    assert (counts, groups) == ([threads], [("gloo", ranks)])


@pytest.mark.parametrize(
    ("message", "words"), [("rank 1:\n\n  out of memory \n", "out of memory"), ("", "ValueError")]
)
def test_group_that_breaks_is_told_with_the_last_line_of_its_error(monkeypatch, message, words):
    def spawn(*_, **__):
        raise ValueError(message)

    torch = SimpleNamespace(multiprocessing=SimpleNamespace(spawn=spawn))
    monkeypatch.setattr(pytorch, "load_torch", lambda: torch)
    with pytest.raises(DataError, match=rf"the group of 2 ranks broke:\s+{words}$"):
        pytorch.measure_group(2, "cpu", [], QUICK, False)
