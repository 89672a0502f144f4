"""Bits of number formats, how often a cast reads its input, and where corrections bend."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tco.performance.chip.engine_corrections import Correction
from tco.performance.chip.formats import Computed
from tco.performance.chip.gemm import _read_operands
from tco.performance.chip.kernel_times import _latent_decode
from tests.performance.servers import FORMATS
from tests.registry import FORMULA

# bits of a number with its share of the scale: OCP MX v1.0 has eight bits for 32 numbers, NVFP4
# eight for 16, and DeepSeek-V3 32 for 128
BITS = {
    "nvfp4": 4.5,
    "mxfp4": 4.25,
    "fp4": 4.5,
    "w4a8": 4.25,
    "w4a16": 4.25,
    "int4": 4.5,
    "fp8": 8.0,
    "fp8_block": 8.25,
    "mxfp8": 8.25,
    "int8": 8.0,
    "bf16": 16.0,
}


def test_a_number_takes_its_bits_and_its_share_of_a_scale():
    assert {name: form.bits for name, form in FORMATS.items()} == BITS


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.casts])
def test_a_cast_reads_its_input_once_unless_one_scale_is_of_the_whole_tensor(name):
    """A block or a token finds its largest number as it is read; a tensor is read once before."""
    whole_tensor = name == "fp8"
    assert FORMATS[name].reads == (2 if whole_tensor else 1)
    assert FORMATS[name].casts == (3 if whole_tensor else 1)


@pytest.mark.parametrize("name", ["w4a8", "w4a16", "int4", "bf16"])
def test_what_is_no_format_of_activations_casts_nothing(name):
    assert (FORMATS[name].casts, FORMATS[name].reads) == (0, 0)


# ---------------------------------------------------------------- kernels
def chip_of(**numbers):
    """A chip of tiles whose inputs are one unless they are given."""
    return SimpleNamespace(
        tiled=True,
        held_rate=0.9,
        part=lambda name: numbers.get(name, 1.0),
        practice=lambda name: numbers.get(name, 1.0),
        rate=lambda *_: 1e15,
        load=lambda _: 1e10,
        bandwidth=lambda _: 1e12,
    )


def test_products_of_four_bits_are_not_split_and_have_a_latency_of_their_own():
    chip = chip_of(fp4_inner_latency=3e-6, inner_latency=2e-6)
    products = {
        peak: _read_operands(chip, Computed("bf16", peak, unpacked=False))
        for peak in ("peak_fp4", "peak_fp8", "peak_bf16")
    }
    assert {peak: product.splits for peak, product in products.items()} == {
        "peak_fp4": False,
        "peak_fp8": True,
        "peak_bf16": True,
    }
    latencies = [product.latency for product in products.values()]
    assert latencies == [3e-6, 2e-6, 2e-6]


def test_queries_of_latent_attention_are_read_and_results_written_in_16_bits():
    """Each head of a sequence reads 512 + 64 numbers and writes 512, all of them twice."""
    chip = chip_of(latent_query_passes=2.0, hbm_bandwidth=1e12, cores=100.0)
    form = SimpleNamespace(stored="bf16", peak="peak_bf16", efficiency="bf16")
    library = SimpleNamespace(practice=lambda _: 1.0)
    kernel = _latent_decode(chip, form, library, 4.0, 1000.0, 16.0, 512.0, 64.0)
    assert kernel.parts["queries"] == pytest.approx(4 * 16 * (576 + 512) * 2 * 2 / 1e12)
    assert kernel.bytes == pytest.approx(4 * 1000 * 576 * 2)


@pytest.mark.parametrize(
    ("taken", "exposed", "rate"),
    [
        (1.0, 0.5, 1000.0),  # the matrix units apply the scales
        (0.0, 0.5, 200.0),  # 1,000 / (1 + 0.5 x 1,000 / (100 x 1.25)): four times as long more
        (0.0, 0.0, 1000.0),  # vector units work beside the matrix units
        (0.75, 0.5, 500.0),
    ],
)
def test_scales_of_partial_sums_take_vector_units_by_what_is_exposed(taken, exposed, rate):
    assert FORMULA.scaled_rate(1000.0, 1.25, 100.0, exposed, taken) == pytest.approx(rate)


# ---------------------------------------------------------------- corrections of kernels
# operation: shapes at the four places between which a fitted correction of each side is a line
PLACES = {
    "gemm": (("m", (1, 16, 256, 4096)), ("k", (64, 512, 4096, 16384))),
    "prefill": (("seq_q", (16, 256, 2048, 16384)), ("head_dim", (64, 128, 256, 512))),
    "decode": (("seq_kv", (4, 64, 1024, 16384)), ("heads", (1, 4, 16, 64))),
    "latent": (("seq_kv", (4, 64, 1024, 16384)), ("heads", (1, 8, 32, 128))),
    "all-reduce": (("size", (1e3, 1e5, 1e7, 1e9)), ("ranks", (2, 4, 8, 72))),
    "dispatch": (("tokens", (16, 128, 1024, 16384)), ("ranks", (2, 4, 8, 72))),
}


@pytest.mark.parametrize("operation", PLACES)
def test_a_correction_bends_at_the_places_of_its_fit(operation):
    """A slope of one between the middle places multiplies by their ratio across them, else by one.

    Rows of `engine_kernels.csv` are slopes between these places: another place needs another fit.
    """
    shape = {side: bends[0] for side, bends in PLACES[operation]} | {"kv_heads": 1}
    for number, (side, bends) in enumerate(PLACES[operation], 1):
        slopes = [0.0] * 9
        slopes[3 * number + 1] = 1.0
        middle = Correction(0.0, tuple(slopes))
        factors = [middle.of(operation, 1e-3, shape | {side: length}) / 1e-3 for length in bends]
        _, second, third, _ = bends
        assert factors == pytest.approx([1.0, 1.0, third / second, third / second])


def test_a_correction_by_time_bends_each_ten_times_from_3_us():
    by_time = Correction(0.0, (0.0, 1.0, 0.0, *(0.0,) * 6))
    shape = {"m": 1, "k": 64}
    times = (3e-6, 3e-5, 3e-4, 3e-3)
    factors = [by_time.of("gemm", time, shape) / time for time in times]
    assert factors == pytest.approx([1.0, 1.0, 10.0, 10.0])
