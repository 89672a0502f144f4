"""What a micro-batch consists of: items with their forward and backward time, and the sums a step needs of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from tco.foundation.formula import total
from tco.performance.chip.messages import exposed_time

NEVER, SELECTIVE, FULL = 0, 1, 2  # the least recomputation that does an item's forward part again
TIERS = ("inside", "across")  # of the fabric: inside a scale-up domain, across domains
AGAIN = {"none": 0.0, "selective": 0.25, "full": 1.0}  # share of a forward pass's launches done again


class Shape(NamedTuple):
    """What the work of a micro-batch depends on. Numbers, or arrays that broadcast."""

    tensor: Any
    context: Any
    expert: Any
    micro_batch: Any
    data_stride: Any  # chips between neighbours of a data-parallel group
    sequence_parallel: Any
    overlap: Any


class Part(NamedTuple):
    """What an item's time rests on: work, traffic, the time both take beside each other, and the peak of the work."""

    flops: Any
    moved: Any
    time: Any
    peak: Any


class Item(NamedTuple):
    """One operator of a micro-batch over all layers that have it; its parts are those of one layer."""

    name: str
    bound: str  # "product", "memory" or "link"
    forward: Any
    backward: Any
    again: int
    layers: float = 1
    weight: Any = None  # of the backward time, that of weight gradients
    forward_part: Part | None = None
    backward_parts: tuple[Part, ...] = ()
    bandwidth: Any = None  # of passes through memory
    holds: Mapping[str, Any] = MappingProxyType({})  # how long a collective holds the links of each tier, exposed or not
    share: Any = 0.0  # of a collective that the chip waits for
    size: Any = 0.0  # bytes a chip hands to it each time
    counts: tuple[int, int] = (0, 0)  # times it runs forward and backward


@dataclass(slots=True)
class Work:
    """All items of a micro-batch, and their sums."""

    items: list[Item] = field(default_factory=list)
    across: list[Item] = field(default_factory=list)  # exchanges between domains, which some schedules hide
    head: list[Item] = field(default_factory=list)
    tokens: Any = None

    def forward(self) -> Any:
        """Return the time of the forward pass, exchanges between domains left out."""
        return total("forward", [item.forward for item in self.items])

    def backward(self) -> Any:
        """Return the time of the backward pass without recomputation."""
        return total("backward", [item.backward for item in self.items])

    def weights(self) -> Any:
        """Return the time of the weight gradients, part of the backward pass."""
        terms = [item.weight for item in self.items if item.weight is not None]
        return total("weight_gradients", terms) if terms else 0.0

    def again(self, level: int) -> list[Any]:
        """Return the forward times that recomputation of a level repeats."""
        return [item.forward for item in self.items if NEVER < item.again <= level]

    def crossing(self, level: int) -> Any:
        """Return the time of exchanges between domains, recomputation included."""
        return total("crossing", [time for item in self.across for time in (item.forward, item.backward, *([item.forward] * (level == FULL)))])

    def links(self, level: int, tier: str) -> tuple[Any, Any]:
        """Return how long collectives hold the links of a tier, and for how long of that the chip waits; recomputation included."""
        found = [(item, (2 if level == FULL else 1) * item.counts[0] + item.counts[1]) for item in (*self.items, *self.across) if tier in item.holds]
        if not found:
            return 0.0, 0.0
        held = [exposed_time(item.holds[tier], runs, 1.0) for item, runs in found]
        waited = [exposed_time(item.holds[tier], runs, item.share) for item, runs in found]
        return total(f"links_{tier}", held), total(f"waits_{tier}", waited)

    def output(self) -> Any:
        """Return the time of the output head, both ways."""
        return total("output_head", [time for item in self.head for time in (item.forward, item.backward)])
