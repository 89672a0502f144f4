"""Predicted kernels: published rows, the bounds no kernel beats, and what must not get quicker."""

from __future__ import annotations

import shlex
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tco.performance.chip.kernel_times import kernel_timing
from tests.catalogue import CATALOGUE
from tests.cli import document
from tests.performance.servers import FORMATS, chip_on, computed_on, operands, product
from tests.scenario_helpers import as_traced, plain_values, recording, system_of
from tests.validation import today

BARE = "bare-kernel"

HEADER = (
    "source_id,accelerator,op,kernel_source,dtype,m,n,k,groups,batch,seq_q,seq_kv,heads_q,"
    "heads_kv,head_dim,causal,tp,time_us,tflops,gb_s,notes"
)
LAYERS = "hidden 8192, ffn 28672, 64/8 heads"
BLOCK = '"fp8 e4m3, 1x128/128x128 scales, bf16 out"'
PUBLISHED = [  # figures of published tables
    "aic_db_h100_sxm,H100 SXM,gemm,TensorRT-LLM "
    "1.3.0rc20,bfloat16,4096,4096,4096,,,,,,,,,,174.285,,,",
    "aic_db_b200_sxm,B200 SXM,gemm,TensorRT-LLM 1.3.0rc20,nvfp4,128,65536,8192,,,,,,,,,,65.9413,,,",
    "aic_db_gb300,GB300 NVL72,gemm,TensorRT-LLM "
    "1.3.0rc20,fp8_block,1024,10240,8192,,,,,,,,,,60.4933,,,",
    "aic_db_a100_sxm,A100 SXM,gemm,TensorRT-LLM 1.0.0,bfloat16,16,65536,8192,,,,,,,,,,665.429,,,",
    "deepgemm_readme,H800 SXM,grouped_gemm,DeepGEMM contiguous "
    f"layout,{BLOCK},8192,4096,7168,4,,,,,,,,,1429.53,,,",
    "pytorch_benchmark_fa3,H100 SXM,attention_fwd,triton "
    "FA2,bf16,,,,,32,512,512,16,16,128,0,,208.949,,,",
    "aic_db_b200_sxm,B200 SXM,attention_prefill,TensorRT-LLM 1.3.0rc20,bfloat16/kv "
    "fp8,,,,,4,8192,8192,64,64,128,1,,3672.83,,,",
    "aic_db_h100_sxm,H100 SXM,attention_decode,TensorRT-LLM 1.3.0rc20,bfloat16/kv "
    "fp8,,,,,64,1,16384,16,1,128,1,,108.432,,,",
    "vidur_profiles,H100 SXM,elementwise:mlp_act,PyTorch / vLLM-era "
    f'kernels,fp16,4096,,,,,,,,,,,4,90,,,"{LAYERS}"',
    "ml_engineering,MI355X,gemm_best_shape,torch.matmul,bf16,12288,8192,8192,,,,,,,,,,1053.85,,,",
]
CHIPS = (
    "a100-sxm-80gb",
    "h100-sxm",
    "gb300-gpu",
    "vr200-gpu",
    "mi355x",
    "mi450x",
    "trn2",
    "trn3",
    "tpu-v7",
    "gaudi3",
)


@pytest.fixture(scope="module")
def values():
    return plain_values()


def predicted(own_data, *rows):
    return today.predicted(
        "kernels", today.table_of(own_data.write("kernels.csv", "\n".join((HEADER, *rows, ""))))
    )


@pytest.fixture(scope="module")
def chips(catalogue, values):
    return {name: chip_on(catalogue, values, name) for name in CHIPS}


def test_published_rows_are_predicted_within_their_error(own_data):
    predictions = predicted(own_data, *PUBLISHED)
    assert list(predictions.skip) == [""] * len(PUBLISHED)
    assert np.abs(predictions.predicted / predictions.target - 1).max() < 0.2


@pytest.mark.parametrize("chip", ["a100-sxm-80gb", "h100-sxm", "b200-sxm", "mi355x"])
def test_decode_attention_grows_no_faster_than_its_query_heads(chips, values, chip):
    """Twice the query heads take at most twice the time of decode attention.

    Where a library leaves its matrix kernels is a rule of that library: FlashMLA took 1,636 us
    for 256 heads on an H800 (kernels.csv.gz).
    """
    on = chips.get(chip) or chip_on(CATALOGUE, values, chip)
    form = computed_on(values, chip, "bf16", "test")
    shape = {"batch": 512.0, "seq_kv": 8192.0, "kv_heads": 2.0, "head_dim": 128.0}
    times = [
        float(kernel_timing(on, "decode", form, shape | {"heads": heads}, BARE).time)
        for heads in (32.0, 64.0, 128.0, 256.0)
    ]
    assert all(
        kernel_time <= next_kernel_time <= 2 * kernel_time
        for kernel_time, next_kernel_time in pairwise(times)
    )
    slow = float(kernel_timing(on, "decode", form, shape | {"heads": 128.0}, "tensorrt-llm").time)
    assert slow > 5 * times[2]  # measured: TensorRT-LLM's tables of 64 queries a key head


