"""A whole forward pass: the operators of every layer, what all layers have, and the output head."""

from __future__ import annotations

from typing import Any

import numpy as np

from tco.fabric.algorithms import choose, reach
from tco.fabric.links import Group, group_of
from tco.performance.chip.messages import added_latency, hidden_pass_bytes, kernel_time, message_bytes, only_if_shared
from tco.performance.serving.attention_operators import attention, recurrence
from tco.performance.serving.expert_operators import feed_forward
from tco.performance.serving.operators import KERNELS, Operator, Pass

LOOKUP_PASSES = 2  # a row of the embedding is read and written


def reduce(made: Pass, layers: int) -> None:
    """Add the two all-reduces of a layer that join the parts of an attention group; with experts spread wider only attention has one."""
    machine, shape, ranks = made.machine, made.shape, made.shape.attention_chips
    size = message_bytes(shape.tokens, made.model.hidden, machine.activation_size)
    near = group_of(machine.links, ranks)
    domains = np.where(shape.crossing, shape.domains, near.domains)
    group = Group(ranks, domains, ranks / domains)
    met = reach(machine.links, group)
    time = added_latency(choose(met, "all-reduce", size), machine.collective_wait)
    made.collective("all-reduce", layers * (1.0 + (made.groups <= 1.001)), only_if_shared(time, ranks), size, met.links.inside)


def forward_pass(made: Pass, logits_tokens: Any) -> list[Operator]:
    """Return all operators of a pass, the output head computed for `logits_tokens`."""
    machine, model, shape = made.machine, made.model, made.shape
    made.stream("embedding", 1, hidden_pass_bytes(shape.tokens, model.hidden, LOOKUP_PASSES, machine.activation_size))
    for kind, layers in model.attentions.items():
        attention(made, layers, kind)
    for mixer, layers in model.mixers.items():
        recurrence(made, layers, mixer)
    for part, layers in model.feed_forwards.items():
        feed_forward(made, layers, part)
    reduce(made, model.layers)
    made.stream("norms and residuals", model.layers, hidden_pass_bytes(shape.tokens, model.hidden, machine.passes, machine.activation_size))
    head = ((model.hidden, model.vocabulary / shape.attention_chips),)
    made.weights("output head", 1, head, logits_tokens, machine.head_size, machine.head_gemm, KERNELS["head"])
    launches = kernel_time(made.kernels, machine.launch)
    made.operators.append(Operator("launches", launches, 1, 0.0, 0.0, machine.core, machine.bandwidth, launches))
    return made.operators
