"""The operators of one forward pass on one chip, for arrays of plans, chips or number formats.

Which operators exist is structure: it follows from the architecture and the pass. How long each takes is formulas of values. Axes of
the plan (tokens, tensor parallel, group sizes) are plain numbers or arrays that broadcast against each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.errors import DataError
from tco.formula import least, total
from tco.performance import moe
from tco.performance.algorithms import all_reduce, expert_exchanges, gather, one_shot, reach
from tco.performance.attention import Attention
from tco.performance.collectives import scattered_bytes, token_bytes
from tco.performance.formats import Computed, unpacking_time
from tco.performance.layers import FeedForward, StateMixer
from tco.performance.links import Group, group_of
from tco.performance.machine import Machine, share_of_rate
from tco.performance.model import Architecture
from tco.performance.roofline import (
    array_fill,
    attention_bytes,
    attention_flops,
    attention_scores,
    overlapped_beside,
    overlapped_time,
    padded_weights,
    passing_flops,
    repeated,
    softmax_engine_time,
    weight_traffic,
)
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
SUM_BYTES = 8  # largest score and sum of exponentials of a query and head, each in FP32
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
    beside: Any = None  # time of one layer on engines beside the matrix units


class Shape(NamedTuple):
    """The plan of a pass: how many tokens stand where. Numbers or arrays.

    `tokens` are those of one attention group, all of which every chip of its tensor-parallel group sees; `keys` is how many
    cached tokens a query meets on average; `sequences` how many caches a group holds, of which a prompt reads its own tokens once,
    or `read` tokens where a prefix cache holds some of them.
    """

    group: Any  # chips of a stage, over which experts and attention groups are spread
    tensor_parallel: Any
    expert_parallel: Any
    tokens: Any
    keys: Any
    sequences: Any
    decode: bool
    read: Any = None
    context_parallel: Any = 1  # chips that hold a part of every sequence each, and compute its tokens together
    domains: Any = 1  # of those below: how many a stage stands in
    replicas: Any = 1  # sets of experts
    copies: Any = 1  # domains that each see all tokens, with their part of every expert
    crossing: Any = 0  # 1 where attention groups lie across the domains

    @property
    def attention_chips(self) -> Any:
        """Chips that share the attention of a sequence."""
        return self.tensor_parallel * self.context_parallel

    @property
    def expert_chips(self) -> Any:
        """Chips that hold one set of experts."""
        return self.group / self.replicas


class Pass:
    """Collects the operators of one forward pass on one chip."""

    def __init__(self, machine: Machine, model: Architecture, shape: Shape) -> None:
        if any(a.compression for a in model.attentions):
            raise DataError(f"{model.id}: serving is not modelled for attention over a compressed cache")
        self.machine, self.model, self.shape = machine, model, shape
        self.groups = shape.group / shape.attention_chips
        self.operators: list[Operator] = []
        self.kernels = 0

    def add(
        self, name: str, layers: Any, flops: Any, moved: Any, rate: Any, bandwidth: Any, kernels: int = 0, beside: Any = None, factor: Any = None
    ) -> None:
        """Add an operator that computes and moves, `beside` the matrix units on other engines too; its kernels are counted for the launches."""
        one = overlapped_time(flops, moved, rate, bandwidth) if beside is None else overlapped_beside(flops, moved, rate, bandwidth, beside)
        one = one if factor is None else moe.engine_factor(one, factor)
        self.kernels += kernels * layers
        self.operators.append(Operator(name, repeated(one, layers), layers, flops, moved, rate, bandwidth, 0.0, beside=beside))

    def weights(
        self, name: str, layers: Any, sides: Sides, tokens: Any, size: Any, rate: Any, kernels: int = 0, form: Computed | None = None
    ) -> None:
        """Add matrix products of tokens with weights of some sides, each inner x outer."""
        weights, machine = numbers_of(sides), self.machine
        filled = self.filled(rate, sides, weights, tokens, form)
        unpacking = self.unpacking(weights, form)
        self.add(name, layers, passing_flops(weights, tokens), weight_traffic(weights, size), filled, machine.bandwidth, kernels, unpacking)

    def filled(self, rate: Any, sides: Sides, weights: Any, tokens: Any, form: Computed | None) -> Any:
        """Return the rate that products reach on systolic arrays they may not fill; elsewhere the rate."""
        array = self.machine.array
        if array is None:
            return rate
        joined = array.rows if form is None or form.peak == "peak_bf16" else array.joined_rows
        padded = total("padded_weights_of_a_layer", [padded_weights(inner, outer, array.rows, joined, array.columns) for inner, outer in sides])
        return share_of_rate(rate, array_fill(weights, tokens, padded, array.least_moving))

    def unpacking(self, weights: Any, form: Computed | None) -> Any:
        """Return the time the vector units take to unpack some weights, None where the matrix units take them as they are."""
        machine = self.machine
        return unpacking_time(weights, machine.unpacking, machine.vector) if form is not None and form.unpacked else None

    @property
    def forms(self) -> tuple[Computed | None, ...]:
        """Formats of attention projections, dense parts and experts."""
        return self.machine.formats or (None, None, None)

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
        sides = projections(a, self.model.hidden, shape.tensor_parallel)
        self.weights("attention projections", layers, sides, shape.tokens, machine.attention_size, machine.attention_gemm, kind, self.forms[0])
        reach = min(filter(None, (a.window, a.top_tokens)), default=0)
        keys = attended_keys(shape.keys, reach) if reach else shape.keys
        if self.splits_context:
            keys = per_rank(keys, shape.context_parallel)
        pair, cached = self.core_widths(a)
        heads = np.ceil(a.heads / shape.tensor_parallel)
        flops = attention_flops(shape.tokens, keys, heads, pair, 0)
        scores = attention_scores(shape.tokens, keys, heads)
        softmax = softmax_engine_time(scores, machine.exponentials, machine.softmax_operations, machine.vector)
        read = keys
        if not shape.decode:
            read = per_rank(shape.tokens, shape.sequences) if shape.read is None else shape.read
        moved = attention_bytes(shape.sequences, read, cached, machine.cache_size)
        self.add("attention core", layers, flops, moved, machine.core, machine.cache_bandwidth, beside=softmax)
        if a.top_tokens:
            scanned = per_rank(shape.keys, shape.context_parallel) if self.splits_context else shape.keys
            every = scanned if shape.decode else read
            scored = attention_flops(shape.tokens, scanned, a.index_heads, a.index_dim, 0)
            index = attention_bytes(shape.sequences, every, a.index_dim + INDEX_BYTES, 1.0)
            self.add("indexer", layers, scored, index, machine.index, machine.cache_bandwidth, KERNELS["sparse"])
        if self.splits_context:
            self.join_context(layers, a)

    @property
    def splits_context(self) -> bool:
        """Say whether any plan splits sequences."""
        return bool(np.any(np.asarray(self.shape.context_parallel) > 1))

    def join_context(self, layers: int, a: Attention) -> None:
        """Add the exchange of softmax sums among the chips that split a sequence; what they attended to joins the all-reduce."""
        shape, ranks = self.shape, self.shape.context_parallel
        sums = message_bytes(shape.tokens, np.ceil(a.heads / shape.tensor_parallel) * ranks, float(SUM_BYTES))
        self.gather("context sums", layers, self.context_group(ranks, shape.crossing), sums)

    def context_group(self, ranks: Any, crossing: Any) -> Group:
        """Return where the chips lie that split a sequence, a tensor-parallel group apart from each other."""
        shape = self.shape
        within = np.minimum(np.ceil(shape.tensor_parallel * ranks / self.machine.links.domain - 1e-9), ranks)
        domains = np.where(crossing, shape.domains, within)
        return Group(ranks, domains, ranks / domains)

    def gather_keys(self, ranks: Any, crossing: Any, prompt: Any) -> None:
        """Add the gathering of a prompt's keys and values on the chips that split it."""
        group = self.context_group(ranks, crossing)
        for a, layers in self.model.attentions.items():
            tokens = attended_keys(prompt, a.window) if a.window else prompt
            self.gather("context gather", layers, group, message_bytes(tokens, self.core_widths(a)[1], self.machine.cache_size))

    def gather(self, name: str, layers: Any, group: Group, size: Any) -> None:
        """Add an all-gather of `size` bytes over some chips."""
        met = reach(self.machine.links, group)
        time = added_latency(gather(met, size).time, self.machine.collective_wait)
        self.collective(name, layers, only_if_shared(time, group.ranks), size, met.links.inside)

    def core_widths(self, a: Attention) -> tuple[int, Any]:
        """Return numbers per query-key pair and head, and cached numbers per token of one chip: the latent is whole on every rank."""
        if not a.latent:
            return a.qk_dim + a.v_dim, a.cached / np.minimum(self.shape.tensor_parallel, a.kv_heads)
        absorbed = self.shape.decode or bool(a.top_tokens)
        return (2 * a.latent + a.rope_dim if absorbed else a.qk_dim + a.v_dim), a.cached

    def recurrence(self, layers: int, mixer: StateMixer) -> None:
        """Add a state-space or linear-attention layer: projections, and the state read, changed and written."""
        machine, shape = self.machine, self.shape
        hidden, form = self.model.hidden, self.forms[0]
        sides = ((hidden, mixer.projected / shape.tensor_parallel), (mixer.inner / shape.tensor_parallel, hidden))
        kernels = KERNELS["recurrent"]
        self.weights("recurrent projections", layers, sides, shape.tokens, machine.attention_size, machine.attention_gemm, kernels, form)
        state = mixer.state_numbers / shape.tensor_parallel
        flops = passing_flops(mixer.passes * state, shape.tokens)
        moved = attention_bytes(shape.sequences, 1, state, float(STATE_BYTES))
        self.add("recurrence", layers, flops, moved, machine.recurrent, machine.cache_bandwidth)

    # ---------------------------------------------------------------- feed-forward
    def feed_forward(self, layers: int, f: FeedForward) -> None:
        """Add a dense feed-forward, or router, shared and routed experts."""
        machine, shape, hidden = self.machine, self.shape, self.model.hidden
        if not f.experts:
            sides = gated(f, hidden, f.width / shape.attention_chips)
            self.weights("feed-forward", layers, sides, shape.tokens, machine.dense_size, machine.dense_gemm, KERNELS["dense"], self.forms[1])
            return
        if f.shared_width:
            sides = gated(f, hidden, f.shared_width / shape.attention_chips)
            self.weights("shared expert", layers, sides, shape.tokens, machine.dense_size, machine.dense_gemm, KERNELS["shared"], self.forms[1])
        self.experts(layers, f)

    def experts(self, layers: int, f: FeedForward) -> None:
        """Add the routed experts of the busiest group: those that tokens reach are read, the tokens they get computed."""
        machine, shape = self.machine, self.shape
        split = f.expert_parameters(self.model.hidden) * shape.expert_parallel / shape.expert_chips
        tokens = moe.instance_tokens(shape.tokens, self.groups / shape.replicas)
        local = np.ceil(f.experts / shape.expert_parallel)
        reached = moe.busiest_reached(
            moe.distinct_experts(f.experts, f.active, tokens, f.experts / shape.expert_parallel), shape.expert_parallel, machine.imbalance, local
        )
        load = moe.group_tokens(tokens, f.active, shape.expert_parallel)
        if shape.decode:
            load = moe.busiest_load(load, shape.expert_parallel, machine.imbalance)
        flops, moved = passing_flops(split, load), moe.expert_traffic(reached, split, machine.expert_size)
        sides, form = gated(f, f.latent or self.model.hidden, f.width * shape.expert_parallel / shape.expert_chips), self.forms[2]
        rate = self.filled(machine.expert_gemm, sides, numbers_of(sides), per_rank(load, reached), form)
        unpacking = self.unpacking(moe.reached_weights(reached, split), form)
        self.add("experts", layers, flops, moved, rate, machine.bandwidth, KERNELS["experts"], unpacking, machine.expert_engine)
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
        own = per_rank(shape.tokens, shape.attention_chips / shape.copies)
        met = reach(machine.links, group_of(machine.links, shape.expert_chips / shape.copies))
        tokens = [token_bytes(self.model.hidden, size, 0.0, 1) for size in (machine.dispatch_size, machine.activation_size)]
        times = expert_exchanges(met, own, f.active, tokens)
        for name, token, time in zip(("dispatch", "combine"), tokens, times, strict=True):
            waiting = only_if_shared(added_latency(time, machine.exchange_wait), self.groups)
            self.collective(name, layers, waiting, scattered_bytes(own, f.active, token, 1.0), met.links.spread)
        if np.any(np.asarray(shape.copies) > 1):  # both halves of every expert's sum meet between paired chips
            size, pair = message_bytes(own, self.model.hidden, machine.activation_size), Group(shape.copies, shape.copies, 1)
            time = added_latency(one_shot(reach(machine.links, pair), size).time, machine.collective_wait)
            self.collective("expert all-reduce", layers, only_if_shared(time, shape.copies), size, machine.links.crossing)

    # ---------------------------------------------------------------- what every layer has
    def reduce(self, layers: int) -> None:
        """Add the two all-reduces of a layer that join the parts of an attention group; with experts spread wider only attention has one."""
        machine, shape, ranks = self.machine, self.shape, self.shape.attention_chips
        size = message_bytes(shape.tokens, self.model.hidden, machine.activation_size)
        near = group_of(machine.links, ranks)
        domains = np.where(shape.crossing, shape.domains, near.domains)
        group = Group(ranks, domains, ranks / domains)
        met = reach(machine.links, group)
        quickest = least("all-reduce", [timing.time for timing in all_reduce(met, size).values()])
        time = added_latency(quickest, machine.collective_wait)
        self.collective("all-reduce", layers * (1.0 + (self.groups <= 1.001)), only_if_shared(time, ranks), size, met.links.inside)

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
            ((model.hidden, model.vocabulary / shape.attention_chips),),
            logits_tokens,
            machine.head_size,
            machine.head_gemm,
            KERNELS["head"],
        )
        launches = kernel_time(self.kernels, machine.launch)
        self.operators.append(Operator("launches", launches, 1, 0.0, 0.0, machine.core, machine.bandwidth, launches))
        return self.operators


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