def test_the_score_of_the_file(own_data):
    kernel_score = today.scored(own_data.write("kernels.csv", "\n".join((HEADER, *PUBLISHED, ""))))
    assert kernel_score.kind == "kernels"
    assert kernel_score.card["median_ape"] < 0.1
    assert kernel_score.card["scored"] == len(PUBLISHED)


def test_own_measurements_are_predicted(own_data):
    """Bare kernels as `tco measure` writes them."""
    rows = (
        "own-measurement,H100 SXM,elementwise:copy,PyTorch "
        "2.8,bfloat16,65536,8192,,,,,,,,,,,,,2700,",
        "own-measurement,H100 SXM,elementwise:add,PyTorch "
        "2.8,bfloat16,65536,8192,,,,,,,,,,,1150,,,",
        "own-measurement,H100 SXM,attention_decode,PyTorch 2.8,bfloat16/kv "
        "bfloat16,,,,,8,1,4096,64,8,128,1,,60,,,",
    )
    predictions = predicted(own_data, *rows)
    assert list(predictions.skip) == [""] * 3
    assert list(predictions.target_name) == ["gb_s", "time_us", "time_us"]
    assert np.isfinite(predictions.predicted).all()


@pytest.mark.parametrize(
    ("mask", "same"), [("", True), ("1.0", True), ("True", True), ("0.0", False), ("False", False)]
)
def test_prompts_are_causal_unless_a_row_says_no(own_data, mask, same):
    default_time, masked_time = predicted(
        own_data, PUBLISHED[6], PUBLISHED[6].replace("128,1,,", f"128,{mask},,")
    ).predicted
    assert (masked_time == default_time) == same
    assert masked_time >= default_time


def test_rates_stand_in_for_times(own_data):
    """A row that states TFLOP/s or GB/s instead of its time is predicted as that."""
    timed = predicted(own_data, PUBLISHED[0], PUBLISHED[7])
    rated = predicted(
        own_data,
        PUBLISHED[0].replace("174.285,,", ",788.6,"),
        PUBLISHED[7].replace("108.432,,,", ",,2476,"),
    )
    assert list(rated.target_name) == ["tflops", "gb_s"]
    assert rated.predicted[0] == pytest.approx(2 * 4096**3 / timed.predicted[0] / 1e6)
    assert rated.predicted[1] == pytest.approx(2 * 64 * 16384 * 128 / timed.predicted[1] / 1e3)


def test_every_row_can_be_asked_again(own_data):
    """The command line of a row gives its prediction, whatever the row states."""
    rows = (
        *PUBLISHED,
        PUBLISHED[0].replace("174.285,,", ",788.6,"),
        PUBLISHED[7].replace("108.432,,,", ",,2476,"),
    )
    predictions = predicted(own_data, *rows)
    for command, key, scale, expected in zip(
        predictions.command, predictions.key, predictions.scale, predictions.predicted, strict=True
    ):
        program, *arguments = shlex.split(command)
        assert program == "tco"
        assert document(*arguments)[key] * scale == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,B9000,gemm,x,bf16,16,16,16,,,,,,,,,,1,,,", "unknown-accelerator"),
        (
            "a,MI355X,sparse_mla_attention_fwd cr=4,x,bf16,,,,,1,4096,4096,64,,,,,,9,,",
            "unsupported sparse attention",
        ),
        ("a,MI355X,sort,x,bf16,16,16,16,,,,,,,,,,1,,,", "unsupported operation"),
        ("a,MI355X,gemm,x,fp3,16,16,16,,,,,,,,,,1,,,", "unsupported number format"),
        ("a,MI355X,gemm,x,bf16,16,,16,,,,,,,,,,1,,,", "unstated shape"),
        ("a,MI355X,gemm,x,bf16,0,16,16,,,,,,,,,,1,,,", "unstated shape"),
        ("a,H100 SXM,elementwise:add,x,bf16,16,,,,,,,,,,,,1,,,", "unstated shape"),
        ("a,MI355X,gemm,x,bf16,16,16,16,,,,,,,,,,,,,", "unstated result"),
        ("a,MI355X,gemm,x,bf16,16,16,16,,,,,,,,,,0,,,", "suspect: zero result"),
        ("a,MI355X,gemm,x,bf16,16,16,16,,,,,,,,,,-1,,,", "suspect: negative time_us"),
        (
            "a,H100 SXM,elementwise:add,x,bf16,16,4096,,,,,,,,,,,,3,,",
            "unsupported target: TFLOP/s of an elementwise kernel",
        ),
    ],
)
def test_what_is_not_scored_says_why(own_data, row, reason):
    assert list(predicted(own_data, row).skip) == [reason]


SIZES = st.integers(1, 2**15)


