"""The operators of a pass on one chip, for arrays of plans, chips or number formats: what each rests on, and how its time follows.

Which operators exist is structure: it follows from the architecture and the pass. How long each takes is formulas of values. Axes of
the plan (tokens, tensor parallel, group sizes) are plain numbers or arrays that broadcast against each other.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from tco.fabric.algorithms import choose, reach
from tco.fabric.links import Group
from tco.foundation.errors import DataError
from tco.foundation.formula import total
from tco.models.model import Architecture
from tco.models.products import Side, numbers_of
from tco.performance.chip import moe
from tco.performance.chip.formats import Computed, unpacking_time
from tco.performance.chip.machine import Machine, share_of_rate
from tco.performance.chip.messages import added_latency, only_if_shared, stream_time
from tco.performance.chip.roofline import array_fill, overlapped_beside, overlapped_time, padded_weights, passing_flops, repeated, weight_traffic

# Dependent kernels of one layer and of the head, counted from the operator graph of current serving engines.
KERNELS = {"grouped": 5, "latent": 11, "sparse": 14, "recurrent": 11, "dense": 4, "experts": 7, "shared": 3, "head": 10}


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
    kernels: Any = 0  # started for one layer


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
        self.operators.append(Operator(name, repeated(one, layers), layers, flops, moved, rate, bandwidth, 0.0, beside=beside, kernels=kernels))

    def weights(
        self, name: str, layers: Any, sides: Collection[Side], tokens: Any, size: Any, rate: Any, kernels: int = 0, form: Computed | None = None
    ) -> None:
        """Add matrix products of tokens with weights of some sides, each inner x outer."""
        weights, machine = numbers_of(sides), self.machine
        filled = self.filled(rate, sides, weights, tokens, form)
        unpacking = self.unpacking(weights, form)
        self.add(name, layers, passing_flops(weights, tokens), weight_traffic(weights, size), filled, machine.bandwidth, kernels, unpacking)

    def filled(self, rate: Any, sides: Collection[Side], weights: Any, tokens: Any, form: Computed | None) -> Any:
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

    def gather(self, name: str, layers: Any, group: Group, size: Any) -> None:
        """Add an all-gather of `size` bytes over some chips."""
        met = reach(self.machine.links, group)
        time = added_latency(choose(met, "all-gather", size), self.machine.collective_wait)
        self.collective(name, layers, only_if_shared(time, group.ranks), size, met.links.inside)
