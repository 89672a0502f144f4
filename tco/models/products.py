"""The matrix products of a layer by the sides of their weights on one chip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tco.models.attention import Attention
from tco.models.layers import FeedForward

Side = tuple[Any, Any]  # inner and outer side of a product's weights


def numbers_of(sides: Iterable[Side]) -> Any:
    """Return how many weights some products have."""
    return sum(inner * outer for inner, outer in sides)


def up_and_down(f: FeedForward, hidden: int, width: Any) -> tuple[Side, Side]:
    """Return the sides of a feed-forward's products: into its width, with a gate twice, and out."""
    return (hidden, (f.matrices - 1) * width), (width, hidden)


def projections(a: Attention, hidden: int, tensor_parallel: Any) -> dict[str, Side]:
    """Return one chip's projections by name: per-head ones split over the group, latent and compressed ones whole on every rank."""
    heads = a.heads / tensor_parallel
    out = {"attention out": (heads * a.v_dim, hidden)}
    if a.out_rank:  # heads leave in groups, each through a low rank
        out = {"out down": (heads * a.v_dim, a.out_rank), "attention out": (a.out_groups * a.out_rank / tensor_parallel, hidden)}
    if a.shared_key_value:
        pooled = {"compressor": (hidden, 2 * a.qk_dim * (2 if a.top_tokens else 1))} if a.compression else {}
        return {"attention down": (hidden, a.q_rank + a.cached), **pooled, "query up": (a.q_rank or hidden, heads * a.qk_dim), **out}
    if not a.latent:
        queries = heads * a.qk_dim * (2 if a.gated else 1)  # a gate is as wide as its query
        return {"query key value": (hidden, queries + keys_and_values(a, tensor_parallel)), **out}
    return {
        "attention down": (hidden, a.q_rank + a.cached),
        "query up": (a.q_rank or hidden, heads * a.qk_dim),
        "key value up": (a.latent, heads * (a.qk_dim - a.rope_dim + a.v_dim)),
        **out,
    }


def keys_and_values(a: Attention, tensor_parallel: Any) -> Any:
    """Return the numbers of a token's keys and values that one chip makes: heads beyond their number stand on several ranks."""
    return np.ceil(a.kv_heads / tensor_parallel) * (a.qk_dim + a.v_dim)
