"""The work of one micro-batch through all layers on one chip: products, passes through memory, collectives.

Nothing here depends on pipeline, data parallelism or schedule, so a search computes it for the few hundred distinct shapes only
and gathers. Each item keeps its forward and backward time, and when recomputation does its forward part again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.formula import select, total
from tco.performance.architecture import Architecture, Attention, Block, FeedForward
from tco.performance.flops import chunk_keys, compressed_entries, reached_keys
from tco.performance.layers import StateMixer
from tco.performance.roofline import attention_flops, attention_scores, gemm_flops, repeated
from tco.performance.training import compute
from tco.performance.training.items import AGAIN, FULL, NEVER, SELECTIVE, Item, Part, Shape, Work
from tco.performance.training.job import Job, Practice
from tco.performance.training.traffic import (
    copies_elsewhere,
    exposed_share,
    exposed_time,
    hidden_bytes,
    joined,
    span,
    spread_time,
)

FORWARD_SCORE_PASSES, BACKWARD_SCORE_PASSES = 6, 8  # unfused attention: scores, mask, softmax, dropout, each read and written
WIDE_PASSES, QUERY_PASSES, LOGIT_PASSES = 5, 2, 6  # norm and residual; rotary positions; softmax and loss


class Builder:
    """Collects the items of a micro-batch."""

    def __init__(self, job: Job, practice: Practice, shape: Shape) -> None:
        self.job, self.practice, self.shape = job, practice, shape
        self.tokens = compute.rank_tokens(shape.micro_batch, job.sequence, shape.context)
        self.made = Work(tokens=self.tokens)
        self.wide_split = 1 + (shape.tensor - 1) * shape.sequence_parallel
        self.element = job.wide_size

    def product(self, name: str, layers: int, tokens: Any, inner: Any, outer: Any, copies: Any = 1, narrow: int = 0) -> None:
        """Add a linear layer: forward, input gradients and weight gradients; `copies` different weights share the tokens.

        Products of experts run in groups, whose rate depends on their `narrow` side.
        """
        practice = self.practice
        rate = compute.grouped_rate(practice.grouped, narrow, self.job.value("grouped_half_width")) if narrow else practice.rate
        item = self.linear(name, layers, tokens, inner, outer, copies, rate, practice.peak, practice.input_size)
        self.made.items.append(item)
        if practice.conversion is not None:
            moved = compute.conversion_traffic(tokens, inner + outer, practice.conversion)
            half = repeated(compute.streaming_time(moved, practice.bandwidth), layers / 2)
            self.made.items.append(Item(f"{name} format conversion", "memory", half, half, FULL))

    def linear(self, name: str, layers: int, tokens: Any, inner: Any, outer: Any, copies: Any, rate: Any, peak: Any, size: Any) -> Item:
        """Return a linear layer at some rate and input size."""
        bandwidth, weights = self.practice.bandwidth, inner * outer * copies
        flops = gemm_flops(tokens, inner, outer)
        moved = compute.product_bytes(tokens, inner, outer, weights, size, self.element)
        gradients = compute.weight_gradient_bytes(tokens, inner, outer, weights, size)
        forward = repeated(compute.additive_roofline(flops, moved, rate, bandwidth), layers)
        weight = repeated(compute.additive_roofline(flops, gradients, rate, bandwidth), layers)
        one = Part(flops, moved, rate, peak)
        parts = (one, Part(flops, gradients, rate, peak))
        if self.job.frozen:
            return Item(name, "product", forward, forward, FULL, layers, None, one, (one,))
        return Item(name, "product", forward, total(f"{name} backward", [forward, weight]), FULL, layers, weight, one, parts)

    def passes(self, name: str, layers: float, forward: Any, backward: Any, again: int, to: list[Item] | None = None) -> None:
        """Add passes through memory, given the bytes both ways."""
        times = [repeated(compute.streaming_time(moved, self.practice.bandwidth), layers) for moved in (forward, backward)]
        (self.made.items if to is None else to).append(Item(name, "memory", times[0], times[1], again))

    def attention(self, layers: int, a: Attention) -> None:
        """Add projections and core of one kind of attention."""
        shape, hidden, tokens = self.shape, self.job.model.hidden, self.tokens
        heads = a.heads / shape.tensor
        if a.latent:
            query = heads * a.qk_dim
            self.product("attention down", layers, tokens, hidden, a.q_rank + a.cached)
            self.product("query up", layers, tokens, a.q_rank or hidden, query)
            self.product("key value up", layers, tokens, a.latent, heads * (a.qk_dim - a.rope_dim + a.v_dim))
            kept = a.cached
        else:
            kept = np.ceil(a.kv_heads / shape.tensor) * (a.qk_dim + a.v_dim)
            self.product("query key value", layers, tokens, hidden, heads * a.qk_dim * (2 if a.gated else 1) + kept)
        self.cores(layers, a, heads)
        self.product("attention out", layers, tokens, heads * a.v_dim, hidden)
        self.context_ring(layers, kept)

    def cores(self, layers: int, a: Attention, heads: Any) -> None:
        """Add scores, softmax and values over all a query reaches: its chunk, the entries of its cache, its window."""
        sequence = self.job.sequence
        if a.chunked:
            self.core(layers, a, heads, chunk_keys(sequence, a.window))
            return
        if a.compression or not a.window:
            entries = compressed_entries(sequence, a.compression) if a.compression else sequence
            self.core(layers, a, heads, reached_keys(entries, a.top_tokens or entries))
        if a.window:
            self.core(layers, a, heads, reached_keys(sequence, a.window))

    def core(self, layers: int, a: Attention, heads: Any, keys: Any) -> None:
        """Add scores, softmax and values over some keys a query."""
        job, practice = self.job, self.practice
        flops = attention_flops(self.tokens, keys, heads, a.qk_dim, a.v_dim)
        scores = attention_scores(self.tokens, keys, heads)
        times = []
        for products in (1.0, job.value("attention_backward")):
            one = compute.attention_core_time(
                flops,
                practice.attention,
                keys,
                job.value("attention_half_length"),
                products,
                scores,
                practice.exponentials,
                job.value("exponential_exposed"),
            )
            times.append(repeated(one, layers))
        part = Part(flops, 0.0, practice.attention, practice.peak_wide)
        again = FULL if job.fused else SELECTIVE
        self.made.items.append(Item("attention core", "product", times[0], times[1], again, layers, None, part, (part, part)))
        if not job.fused:
            ways = [
                compute.score_traffic(self.tokens, job.sequence, heads, passes, self.element)
                for passes in (FORWARD_SCORE_PASSES, BACKWARD_SCORE_PASSES)
            ]
            self.passes("attention scores in memory", layers, ways[0], ways[1], SELECTIVE)

    def context_ring(self, layers: int, kept: Any) -> None:
        """Add the exchange of keys and values around a context-parallel group: once forward, twice backward."""
        shape, job = self.shape, self.job
        if np.all(np.asarray(shape.context) == 1):
            return
        size = hidden_bytes(compute.rank_tokens(shape.micro_batch, job.sequence, 1.0), kept, 1.0, self.element)
        place = span(self.practice.fabric.domain, shape.tensor, shape.context)
        time = self.practice.fabric.gather(size, place)
        share = job.value("context_exposed")
        self.link("context-parallel ring", exposed_time(time, layers, share), exposed_time(time, 2 * layers, share))

    def mixer(self, layers: int, m: StateMixer) -> None:
        """Add a state-space or linear-attention layer: two projections, and kernels that pass through memory."""
        tensor, hidden = self.shape.tensor, self.job.model.hidden
        self.product("mixer in", layers, self.tokens, hidden, m.projected / tensor)
        self.product("mixer out", layers, self.tokens, m.inner / tensor, hidden)
        width = (m.inner + m.groups * m.state) / tensor
        passes = self.job.value("mixer_passes")
        ways = [compute.sweep_bytes(self.tokens, 0.0, 1.0, times * width, passes, self.element) for times in (1, 2)]
        self.passes("mixer recurrence", layers, ways[0], ways[1], FULL)

    def link(self, name: str, forward: Any, backward: Any, to: list[Item] | None = None) -> None:
        """Add a collective."""
        (self.made.items if to is None else to).append(Item(name, "link", forward, backward, FULL))

    def feed_forward(self, layers: int, f: FeedForward) -> None:
        """Add a dense feed-forward part, or router and experts."""
        hidden, tensor, tokens = self.job.model.hidden, self.shape.tensor, self.tokens
        dense = f.shared_width if f.experts else f.width
        if dense:
            name = "shared expert" if f.experts else "feed-forward"
            self.product(f"{name} up", layers, tokens, hidden, (f.matrices - 1) * dense / tensor)
            self.product(f"{name} down", layers, tokens, dense / tensor, hidden)
        if f.experts:
            self.experts(layers, f)

    def experts(self, layers: int, f: FeedForward) -> None:
        """Add router, permutation, exchange and grouped products."""
        shape, job, practice, tokens = self.shape, self.job, self.practice, self.tokens
        width, local = f.latent or job.model.hidden, f.experts / shape.expert
        self.product("router", layers, tokens, job.model.hidden, f.experts / shape.tensor)
        if f.latent:
            self.product("expert latent", 2 * layers, tokens, job.model.hidden, f.latent / shape.tensor)
        narrow = min(f.width, width)
        own = compute.expert_tokens(tokens, shape.tensor, f.active)
        self.product("experts up", layers, own, width, (f.matrices - 1) * f.width, local, narrow)
        self.product("experts down", layers, own, f.width, width, local, narrow)
        passes = select(job.fused_experts, 0.0, job.value("permute_passes"))
        moved = compute.sweep_bytes(own, width, 1.0, 0.0, passes, self.element)
        self.passes("expert permutation", layers, moved, moved, FULL)
        if np.all(np.asarray(shape.expert) == 1):
            return
        inner = np.minimum(shape.expert, shape.tensor * shape.context)
        domain, fabric = practice.fabric.domain, practice.fabric
        place = joined(span(domain, 1, inner), span(domain, shape.data_stride, shape.expert // inner))
        size = hidden_bytes(tokens, width, shape.tensor, self.element)
        near = spread_time(size, copies_elsewhere(shape.expert, f.active), fabric.inner_rate(place.inside), fabric.inner_latency)
        inside = exposed_time(near, 2 * layers, select(job.fused_experts, 0.0, job.value("expert_exposed_inside")))
        self.link("expert exchange in a domain", inside, inside)
        far = spread_time(size, copies_elsewhere(place.across, f.active), fabric.outer_rate, fabric.outer_latency)
        across = exposed_time(far, 2 * layers, job.value("expert_exposed_across"))
        self.link("expert exchange across domains", across, across, self.made.across)

    def elementwise(self, block: Block) -> None:
        """Add norms, residuals, rotary positions and activation functions."""
        shape, job, a, f = self.shape, self.job, block.attention, block.feed_forward
        parts = parts_of(block)
        projected = QUERY_PASSES * (a.heads * a.qk_dim + a.kv_heads * (a.qk_dim + a.v_dim))
        active = f.active * f.width + f.shared_width if f.experts else f.width
        moved = [
            compute.sweep_bytes(
                self.tokens,
                parts * WIDE_PASSES * job.model.hidden,
                self.wide_split,
                (projected + active * matrices) / shape.tensor,
                job.value("elementwise_passes"),
                self.element,
            )
            for matrices in (f.matrices, 2 * f.matrices - 1)
        ]
        self.passes("norms and activations", block.layers, moved[0], moved[1], SELECTIVE if job.fused else FULL)
        if f.experts and f.bias:  # no fused kernel covers bias, clamp and probability of each expert
            width = f.active * f.width / shape.tensor
            extra = [compute.sweep_bytes(self.tokens, 0.0, 1.0, width * share, job.value("biased_expert_passes"), self.element) for share in (1, 2)]
            self.passes("activations of experts with bias", block.layers, extra[0], extra[1], FULL)

    def tensor_collectives(self, parts: int) -> None:
        """Add all-gather and reduce-scatter before and after each part of a layer, the same bytes as two all-reduces a layer."""
        shape, job, fabric = self.shape, self.job, self.practice.fabric
        if np.all(np.asarray(shape.tensor) == 1):
            return
        size = hidden_bytes(self.tokens, job.model.hidden, 1.0, self.element)
        time = fabric.gather(size, span(fabric.domain, 1, shape.tensor))
        share = exposed_share(shape.overlap, job.value("tensor_exposed"))
        both = exposed_time(time, 2 * parts, share)
        self.link("tensor-parallel collectives", both, both)

    def run(self) -> Work:
        """Return the whole work of a micro-batch."""
        model, practice, tensor = with_predictions(self.job.model), self.practice, self.shape.tensor
        ahead = model.prediction_layers
        parts = 0
        for attention, layers in model.attentions.items():
            self.attention(layers, attention)
            parts += layers
        for mixer, layers in model.mixers.items():
            self.mixer(layers, mixer)
            parts += layers
        for block in model.blocks:
            if block.feed_forward.width:
                self.feed_forward(block.layers, block.feed_forward)
                parts += block.layers
            self.elementwise(block)
        if ahead:  # each joins the hidden state with the embedding of the token that follows
            self.product("predicted token in", ahead, self.tokens, 2 * model.hidden, model.hidden / tensor)
        self.tensor_collectives(parts)
        local = model.vocabulary / tensor
        self.made.head.append(
            self.linear("output head", 1 + ahead, self.tokens, model.hidden, local, 1, practice.wide_rate, practice.peak_wide, self.element)
        )
        passes = self.job.value("elementwise_passes")
        logits = [compute.sweep_bytes(self.tokens, 0.0, 1.0, local * LOGIT_PASSES * share, passes, self.element) for share in (0.3, 0.7)]
        self.passes("softmax and loss", 1 + ahead, logits[0], logits[1], NEVER, self.made.head)
        return self.made


def with_predictions(model: Architecture) -> Architecture:
    """Return a model with the layers that predict further tokens, which training runs like its last ones."""
    if not model.prediction_layers:
        return model
    last = model.blocks[-1]
    return model._replace(blocks=(*model.blocks[:-1], last._replace(layers=last.layers + model.prediction_layers)))


def parts_of(block: Block) -> int:
    """Parts of a layer that read and write the hidden state: attention or mixer, and feed-forward."""
    return (1 if block.attention.heads or block.mixer else 0) + (1 if block.feed_forward.width else 0)


def host_times(job: Job, practice: Practice) -> dict[str, Any]:
    """Return the time the host needs for a micro-batch through all layers, by recomputation."""
    sparse = sum(block.layers for block in job.model.blocks if block.feed_forward.experts)
    parts = sum(block.layers * parts_of(block) for block in job.model.blocks)
    times = job.value("host_block_time"), select(job.fused_experts, job.value("host_block_time"), job.value("host_expert_block_time"))
    return {name: compute.host_time(parts - sparse, times[0], sparse, times[1], again, practice.host_factor) for name, again in AGAIN.items()}
