"""The operators of one forward pass on one chip, for arrays of plans, chips or number formats.

Which operators exist is structure: it follows from the architecture and the pass. How long each takes is formulas of values. Axes of
the plan (tokens, tensor parallel, group sizes) are plain numbers or arrays that broadcast against each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.errors import DataError
from tco.performance import moe
from tco.performance.algorithms import cheapest, expert_exchange
from tco.performance.attention import Attention
from tco.performance.collectives import scattered_bytes, token_bytes
from tco.performance.layers import FeedForward, StateMixer
from tco.performance.links import group_of, links_for
from tco.performance.machine import Machine
from tco.performance.model import Architecture
from tco.performance.roofline import attention_bytes, attention_flops, overlapped_time, passing_flops, repeated, weight_traffic
from tco.performance.traffic import (
    added_latency,
    attended_keys,
    hidden_pass_bytes,
    kernel_time,
    message_bytes,
    only_if_shared,
    per_rank,
    stream_time,
)

# Dependent kernels of one layer and of the head, counted from the operator graph of current serving engines.
KERNELS = {"grouped": 5, "latent": 11, "sparse": 14, "recurrent": 11, "dense": 4, "experts": 7, "shared": 3, "head": 10}
INDEX_BYTES = 4  # one FP32 scale beside an indexer key
STATE_BYTES = 2 * 4  # a recurrent state is read and written in FP32


class Operator(NamedTuple):
    """One operator of a pass: its time over all layers that have it, and what that time rests on."""

    name: str
    time: Any
    layers: Any
    flops: Any
    bytes: Any
    compute_rate: Any
    bandwidth: Any
    latency: Any  # start of a collective, else zero
    link: bool = False


class Shape(NamedTuple):
    """The plan of a pass: how many tokens stand where. Numbers or arrays.

    `tokens` are those of one attention group, all of which every chip of its tensor-parallel group sees; `keys` is how many
    cached tokens a query meets on average; `sequences` how many caches a group holds, of which a prompt reads its own tokens once,
    or `read` tokens where a prefix cache holds some of them.
    """

    group: Any  # chips of the instance, over which experts and attention groups are spread
    tensor_parallel: Any
    expert_parallel: Any
    tokens: Any
    keys: Any
    sequences: Any
    decode: bool
    read: Any = None


class Pass:
    """Collects the operators of one forward pass on one chip."""

    def __init__(self, machine: Machine, model: Architecture, shape: Shape) -> None:
        if any(a.compression for a in model.attentions):
            raise DataError(f"{model.id}: serving is not modelled for attention over a compressed cache")
        self.machine, self.model, self.shape = machine, model, shape
        self.groups = shape.group / shape.tensor_parallel
        self.operators: list[Operator] = []
        self.kernels = 0

    def add(self, name: str, layers: Any, flops: Any, moved: Any, rate: Any, bandwidth: Any, kernels: int = 0) -> None:
        """Add an operator that computes and moves; its kernels are counted for the launches."""
        one = overlapped_time(flops, moved, rate, bandwidth)
        self.kernels += kernels * layers
        self.operators.append(Operator(name, repeated(one, layers), layers, flops, moved, rate, bandwidth, 0.0))

    def weights(self, name: str, layers: Any, weights: Any, tokens: Any, size: Any, rate: Any, kernels: int = 0) -> None:
        """Add matrix products of tokens with some weights."""
        self.add(name, layers, passing_flops(weights, tokens), weight_traffic(weights, size), rate, self.machine.bandwidth, kernels)

    def stream(self, name: str, layers: Any, moved: Any) -> None:
        """Add elementwise passes, which only move data."""
        machine = self.machine
        time = repeated(stream_time(moved, machine.bandwidth), layers)
        self.operators.append(Operator(name, time, layers, 0.0, moved, machine.core, machine.bandwidth, 0.0))

    def collective(self, name: str, layers: Any, time: Any, size: Any, rate: Any) -> None:
        """Add a collective that moves `size` bytes a chip."""
        latency = self.machine.links.latencies.start
        self.operators.append(Operator(name, repeated(time, layers), layers, None, size, None, rate, latency, True))

    # ---------------------------------------------------------------- attention
    def attention(self, layers: int, a: Attention) -> None:
        """Add projections, core and, for sparse attention, the indexer."""
        machine, shape = self.machine, self.shape
        kind = KERNELS["latent" if a.latent else "grouped"]
        projected = projection_weights(a, self.model.hidden, shape.tensor_parallel)
        self.weights("attention projections", layers, projected, shape.tokens, machine.attention_size, machine.attention_gemm, kind)
        reach = min(filter(None, (a.window, a.top_tokens)), default=0)
        keys = attended_keys(shape.keys, reach) if reach else shape.keys
        pair, cached = self.core_widths(a)
        flops = attention_flops(shape.tokens, keys, np.ceil(a.heads / shape.tensor_parallel), pair, 0)
        read = keys
        if not shape.decode:
            read = per_rank(shape.tokens, shape.sequences) if shape.read is None else shape.read
        moved = attention_bytes(shape.sequences, read, cached, machine.cache_size)
        self.add("attention core", layers, flops, moved, machine.core, machine.cache_bandwidth)
        if a.top_tokens:
            every = shape.keys if shape.decode else read
            scored = attention_flops(shape.tokens, shape.keys, a.index_heads, a.index_dim, 0)
            index = attention_bytes(shape.sequences, every, a.index_dim + INDEX_BYTES, 1.0)
            self.add("indexer", layers, scored, index, machine.index, machine.cache_bandwidth, KERNELS["sparse"])

    def core_widths(self, a: Attention) -> tuple[int, Any]:
        """Return numbers per query-key pair and head, and cached numbers per token of one chip: the latent is whole on every rank."""
        if not a.latent:
            return a.qk_dim + a.v_dim, a.cached / np.minimum(self.shape.tensor_parallel, a.kv_heads)
        absorbed = self.shape.decode or bool(a.top_tokens)
        return (2 * a.latent + a.rope_dim if absorbed else a.qk_dim + a.v_dim), a.cached

    def recurrence(self, layers: int, mixer: StateMixer) -> None:
        """Add a state-space or linear-attention layer: projections, and the state read, changed and written."""
        machine, shape = self.machine, self.shape
        projected = self.model.hidden * (mixer.projected + mixer.inner) / shape.tensor_parallel
        self.weights("recurrent projections", layers, projected, shape.tokens, machine.attention_size, machine.attention_gemm, KERNELS["recurrent"])
        state = mixer.state_numbers / shape.tensor_parallel
        flops = passing_flops(mixer.passes * state, shape.tokens)
        moved = attention_bytes(shape.sequences, 1, state, float(STATE_BYTES))
        self.add("recurrence", layers, flops, moved, machine.recurrent, machine.cache_bandwidth)

    # ---------------------------------------------------------------- feed-forward
    def feed_forward(self, layers: int, f: FeedForward) -> None:
        """Add a dense feed-forward, or router, shared and routed experts."""
        machine, shape, hidden = self.machine, self.shape, self.model.hidden
        if not f.experts:
            split = f.matrices * hidden * f.width / shape.tensor_parallel
            self.weights("feed-forward", layers, split, shape.tokens, machine.dense_size, machine.dense_gemm, KERNELS["dense"])
            return
        if f.shared_width:
            split = f.matrices * hidden * f.shared_width / shape.tensor_parallel
            self.weights("shared expert", layers, split, shape.tokens, machine.dense_size, machine.dense_gemm, KERNELS["shared"])
        self.experts(layers, f)

    def experts(self, layers: int, f: FeedForward) -> None:
        """Add the routed experts of the busiest group: those that tokens reach are read, the tokens they get computed."""
        machine, shape = self.machine, self.shape
        split = f.expert_parameters(self.model.hidden) * shape.expert_parallel / shape.group
        tokens = moe.instance_tokens(shape.tokens, self.groups)
        local = np.ceil(f.experts / shape.expert_parallel)
        reached = moe.busiest_reached(
            moe.distinct_experts(f.experts, f.active, tokens, f.experts / shape.expert_parallel), shape.expert_parallel, machine.imbalance, local
        )
        load = moe.group_tokens(tokens, f.active, shape.expert_parallel)
        if shape.decode:
            load = moe.busiest_load(load, shape.expert_parallel, machine.imbalance)
        flops, moved = passing_flops(split, load), moe.expert_traffic(reached, split, machine.expert_size)
        one = moe.engine_factor(overlapped_time(flops, moved, machine.expert_gemm, machine.bandwidth), machine.expert_engine)
        self.kernels += KERNELS["experts"] * layers
        self.operators.append(Operator("experts", repeated(one, layers), layers, flops, moved, machine.expert_gemm, machine.bandwidth, 0.0))
        expanded = hidden_pass_bytes(load, self.model.hidden, machine.permutes, machine.activation_size)
        self.operators.append(
            Operator(
                "permute", repeated(stream_time(expanded, machine.bandwidth), layers), layers, 0.0, expanded, machine.core, machine.bandwidth, 0.0
            )
        )
        self.exchange(layers, f)

    def exchange(self, layers: int, f: FeedForward) -> None:
        """Add dispatch and combine where attention groups hold different tokens."""
        machine, shape = self.machine, self.shape
        own = per_rank(shape.tokens, shape.tensor_parallel)
        met = links_for(machine.links, group_of(machine.links, shape.group))
        for name, size in (("dispatch", machine.dispatch_size), ("combine", machine.activation_size)):
            token = token_bytes(self.model.hidden, size, 0.0, 1)
            time = added_latency(expert_exchange(machine.links, shape.group, own, f.active, token), machine.exchange_wait)
            self.collective(name, layers, only_if_shared(time, self.groups), scattered_bytes(own, f.active, token, 1.0), met.spread)

    # ---------------------------------------------------------------- what every layer has
    def reduce(self, layers: int) -> None:
        """Add the two all-reduces of a layer that join tensor-parallel parts; with experts spread wider only attention has one."""
        machine, shape = self.machine, self.shape
        size = message_bytes(shape.tokens, self.model.hidden, machine.activation_size)
        time = added_latency(cheapest(machine.links, "all-reduce", shape.tensor_parallel, size), machine.collective_wait)
        met = links_for(machine.links, group_of(machine.links, shape.tensor_parallel))
        count = layers * (1.0 + (self.groups <= 1.001))
        self.collective("all-reduce", count, only_if_shared(time, shape.tensor_parallel), size, met.inside)

    def run(self, logits_tokens: Any) -> list[Operator]:
        """Return all operators of the pass, the output head computed for `logits_tokens`."""
        machine, model, shape = self.machine, self.model, self.shape
        for kind, layers in model.attentions.items():
            self.attention(layers, kind)
        for mixer, layers in model.mixers.items():
            self.recurrence(layers, mixer)
        parts: dict[FeedForward, int] = {}
        for block in model.blocks:
            if block.feed_forward.width:
                parts[block.feed_forward] = parts.get(block.feed_forward, 0) + block.layers
        for part, layers in parts.items():
            self.feed_forward(layers, part)
        self.reduce(model.layers)
        moved = hidden_pass_bytes(shape.tokens, model.hidden, machine.passes, machine.activation_size)
        time = repeated(stream_time(moved, machine.bandwidth), model.layers)
        self.operators.append(Operator("norms and residuals", time, model.layers, 0.0, moved, machine.core, machine.bandwidth, 0.0))
        self.weights(
            "output head",
            1,
            model.hidden * model.vocabulary / shape.tensor_parallel,
            logits_tokens,
            machine.head_size,
            machine.head_gemm,
            KERNELS["head"],
        )
        launches = kernel_time(self.kernels, machine.launch)
        self.operators.append(Operator("launches", launches, 1, 0.0, 0.0, machine.core, machine.bandwidth, launches))
        return self.operators


def projection_weights(a: Attention, hidden: int, tensor_parallel: Any) -> Any:
    """Return the projection weights of one chip: per-head ones split over the group, MLA's latent ones whole on every rank."""
    if not a.latent:
        width, shared = a.heads * (a.qk_dim + a.v_dim), a.kv_heads * (a.qk_dim + a.v_dim)
        return hidden * (width / tensor_parallel + shared / np.minimum(tensor_parallel, a.kv_heads))
    down = hidden * ((a.q_rank or 0) + a.cached)
    per_head = (a.q_rank or hidden) * a.qk_dim + a.latent * (a.qk_dim - a.rope_dim + a.v_dim) + a.v_dim * hidden
    return down + a.heads * per_head / tensor_parallel
