"""Readers of config.json with latent or sparse attention, and of parametric mixtures."""

from __future__ import annotations

from collections.abc import Callable

from tco.models.config import Config, ParsedConfig
from tco.models.layers import Attention, FeedForward, LayerBlock, merge_equal_layers
from tco.models.readers.shared import dense, dense_then_routed, grouped_query, routed, two_norms

# DeepSeek V4: tokens that one cache entry stands for, by kind of layer
COMPRESSIONS = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
WIDTH_STEP = 16  # matrix engines want an expert width that is a multiple of this


def latent_attention(c: Config, value_width: int | None = None) -> Attention:
    """Return latent attention, with an indexer where the config has one.

    Args:
        c: Config of the model.
        value_width: Width of a value head where the config states none.

    """
    # in latent attention these keys repeat the number of heads and a single kind of layer
    c.mark_read("num_key_value_heads", "layer_types")
    rope = c.integer("qk_rope_head_dim")
    nope = c.integer("qk_nope_head_dim")
    heads = c.integer("num_attention_heads")
    biased = c.flag("attention_bias")
    attention = Attention(
        heads,
        kv_heads=heads,
        qk_dim=nope + rope,
        v_dim=c.integer("v_head_dim", value_width),
        q_rank=c.count("q_lora_rank", 10**9),
        latent=c.integer("kv_lora_rank"),
        rope_dim=rope,
        in_bias=biased,
        out_bias=biased,
    )
    return _indexed(c, attention) if c.has("index_topk") else attention


def _indexed(c: Config, attention: Attention) -> Attention:
    """Return an attention whose queries reach the tokens an indexer scores highest."""
    return attention._replace(
        top_tokens=c.integer("index_topk"),
        index_heads=c.integer("index_n_heads"),
        index_dim=c.integer("index_head_dim"),
    )


def _read_deepseek(c: Config) -> ParsedConfig:
    """Read DeepSeek V2 to V3.2, Kimi K2 and GLM-5: latent attention, dense then expert layers.

    From GLM-5.2 on some layers have no indexer of their own: they attend to the tokens that the
    indexer of an earlier layer chose.
    """
    blocks = dense_then_routed(c, latent_attention(c))
    if not c.has("indexer_types"):
        return c.layout(blocks)
    single_layers = [block._replace(layers=1) for block in blocks for _ in range(block.layers)]
    kinds = c.kinds("indexer_types", len(single_layers), ("full", "shared"))
    layers = []
    for layer, kind in zip(single_layers, kinds, strict=True):
        attention = layer.attention
        if kind == "shared":
            attention = attention._replace(index_heads=0, index_dim=0)
        layers.append(layer._replace(attention=attention))
    return c.layout(merge_equal_layers(layers))


def _read_minicpm3(c: Config) -> ParsedConfig:
    value_width = c.integer("hidden_size") // c.integer("num_attention_heads")
    attention = latent_attention(c, value_width)
    block = LayerBlock(c.layers(), attention, dense(c), other_weights=two_norms(c))
    return c.layout((block,), tied=True)


def _with_first_release_keys(c: Config) -> Config:
    """Return a config of DeepSeek V4 with the keys of its first release."""
    if not c.has("layer_types"):
        return c
    layers = c.layers()
    kinds = c.kinds("layer_types", layers, ("sliding_attention", *COMPRESSIONS))
    routings = c.kinds("mlp_layer_types", layers, ("hash_moe", "moe"), ["moe"] * layers)
    first_release_keys = {
        "compress_ratios": [COMPRESSIONS.get(kind, 0) for kind in kinds],
        "num_hash_layers": routings.count("hash_moe"),
    }
    return c.replaced({**c.content, **first_release_keys})


