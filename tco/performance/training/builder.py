"""What collects the items of a micro-batch: products, passes through memory and collectives, each forward and backward."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import total
from tco.foundation.trace import scope
from tco.performance.chip.messages import exposed_time, per_rank, stream_time
from tco.performance.chip.products import Operands, Product, product
from tco.performance.chip.roofline import conversion_traffic, repeated, smooth_maximum
from tco.performance.training import compute
from tco.performance.training.items import FULL, Item, Part, Shape, Work
from tco.performance.training.job import Job
from tco.performance.training.machine import Practice, Products
from tco.performance.training.traffic import Exchange


class Builder:
    """Collects the items of a micro-batch."""

    def __init__(self, job: Job, practice: Practice, shape: Shape) -> None:
        self.job, self.practice, self.shape = job, practice, shape
        self.tokens = compute.rank_tokens(shape.micro_batch, job.sequence, shape.context)
        self.work = Work(tokens=self.tokens)
        self.wide_split = 1 + (shape.tensor - 1) * shape.sequence_parallel
        self.element = job.wide_size

    def product(self, name: str, layers: int, tokens: Any, inner: Any, outer: Any, groups: Any = None, again: int = FULL) -> None:
        """Add a linear layer: forward, input gradients and weight gradients.

        Products of experts run in groups, each with weights of its own, which share the tokens.
        """
        practice = self.practice
        self.work.items.append(self.linear(name, layers, tokens, inner, outer, practice.forward, practice.backward, groups, again))
        sides = (practice.forward.conversion, inner), (practice.backward.conversion, outer)
        if any(size is not None for size, _ in sides):
            with scope(f"{name} format conversion"):
                moved = [conversion_traffic(tokens, numbers, 0.0 if size is None else size) for size, numbers in sides]
            self.passes(f"{name} format conversion", layers, moved[0], moved[1], FULL)

    def linear(
        self,
        name: str,
        layers: int,
        tokens: Any,
        inner: Any,
        outer: Any,
        forward: Products,
        backward: Products,
        groups: Any = None,
        again: int = FULL,
    ) -> Item:
        """Return a linear layer whose gradients may be made in another format."""
        rows = tokens if groups is None else per_rank(tokens, groups)
        first, back = forward.made, backward.made
        with scope(name):
            with scope("forward"):
                parts = [self.part(self.run(first, rows, outer, inner, groups), forward)]
            with scope("backward"):
                parts.append(self.part(self.run(back, rows, inner, outer, groups), backward))
            if not self.job.software.adapters:
                with scope("weights"):
                    parts.append(self.weight_gradients(self.run(back, outer, inner, rows, groups), backward, tokens, inner, outer, groups))
            times = [repeated(part.time, layers) for part in parts]
            weight = None if self.job.software.adapters else times[2]
            return Item(name, "product", times[0], total(f"{name} backward", times[1:]), again, layers, weight, parts[0], tuple(parts[1:]))

    def run(self, made: Operands, rows: Any, columns: Any, inner: Any, groups: Any) -> Product:
        """Return a product, or those of experts: one kernel whose tiles share the waves, or one after the other."""
        if groups is None or not self.job.software.separate_experts:
            return product(made, rows, columns, inner, groups)
        one = product(made, rows, columns, inner)
        each = (total("product", [time, self.practice.launch]) for time in (one.time, one.computing, one.moving))
        whole, computing, moving = (repeated(time, groups) for time in each)
        return Product(whole, computing, moving, compute.group_work(one.flops, groups), compute.group_bytes(one.bytes, groups))

    def part(self, found: Product, form: Products) -> Part:
        """Return a product with the launch of its kernel."""
        return Part(found.flops, found.bytes, total("product", [found.time, self.practice.launch]), form.peak)

    def weight_gradients(self, found: Product, form: Products, tokens: Any, inner: Any, outer: Any, groups: Any) -> Part:
        """Return the product that makes weight gradients, which adds to the sums itself, or leaves that to a kernel of its own."""
        weights, size = inner * outer * (1 if groups is None else groups), self.job.values["workload.accumulator_size"]
        if self.job.software.adds_in_product:
            moved = compute.weight_gradient_bytes(tokens, inner, outer, weights, form.made.input_size, size)
            time = smooth_maximum(found.computing, stream_time(moved, form.made.stream), form.made.overlap)
            return Part(found.flops, moved, total("product", [time, self.practice.launch]), form.peak)
        moved = compute.gradient_sum_bytes(weights, self.element, size)
        adding = stream_time(moved, form.made.stream)
        launches = [self.practice.launch, self.practice.launch]
        return Part(found.flops, total("bytes", [found.bytes, moved]), total("product and sum", [found.time, adding, *launches]), form.peak)

    def passes(self, name: str, layers: float, forward: Any, backward: Any, again: int, to: list[Item] | None = None, bandwidth: Any = None) -> None:
        """Add passes through memory, given the bytes both ways, at a bandwidth of their own where they have one."""
        rate = self.practice.bandwidth if bandwidth is None else bandwidth
        with scope(name):
            times = [repeated(stream_time(moved, rate), layers) for moved in (forward, backward)]
        (self.work.items if to is None else to).append(Item(name, "memory", times[0], times[1], again, bandwidth=rate))

    def link(self, name: str, size: Any, found: Exchange, counts: tuple[int, int], share: Any, to: list[Item] | None = None) -> None:
        """Add a collective that takes `size` bytes, runs some times forward and backward and is exposed by a share."""
        with scope(name):
            forward, backward = (exposed_time(found.time, count, share) for count in counts)
        item = Item(name, "link", forward, backward, FULL, holds=found.holds, share=share, size=size, counts=counts)
        (self.work.items if to is None else to).append(item)
