"""Work for each token against published figures and closed forms."""

import pytest

from tests.catalogue import CATALOGUE, load_model
from tests.performance.servers import flops_per_token
from tests.registry import FORMULA
from tests.scenario_helpers import recording


def work(name, context, training=True):
    return flops_per_token(load_model(CATALOGUE, name), context, training)


def test_deepseek_v3_trains_at_250_gflop_a_token():
    """Training takes the published 250 GFLOP per token at 4,096 tokens.

    Source: arxiv.org/abs/2505.09343. The closed form is 6 x 37e9 + 3 x 2 x 2,048 x 128 x 320 x
    61 = 252.7e9.
    """
    assert work("deepseek-v3", 4096) == pytest.approx(250e9, rel=5e-3)
    model = load_model(CATALOGUE, "deepseek-v3")
    rounded = work("deepseek-v3", 4096) + 6 * (37e9 - model.active_parameters)
    assert rounded == pytest.approx(252.7e9, rel=2e-4)


def test_megatron_counts_the_same_products():
    """Megatron counts 72 l h^2 (1 + V / (12 l h)) for the weights, plus half of the attention.

    Source: arxiv.org/abs/2104.04473. The half is the causal one.
    """
    layers, hidden, vocabulary, context = 96, 12288, 50257, 2048
    closed = (
        72 * layers * hidden**2 * (1 + vocabulary / (12 * layers * hidden))
        + 6 * layers * context * hidden
    )
    assert work("gpt3-175b", context) == pytest.approx(closed, rel=3e-4)


def test_training_is_three_forward_passes():
    assert work("gpt-oss-20b", 8192) == pytest.approx(3 * work("gpt-oss-20b", 8192, training=False))


@pytest.mark.parametrize(("entries", "reach"), [(64, 64), (64, 16), (64, 1), (7, 3)])
def test_reached_keys_is_the_mean_over_a_sequence(entries, reach):
    steps = 2000
    mean = sum(min(entries * (step + 0.5) / steps, reach) for step in range(steps)) / steps
    assert FORMULA.reached_keys(entries, reach) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("context", [100, 8192, 8192 * 4])
def test_chunk_keys_is_the_mean_over_a_sequence(context):
    steps = 4000
    mean = sum((context * (step + 0.5) / steps) % 8192 for step in range(steps)) / steps
    assert FORMULA.chunk_keys(context, 8192) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-oss-120b",
        "deepseek-v3.2",
        "deepseek-v4-pro",
        "llama-4-scout",
        "nemotron-3-nano-30b-a3b",
    ],
)
def test_work_of_windowed_attention_grows_less_than_that_of_full_attention(name):
    """Work per token grows by less than under full attention from 64k to 128k tokens."""
    model = load_model(CATALOGUE, name)
    full = sum(layers * a.heads * (a.qk_dim + a.v_dim) for a, layers in model.attentions.items())
    grown = flops_per_token(model, 131072, training=False) - flops_per_token(
        model, 65536, training=False
    )
    is_all_attention = sum(model.attentions.values()) == model.layers
    assert grown > 0
    assert (
        grown < 0.6 * 2 * 32768 * full
        if is_all_attention
        else grown == pytest.approx(2 * 32768 * full)
    )


@pytest.mark.parametrize("name", sorted(CATALOGUE.models))
def test_traced_work_equals_the_number(name):
    model = load_model(CATALOGUE, name)
    with recording() as trace:
        traced = flops_per_token(
            model, trace.leaf("context", 8192.0, "", "tco-model", "assumed", "context")
        )
    assert traced.value == pytest.approx(flops_per_token(model, 8192.0), rel=1e-12)
