"""Readers of config.json by family: a table of expressions, and functions for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

from tco.models.config import Config, ParsedConfig
from tco.models.layers import Attention, FeedForward, LayerBlock, merge_equal_layers
from tco.models.readers import latent_attention, state_space
from tco.models.readers.shared import (
    all_heads_norm,
    dense,
    dense_then_routed,
    expert_blocks,
    expert_layers,
    expert_parts,
    gated_experts,
    grouped_query,
    layer_norms,
    multi_head,
    one_in,
    routed,
    two_norms,
)
from tco.models.spelling import UNREAD_TYPES

# what a config of Gemma 3 leaves out
GEMMA3 = {
    "head_dim": 256,
    "vocab_size": 262_208,
    "sliding_window": 4096,
    "max_position_embeddings": 131_072,
}
GEMMA3_HEADS = {"num_attention_heads": 8, "num_key_value_heads": 4}  # both or none


def even(
    c: Config,
    attention: Attention,
    part: FeedForward,
    norms: int | None = None,
    tied: bool = False,
) -> ParsedConfig:
    """Return equal layers, with two norms of scales unless `norms` gives their weights."""
    weights = two_norms(c) if norms is None else norms
    return c.layout((LayerBlock(c.layers(), attention, part, other_weights=weights),), tied=tied)


def uneven(
    c: Config,
    attentions: Iterable[Attention],
    parts: Iterable[FeedForward],
    norms: int,
    tied: bool = False,
) -> ParsedConfig:
    """Return layers whose attention or feed-forward part differs."""
    layers = zip(attentions, parts, strict=False)  # the part of all layers repeats without end
    return c.layout(
        merge_equal_layers(
            LayerBlock(1, attention, part, other_weights=norms) for attention, part in layers
        ),
        tied=tied,
    )


def _wide_window(c: Config) -> Attention:
    return grouped_query(c)._replace(window=c.count("sliding_window", 10**9))


def after_gpt(
    c: Config,
    attention: Attention,
    part: FeedForward,
    norms: int = 2,
    *,
    tied: bool,
    logits_bias: bool = False,
) -> ParsedConfig:
    """Return equal layers with `norms` norms and biases each, and a norm after the last."""
    hidden = c.integer("hidden_size")
    parsed_config = even(c, attention, part, layer_norms(hidden, norms), tied)
    return parsed_config._replace(
        other_weights=layer_norms(hidden, 1) + (parsed_config.vocabulary if logits_bias else 0)
    )


def _ungated_feed_forward(
    c: Config, width_key: str, bias: bool = True, width: int | None = None
) -> FeedForward:
    return FeedForward(c.integer(width_key, width), 2, bias=bias)


def _gpt2_feed_forward(c: Config) -> FeedForward:
    return _ungated_feed_forward(c, "n_inner", width=4 * c.integer("hidden_size"))


def _biased(attention: Attention, bias: bool = True) -> Attention:
    return attention._replace(in_bias=bias, out_bias=bias)


def wide_experts(c: Config, shared: int = 0) -> FeedForward:
    """Return experts as wide as the dense part of other models, as Mixtral spells them."""
    return routed(c, shared, "intermediate_size")


def _with_positions(parsed_config: ParsedConfig, spare: int = 0) -> ParsedConfig:
    return parsed_config._replace(positions=parsed_config.context + spare)


def _read_gemma3(c: Config) -> ParsedConfig:
    """Read Gemma 3: windows on five of six layers, query and key norms, tied embeddings.

    Each layer has four more norms.
    """
    heads = {} if any(c.has(head_key) for head_key in GEMMA3_HEADS) else GEMMA3_HEADS
    c = c.with_defaults(GEMMA3 | heads)
    pattern = c.integer(c.either("sliding_window_pattern", "_sliding_window_pattern"), 6)
    attentions = one_in(c, grouped_query(c, head_norm=True), pattern)
    return uneven(c, attentions, repeat(dense(c)), 2 * two_norms(c), tied=True)


def _read_gemma4(c: Config) -> ParsedConfig:
    """Read Gemma 4: windows, and wider heads whose values are keys on every sixth layer.

    A mixture has a dense part beside the experts. Layers may have embeddings of their own, and the
    last ones the keys and values of earlier layers.
    """
    layers = c.layers()
    near = grouped_query(c, head_norm=True)
    width = c.integer("global_head_dim", 512)
    groups = c.integer("num_global_key_value_heads", near.kv_heads, most=near.heads)
    far = near._replace(
        kv_heads=groups,
        qk_dim=width,
        v_dim=width,
        qk_norm=2 * width,
        value_of_key=c.flag("attention_k_eq_v"),
    )
    kinds = {
        "sliding_attention": near._replace(window=c.integer("sliding_window")),
        "full_attention": far,
    }
    part, norms = dense(c), 4
    # a scale for each expert, three more norms and one of the router's inputs
    if c.flag("enable_moe_block"):
        part = routed(c, c.integer("intermediate_size"))._replace(router_bias=True)
        norms = 8
    order = c.kinds("layer_types", layers, tuple(kinds))
    first_shared = layers - c.count("num_kv_shared_layers", layers - 1)
    wide = part._replace(width=2 * part.width) if c.flag("use_double_wide_mlp") else part
    attentions = [kinds[kind] for kind in order[:first_shared]]
    attentions += [
        kinds[kind]._replace(shares_cache=True, qk_norm=kinds[kind].qk_dim)
        for kind in order[first_shared:]
    ]
    parts = [part] * first_shared + [wide] * (layers - first_shared)
    parsed = uneven(c, attentions, parts, norms * c.integer("hidden_size"), tied=True)
    return _with_layer_embeddings(c, parsed)


def _with_layer_embeddings(c: Config, parsed: ParsedConfig) -> ParsedConfig:
    """Return the layers with an embedding of their own each, where the keys state one."""
    width = c.count("hidden_size_per_layer_input", 10**6)
    if not width:
        c.mark_read("vocab_size_per_layer_input")
        return parsed
    norm = c.integer("hidden_size")
    blocks = tuple(
        block._replace(input_width=width, other_weights=block.other_weights + norm)
        for block in parsed.blocks
    )
    rows = c.integer("vocab_size_per_layer_input", c.integer("vocab_size"))
    return parsed._replace(
        blocks=blocks, lookups=rows * width * c.layers(), other_weights=parsed.other_weights + width
    )


def _read_gemma2(c: Config) -> ParsedConfig:
    """Windows on every other layer, four norms a layer, one embedding."""
    c = c.with_defaults({"sliding_window": 4096})
    attentions = one_in(c, grouped_query(c), 2)
    return uneven(c, attentions, repeat(dense(c)), 2 * two_norms(c), tied=True)


def _read_llama4(c: Config) -> ParsedConfig:
    """Read Llama 4: chunked attention on three of four layers, and experts with a shared one.

    Every layer or every other one has experts.
    """
    layers = c.layers()
    rope_interval = c.integer("no_rope_layer_interval", 4)
    full = grouped_query(c)
    attentions = {
        "chunked_attention": full._replace(window=c.integer("attention_chunk_size"), chunked=True),
        "full_attention": full,
    }
    default = [
        "chunked_attention" if (index + 1) % rope_interval else "full_attention"
        for index in range(layers)
    ]
    order = c.kinds("layer_types", layers, tuple(attentions), default)
    part = wide_experts(c, c.integer("intermediate_size"))
    parts = expert_parts(c, part, "intermediate_size_mlp")
    return uneven(c, (attentions[kind] for kind in order), parts, two_norms(c))


def _read_bloom(c: Config) -> ParsedConfig:
    """Biases everywhere, no learned positions, a norm behind the embedding."""
    part = FeedForward(4 * c.integer("hidden_size"), 2, bias=True)
    parsed_config = after_gpt(c, multi_head(c, bias=True), part, tied=True)
    return parsed_config._replace(other_weights=2 * parsed_config.other_weights)


def _read_gpt_oss(c: Config) -> ParsedConfig:
    """Windows on every other layer, sinks, biases on projections, router and experts."""
    part = wide_experts(c)._replace(router_bias=True, bias=True)
    attentions = one_in(c, grouped_query(c, bias=True)._replace(sinks=True), 2)
    return uneven(c, attentions, repeat(part), two_norms(c))


def _with_sparse_section(c: Config) -> Config:
    """Return a config of MiniMax M3 with the section of its first release."""
    words = ("full_attention", "minimax_m3_sparse")
    kinds = c.kinds("layer_types", c.layers(), words)
    section = {
        "sparse_topk_blocks": c.value("index_topk_blocks"),
        "sparse_block_size": c.value("index_block_size"),
        "sparse_num_index_heads": c.value("index_n_heads"),
        "sparse_index_dim": c.value("index_head_dim"),
        "sparse_attention_freq": [int(kind != "full_attention") for kind in kinds],
    }
    return c.replaced({**c.content, "sparse_attention_config": section})


def _read_minimax_m3(c: Config) -> ParsedConfig:
    """Read MiniMax M3: first layers dense, others with experts and indexed blocks of keys."""
    layers, attention = c.layers(), grouped_query(c, head_norm=c.flag("use_qk_norm", True))
    if c.has("layer_types") and not c.has("sparse_attention_config"):
        c = _with_sparse_section(c)
    sparse = c.section("sparse_attention_config")
    chosen = attention._replace(
        top_tokens=sparse.integer("sparse_topk_blocks") * sparse.integer("sparse_block_size"),
        index_heads=sparse.integer("sparse_num_index_heads"),
        index_dim=sparse.integer("sparse_index_dim"),
        index_weighted=False,
    )
    attentions = [
        chosen if is_sparse else attention
        for is_sparse in sparse.kinds("sparse_attention_freq", layers, (0, 1))
    ]
    shared = c.count("n_shared_experts", 1000, 1) * c.integer("shared_intermediate_size")
    part = wide_experts(c, shared)._replace(router_bias=c.flag("use_routing_bias"))
    return uneven(c, attentions, expert_parts(c, part, "dense_intermediate_size"), two_norms(c))


def _read_dbrx(c: Config) -> ParsedConfig:
    """As Mixtral, under other keys."""
    hidden, heads = c.integer("hidden_size"), c.integer("num_attention_heads")
    inner, head = c.section("ffn_config"), hidden // heads
    experts = inner.integer("moe_num_experts")
    groups = c.section("attn_config").integer("kv_n_heads", most=heads)
    part = FeedForward(
        inner.integer("ffn_hidden_size"), 3, experts, inner.integer("moe_top_k", most=experts)
    )
    return even(c, Attention(heads, groups, head, head), part)


def _read_chatglm(c: Config) -> ParsedConfig:
    """Read ChatGLM 2 and 3 and GLM-4-9B: grouped queries, with biases on their projections."""
    c.refuse_keys("add_bias_linear")
    hidden, heads = c.integer("hidden_size"), c.integer("num_attention_heads")
    if c.integer("head_dim", hidden // heads) * heads != hidden:
        raise c.wrong(
            "head_dim", f"{hidden // heads}, so that {heads} heads are as wide as the model"
        )
    groups = (
        c.integer("num_key_value_heads", most=heads) if c.flag("multi_query_attention") else heads
    )
    attention = multi_head(c, groups=groups, bias=c.flag("add_qkv_bias"))._replace(out_bias=False)
    parsed_config = even(c, attention, FeedForward(c.integer("ffn_hidden_size"), 3))
    return parsed_config._replace(other_weights=hidden if c.flag("post_layer_norm", True) else 0)


def _read_falcon(c: Config) -> ParsedConfig:
    """Read Falcon: parallel attention and feed-forward part, after one norm or two.

    It has one head of keys and values, or groups of them.
    """
    c.mark_read("num_kv_heads")  # of no effect where all queries share one
    bias = c.flag("bias")
    grouped = c.flag("new_decoder_architecture")
    parallel = c.flag("parallel_attn", True)
    heads = c.integer("num_attention_heads")
    groups = (
        c.integer("num_kv_heads", heads, most=heads)
        if grouped
        else int(c.flag("multi_query", True))
    )
    norms = c.integer("num_ln_in_parallel_attn", 2, most=2) if grouped else 1 if parallel else 2
    part = _ungated_feed_forward(c, "ffn_hidden_size", bias, 4 * c.integer("hidden_size"))
    return after_gpt(c, multi_head(c, groups=groups, bias=bias), part, norms, tied=True)


def _read_opt(c: Config) -> ParsedConfig:
    """Learned positions, two of them spare, and biases everywhere."""
    hidden, bias = c.integer("hidden_size"), c.flag("enable_bias", True)
    if c.integer("word_embed_proj_dim", hidden) != hidden or not c.flag(
        "do_layer_norm_before", True
    ):
        raise c.misfit(
            "word_embed_proj_dim unlike hidden_size, or do_layer_norm_before false: OPT's models "
            "with it are not read"
        )
    return _with_positions(
        after_gpt(
            c, multi_head(c, bias=bias), _ungated_feed_forward(c, "ffn_dim", bias), tied=True
        ),
        spare=2,
    )


def _read_mpt(c: Config) -> ParsedConfig:
    """No learned positions and one embedding; without biases its norms have scales alone."""
    hidden, heads = c.integer("hidden_size"), c.integer("num_attention_heads")
    inner = c.section("attn_config") if c.has("attn_config") else Config({}, c.where)
    groups = inner.refuse_keys("qk_ln").integer("kv_n_heads", heads, most=heads)
    bias = not c.flag("no_bias", True)
    part = FeedForward(c.integer("expansion_ratio", 4) * hidden, 2, bias=bias)
    scales = hidden * (2 if bias else 1)
    parsed_config = even(c, multi_head(c, groups, bias), part, 2 * scales, tied=True)
    parsed_config = parsed_config._replace(other_weights=scales)
    return parsed_config if inner.flag("alibi") else _with_positions(parsed_config)


def _read_arctic(c: Config) -> ParsedConfig:
    """Read Arctic: a dense part as wide as the model beside the experts, as a shared expert."""
    dense_width = c.integer("hidden_size") if c.flag("parallel_attn_mlp_res") else 0
    if not all(expert_layers(c)):
        raise c.wrong("moe_layer_frequency", "1: layers without experts are not read")
    return even(c, grouped_query(c), wide_experts(c, dense_width), two_norms(c) + dense_width)


def _read_deepseek1(c: Config) -> ParsedConfig:
    """The first layer dense, then fine-grained experts with shared ones, attention as Llama's."""
    blocks = dense_then_routed(c, grouped_query(c))
    return c.layout(
        tuple(
            block._replace(feed_forward=block.feed_forward._replace(router_bias=False))
            for block in blocks
        )
    )


