"""A whole forward pass: the operators of every layer, what all layers have, and the output head."""

from __future__ import annotations

from typing import Any

from tco.fabric.links import Group, group_of
from tco.foundation.formula import select
from tco.foundation.trace import scope
from tco.performance.chip.messages import message_bytes, only_if_shared, passed_numbers
from tco.performance.serving.attention_operators import attention, recurrence
from tco.performance.serving.expert_operators import feed_forward
from tco.performance.serving.operators import HEAD, Operator, Pass


def reduce(made: Pass, layers: int) -> None:
    """Add the two all-reduces of a layer that join the parts of an attention group; with experts spread wider only attention has one."""
    machine, shape, ranks = made.machine, made.shape, made.shape.attention_chips
    with scope("all-reduce"):
        size = message_bytes(shape.tokens, made.model.hidden, machine.activation_size)
        near = group_of(machine.links, ranks)
        domains = select(shape.crossing > 0, shape.domains, near.domains)
        group = Group(ranks, domains, ranks / domains)
        time, links = made.took("all-reduce", group, size)
        waited = made.waited(time, "collective_wait", ranks)
        made.collective("all-reduce", layers * (1.0 + (made.groups <= 1.001)), only_if_shared(waited, ranks), size, links.inside)


def forward_pass(made: Pass, logits_tokens: Any) -> list[Operator]:
    """Return all operators of a pass, the output head computed for `logits_tokens`."""
    machine, model, shape = made.machine, made.model, made.shape
    made.elementwise(passed_numbers(model.hidden, machine.shared("embedding_passes"), 1))
    made.elementwise(passed_numbers(model.hidden, machine.shared("residual_passes"), model.layers))
    for kind, layers in model.attentions.items():
        attention(made, layers, kind)
    for mixer, layers in model.mixers.items():
        recurrence(made, layers, mixer)
    for part, layers in model.feed_forwards.items():
        feed_forward(made, layers, part)
    reduce(made, model.layers)
    made.products("output head", 1, ((model.hidden, model.vocabulary / shape.attention_chips),), logits_tokens, HEAD, "head")
    made.finish()
    return made.operators
