"""Readers of the config.json of further mixtures of experts with grouped-query attention, by family."""

from __future__ import annotations

from tco.models.config import Config, Layout
from tco.models.layers import Block, gathered
from tco.models.parts import all_heads_norm, dense, dense_then_routed, grouped_query, layer_norms, routed, two_norms


def read_qwen2_moe(c: Config) -> Layout:
    """Qwen 1.5 and 2 with experts on every layer: a shared one behind a gate, biases on queries, keys and values."""
    c.without("use_sliding_window", "mlp_only_layers")
    c.whole("decoder_sparse_step", 1, most=1)
    attention = grouped_query(c, bias=c.flag("qkv_bias", True))._replace(out_bias=False)
    part = routed(c, "moe_intermediate_size", "num_experts", c.whole("shared_expert_intermediate_size"))._replace(shared_gate=True)
    return c.layout((Block(c.layers(), attention, part, others=two_norms(c)),))


def read_phimoe(c: Config) -> Layout:
    """Phi-3.5-MoE: norms with bias, and a bias on the logits."""
    part, hidden = routed(c, "intermediate_size", "num_local_experts"), c.whole("hidden_size")
    made = c.layout((Block(c.layers(), grouped_query(c), part, others=layer_norms(hidden, 2)),))
    return made._replace(others=layer_norms(hidden, 1) + (made.vocabulary if c.flag("lm_head_bias") else 0))


def read_arctic(c: Config) -> Layout:
    """Arctic: beside the experts a dense part as wide as the model, which every token passes as it would a shared expert."""
    c.whole("moe_layer_frequency", 1, most=1)
    hidden = c.whole("hidden_size")
    part = routed(c, "intermediate_size", "num_local_experts", hidden if c.flag("parallel_attn_mlp_res") else 0)
    norms = two_norms(c) + (hidden if c.flag("parallel_attn_mlp_res") else 0)
    return c.layout((Block(c.layers(), grouped_query(c), part, others=norms),))


def read_deepseek1(c: Config) -> Layout:
    """DeepSeekMoE: the first layer dense, then fine-grained experts with shared ones, attention as Llama's."""
    blocks = dense_then_routed(c, grouped_query(c))
    return c.layout(tuple(block._replace(feed_forward=block.feed_forward._replace(router_bias=False)) for block in blocks))


def read_olmoe(c: Config) -> Layout:
    """OLMoE: norms over all heads of queries and of keys."""
    part = routed(c, "intermediate_size", "num_experts")
    return c.layout((Block(c.layers(), all_heads_norm(grouped_query(c)), part, others=two_norms(c)),))


def read_granitemoe(c: Config) -> Layout:
    """Granite 3 with experts: Mixtral's layers, their experts small and many."""
    part = routed(c, "intermediate_size", "num_local_experts")
    return c.layout((Block(c.layers(), grouped_query(c), part, others=two_norms(c)),))


def read_ernie(c: Config) -> Layout:
    """ERNIE 4.5 with experts: the first layers dense, shared experts, a bias that balances the experts, one embedding."""
    c.without("use_bias")
    layers, width = c.layers(), c.whole("moe_intermediate_size")
    c.whole("moe_layer_interval", 1, most=1)
    first, last = c.count("moe_layer_start_index", layers, 1), c.whole("moe_layer_end_index", layers - 1, -1, layers - 1) % layers
    part = routed(c, "moe_intermediate_size", "moe_num_experts", c.count("moe_num_shared_experts", 1000) * width, "moe_k")
    part, wide = part._replace(router_bias=c.flag("moe_use_aux_free", True)), dense(c)
    parts = (part if first <= index <= last else wide for index in range(layers))
    return c.layout(gathered(Block(1, grouped_query(c), chosen, others=two_norms(c)) for chosen in parts), tied=True)


def read_hunyuan(c: Config) -> Layout:
    """Hunyuan with experts on every layer: a shared one, norms of queries and keys; the figures of a part are lists, a number a layer."""
    c.without("use_cla", "moe_layer_num_skipped", "mlp_bias")
    layers, same = c.layers(), dict(c.content)
    for key in ("moe_topk", "num_shared_expert", "moe_intermediate_size"):
        figure = c.content.get(key)
        if isinstance(figure, list):
            if len(figure) < layers or len(set(map(str, figure[:layers]))) > 1:
                raise c.wrong(key, f"one number for each of {layers} layers, all alike")
            same[key] = figure[0]
    each = Config(same, c.where, c.inside)
    shared = each.count("num_shared_expert", 1000) * c.whole("intermediate_size")
    part = routed(each, each.either("moe_intermediate_size", "intermediate_size"), "num_experts", shared, "moe_topk")
    attention = grouped_query(c, head_norm=c.flag("use_qk_norm"))
    return c.layout((Block(layers, attention, part, others=two_norms(c)),))
