"""Names that tests use inside the fabric: groups of ranks, their links, times of collectives."""

from __future__ import annotations

from typing import Any

from tco.fabric.collectives import (
    algorithms_for,
    cheapest,
    fastest_algorithm_time,
    reach,
    with_caller_overhead,
)
from tco.fabric.expert_exchange import Tokens
from tco.fabric.links import Links, RankGroup, rank_group
from tco.fabric.topology import FabricScope, fabric_scopes
from tco.fabric.torus import TorusSlice, slice_of

# what tests of several files ask for
__all__ = [
    "OPERATIONS",
    "FabricScope",
    "Links",
    "RankGroup",
    "Tokens",
    "TorusSlice",
    "cheapest",
    "fabric_scopes",
    "fastest_algorithm_time",
    "rank_group",
    "reach",
    "slice_of",
    "timings",
    "timings_on",
]

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv")


def timings(links: Links, operation: str, ranks: Any, size: Any) -> dict[str, Any]:
    """The timing of every algorithm for consecutive ranks."""
    return timings_on(links, operation, rank_group(links, ranks), size)


def timings_on(links: Links, operation: str, group: RankGroup, size: Any) -> dict[str, Any]:
    """The timing of every algorithm that the fabric allows for a group wherever its ranks stand."""
    group_links = reach(links, group)
    return {
        name: with_caller_overhead(group_links, operation, algorithm_time(), size)
        for name, algorithm_time in algorithms_for(group_links, operation, size).items()
    }
