"""Layers of a model: attention, feed-forward parts, mixers, blocks and architecture.

A block joins the parts of a layer. `Architecture` holds all layers with their counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tco.core.mappings import sums_by_key


class Attention(NamedTuple):
    """Attention of one kind of layer; without heads the layer has none.

    `latent` is zero for grouped-query attention, else MLA's cached width without rope. A query
    reaches every earlier token, or the last `window` ones (with `chunked`: those of its own chunk
    of `window`), or the `top_tokens` that an indexer scores highest. With `compression` c one
    cached entry stands for c tokens, and the last `window` tokens are reached beside them.
    """

    heads: int
    kv_heads: int
    qk_dim: int  # width of a query or key head
    v_dim: int  # width of a value head
    q_rank: int = 0  # rank of the compressed query, zero if it is not compressed
    latent: int = 0  # MLA: rank of the compressed keys and values
    rope_dim: int = 0  # MLA: shared rotary part of the key
    window: int = 0
    chunked: bool = False
    top_tokens: int = 0
    index_heads: int = 0
    index_dim: int = 0  # the indexer caches one key of this width per entry
    index_weighted: bool = True  # each token weighs the indexer's heads
    compression: int = 0
    shared_key_value: bool = False  # one cached vector serves as key and as value
    out_groups: int = 0  # heads leave in groups through a low rank
    out_rank: int = 0
    qk_norm: int = 0  # scales of the norms of queries and keys
    in_bias: bool = False
    out_bias: bool = False
    gated: bool = False  # an output gate as wide as the query, in latent attention as the values
    # a value is the key before its rotation: one product makes both, the cache keeps both
    value_of_key: bool = False
    sinks: bool = False  # a learned logit a head, which takes part in no product
    # keys and values are those of an earlier layer: none are made, none are kept
    shares_cache: bool = False

    @property
    def cached(self) -> int:
        """Return the cached numbers per entry and layer: 2 H_kv d, or MLA's latent and rotary part.

        The indexer's keys are left out.
        """
        if self.latent:
            return self.latent + self.rope_dim
        return self.kv_heads * (self.qk_dim if self.shared_key_value else self.qk_dim + self.v_dim)

    def parameters(self, hidden: int) -> int:
        """Weights of the projections, with their biases and norms."""
        return (
            self.query(hidden)
            + self.key_value(hidden)
            + self.output(hidden)
            + self.compressor(hidden)
            + self.indexer(hidden)
        )

    def query(self, hidden: int) -> int:
        """Weights of the query, its low rank and its gate, and of the norms of queries and keys."""
        width = self.heads * self.qk_dim
        if self.q_rank:
            low_rank = (hidden + 1 + self.in_bias + width) * self.q_rank
            gate = self.gated * hidden * self.heads * self.v_dim
            return low_rank + gate + self.qk_norm
        return (1 + self.gated) * (hidden + self.in_bias) * width + self.qk_norm

    def key_value(self, hidden: int) -> int:
        """Return the weights of keys and values: h 2 H_kv d, or those to and from the latent."""
        if self.shares_cache:
            return 0
        width = self.cached - self.value_of_key * self.kv_heads * self.v_dim
        down = (hidden + self.in_bias) * width
        if self.latent:
            up = self.heads * (self.qk_dim - self.rope_dim + self.v_dim)
            return down + self.latent * (1 + up)
        return down + self.shared_key_value * self.qk_dim

    def output(self, hidden: int) -> int:
        """Weights of the output projection and of the sinks."""
        width = self.heads * self.v_dim
        weights = width * hidden
        if self.out_rank:
            weights = self.out_rank * (width + self.out_groups * hidden)
        return weights + self.out_bias * hidden + self.sinks * self.heads

    def compressor(self, hidden: int, width: int = 0) -> int:
        """Return the weights that pool tokens into an entry: value, gate, position bias and norm.

        Pools overlap where an indexer selects entries.
        """
        if not self.compression:
            return 0
        width = width or self.qk_dim
        pooled = width * (1 + bool(self.top_tokens))
        return 2 * hidden * pooled + self.compression * pooled + width

    def indexer(self, hidden: int) -> int:
        """Return the weights of the indexer: its queries, a key per entry, and a weight per head.

        Queries come from the query's low rank, if it has one.
        """
        if not self.index_heads:  # none, or another layer's choice is taken
            return 0
        key_weights = (hidden + 2) * self.index_dim
        if self.compression:
            key_weights = self.compressor(hidden, self.index_dim)
        query_width = self.index_heads * self.index_dim
        head_weights = self.index_weighted * hidden * self.index_heads
        return (self.q_rank or hidden) * query_width + key_weights + head_weights


NO_ATTENTION = Attention(0, 0, 0, 0)


class FeedForward(NamedTuple):
    """Feed-forward part of a layer: dense without `experts`, absent without `width`."""

    width: int  # dense width, or the width of one expert
    matrices: int  # 3 with a gate, 2 without
    experts: int = 0
    active: int = 0  # experts per token
    shared_width: int = 0  # width of the experts every token passes
    latent: int = 0  # routed experts work on this width instead of the hidden one
    bias: bool = False  # every matrix has one
    router_bias: bool = False
    shared_gate: bool = False  # the shared expert is scaled by a gate of its own

    def expert_parameters(self, hidden: int) -> int:
        """Weights of one routed expert."""
        return self._matrix_parameters(self.latent or hidden)

    def _matrix_parameters(self, side: int) -> int:
        inner_matrices = self.matrices - 1  # their biases are as wide as the part
        biases = self.bias * (inner_matrices * self.width + side)
        return self.matrices * side * self.width + biases

    def common_parameters(self, hidden: int) -> int:
        """Return the weights of all tokens beside experts: router, shared experts, latent."""
        router = self.experts * (hidden + self.router_bias)
        shared = self.matrices * hidden * self.shared_width + self.shared_gate * hidden
        return router + shared + 2 * hidden * self.latent

    def parameters(self, hidden: int) -> int:
        """Weights, all experts counted."""
        return self._parameters_of_experts(hidden, self.experts)

    def active_parameters(self, hidden: int) -> int:
        """Weights one token passes."""
        return self._parameters_of_experts(hidden, self.active)

    def _parameters_of_experts(self, hidden: int, experts: int) -> int:
        if not self.experts:
            return self._matrix_parameters(hidden)
        return self.common_parameters(hidden) + experts * self.expert_parameters(hidden)


NO_FEED_FORWARD = FeedForward(0, 0)


class StateMixer(NamedTuple):
    """A state-space or linear-attention layer, with a fixed state per sequence and no cache."""

    heads: int
    head_dim: int  # width of a value head
    groups: int  # heads share the keys and queries of a group (Mamba's B and C)
    state: int  # width of a key
    kernel: int  # taps of the short convolution before the recurrence
    # numbers a head and token that steer the recurrence: 1 for Mamba-2, 2 for the gated delta rule
    controls: int
    scalars: int  # learned scalars a head
    norm: int  # scales of the gated norm behind the recurrence
    passes: int  # multiply-adds a token spends on each number of the state
    conv_bias: bool = False
    # each number of a key decays by itself, by a product through this rank; zero: one decay a head,
    # among the controls
    decay_rank: int = 0
    gate_rank: int = 0  # the gate passes through this rank; zero: it is as wide as the values

    @property
    def inner(self) -> int:
        """Width of the values: H d."""
        return self.heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Width the convolution runs over: values, keys and queries."""
        return self.inner + 2 * self.groups * self.state

    @property
    def state_numbers(self) -> int:
        """Numbers of the recurrent state per sequence and layer: H d n."""
        return self.inner * self.state

    @property
    def fixed_numbers_per_sequence(self) -> int:
        """Return the numbers per sequence and layer: state and the convolution's last inputs."""
        return self.state_numbers + self.convolved * max(self.kernel - 1, 0)

    @property
    def projected(self) -> int:
        """Width of the input projection: gate, values, keys, queries, controls."""
        return (self.gate_rank or self.inner) + self.convolved + self.controls * self.heads

    def parameters(self, hidden: int) -> int:
        """Weights of projections, convolution, scalars and norm."""
        taps = self.kernel + self.conv_bias
        key_width = self.groups * self.state
        decays = 0
        if self.decay_rank:  # each number of a key decays by itself, with a bias
            decays = self.decay_rank * (hidden + key_width) + key_width
        return (
            hidden * self.projected
            + self.convolved * taps
            + self.scalars * self.heads
            + self.norm
            + self.inner * hidden
            + self.gate_rank * self.inner
            + decays
        )


