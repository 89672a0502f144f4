"""Weights of layers and readings of configurations, by closed forms on small numbers."""

from __future__ import annotations

import pytest

from tco import DataError
from tco.models.architecture import architecture
from tco.models.from_figures import stated_model
from tco.models.layers import (
    Architecture,
    Attention,
    FeedForward,
    LayerBlock,
    StateMixer,
    StoredFormats,
)
from tco.models.quantization import _group_format
from tests.models.test_configurations import ROWS, read
from tests.performance.published_models import PUBLISHED

HIDDEN = 10


def published(name, **changes):
    """Return the architecture of a published model with some keys changed, and some left out."""
    keys = {**PUBLISHED[name][1], **changes}
    stated_keys = {key: stated for key, stated in keys.items() if stated is not None}
    return architecture(stated_keys, name, "config.json")


# ---------------------------------------------------------------- layers
@pytest.mark.parametrize(
    ("fields", "weights"),
    [
        ({}, 10 * 12),
        ({"gated": True}, 2 * 10 * 12),
        ({"in_bias": True, "qk_norm": 6}, 10 * 12 + 12 + 6),
        ({"q_rank": 5}, 10 * 5 + 5 + 5 * 12),
        ({"q_rank": 5, "qk_norm": 6, "in_bias": True}, 10 * 5 + 5 + 5 * 12 + 6 + 5),
        ({"q_rank": 5, "gated": True}, 10 * 5 + 5 + 5 * 12 + 10 * 4 * 2),
    ],
)
def test_weights_of_queries_are_those_of_rank_norms_biases_and_gate(fields, weights):
    attention = Attention(heads=4, kv_heads=2, qk_dim=3, v_dim=2, **fields)
    assert attention.query(HIDDEN) == weights
    assert attention.compressor(HIDDEN) == 0
    assert attention._replace(compression=4).compressor(HIDDEN) == 2 * 10 * 3 + 4 * 3 + 3
    assert (
        attention._replace(compression=4, top_tokens=8).compressor(HIDDEN, 7)
        == 2 * 10 * 14 + 4 * 14 + 7
    )


@pytest.mark.parametrize(("decay_rank", "decays"), [(0, 0), (3, 3 * (10 + 2 * 5) + 2 * 5)])
def test_weights_of_a_state_mixer_are_those_of_its_projections_and_decays(decay_rank, decays):
    mixer = StateMixer(
        heads=4,
        head_dim=6,
        groups=2,
        state=5,
        kernel=3,
        controls=1,
        scalars=2,
        norm=7,
        passes=2,
        decay_rank=decay_rank,
    )
    convolved = 24 + 2 * 2 * 5
    assert mixer.convolved == convolved
    projected = 24 + convolved + 4
    assert mixer.parameters(HIDDEN) == (
        10 * projected + convolved * 3 + 2 * 4 + 7 + 24 * 10 + decays
    )


def test_weights_of_experts_and_of_layers_that_predict_further_are_counted_by_layer():
    """An expert of width 6 has 3 x 10 x 6 weights; a prediction adds 2 x 10^2 and 3 x 10."""
    dense = LayerBlock(3, feed_forward=FeedForward(20, 3))
    routed = LayerBlock(5, feed_forward=FeedForward(6, 3, experts=8, active=2))
    model = Architecture("a", HIDDEN, 100, False, 1000, (dense, routed), "", prediction_layers=2)
    assert model.expert_parameters == 5 * 8 * 180
    of_last = routed.parameters(HIDDEN)
    assert model.prediction_parameters == 2 * (of_last + 200 + 30)
    with_block = model._replace(prediction_block=dense._replace(layers=1))
    assert with_block.prediction_parameters == 2 * (dense.parameters(HIDDEN) + 200 + 30)


def test_text_of_stored_formats_names_the_parts_that_differ_from_the_weights():
    same_format = "".join(("fp", "8"))
    stored = StoredFormats("fp8", attention=same_format, experts="nvfp4", cache=same_format)
    assert stored.text == "weights FP8, experts NVFP4"


# ---------------------------------------------------------------- configurations
@pytest.mark.parametrize(
    ("model_type", "norms"), [("gemma2", 4), ("gemma4_text", 5)], ids=["gemma2", "gemma4"]
)
def test_norms_of_a_layer_are_as_many_vectors_as_the_family_has(model_type, norms):
    configs = [row["config"] for row in ROWS if row["config"]["model_type"] == model_type]
    assert configs
    for config in configs:
        assert {block.other_weights for block in read(config).blocks} == {
            norms * config["hidden_size"]
        }


def test_streams_beside_each_other_are_mixed_twice_a_layer():
    """Of s streams each mixing has (2 + s) s rows of s h + 1 weights, and 3 more."""
    (config,) = (row["config"] for row in ROWS if row["config"]["model_type"] == "deepseek_v4")
    hidden, streams = 4104, config["hc_mult"]
    model = read(config, hidden_size=hidden)
    mixing = (2 + streams) * streams * (streams * hidden + 1) + 3
    assert {block.other_weights for block in model.blocks} == {2 * hidden + 2 * mixing}


def test_experts_of_a_token_leave_out_the_idle_ones_that_it_chooses():
    """Of 12 that are chosen among 96 and 32 idle ones, 9 work on the mean."""
    model = published("longcat-flash", n_routed_experts=96, zero_expert_num=32)
    assert [block.feed_forward.active for block in model.blocks if block.feed_forward.experts] == [
        9
    ]


def test_heads_of_unstated_width_share_the_width_of_the_model():
    stated, unstated = published("chatglm3-6b"), published("chatglm3-6b", kv_channels=None)
    assert unstated.blocks == stated.blocks
    assert unstated.blocks[0].attention.qk_dim == 4096 // 32


PARAMETRIC = {
    "model_type": "parametric-moe",
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "total_parameters": 10**9,
}


def test_shared_experts_are_a_thousand_at_most():
    read(PARAMETRIC, n_shared_experts=1000, total_parameters=10**12)
    with pytest.raises(DataError, match="n_shared_experts"):
        read(PARAMETRIC, n_shared_experts=1001, total_parameters=10**12)


def test_shared_width_of_stated_figures_is_a_billion_at_most():
    figures = "layers=1,hidden=8,heads=1,kv_heads=1,ffn=8,vocab=9,experts=2,active=1,shared={}"
    assert stated_model(figures.format(10**9)).blocks[0].feed_forward.shared_width == 10**9
    with pytest.raises(DataError, match="shared"):
        stated_model(figures.format(10**9 + 1))


@pytest.mark.parametrize(
    ("content", "group", "number_format"),
    [
        ({"format": "mxfp8-quantized"}, {}, "mxfp8"),
        ({}, {"format": "mxfp8-quantized"}, "mxfp8"),
        ({"format": "float-quantized"}, {"format": "mxfp8-quantized"}, "mxfp8"),
        ({"format": "mxfp8-quantized"}, {"format": "float-quantized"}, "fp8"),
        ({"quant_algo": "MXFP8"}, {}, "mxfp8"),
        ({}, {}, "fp8"),
    ],
)
def test_format_of_a_group_is_its_own_else_that_of_the_checkpoint(content, group, number_format):
    weights = {"num_bits": 8, "type": "float"}
    assert _group_format(content, {"weights": weights, **group}) == number_format
