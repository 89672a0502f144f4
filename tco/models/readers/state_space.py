"""Readers of the config.json of models with state-space or linear-attention layers, by family."""

from __future__ import annotations

from collections.abc import Callable

from tco.models.config import Config, ParsedConfig
from tco.models.layers import FeedForward, LayerBlock, StateMixer, merge_equal_layers
from tco.models.readers.latent_attention import latent_attention
from tco.models.readers.shared import (
    dense,
    expert_layers,
    expert_parts,
    gated_experts,
    grouped_query,
    routed,
    two_norms,
)

# Nemotron-H: letter of each kind of layer, by the word that newer releases write for it
LAYER_LETTERS = {
    "mamba": "M",
    "linear_attention": "M",
    "attention": "*",
    "full_attention": "*",
    "moe": "E",
    "mlp": "-",
}
UNBOUNDED = 10**9  # tokens of context, where positions set no limit


def gated_delta_rule(c: Config) -> StateMixer:
    """Return the gated delta rule of Qwen's linear layers."""
    heads = c.integer("linear_num_value_heads")
    head_width = c.integer("linear_value_head_dim")
    return StateMixer(
        heads,
        head_width,
        c.integer("linear_num_key_heads", most=heads),
        c.integer("linear_key_head_dim"),
        c.integer("linear_conv_kernel_dim"),
        controls=2,
        scalars=2,
        norm=head_width,
        passes=3,
    )


def _read_qwen35(c: Config, experts: FeedForward | None = None) -> ParsedConfig:
    """Read Qwen 3.5: gated delta rule on three of four layers, gated attention on the fourth.

    Feed-forward parts are `experts`, or dense without them.
    """
    layers = c.layers()
    full_interval = c.integer("full_attention_interval", 4)
    attention = grouped_query(c, head_norm=True)._replace(gated=True)
    norms = two_norms(c)
    blocks_by_kind = {
        "linear_attention": LayerBlock(1, mixer=gated_delta_rule(c), other_weights=norms),
        "full_attention": LayerBlock(1, attention, other_weights=norms),
    }
    usual_kinds = [
        "full_attention" if number % full_interval == 0 else "linear_attention"
        for number in range(1, layers + 1)
    ]
    kinds = c.kinds("layer_types", layers, tuple(blocks_by_kind), usual_kinds)
    feed_forwards = expert_parts(c, experts) if experts else [dense(c)] * layers
    blocks = [
        blocks_by_kind[kind]._replace(feed_forward=feed_forward)
        for kind, feed_forward in zip(kinds, feed_forwards, strict=True)
    ]
    return c.layout(merge_equal_layers(blocks))


def _nemotron_order(c: Config) -> list[str]:
    """Return the kind of each layer, by letters of the old key or words of the new one."""
    if not c.has("layers_block_type"):
        return c.kinds("hybrid_override_pattern", c.layers(), tuple("M*E-"))
    stated_kinds = c.value("layers_block_type")
    length = len(stated_kinds) if isinstance(stated_kinds, list) else None
    layers = c.integer("num_hidden_layers", length, most=10_000)
    words = c.kinds("layers_block_type", layers, tuple(LAYER_LETTERS))
    return [LAYER_LETTERS[word] for word in words]


def _read_nemotron(c: Config) -> ParsedConfig:
    """Read Nemotron-H and Nemotron 3: Mamba-2 (M), attention (*), experts (E) or dense (-)."""
    hidden = c.integer("hidden_size")
    heads = c.integer("mamba_num_heads")
    head_width = c.integer("mamba_head_dim")
    groups = c.integer("n_groups")
    state = c.integer("ssm_state_size")
    letters = _nemotron_order(c)
    mixer = StateMixer(
        heads,
        head_width,
        groups,
        state,
        c.integer("conv_kernel"),
        controls=1,
        scalars=3,
        norm=heads * head_width,
        passes=2,
        conv_bias=c.flag("use_conv_bias", True),
    )
    blocks = {
        "M": LayerBlock(1, mixer=mixer, other_weights=hidden),
        "*": LayerBlock(1, grouped_query(c), other_weights=hidden),
    }
    if "E" in letters:
        blocks["E"] = LayerBlock(1, feed_forward=_nemotron_experts(c, hidden), other_weights=hidden)
    if "-" in letters:
        feed_forward = FeedForward(c.integer("intermediate_size"), 2)
        blocks["-"] = LayerBlock(1, feed_forward=feed_forward, other_weights=hidden)
    layout = c.layout(merge_equal_layers(blocks[letter] for letter in letters))
    return layout._replace(prediction_block=_nemotron_draft(c, blocks))


def _nemotron_experts(c: Config, hidden: int) -> FeedForward:
    experts = c.integer("n_routed_experts")
    has_shared_expert = c.count("n_shared_experts", 1000) > 0
    shared_width = c.integer("moe_shared_expert_intermediate_size") if has_shared_expert else 0
    return FeedForward(
        width=c.integer("moe_intermediate_size"),
        matrices=2,
        experts=experts,
        active=c.integer("num_experts_per_tok", most=experts),
        shared_width=shared_width,
        latent=c.count("moe_latent_size", hidden),
        router_bias=True,
    )