def _read_ernie_moe(c: Config) -> ParsedConfig:
    """The first layers dense, shared experts, a bias that balances the experts, one embedding."""
    c = c.refuse_keys("use_bias").with_defaults({"moe_layer_start_index": 1})
    part = routed(c, c.count("n_shared_experts", 1000) * c.integer("moe_intermediate_size"))
    part = part._replace(router_bias=c.flag("moe_use_aux_free", True))
    return c.layout(expert_blocks(c, grouped_query(c), part), tied=True)


def _read_longcat(c: Config) -> ParsedConfig:
    """LongCat Flash: two attentions, two dense parts and experts, some idle, in a layer."""
    layers, number = c.layers(), c.integer("n_routed_experts", most=10**6)
    idle, norms = c.count("zero_expert_num", 10**6), two_norms(c)
    chosen = c.integer("num_experts_per_tok", most=number + idle)
    active = max(round(chosen * number / (number + idle)), 1)  # the mean over tokens
    part = FeedForward(c.integer("moe_intermediate_size"), 3, number, active)
    pair = LayerBlock(
        2 * layers,
        latent_attention.latent_attention(c),
        dense(c, "ffn_hidden_size"),
        other_weights=norms,
    )
    # the router scores idle experts too
    experts = LayerBlock(layers, feed_forward=part, other_weights=idle * c.integer("hidden_size"))
    parsed_config = c.layout((pair, experts))
    return parsed_config._replace(prediction_block=pair._replace(layers=1))


