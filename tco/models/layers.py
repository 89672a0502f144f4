"""What else a layer is made of: feed-forward parts, state-space and linear-attention mixers, and the block that joins them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tco.models.attention import NO_ATTENTION, Attention


class FeedForward(NamedTuple):
    """Feed-forward part of one kind of layer: dense where `experts` is zero, absent where `width` is."""

    width: int  # dense width, or the width of one expert
    matrices: int  # 3 with a gate, 2 without
    experts: int = 0
    active: int = 0  # experts per token
    shared_width: int = 0  # width of the experts every token passes
    latent: int = 0  # routed experts work on this width instead of the hidden one
    bias: bool = False  # every matrix has one
    router_bias: bool = False
    shared_gate: bool = False  # the shared expert is scaled by a gate of its own

    def expert_parameters(self, hidden: int) -> int:
        """Weights of one routed expert."""
        side = self.latent or hidden
        return self.matrices * side * self.width + ((self.matrices - 1) * self.width + side if self.bias else 0)

    def common_parameters(self, hidden: int) -> int:
        """Weights every token of a layer with experts passes: router, shared experts, the ways into the latent and out."""
        router = self.experts * (hidden + (1 if self.router_bias else 0))
        shared = self.matrices * hidden * self.shared_width + (hidden if self.shared_gate else 0)
        return router + shared + 2 * hidden * self.latent

    def parameters(self, hidden: int) -> int:
        """Weights, all experts counted."""
        if not self.experts:
            return self.matrices * hidden * self.width + ((self.matrices - 1) * self.width + hidden if self.bias else 0)
        return self.common_parameters(hidden) + self.experts * self.expert_parameters(hidden)

    def active_parameters(self, hidden: int) -> int:
        """Weights one token passes."""
        if not self.experts:
            return self.parameters(hidden)
        return self.common_parameters(hidden) + self.active * self.expert_parameters(hidden)


NO_FEED_FORWARD = FeedForward(0, 0)


class StateMixer(NamedTuple):
    """A state-space or linear-attention layer: it caches no tokens, but keeps a state of fixed size for each sequence."""

    heads: int
    head_dim: int  # width of a value head
    groups: int  # heads share the keys and queries of a group (Mamba's B and C)
    state: int  # width of a key
    kernel: int  # taps of the short convolution before the recurrence
    controls: int  # numbers a head and token that steer the recurrence: 1 for Mamba-2, 2 for the gated delta rule
    scalars: int  # learned scalars a head
    norm: int  # scales of the gated norm behind the recurrence
    passes: int  # multiply-adds a token spends on each number of the state
    conv_bias: bool = False

    @property
    def inner(self) -> int:
        """Width of the values: H d."""
        return self.heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Width the convolution runs over: values, keys and queries."""
        return self.inner + 2 * self.groups * self.state

    @property
    def state_numbers(self) -> int:
        """Numbers of the recurrent state per sequence and layer: H d n."""
        return self.inner * self.state

    @property
    def held(self) -> int:
        """Numbers kept per sequence and layer: the recurrent state and the convolution's last inputs."""
        return self.state_numbers + self.convolved * (self.kernel - 1)

    @property
    def projected(self) -> int:
        """Width of the input projection: gate, values, keys, queries, controls."""
        return self.inner + self.convolved + self.controls * self.heads

    def parameters(self, hidden: int) -> int:
        """Weights of projections, convolution, scalars and norm."""
        taps = self.kernel + (1 if self.conv_bias else 0)
        return hidden * self.projected + self.convolved * taps + self.scalars * self.heads + self.norm + self.inner * hidden


class Block(NamedTuple):
    """Equal layers, wherever they stand in the stack. A layer has attention or a mixer, a feed-forward part, or one of them only."""

    layers: int
    attention: Attention = NO_ATTENTION
    feed_forward: FeedForward = NO_FEED_FORWARD
    mixer: StateMixer | None = None
    others: int = 0  # norms and other small weights of one layer

    def parameters(self, hidden: int) -> int:
        """Weights of one layer, all experts counted."""
        return self.common(hidden) + self.feed_forward.parameters(hidden)

    def active_parameters(self, hidden: int) -> int:
        """Weights one token passes in one layer."""
        return self.common(hidden) + self.feed_forward.active_parameters(hidden)

    def common(self, hidden: int) -> int:
        """Weights of one layer without its feed-forward part."""
        attention = self.attention.parameters(hidden) if self.attention.heads else 0
        return attention + (self.mixer.parameters(hidden) if self.mixer else 0) + self.others


def gathered(layers: Iterable[Block]) -> tuple[Block, ...]:
    """Return the kinds of layers in order of first appearance, equal ones counted together."""
    count: dict[Block, int] = {}
    for layer in layers:
        kind = layer._replace(layers=0)
        count[kind] = count.get(kind, 0) + layer.layers
    return tuple(kind._replace(layers=number) for kind, number in count.items() if number)