LAYER = "tensorrt-llm"


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("form", FORMATS)
def test_no_product_beats_peak_and_memory_or_gets_quicker_with_rows(chips, values, name, form):
    chip, how = chips[name], computed_on(values, name, form, "precision")
    operand_sizes, bandwidth = operands(chip, how), chip.part("hbm_bandwidth")

    @settings(max_examples=10)
    @given(SIZES, SIZES, SIZES, SIZES, st.sampled_from([None, 1, 8]))
    def holds(rows, more, columns, inner, groups):
        group_count, operation = groups or 1, "grouped" if groups else "gemm"
        shape, longer_shape = (
            {"m": side, "n": columns, "k": inner, "groups": groups} for side in (rows, rows + more)
        )
        timing = kernel_timing(chip, operation, how, shape)
        assert timing.time >= 2 * rows * columns * inner * group_count / chip.part(how.peak)
        assert (
            timing.time
            >= group_count
            * (
                (operand_sizes.input_size * rows + operand_sizes.weight_size * columns) * inner
                + 2 * rows * columns
            )
            / bandwidth
        )
        assert timing.time == pytest.approx(
            product(operand_sizes, rows, columns, inner, groups).time
            + chip.practice("kernel_launch"),
            rel=1e-12,
        )
        assert kernel_timing(chip, operation, how, longer_shape).time >= timing.time * (1 - 1e-12)
        assert kernel_timing(chip, operation, how, longer_shape, LAYER).time >= kernel_timing(
            chip, operation, how, shape, LAYER
        ).time * (1 - 1e-12)
        assert kernel_timing(chip, operation, how, shape, LAYER).time >= timing.time

    holds()


@pytest.mark.parametrize("name", CHIPS)
def test_no_attention_beats_peak_and_memory(chips, values, name):
    chip = chips[name]

    @settings(max_examples=20)
    @given(
        st.integers(1, 64),
        st.integers(1, 2**15),
        st.integers(1, 8),
        st.sampled_from([1, 2, 8, 64]),
        st.sampled_from([0, 1]),
    )
    def holds(batch, length, kv_heads, group, causal):
        heads = kv_heads * group
        shape = {
            "batch": batch,
            "seq_q": length,
            "seq_kv": length,
            "heads": heads,
            "kv_heads": kv_heads,
            "head_dim": 128,
            "value_dim": 128,
            "causal": causal,
        }
        for form in ("bf16", "fp8"):
            how = computed_on(values, name, form, "precision")
            bare, layer = (
                kernel_timing(chip, "prefill", how, shape, library).time
                for library in (BARE, LAYER)
            )
            assert bare >= 4 * batch * heads * length**2 * 128 * (1 - causal / 2) / chip.part(
                how.peak
            )
            assert layer > bare
        bare, layer = (
            kernel_timing(
                chip, "decode", computed_on(values, name, "bf16", ""), shape, library
            ).time
            for library in (BARE, LAYER)
        )
        assert layer > bare >= 4 * batch * kv_heads * length * 128 / chip.part("hbm_bandwidth")

    holds()


ASKED = (
    ("gemm", "fp8_block", {"m": 300, "n": 4096, "k": 7168}),
    ("gemm", "int4", {"m": 300, "n": 4096, "k": 7168}),
    ("grouped", "nvfp4", {"m": 16, "n": 4096, "k": 7168, "groups": 8}),
    ("gemm", "fp8", {"m": 300, "n": 4096, "k": 7168}),
    ("elementwise", "bf16", {"m": 300, "width": 4096, "passes": 3, "by_row": True}),
    (
        "prefill",
        "bf16",
        {
            "batch": 2,
            "seq_q": 4096,
            "seq_kv": 4096,
            "heads": 32,
            "kv_heads": 8,
            "head_dim": 128,
            "value_dim": 128,
            "causal": 1,
        },
    ),
    ("decode", "fp8", {"batch": 64, "seq_kv": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128}),
)


@pytest.mark.parametrize("name", ["gb300-gpu", "trn3"])
def test_traced_and_array_readings_give_the_plain_times(name):
    """A traced kernel and an array of kernels have the times of the plain reading.

    The trace is a graph down to the catalogue.
    """

    def made(values, stretched=None):
        chip = chip_on(CATALOGUE, values, name)
        for operation, form, shape in ASKED:
            sides = {
                side: size if stretched is None or side == "by_row" else size * stretched
                for side, size in shape.items()
            }
            yield kernel_timing(
                chip, operation, computed_on(values, name, form, "precision"), sides, LAYER
            )

    values = plain_values()
    plain = [timing.time for timing in made(values)]
    with recording() as trace:
        traced = list(made(system_of("gb200-nvl72").values(as_traced(trace))))
    assert [float(timing.time.value) for timing in traced] == pytest.approx(plain, rel=1e-14)
    assert all(float(part.value) >= 0 for timing in traced for part in timing.parts.values())
    for timing, number in zip(made(values, np.ones((3, 1))), plain, strict=True):
        assert np.asarray(timing.time) == pytest.approx(np.full((3, 1), number), rel=1e-14)