def _read_hunyuan(c: Config) -> ParsedConfig:
    """Read Hunyuan: experts with a shared one on every layer, and figures listed by layer.

    Queries and keys have norms.
    """
    layers = c.refuse_keys("use_cla", "moe_layer_num_skipped", "mlp_bias").layers()
    same = dict(c.content)
    for expert_key in ("moe_topk", "num_shared_expert", "moe_intermediate_size"):
        figure = c.value(expert_key)
        if isinstance(figure, list):
            if len(figure) < layers or len(set(map(str, figure[:layers]))) > 1:
                raise c.wrong(expert_key, f"one number for each of {layers} layers, all alike")
            same[expert_key] = figure[0]
    layer_config = c.replaced(same)
    shared = layer_config.count("num_shared_expert", 1000) * c.integer("intermediate_size")
    width_key = layer_config.either("moe_intermediate_size", "intermediate_size")
    part = routed(layer_config, shared, width_key)
    return even(c, grouped_query(c, head_norm=c.flag("use_qk_norm")), part)


def _without_windows(c: Config) -> Config:
    """Return the config of a model without windows; one with them is refused."""
    c.refuse_keys("use_sliding_window").kinds("layer_types", c.layers(), ("full_attention",), [])
    return c


def _read_qwen_moe(c: Config, attention: Attention, part: FeedForward) -> ParsedConfig:
    _without_windows(c)
    return c.layout(expert_blocks(c, attention, part))


