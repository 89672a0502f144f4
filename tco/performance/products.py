"""The matrix products of a layer by the sides of their weights on one chip."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.performance.attention import Attention
from tco.performance.layers import FeedForward

Sides = tuple[tuple[Any, Any], ...]  # inner and outer side of the weights of some products


def numbers_of(sides: Sides) -> Any:
    """Return how many weights some products have."""
    return sum(inner * outer for inner, outer in sides)


def gated(f: FeedForward, hidden: int, width: Any) -> Sides:
    """Return the sides of a feed-forward's products: into its width, with a gate twice, and out."""
    return ((hidden, (f.matrices - 1) * width), (width, hidden))


def projections(a: Attention, hidden: int, tensor_parallel: Any) -> Sides:
    """Return the sides of one chip's projections: per-head ones split over the group, MLA's latent ones whole on every rank."""
    heads = a.heads / tensor_parallel
    if not a.latent:
        cached = a.kv_heads / np.minimum(tensor_parallel, a.kv_heads) * (a.qk_dim + a.v_dim)
        return ((hidden, heads * a.qk_dim + cached), (heads * a.v_dim, hidden))
    up = ((a.q_rank or hidden, heads * a.qk_dim), (a.latent, heads * (a.qk_dim - a.rope_dim + a.v_dim)))
    return ((hidden, (a.q_rank or 0) + a.cached), *up, (heads * a.v_dim, hidden))
