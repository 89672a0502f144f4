"""Rows: the columns of the published files, and rates that published rows confirm."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from tco.measure.sweeps import Collective, MeasuredKernel
from tests.cli import tco
from tests.measure import toy

ROOT = Path(__file__).parents[2]
DIGIT = 5e-6  # published times and rates have six digits


def number(row):
    """A row with its numbers as such, none where a cell is empty."""

    def read(text):
        try:
            return float(text)
        except ValueError:
            return text or None

    return {name: read(text) for name, text in row.items()}


@pytest.fixture
def kernel_cells(monkeypatch, tmp_path):
    def cells_of_kernel(kernel, microseconds):
        (row,) = toy.measured(
            monkeypatch,
            tmp_path,
            lambda _: toy.operation(lambda rounds: rounds * microseconds / 1e6),
            shapes=[kernel],
            gpus=1,
        )
        assert list(row) == list(pd.read_csv(ROOT / "data/measured/kernels.csv.gz", nrows=0))
        return number(row)

    return cells_of_kernel


@pytest.fixture
def collective_cells(monkeypatch, tmp_path):
    def cells_of_collective(collective, microseconds):
        monkeypatch.setitem(sys.modules, "torch", toy.library(collective.ranks))
        monkeypatch.setattr(f"{toy.SESSION}.rank_counts", lambda *_: [collective.ranks])
        monkeypatch.setattr(f"{toy.SESSION}.collectives", lambda *_: [collective])
        monkeypatch.setattr(
            f"{toy.SESSION}.measure_group",
            lambda *how: toy.group(*how, seconds=lambda _: microseconds / 1e6),
        )
        path = tmp_path / "c.csv"
        assert (
            tco("measure", "--kind", "collectives", "--name", "H100 SXM", "-o", path).exit_code == 0
        )
        (row,) = toy.rows_in(path)
        assert list(row) == list(pd.read_csv(ROOT / "data/measured/collectives.csv.gz", nrows=0))
        return number(row)

    return cells_of_collective


# NVIDIA's aiconfigurator database of the H100 SXM (aic_db_h100_sxm): time in us, TFLOP/s, GB/s
PUBLISHED = [
    (MeasuredKernel("gemm", "bfloat16", m=8192, n=65536, k=8192), 12254.2, 717.801, 186.197),
    (MeasuredKernel("gemm", "bfloat16", m=64, n=65536, k=8192), 403.579, 170.275, 2683.94),
    (
        MeasuredKernel(
            "attention_prefill",
            "bfloat16",
            batch=4,
            seq_q=16384,
            seq_kv=16384,
            heads_q=64,
            heads_kv=64,
            head_dim=128,
        ),
        35921.0,
        489.746,
        None,
    ),
    (
        MeasuredKernel(
            "attention_decode",
            "bfloat16",
            batch=1,
            seq_q=1,
            seq_kv=128,
            heads_q=8,
            heads_kv=8,
            head_dim=128,
        ),
        11.168,
        None,
        46.9456,
    ),
]


@pytest.mark.parametrize(
    ("kernel", "time", "tflops", "gb_s"), PUBLISHED, ids=[str(case[0]) for case in PUBLISHED]
)
def test_rates_count_as_the_published_rows_count(kernel_cells, kernel, time, tflops, gb_s):
    cells = kernel_cells(kernel, time)
    assert cells["time_us"] == time
    assert cells["tflops"] == (tflops if tflops is None else pytest.approx(tflops, rel=DIGIT))
    assert cells["gb_s"] == (gb_s if gb_s is None else pytest.approx(gb_s, rel=DIGIT))


@pytest.mark.parametrize(
    ("op", "time", "algorithm", "bus"),
    [
        ("all_reduce", 38.18, 54.928, 96.124),
        ("all_gather", 22.18, 94.5515, 82.7326),
        ("alltoall", 18.58, 112.871, 98.7625),
    ],
)
def test_bandwidths_count_as_the_published_rows_count(collective_cells, op, time, algorithm, bus):
    cells = collective_cells(Collective(op, "bfloat16", 8, 2**20), time)
    assert cells["message_size_bytes"] == 2**21
    assert (cells["algbw_gb_s"], cells["busbw_gb_s"]) == pytest.approx((algorithm, bus), rel=DIGIT)
    assert (cells["n_gpus"], cells["nodes"], cells["gpus_per_node"]) == (8, 1, 8)


def test_a_stream_counts_every_pass(kernel_cells):
    add, copy = (
        kernel_cells(MeasuredKernel(op, "bfloat16", m=1000, n=1000), 10.0)
        for op in ("elementwise:add", "elementwise:copy")
    )
    assert (add["gb_s"], copy["gb_s"]) == (600.0, 400.0)
    assert (add["tflops"], add["m"], add["n"], add["k"], add["causal"]) == (
        None,
        1000,
        1000,
        None,
        None,
    )


def test_row_states_its_source_and_how_it_was_measured(kernel_cells):
    cells = kernel_cells(MeasuredKernel("gemm", "fp32", m=8, n=8, k=8), 100.0)
    assert [
        cells[name] for name in ("source_id", "accelerator", "kernel_source", "dtype", "value_kind")
    ] == [*("own-measurement", "H100 SXM", "PyTorch 2.9", "fp32", "measured")]
    assert cells["date"] >= "2026"
    assert re.fullmatch(
        r"median of 21 runs, calls a run: \d+, P10-P90 100-100 us, "
        r"same operands in every call; toy",
        cells["notes"],
    )
    assert [
        cells[name] for name in ("peak_tflops_dense", "pct_of_peak", "batch", "tp", "source_url")
    ] == [None] * 5


def test_the_format_of_the_cache_stands_with_attention(kernel_cells):
    kernel = MeasuredKernel(
        "attention_decode",
        "bfloat16",
        batch=1,
        seq_q=1,
        seq_kv=8,
        heads_q=2,
        heads_kv=1,
        head_dim=4,
    )
    assert kernel_cells(kernel, 1.0)["dtype"] == "bfloat16/kv bfloat16"
