"""The work of one micro-batch through all layers on one chip: products, passes through memory, collectives.

Nothing here depends on pipeline, data parallelism or schedule, so a search computes it for the few hundred distinct shapes only
and gathers. Each item keeps its forward and backward time, and when recomputation does its forward part again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.foundation.trace import scope
from tco.models.architecture import Architecture, Block
from tco.performance.training import compute
from tco.performance.training.attention_work import attention, mixer
from tco.performance.training.builder import Builder
from tco.performance.training.expert_work import feed_forward
from tco.performance.training.items import AGAIN, FULL, NEVER, SELECTIVE, Shape, Work
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice
from tco.performance.training.traffic import exposed_share, gathered, hidden_bytes, strided

# Times a kernel of the hidden state reads or writes it, forward and backward. Norms go row by row, and sum the gradients of their
# weights in a second sweep; residuals are added, and the gradients of both branches. A dropout mask is a byte of a number's two.
NORM_PASSES, RESIDUAL_PASSES, MASK_PASSES = (2, 5), (3, 3), (0.5, 2.5)
ROTARY_PASSES = 2  # queries and keys
LOGIT_PASSES, LOGIT_SHARES = 6, (0.3, 0.7)  # softmax and loss over the vocabulary, and how they divide into forward and backward


def elementwise(builder: Builder, block: Block) -> None:
    """Add norms, residuals, rotary positions and activation functions."""
    shape, job, a, f = builder.shape, builder.job, block.attention, block.feed_forward
    again = SELECTIVE if job.software.fused else FULL
    wide = parts_of(block) * job.model.hidden
    masks = MASK_PASSES if job.software.dropout else (0, 0)
    residuals = [added + mask for added, mask in zip(RESIDUAL_PASSES, masks, strict=True)]
    for name, counts, bandwidth in (("norms", NORM_PASSES, builder.practice.row_bandwidth), ("residuals", residuals, None)):
        with scope(name):
            moved = [compute.sweep_bytes(builder.tokens, wide, builder.wide_split, 0.0, count, builder.element) for count in counts]
        builder.passes(name, block.layers, moved[0], moved[1], again, bandwidth=bandwidth)
    rotated = ROTARY_PASSES * (a.heads + a.kv_heads) * a.qk_dim
    active = f.active * f.width + f.shared_width if f.experts else f.width
    passes = job.value("elementwise_passes")
    moved = [
        compute.sweep_bytes(builder.tokens, 0.0, 1.0, (rotated + active * times) / shape.tensor, passes, builder.element)
        for times in (f.matrices, 2 * f.matrices - 1)
    ]
    builder.passes("activation functions", block.layers, moved[0], moved[1], again)
    if f.experts and f.bias:  # no fused kernel covers bias, clamp and probability of each expert
        width = f.active * f.width / shape.tensor
        extra = [compute.sweep_bytes(builder.tokens, 0.0, 1.0, width * share, job.value("biased_expert_passes"), builder.element) for share in (1, 2)]
        builder.passes("activations of experts with bias", block.layers, extra[0], extra[1], FULL)


def tensor_collectives(builder: Builder, parts: int) -> None:
    """Add all-gather and reduce-scatter before and after each part of a layer, the same bytes as two all-reduces a layer."""
    shape, job, links = builder.shape, builder.job, builder.practice.links
    if np.all(np.asarray(shape.tensor) == 1):
        return
    with scope("tensor-parallel collectives"):
        size = hidden_bytes(builder.tokens, job.model.hidden, 1.0, builder.element)
        share = exposed_share(shape.overlap, job.value("tensor_exposed"))
        found = gathered(links, size, strided(links, 1, shape.tensor))
    builder.link("tensor-parallel collectives", size, found, (2 * parts, 2 * parts), share)


def work_of(job: Job, practice: Practice, shape: Shape) -> Work:
    """Return the whole work of a micro-batch."""
    builder, model, tensor = Builder(job, practice, shape), with_predictions(job.model), shape.tensor
    ahead = model.prediction_layers
    parts = 0
    for kind, layers in model.attentions.items():
        attention(builder, layers, kind)
        parts += layers
    for recurrent, layers in model.mixers.items():
        mixer(builder, layers, recurrent)
        parts += layers
    for block in model.blocks:
        if block.feed_forward.width:
            feed_forward(builder, block.layers, block.feed_forward)
            parts += block.layers
        elementwise(builder, block)
    if ahead:  # each joins the hidden state with the embedding of the token that follows
        builder.product("predicted token in", ahead, builder.tokens, 2 * model.hidden, model.hidden / tensor)
    tensor_collectives(builder, parts)
    local = model.vocabulary / tensor
    builder.work.head.append(builder.linear("output head", 1 + ahead, builder.tokens, model.hidden, local, practice.wide, practice.wide))
    passes = job.value("elementwise_passes")
    logits = [compute.sweep_bytes(builder.tokens, 0.0, 1.0, local * LOGIT_PASSES * share, passes, builder.element) for share in LOGIT_SHARES]
    builder.passes("softmax and loss", 1 + ahead, logits[0], logits[1], NEVER, builder.work.head)
    return builder.work


def with_predictions(model: Architecture) -> Architecture:
    """Return a model with the layers that predict further tokens, which training runs like its last ones."""
    if not model.prediction_layers:
        return model
    last = model.blocks[-1]
    return model._replace(blocks=(*model.blocks[:-1], last._replace(layers=last.layers + model.prediction_layers)))


def parts_of(block: Block) -> int:
    """Parts of a layer that read and write the hidden state: attention or mixer, and feed-forward."""
    return (1 if block.attention.heads or block.mixer else 0) + (1 if block.feed_forward.width else 0)


def host_times(job: Job, practice: Practice, shape: Shape) -> dict[str, Any]:
    """Return the time the host needs for a micro-batch through all layers, by recomputation."""
    if job.software.compiled:
        return dict.fromkeys(AGAIN, 0.0)
    sparse = sum(block.layers for block in job.model.blocks if block.feed_forward.experts)
    parts = sum(block.layers * parts_of(block) for block in job.model.blocks)
    block, routed = job.value("host_block_time"), job.value("host_expert_block_time")
    own = sum(block.layers * block.feed_forward.experts for block in job.model.blocks) / shape.expert if job.software.separate_experts else 0
    times = (parts - sparse, block, sparse, block if job.software.fused_experts else routed, own, job.value("host_expert_time"))
    return {name: compute.host_time(*times, again, practice.host_factor) for name, again in AGAIN.items()}
