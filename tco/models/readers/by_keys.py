"""Reader of the config.json of a decoder of no known family, by the keys that say its structure."""

from __future__ import annotations

from collections.abc import Callable

from tco.core.types import JsonObject, is_finite_number
from tco.models.config import Config, ParsedConfig
from tco.models.layers import (
    NO_ATTENTION,
    NO_FEED_FORWARD,
    Attention,
    FeedForward,
    LayerBlock,
    StateMixer,
    merge_equal_layers,
)
from tco.models.readers.latent_attention import latent_attention
from tco.models.readers.shared import expert_layers, grouped_query, two_norms
from tco.models.readers.state_space import delta_attention, gated_delta_rule
from tco.models.spelling import LAYER_KINDS

# activations of feed-forward parts without a gate, and with one
UNGATED = ("relu2", "relu", "xielu", "gelu_new", "gelu_fast")
GATED = ("", "silu", "swish", "gelu_pytorch_tanh", "geglu", "situ")
# what the code of a model type says beyond its keys
MODEL_TRAITS: dict[str, JsonObject] = {
    "afmoe": {"attn_output_gate": True},
    "bamba": {"attn_layer_indices": []},
    "beam": {"attn_output_gate": True},
    "bitnet": {"gated_mlp": True},
    "hy_v4": {"mla_use_output_gate": True},
    "bailing_hybrid": {"full_rank_decay": True},
    "falcon_h1": {"parallel_mixer": True},
    "granitemoehybrid": {"attn_layer_indices": []},
}
FULL, SLIDING, LINEAR, MAMBA, CONV = "full", "sliding", "linear", "mamba", "conv"
# every how many layers one sees all tokens, or a pattern of letters
PATTERN_KEYS = (
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "global_attn_every_n_layers",
    "prefix_dense_sliding_window_pattern",
)
LISTED_KEYS = (
    "sliding_window",
    "layer_group_size",
    "full_attn_idxs",
    "num_attention_heads",
    "num_key_value_heads",
)
FEED_FORWARD_UNIT = 256  # widths that `ffn_mult` gives are multiples of this


def read_by_keys(c: Config) -> ParsedConfig:
    """Return the layers of a decoder, each as its keys say."""
    if c.has("block_configs"):
        return _read_block_configs(c)
    c = c.with_defaults(MODEL_TRAITS.get(c.text("model_type"), {}))
    norms = two_norms(c)
    mixing = _mixing_parts(c)
    parts = _feed_forward_parts(c)
    blocks = (
        block._replace(feed_forward=part, other_weights=norms)
        for block, part in zip(mixing, parts, strict=True)
    )
    return c.layout(merge_equal_layers(blocks))


# ---------------------------------------------------------------- attention and mixers
def _mixing_parts(c: Config) -> list[LayerBlock]:
    """Return each layer with its attention or its mixer alone."""
    makers: dict[str, Callable[[Config], LayerBlock]] = {
        FULL: lambda c: LayerBlock(1, _full_attention(c)),
        SLIDING: lambda c: LayerBlock(1, _sliding_attention(c)),
        LINEAR: lambda c: LayerBlock(1, mixer=_linear_mixer(c)),
        MAMBA: lambda c: LayerBlock(1, mixer=_mamba_mixer(c)),
        CONV: lambda c: LayerBlock(1, mixer=_convolution(c)),
    }
    kinds = _layer_kinds(c)
    blocks = {kind: makers[kind](c) for kind in dict.fromkeys(kinds)}
    changed = {index: makers[kinds[index]](config) for index, config in _changed_layers(c).items()}
    layers = [changed.get(index, blocks[kind]) for index, kind in enumerate(kinds)]
    if not c.flag("parallel_mixer"):
        return layers
    mixer = _mamba_mixer(c)
    return [block._replace(mixer=mixer) for block in layers]


