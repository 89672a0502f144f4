"""Readers of the config.json of dense models after Llama: a gate, norms of scales alone, grouped-query attention."""

from __future__ import annotations

from tco.models.config import Config, Layout
from tco.models.layers import Block, FeedForward, gathered
from tco.models.parts import all_heads_norm, dense, grouped_query, multi_head, one_in, two_norms

GEMMA3 = {  # what a config of Gemma 3 leaves out
    **{"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208},
    **{"sliding_window": 4096, "max_position_embeddings": 131_072},
}


def read_gemma(c: Config) -> Layout:
    """Gemma: wide heads, one embedding."""
    return c.layout((Block(c.layers(), grouped_query(c), dense(c), others=two_norms(c)),), tied=True)


def read_gemma3(c: Config) -> Layout:
    """Gemma 3: five of six layers see a window, queries and keys have norms, four more norms a layer, one embedding."""
    c = Config(GEMMA3 | {key: value for key, value in c.content.items() if value is not None}, c.where, c.inside)
    kinds = one_in(c, c.layers(), grouped_query(c, head_norm=True), c.whole("sliding_window_pattern", 6))
    return c.layout(gathered(Block(1, attention, dense(c), others=2 * two_norms(c)) for attention in kinds), tied=True)


def read_phi3(c: Config) -> Layout:
    """Phi-3 and Phi-4: Llama's layers, their window wide."""
    attention = grouped_query(c)._replace(window=c.count("sliding_window", 10**9))
    return c.layout((Block(c.layers(), attention, dense(c), others=two_norms(c)),))


def read_olmo(c: Config) -> Layout:
    """OLMo: norms without weights."""
    return c.layout((Block(c.layers(), grouped_query(c), dense(c)),))._replace(others=0)


def read_olmo2(c: Config) -> Layout:
    """OLMo 2: norms behind the parts, and norms over all heads of queries and of keys."""
    return c.layout((Block(c.layers(), all_heads_norm(grouped_query(c)), dense(c), others=two_norms(c)),))


def read_cohere(c: Config) -> Layout:
    """Command R and R+: attention and feed-forward side by side behind one norm, one embedding."""
    attention = grouped_query(c)
    attention = all_heads_norm(attention) if c.flag("use_qk_norm") else attention
    return c.layout((Block(c.layers(), attention, dense(c), others=c.whole("hidden_size")),), tied=True)


def read_cohere2(c: Config) -> Layout:
    """Command R7B and A: as Command R, three of four layers with a window."""
    kinds, hidden = one_in(c, c.layers(), grouped_query(c), c.whole("sliding_window_pattern", 4)), c.whole("hidden_size")
    return c.layout(gathered(Block(1, attention, dense(c), others=hidden) for attention in kinds), tied=True)


def read_baichuan(c: Config) -> Layout:
    """Baichuan and Baichuan 2: every head has keys and values of its own."""
    hidden = c.whole("hidden_size")
    attention = multi_head(c, hidden, c.whole("num_attention_heads"))
    made = c.layout((Block(c.layers(), attention, dense(c), others=two_norms(c)),))
    return made._replace(context=c.whole(c.either("max_position_embeddings", "model_max_length"), 4096))


def read_exaone(c: Config) -> Layout:
    """EXAONE 3 and 3.5: Llama's layers under other keys."""
    layers = c.layers(c.either("num_layers", "num_hidden_layers"))
    return c.layout((Block(layers, grouped_query(c), dense(c), others=two_norms(c)),))


def read_smollm3(c: Config) -> Layout:
    """SmolLM3: Llama's layers, every fourth without positions, one embedding."""
    c.without("use_sliding_window")
    return c.layout((Block(c.layers(), grouped_query(c), dense(c), others=two_norms(c)),), tied=True)


def read_ernie(c: Config) -> Layout:
    """ERNIE 4.5, its dense models: one embedding."""
    c.without("use_bias")
    return c.layout((Block(c.layers(), grouped_query(c), dense(c), others=two_norms(c)),), tied=True)


def read_chatglm(c: Config) -> Layout:
    """ChatGLM 2 and 3, GLM-4-9B: groups of queries share keys and values; biases on queries, keys and values."""
    c.without("add_bias_linear")
    hidden, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    if c.whole("kv_channels", hidden // heads) * heads != hidden:
        raise c.wrong("kv_channels", f"{hidden // heads}, so that {heads} heads are as wide as the model")
    groups = c.whole("multi_query_group_num", most=heads) if c.flag("multi_query_attention") else heads
    attention = multi_head(c, hidden, heads, groups, in_bias=c.flag("add_qkv_bias"))
    block = Block(c.layers("num_layers"), attention, FeedForward(c.whole("ffn_hidden_size"), 3), others=two_norms(c))
    ends = hidden if c.flag("post_layer_norm", True) else 0
    return Layout(hidden, c.whole("padded_vocab_size"), c.whole("seq_length"), (block,), c.flag("tie_word_embeddings"), ends)
