"""Readers of the config.json of dense models after GPT: norms with bias, most with biases on products, few with a gate."""

from __future__ import annotations

from tco.models.attention import Attention
from tco.models.config import Config, Layout
from tco.models.layers import Block, FeedForward
from tco.models.parts import all_heads_norm, grouped_query, layer_norms, multi_head


def laid_out(c: Config, hidden: int, layers: int, attention: Attention, part: FeedForward, norms: int, *, tied: bool, ends: int) -> Layout:
    """Return the layout of equal layers with so many norms each; `ends` are the norms and biases outside the layers."""
    block = Block(layers, attention, part, others=layer_norms(hidden, norms))
    context = c.whole(c.either("max_position_embeddings", "n_positions", "seq_length", "max_seq_len"), 2048)
    return Layout(hidden, c.whole("vocab_size"), context, (block,), c.flag("tie_word_embeddings", tied), ends)


def read_falcon(c: Config) -> Layout:
    """Falcon: attention and feed-forward side by side behind one norm or two, one head of keys and values or groups of them."""
    hidden, heads, bias = c.whole("hidden_size"), c.whole("num_attention_heads"), c.flag("bias")
    grouped, parallel = c.flag("new_decoder_architecture"), c.flag("parallel_attn", True)
    groups = c.whole("num_kv_heads", heads, most=heads) if grouped else 1 if c.flag("multi_query", True) else heads
    attention = multi_head(c, hidden, heads, groups, bias, bias)
    norms = c.whole("num_ln_in_parallel_attn", 2, most=2) if grouped else 1 if parallel else 2
    part = FeedForward(c.whole("ffn_hidden_size", 4 * hidden), 2, bias=bias)
    return laid_out(c, hidden, c.layers(), attention, part, norms, tied=True, ends=layer_norms(hidden, 1))


def read_gpt_neox(c: Config) -> Layout:
    """GPT-NeoX and Pythia: attention and feed-forward side by side, each behind its norm, biases everywhere."""
    hidden, bias = c.whole("hidden_size"), c.flag("attention_bias", True)
    attention = multi_head(c, hidden, c.whole("num_attention_heads"), in_bias=bias, out_bias=bias)
    part = FeedForward(c.whole("intermediate_size"), 2, bias=True)
    return laid_out(c, hidden, c.layers(), attention, part, 2, tied=False, ends=layer_norms(hidden, 1))


def read_gptj(c: Config) -> Layout:
    """GPT-J: attention and feed-forward side by side behind one norm, biases in the feed-forward part and on the logits."""
    hidden = c.whole("n_embd")
    part = FeedForward(c.whole("n_inner", 4 * hidden), 2, bias=True)
    ends = layer_norms(hidden, 1) + c.whole("vocab_size")
    return laid_out(c, hidden, c.layers("n_layer"), multi_head(c, hidden, c.whole("n_head")), part, 1, tied=False, ends=ends)


def read_opt(c: Config) -> Layout:
    """OPT: learned positions, two of them spare, and biases everywhere."""
    hidden, bias = c.whole("hidden_size"), c.flag("enable_bias", True)
    if c.whole("word_embed_proj_dim", hidden) != hidden or not c.flag("do_layer_norm_before", True):
        raise c.misfit("word_embed_proj_dim unlike hidden_size, or do_layer_norm_before false: OPT's models with it are not read")
    attention = multi_head(c, hidden, c.whole("num_attention_heads"), in_bias=bias, out_bias=bias)
    part = FeedForward(c.whole("ffn_dim"), 2, bias=bias)
    made = laid_out(c, hidden, c.layers(), attention, part, 2, tied=True, ends=layer_norms(hidden, 1))
    return made._replace(positions=made.context + 2)


