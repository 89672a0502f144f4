"""The work of feed-forward parts: dense and shared ones, router, permutation, exchange and grouped products of experts."""

from __future__ import annotations

import numpy as np

from tco.fabric.links import Group
from tco.foundation.formula import select
from tco.foundation.trace import scope
from tco.models.layers import FeedForward
from tco.models.products import up_and_down
from tco.performance.chip.messages import per_rank
from tco.performance.chip.moe import group_tokens, permute_passes
from tco.performance.training import compute
from tco.performance.training.builder import Builder
from tco.performance.training.items import FULL, NEVER
from tco.performance.training.job import Job
from tco.performance.training.traffic import among, hidden_bytes, joined, spread, strided


def feed_forward(builder: Builder, layers: int, f: FeedForward) -> None:
    """Add a dense feed-forward part, or router and experts."""
    hidden, tensor, tokens = builder.job.model.hidden, builder.shape.tensor, builder.tokens
    dense = f.shared_width if f.experts else f.width
    if dense:
        name = "shared expert" if f.experts else "feed-forward"
        up, down = up_and_down(f, hidden, dense / tensor)
        builder.product(f"{name} up", layers, tokens, *up)
        builder.product(f"{name} down", layers, tokens, *down, again=down_again(builder.job))
    if f.experts:
        experts(builder, layers, f)


def experts(builder: Builder, layers: int, f: FeedForward) -> None:
    """Add router, permutation, exchange and grouped products."""
    shape, job, practice, tokens = builder.shape, builder.job, builder.practice, builder.tokens
    width, local = f.latent or job.model.hidden, f.experts / shape.expert
    builder.product("router", layers, tokens, job.model.hidden, f.experts / shape.tensor)
    if f.latent:
        builder.product("expert latent", 2 * layers, tokens, job.model.hidden, f.latent / shape.tensor)
    own = group_tokens(tokens, f.active, shape.tensor)
    up, down = up_and_down(f, width, f.width)
    builder.product("experts up", layers, own, *up, local)
    builder.product("experts down", layers, own, *down, local, down_again(job))
    passes = permute_passes(select(job.software.fused_experts, 0.0, job.value("permute_passes")), practice.dereferences)
    moved = compute.sweep_bytes(own, width, 1.0, 0.0, passes, builder.element)
    builder.passes("expert permutation", layers, moved, moved, FULL)
    if np.all(np.asarray(shape.expert) == 1):
        return
    links = practice.links
    inner = np.minimum(shape.expert, shape.tensor * shape.context)
    group = joined(strided(links, 1, inner), strided(links, shape.data_stride, shape.expert // inner))
    own, token = per_rank(tokens, shape.tensor), hidden_bytes(1, width, 1, builder.element)
    size, both = hidden_bytes(tokens, width, shape.tensor, builder.element), (2 * layers, 2 * layers)  # dispatch and combine
    with scope("expert exchange in a domain"):
        near = spread(links, own, token, f.active, Group(shape.expert, 1, shape.expert, 1), "inside")
    builder.link("expert exchange in a domain", size, near, both, job.value("expert_exposed_inside"))
    with scope("expert exchange across domains"):
        far = spread(links, own, token, f.active, among(group), "across")
    builder.link("expert exchange across domains", 0.0, far, both, job.value("expert_exposed_across"), builder.work.across)


def down_again(job: Job) -> int:
    """Return when the way out of a feed-forward part is computed again: no gradient needs its result, which compilers see."""
    return NEVER if job.software.compiled else FULL
