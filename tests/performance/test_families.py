"""Configs of published models read as the weights their makers count, family by family.

A model that is no decoder is refused with the reason.
"""

from __future__ import annotations

import json

import pytest

from tco import DataError
from tco.models.architecture import architecture
from tests.catalogue import CATALOGUE, READERS
from tests.performance.published_models import ACTIVE, PUBLISHED

# a second name of a family held under its first
ALIASES = {
    "gemma4_text",
    "hunyuan",
    "kimi_k2",
    "kimi_linear",
    "llama4_text",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_5",
    "qwen3_5_moe_text",
}
WITHIN = 0.005

# norms and biases that their makers count otherwise
APART = {
    "gpt-j-6b": -2_498_560,
    "stablelm-2-1_6b": 98_304,
    "stablelm-2-12b": -419_840,
}


def read(name, change=()):
    return architecture({**PUBLISHED[name][1], **dict(change)}, name, "config.json")


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_are_those_published(name):
    assert read(name).parameters == pytest.approx(PUBLISHED[name][0], rel=WITHIN)


@pytest.mark.parametrize(
    "name", [name for name, (weights, _) in PUBLISHED.items() if isinstance(weights, int)]
)
def test_a_count_published_to_the_last_weight_is_met_to_the_last(name):
    assert read(name).parameters - PUBLISHED[name][0] == APART.get(name, 0)


@pytest.mark.parametrize("name", ACTIVE)
def test_active_weights_are_those_published(name):
    """Publications count the input embedding among the weights a token passes."""
    model = read(name)
    lookup = 0 if model.tied else model.hidden * model.vocabulary
    published, digit = ACTIVE[name]
    assert abs(model.active_parameters + lookup - published) <= digit


def test_every_family_has_a_published_count():
    configs = [json.loads(path.read_text(encoding="utf-8")) for path in CATALOGUE.models.values()]
    shipped = {content["model_type"] for content in configs}
    shipped |= {
        content["text_config"]["model_type"] for content in configs if "text_config" in content
    }
    published_types = {content["model_type"] for _, content in PUBLISHED.values()} | shipped
    assert published_types >= set(READERS) - ALIASES


def reading(name, key):
    """Return the size of a config's model without a key, or the message of its refusal."""
    try:
        return str(read(name, {key: None}).parameters)
    except DataError as error:
        return str(error)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_missing_key_has_a_default_or_is_named(name):
    for key in PUBLISHED[name][1].keys() - {"model_type"}:
        reading_outcome = reading(name, key)
        assert reading_outcome.isdigit() or reading_outcome.startswith("config.json: the key ")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bert", "an encoder"),
        ("t5", "an encoder and a decoder"),
        ("mllama", "vision tower"),
        ("hymba", "side by side"),
        ("jamba", "the first Mamba"),
        ("mamba", "the first Mamba"),
        ("zamba2", "share one set of weights"),
    ],
)
def test_unreadable_model_is_refused_with_the_reason(kind, reason):
    with pytest.raises(
        DataError, match=f"config.json: model_type '{kind}' is not read: .*{reason}"
    ):
        architecture(
            {"model_type": kind, "text_config": {"model_type": "llama"}}, kind, "config.json"
        )


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "falcon-7b",
            {"num_attention_heads": 70},
            "70 heads with 1 of keys and values do not divide a width of 4544",
        ),
        ("opt-30b", {"word_embed_proj_dim": 512}, "word_embed_proj_dim unlike hidden_size"),
        (
            "mamba-codestral-7b",
            {"expand": 3},
            "num_heads is 128, expected heads that are together 3 times as wide as the model",
        ),
        (
            "hunyuan-a13b",
            {"moe_topk": [8, 4] * 16},
            "expected one number for each of 32 layers, all alike",
        ),
        ("hunyuan-a13b", {"use_cla": True}, "use_cla is True, expected nothing here"),
        ("chatglm3-6b", {"kv_channels": 64}, "kv_channels is 64, expected 128"),
        (
            "gemma-3-1b",
            {"layer_types": ["sliding"] * 26},
            "unknown kind of layer in layer_types 'sliding'; did you mean 'sliding_attention'",
        ),
        (
            "arctic",
            {"moe_layer_frequency": 2},
            "moe_layer_frequency is 2, expected 1: layers without experts are not read",
        ),
    ],
)
def test_unknown_family_is_refused(name, change, message):
    with pytest.raises(DataError) as caught:
        read(name, change)
    assert message in str(caught.value)


def test_windows_stand_where_the_family_puts_them():
    """Gemma 3 has windows in five of six layers, Command R7B in three of four.

    A remainder of Gemma's layers at the end has windows too. Layers that see all tokens grow
    the cache.
    """
    for name, windows, all_tokens in (("gemma-3-27b", 52, 10), ("command-r7b", 24, 8)):
        layers = {
            bool(attention.window): count for attention, count in read(name).attentions.items()
        }
        assert layers == {True: windows, False: all_tokens}


def test_a_recurrent_model_caches_no_tokens():
    """Codestral Mamba keeps 8192 x 128 numbers and 3 x 10240 inputs in each of 64 layers.

    The inputs are those of the convolution; the length does not matter.
    """
    model = read("mamba-codestral-7b")
    assert (model.cached, model.fixed_numbers_per_sequence) == (0, 64 * (8192 * 128 + 3 * 10240))


def test_one_head_of_keys_and_values_is_a_small_cache():
    """Falcon-7B caches 2 x 64 numbers a layer and token, GPT-NeoX 2 x 6144."""
    assert read("falcon-7b").cached == 32 * 2 * 64
    assert read("gpt-neox-20b").cached == 44 * 2 * 6144


def test_layers_in_words_are_those_in_letters():
    letters = json.loads(
        CATALOGUE.models["nemotron-3.5-lightning-30b-a3b"].read_text(encoding="utf-8")
    )
    words = {"M": "mamba", "*": "attention", "E": "moe"}
    listed = {
        "hybrid_override_pattern": None,
        "num_hidden_layers": None,
        "layers_block_type": [words[x] for x in letters["hybrid_override_pattern"]],
    }
    assert (
        architecture({**letters, **listed}, "own", "config.json").blocks
        == architecture(letters, "own", "config.json").blocks
    )
