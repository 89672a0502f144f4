"""The operators of feed-forward parts: dense, shared and routed experts, and the exchange of tokens between their groups."""

from __future__ import annotations

import numpy as np

from tco.fabric.costs import scattered_bytes, token_bytes
from tco.fabric.experts import Tokens
from tco.fabric.library import EXCHANGES
from tco.fabric.links import Group, group_of
from tco.foundation.formula import somewhere, total
from tco.foundation.trace import scope
from tco.models.layers import FeedForward
from tco.models.products import up_and_down
from tco.performance.chip import moe
from tco.performance.chip.messages import elementwise_bytes, hidden_pass_bytes, message_bytes, only_if_shared, per_rank
from tco.performance.serving.operators import DENSE, EXPERTS, HEAD, Pass


def feed_forward(made: Pass, layers: int, f: FeedForward) -> None:
    """Add a dense feed-forward, or router, shared and routed experts."""
    shape, hidden = made.shape, made.model.hidden
    if not f.experts:
        width = f.width / shape.attention_chips
        made.products("feed-forward", layers, up_and_down(f, hidden, width), shape.tokens, DENSE, "dense")
        made.elementwise(layers * width * f.matrices)  # both halves are read, their product is written
        return
    if f.shared_width:
        width = f.shared_width / shape.attention_chips
        made.products("shared expert", layers, up_and_down(f, hidden, width), shape.tokens, DENSE, "shared")
        made.elementwise(layers * width * f.matrices)
    experts(made, layers, f)


def experts(made: Pass, layers: int, f: FeedForward) -> None:
    """Add the router and the routed experts of the busiest group: those that tokens reach are read, the tokens they get computed."""
    machine, shape = made.machine, made.shape
    made.products("router", layers, ((made.model.hidden, f.experts),), shape.tokens, HEAD)
    with scope("experts"):
        tokens = moe.instance_tokens(shape.tokens, made.groups / shape.replicas)
        local = np.ceil(f.experts / shape.expert_parallel)
        reached = moe.busiest_reached(
            moe.distinct_experts(f.experts, f.active, tokens, f.experts / shape.expert_parallel), shape.expert_parallel, machine.imbalance, local
        )
        load = moe.group_tokens(tokens, f.active, shape.expert_parallel)
        if shape.decode:
            load = moe.busiest_load(load, shape.expert_parallel, machine.imbalance)
        width = f.width * shape.expert_parallel / shape.expert_chips
        sides = up_and_down(f, f.latent or made.model.hidden, width)
        made.grouped("experts", layers, sides, per_rank(load, reached), reached, "experts")
    with scope("permute and gate"):
        moved = [
            hidden_pass_bytes(load, made.model.hidden, machine.permutes, machine.activation_size),
            elementwise_bytes(load, width * f.matrices, machine.elementwise, machine.activation_size),
        ]
        if made.casts(EXPERTS):
            moved.append(made.cast_bytes(EXPERTS, load, sum(inner for inner, _ in sides)))
        made.stream("permute and gate", layers, total("permute and gate", moved))
    exchange(made, layers, f)


def exchange(made: Pass, layers: int, f: FeedForward) -> None:
    """Add dispatch and combine where attention groups hold different tokens."""
    machine, shape = made.machine, made.shape
    own = per_rank(shape.tokens, shape.attention_chips / shape.copies)
    ranks = shape.expert_chips / shape.copies
    group = group_of(machine.links, ranks)
    tokens = [token_bytes(made.model.hidden, size, 0.0, 1) for size in (machine.dispatch_size, machine.activation_size)]
    times = [made.took(name, group, own, Tokens(1.0, token, f.active)) for name, token in zip(EXCHANGES, tokens, strict=True)]
    for name, token, (time, links) in zip(EXCHANGES, tokens, times, strict=True):
        with scope(name):
            waiting = only_if_shared(made.waited(time, "exchange_wait", ranks), made.groups)
            made.collective(name, layers, waiting, scattered_bytes(own, f.active, token, 1.0), links.spread)
    if somewhere(shape.copies > 1):  # both halves of every expert's sum meet between paired chips
        with scope("expert all-reduce"):
            size, pair = message_bytes(own, made.model.hidden, machine.activation_size), Group(shape.copies, shape.copies, 1)
            waited = made.waited(made.took("all-reduce", pair, size)[0], "collective_wait", shape.copies)
            made.collective("expert all-reduce", layers, only_if_shared(waited, shape.copies), size, machine.links.crossing)
