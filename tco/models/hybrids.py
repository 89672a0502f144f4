"""Readers of the config.json of models with latent or sparse attention, with state-space or linear-attention layers, and of parametric ones."""

from __future__ import annotations

from tco.models.attention import Attention
from tco.models.config import Config, Layout
from tco.models.families import dense_then_routed, grouped_query, routed, two_norms
from tco.models.layers import Block, FeedForward, StateMixer, gathered

WIDTH_STEP = 16  # a derived expert width is a multiple of this, as matrix engines want it


def latent_attention(c: Config) -> Attention:
    """Return multi-head latent attention, with an indexer where the config has one."""
    rope, nope, heads = c.whole("qk_rope_head_dim"), c.whole("qk_nope_head_dim"), c.whole("num_attention_heads")
    plain = Attention(heads, heads, nope + rope, c.whole("v_head_dim"), c.count("q_lora_rank", 10**9), c.whole("kv_lora_rank"), rope)
    biased = plain._replace(in_bias=c.flag("attention_bias"), out_bias=c.flag("attention_bias"))
    return indexed(c, biased) if c.has("index_topk") else biased


def indexed(c: Config, attention: Attention) -> Attention:
    """Return an attention whose queries reach the tokens an indexer scores highest."""
    top, heads, width = c.whole("index_topk"), c.whole("index_n_heads"), c.whole("index_head_dim")
    return attention._replace(top_tokens=top, index_heads=heads, index_dim=width)


def read_deepseek(c: Config) -> Layout:
    """DeepSeek V2, V3 and V3.2, Kimi K2, GLM-5: latent attention, first layers dense, then fine-grained experts with shared ones."""
    return c.layout(dense_then_routed(c, latent_attention(c)), prediction="num_nextn_predict_layers")


def read_deepseek4(c: Config) -> Layout:
    """DeepSeek V4: caches compressed 4 to 1 with an indexer, 128 to 1 without, or windows alone; several residual streams."""
    layers, heads, width, hidden = c.layers(), c.whole("num_attention_heads"), c.whole("head_dim"), c.whole("hidden_size")
    plain = Attention(heads, 1, width, width, c.whole("q_lora_rank"), window=c.whole("sliding_window"), shared_key_value=True, sinks=True)
    window = plain._replace(out_groups=c.whole("o_groups", most=heads), out_rank=c.whole("o_lora_rank"))
    attentions = {0: window, 4: indexed(c, window._replace(compression=4)), 128: window._replace(compression=128)}
    streams, expert = c.whole("hc_mult", most=1000), c.whole("moe_intermediate_size")
    mixing = (2 + streams) * streams * (streams * hidden + 1) + 3  # weights that join the residual streams, before and after a part
    part = routed(c, "moe_intermediate_size", "n_routed_experts", c.count("n_shared_experts", 1000) * expert)
    hashed = c.count("num_hash_layers", layers)  # the first layers choose experts by a table and need no bias to balance them
    others = two_norms(c) + 2 * mixing
    kinds = [
        Block(1, attentions[ratio], part._replace(router_bias=index >= hashed), others=others)
        for index, ratio in enumerate(c.kinds("compress_ratios", layers, tuple(attentions)))
    ]
    layout = c.layout(gathered(kinds))
    return layout._replace(others=layout.others + streams * (streams * hidden + 1) + 1)


def read_qwen35(c: Config) -> Layout:
    """Qwen 3.5: gated delta rule on three of four layers, gated attention on the fourth, experts on all."""
    c.without("mlp_only_layers")
    layers, every = c.layers(), c.whole("full_attention_interval", 4)
    attention = grouped_query(c, head_norm=True)._replace(gated=True)
    heads, head = c.whole("linear_num_value_heads"), c.whole("linear_value_head_dim")
    key_heads, key = c.whole("linear_num_key_heads", most=heads), c.whole("linear_key_head_dim")
    mixer = StateMixer(heads, head, key_heads, key, c.whole("linear_conv_kernel_dim"), controls=2, scalars=2, norm=head, passes=3)
    part = routed(c, "moe_intermediate_size", "num_experts", c.whole("shared_expert_intermediate_size"))._replace(shared_gate=True)
    norms = two_norms(c)
    linear, full = Block(1, feed_forward=part, mixer=mixer, others=norms), Block(1, attention, part, others=norms)
    default = ["linear_attention" if (index + 1) % every else "full_attention" for index in range(layers)]
    kinds = c.kinds("layer_types", layers, ("linear_attention", "full_attention"), default)
    blocks = gathered(linear if kind == "linear_attention" else full for kind in kinds)
    return c.layout(blocks, prediction="mtp_num_hidden_layers")


def read_nemotron(c: Config) -> Layout:
    """Nemotron-H and Nemotron 3: a layer is a Mamba-2 mixer (M), attention (*), experts (E) or a dense feed-forward (-)."""
    layers, hidden = c.layers(), c.whole("hidden_size")
    heads, head, groups, state = c.whole("mamba_num_heads"), c.whole("mamba_head_dim"), c.whole("n_groups"), c.whole("ssm_state_size")
    kinds = c.kinds("hybrid_override_pattern", layers, tuple("M*E-"))
    mixer = StateMixer(heads, head, groups, state, c.whole("conv_kernel"), controls=1, scalars=3, norm=heads * head, passes=2)
    made = {
        "M": Block(1, mixer=mixer._replace(conv_bias=c.flag("use_conv_bias", True)), others=hidden),
        "*": Block(1, grouped_query(c), others=hidden),
    }
    if "E" in kinds:
        experts = c.whole("n_routed_experts")
        shared = c.whole("moe_shared_expert_intermediate_size") if c.count("n_shared_experts", 1000) else 0
        latent = c.count("moe_latent_size", hidden)
        active = c.whole("num_experts_per_tok", most=experts)
        part = FeedForward(c.whole("moe_intermediate_size"), 2, experts, active, shared, latent, router_bias=True)
        made["E"] = Block(1, feed_forward=part, others=hidden)
    if "-" in kinds:
        made["-"] = Block(1, feed_forward=FeedForward(c.whole("intermediate_size"), 2), others=hidden)
    return c.layout(gathered(made[kind] for kind in kinds))


def read_parametric(c: Config) -> Layout:
    """A mixture of experts of a given size: the expert width follows from `total_parameters` and the other shapes.

    width = (total - all other weights) / (layers x experts x 3 h), to the nearest multiple of 16.
    """
    attention = latent_attention(c) if c.has("kv_lora_rank") else grouped_query(c)
    layers, hidden, experts = c.layers(), c.whole("hidden_size"), c.whole("n_routed_experts", most=10**6)
    active, shared = c.whole("num_experts_per_tok", most=experts), c.count("n_shared_experts", 1000)

    def layout(width: int) -> Layout:
        part = FeedForward(width, 3, experts, active, shared * width)
        return c.layout((Block(layers, attention, part, others=two_norms(c)),))

    def size(made: Layout) -> int:
        ends = made.hidden * made.vocabulary * (1 if made.tied else 2) + made.others
        return ends + sum(block.layers * block.parameters(hidden) for block in made.blocks)

    target, smallest = c.whole("total_parameters", most=10**18), size(layout(0))
    slope = size(layout(1)) - smallest
    width = round((target - smallest) / slope / WIDTH_STEP) * WIDTH_STEP
    if width < WIDTH_STEP:
        raise c.wrong("total_parameters", f"more than the {smallest} weights beside the experts")
    return layout(width)