class LayerBlock(NamedTuple):
    """Equal layers anywhere in the stack: attention or a mixer, a feed-forward part, or both."""

    layers: int
    attention: Attention = NO_ATTENTION
    feed_forward: FeedForward = NO_FEED_FORWARD
    mixer: StateMixer | None = None
    other_weights: int = 0  # norms and other small weights of one layer
    # width of an embedding that the layer has of its own: gated, and added to the hidden state
    input_width: int = 0

    def parameters(self, hidden: int) -> int:
        """Weights of one layer, all experts counted."""
        return self.common(hidden) + self.feed_forward.parameters(hidden)

    def active_parameters(self, hidden: int) -> int:
        """Weights one token passes in one layer."""
        return self.common(hidden) + self.feed_forward.active_parameters(hidden)

    def common(self, hidden: int) -> int:
        """Weights of one layer without its feed-forward part."""
        mixer = self.mixer.parameters(hidden) if self.mixer else 0
        inputs: int = numbers_of(input_sides(hidden, self.input_width))
        return self.attention.parameters(hidden) + mixer + self.other_weights + inputs


def merge_equal_layers(layers: Iterable[LayerBlock]) -> tuple[LayerBlock, ...]:
    """Return the kinds of layers in order of first appearance, equal ones counted together."""
    counts = sums_by_key((layer._replace(layers=0), layer.layers) for layer in layers)
    return tuple(kind._replace(layers=count) for kind, count in counts.items() if count)


