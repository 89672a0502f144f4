"""The operators of feed-forward parts: dense, shared and routed experts, and the exchange of tokens between their groups."""

from __future__ import annotations

import numpy as np

from tco.fabric.algorithms import choose, expert_exchanges, reach
from tco.fabric.costs import scattered_bytes, token_bytes
from tco.fabric.links import Group, group_of
from tco.models.layers import FeedForward
from tco.models.products import numbers_of, up_and_down
from tco.performance.chip import moe
from tco.performance.chip.messages import added_latency, hidden_pass_bytes, message_bytes, only_if_shared, per_rank
from tco.performance.chip.roofline import passing_flops
from tco.performance.serving.operators import KERNELS, Pass


def feed_forward(made: Pass, layers: int, f: FeedForward) -> None:
    """Add a dense feed-forward, or router, shared and routed experts."""
    machine, shape, hidden = made.machine, made.shape, made.model.hidden
    if not f.experts:
        sides = up_and_down(f, hidden, f.width / shape.attention_chips)
        made.weights("feed-forward", layers, sides, shape.tokens, machine.dense_size, machine.dense_gemm, KERNELS["dense"], made.forms[1])
        return
    if f.shared_width:
        sides = up_and_down(f, hidden, f.shared_width / shape.attention_chips)
        made.weights("shared expert", layers, sides, shape.tokens, machine.dense_size, machine.dense_gemm, KERNELS["shared"], made.forms[1])
    experts(made, layers, f)


def experts(made: Pass, layers: int, f: FeedForward) -> None:
    """Add the router and the routed experts of the busiest group: those that tokens reach are read, the tokens they get computed."""
    machine, shape = made.machine, made.shape
    made.weights("router", layers, ((made.model.hidden, f.experts),), shape.tokens, machine.head_size, machine.head_gemm)
    split = f.expert_parameters(made.model.hidden) * shape.expert_parallel / shape.expert_chips
    tokens = moe.instance_tokens(shape.tokens, made.groups / shape.replicas)
    local = np.ceil(f.experts / shape.expert_parallel)
    reached = moe.busiest_reached(
        moe.distinct_experts(f.experts, f.active, tokens, f.experts / shape.expert_parallel), shape.expert_parallel, machine.imbalance, local
    )
    load = moe.group_tokens(tokens, f.active, shape.expert_parallel)
    if shape.decode:
        load = moe.busiest_load(load, shape.expert_parallel, machine.imbalance)
    flops, moved = passing_flops(split, load), moe.expert_traffic(reached, split, machine.expert_size)
    sides, form = up_and_down(f, f.latent or made.model.hidden, f.width * shape.expert_parallel / shape.expert_chips), made.forms[2]
    rate = made.filled(machine.expert_gemm, sides, numbers_of(sides), per_rank(load, reached), form)
    unpacking = made.unpacking(moe.reached_weights(reached, split), form)
    made.add("experts", layers, flops, moved, rate, machine.bandwidth, KERNELS["experts"], unpacking, machine.expert_engine)
    expanded = hidden_pass_bytes(load, made.model.hidden, machine.permutes, machine.activation_size)
    made.stream("permute", layers, expanded)
    exchange(made, layers, f)


def exchange(made: Pass, layers: int, f: FeedForward) -> None:
    """Add dispatch and combine where attention groups hold different tokens."""
    machine, shape = made.machine, made.shape
    own = per_rank(shape.tokens, shape.attention_chips / shape.copies)
    met = reach(machine.links, group_of(machine.links, shape.expert_chips / shape.copies))
    tokens = [token_bytes(made.model.hidden, size, 0.0, 1) for size in (machine.dispatch_size, machine.activation_size)]
    times = expert_exchanges(met, own, f.active, tokens)
    for name, token, time in zip(("dispatch", "combine"), tokens, times, strict=True):
        waiting = only_if_shared(added_latency(time, machine.exchange_wait), made.groups)
        made.collective(name, layers, waiting, scattered_bytes(own, f.active, token, 1.0), met.links.spread)
    if np.any(np.asarray(shape.copies) > 1):  # both halves of every expert's sum meet between paired chips
        size, pair = message_bytes(own, made.model.hidden, machine.activation_size), Group(shape.copies, shape.copies, 1)
        time = added_latency(choose(reach(machine.links, pair), "all-reduce", size), machine.collective_wait)
        made.collective("expert all-reduce", layers, only_if_shared(time, shape.copies), size, machine.links.crossing)
