"""`tco kernel`: how a product is cut, what binds, and what cannot be asked."""

from __future__ import annotations

import pytest

from tests.cli import document, tco

PRODUCT = ("--m", "4096", "--n", "8192", "--k", "8192", "--precision", "fp8")
ATTENTION = (
    "--op",
    "attention",
    "--batch",
    "8",
    "--heads",
    "64",
    "--kv-heads",
    "8",
    "--head-dim",
    "128",
    "--seq-kv",
    "8192",
)


def test_large_product_has_the_tiles_and_waves_computed_by_hand():
    """A product has 1,024 tiles of 128 x 256 on the 132 cores of an H100.

    The rate is that of published FP8 products.
    """
    kernel_document = document("kernel", "h100-sxm", *PRODUCT)
    assert (kernel_document["tile"], kernel_document["tiles"]) == ([128, 256], 1024)
    assert kernel_document["waves"] == pytest.approx(1024 / 132, rel=0.1)
    assert kernel_document["bound"] == "compute"
    assert kernel_document["flop"] == 2 * 4096 * 8192 * 8192
    assert kernel_document["share_of_peak"] == pytest.approx(
        kernel_document["flop"] / kernel_document["time_us"] / 1e6 / 1979, rel=1e-3
    )
    assert 0.45 <= kernel_document["share_of_peak"] <= 0.75


def test_a_library_casts_its_input():
    bare, layer = (
        document("kernel", "h100-sxm", *PRODUCT, *library)
        for library in ((), ("--library", "tensorrt-llm"))
    )
    assert bare["parts_us"]["cast"] == 0
    assert layer["time_us"] == pytest.approx(bare["time_us"] + layer["parts_us"]["cast"], rel=1e-12)


def test_large_arrays_cut_no_tiles():
    kernel_document = document("kernel", "trn3", *PRODUCT)
    assert (kernel_document["tile"], kernel_document["tiles"], kernel_document["waves"]) == (
        None,
        None,
        None,
    )


def test_attention_is_bound_by_compute_in_prefill_and_by_memory_in_decode():
    """A prompt computes, one query per sequence reads; FP8 halves the time of the memory."""
    assert document("kernel", "gb200-gpu", *ATTENTION, "--seq-q", "8192")["bound"] == "compute"
    wide, narrow = (
        document("kernel", "gb200-gpu", *ATTENTION, "--phase", "decode", "--precision", form)
        for form in ("bf16", "fp8")
    )
    assert wide["bound"] == "memory"
    assert narrow["parts_us"]["memory"] == pytest.approx(wide["parts_us"]["memory"] / 2, rel=1e-12)
    full, causal = (
        document("kernel", "gb200-gpu", *ATTENTION, "--seq-q", "8192", *mask)
        for mask in (("--full",), ())
    )
    assert full["flop"] == 2 * causal["flop"]


def test_setting_changes_the_kernel_or_is_named_as_without_effect():
    done = tco(
        "kernel",
        "h100-sxm",
        *PRODUCT,
        "--set",
        "parts.h100-sxm.peak_fp8=4000 TFLOP/s",
        "--set",
        "parts.h100-sxm.peak_fp4=1 TFLOP/s",
    )
    assert done.exit_code == 0
    assert "parts.h100-sxm.peak_fp4 is set" in done.stderr
    quick = document(
        "kernel", "h100-sxm", *PRODUCT, "--set", "parts.h100-sxm.peak_fp8=4000 TFLOP/s"
    )
    assert quick["time_us"] < document("kernel", "h100-sxm", *PRODUCT)["time_us"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("h100-sxn", *PRODUCT), 3, "h100-sxm"),
        (("h100-sxm", *PRODUCT, "--op", "gem"), 3, "gemm"),
        (("h100-sxm", *PRODUCT[:-1], "fp9"), 3, "fp8"),
        (("h100-sxm", *PRODUCT, "--library", "tensorrt-lm"), 3, "tensorrt-llm"),
        (("h100-sxm", "--m", "16"), 2, "--n, --k"),
        (("h100-sxm", "--m", "-16", "--n", "16", "--k", "16"), 2, "--m"),
        (("h100-sxm", *ATTENTION, "--seq-q", "128", "--phase", "decoding"), 3, "decode"),
        (("gb200-gpu", *ATTENTION, "--seq-q", "128", "--precision", "nvfp4"), 3, "8 bits or wider"),
    ],
)
def test_impossible_kernel_is_refused(arguments, code, words):
    done = tco("kernel", *arguments)
    assert done.exit_code == code
    assert words in done.stderr
    assert "Traceback" not in done.output + done.stderr