BY_KEYS = "read by its keys"  # begins what is said of a model whose family is not known


class StoredFormats(NamedTuple):
    """Number formats of the parts of a checkpoint; empty where nothing is said."""

    dense: str = ""
    attention: str = ""
    experts: str = ""
    cache: str = ""

    @property
    def text(self) -> str:
        """Parts with their formats, in words."""
        parts = zip(("weights", "attention", "experts", "cache"), self, strict=True)
        distinct = [
            f"{part} {form.upper()}"
            for part, form in parts
            if form and (part == "weights" or form != self.dense)
        ]
        return ", ".join(distinct)


class Architecture(NamedTuple):
    """A decoder-only model, without modules for other media and for multi-token prediction."""

    id: str
    hidden: int
    vocabulary: int
    tied: bool  # input and output embeddings are one matrix
    context: int
    blocks: tuple[LayerBlock, ...]
    source: str  # where its figures come from
    note: str = ""
    positions: int = 0  # learned positions
    other_weights: int = 0  # weights outside the layers: the last norm
    lookups: int = 0  # weights of the embeddings of single layers, of which a token reads a row
    # layers that predict further tokens
    prediction_layers: int = 0
    # one of them, where it is not like the last kind of layer
    prediction_block: LayerBlock | None = None
    # formats its checkpoint is stored in, where the config says so
    stored: StoredFormats | None = None
    # how it was read, where its family is another or not known
    reading: str = ""
    # keys that speak of structure and were not read
    unread: tuple[str, ...] = ()

    @property
    def is_read_by_keys(self) -> bool:
        """Whether no reader knows its family."""
        return self.reading.startswith(BY_KEYS)

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(block.layers for block in self.blocks)

    @property
    def has_experts(self) -> bool:
        """Whether a feed-forward part consists of experts."""
        return any(block.feed_forward.experts for block in self.blocks)

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - a model is a plain value
    def attentions(self) -> dict[Attention, int]:
        """Return the number of layers by kind of attention.

        Their feed-forward parts may differ.
        """
        return sums_by_key(
            (block.attention, block.layers) for block in self.blocks if block.attention.heads
        )

    @property
    def mixers(self) -> dict[StateMixer, int]:
        """Layers by kind of state-space or linear-attention mixer."""
        return sums_by_key((block.mixer, block.layers) for block in self.blocks if block.mixer)

    @property
    def feed_forwards(self) -> dict[FeedForward, int]:
        """Layers by kind of feed-forward part."""
        return sums_by_key(
            (block.feed_forward, block.layers) for block in self.blocks if block.feed_forward.width
        )

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - a model is a plain value
    def expert_parameters(self) -> int:
        """Weights of the routed experts, which expert parallelism spreads."""
        return sum(
            layers * part.experts * part.expert_parameters(self.hidden)
            for part, layers in self.feed_forwards.items()
        )

    @property
    def embedding_parameters(self) -> int:
        """Weights of input and output embeddings, of learned positions and of single layers."""
        ends = self.vocabulary * (2 - self.tied)
        return self.hidden * (ends + self.positions) + self.lookups

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - a model is a plain value
    def parameters(self) -> int:
        """All weights."""
        return (
            self.embedding_parameters
            + self.other_weights
            + sum(block.layers * block.parameters(self.hidden) for block in self.blocks)
        )

    @property
    def active_parameters(self) -> int:
        """Weights one token passes, the input embedding's lookup left out."""
        layers = sum(block.layers * block.active_parameters(self.hidden) for block in self.blocks)
        return self.hidden * self.vocabulary + self.other_weights + layers

    @property
    def prediction_parameters(self) -> int:
        """Return the weights of the multi-token prediction layers.

        Each has a product that joins two hidden states, and three norms.
        """
        block = self.prediction_block or self.blocks[-1]
        layer = block.parameters(self.hidden) + 2 * self.hidden**2 + 3 * self.hidden
        return self.prediction_layers * layer

    @property
    def cached(self) -> int:
        """Return the cached numbers per token of all layers, without windows.

        They are entries and indexer keys.
        """
        return sum(
            layers * (attention.cached + attention.index_dim) // max(attention.compression, 1)
            for attention, layers in self.attentions.items()
            if not attention.shares_cache and (attention.compression or not attention.window)
        )

    @property
    def fixed_numbers_per_sequence(self) -> int:
        """Return the most fixed numbers of a sequence: states of mixers and entries of windows."""
        windows = sum(
            layers * attention.window * attention.cached
            for attention, layers in self.attentions.items()
            if not attention.shares_cache
        )
        return windows + sum(
            layers * mixer.fixed_numbers_per_sequence for mixer, layers in self.mixers.items()
        )