def _nemotron_draft(c: Config, blocks: dict[str, LayerBlock]) -> LayerBlock:
    """Return the draft head as a single layer, usually of attention and experts."""
    letters = "".join(letter for letter in "*E" if letter in blocks)
    draft = LayerBlock(1)
    words = c.value("mtp_layers_block_type")
    if words:
        letters = "".join(LAYER_LETTERS.get(word, "?") for word in words)
    for letter in c.text("mtp_hybrid_override_pattern") or letters:
        if letter not in blocks:
            raise c.wrong("mtp_hybrid_override_pattern", f"letters of {''.join(blocks)}")
        block = blocks[letter]
        draft = LayerBlock(
            1,
            block.attention if block.attention.heads else draft.attention,
            block.feed_forward if block.feed_forward.width else draft.feed_forward,
            block.mixer or draft.mixer,
            draft.other_weights + block.other_weights,
        )
    return draft


def delta_attention(c: Config) -> StateMixer:
    """Return the delta rule of Kimi Linear, in which every number of the state has a decay."""
    if c.has("linear_attn_config"):
        linear = c.section("linear_attn_config")
        heads = linear.integer("num_heads")
        head_width = linear.integer("head_dim")
        kernel = linear.integer("short_conv_kernel_size")
        has_full_rank_gate = linear.flag("use_full_rank_gate")
    else:
        heads = c.integer("linear_num_heads")
        head_width = c.integer("linear_head_dim")
        kernel = c.integer("linear_conv_kernel_dim")
        has_full_rank_gate = False
    return StateMixer(
        heads,
        head_width,
        heads,
        head_width,
        kernel,
        controls=1,
        scalars=1,
        norm=head_width,
        passes=3,
        decay_rank=head_width,
        gate_rank=0 if has_full_rank_gate else head_width,
    )


def _full_layers(c: Config, layers: int) -> set[int]:
    """Return the numbers of the layers with full attention, counted from 1."""
    if c.has("layer_types"):
        kinds = c.kinds("layer_types", layers, ("linear_attention", "full_attention"))
        return {index + 1 for index, kind in enumerate(kinds) if kind == "full_attention"}
    linear = c.section("linear_attn_config")
    linear.mark_read("kda_layers")  # it lists all other layers
    full = linear.value("full_attn_layers")
    if not isinstance(full, list):
        raise linear.wrong("full_attn_layers", "a list of layers, the first one being 1")
    return set(full)


def _read_kimi_linear(c: Config) -> ParsedConfig:
    """Read Kimi Linear and K3: a delta rule on most layers, and latent attention on the others.

    Experts work on a narrower width. Attention residuals, which join the outputs of earlier
    layers, are left out: their weights are few.
    """
    layers = c.layers()
    hidden = c.integer("hidden_size")
    mixer = delta_attention(c)
    attention = latent_attention(c)._replace(gated=c.flag("mla_use_output_gate"))
    experts = routed(c, c.count("num_shared_experts", 1000) * c.integer("moe_intermediate_size"))
    expert_hidden = c.count("routed_expert_hidden_size", hidden)
    experts = experts._replace(latent=expert_hidden, router_bias=True)
    norms = two_norms(c)
    expert_norms = norms + (expert_hidden if c.flag("latent_moe_use_norm") else 0)
    full_layers = _full_layers(c, layers)
    blocks = []
    for number, has_experts in enumerate(expert_layers(c), 1):
        if has_experts:
            block = LayerBlock(1, feed_forward=experts, other_weights=expert_norms)
        else:
            block = LayerBlock(1, feed_forward=dense(c), other_weights=norms)
        if number in full_layers:
            blocks.append(block._replace(attention=attention))
        else:
            blocks.append(block._replace(mixer=mixer))
    return c.layout(merge_equal_layers(blocks))


def _read_mamba2(c: Config) -> ParsedConfig:
    """Read Mamba-2: a recurrence after one norm on every layer, for sequences of any length.

    It has neither attention nor feed-forward parts.
    """
    c.refuse_keys("use_bias")
    hidden = c.integer("hidden_size")
    heads = c.integer("num_heads")
    head_width = c.integer("head_dim")
    expansion = c.integer("expand", 2)
    if heads * head_width != expansion * hidden:
        raise c.wrong(
            "num_heads", f"heads that are together {expansion} times as wide as the model"
        )
    mixer = StateMixer(
        heads,
        head_width,
        c.integer("n_groups"),
        c.integer("state_size"),
        c.integer("conv_kernel", 4),
        controls=1,
        scalars=3,
        norm=heads * head_width,
        passes=2,
        conv_bias=c.flag("use_conv_bias", True),
    )
    block = LayerBlock(c.layers(), mixer=mixer, other_weights=hidden)
    return c.layout((block,))._replace(context=c.integer("max_position_embeddings", UNBOUNDED))


READERS: dict[str, Callable[[Config], ParsedConfig]] = {  # by model_type
    **dict.fromkeys(("kimi_k3", "kimi_linear"), _read_kimi_linear),
    "mamba2": _read_mamba2,
    "nemotron_h": _read_nemotron,
    **dict.fromkeys(("qwen3_5", "qwen3_5_text"), _read_qwen35),
    **dict.fromkeys(
        ("qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"),
        lambda c: _read_qwen35(c, gated_experts(c)),
    ),
}
