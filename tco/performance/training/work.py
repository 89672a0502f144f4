"""The work of one micro-batch through all layers on one chip: products, passes through memory, collectives.

Nothing here depends on pipeline, data parallelism or schedule, so a search computes it for the few hundred distinct shapes only
and gathers. Each item keeps its forward and backward time, and when recomputation does its forward part again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.formula import select, total
from tco.performance.architecture import Architecture, Attention, Block, FeedForward
from tco.performance.flops import chunk_keys, compressed_entries, reached_keys
from tco.performance.layers import StateMixer
from tco.performance.moe import group_tokens, permute_passes
from tco.performance.roofline import attention_flops, attention_scores, gemm_flops, repeated
from tco.performance.traffic import exposed_time, stream_time
from tco.performance.training import compute
from tco.performance.training.items import AGAIN, FULL, NEVER, SELECTIVE, Item, Part, Shape, Work
from tco.performance.training.job import Job, Practice, Products
from tco.performance.training.traffic import (
    Span,
    copies_elsewhere,
    exposed_share,
    hidden_bytes,
    joined,
    span,
    spread_time,
)

FORWARD_SCORE_PASSES, BACKWARD_SCORE_PASSES = 6, 8  # unfused attention: scores, mask, softmax, dropout, each read and written
# Times a kernel of the hidden state reads or writes it, forward and backward. Norms go row by row, and sum the gradients of their
# weights in a second sweep; residuals are added, and the gradients of both branches. A dropout mask is a byte of a number's two.
NORM_PASSES, RESIDUAL_PASSES, MASK_PASSES = (2, 5), (3, 3), (0.5, 2.5)
ROTARY_PASSES, LOGIT_PASSES = 2, 6  # queries and keys; softmax and loss


class Operand(NamedTuple):
    """How the inputs of a product are kept, and what computes them."""

    rate: Any
    peak: Any
    size: Any


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
        forward = self.in_format(practice.forward, narrow)
        backward = forward if practice.backward is practice.forward else self.in_format(practice.backward, narrow)
        self.made.items.append(self.linear(name, layers, tokens, inner, outer, copies, forward, backward))
        sizes = practice.forward.conversion, practice.backward.conversion
        if any(size is not None for size in sizes):
            moved = [compute.conversion_traffic(tokens, inner + outer, 0.0 if size is None else size) for size in sizes]
            self.passes(f"{name} format conversion", layers / 2, moved[0], moved[1], FULL)

    def in_format(self, products: Products, narrow: int) -> Operand:
        """Return the rates of a linear layer in the format of a pass."""
        half = self.job.value("grouped_half_width")
        rate = compute.grouped_rate(products.grouped, narrow, half) if narrow else products.rate
        return Operand(rate, products.peak, products.input_size)

    def linear(self, name: str, layers: int, tokens: Any, inner: Any, outer: Any, copies: Any, forward: Operand, backward: Operand) -> Item:
        """Return a linear layer whose gradients may be made in another format."""
        bandwidth, weights = self.practice.bandwidth, inner * outer * copies
        flops = gemm_flops(tokens, inner, outer)
        parts = [
            Part(flops, compute.product_bytes(tokens, inner, outer, weights, operand.size, self.element), operand.rate, operand.peak)
            for operand in ((forward,) if backward is forward else (forward, backward))
        ]
        moved = compute.weight_gradient_bytes(tokens, inner, outer, weights, backward.size, self.job.values["workload.accumulator_size"])
        gradients = Part(flops, moved, backward.rate, backward.peak)
        times = [repeated(compute.additive_roofline(part.flops, part.moved, part.rate, bandwidth), layers) for part in (*parts, gradients)]
        first, back, weight = times[0], times[len(parts) - 1], times[-1]
        if self.job.frozen:
            return Item(name, "product", first, back, FULL, layers, None, parts[0], (parts[-1],))
        both = total(f"{name} backward", [back, weight])
        return Item(name, "product", first, both, FULL, layers, weight, parts[0], (parts[-1], gradients))

    def passes(self, name: str, layers: float, forward: Any, backward: Any, again: int, to: list[Item] | None = None, bandwidth: Any = None) -> None:
        """Add passes through memory, given the bytes both ways, at a bandwidth of their own where they have one."""
        rate = self.practice.bandwidth if bandwidth is None else bandwidth
        times = [repeated(stream_time(moved, rate), layers) for moved in (forward, backward)]
        (self.made.items if to is None else to).append(Item(name, "memory", times[0], times[1], again, bandwidth=rate))

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
        self.collective("context-parallel ring", size, place, (layers, 2 * layers), job.value("context_exposed"))

    def mixer(self, layers: int, m: StateMixer) -> None:
        """Add a state-space or linear-attention layer: two projections, and kernels that pass through memory."""
        tensor, hidden = self.shape.tensor, self.job.model.hidden
        self.product("mixer in", layers, self.tokens, hidden, m.projected / tensor)
        self.product("mixer out", layers, self.tokens, m.inner / tensor, hidden)
        width = (m.inner + m.groups * m.state) / tensor
        passes = self.job.value("mixer_passes")
        ways = [compute.sweep_bytes(self.tokens, 0.0, 1.0, times * width, passes, self.element) for times in (1, 2)]
        self.passes("mixer recurrence", layers, ways[0], ways[1], FULL)

    def link(self, name: str, size: Any, time: Any, counts: tuple[int, int], share: Any, tier: str, to: list[Item] | None = None) -> None:
        """Add a collective that takes `size` bytes, runs some times forward and backward and is exposed by a share."""
        (forward, held), (backward, held_backward) = ((exposed_time(time, count, x) for x in (share, 1.0)) for count in counts)
        item = Item(name, "link", forward, backward, FULL, tier=tier, busy=(held, held_backward), size=size, counts=counts)
        (self.made.items if to is None else to).append(item)

    def collective(self, name: str, size: Any, place: Span, counts: tuple[int, int], share: Any) -> None:
        """Add an all-gather or reduce-scatter of a group, on each tier it uses."""
        times = self.practice.fabric.tiers(size, place)
        self.link(name, size, times["inside"], counts, share, "inside")
        if np.any(np.asarray(place.across) > 1):
            self.link(f"{name} across domains", 0.0, times["across"], counts, share, "across")  # the same buffer

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
        own = group_tokens(tokens, f.active, shape.tensor)
        self.product("experts up", layers, own, width, (f.matrices - 1) * f.width, local, narrow)
        self.product("experts down", layers, own, f.width, width, local, narrow)
        passes = permute_passes(select(job.fused_experts, 0.0, job.value("permute_passes")), practice.dereferences)
        moved = compute.sweep_bytes(own, width, 1.0, 0.0, passes, self.element)
        self.passes("expert permutation", layers, moved, moved, FULL)
        if np.all(np.asarray(shape.expert) == 1):
            return
        inner = np.minimum(shape.expert, shape.tensor * shape.context)
        domain, fabric = practice.fabric.domain, practice.fabric
        place = joined(span(domain, 1, inner), span(domain, shape.data_stride, shape.expert // inner))
        size = hidden_bytes(tokens, width, shape.tensor, self.element)
        near = spread_time(size, copies_elsewhere(shape.expert, f.active), fabric.inner_rate(place.inside), fabric.inner_latency(place.inside))
        both = 2 * layers, 2 * layers  # dispatch and combine
        self.link("expert exchange in a domain", size, near, both, select(job.fused_experts, 0.0, job.value("expert_exposed_inside")), "inside")
        far = spread_time(size, copies_elsewhere(place.across, f.active), fabric.outer_rate, fabric.outer_latency)
        self.link("expert exchange across domains", 0.0, far, both, job.value("expert_exposed_across"), "across", self.made.across)

    def elementwise(self, block: Block) -> None:
        """Add norms, residuals, rotary positions and activation functions."""
        shape, job, a, f = self.shape, self.job, block.attention, block.feed_forward
        again = SELECTIVE if job.fused else FULL
        wide = parts_of(block) * job.model.hidden
        masks = MASK_PASSES if job.dropout else (0, 0)
        residuals = [added + mask for added, mask in zip(RESIDUAL_PASSES, masks, strict=True)]
        for name, counts, bandwidth in (("norms", NORM_PASSES, self.practice.row_bandwidth), ("residuals", residuals, None)):
            moved = [compute.sweep_bytes(self.tokens, wide, self.wide_split, 0.0, count, self.element) for count in counts]
            self.passes(name, block.layers, moved[0], moved[1], again, bandwidth=bandwidth)
        rotated = ROTARY_PASSES * (a.heads + a.kv_heads) * a.qk_dim
        active = f.active * f.width + f.shared_width if f.experts else f.width
        passes = job.value("elementwise_passes")
        moved = [
            compute.sweep_bytes(self.tokens, 0.0, 1.0, (rotated + active * times) / shape.tensor, passes, self.element)
            for times in (f.matrices, 2 * f.matrices - 1)
        ]
        self.passes("activation functions", block.layers, moved[0], moved[1], again)
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
        share = exposed_share(shape.overlap, job.value("tensor_exposed"))
        self.collective("tensor-parallel collectives", size, span(fabric.domain, 1, shape.tensor), (2 * parts, 2 * parts), share)

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
        wide = Operand(practice.wide_rate, practice.peak_wide, self.element)
        self.made.head.append(self.linear("output head", 1 + ahead, self.tokens, model.hidden, local, 1, wide, wide))
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
