"""Caches of shipped models, by closed forms from the keys of their publishers' configs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tco.models.architecture import architecture
from tco.models.config import read_config
from tco.performance.chip.roofline import cache_bytes
from tco.performance.serving.passes import cached_numbers
from tests.registry import over

MODELS = Path(__file__).parents[2] / "data" / "models"
BF16 = 2  # bytes of a number
Keys = dict[str, Any]
Cache = tuple[float, float]  # numbers for each token, and of each sequence whatever its length


def keys_of(model_id: str) -> Keys:
    """Return the keys of a shipped config, of its language model where it has a section for it."""
    keys = json.loads((MODELS / model_id / "config.json").read_text(encoding="utf-8"))
    return {"model_type": keys["model_type"], **keys.get("text_config", keys)}


def entry(keys: Keys) -> int:
    """Numbers of a token's keys and values in one layer: 2 H_kv d."""
    heads = keys["num_attention_heads"]
    groups = keys.get("num_key_value_heads") or heads
    return 2 * groups * (keys.get("head_dim") or keys["hidden_size"] // heads)


def all_layers(keys: Keys) -> Cache:
    """Every layer sees all tokens, or none beyond a window."""
    numbers, window = keys["num_hidden_layers"] * entry(keys), keys.get("sliding_window")
    return (0, numbers * window) if window else (numbers, 0)


def no_window(keys: Keys) -> Cache:
    return all_layers({**keys, "sliding_window": None})


def one_full_in(period: int, window_key: str = "sliding_window") -> Callable[[Keys], Cache]:
    """Every `period`-th layer sees all tokens, the others a window."""

    def cache(keys: Keys) -> Cache:
        layers = keys["num_hidden_layers"]
        full = layers // period
        return full * entry(keys), (layers - full) * keys[window_key] * entry(keys)

    return cache


def latent(keys: Keys) -> Cache:
    """A latent and its rotary part, and the keys of an indexer where a layer has one of its own."""
    layers = keys["num_hidden_layers"]
    indexers = keys.get("indexer_types", ["full"] * layers).count("full")
    numbers = layers * (keys["kv_lora_rank"] + keys["qk_rope_head_dim"])
    return numbers + indexers * keys.get("index_head_dim", 0) * ("index_topk" in keys), 0


def latent_or_grouped(keys: Keys) -> Cache:
    return latent(keys) if "kv_lora_rank" in keys else all_layers(keys)


def compressed(keys: Keys) -> Cache:
    """A window beside entries of 4 tokens, which an indexer scores, or of 128."""
    ratios = keys["compress_ratios"][: keys["num_hidden_layers"]]
    width, index = keys["head_dim"], keys["index_head_dim"]
    growing = ratios.count(4) * (width + index) / 4 + ratios.count(128) * width / 128
    return growing, len(ratios) * keys["sliding_window"] * width


def gemma4(keys: Keys) -> Cache:
    """Layers that see all tokens have heads of their own number and width."""
    full = keys["layer_types"].count("full_attention")
    wide = 2 * keys["num_global_key_value_heads"] * keys["global_head_dim"]
    sliding = len(keys["layer_types"]) - full
    return full * wide, sliding * keys["sliding_window"] * entry(keys)


def nemotron(keys: Keys) -> Cache:
    """Attention (*) keeps keys and values, Mamba-2 (M) its state and its last inputs."""
    letters = keys["hybrid_override_pattern"]
    inner = keys["mamba_num_heads"] * keys["mamba_head_dim"]
    state = inner * keys["ssm_state_size"]
    inputs = (inner + 2 * keys["n_groups"] * keys["ssm_state_size"]) * (keys["conv_kernel"] - 1)
    return letters.count("*") * entry(keys), letters.count("M") * (state + inputs)


def delta(keys: Keys) -> Cache:
    """Three of four layers keep the state of a gated delta rule and its last inputs."""
    layers, value_heads = keys["num_hidden_layers"], keys["linear_num_value_heads"]
    values = value_heads * keys["linear_value_head_dim"]
    queries = keys["linear_num_key_heads"] * keys["linear_key_head_dim"]
    state = values * keys["linear_key_head_dim"]
    inputs = (values + 2 * queries) * (keys["linear_conv_kernel_dim"] - 1)
    full = layers // 4
    return full * entry(keys), (layers - full) * (state + inputs)


def kimi_linear(keys: Keys) -> Cache:
    """A delta rule with latent attention on the layers that the config lists."""
    linear, layers = keys["linear_attn_config"], keys["num_hidden_layers"]
    full, width = len(linear["full_attn_layers"]), linear["num_heads"] * linear["head_dim"]
    mixer = width * linear["head_dim"] + 3 * width * (linear["short_conv_kernel_size"] - 1)
    numbers = keys["kv_lora_rank"] + keys["qk_rope_head_dim"]
    return full * numbers, (layers - full) * mixer


def sparse_minimax(keys: Keys) -> Cache:
    """Layers with sparse attention keep one key of the indexer as well."""
    sparse = keys["sparse_attention_config"]
    indexers = sum(sparse["sparse_attention_freq"]) * sparse["sparse_index_dim"]
    return all_layers(keys)[0] + indexers, 0


def wide_as_the_model(width_key: str, layers_key: str) -> Callable[[Keys], Cache]:
    """Every head has keys and values of its own."""
    return lambda keys: (2 * keys[width_key] * keys[layers_key], 0)


def dbrx(keys: Keys) -> Cache:
    head = keys["d_model"] // keys["n_heads"]
    return 2 * keys["n_layers"] * keys["attn_config"]["kv_n_heads"] * head, 0


FORMS: dict[str, Callable[[Keys], Cache]] = {
    **dict.fromkeys(
        ("deepseek_v3", "deepseek_v32", "glm4_moe_lite", "glm_moe_dsa", "kimi_k2", "kimi_k25"),
        latent,
    ),
    **dict.fromkeys(
        ("glm4_moe", "llama", "minimax_m2", "mistral", "ministral3", "mixtral", "qwen3_moe"),
        all_layers,
    ),
    **dict.fromkeys(("qwen2", "qwen3", "solar_open"), no_window),
    **dict.fromkeys(("qwen3_5_moe_text", "qwen3_5_text"), delta),
    "dbrx": dbrx,
    "deepseek_v4": compressed,
    "gemma2": one_full_in(2),
    "gemma3_text": one_full_in(6),
    "gemma4_text": gemma4,
    "gpt2": wide_as_the_model("n_embd", "n_layer"),
    "gpt_oss": one_full_in(2),
    "kimi_linear": kimi_linear,
    "llama4_text": one_full_in(4, "attention_chunk_size"),
    "minimax_m3": sparse_minimax,
    "mpt": wide_as_the_model("d_model", "n_layers"),
    "nemotron_h": nemotron,
    "parametric-moe": latent_or_grouped,
}
CONFIGS = {path.parent.name: path for path in sorted(MODELS.glob("*/config.json"))}
TOKENS = 1_000_000  # longer than any window


@over(CONFIGS)
def test_cache_of_a_shipped_model_is_its_closed_form(path):
    keys = keys_of(path.parent.name)
    growing, fixed = FORMS[keys["model_type"]](keys)
    model = architecture(read_config(path), path.parent.name, str(path))
    cache_size = cache_bytes(1, TOKENS, *cached_numbers(model, 1), BF16)
    assert cache_size == pytest.approx(BF16 * (TOKENS * growing + fixed), rel=1e-12)
    assert model.cached == pytest.approx(growing, abs=1)


# Insights into DeepSeek-V3 (arXiv 2505.09343), table 1: kilobytes of a token's cache in BF16
PUBLISHED = {
    "deepseek-v3": 70.272,
    "qwen2.5-72b": 327.680,
    "llama-3.1-405b": 516.096,
}


@pytest.mark.parametrize("model_id", PUBLISHED)
def test_closed_form_of_a_cache_is_the_published_size(model_id):
    keys = keys_of(model_id)
    growing, _ = FORMS[keys["model_type"]](keys)
    assert growing * BF16 / 1000 == pytest.approx(PUBLISHED[model_id], abs=5e-4)
