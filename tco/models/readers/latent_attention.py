"""Readers of config.json with latent or sparse attention, and of parametric mixtures."""

from __future__ import annotations

from collections.abc import Callable

from tco.models.config import Config, ParsedConfig
from tco.models.layers import Attention, FeedForward, LayerBlock, merge_equal_layers
from tco.models.readers.shared import dense, dense_then_routed, grouped_query, routed, two_norms

# tokens that DeepSeek V4 keeps as one, by the words of `layer_types`
COMPRESSIONS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
WIDTH_STEP = 16  # a derived expert width is a multiple of this, as matrix engines want it


def latent_attention(c: Config, value_width: int | None = None) -> Attention:
    """Return latent attention, with an indexer where the config has one.

    `value_width` is the usual width of a value head.
    """
    # as many as there are heads, and one word for all layers: an indexer has keys of its own
    c.unused("num_key_value_heads", "layer_types")
    rope = c.integer("qk_rope_head_dim")
    nope = c.integer("qk_nope_head_dim")
    heads = c.integer("num_attention_heads")
    plain = Attention(
        heads,
        heads,
        nope + rope,
        c.integer("v_head_dim", value_width),
        c.count("q_lora_rank", 10**9),
        c.integer("kv_lora_rank"),
        rope,
    )
    biased = plain._replace(in_bias=c.flag("attention_bias"), out_bias=c.flag("attention_bias"))
    return _indexed(c, biased) if c.has("index_topk") else biased


def _indexed(c: Config, attention: Attention) -> Attention:
    """Return an attention whose queries reach the tokens an indexer scores highest."""
    top = c.integer("index_topk")
    heads = c.integer("index_n_heads")
    width = c.integer("index_head_dim")
    return attention._replace(top_tokens=top, index_heads=heads, index_dim=width)


def _read_deepseek(c: Config) -> ParsedConfig:
    """Read DeepSeek V2 to V3.2, Kimi K2 and GLM-5: latent attention, and first layers dense.

    Further layers have fine-grained experts with shared ones.

    From GLM-5.2 on some layers have no indexer and take the choice of one before them.
    """
    blocks = dense_then_routed(c, latent_attention(c))
    if not c.has("indexer_types"):
        return c.layout(blocks)
    layers = [block._replace(layers=1) for block in blocks for _ in range(block.layers)]
    kinds = c.kinds("indexer_types", len(layers), ("full", "shared"))
    shared = (
        layer
        if kind == "full"
        else layer._replace(attention=layer.attention._replace(index_heads=0, index_dim=0))
        for layer, kind in zip(layers, kinds, strict=True)
    )
    return c.layout(merge_equal_layers(shared))


def _read_minicpm3(c: Config) -> ParsedConfig:
    value_width = c.integer("hidden_size") // c.integer("num_attention_heads")
    return c.layout(
        (
            LayerBlock(
                c.layers(), latent_attention(c, value_width), dense(c), other_weights=two_norms(c)
            ),
        ),
        tied=True,
    )


def _with_ratios(c: Config) -> Config:
    """Return a config of DeepSeek V4 with the keys of its first release."""
    if not c.has("layer_types"):
        return c
    layers, words = c.layers(), ("sliding_attention", *COMPRESSIONS)
    ratios = [COMPRESSIONS.get(kind, 0) for kind in c.kinds("layer_types", layers, words)]
    parts = c.kinds("mlp_layer_types", layers, ("hash_moe", "moe"), ["moe"] * layers)
    first = {"compress_ratios": ratios, "num_hash_layers": parts.count("hash_moe")}
    return c.replaced({**c.content, **first})


