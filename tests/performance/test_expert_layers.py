"""Layers of experts and latent attention agree with independent arithmetic.

It is about bounds, and the spread of popularity and drafts.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from tco.performance.chip.kernel_times import skew_of_power_law
from tests.cli import document
from tests.registry import FORMULA

LAYER = (
    "--op",
    "experts",
    "--experts",
    "256",
    "--hidden",
    "7168",
    "--width",
    "2048",
    "--topk",
    "8",
)
CHIPS = ("h100-sxm", "b200-sxm", "mi355x", "trn3")


def layer(chip, tokens, *more):
    return document(
        "kernel", chip, *LAYER, "--precision", "fp8_block", "--tokens", str(tokens), *more
    )


@pytest.mark.parametrize("chip", CHIPS)
def test_no_layer_beats_its_weights_or_its_peak(chip):
    layer_answer = layer(chip, 4096, "--ranks", "8", "--even")
    weights = 32 * 3 * 7168 * 2048
    # 4,096 of the 32,768 choices are this rank's
    assert layer_answer["flop"] == pytest.approx(2 * 4096 * weights / 32)
    assert layer_answer["bytes"] > weights
    assert layer_answer["share_of_peak"] < 1


def test_more_tokens_and_more_skew_take_no_less():
    times = [layer("b200-sxm", tokens, "--ranks", "8")["time_us"] for tokens in (64, 1024, 16384)]
    assert times == sorted(times)
    skewed = [
        layer("b200-sxm", 16384, "--ranks", "8", "--skew", str(skew))["time_us"]
        for skew in (0.5, 1, 2, 3)
    ]
    assert skewed == sorted(skewed)
    assert skewed[0] > layer("b200-sxm", 16384, "--ranks", "8", "--even")["time_us"]


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0.2, 3).filter(
        lambda a: min(abs(a - integer_exponent) for integer_exponent in (1, 2, 3)) > 0.02
    ),
    st.floats(0.01, 1),
    st.floats(2, 1e4),
)
def test_the_scatter_of_a_power_law_is_that_of_its_moments(exponent, least, most):
    none, first_moment, two = (
        integrate.quad(lambda y, i=i: np.exp(y * (i + 1 - exponent)), np.log(least), np.log(most))[
            0
        ]
        for i in range(3)
    )
    assert float(FORMULA.power_law_scatter(exponent, least, most)) ** 2 + 1 == pytest.approx(
        none * two / first_moment**2, rel=1e-6
    )


@pytest.mark.parametrize("chip", ["h100-sxm", "gb300-gpu", "mi355x"])
def test_latent_attention_reads_each_cache_once(chip):
    shape = (
        "--phase",
        "latent",
        "--batch",
        "64",
        "--seq-kv",
        "16384",
        "--latent",
        "512",
        "--rotary",
        "64",
    )
    answers_by_heads = {
        heads: document("kernel", chip, "--op", "attention", "--heads", str(heads), *shape)
        for heads in (16, 128)
    }
    for heads, kernel_answer in answers_by_heads.items():
        assert kernel_answer["bytes"] == 64 * 16384 * 576 * 2
        assert kernel_answer["flop"] == 2 * 64 * 16384 * heads * (576 + 512)
        assert kernel_answer["share_of_peak"] < 1
    assert answers_by_heads[128]["time_us"] > answers_by_heads[16]["time_us"]
    narrow = document(
        "kernel", chip, "--op", "attention", "--heads", "16", *shape, "--precision", "fp8"
    )
    assert narrow["time_us"] < answers_by_heads[16]["time_us"]


def test_the_library_that_widens_a_cache_pays_for_all_of_it():
    shape = (
        "--op",
        "attention",
        "--phase",
        "latent",
        "--precision",
        "fp8",
        "--batch",
        "64",
        "--seq-kv",
        "16384",
        "--heads",
        "128",
        "--latent",
        "512",
    )
    unwidened, widened = (
        document("kernel", "h100-sxm", *shape, "--rotary", "64", "--library", name)
        for name in ("latent", "latent-widened")
    )
    assert widened["parts_us"]["widening"] > 0
    assert widened["time_us"] - unwidened["time_us"] == pytest.approx(
        widened["parts_us"]["widening"], rel=1e-9
    )


def test_stated_groups_are_the_deployment():
    perf_answer = document(
        "perf", "h200-hgx8", "--plan", "tp=8,ep=1", "--set", "workload.concurrency=64"
    )
    assert {name: perf_answer["plan"][name] for name in ("tp", "pp", "dp", "ep")} == {
        "tp": 8,
        "pp": 1,
        "dp": 1,
        "ep": 1,
    }
    full = document(
        "perf",
        "h200-hgx8",
        "--plan",
        "tp=8,ep=1,chips=8,pp=1,workers=1",
        "--set",
        "workload.concurrency=64",
    )
    assert perf_answer["metrics"] == full["metrics"]
    assert any("one engine of 8 chips" in note for note in perf_answer["notes"])


@pytest.mark.parametrize(
    ("tokens", "topk", "experts", "ends"),
    [(4.0, 8.0, 256.0, (0.01, 2.0)), (64.0, 8.0, 256.0, (1.0, 51.2)), (1.0, 4.0, 2.0, (1.0, 1.01))],
)
def test_a_power_law_scatters_as_its_moments_say(tokens, topk, experts, ends):
    """The scatter of a power law follows from its moments between its ends.

    An expert has between one token and four fifths of all, or below two where choices are fewer
    than experts.
    """
    mass, mean, square = (
        integrate.quad(lambda x, power=power: x ** (power - 1.2), *ends)[0] for power in (0, 1, 2)
    )
    assert float(skew_of_power_law(1.2, tokens, topk, experts)) == pytest.approx(
        math.sqrt(mass * square / mean**2 - 1), rel=1e-6
    )
