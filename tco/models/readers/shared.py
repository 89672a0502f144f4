"""Layers shared by model config readers: attention, feed-forward parts and layer order.

The attention is grouped-query. The feed-forward parts are dense or routed.
"""

from __future__ import annotations

from tco.core.types import is_whole_number
from tco.models.config import Config
from tco.models.layers import Attention, FeedForward, LayerBlock, merge_equal_layers


def grouped_query(c: Config, bias: bool = False, head_norm: bool = False) -> Attention:
    """Return grouped-query attention by Llama's keys; `head_norm` adds query and key norms."""
    heads = c.integer("num_attention_heads")
    width = c.integer("head_dim", c.integer("hidden_size") // heads)
    groups = c.integer("num_key_value_heads", heads, most=heads)
    if heads % groups:
        raise c.wrong("num_key_value_heads", f"a divisor of the {heads} heads")
    bias = c.flag("attention_bias", bias)
    return Attention(
        heads,
        groups,
        width,
        width,
        qk_norm=2 * width if head_norm else 0,
        in_bias=bias,
        out_bias=bias,
    )


def multi_head(c: Config, groups: int = 0, bias: bool = False) -> Attention:
    """Return attention whose heads divide the model's width.

    Without `groups` every head has its own keys and values.
    """
    width, number = c.integer("hidden_size"), c.integer("num_attention_heads")
    groups = groups or number
    if width % number or number % groups:
        raise c.misfit(
            f"num_attention_heads: {number} heads with {groups} of keys and values do not divide a "
            f"width of {width}"
        )
    return Attention(number, groups, width // number, width // number, in_bias=bias, out_bias=bias)


def dense(c: Config, width_key: str = "intermediate_size") -> FeedForward:
    """Return a gated dense feed-forward."""
    return FeedForward(c.integer(width_key), 3, bias=c.flag("mlp_bias"))


def routed(c: Config, shared: int = 0, width_key: str = "moe_intermediate_size") -> FeedForward:
    """Return a gated mixture of experts, their width by a key.

    `shared` is the width of the shared experts.
    """
    number = c.integer("num_experts", most=10**6)
    active = c.integer("num_experts_per_tok", most=number)
    return FeedForward(c.integer(width_key), 3, number, active, shared)


def gated_experts(c: Config) -> FeedForward:
    """Return experts beside a shared one that a gate scales, as Qwen's config spells them."""
    return routed(c, c.integer("shared_expert_intermediate_size"))._replace(shared_gate=True)


def two_norms(c: Config) -> int:
    """Return the weights of the two norms of an ordinary layer."""
    return 2 * c.integer("hidden_size")


def layer_norms(hidden: int, number: int) -> int:
    """Return the weights of so many norms with a scale and a bias."""
    return 2 * number * hidden


def all_heads_norm(attention: Attention, has_norm: bool = True) -> Attention:
    """Return an attention with a scale per number of every query and key head, if wanted."""
    return (
        attention._replace(qk_norm=(attention.heads + attention.kv_heads) * attention.qk_dim)
        if has_norm
        else attention
    )


def one_in(c: Config, full: Attention, full_interval: int) -> list[Attention]:
    """Return each layer's attention: full once per interval, otherwise a window.

    `layer_types` of the config may say otherwise.
    """
    layers = c.layers()
    kinds = {
        "sliding_attention": full._replace(window=c.integer("sliding_window")),
        "full_attention": full,
    }
    default = [
        "sliding_attention" if (index + 1) % full_interval else "full_attention"
        for index in range(layers)
    ]
    return [kinds[kind] for kind in c.kinds("layer_types", layers, tuple(kinds), default)]


def expert_layers(c: Config) -> list[bool]:
    """Return for each layer whether it has experts, by any of the keys that state it."""
    layers = c.layers()
    if (listed := _listed_expert_layers(c, layers)) is not None:
        return listed
    first = c.count("first_k_dense_replace", layers)
    dense_layers = _layer_numbers(c, "mlp_only_layers", layers) | set(range(first))
    if c.has("moe_layer_start_index") or c.has("moe_layer_end_index"):
        start = c.count("moe_layer_start_index", layers)
        end = c.integer("moe_layer_end_index", -1, -1, layers - 1) % layers
        dense_layers |= {*range(start), *range(end + 1, layers)}
    step, offset = _step_and_offset(c)
    return [index not in dense_layers and index % step == offset for index in range(layers)]


def _step_and_offset(c: Config) -> tuple[int, int]:
    """Return every how many layers one has experts, and the index of the first that has."""
    if c.has("expert_layer_period"):
        period = c.integer("expert_layer_period")
        return period, c.count("expert_layer_offset", period - 1)
    # DeepSeek counts its layers from zero, the others from one
    if c.has("moe_layer_freq") and c.has("first_k_dense_replace"):
        return c.integer("moe_layer_freq"), 0
    step_keys = (
        "decoder_sparse_step",
        "interleave_moe_layer_step",
        "moe_layer_interval",
        "moe_layer_freq",
    )
    step = max(c.integer(step_key, 1) for step_key in step_keys)
    return step, step - 1


def _listed_expert_layers(c: Config, layers: int) -> list[bool] | None:
    """Return which layers have experts by a list of layers, or None without one."""
    kinds: dict[str, tuple[object, ...]] = {
        "mlp_layer_types": ("dense", "mlp", "sparse", "moe"),
        "is_moe_layer": (False, True),
        "moe_layer_freq": (0, 1),
    }
    for layers_key, words in kinds.items():
        if isinstance(c.value(layers_key), list):
            return [
                kind not in ("dense", "mlp", False, 0)
                for kind in c.kinds(layers_key, layers, tuple(words))
            ]
    for layers_key in ("moe_layers", "moe_layers_enum", "moe_layer_indices"):
        if c.value(layers_key):
            numbers = _layer_numbers(c, layers_key, layers)
            return [index in numbers for index in range(layers)]
    return None


def _layer_numbers(c: Config, layers_key: str, layers: int) -> set[int]:
    """Return the indices of layers that a list, or a text with commas, names."""
    stated_layers = c.value(layers_key) or []
    if isinstance(stated_layers, str):
        stated_layers = [
            int(part) if is_whole_number(part.strip()) else -1 for part in stated_layers.split(",")
        ]
    numbers = range(layers)
    if not isinstance(stated_layers, list) or not all(
        type(index) is int and index in numbers for index in stated_layers
    ):
        raise c.wrong(layers_key, f"numbers of layers, from 0 to {layers - 1}")
    return set(stated_layers)


def expert_parts(
    c: Config, part: FeedForward, width_key: str = "intermediate_size"
) -> list[FeedForward]:
    """Return the feed-forward part of each layer: experts, or dense with the width of a key."""
    with_experts = expert_layers(c)
    wide = part if all(with_experts) else dense(c, width_key)
    return [part if has_experts else wide for has_experts in with_experts]


def expert_blocks(c: Config, attention: Attention, part: FeedForward) -> tuple[LayerBlock, ...]:
    """Return layers of one attention, with experts or a dense part as the keys say."""
    norms = two_norms(c)
    return merge_equal_layers(
        LayerBlock(1, attention, layer_part, other_weights=norms)
        for layer_part in expert_parts(c, part)
    )


def dense_then_routed(c: Config, attention: Attention) -> tuple[LayerBlock, ...]:
    """Return layers as in DeepSeek: the first dense, the others experts with shared ones."""
    shared = c.count("n_shared_experts", 1000) * c.integer("moe_intermediate_size")
    balanced = c.text("topk_method", "noaux_tc") == "noaux_tc"  # a bias that balances the experts
    return expert_blocks(c, attention, routed(c, shared)._replace(router_bias=balanced))
