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

# letters of the kinds of layer of Nemotron-H, by the words of newer releases
WORDS = {
    **{"mamba": "M", "attention": "*", "moe": "E", "mlp": "-"},
    **{"linear_attention": "M", "full_attention": "*"},
}
UNBOUNDED = 10**9  # tokens of a context that no state or position bounds


def gated_delta_rule(c: Config) -> StateMixer:
    """Return the gated delta rule of Qwen's linear layers."""
    heads, head = c.integer("linear_num_value_heads"), c.integer("linear_value_head_dim")
    return StateMixer(
        heads,
        head,
        c.integer("linear_num_key_heads", most=heads),
        c.integer("linear_key_head_dim"),
        c.integer("linear_conv_kernel_dim"),
        controls=2,
        scalars=2,
        norm=head,
        passes=3,
    )


def _read_qwen35(c: Config, experts: FeedForward | None = None) -> ParsedConfig:
    """Read Qwen 3.5: gated delta rule on three of four layers, gated attention on the fourth.

    Feed-forward parts are experts or dense.
    """
    layers, full_interval = c.layers(), c.integer("full_attention_interval", 4)
    attention, norms = grouped_query(c, head_norm=True)._replace(gated=True), two_norms(c)
    mixing = {
        "linear_attention": LayerBlock(1, mixer=gated_delta_rule(c), other_weights=norms),
        "full_attention": LayerBlock(1, attention, other_weights=norms),
    }
    default = [
        "linear_attention" if (index + 1) % full_interval else "full_attention"
        for index in range(layers)
    ]
    kinds = c.kinds("layer_types", layers, tuple(mixing), default)
    parts = expert_parts(c, experts) if experts else [dense(c)] * layers
    blocks = merge_equal_layers(
        mixing[kind]._replace(feed_forward=part) for kind, part in zip(kinds, parts, strict=True)
    )
    return c.layout(blocks)


def _nemotron_order(c: Config) -> list[str]:
    """Return the kind of each layer, by letters of the old key or words of the new one."""
    if not c.has("layers_block_type"):
        return c.kinds("hybrid_override_pattern", c.layers(), tuple("M*E-"))
    listed = c.value("layers_block_type")
    length = c.integer(
        "num_hidden_layers", len(listed) if isinstance(listed, list) else None, most=10_000
    )
    return [WORDS[word] for word in c.kinds("layers_block_type", length, tuple(WORDS))]


def _read_nemotron(c: Config) -> ParsedConfig:
    """Read Nemotron-H and Nemotron 3: Mamba-2 (M), attention (*), experts (E) or dense (-)."""
    hidden = c.integer("hidden_size")
    heads = c.integer("mamba_num_heads")
    head = c.integer("mamba_head_dim")
    groups = c.integer("n_groups")
    state = c.integer("ssm_state_size")
    kinds = _nemotron_order(c)
    mixer = StateMixer(
        heads,
        head,
        groups,
        state,
        c.integer("conv_kernel"),
        controls=1,
        scalars=3,
        norm=heads * head,
        passes=2,
    )
    layer_makers = {
        "M": LayerBlock(
            1, mixer=mixer._replace(conv_bias=c.flag("use_conv_bias", True)), other_weights=hidden
        ),
        "*": LayerBlock(1, grouped_query(c), other_weights=hidden),
    }
    if "E" in kinds:
        experts = c.integer("n_routed_experts")
        shared = (
            c.integer("moe_shared_expert_intermediate_size")
            if c.count("n_shared_experts", 1000)
            else 0
        )
        latent = c.count("moe_latent_size", hidden)
        active = c.integer("num_experts_per_tok", most=experts)
        part = FeedForward(
            c.integer("moe_intermediate_size"), 2, experts, active, shared, latent, router_bias=True
        )
        layer_makers["E"] = LayerBlock(1, feed_forward=part, other_weights=hidden)
    if "-" in kinds:
        layer_makers["-"] = LayerBlock(
            1, feed_forward=FeedForward(c.integer("intermediate_size"), 2), other_weights=hidden
        )
    layout = c.layout(merge_equal_layers(layer_makers[kind] for kind in kinds))
    return layout._replace(prediction_block=_nemotron_draft(c, layer_makers))


