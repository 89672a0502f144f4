"""Attention of one kind of layer: grouped-query, latent (MLA), windowed, sparse or over a compressed cache."""

from __future__ import annotations

from typing import NamedTuple


class Attention(NamedTuple):
    """Attention of one kind of layer; without heads the layer has none.

    `latent` is zero for grouped-query attention, else MLA's cached width without rope. A query reaches every earlier token, or
    the last `window` ones (with `chunked`: those of its own chunk of `window`), or the `top_tokens` that an indexer scores
    highest. With `compression` c one cached entry stands for c tokens, and the last `window` tokens are reached beside them.
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
    compression: int = 0
    shared_key_value: bool = False  # one cached vector serves as key and as value
    out_groups: int = 0  # heads leave in groups through a low rank
    out_rank: int = 0
    qk_norm: int = 0  # scales of the norms of queries and keys
    in_bias: bool = False
    out_bias: bool = False
    gated: bool = False  # an output gate as wide as the query
    sinks: bool = False  # a learned logit a head, which takes part in no product

    @property
    def cached(self) -> int:
        """Numbers cached per entry and layer: 2 H_kv d, or MLA's latent with its rotary part; the indexer's keys left out."""
        if self.latent:
            return self.latent + self.rope_dim
        return self.kv_heads * (self.qk_dim if self.shared_key_value else self.qk_dim + self.v_dim)

    def parameters(self, hidden: int) -> int:
        """Weights of the projections, with their biases and norms."""
        return self.query(hidden) + self.key_value(hidden) + self.output(hidden) + self.compressor(hidden) + self.indexer(hidden)

    def query(self, hidden: int) -> int:
        """Weights of the query, its low rank and its gate, and of the norms of queries and keys."""
        width = self.heads * self.qk_dim
        if self.q_rank:
            return hidden * self.q_rank + self.q_rank + self.q_rank * width + self.qk_norm + (self.q_rank if self.in_bias else 0)
        gates = 2 if self.gated else 1
        return gates * (hidden * width + (width if self.in_bias else 0)) + self.qk_norm

    def key_value(self, hidden: int) -> int:
        """Weights of keys and values: h 2 H_kv d, or the way down to the latent, its norm, and the way up."""
        down = hidden * self.cached + (self.cached if self.in_bias else 0)
        if self.latent:
            nope = self.qk_dim - self.rope_dim
            return down + self.latent + self.latent * self.heads * (nope + self.v_dim)
        return down + (self.qk_dim if self.shared_key_value else 0)

    def output(self, hidden: int) -> int:
        """Weights of the output projection and of the sinks."""
        width = self.heads * self.v_dim
        weights = width * self.out_rank + self.out_groups * self.out_rank * hidden if self.out_rank else width * hidden
        return weights + (hidden if self.out_bias else 0) + (self.heads if self.sinks else 0)

    def compressor(self, hidden: int, width: int = 0) -> int:
        """Weights that pool c tokens into an entry: value and gate projections, position bias, norm; overlapping where an indexer selects."""
        if not self.compression:
            return 0
        width = width or self.qk_dim
        pooled = width * (2 if self.top_tokens else 1)
        return 2 * hidden * pooled + self.compression * pooled + width

    def indexer(self, hidden: int) -> int:
        """Weights of the indexer: queries from the query's low rank, one key an entry, a weight a head."""
        if not self.top_tokens:
            return 0
        keys = self.compressor(hidden, self.index_dim) if self.compression else (hidden + 2) * self.index_dim
        return self.q_rank * self.index_heads * self.index_dim + keys + hidden * self.index_heads


NO_ATTENTION = Attention(0, 0, 0, 0)