Side = tuple[Any, Any]  # inner and outer side of a product's weights


def numbers_of(sides: Iterable[Side]) -> Any:
    """Return the total number of weights of products with `sides`.

    Args:
        sides: Inner and outer side of each product.

    """
    return sum(inner * outer for inner, outer in sides)


def up_and_down(feed_forward: FeedForward, hidden: int, width: Any) -> tuple[Side, Side]:
    """Return the sides of a feed-forward part's products, up and down.

    Args:
        feed_forward: The feed-forward part; a gate doubles the outer side of the first product.
        hidden: Hidden size of the model.
        width: Width of the feed-forward part, a number or an array.

    Returns:
        Inner and outer side of the product into the width, then of the product out of the width.

    """
    return (hidden, (feed_forward.matrices - 1) * width), (width, hidden)


def input_sides(hidden: int, width: int) -> tuple[Side, ...]:
    """Return the sides of the products of a layer's own embedding.

    Two lead out of the hidden state, for the embedding and for its gate, and one leads back.

    Args:
        hidden: Hidden size of the model.
        width: Width of the embedding; zero where the layer has none.

    """
    return ((hidden, width), (hidden, width), (width, hidden)) if width else ()


def projections(attention: Attention, hidden: int, tensor_parallel: Any) -> dict[str, Side]:
    """Return the sides of one chip's attention projections, by name.

    Projections per head are split over the group. Latent and compressed projections are whole on
    every rank.

    Args:
        attention: The attention of a layer.
        hidden: Hidden size of the model.
        tensor_parallel: Ranks of the tensor-parallel group, a number or an array.

    Returns:
        Inner and outer side of each product, by name.

    """
    heads = attention.heads / tensor_parallel
    output = _output_sides(attention, hidden, tensor_parallel)
    down = (hidden, attention.q_rank + attention.cached)
    query_up = (attention.q_rank or hidden, heads * attention.qk_dim)
    if attention.shared_key_value:
        sides = {"attention down": down}
        if attention.compression:
            pools = 2 if attention.top_tokens else 1
            sides["compressor"] = (hidden, 2 * attention.qk_dim * pools)
        return {**sides, "query up": query_up, **output}
    if not attention.latent:
        # a gate is as wide as its query
        queries = heads * attention.qk_dim * (2 if attention.gated else 1)
        width = queries + keys_and_values(attention, tensor_parallel)
        return {"query key value": (hidden, width), **output}
    up_width = attention.qk_dim - attention.rope_dim + attention.v_dim
    sides = {
        "attention down": down,
        "query up": query_up,
        "key value up": (attention.latent, heads * up_width),
    }
    if attention.gated:
        sides["gate"] = (hidden, heads * attention.v_dim)
    return {**sides, **output}


def _output_sides(attention: Attention, hidden: int, tensor_parallel: Any) -> dict[str, Side]:
    values = attention.heads / tensor_parallel * attention.v_dim
    if not attention.out_rank:
        return {"attention out": (values, hidden)}
    # heads leave in groups, each through a low rank
    ranks = attention.out_groups * attention.out_rank / tensor_parallel
    return {"out down": (values, attention.out_rank), "attention out": (ranks, hidden)}


def keys_and_values(attention: Attention, tensor_parallel: Any) -> Any:
    """Return the width of a token's keys and values on one chip.

    Where the group has more ranks than key-value heads, several ranks hold the same head. The value
    counts as zero where the key's product also makes the value. Both count as zero where they are
    those of an earlier layer.

    Args:
        attention: The attention of a layer.
        tensor_parallel: Ranks of the tensor-parallel group, a number or an array.

    Returns:
        Numbers per token and layer.

    """
    if attention.shares_cache:
        return 0.0
    width = attention.qk_dim if attention.value_of_key else attention.qk_dim + attention.v_dim
    return np.ceil(attention.kv_heads / tensor_parallel) * width