def _read_deepseek4(c: Config) -> ParsedConfig:
    """Read DeepSeek V4: caches compressed 4 to 1 or 128 to 1, or windows, and several streams.

    Caches compressed 4 to 1 have an indexer.
    """
    c.unused("num_key_value_heads")  # one, whose entry is key and value
    c = _with_ratios(c)
    layers = c.layers()
    heads = c.integer("num_attention_heads")
    width = c.integer("head_dim")
    hidden = c.integer("hidden_size")
    plain = Attention(
        heads,
        1,
        width,
        width,
        c.integer("q_lora_rank"),
        window=c.integer("sliding_window"),
        shared_key_value=True,
        sinks=True,
    )
    window = plain._replace(
        out_groups=c.integer("o_groups", most=heads), out_rank=c.integer("o_lora_rank")
    )
    attentions = {
        0: window,
        4: _indexed(c, window._replace(compression=4)),
        128: window._replace(compression=128),
    }
    streams = c.integer("hc_mult", most=1000)
    # weights that join the residual streams, before and after a part
    mixing = (2 + streams) * streams * (streams * hidden + 1) + 3
    part = routed(c, c.count("n_shared_experts", 1000) * c.integer("moe_intermediate_size"))
    # the first layers choose experts by a table and need no bias to balance them
    hashed = c.count("num_hash_layers", layers)
    other_weights = two_norms(c) + 2 * mixing
    kinds = [
        LayerBlock(
            1,
            attentions[ratio],
            part._replace(router_bias=index >= hashed),
            other_weights=other_weights,
        )
        for index, ratio in enumerate(c.kinds("compress_ratios", layers, tuple(attentions)))
    ]
    layout = c.layout(merge_equal_layers(kinds))
    ratios = c.kinds("compress_ratios", layers, tuple(attentions))
    if len(c.value("compress_ratios")) > layers:  # the last one is of the draft head
        ratios = [c.value("compress_ratios")[layers]]
    draft = LayerBlock(
        1, attentions[ratios[-1]], part._replace(router_bias=True), other_weights=other_weights
    )
    ends = layout.other_weights + streams * (streams * hidden + 1) + 1
    return layout._replace(other_weights=ends, prediction_block=draft)


def _read_parametric(c: Config) -> ParsedConfig:
    """Read a mixture of experts of a given size, whose expert width follows from it.

    width = (total - all other weights) / (layers x experts x 3 h), to the nearest multiple of 16.
    """
    attention = latent_attention(c) if c.has("kv_lora_rank") else grouped_query(c)
    layers = c.layers()
    hidden = c.integer("hidden_size")
    experts = c.integer("n_routed_experts", most=10**6)
    active = c.integer("num_experts_per_tok", most=experts)
    shared = c.count("n_shared_experts", 1000)

    def layout(width: int) -> ParsedConfig:
        part = FeedForward(width, 3, experts, active, shared * width)
        return c.layout((LayerBlock(layers, attention, part, other_weights=two_norms(c)),))

    def size(parsed_config: ParsedConfig) -> int:
        ends = (
            parsed_config.hidden * parsed_config.vocabulary * (1 if parsed_config.tied else 2)
            + parsed_config.other_weights
        )
        return ends + sum(block.layers * block.parameters(hidden) for block in parsed_config.blocks)

    target, smallest = c.integer("total_parameters", most=10**18), size(layout(0))
    slope = size(layout(1)) - smallest
    width = round((target - smallest) / slope / WIDTH_STEP) * WIDTH_STEP
    if width < WIDTH_STEP:
        raise c.wrong("total_parameters", f"more than the {smallest} weights beside the experts")
    return layout(width)


READERS: dict[str, Callable[[Config], ParsedConfig]] = {  # by model_type
    **dict.fromkeys(
        (
            "deepseek_v2",
            "deepseek_v3",
            "deepseek_v32",
            "glm4_moe_lite",
            "glm_moe_dsa",
            "kimi_k2",
            "kimi_k25",
        ),
        _read_deepseek,
    ),
    "deepseek_v4": _read_deepseek4,
    "minicpm3": _read_minicpm3,
    "parametric-moe": _read_parametric,
}