def read_bloom(c: Config) -> Layout:
    """BLOOM: biases everywhere, no learned positions, a norm behind the embedding."""
    hidden, heads = c.whole(c.either("hidden_size", "n_embed")), c.whole(c.either("n_head", "num_attention_heads"))
    attention = multi_head(c, hidden, heads, in_bias=True, out_bias=True)
    layers = c.layers(c.either("n_layer", "num_hidden_layers"))
    return laid_out(c, hidden, layers, attention, FeedForward(4 * hidden, 2, bias=True), 2, tied=True, ends=layer_norms(hidden, 2))


def read_gpt_bigcode(c: Config) -> Layout:
    """StarCoder and SantaCoder: GPT-2 with one head of keys and values."""
    hidden, heads = c.whole("n_embd"), c.whole("n_head")
    attention = multi_head(c, hidden, heads, 1 if c.flag("multi_query", True) else heads, True, True)
    part = FeedForward(c.whole("n_inner", 4 * hidden), 2, bias=True)
    made = laid_out(c, hidden, c.layers("n_layer"), attention, part, 2, tied=True, ends=layer_norms(hidden, 1))
    return made._replace(positions=made.context)


def read_starcoder2(c: Config) -> Layout:
    """StarCoder 2: grouped-query attention with biases everywhere; its window spans the layers."""
    hidden, bias = c.whole("hidden_size"), c.flag("use_bias", True)
    attention = grouped_query(c)._replace(in_bias=bias, out_bias=bias, window=c.count("sliding_window", 10**9))
    part = FeedForward(c.whole("intermediate_size"), 2, bias=bias)
    return laid_out(c, hidden, c.layers(), attention, part, 2, tied=True, ends=layer_norms(hidden, 1))


def read_mpt(c: Config) -> Layout:
    """MPT: no learned positions and one embedding; without biases its norms have scales alone."""
    hidden, heads, bias = c.whole("d_model"), c.whole("n_heads"), not c.flag("no_bias", True)
    inner = c.section("attn_config") if c.has("attn_config") else Config({}, c.where)
    inner.without("qk_ln")
    attention = multi_head(c, hidden, heads, inner.whole("kv_n_heads", heads, most=heads), bias, bias)
    part = FeedForward(c.whole("expansion_ratio", 4) * hidden, 2, bias=bias)
    scales = hidden * (2 if bias else 1)
    block = Block(c.layers("n_layers"), attention, part, others=2 * scales)
    context = c.whole("max_seq_len", 2048)
    return Layout(
        hidden, c.whole("vocab_size"), context, (block,), c.flag("tie_word_embeddings", True), scales, 0 if inner.flag("alibi") else context
    )


def read_phi(c: Config) -> Layout:
    """Phi-1, 1.5 and 2: attention and feed-forward side by side behind one norm, biases everywhere and on the logits."""
    c.without("qk_layernorm")
    hidden = c.whole("hidden_size")
    attention = grouped_query(c)._replace(in_bias=True, out_bias=True)
    part, ends = FeedForward(c.whole("intermediate_size"), 2, bias=True), layer_norms(hidden, 1) + c.whole("vocab_size")
    return laid_out(c, hidden, c.layers(), attention, part, 1, tied=False, ends=ends)


def read_nemotron(c: Config) -> Layout:
    """Nemotron-4 and Minitron: squared ReLU without a gate, grouped-query attention."""
    hidden = c.whole("hidden_size")
    part = FeedForward(c.whole("intermediate_size"), 2, bias=c.flag("mlp_bias"))
    return laid_out(c, hidden, c.layers(), grouped_query(c), part, 2, tied=False, ends=layer_norms(hidden, 1))


def read_stablelm(c: Config) -> Layout:
    """StableLM: gated, biases on queries, keys and values at most; with `use_parallel_residual` one norm a layer."""
    hidden, attention = c.whole("hidden_size"), grouped_query(c)._replace(in_bias=c.flag("use_qkv_bias"))
    attention = all_heads_norm(attention) if c.flag("qk_layernorm") else attention
    norms = 1 if c.flag("use_parallel_residual") else 2
    part = FeedForward(c.whole("intermediate_size"), 3)
    return laid_out(c, hidden, c.layers(), attention, part, norms, tied=False, ends=layer_norms(hidden, 1))
