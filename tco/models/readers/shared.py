"""Layers shared by model config readers: attention, feed-forward parts and layer order.

The attention is grouped-query. The feed-forward parts are dense or routed.
"""

from __future__ import annotations

from tco.models.config import Config
from tco.models.layers import Attention, FeedForward, LayerBlock, merge_equal_layers


def grouped_query(c: Config, bias: bool = False, head_norm: bool = False) -> Attention:
    """Return grouped-query attention as Llama's config spells it; `head_norm` gives queries and
    keys a norm a head wide.
    """
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


def multi_head(
    c: Config,
    hidden: str = "hidden_size",
    heads: str = "num_attention_heads",
    groups: int = 0,
    bias: bool = False,
) -> Attention:
    """Return attention whose heads divide the model's width, by the keys of both; without `groups`
    every head has keys and values of its own.
    """
    width, number = c.integer(hidden), c.integer(heads)
    groups = groups or number
    if width % number or number % groups:
        raise c.misfit(
            f"{heads}: {number} heads with {groups} of keys and values do not divide a width of "
            f"{width}"
        )
    return Attention(number, groups, width // number, width // number, in_bias=bias, out_bias=bias)


def dense(c: Config, key: str = "intermediate_size") -> FeedForward:
    """Return a gated dense feed-forward."""
    return FeedForward(c.integer(key), 3, bias=c.flag("mlp_bias"))


def routed(
    c: Config, width: str, experts: str, shared: int = 0, active: str = "num_experts_per_tok"
) -> FeedForward:
    """Return a gated mixture of experts: `width`, `experts` and `active` are keys, `shared` the
    width of the experts every token passes.
    """
    number = c.integer(experts, most=10**6)
    return FeedForward(c.integer(width), 3, number, c.integer(active, most=number), shared)


def two_norms(c: Config) -> int:
    """Return the weights of the two norms of an ordinary layer."""
    return 2 * c.integer("hidden_size")


def layer_norms(hidden: int, number: int) -> int:
    """Return the weights of so many norms with a scale and a bias."""
    return 2 * number * hidden


def all_heads_norm(attention: Attention, wanted: bool = True) -> Attention:
    """Return an attention whose queries and keys have a scale for every number of every head, if
    that is wanted.
    """
    return (
        attention._replace(qk_norm=(attention.heads + attention.kv_heads) * attention.qk_dim)
        if wanted
        else attention
    )


def one_in(c: Config, full: Attention, every: int) -> list[Attention]:
    """Return the attention of each layer: every so many sees all tokens, the others a window,
    unless `layer_types` says otherwise.
    """
    layers = c.layers()
    kinds = {
        "sliding_attention": full._replace(window=c.integer("sliding_window")),
        "full_attention": full,
    }
    default = [
        "sliding_attention" if (index + 1) % every else "full_attention" for index in range(layers)
    ]
    return [kinds[kind] for kind in c.kinds("layer_types", layers, tuple(kinds), default)]


def dense_then_routed(c: Config, attention: Attention) -> tuple[LayerBlock, ...]:
    """Return layers as DeepSeek orders them: the first ones dense, the others fine-grained experts
    with shared ones.
    """
    layers, width = c.layers(), c.every_layer("moe_layer_freq").integer("moe_intermediate_size")
    first, shared = (
        c.count("first_k_dense_replace", layers),
        c.count("n_shared_experts", 1000) * width,
    )
    balanced = c.text("topk_method", "noaux_tc") == "noaux_tc"  # a bias that balances the experts
    part = routed(c, "moe_intermediate_size", "n_routed_experts", shared)._replace(
        router_bias=balanced
    )
    kinds = [LayerBlock(layers - first, attention, part, others=two_norms(c))]
    if first:
        kinds.insert(0, LayerBlock(first, attention, dense(c), others=two_norms(c)))
    return merge_equal_layers(kinds)