def _changed_layers(c: Config) -> dict[int, Config]:
    """Return the configs of the layers that have keys of their own."""
    changes: dict[int, dict[str, object]] = {}
    if c.has("per_layer_config"):
        section = c.section("per_layer_config")
        changes = {
            int(layer_key): section.value(layer_key)
            for layer_key in section.content
            if layer_key.isdigit()
        }
    if c.has("num_attention_heads_per_layer"):
        heads = c.kinds("num_attention_heads_per_layer", c.layers(), tuple(range(1, 1025)))
        for index, number in enumerate(heads):
            changes.setdefault(index, {})["num_attention_heads"] = number
    return {index: c.replaced({**c.content, **change}) for index, change in changes.items()}


def _layer_kinds(c: Config) -> list[str]:
    """Return the kind of mixing of each layer, by any of the keys that state it."""
    layers = c.layers()
    # keys that say the same where there is a list, or nothing where no layer attends
    c.mark_read(*PATTERN_KEYS, *LISTED_KEYS)
    if c.has("layer_types"):
        return [LAYER_KINDS[word] for word in c.kinds("layer_types", layers, tuple(LAYER_KINDS))]
    if c.has("hybrid_layer_pattern"):
        marks = c.kinds("hybrid_layer_pattern", layers, (0, 1))
        return [SLIDING if mark else FULL for mark in marks]
    if c.has("attn_layer_indices"):
        attending = _attending_layers(c, "attn_layer_indices")
        return [FULL if index in attending else MAMBA for index in range(layers)]
    interval = c.either("full_attention_interval", "layer_group_size")
    if c.has(interval):
        period = c.integer(interval)
        return [LINEAR if (index + 1) % period else FULL for index in range(layers)]
    if c.has("full_attn_idxs"):
        attending = _attending_layers(c, "full_attn_idxs")
        return [FULL if index in attending else CONV for index in range(layers)]
    if c.has("attn_layer_period"):
        period, offset = c.integer("attn_layer_period"), c.count("attn_layer_offset", layers)
        return [FULL if index % period == offset else MAMBA for index in range(layers)]
    if c.has("mamba_num_heads") and not c.flag("parallel_mixer"):
        raise c.wrong("layer_types", "the kind of each layer, beside the keys of a Mamba-2 mixer")
    if not c.has("sliding_window") or not c.flag("use_sliding_window", True):
        return [FULL] * layers
    return _windowed_kinds(c, layers)


def _attending_layers(c: Config, layers_key: str) -> list[int]:
    layer_numbers = c.value(layers_key)
    if not isinstance(layer_numbers, list):
        raise c.wrong(layers_key, "a list of the layers with attention, the first one being 0")
    return layer_numbers


def _windowed_kinds(c: Config, layers: int) -> list[str]:
    """Return which layers see a window: by a pattern, from a layer on, or all."""
    pattern_key = c.either(*PATTERN_KEYS)
    pattern = c.value(pattern_key)
    if isinstance(pattern, str):  # such as LLLG
        letters = {"L": SLIDING, "G": FULL}
        return [letters.get(pattern[index % len(pattern)], FULL) for index in range(layers)]
    if pattern is not None:
        period = c.integer(pattern_key)
        return [SLIDING if (index + 1) % period else FULL for index in range(layers)]
    first = c.count("max_window_layers", 10_000) if c.has("use_sliding_window") else 0
    return [SLIDING if index >= first else FULL for index in range(layers)]


def _full_attention(c: Config) -> Attention:
    if c.has("kv_lora_rank"):
        return latent_attention(c)._replace(gated=c.flag("mla_use_output_gate"))
    attention = _grouped_attention(c)
    groups = c.integer("num_global_key_value_heads", attention.kv_heads)
    if not c.has("global_head_dim"):
        return attention._replace(kv_heads=groups)
    width = c.integer("global_head_dim")
    return attention._replace(kv_heads=groups, qk_dim=width, v_dim=width)