def _nemotron_draft(c: Config, blocks: dict[str, LayerBlock]) -> LayerBlock:
    """Return one layer of the draft head, usually attention and experts."""
    usual = "".join(letter for letter in "*E" if letter in blocks)
    draft = LayerBlock(1)
    listed = c.value("mtp_layers_block_type")
    letters = "".join(WORDS.get(word, "?") for word in listed) if listed else usual
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
    """Return a delta rule whose state decays number by number, as Kimi Linear has it."""
    if c.has("linear_attn_config"):
        linear = c.section("linear_attn_config")
        heads, head = linear.integer("num_heads"), linear.integer("head_dim")
        kernel = linear.integer("short_conv_kernel_size")
        full_rank = linear.flag("use_full_rank_gate")
    else:
        heads, head = c.integer("linear_num_heads"), c.integer("linear_head_dim")
        kernel, full_rank = c.integer("linear_conv_kernel_dim"), False
    return StateMixer(
        heads,
        head,
        heads,
        head,
        kernel,
        controls=1,
        scalars=1,
        norm=head,
        passes=3,
        decay_rank=head,
        gate_rank=0 if full_rank else head,
    )


def _full_layers(c: Config, layers: int) -> set[int]:
    """Return the numbers of the layers with full attention, the first layer being 1."""
    if c.has("layer_types"):
        kinds = c.kinds("layer_types", layers, ("linear_attention", "full_attention"))
        return {index + 1 for index, kind in enumerate(kinds) if kind == "full_attention"}
    linear = c.section("linear_attn_config")
    linear.value("kda_layers")  # the others
    full = linear.value("full_attn_layers")
    if not isinstance(full, list):
        raise linear.wrong("full_attn_layers", "a list of layers, the first one being 1")
    return set(full)


def _read_kimi_linear(c: Config) -> ParsedConfig:
    """Read Kimi Linear and K3: a delta rule with decay per number, and latent attention.

    Every fourth layer has latent attention; experts work on a narrower width.

    What joins the residuals of earlier layers (attention residuals) is left out: its weights are
    few.
    """
    layers, hidden, mixer = c.layers(), c.integer("hidden_size"), delta_attention(c)
    attention = latent_attention(c)._replace(gated=c.flag("mla_use_output_gate"))
    part = routed(c, c.count("num_shared_experts", 1000) * c.integer("moe_intermediate_size"))
    narrow = c.count("routed_expert_hidden_size", hidden)
    part = part._replace(latent=narrow, router_bias=True)
    other_layers = two_norms(c) + (narrow if c.flag("latent_moe_use_norm") else 0)
    full, kinds = _full_layers(c, layers), []
    for index, has_experts in enumerate(expert_layers(c)):
        block = (
            LayerBlock(1, feed_forward=part, other_weights=other_layers)
            if has_experts
            else LayerBlock(1, feed_forward=dense(c), other_weights=two_norms(c))
        )
        kinds.append(
            block._replace(attention=attention)
            if index + 1 in full
            else block._replace(mixer=mixer)
        )
    return c.layout(merge_equal_layers(kinds))


def _read_mamba2(c: Config) -> ParsedConfig:
    """Read Mamba-2: a recurrence after one norm on every layer, for sequences of any length.

    It has neither attention nor feed-forward parts.
    """
    c.without("use_bias")
    hidden, heads, head = c.integer("hidden_size"), c.integer("num_heads"), c.integer("head_dim")
    if heads * head != c.integer("expand", 2) * hidden:
        raise c.wrong(
            "num_heads",
            f"heads that are together {c.integer('expand', 2)} times as wide as the model",
        )
    mixer = StateMixer(
        heads,
        head,
        c.integer("n_groups"),
        c.integer("state_size"),
        c.integer("conv_kernel", 4),
        1,
        3,
        norm=heads * head,
        passes=2,
    )
    block = LayerBlock(
        c.layers(),
        mixer=mixer._replace(conv_bias=c.flag("use_conv_bias", True)),
        other_weights=hidden,
    )
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
