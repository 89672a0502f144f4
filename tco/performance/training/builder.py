"""What collects the items of a micro-batch: products, passes through memory and collectives, each forward and backward."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.foundation.formula import total
from tco.performance.chip.messages import exposed_time, stream_time
from tco.performance.chip.roofline import conversion_traffic, gemm_flops, product_bytes, repeated
from tco.performance.training import compute
from tco.performance.training.items import FULL, Item, Part, Shape, Work
from tco.performance.training.job import Job, Practice, Products
from tco.performance.training.traffic import Span


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
        self.work = Work(tokens=self.tokens)
        self.wide_split = 1 + (shape.tensor - 1) * shape.sequence_parallel
        self.element = job.wide_size

    def product(self, name: str, layers: int, tokens: Any, inner: Any, outer: Any, copies: Any = 1, narrow: int = 0) -> None:
        """Add a linear layer: forward, input gradients and weight gradients; `copies` different weights share the tokens.

        Products of experts run in groups, whose rate depends on their `narrow` side.
        """
        practice = self.practice
        forward = self.in_format(practice.forward, narrow)
        backward = forward if practice.backward is practice.forward else self.in_format(practice.backward, narrow)
        self.work.items.append(self.linear(name, layers, tokens, inner, outer, copies, forward, backward))
        sizes = practice.forward.conversion, practice.backward.conversion
        if any(size is not None for size in sizes):  # a size counts both passes, half of it in each
            moved = [conversion_traffic(tokens, inner + outer, 0.0 if size is None else size) for size in sizes]
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
            Part(flops, product_bytes(tokens, inner, outer, weights, operand.size, self.element), operand.rate, operand.peak)
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
        (self.work.items if to is None else to).append(Item(name, "memory", times[0], times[1], again, bandwidth=rate))

    def link(self, name: str, size: Any, time: Any, counts: tuple[int, int], share: Any, tier: str, to: list[Item] | None = None) -> None:
        """Add a collective that takes `size` bytes, runs some times forward and backward and is exposed by a share."""
        (forward, held), (backward, held_backward) = ((exposed_time(time, count, x) for x in (share, 1.0)) for count in counts)
        item = Item(name, "link", forward, backward, FULL, tier=tier, busy=(held, held_backward), size=size, counts=counts)
        (self.work.items if to is None else to).append(item)

    def collective(self, name: str, size: Any, place: Span, counts: tuple[int, int], share: Any) -> None:
        """Add an all-gather or reduce-scatter of a group, on each tier it uses."""
        times = self.practice.fabric.tiers(size, place)
        self.link(name, size, times["inside"], counts, share, "inside")
        if np.any(np.asarray(place.across) > 1):
            self.link(f"{name} across domains", 0.0, times["across"], counts, share, "across")  # the same buffer