def _sliding_attention(c: Config) -> Attention:
    """Return attention within a window, whose heads may be others than those of full attention."""
    plain = _grouped_attention(c)
    if c.has("kv_lora_rank"):  # an indexer scores the keys of full attention alone
        plain = latent_attention(c.replaced({**c.content, "index_topk": None}))
    setting = c.section("attention_other_setting") if c.has("attention_other_setting") else None
    heads = c.integer("swa_num_attention_heads", plain.heads)
    groups = c.integer("swa_num_key_value_heads", plain.kv_heads)
    if setting is not None:
        heads = setting.integer("num_attention_heads", heads)
        groups = setting.integer("num_key_value_heads", groups)
    width = c.integer("swa_head_dim", plain.qk_dim)
    value_width = c.integer("swa_v_head_dim", plain.v_dim)
    window = c.integer(c.either("sliding_window", "attention_chunk_size"))
    return plain._replace(
        heads=heads,
        kv_heads=groups,
        qk_dim=width,
        v_dim=value_width,
        window=window,
        chunked=not c.has("sliding_window"),
    )


def _grouped_attention(c: Config) -> Attention:
    """Return grouped-query attention with the biases, norms and gates that the keys name."""
    heads, hidden = c.integer("num_attention_heads"), c.integer("hidden_size")
    if not c.has("head_dim") and hidden % heads:
        raise c.wrong("num_attention_heads", f"a divisor of hidden_size, {hidden}, or head_dim")
    attention = grouped_query(c, head_norm=bool(c.value("use_qk_norm")))
    return attention._replace(
        v_dim=c.integer("v_head_dim", attention.v_dim),
        in_bias=attention.in_bias or c.flag("qkv_bias"),
        gated=c.flag("attn_output_gate"),
    )


def _linear_mixer(c: Config) -> StateMixer:
    """Return a gated delta rule, or linear attention with the heads of the full one."""
    if c.has("linear_num_value_heads"):
        return gated_delta_rule(c)
    if c.has("linear_attn_config") or c.has("linear_num_heads"):
        mixer = delta_attention(c)
        if not c.flag("full_rank_decay"):
            return mixer
        # every number of a key decays by a product of its own
        controls = 1 + mixer.head_dim
        return mixer._replace(controls=controls, scalars=controls, decay_rank=0, gate_rank=0)
    if c.has("mamba_num_heads"):
        return _mamba_mixer(c)
    attention = _grouped_attention(c)
    heads, head = attention.heads, attention.qk_dim
    return StateMixer(heads, head, heads, head, 1, 0, 0, norm=heads * head, passes=2)


def _mamba_mixer(c: Config) -> StateMixer:
    """Return a Mamba-2 mixer."""
    heads, head = c.integer("mamba_num_heads"), _mamba_head_width(c)
    normed = c.flag("mamba_rms_norm", True)
    return StateMixer(
        heads,
        head,
        c.integer("mamba_n_groups"),
        c.integer("ssm_state_size"),
        c.integer("conv_kernel"),
        controls=1,
        scalars=3,
        norm=heads * head if normed else 0,
        passes=2,
        conv_bias=c.flag(c.either("mamba_conv_bias", "use_conv_bias"), True),
    )


def _mamba_head_width(c: Config) -> int:
    """Return the width of a head, which "auto" derives from the widths of mixer and model."""
    if c.value("mamba_head_dim") not in (None, "auto"):
        return c.integer("mamba_head_dim")
    heads, width = (
        c.integer("mamba_num_heads"),
        c.integer("mamba_expand") * c.integer("hidden_size"),
    )
    if width % heads:
        raise c.wrong("mamba_num_heads", f"a divisor of the mixer's width, {width}")
    return width // heads


