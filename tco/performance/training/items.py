"""What a micro-batch consists of: items with their forward and backward time, and the sums a step needs of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tco.foundation.formula import total

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
    """What an item's time rests on: work, traffic, and the rates of both."""

    flops: Any
    moved: Any
    rate: Any
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
    tier: str = ""  # of a collective
    busy: tuple[Any, Any] = (0.0, 0.0)  # time it holds the links, exposed or not
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
        found = [item for item in (*self.items, *self.across) if item.tier == tier]
        if not found:
            return 0.0, 0.0
        again = slice(0, 3 if level == FULL else 2)
        held = [time for item in found for time in (*item.busy, item.busy[0])[again]]
        waited = [time for item in found for time in (item.forward, item.backward, item.forward)[again]]
        return total(f"links_{tier}", held), total(f"waits_{tier}", waited)

    def output(self) -> Any:
        """Return the time of the output head, both ways."""
        return total("output_head", [time for item in self.head for time in (item.forward, item.backward)])
