"""Readers of the config.json of dense models and of mixtures of experts with grouped-query attention, by family."""

from __future__ import annotations

from tco.models.attention import Attention
from tco.models.config import Config, Layout
from tco.models.layers import Block, FeedForward, gathered
from tco.models.parts import dense, dense_then_routed, grouped_query, routed, two_norms


def read_llama(c: Config) -> Layout:
    """Llama and Mistral: dense, gated, grouped-query; Mistral's first release with one window for all layers."""
    attention = grouped_query(c)._replace(window=c.count("sliding_window", 10**9))
    return c.layout((Block(c.layers(), attention, dense(c), others=two_norms(c)),))


def read_qwen2(c: Config) -> Layout:
    """Qwen 2 and 2.5: as Llama, with biases on queries, keys and values."""
    c.without("use_sliding_window")
    attention = grouped_query(c, bias=True)._replace(out_bias=False)
    return c.layout((Block(c.layers(), attention, dense(c), others=two_norms(c)),))


def read_qwen3(c: Config) -> Layout:
    """Qwen 3: queries and keys have a norm."""
    c.without("use_sliding_window")
    return c.layout((Block(c.layers(), grouped_query(c, head_norm=True), dense(c), others=two_norms(c)),))


def read_qwen3_moe(c: Config) -> Layout:
    """Qwen 3 with experts on every layer."""
    c.without("use_sliding_window", "mlp_only_layers")
    c.whole("decoder_sparse_step", 1, most=1)
    part = routed(c, "moe_intermediate_size", "num_experts")
    return c.layout((Block(c.layers(), grouped_query(c, head_norm=True), part, others=two_norms(c)),))


def read_gemma2(c: Config) -> Layout:
    """Gemma 2: windows on every other layer, four norms a layer, one embedding."""
    far, part, norms = grouped_query(c), dense(c), 2 * two_norms(c)
    near = far._replace(window=c.whole("sliding_window", 4096))
    return c.layout(gathered(Block(1, far if index % 2 else near, part, others=norms) for index in range(c.layers())), tied=True)


def read_gpt2(c: Config) -> Layout:
    """GPT-2, GPT-3 and Megatron's GPT: learned positions, biases everywhere, norms with bias, no gate."""
    hidden, heads = c.whole("n_embd"), c.whole("n_head")
    if hidden % heads:
        raise c.wrong("n_head", f"a divisor of n_embd {hidden}")
    head, context = hidden // heads, c.whole("n_positions")
    attention = Attention(heads, heads, head, head, in_bias=True, out_bias=True)
    block = Block(c.layers("n_layer"), attention, FeedForward(c.whole("n_inner", 4 * hidden), 2, bias=True), others=4 * hidden)
    return Layout(hidden, c.whole("vocab_size"), context, (block,), c.flag("tie_word_embeddings", True), 2 * hidden, context)


def read_mixtral(c: Config) -> Layout:
    """Mixtral: every feed-forward is a mixture of wide experts."""
    part = routed(c, "intermediate_size", "num_local_experts")
    return c.layout((Block(c.layers(), grouped_query(c), part, others=two_norms(c)),))


def read_dbrx(c: Config) -> Layout:
    """DBRX: as Mixtral, under other keys."""
    hidden, heads, inner = c.whole("d_model"), c.whole("n_heads"), c.section("ffn_config")
    head, experts = hidden // heads, inner.whole("moe_num_experts")
    attention = Attention(heads, c.section("attn_config").whole("kv_n_heads", most=heads), head, head)
    part = FeedForward(inner.whole("ffn_hidden_size"), 3, experts, inner.whole("moe_top_k", most=experts))
    block = Block(c.layers("n_layers"), attention, part, others=2 * hidden)
    return Layout(hidden, c.whole("vocab_size"), c.whole("max_seq_len"), (block,), c.flag("tie_word_embeddings"), hidden)


def read_gpt_oss(c: Config) -> Layout:
    """gpt-oss: windows on every other layer, sinks, biases on projections, router and experts."""
    part = routed(c, "intermediate_size", "num_local_experts")._replace(router_bias=True, bias=True)
    full, layers = grouped_query(c, bias=True)._replace(sinks=True), c.layers()
    attentions = {"sliding_attention": full._replace(window=c.whole("sliding_window")), "full_attention": full}
    default = ["full_attention" if index % 2 else "sliding_attention" for index in range(layers)]
    kinds = c.kinds("layer_types", layers, tuple(attentions), default)
    return c.layout(gathered(Block(1, attentions[kind], part, others=two_norms(c)) for kind in kinds))


def read_glm4(c: Config) -> Layout:
    """GLM-4.5 and 4.6: first layers dense, then fine-grained experts with a shared one."""
    attention = grouped_query(c, head_norm=c.flag("use_qk_norm"))._replace(out_bias=False)
    return c.layout(dense_then_routed(c, attention), prediction="num_nextn_predict_layers")


def read_minimax(c: Config) -> Layout:
    """MiniMax M2 and M2.5: queries and keys have a norm over all heads, experts no shared one."""
    plain = grouped_query(c)
    attention = plain._replace(qk_norm=(plain.heads + plain.kv_heads) * plain.qk_dim)
    part = routed(c, "intermediate_size", "num_local_experts")._replace(router_bias=True)
    return c.layout((Block(c.layers(), attention, part, others=two_norms(c)),))


def read_llama4(c: Config) -> Layout:
    """Llama 4: three of four layers see their own chunk only; every layer or every other one has experts and a shared one."""
    step, every, full = c.whole("interleave_moe_layer_step", 1), c.whole("no_rope_layer_interval", 4), grouped_query(c)
    chunked = full._replace(window=c.whole("attention_chunk_size"), chunked=True)
    part, wide = routed(c, "intermediate_size", "num_local_experts", c.whole("intermediate_size")), dense(c, "intermediate_size_mlp")
    kinds = ((chunked if at % every else full, wide if at % step else part) for at in range(1, c.layers() + 1))
    return c.layout(gathered(Block(1, attention, chosen, others=two_norms(c)) for attention, chosen in kinds))
