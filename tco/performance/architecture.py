"""Model architectures, read from the `config.json` that Hugging Face publishes for a model.

An architecture is structure: whole numbers that say which operators exist and how large they are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tco.catalog import Catalogue
from tco.errors import DataError, unknown
from tco.files import read_text


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention of one kind of layer. `latent` is zero for grouped-query attention, else MLA's cached width without rope."""

    heads: int
    kv_heads: int
    qk_dim: int  # width of a query or key head
    v_dim: int  # width of a value head
    q_rank: int = 0  # MLA: rank of the compressed query, zero if it is not compressed
    latent: int = 0  # MLA: rank of the compressed keys and values
    rope_dim: int = 0  # MLA: shared rotary part of the key

    @property
    def cached(self) -> int:
        """Numbers cached per token and layer: 2 H_kv d, or MLA's latent with its rotary part."""
        return self.latent + self.rope_dim if self.latent else self.kv_heads * (self.qk_dim + self.v_dim)

    def parameters(self, hidden: int) -> int:
        """Weights of the projections."""
        if not self.latent:
            return hidden * (self.heads * self.qk_dim + self.kv_heads * (self.qk_dim + self.v_dim)) + self.heads * self.v_dim * hidden
        query = hidden * self.q_rank + self.q_rank * self.heads * self.qk_dim if self.q_rank else hidden * self.heads * self.qk_dim
        nope = self.qk_dim - self.rope_dim
        return query + hidden * self.cached + self.latent * self.heads * (nope + self.v_dim) + self.heads * self.v_dim * hidden


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Feed-forward part of one kind of layer: dense where `experts` is zero."""

    width: int  # dense width, or the width of one expert
    matrices: int  # 3 with a gate, 2 without
    experts: int = 0
    active: int = 0  # experts per token
    shared_width: int = 0  # width of the experts every token passes

    def parameters(self, hidden: int) -> int:
        """Weights, all experts counted."""
        if not self.experts:
            return self.matrices * hidden * self.width
        return hidden * self.experts + self.matrices * hidden * (self.experts * self.width + self.shared_width)

    def active_parameters(self, hidden: int) -> int:
        """Weights one token passes."""
        if not self.experts:
            return self.parameters(hidden)
        return hidden * self.experts + self.matrices * hidden * (self.active * self.width + self.shared_width)


@dataclass(frozen=True, slots=True)
class Block:
    """A run of equal layers."""

    layers: int
    attention: Attention
    feed_forward: FeedForward


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder-only transformer."""

    id: str
    hidden: int
    vocabulary: int
    tied: bool  # input and output embeddings are one matrix
    context: int
    blocks: tuple[Block, ...]
    source: str

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(block.layers for block in self.blocks)

    @property
    def attentions(self) -> dict[Attention, int]:
        """Layers by kind of attention: runs of layers may differ in their feed-forward part only."""
        found: dict[Attention, int] = {}
        for block in self.blocks:
            found[block.attention] = found.get(block.attention, 0) + block.layers
        return found

    @property
    def expert_parameters(self) -> int:
        """Weights of the routed experts, which expert parallelism spreads."""
        return sum(
            b.layers * b.feed_forward.matrices * self.hidden * b.feed_forward.experts * b.feed_forward.width
            for b in self.blocks
            if b.feed_forward.experts
        )

    @property
    def embedding_parameters(self) -> int:
        """Weights of input and output embeddings."""
        return self.hidden * self.vocabulary * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """All weights, norms left out."""
        return self.embedding_parameters + sum(
            b.layers * (b.attention.parameters(self.hidden) + b.feed_forward.parameters(self.hidden)) for b in self.blocks
        )

    @property
    def active_parameters(self) -> int:
        """Weights one token passes, the input embedding's lookup left out."""
        return self.hidden * self.vocabulary + sum(
            b.layers * (b.attention.parameters(self.hidden) + b.feed_forward.active_parameters(self.hidden)) for b in self.blocks
        )


def load_model(catalogue: Catalogue, name: str) -> Architecture:
    """Return the architecture of a model of the catalogue, or of a `config.json` a path leads to."""
    path = Path(name)
    if path.suffix == ".json" or path.is_dir():
        path = path / "config.json" if path.is_dir() else path
        return architecture(read_config(path), path.parent.name or name, str(path))
    if name not in catalogue.models:
        raise unknown("model", name, catalogue.models)
    path = catalogue.models[name]
    found: Architecture = catalogue.once(path, lambda: architecture(read_config(path), name, str(path)))
    return found


def read_config(path: Path) -> dict[str, Any]:
    """Return the content of a config.json."""
    try:
        config = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: broken JSON ({error.msg})") from None
    if not isinstance(config, dict):
        raise DataError(f"{path}: expected a JSON object")
    return config


def architecture(config: dict[str, Any], name: str, where: str) -> Architecture:
    """Return the architecture a config describes; a model type not known here raises `DataError` by name."""
    kind = str(config.get("model_type", ""))
    if kind not in READERS:
        raise unknown("model_type", kind, READERS, where)

    def whole(key: str, default: int | None = None) -> int:
        value = config.get(key, default)
        if value is None and default is None:
            raise DataError(f"{where}: the key {key!r} is missing")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
            raise DataError(f"{where}: {key} is {value!r}, expected a whole number")
        return value

    blocks = READERS[kind](whole)
    return Architecture(
        name,
        whole("hidden_size"),
        whole("vocab_size"),
        bool(config.get("tie_word_embeddings", False)),
        whole("max_position_embeddings", 2048),
        blocks,
        where,
    )


def grouped_query(whole: Any) -> Attention:
    """Return grouped-query attention as Llama's config spells it."""
    heads = whole("num_attention_heads")
    width = whole("head_dim", whole("hidden_size") // max(heads, 1))
    return Attention(heads, whole("num_key_value_heads", heads), width, width)


def read_llama(whole: Any) -> tuple[Block, ...]:
    """Llama and its kin: dense, gated, grouped-query."""
    return (Block(whole("num_hidden_layers"), grouped_query(whole), FeedForward(whole("intermediate_size"), 3)),)


def read_deepseek(whole: Any) -> tuple[Block, ...]:
    """DeepSeek V2 and V3: latent attention, first layers dense, then fine-grained experts with shared ones."""
    rope, nope = whole("qk_rope_head_dim"), whole("qk_nope_head_dim")
    heads = whole("num_attention_heads")
    attention = Attention(heads, heads, nope + rope, whole("v_head_dim"), whole("q_lora_rank", 0), whole("kv_lora_rank"), rope)
    width, layers, dense = whole("moe_intermediate_size"), whole("num_hidden_layers"), whole("first_k_dense_replace", 0)
    experts = FeedForward(width, 3, whole("n_routed_experts"), whole("num_experts_per_tok"), whole("n_shared_experts", 0) * width)
    moe = Block(layers - dense, attention, experts)
    return (Block(dense, attention, FeedForward(whole("intermediate_size"), 3)), moe) if dense else (moe,)


READERS = {"llama": read_llama, "deepseek_v3": read_deepseek, "deepseek_v2": read_deepseek}
