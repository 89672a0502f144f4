"""A sweep holds distinct shapes that a device can run, and buffers that the ranks divide."""

from __future__ import annotations

import pytest

from tco.measure.sweeps import collectives, kernels

FORMATS = {"cpu": {"fp32", "bfloat16"}, "cuda": {"bfloat16"}}
NUMBER_SIZES = {"fp32": 4, "bfloat16": 2}
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
CASES = [(device, quick) for device in FORMATS for quick in (False, True)]


@pytest.mark.parametrize(("device", "quick"), CASES)
def test_a_sweep_of_kernels_repeats_nothing_and_leaves_nothing_out(device, quick):
    shapes = list(kernels(device, quick))
    assert len(set(shapes)) == len(shapes)
    assert {shape.op for shape in shapes} == {
        "gemm",
        "attention_prefill",
        "attention_decode",
        "elementwise:copy",
        "elementwise:add",
    }
    assert {shape.dtype for shape in shapes} == FORMATS[device]
    assert len({str(shape) for shape in shapes}) == len(shapes)


@pytest.mark.parametrize(("device", "quick"), CASES)
def test_query_heads_share_whole_groups(device, quick):
    for shape in kernels(device, quick):
        if shape.op.startswith("attention"):
            assert shape.heads_q % shape.heads_kv == 0
            assert shape.seq_q == (1 if shape.op == "attention_decode" else shape.seq_kv)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_quick_is_a_fraction_of_the_sweep(device):
    assert 4 * len(list(kernels(device, True))) <= len(list(kernels(device, False)))


def test_the_largest_operands_fit_a_gpu_of_forty_gigabytes():
    assert max(shape.numbers * NUMBER_SIZES[shape.dtype] for shape in kernels("cuda", False)) < 36e9


@pytest.mark.parametrize("ranks", [2, 3, 4, 6, 8])
@pytest.mark.parametrize(("device", "quick"), CASES)
def test_buffers_divide_by_the_ranks_and_lose_less_than_a_number_each(device, quick, ranks):
    shapes = list(collectives(device, ranks, quick))
    assert {shape.op for shape in shapes} == set(OPERATIONS)
    for shape, single_rank_shape in zip(shapes, collectives(device, 1, quick), strict=True):
        assert shape.numbers > 0
        assert shape.numbers % ranks == 0
        assert (
            single_rank_shape.size - ranks * NUMBER_SIZES[shape.dtype]
            < shape.size
            <= single_rank_shape.size
        )
