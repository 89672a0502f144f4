"""The work of feed-forward parts: dense and shared ones, router, permutation, exchange and grouped products of experts."""

from __future__ import annotations

import numpy as np

from tco.foundation.formula import select
from tco.models.layers import FeedForward
from tco.models.products import up_and_down
from tco.performance.chip.moe import group_tokens, permute_passes
from tco.performance.training import compute
from tco.performance.training.builder import Builder
from tco.performance.training.items import FULL
from tco.performance.training.traffic import copies_elsewhere, hidden_bytes, joined, span, spread_time


def feed_forward(builder: Builder, layers: int, f: FeedForward) -> None:
    """Add a dense feed-forward part, or router and experts."""
    hidden, tensor, tokens = builder.job.model.hidden, builder.shape.tensor, builder.tokens
    dense = f.shared_width if f.experts else f.width
    if dense:
        name = "shared expert" if f.experts else "feed-forward"
        up, down = up_and_down(f, hidden, dense / tensor)
        builder.product(f"{name} up", layers, tokens, *up)
        builder.product(f"{name} down", layers, tokens, *down)
    if f.experts:
        experts(builder, layers, f)


def experts(builder: Builder, layers: int, f: FeedForward) -> None:
    """Add router, permutation, exchange and grouped products."""
    shape, job, practice, tokens = builder.shape, builder.job, builder.practice, builder.tokens
    width, local = f.latent or job.model.hidden, f.experts / shape.expert
    builder.product("router", layers, tokens, job.model.hidden, f.experts / shape.tensor)
    if f.latent:
        builder.product("expert latent", 2 * layers, tokens, job.model.hidden, f.latent / shape.tensor)
    narrow = min(f.width, width)
    own = group_tokens(tokens, f.active, shape.tensor)
    up, down = up_and_down(f, width, f.width)
    builder.product("experts up", layers, own, *up, local, narrow)
    builder.product("experts down", layers, own, *down, local, narrow)
    passes = permute_passes(select(job.fused_experts, 0.0, job.value("permute_passes")), practice.dereferences)
    moved = compute.sweep_bytes(own, width, 1.0, 0.0, passes, builder.element)
    builder.passes("expert permutation", layers, moved, moved, FULL)
    if np.all(np.asarray(shape.expert) == 1):
        return
    inner = np.minimum(shape.expert, shape.tensor * shape.context)
    domain, fabric = practice.fabric.domain, practice.fabric
    place = joined(span(domain, 1, inner), span(domain, shape.data_stride, shape.expert // inner))
    size = hidden_bytes(tokens, width, shape.tensor, builder.element)
    near = spread_time(size, copies_elsewhere(shape.expert, f.active), fabric.inner_rate(place.inside), fabric.inner_latency(place.inside))
    both = 2 * layers, 2 * layers  # dispatch and combine
    builder.link("expert exchange in a domain", size, near, both, select(job.fused_experts, 0.0, job.value("expert_exposed_inside")), "inside")
    far = spread_time(size, copies_elsewhere(place.across, f.active), fabric.outer_rate, fabric.outer_latency)
    builder.link("expert exchange across domains", 0.0, far, both, job.value("expert_exposed_across"), "across", builder.work.across)
