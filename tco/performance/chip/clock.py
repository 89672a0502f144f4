"""The clock a chip sustains under long products."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import FLOPPerSecond, Pure, Watt, WattPerFLOPPerSecond


@formula(unit="", source="tco-model")
def sustained_clock(power: Watt, peak: FLOPPerSecond, knee: WattPerFLOPPerSecond, exponent: Pure) -> Any:
    """Clock under a long product over the boost clock: c = (1 + (knee P / W)^(4 e))^(-1/4), W / P being watts per dense FLOP/s."""
    return (1 + (knee * peak / power) ** (4 * exponent)) ** -0.25
