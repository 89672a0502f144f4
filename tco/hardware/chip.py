"""What the engines and the memory stacks of a chip give at most, from their sizes and clocks, and all chips of a domain together."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import formula
from tco.foundation.units import FLOP, Byte, BytePerSecond, FLOPPerSecond, PerSecond, Pure


@formula(unit="byte", source="tco-model")
def stack_capacity(dies: Pure, die_capacity: Byte) -> Any:
    """Capacity of a stack of memory dies: C = n c."""
    return dies * die_capacity


@formula(unit="byte/s", source="tco-model")
def pin_bandwidth(stacks: Pure, pins: Pure, pin_rate: BytePerSecond) -> Any:
    """Bandwidth of the memory stacks of a chip: B = stacks x data pins x pin rate."""
    return stacks * pins * pin_rate


@formula(unit="FLOP/s", source="tco-model")
def systolic_peak(rows: Pure, columns: Pure, clock: PerSecond, cores: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Dense peak of systolic arrays, each element a multiply-accumulate a cycle: P = 2 R C f N."""
    return flop_per_mac * rows * columns * clock * cores


@formula(unit="byte", source="semianalysis-trn3")
def device_capacity(capacity: Byte, cores_per_device: Pure, cores: Pure) -> Any:
    """Memory of one of the logical devices that a chip's cores form: C n / N."""
    return capacity * cores_per_device / cores


@formula(unit="FLOP/s", source="tco-model")
def domain_peak(chips: Pure, peak: FLOPPerSecond) -> Any:
    """Peak of all chips of a scale-up domain: P = N p."""
    return chips * peak


@formula(unit="byte", source="tco-model")
def domain_capacity(chips: Pure, capacity: Byte) -> Any:
    """Memory of all chips of a scale-up domain: C = N c."""
    return chips * capacity


@formula(unit="byte/s", source="tco-model")
def domain_bandwidth(chips: Pure, bandwidth: BytePerSecond) -> Any:
    """Memory bandwidth of all chips of a scale-up domain: B = N b."""
    return chips * bandwidth
