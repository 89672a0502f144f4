"""Attention over a compressed cache, as in DeepSeek V4: cached entries, reads and weights."""

from __future__ import annotations

import pytest

from tco import evaluate
from tco.models.layers import numbers_of, projections
from tco.performance.layer.layers import keys_attended, keys_held
from tests.catalogue import load_model
from tests.performance.servers import CATALOGUE, cached_numbers

MODEL = load_model(CATALOGUE, "deepseek-v4-pro")
# of an entry, of an indexer's key, tokens and entries reached
WIDTH, INDEX, WINDOW, TOP = (
    512,
    128,
    128,
    1024,
)
POOLED = {4: 30, 128: 31}  # layers by how many tokens an entry stands for


def attention(compression):
    return next(a for a in MODEL.attentions if a.compression == compression)


def test_a_cache_grows_by_entries_and_keeps_a_window():
    growing, windowed = cached_numbers(MODEL, 1)
    assert {a.compression: layers for a, layers in MODEL.attentions.items()} == POOLED
    assert growing == pytest.approx(30 * (WIDTH + INDEX) / 4 + 31 * WIDTH / 128)
    assert windowed == pytest.approx(61 * WIDTH * WINDOW)
    # one vector serves as key and value of all heads: every rank of a group holds it whole
    assert cached_numbers(MODEL, 8) == (growing, windowed)


@pytest.mark.parametrize(
    ("compression", "tokens", "keys"),
    [
        (4, 2048, 2048 / 4 + WINDOW),
        (4, 10**6, TOP + WINDOW),
        (4, 100, 100 / 4 + 100),
        (128, 10**6, 10**6 / 128 + WINDOW),
    ],
)
def test_a_query_reads_its_window_and_entries(compression, tokens, keys):
    assert keys_attended(attention(compression), float(tokens)) == pytest.approx(keys)
    assert keys_held(attention(compression), float(tokens)) == pytest.approx(
        tokens / compression + tokens
    )


@pytest.mark.parametrize("compression", POOLED)
def test_projections_are_the_weights_of_the_layer(compression):
    """All but those of the indexer, norms, biases and sinks."""
    a, hidden = attention(compression), MODEL.hidden
    projection_numbers = numbers_of(projections(a, hidden, 1).values())
    small = (
        a.q_rank
        + a.qk_norm
        + a.qk_dim
        + a.heads
        + (a.compression + 1) * a.qk_dim * (2 if a.top_tokens else 1)
    )
    assert projection_numbers == pytest.approx(
        a.parameters(hidden) - a.indexer(hidden), abs=2 * small
    )
    split = projections(a, hidden, 8)
    assert split["query up"][1] * 8 == projections(a, hidden, 1)["query up"][1]
    assert split["attention down"] == projections(a, hidden, 1)["attention down"]


def test_longer_prompts_cost_a_compressed_cache_little():
    """Eight times the context: DeepSeek-V3 decodes far less, V4 a little less."""

    def made(model, tokens):
        settings = {
            "workload.model": model,
            "workload.input_tokens": str(tokens),
            "workload.interactivity": "20 token/s",
        }
        evaluation = evaluate("gb200-nvl72", settings, catalogue=CATALOGUE)
        # for the pool that feeds it
        never_waiting = 1 + 1 / evaluation.inputs["performance.serving.pool_sharpness"].value
        return (
            float(evaluation.metrics["output_tokens_per_s_per_chip"])
            / (1 - float(evaluation.serving.prefill_share)) ** never_waiting
        )

    assert made("deepseek-v4-pro", 65536) > 0.8 * made("deepseek-v4-pro", 8192)
    assert made("deepseek-v3", 65536) < 0.5 * made("deepseek-v3", 8192)


def test_the_best_plan_reaches_the_published_runs_on_gb300():
    """The best plan makes nine tenths of the published output tokens per second per GPU.

    The runs have 8,192 tokens in and 1,024 out, with four-bit experts (InferenceX, May 2026).
    """
    for speed, published in ((17.58, 10214 / 9), (25.91, 6812 / 9), (36.78, 1920 / 9)):
        settings = {
            "workload.model": "deepseek-v4-pro",
            "workload.precision": "fp4",
            "workload.interactivity": f"{speed} token/s",
        }
        assert (
            evaluate("gb300-nvl72", settings, catalogue=CATALOGUE).metrics[
                "output_tokens_per_s_per_chip"
            ]
            > 0.9 * published
        )
