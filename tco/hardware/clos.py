"""Folded Clos arithmetic: how far a switch radix reaches, and how many switches, links and modules a bandwidth takes.

A switch of capacity C split into ports of rate p has the radix k = C / p. A NIC faster than a port spreads over parallel planes, so
the number of endpoints is set by the port rate alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tco.foundation.errors import DataError
from tco.foundation.formula import ceil_ratio, formula
from tco.foundation.trace import plain
from tco.foundation.units import BytePerSecond, Pure

MOST_TIERS = 4


@formula(unit="", source="clos-fat-tree")
def clos_endpoints(radix: Pure, tiers: Pure) -> Any:
    """Largest non-blocking folded Clos of one switch radix: n = 2 (k/2)^tiers."""
    return 2 * (radix / 2) ** tiers


@formula(unit="", source="clos-fat-tree")
def grown_reach(reach: Pure, radix: Pure, oversubscription: Pure) -> Any:
    """Endpoints after one more tier below: n' = n k s / (1 + s), s being downlink over uplink bandwidth (k/2 at s = 1)."""
    return reach * radix * oversubscription / (1 + oversubscription)


@formula(unit="", source="clos-fat-tree")
def switch_radix(capacity: BytePerSecond, port: BytePerSecond) -> Any:
    """Logical ports of a switch: k = C / p."""
    return np.floor(capacity / port + 1e-9)


@formula(unit="", source="clos-fat-tree")
def network_planes(nic: BytePerSecond, port: BytePerSecond) -> Any:
    """Parallel planes a NIC spreads over: NIC rate / port rate, at least one."""
    return np.maximum(nic / port, 1)


@formula(unit="byte/s", source="clos-fat-tree")
def edge_bandwidth(chips: Pure, nic: BytePerSecond) -> Any:
    """Bandwidth all NICs offer the first tier: B = chips x NIC rate."""
    return chips * nic


@formula(unit="byte/s", source="clos-fat-tree")
def uplink_bandwidth(downlink: BytePerSecond, oversubscription: Pure) -> Any:
    """Bandwidth a tier sends up: B_up = B_down / oversubscription."""
    return downlink / oversubscription


@formula(unit="", source="clos-fat-tree")
def tier_switches(downlink: BytePerSecond, uplink: BytePerSecond, capacity: BytePerSecond) -> Any:
    """Switches of a tier that carries some bandwidth down and up: n = ceil((B_down + B_up) / C)."""
    return ceil_ratio(downlink + uplink, capacity)


@formula(unit="", source="clos-fat-tree")
def tier_links(bandwidth: BytePerSecond, module: BytePerSecond) -> Any:
    """Links of one module rate that carry a bandwidth: n = ceil(B / module rate)."""
    return ceil_ratio(bandwidth, module)


@formula(unit="", source="clos-fat-tree")
def module_ends(links: Pure, ends: Pure) -> Any:
    """Optical modules of some links, one at each optical end: n = links x ends."""
    return links * ends


def reach_of(radices: Sequence[float], oversubscription: float) -> float:
    """Return the endpoints of a Clos whose tiers, the lowest first, have these radices."""
    reach: Any = radices[-1]
    for radix in radices[-2::-1]:
        reach = grown_reach(reach, radix, oversubscription)
    return float(plain(reach))


class ReachError(DataError):
    """More ends than a sensible Clos of a switch reaches."""


def tiers_needed(chips: float, radix: float, oversubscription: float = 1.0) -> int:
    """Return the fewest tiers that hold `chips` endpoints; a size no sensible Clos reaches raises `ReachError`."""
    for tiers in range(1, MOST_TIERS + 1):
        if chips <= reach_of([radix] * tiers, oversubscription) * (1 + 1e-9):
            return tiers
    most = math.floor(reach_of([radix] * MOST_TIERS, oversubscription))
    raise ReachError(
        f"{chips:,.0f} endpoints do not fit a Clos of {MOST_TIERS} tiers of {radix:.0f}-port switches: it reaches {most:,}; "
        "take slower ports or larger switches"
    )