def _convolution(c: Config) -> StateMixer:
    """Return a short convolution between two gates: three numbers in, one kept, one out."""
    hidden = c.integer("hidden_size")
    kernel = c.integer(c.either("conv_L_cache", "conv_kernel"))
    return StateMixer(hidden, 1, hidden // 2, 1, kernel, 0, 0, norm=0, passes=1)


# ---------------------------------------------------------------- feed-forward parts
def _feed_forward_parts(c: Config) -> list[FeedForward]:
    layers = c.layers()
    if not c.value("num_experts"):
        return [_dense_part(c)] * layers
    part = _routed_part(c)
    return [part if has_experts else _dense_part(c) for has_experts in expert_layers(c)]


def _matrices(c: Config) -> int:
    """Return the matrices of a feed-forward part: three with a gate, two without."""
    activation = c.text("hidden_act")
    if c.flag("gated_mlp") or activation in GATED or activation.startswith("swiglu"):
        return 3
    if activation in UNGATED:
        return 2
    raise c.wrong("hidden_act", "an activation that says whether there is a gate, such as silu")


def _dense_part(c: Config) -> FeedForward:
    width_keys = ("intermediate_size", "ffn_hidden_size", "n_inner")
    first = ("dense_intermediate_size", "intermediate_size_mlp")
    width = c.integer(next(filter(c.has, first), c.either(*width_keys)))
    if c.flag("block_auto_adjust_ff_dim"):
        unit, factor = c.integer("block_multiple_of"), c.value("block_ffn_dim_multiplier") or 1
        width = -(-int(factor * int(2 * width / 3)) // unit) * unit
    return FeedForward(width, _matrices(c), bias=c.flag("mlp_bias"))


def _routed_part(c: Config) -> FeedForward:
    """Return routed and shared experts."""
    number = c.integer("num_experts", most=10**6)
    width = c.integer(c.either("moe_intermediate_size", "intermediate_size", "ffn_hidden_size"))
    shared_experts = c.count("n_shared_experts", 1000, 1)
    shared_width = c.count(
        c.either("shared_expert_intermediate_size", "shared_intermediate_size"), 10**9
    )
    if not shared_width and c.value("n_shared_experts"):
        shared_width = width
    return FeedForward(
        width,
        _matrices(c),
        number,
        c.integer("num_experts_per_tok", most=number),
        shared_experts * shared_width,
        latent=c.count("moe_latent_size", 10**9),
        router_bias=any(
            c.flag(bias_key)
            for bias_key in (
                "use_moe_router_bias",
                "use_routing_bias",
                "moe_router_enable_expert_bias",
                "use_expert_bias",
            )
        ),
    )


# ---------------------------------------------------------------- layers that differ one by one
def _read_block_configs(c: Config) -> ParsedConfig:
    """Return layers that `block_configs` describes one by one."""
    listed = c.value("block_configs")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise c.wrong("block_configs", "a list of objects, one for each layer")
    if c.layers() != len(listed):
        raise c.wrong("num_hidden_layers", f"{len(listed)}, as block_configs describes")
    blocks = []
    for index, entry in enumerate(listed):
        block = Config(entry, c.where, f"{c.section_path}block_configs[{index}].", c.keys_read)
        attention = _block_attention(c, block.section("attention"))
        part = _block_feed_forward(c, block.section("ffn"))
        norms = bool(attention.heads) + bool(part.width)
        norm_weights = norms * c.integer("hidden_size")
        blocks.append(LayerBlock(1, attention, part, other_weights=norm_weights))
    return c.layout(merge_equal_layers(blocks))


def _block_attention(c: Config, block: Config) -> Attention:
    block.refuse_keys("replace_with_linear", "sparsify")
    if block.flag("no_op"):
        return NO_ATTENTION
    heads = c.integer("num_attention_heads")
    shared = c.replaced({**c.content, "num_key_value_heads": heads})
    attention = _grouped_attention(shared)
    groups = heads // block.integer("n_heads_in_group", most=heads)
    return attention._replace(kv_heads=groups, window=block.count("window_length", 10**9))


def _block_feed_forward(c: Config, block: Config) -> FeedForward:
    block.refuse_keys("replace_with_linear", "sparsify")
    if block.flag("no_op"):
        return NO_FEED_FORWARD
    if block.has("intermediate_size"):
        return FeedForward(block.integer("intermediate_size"), 3)
    factor = block.value("ffn_mult")
    if not is_finite_number(factor) or factor <= 0:
        raise block.wrong("ffn_mult", "how many times as wide as the model")
    width = int(2 * factor * c.integer("hidden_size") / 3)
    return FeedForward(-(-width // FEED_FORWARD_UNIT) * FEED_FORWARD_UNIT, 3)