def _read_deepseek4(c: Config) -> ParsedConfig:
    """Read DeepSeek V4: caches compressed 4 to 1 or 128 to 1, or windows, and several streams.

    Several residual streams run beside each other; weights mix them around each attention and
    feed-forward part.
    """
    c.mark_read("num_key_value_heads")  # one, whose entry is key and value
    c = _with_first_release_keys(c)
    layers = c.layers()
    hidden = c.integer("hidden_size")
    attentions = _attentions_by_compression(c)
    ratios = c.kinds("compress_ratios", layers, tuple(attentions))
    experts = routed(c, c.count("n_shared_experts", 1000) * c.integer("moe_intermediate_size"))
    streams = c.integer("hc_mult", most=1000)
    stream_weights = streams * (streams * hidden + 1)
    # a layer mixes its streams around its attention and around its feed-forward part
    mixing = (2 + streams) * stream_weights + 3
    other_weights = two_norms(c) + 2 * mixing

    def layer(ratio: int, router_bias: bool) -> LayerBlock:
        feed_forward = experts._replace(router_bias=router_bias)
        return LayerBlock(1, attentions[ratio], feed_forward, other_weights=other_weights)

    # the first layers choose experts by a table and need no bias to balance them
    table_layers = c.count("num_hash_layers", layers)
    blocks = [layer(ratio, index >= table_layers) for index, ratio in enumerate(ratios)]
    layout = c.layout(merge_equal_layers(blocks))
    stated_ratios = c.value("compress_ratios")
    # a ratio beyond those of the layers is of the draft head
    draft_ratio = stated_ratios[layers] if len(stated_ratios) > layers else ratios[-1]
    last_mixing = stream_weights + 1  # joins the streams after the last layer
    return layout._replace(
        other_weights=layout.other_weights + last_mixing,
        prediction_block=layer(draft_ratio, router_bias=True),
    )


def _attentions_by_compression(c: Config) -> dict[int, Attention]:
    """Return DeepSeek V4's attentions by tokens of a cache entry; 0: a window of tokens alone."""
    heads = c.integer("num_attention_heads")
    width = c.integer("head_dim")
    window = Attention(
        heads,
        kv_heads=1,
        qk_dim=width,
        v_dim=width,
        q_rank=c.integer("q_lora_rank"),
        window=c.integer("sliding_window"),
        shared_key_value=True,
        sinks=True,
        out_groups=c.integer("o_groups", most=heads),
        out_rank=c.integer("o_lora_rank"),
    )
    return {
        0: window,
        4: _indexed(c, window._replace(compression=4)),
        128: window._replace(compression=128),
    }


def _read_parametric(c: Config) -> ParsedConfig:
    """Read a mixture of experts whose total weights are given, and find its expert width.

    The total is linear in the width w: total(w) = total(0) + w (total(1) - total(0)). The width
    that gives the stated total is rounded to a multiple of `WIDTH_STEP`.
    """
    attention = latent_attention(c) if c.has("kv_lora_rank") else grouped_query(c)
    layers = c.layers()
    hidden = c.integer("hidden_size")
    experts = c.integer("n_routed_experts", most=10**6)
    active = c.integer("num_experts_per_tok", most=experts)
    shared = c.count("n_shared_experts", 1000)

    def layout(width: int) -> ParsedConfig:
        feed_forward = FeedForward(width, 3, experts, active, shared * width)
        return c.layout((LayerBlock(layers, attention, feed_forward, other_weights=two_norms(c)),))

    def total_weights(width: int) -> int:
        config = layout(width)
        embeddings = config.hidden * config.vocabulary * (1 if config.tied else 2)
        block_weights = sum(block.layers * block.parameters(hidden) for block in config.blocks)
        return embeddings + config.other_weights + block_weights

    stated_total = c.integer("total_parameters", most=10**18)
    without_experts = total_weights(0)
    weights_per_width = total_weights(1) - without_experts
    width = round((stated_total - without_experts) / weights_per_width / WIDTH_STEP) * WIDTH_STEP
    if width < WIDTH_STEP:
        raise c.wrong(
            "total_parameters", f"more than the {without_experts} weights beside the experts"
        )
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