READERS: dict[str, Callable[[Config], ParsedConfig]] = {  # by model_type
    **latent_attention.READERS,
    **state_space.READERS,
    # dense, after Llama: a gate, norms of scales alone, grouped-query attention
    **dict.fromkeys(
        ("llama", "mistral", "mistral3", "ministral3", "phi3"),
        lambda c: even(c, _wide_window(c), dense(c)),
    ),
    "baichuan": lambda c: even(c, multi_head(c), dense(c))._replace(
        context=c.integer("max_position_embeddings", 4096)
    ),
    "chatglm": _read_chatglm,
    "cohere": lambda c: even(
        c,
        all_heads_norm(grouped_query(c), c.flag("use_qk_norm")),
        dense(c),
        c.integer("hidden_size"),
        tied=True,
    ),
    "cohere2": lambda c: uneven(
        c,
        one_in(c, grouped_query(c), c.integer("sliding_window_pattern", 4)),
        repeat(dense(c)),
        c.integer("hidden_size"),
        tied=True,
    ),
    "ernie4_5": lambda c: even(c.refuse_keys("use_bias"), grouped_query(c), dense(c), tied=True),
    "exaone": lambda c: even(c, grouped_query(c), dense(c)),
    "gemma": lambda c: even(c, grouped_query(c), dense(c), tied=True),
    "gemma2": _read_gemma2,
    **dict.fromkeys(("gemma3", "gemma3_text"), _read_gemma3),
    **dict.fromkeys(("gemma4", "gemma4_text"), _read_gemma4),
    "olmo": lambda c: even(c, grouped_query(c), dense(c), norms=0)._replace(other_weights=0),
    "olmo2": lambda c: even(c, all_heads_norm(grouped_query(c)), dense(c)),
    **dict.fromkeys(
        ("qwen2", "qwen2_vl", "qwen2_5_vl"),  # of those that see, the language model
        lambda c: even(
            _without_windows(c),
            grouped_query(c, bias=True)._replace(out_bias=False),
            dense(c),
        ),
    ),
    "qwen3": lambda c: even(_without_windows(c), grouped_query(c, head_norm=True), dense(c)),
    "smollm3": lambda c: even(_without_windows(c), grouped_query(c), dense(c), tied=True),
    # dense, after GPT: norms with bias, most with biases on products, few with a gate
    "bloom": _read_bloom,
    "falcon": _read_falcon,
    "gpt2": lambda c: _with_positions(
        after_gpt(c, multi_head(c, bias=True), _gpt2_feed_forward(c), tied=True)._replace(
            context=c.integer("max_position_embeddings")
        )
    ),
    "gpt_bigcode": lambda c: _with_positions(
        after_gpt(
            c.mark_read("num_key_value_heads"),
            multi_head(c, int(c.flag("multi_query", True)), bias=True),
            _gpt2_feed_forward(c),
            tied=True,
        )
    ),
    "gpt_neox": lambda c: after_gpt(
        c,
        multi_head(c, bias=c.flag("attention_bias", True)),
        _ungated_feed_forward(c, "intermediate_size"),
        tied=False,
    ),
    "gptj": lambda c: after_gpt(
        c, multi_head(c), _gpt2_feed_forward(c), norms=1, tied=False, logits_bias=True
    ),
    "mpt": _read_mpt,
    "nemotron": lambda c: after_gpt(
        c,
        grouped_query(c),
        _ungated_feed_forward(c, "intermediate_size", c.flag("mlp_bias")),
        tied=False,
    ),
    "opt": _read_opt,
    "phi": lambda c: after_gpt(
        c.refuse_keys("qk_layernorm"),
        _biased(grouped_query(c)),
        _ungated_feed_forward(c, "intermediate_size"),
        norms=1,
        tied=False,
        logits_bias=True,
    ),
    "stablelm": lambda c: after_gpt(
        c,
        all_heads_norm(
            grouped_query(c)._replace(in_bias=c.flag("use_qkv_bias")), c.flag("qk_layernorm")
        ),
        FeedForward(c.integer("intermediate_size"), 3),
        1 if c.flag("use_parallel_residual") else 2,
        tied=False,
    ),
    "starcoder2": lambda c: after_gpt(
        c,
        _biased(_wide_window(c), c.flag("use_bias", True)),
        _ungated_feed_forward(c, "intermediate_size", c.flag("use_bias", True)),
        tied=True,
    ),
    # mixtures of experts
    "arctic": _read_arctic,
    "dbrx": _read_dbrx,
    "deepseek": _read_deepseek1,
    "ernie4_5_moe": _read_ernie_moe,
    **dict.fromkeys(
        ("glm4_moe", "solar_open"),
        lambda c: c.layout(
            dense_then_routed(
                c, grouped_query(c, head_norm=c.flag("use_qk_norm"))._replace(out_bias=False)
            ),
        ),
    ),
    "gpt_oss": _read_gpt_oss,
    "longcat_flash": _read_longcat,
    **dict.fromkeys(("hunyuan", "hunyuan_v1_moe"), _read_hunyuan),
    **dict.fromkeys(("llama4", "llama4_text"), _read_llama4),
    "minimax_m3": _read_minimax_m3,
    "minimax_m2": lambda c: even(
        c, all_heads_norm(grouped_query(c)), wide_experts(c)._replace(router_bias=True)
    ),
    **dict.fromkeys(
        ("granitemoe", "mixtral"), lambda c: even(c, grouped_query(c), wide_experts(c))
    ),
    "olmoe": lambda c: even(c, all_heads_norm(grouped_query(c)), wide_experts(c)),
    "phimoe": lambda c: after_gpt(
        c, grouped_query(c), wide_experts(c), tied=False, logits_bias=c.flag("lm_head_bias")
    ),
    "qwen2_moe": lambda c: _read_qwen_moe(
        c,
        grouped_query(c, bias=c.flag("qkv_bias", True))._replace(out_bias=False),
        gated_experts(c),
    ),
    "qwen3_moe": lambda c: _read_qwen_moe(c, grouped_query(c, head_norm=True), routed(c)),
}

# model types that are not read, and why
REASONS = {
    model_type: str(unread["reason"])
    for unread in UNREAD_TYPES.values()
    for model_type in unread["model_types"]
}


def refusal(kind: str, config: Config) -> str:
    """Return the reason for which a model type is not read, or an empty text.

    Args:
        kind: The model type.
        config: The config, which may say that the model is no decoder.

    """
    if kind in REASONS:
        return REASONS[kind]
    if config.value("is_encoder_decoder") is True:
        return str(UNREAD_TYPES["encoder_and_decoder"]["reason"])
    architectures = config.value("architectures")
    masked = isinstance(architectures, list) and any(
        str(architecture_name).endswith("ForMaskedLM") for architecture_name in architectures
    )
    return str(UNREAD_TYPES["encoder"]["reason"]) if masked else ""
