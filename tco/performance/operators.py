"""The operators of one pass through a model on one chip, for arrays of plans.

Which operators exist is structure: it follows from the architecture and the pass. How long each takes is formulas of values.
Plan axes (tokens, tensor parallel, group sizes) are plain numbers or arrays that broadcast against each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.errors import DataError
from tco.formula import formula
from tco.performance.algorithms import cheapest, expert_exchange
from tco.performance.architecture import Architecture, Attention, Block
from tco.performance.collectives import scattered_bytes, token_bytes
from tco.performance.machine import Machine
from tco.performance.roofline import (
    attention_bytes,
    attention_flops,
    distinct_experts,
    gemm_bytes,
    gemm_flops,
    repeated,
    roofline_time,
)
from tco.units import Byte, Pure, Second


class Operator(NamedTuple):
    """One operator of a pass: its time over all layers that have it, and what that time rests on."""

    name: str
    time: Any
    layers: int
    flops: Any
    bytes: Any
    compute_rate: Any
    bandwidth: Any
    latency: Any  # launch time, or the latency of a collective
    link: bool = False


class Shape(NamedTuple):
    """The plan of a pass: how many tokens stand where. Numbers or arrays.

    `tokens` are those of one attention group, all of which every chip of its tensor-parallel group sees; `keys` is how many
    cached tokens a query meets on average; `sequences` how many caches a group reads.
    """

    group: Any  # chips of the instance, over which the experts are spread
    tensor_parallel: Any
    tokens: Any
    keys: Any
    sequences: Any
    absorbed: bool  # MLA reads the latent cache directly, as decode does


@formula(unit="", source="tco-model")
def group_tokens(tokens: Pure, groups: Pure, active: Pure, chips: Pure, imbalance: Pure) -> Any:
    """Expert tokens of the busiest chip: T k groups / N x imbalance."""
    return tokens * groups * active / chips * imbalance


@formula(unit="", source="tco-model")
def per_rank(tokens: Pure, ranks: Pure) -> Any:
    """Tokens of one rank: T / N."""
    return tokens / ranks


@formula(unit="", source="tco-model")
def instance_tokens(tokens: Pure, groups: Pure) -> Any:
    """Tokens of all attention groups of an instance: T x groups."""
    return tokens * groups


@formula(unit="", source="tco-model")
def expert_weights(experts: Pure, hidden: Pure, width: Pure, matrices: Pure) -> Any:
    """Distinct expert weights a chip reads: experts x matrices x h x f."""
    return experts * matrices * hidden * width


class Pass:
    """Collects the operators of one forward pass on one chip."""

    def __init__(self, machine: Machine, model: Architecture, shape: Shape) -> None:
        self.machine = machine
        self.model = model
        self.shape = shape
        self.groups = shape.group / shape.tensor_parallel
        self.operators: list[Operator] = []

    def add(self, name: str, layers: int, flops: Any, moved: Any, compute: Any) -> None:
        """Add an operator bound by compute or memory."""
        machine = self.machine
        one = roofline_time(flops, moved, compute, machine.bandwidth, machine.launch)
        self.operators.append(Operator(name, repeated(one, layers), layers, flops, moved, compute, machine.bandwidth, machine.launch))

    def gemm(self, name: str, layers: int, tokens: Any, inner: Any, outer: Any, batch: Any = 1) -> None:
        """Add a matrix product; `batch` independent ones share the tokens (the heads of an absorbed projection)."""
        machine = self.machine
        flops = gemm_flops(tokens, inner, outer * batch)
        moved = gemm_bytes(tokens, inner * batch, outer * batch, inner * outer * batch, machine.weight_size, machine.activation_size)
        self.add(name, layers, flops, moved, machine.compute)

    def collective(self, name: str, layers: int, time: Any, size: Any, rate: Any) -> None:
        """Add a collective that moves `size` bytes a chip."""
        latency = self.machine.links.latencies.start
        self.operators.append(Operator(name, repeated(time, layers), layers, None, size, None, rate, latency, True))

    def reduce(self, name: str, layers: int) -> None:
        """Add the all-reduce that joins the parts of a tensor-parallel product."""
        links, size = self.machine.links, message_bytes(self.shape.tokens, self.model.hidden, self.machine.activation_size)
        time = cheapest(links, "all-reduce", self.shape.tensor_parallel, size)
        self.collective(name, layers, only_if_shared(time, self.shape.tensor_parallel), size, links.inside)

    def latent_attention(self, layers: int, a: Attention) -> None:
        """Add multi-head latent attention: absorbed where the cache is read, expanded where a prompt is."""
        shape, hidden, tokens = self.shape, self.model.hidden, self.shape.tokens
        heads = np.ceil(a.heads / shape.tensor_parallel)
        nope = a.qk_dim - a.rope_dim
        self.gemm("attention down", layers, tokens, hidden, a.q_rank + a.cached)
        self.gemm("query up", layers, tokens, a.q_rank or hidden, heads * a.qk_dim)
        if shape.absorbed:
            self.gemm("key absorb", layers, tokens, nope, a.latent, heads)
            self.core(layers, a, heads, a.cached, a.latent, a.cached)
            self.gemm("value absorb", layers, tokens, a.latent, a.v_dim, heads)
        else:
            self.gemm("key value up", layers, tokens, a.latent, heads * (nope + a.v_dim))
            self.core(layers, a, heads, a.qk_dim, a.v_dim, heads * (a.qk_dim + a.v_dim))
        self.gemm("attention out", layers, tokens, heads * a.v_dim, hidden)

    def grouped_attention(self, layers: int, a: Attention) -> None:
        """Add grouped-query attention."""
        shape, hidden, tokens = self.shape, self.model.hidden, self.shape.tokens
        heads, kv_heads = np.ceil(a.heads / shape.tensor_parallel), np.ceil(a.kv_heads / shape.tensor_parallel)
        self.gemm("query key value", layers, tokens, hidden, heads * a.qk_dim + kv_heads * (a.qk_dim + a.v_dim))
        self.core(layers, a, heads, a.qk_dim, a.v_dim, kv_heads * (a.qk_dim + a.v_dim))
        self.gemm("attention out", layers, tokens, heads * a.v_dim, hidden)

    def core(self, layers: int, a: Attention, heads: Any, score_width: int, value_width: int, cached: Any) -> None:
        """Add scores, softmax and values over the part of the cache that a query reaches."""
        shape, machine = self.shape, self.machine
        reach = min(filter(None, (a.window, a.top_tokens)), default=0)
        keys = attended_keys(shape.keys, reach) if reach else shape.keys
        flops = attention_flops(shape.tokens, keys, heads, score_width, value_width)
        moved = attention_bytes(shape.sequences, keys, cached, machine.cache_size)
        self.add("attention core", layers, flops, moved, machine.attention)

    def dense(self, name: str, layers: int, width: Any, matrices: int) -> None:
        """Add a dense feed-forward of which each chip of the tensor-parallel group has its part."""
        hidden, tokens = self.model.hidden, self.shape.tokens
        part = np.ceil(width / self.shape.tensor_parallel)
        self.gemm(f"{name} up", layers, tokens, hidden, (matrices - 1) * part)
        self.gemm(f"{name} down", layers, tokens, part, hidden)

    def experts(self, layers: int, block: Block) -> None:
        """Add router, dispatch, grouped expert products and combine."""
        shape, machine, model, f = self.shape, self.machine, self.model, block.feed_forward
        self.gemm("router", layers, shape.tokens, model.hidden, f.experts)
        local = np.ceil(f.experts / shape.group)
        busiest = group_tokens(shape.tokens, self.groups, f.active, shape.group, machine.expert_imbalance)
        reached = distinct_experts(f.experts, f.active, instance_tokens(shape.tokens, self.groups), local)
        flops = gemm_flops(busiest, model.hidden, f.matrices * f.width)
        weights = expert_weights(reached, model.hidden, f.width, f.matrices)
        moved = gemm_bytes(busiest, model.hidden * 2, f.width * f.matrices, weights, machine.weight_size, machine.activation_size)
        self.add("experts", layers, flops, moved, machine.grouped)
        own = per_rank(shape.tokens, shape.tensor_parallel)
        for name, size in (("dispatch", machine.weight_size), ("combine", machine.activation_size)):
            token = token_bytes(model.hidden, size, 0.0, 1)
            time = expert_exchange(machine.links, shape.group, own, f.active, token)
            moved = scattered_bytes(own, f.active, token, 1.0)
            self.collective(name, layers, only_if_shared(time, shape.group), moved, machine.links.spread)

    def elementwise(self, layers: int) -> None:
        """Add norms and residuals: eight passes over the hidden state, two launches a layer."""
        machine, tokens, hidden = self.machine, self.shape.tokens, self.model.hidden
        moved = gemm_bytes(tokens, 2 * hidden, 2 * hidden, 0, machine.weight_size, machine.activation_size)
        self.add("norms and residuals", 2 * layers, gemm_flops(tokens, 2, hidden), moved, machine.compute)

    def run(self, logits_tokens: Any) -> list[Operator]:
        """Return all operators of the pass, the output head computed for `logits_tokens`."""
        if self.model.mixers or any(a.compression for a in self.model.attentions):
            raise DataError(f"{self.model.id}: serving is modelled for attention over a whole cache, not for recurrent states or compressed caches")
        for attention, layers in self.model.attentions.items():
            (self.latent_attention if attention.latent else self.grouped_attention)(layers, attention)
        self.reduce("attention all-reduce", self.model.layers)
        for block in self.model.blocks:
            f = block.feed_forward
            if f.experts:
                if f.shared_width:
                    self.dense("shared expert", block.layers, f.shared_width, f.matrices)
                self.experts(block.layers, block)
            else:
                self.dense("feed-forward", block.layers, f.width, f.matrices)
        self.reduce("feed-forward all-reduce", self.model.layers)
        self.elementwise(self.model.layers)
        self.gemm("output head", 1, logits_tokens, self.model.hidden, np.ceil(self.model.vocabulary / self.shape.tensor_parallel))
        return self.operators


@formula(unit="", source="tco-model")
def attended_keys(keys: Pure, reach: Pure) -> Any:
    """Keys a query attends to where it reaches r at most: min(k, r)."""
    return np.minimum(keys, reach)


@formula(unit="byte", source="tco-model")
def message_bytes(tokens: Pure, hidden: Pure, element_size: Byte) -> Any:
    """Hidden states of a pass: M = T h b."""
    return tokens * hidden * element_size


@formula(unit="s", source="tco-model")
def only_if_shared(time: Second, ranks: Pure) -> Any:
    """Time of a collective, zero for a group of one: t min(N-1, 1)."""
    return time * np.minimum(ranks - 1, 1)
