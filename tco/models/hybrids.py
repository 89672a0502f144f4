"""Readers of the config.json of models with state-space or linear-attention layers, by family."""

from __future__ import annotations

from collections.abc import Callable

from tco.models.config import Config, Layout
from tco.models.layers import Block, FeedForward, StateMixer, gathered
from tco.models.parts import grouped_query, routed, two_norms

UNBOUNDED = 10**9  # tokens of a context that no state or position bounds


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


def read_mamba2(c: Config) -> Layout:
    """Mamba-2: every layer a recurrence behind one norm, no attention and no feed-forward part; a sequence may be of any length."""
    c.without("use_bias")
    hidden, heads, head = c.whole("hidden_size"), c.whole("num_heads"), c.whole("head_dim")
    if heads * head != c.whole("expand", 2) * hidden:
        raise c.wrong("num_heads", f"heads that are together {c.whole('expand', 2)} times as wide as the model")
    mixer = StateMixer(heads, head, c.whole("n_groups"), c.whole("state_size"), c.whole("conv_kernel", 4), 1, 3, norm=heads * head, passes=2)
    block = Block(c.layers(), mixer=mixer._replace(conv_bias=c.flag("use_conv_bias", True)), others=hidden)
    return c.layout((block,))._replace(context=c.whole("max_position_embeddings", UNBOUNDED))


READERS: dict[str, Callable[[Config], Layout]] = {  # by model_type
    "mamba2": read_mamba2,
    "nemotron_h": read_nemotron,
    **dict.fromkeys(("qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"), read_qwen35),
}
