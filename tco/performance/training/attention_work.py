"""The work of attention and of recurrent layers: projections, core, the ring that splits sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.trace import scope
from tco.models.attention import Attention
from tco.models.layers import StateMixer
from tco.models.products import keys_and_values, projections
from tco.performance.chip.flops import keys_met
from tco.performance.chip.roofline import repeated
from tco.performance.training import attention_core as chip_attention
from tco.performance.training import compute
from tco.performance.training.builder import Builder
from tco.performance.training.items import FULL, SELECTIVE, Item, Part
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.software import BEST, UNFUSED
from tco.performance.training.traffic import gathered, hidden_bytes, strided

FORWARD_SCORE_PASSES, BACKWARD_SCORE_PASSES = 6, 8  # unfused attention: scores, mask, softmax, dropout, each read and written


def attention(builder: Builder, layers: int, a: Attention) -> None:
    """Add projections and core of one kind of attention."""
    tensor = builder.shape.tensor
    *before, (last, sides) = projections(a, builder.job.model.hidden, tensor).items()
    for name, (inner, outer) in before:
        builder.product(name, layers, builder.tokens, inner, outer)
    for keys in keys_met(a, builder.job.sequence):
        core(builder, layers, a, a.heads / tensor, keys)
    builder.product(last, layers, builder.tokens, *sides)
    context_ring(builder, layers, a.cached if a.latent else keys_and_values(a, tensor))


def core(builder: Builder, layers: int, a: Attention, heads: Any, keys: Any) -> None:
    """Add scores, softmax and values over some keys a query."""
    job, chip = builder.job, builder.practice.chip
    with scope("attention core"):
        once = chip_attention.core(chip, builder.tokens, keys, heads, a.qk_dim, a.v_dim)
        share = kernel_share(job, builder.practice)
        times = [repeated(compute.attention_pass_time(once.time, products, share), layers) for products in (1.0, job.value("attention_backward"))]
        part = Part(once.flops, 0.0, once.time, builder.practice.wide.peak)
        again = FULL if job.software.fused else SELECTIVE
        builder.work.items.append(Item("attention core", "product", times[0], times[1], again, layers, None, part, (part, part)))
    if not job.software.fused:
        ways = [
            compute.score_traffic(builder.tokens, job.sequence, heads, passes, builder.element)
            for passes in (FORWARD_SCORE_PASSES, BACKWARD_SCORE_PASSES)
        ]
        builder.passes("attention scores in memory", layers, ways[0], ways[1], SELECTIVE)


def kernel_share(job: Job, practice: Practice) -> Any:
    """Return the share of today's rate that the job's attention kernel reaches on a chip."""
    if job.software.attention in (BEST, UNFUSED):
        return 1.0
    shares = (job.values[f"performance.{job.software.attention}.{name}"] for name in ("attention_share", "attention_share_asynchronous"))
    return compute.kernel_share(practice.chip.part("asynchronous_matrix"), *shares)


def context_ring(builder: Builder, layers: int, kept: Any) -> None:
    """Add the exchange of keys and values around a context-parallel group: once forward, twice backward."""
    shape, job, links = builder.shape, builder.job, builder.practice.links
    if np.all(np.asarray(shape.context) == 1):
        return
    with scope("context-parallel ring"):
        size = hidden_bytes(compute.rank_tokens(shape.micro_batch, job.sequence, 1.0), kept, 1.0, builder.element)
        found = gathered(links, size, strided(links, shape.tensor, shape.context))
    builder.link("context-parallel ring", size, found, (layers, 2 * layers), job.value("context_exposed"))


def mixer(builder: Builder, layers: int, m: StateMixer) -> None:
    """Add a state-space or linear-attention layer: two projections, and kernels that pass through memory."""
    tensor, hidden = builder.shape.tensor, builder.job.model.hidden
    builder.product("mixer in", layers, builder.tokens, hidden, m.projected / tensor)
    builder.product("mixer out", layers, builder.tokens, m.inner / tensor, hidden)
    width = (m.inner + m.groups * m.state) / tensor
    passes = builder.job.value("mixer_passes")
    ways = [compute.sweep_bytes(builder.tokens, 0.0, 1.0, times * width, passes, builder.element) for times in (1, 2)]
    builder.passes("mixer recurrence", layers, ways[0], ways[1], FULL)
