"""Configurations of public model types read as the weights that another library counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tco
from tco import DataError
from tco.models.architecture import Architecture, architecture
from tco.performance.serving.passes import cached_numbers
from tests.registry import over

# `weights` are those of the Transformers library's model of the same config, on its meta device
# (5.24); the configs are the defaults of its model types with six layers, some keys changed
FILE = Path(__file__).parents[1] / "golden" / "configurations.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
WITHIN = 2e-3  # norms, gates and biases of single heads

EXPERTS = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
}
EXPERT, WIDE = 3 * 2048 * 768 * 128 + 2048 * 128, 3 * 2048 * 6144
UNKNOWN = {**EXPERTS, "model_type": "novel"}


def read(content: dict[str, Any], **changes: Any) -> Architecture:
    """Return the architecture of a config with some keys changed."""
    return architecture({**content, **changes}, "own", "config.json")


@over({f"{index} {row['config']['model_type']}": row for index, row in enumerate(ROWS)})
def test_weights_are_those_of_another_library(row):
    model = read(row["config"])
    assert model.parameters == pytest.approx(row["weights"], rel=WITHIN)
    assert model.unread == ()


@pytest.mark.thorough
@over({f"{index} {row['config']['model_type']}": row for index, row in enumerate(ROWS)})
def test_the_other_library_still_counts_the_same(row):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    content = dict(row["config"])
    config = transformers.AutoConfig.for_model(content.pop("model_type"), **content)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    model.tie_weights()
    assert sum(weight.numel() for weight in model.parameters()) == row["weights"]


@pytest.mark.parametrize(
    ("changes", "dense_layers"),
    [
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}, 1),
        ({"first_k_dense_replace": 3}, 3),
        ({"num_dense_layers": 2}, 2),
        ({"decoder_sparse_step": 2}, 2),
        ({"mlp_only_layers": [0, 3]}, 2),
        ({"moe_layer_freq": [0, 1, 1, 1]}, 1),
        ({"moe_layers_enum": "1,2,3"}, 1),
        ({"interleave_moe_layer_step": 4}, 3),
        ({"expert_layer_period": 2, "expert_layer_offset": 1}, 2),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": -1}, 1),
    ],
)
def test_dense_layers_are_those_of_every_spelling(changes, dense_layers):
    for content in (EXPERTS, UNKNOWN):
        fewer = read(content).parameters - read(content, **changes).parameters
        assert fewer == dense_layers * (EXPERT - WIDE)


def test_a_list_of_layers_that_is_not_one_is_named():
    with pytest.raises(DataError, match=r"mlp_only_layers is \[9\], expected numbers of layers"):
        read(EXPERTS, mlp_only_layers=[9])


@pytest.mark.parametrize("key", ["num_local_experts", "n_routed_experts", "moe_num_experts"])
def test_spellings_of_one_figure_are_read_alike(key):
    renamed = {name: value for name, value in EXPERTS.items() if name != "num_experts"}
    assert read(renamed, **{key: 128}) == read(EXPERTS)


def test_a_model_of_no_known_family_is_said_to_be_read_by_its_keys():
    model = read(UNKNOWN)
    assert model.reading.startswith("read by its keys: ")
    assert f"{model.parameters / 1e9:,.1f} B parameters" in model.reading
    assert model.parameters == pytest.approx(read(EXPERTS).parameters, rel=1e-5)


def test_a_model_of_no_known_family_names_the_key_that_it_lacks():
    with pytest.raises(DataError) as caught:
        architecture({"model_type": "novel", "hidden_size": 64}, "own", "config.json")
    assert "the key 'num_hidden_layers' is missing" in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_an_activation_that_says_nothing_of_a_gate_is_refused():
    with pytest.raises(DataError, match="hidden_act is 'gelu'"):
        read(UNKNOWN, hidden_act="gelu")


@pytest.mark.parametrize(
    "change",
    [
        {"num_sparse_layers": 2},
        {"latent_mixing_size": 64},
        {"share_every_layers": 4},
        {"block_configs": [{}]},
        {"mtp_heads_type": "deep"},
    ],
)
def test_a_structural_key_that_is_not_read_is_named(change):
    assert read(EXPERTS, **change).unread == tuple(change)


@pytest.mark.parametrize(
    "change",
    [
        {"num_sparse_layers": 0},
        {"rope_theta": 1e6},
        {"max_window_layers": 4},
        {"mlp_only_layers": []},
    ],
)
def test_a_key_that_changes_nothing_is_not_named(change):
    assert read(EXPERTS, **change).unread == ()


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"num_nextn_predict_layers": 1}, 1),
        ({"mtp_num_hidden_layers": 2}, 2),
        ({"use_mtp": True, "num_mtp_modules": 3}, 3),
        ({"use_mtp": False, "num_mtp_modules": 3}, 0),
        ({}, 0),
    ],
)
def test_a_draft_head_is_read_under_every_spelling(changes, layers):
    assert read(EXPERTS, **changes).prediction_layers == layers


@pytest.mark.parametrize(
    ("wrapper", "inside", "section"),
    [
        ("qwen3_vl_moe", "qwen3_vl_moe_text", "text_config"),
        ("novel_chat", "qwen3_moe", "llm_config"),
        ("qwen3_moe_vl", "", "text_config"),
    ],
)
def test_the_language_model_of_a_wrapper_is_read(wrapper, inside, section):
    text = {**EXPERTS, "model_type": inside}
    model = architecture({"model_type": wrapper, section: text}, "own", "config.json")
    assert model.parameters == read(EXPERTS).parameters


@pytest.mark.parametrize(
    ("scaling", "context"),
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"type": "yarn", "factor": 2.0}, 81920),
        ({"rope_type": "llama3", "factor": 8.0}, 40960),
        ({"full_attention": {"rope_type": "yarn", "factor": 2.0}}, 81920),
    ],
)
def test_yarn_extends_the_context(scaling, context):
    for key in ("rope_scaling", "rope_parameters"):
        assert read(EXPERTS, **{key: scaling}).context == context


def test_layers_that_differ_by_block_are_counted_one_by_one():
    block = {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 2.625}}
    without = {"attention": {"no_op": True}, "ffn": {"no_op": True}}
    content = {**UNKNOWN, "hidden_size": 4096, "num_hidden_layers": 2, "num_experts": None}
    model = read(content, block_configs=[block, without])
    heads, groups, width = 32 * 128, 4 * 128, 7168  # 2/3 x 2.625 x 4,096
    layer = 4096 * (2 * heads + 2 * groups + 3 * width) + 2 * 4096
    assert model.parameters == layer + 4096 * (2 * 151936 + 1)


# Gemma 4 E2B as its publisher states it: 2.3 B parameters effective, 5.1 B with the embeddings of
# its layers and 0.45 B of towers for images and sound, which are left out
GEMMA_E2B = {
    "model_type": "gemma4_text",
    "hidden_size": 1536,
    "intermediate_size": 6144,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "global_head_dim": 512,
    "sliding_window": 512,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
    "num_kv_shared_layers": 20,
    "use_double_wide_mlp": True,
    "vocab_size": 262144,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}


def test_layer_embeddings_are_counted_and_not_active():
    model = read(GEMMA_E2B)
    assert model.parameters == pytest.approx(5.1e9 - 0.45e9, rel=0.01)
    assert model.active_parameters == pytest.approx(2.3e9, rel=0.02)
    assert model.lookups == 262144 * 35 * 256


def test_layers_that_share_a_cache_keep_none():
    """Of the first fifteen layers three see all tokens, twelve a window of 512."""
    model = read(GEMMA_E2B)
    assert model.cached == 3 * 2 * 512
    assert model.fixed_numbers_per_sequence == 12 * 512 * 2 * 256
    growing, fixed_numbers = cached_numbers(model, 1)
    assert (growing, fixed_numbers) == (model.cached, model.fixed_numbers_per_sequence)


def test_only_the_rows_of_layer_embeddings_are_read(tmp_path):
    """A table of sixteen times as many rows takes memory, and no time of a step."""
    speeds = []
    for rows in (16384, 262144):
        folder = tmp_path / str(rows)
        folder.mkdir()
        config = GEMMA_E2B | {"vocab_size_per_layer_input": rows}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        settings = {"workload.model": str(folder), "workload.concurrency": "8"}
        speeds.append(tco.evaluate("h100-hgx8", settings).metrics["tokens_per_s_per_user"])
    assert speeds[0] == pytest.approx(speeds[1], rel=1e-9)


def test_alternating_updates_are_refused_with_the_reason():
    with pytest.raises(DataError, match="AltUp"):
        read(GEMMA_E2B, model_type="gemma3n_text")


@pytest.mark.parametrize("model_type", ["hrm_text", "huginn_raven", "ouro"])
def test_layers_that_a_token_passes_several_times_are_refused_with_the_reason(model_type):
    with pytest.raises(DataError, match="layers that a token passes several times"):
        read(EXPERTS, model_type=model_type)


@pytest.mark.parametrize("key", ["H_cycles", "loop_num_passes", "total_ut_steps"])
def test_passes_over_the_same_layers_are_named(key):
    assert read(UNKNOWN, **{key: 3}).unread == (key,)


MAMBA = {
    "mamba_n_heads": 128,
    "mamba_d_head": 32,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
}


def test_mamba_keys_without_the_kind_of_each_layer_are_refused():
    with pytest.raises(DataError, match="the key 'layer_types' is missing"):
        read(UNKNOWN, **MAMBA)


def test_attending_layers_that_are_no_list_are_named():
    with pytest.raises(DataError, match="attn_layer_indices is 3, expected a list"):
        read(UNKNOWN, **MAMBA, attn_layer_indices=3)


# LongCat-Flash-Chat as its publisher states it: 560 B parameters, 18.6 to 31.3 B active, on
# average 27 B. The Transformers library sets aside weights for the idle experts as well.
LONGCAT = {
    "model_type": "longcat_flash",
    "hidden_size": 6144,
    "ffn_hidden_size": 12288,
    "expert_ffn_hidden_size": 2048,
    "num_layers": 28,
    "num_attention_heads": 64,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
    "vocab_size": 131072,
    "max_position_embeddings": 131072,
}


def test_idle_experts_have_no_weights():
    model = read(LONGCAT)
    assert model.parameters == pytest.approx(560e9, rel=0.005)
    assert model.active_parameters == pytest.approx(27e9, rel=0.01)
