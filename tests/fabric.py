"""What joins chips, for the tests: groups of ranks, what they meet, and how long collectives take on it."""

from __future__ import annotations

from tco.fabric.algorithms import Tokens, cheapest, choose, reach, timings, timings_on
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
