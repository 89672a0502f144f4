"""A whole model: its layers, embeddings and what it counts of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tco.models.attention import Attention
from tco.models.layers import Block, FeedForward, StateMixer


class Architecture(NamedTuple):
    """A decoder-only model, its modules for other media and for predicting further tokens left out of every count."""

    id: str
    hidden: int
    vocabulary: int
    tied: bool  # input and output embeddings are one matrix
    context: int
    blocks: tuple[Block, ...]
    source: str  # where its figures come from
    note: str = ""
    positions: int = 0  # learned positions
    others: int = 0  # weights outside the layers: the last norm
    prediction_layers: int = 0  # layers that predict further tokens, each like the last kind of layer

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(block.layers for block in self.blocks)

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - a model is a plain value
    def attentions(self) -> dict[Attention, int]:
        """Layers by kind of attention: kinds of layers may differ in their feed-forward part only."""
        found: dict[Attention, int] = {}
        for block in self.blocks:
            if block.attention.heads:
                found[block.attention] = found.get(block.attention, 0) + block.layers
        return found

    @property
    def mixers(self) -> dict[StateMixer, int]:
        """Layers by kind of state-space or linear-attention mixer."""
        found: dict[StateMixer, int] = {}
        for block in self.blocks:
            if block.mixer:
                found[block.mixer] = found.get(block.mixer, 0) + block.layers
        return found

    @property
    def feed_forwards(self) -> dict[FeedForward, int]:
        """Layers by kind of feed-forward part."""
        found: dict[FeedForward, int] = {}
        for block in self.blocks:
            if block.feed_forward.width:
                found[block.feed_forward] = found.get(block.feed_forward, 0) + block.layers
        return found

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - a model is a plain value
    def expert_parameters(self) -> int:
        """Weights of the routed experts, which expert parallelism spreads."""
        parts = [(b.layers, b.feed_forward) for b in self.blocks]
        return sum(layers * f.experts * f.expert_parameters(self.hidden) for layers, f in parts)

    @property
    def embedding_parameters(self) -> int:
        """Weights of input and output embeddings and of learned positions."""
        return self.hidden * (self.vocabulary * (1 if self.tied else 2) + self.positions)

    @property
    @lru_cache(maxsize=256)  # noqa: B019 - a model is a plain value
    def parameters(self) -> int:
        """All weights."""
        return self.embedding_parameters + self.others + sum(b.layers * b.parameters(self.hidden) for b in self.blocks)

    @property
    def active_parameters(self) -> int:
        """Weights one token passes, the input embedding's lookup left out."""
        layers = sum(b.layers * b.active_parameters(self.hidden) for b in self.blocks)
        return self.hidden * self.vocabulary + self.others + layers

    @property
    def prediction_parameters(self) -> int:
        """Weights of the layers that predict further tokens, each with the product that joins two hidden states, and three norms."""
        layer = self.blocks[-1].parameters(self.hidden) + 2 * self.hidden**2 + 3 * self.hidden
        return self.prediction_layers * layer

    @property
    def cached(self) -> int:
        """Numbers the cache grows by with each token, windows left out: entries and indexer keys of all layers."""
        kinds = [(layers, a, max(a.compression, 1)) for a, layers in self.attentions.items() if a.compression or not a.window]
        return sum(layers * (a.cached + a.index_dim) // compression for layers, a, compression in kinds)

    @property
    def held(self) -> int:
        """Numbers a sequence holds at most whatever its length: states of mixers, and entries inside windows."""
        windows = sum(layers * a.window * a.cached for a, layers in self.attentions.items())
        return windows + sum(layers * mixer.held for mixer, layers in self.mixers.items())
