"""What joins chips, for the tests: groups of ranks, what they meet, and how long collectives take
on it.
"""

from __future__ import annotations

from typing import Any

from tco.fabric.algorithms import called, cheapest, choose, reach, ways
from tco.fabric.experts import Tokens
from tco.fabric.links import Group, Links, group_of
from tco.fabric.scopes import Scope, fabric_scopes
from tco.fabric.slices import Slice, slice_of

__all__ = [
    "OPERATIONS",
    "Group",
    "Links",
    "Scope",
    "Slice",
    "Tokens",
    "cheapest",
    "choose",
    "fabric_scopes",
    "group_of",
    "reach",
    "slice_of",
    "timings",
    "timings_on",
]  # what tests of several files ask for

OPERATIONS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv")


def timings(links: Links, operation: str, ranks: Any, size: Any) -> dict[str, Any]:
    """The timing of every algorithm for consecutive ranks."""
    return timings_on(links, operation, group_of(links, ranks), size)


def timings_on(links: Links, operation: str, group: Group, size: Any) -> dict[str, Any]:
    """The timing of every algorithm that the fabric allows for a group wherever its ranks stand."""
    at = reach(links, group)
    return {
        name: called(at, operation, way(), size) for name, way in ways(at, operation, size).items()
    }
