"""Slices of a torus: blocks of neighbouring chips for groups smaller than the torus.

The size of a slice divides the size of the torus in every dimension, so equal slices tile the
torus. The chips along a dimension form a closed ring if the slice spans the dimension. They also
form a closed ring if the slice consists of whole blocks, which optical switches join. Otherwise
they form an open line. Sizes and lanes are fixed numbers; only the rate of a lane may vary.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import floor
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import BytePerSecond, Pure


class Torus(NamedTuple):
    """Torus of chips. Each tuple has an entry for every dimension."""

    sizes: tuple[int, ...]  # chips
    lanes: tuple[float, ...]  # lanes per link
    block: tuple[int, ...] = ()  # chips of a block of the optical switches; empty without them


class TorusSlice(NamedTuple):
    """Slice of a torus. Each tuple has an entry for every dimension."""

    sizes: tuple[int, ...]  # chips
    closed: tuple[bool, ...]  # whether the chips form a closed ring and not an open line
    lanes: tuple[float, ...]  # lanes per link

    @property
    def chips(self) -> int:
        """Number of chips in the slice."""
        return math.prod(self.sizes)

    @property
    def directions(self) -> tuple[int, ...]:
        """Links of the worst-placed chip by dimension: two on a ring, one on a line or pair."""
        return tuple(
            min(size - 1, 2 if closed else 1)
            for size, closed in zip(self.sizes, self.closed, strict=True)
        )

    @property
    def injection(self) -> float:
        """Number of lanes of the worst-placed chip."""
        return sum(links * width for links, width in zip(self.directions, self.lanes, strict=True))

    @property
    def mean_injection(self) -> float:
        """Mean number of lanes per chip; a line of d chips has d - 1 links."""
        mean_links = (
            links if closed or size < 3 else 2 * (size - 1) / size
            for links, size, closed in zip(self.directions, self.sizes, self.closed, strict=True)
        )
        return sum(links * width for links, width in zip(mean_links, self.lanes, strict=True))

    @property
    def steps(self) -> int:
        """Number of steps of bucket rings over all dimensions."""
        return sum(size - 1 for size in self.sizes)

    @property
    def narrowest(self) -> int:
        """Index of the dimension with the lowest all-to-all rate."""
        dimensions = zip(self.sizes, self.directions, self.lanes, strict=True)
        rates_or_inf = [
            links * width * size / (size * size // 4) if size > 1 else math.inf
            for size, links, width in dimensions
        ]
        return rates_or_inf.index(min(rates_or_inf))

    @property
    def all_to_all(self) -> float:
        """All-to-all rate of a chip through the narrowest dimension, in lanes."""
        dimension = self.narrowest
        return (
            self.directions[dimension]
            * self.lanes[dimension]
            * self.sizes[dimension]
            / (self.sizes[dimension] ** 2 // 4)
        )

    @property
    def hops_mean(self) -> float:
        """Mean number of intermediate chips between distinct chips.

        The mean distance along a dimension is floor(d^2/4)/d links on a ring and (d^2-1)/(3d) on a
        line.
        """
        pairs = zip(self.sizes, self.closed, strict=True)
        links = sum(
            (size * size // 4) / size if closed else (size * size - 1) / (3 * size)
            for size, closed in pairs
        )
        return links * self.chips / (self.chips - 1) - 1

    @property
    def hops_worst(self) -> int:
        """Largest number of intermediate chips between two chips."""
        return (
            sum(
                size // 2 if closed else size - 1
                for size, closed in zip(self.sizes, self.closed, strict=True)
            )
            - 1
        )


def _closed_rings(torus: Torus, sizes: tuple[int, ...]) -> tuple[bool, ...]:
    is_whole_blocks = bool(torus.block) and all(
        size % block_size == 0 for size, block_size in zip(sizes, torus.block, strict=True)
    )
    return tuple(
        is_whole_blocks or size == torus_size
        for size, torus_size in zip(sizes, torus.sizes, strict=True)
    )


@lru_cache(maxsize=4096)
def slice_of(torus: Torus, chips: int) -> TorusSlice:
    """Return the smallest slice that holds `chips`.

    Among slices of equal size the order is: highest all-to-all rate, fewest steps, most lanes.
    """
    torus_chips = math.prod(torus.sizes)
    if not 1 < chips <= torus_chips:
        raise ValueError(f"a slice of {chips} chips of a torus of {torus_chips}")
    size_divisors = [
        [divisor for divisor in range(1, size + 1) if size % divisor == 0] for size in torus.sizes
    ]
    shapes = [sizes for sizes in itertools.product(*size_divisors) if math.prod(sizes) >= chips]
    least_chips = min(math.prod(sizes) for sizes in shapes)
    smallest_slices = [
        TorusSlice(sizes, _closed_rings(torus, sizes), torus.lanes)
        for sizes in shapes
        if math.prod(sizes) == least_chips
    ]
    return min(
        smallest_slices,
        key=lambda torus_slice: (
            -torus_slice.all_to_all,
            torus_slice.steps,
            -torus_slice.injection,
            tuple(-size for size in torus_slice.sizes),
        ),
    )


class NarrowestDimension(NamedTuple):
    """Dimension of a slice with the lowest all-to-all rate."""

    size: Quantity  # chips
    directions: Quantity  # links of the worst-placed chip
    lanes: Quantity  # lanes per link


class Slices(NamedTuple):
    """Slices for groups of several sizes. Numbers have the shape of the sizes."""

    chips: Any
    injection: Quantity  # lanes of the worst-placed chip
    hops_mean: Quantity  # mean number of intermediate chips
    hops_worst: Quantity  # largest number of intermediate chips
    steps: Quantity  # steps of bucket rings over all dimensions
    rings: tuple[tuple[Quantity, Quantity], ...]  # (size, one if closed) for each dimension
    narrowest: NarrowestDimension


def slices_of(torus: Torus, chips: Any) -> Slices:
    """Return the slices of groups of chips.

    Args:
        torus: Torus that holds the groups.
        chips: Chips of a group, a number or an array. A single chip gets a slice of two chips.

    """
    sizes = np.asarray(chips, dtype=float)
    chip_counts, where = np.unique(np.maximum(np.ceil(sizes - 1e-9), 2), return_inverse=True)
    unique_slices = [slice_of(torus, int(chip_count)) for chip_count in chip_counts]

    def at_sizes(slice_values: list[float]) -> Any:
        values = np.array(slice_values, dtype=float)
        return values[where].reshape(sizes.shape) if sizes.ndim else float(values[0])

    rings = tuple(
        (
            at_sizes([torus_slice.sizes[dimension] for torus_slice in unique_slices]),
            at_sizes([torus_slice.closed[dimension] for torus_slice in unique_slices]),
        )
        for dimension in range(len(torus.sizes))
    )
    narrowest = [(torus_slice, torus_slice.narrowest) for torus_slice in unique_slices]
    return Slices(
        chips=at_sizes([torus_slice.chips for torus_slice in unique_slices]),
        injection=at_sizes([torus_slice.injection for torus_slice in unique_slices]),
        hops_mean=at_sizes([torus_slice.hops_mean for torus_slice in unique_slices]),
        hops_worst=at_sizes([torus_slice.hops_worst for torus_slice in unique_slices]),
        steps=at_sizes([torus_slice.steps for torus_slice in unique_slices]),
        rings=rings,
        narrowest=NarrowestDimension(
            size=at_sizes([torus_slice.sizes[axis] for torus_slice, axis in narrowest]),
            directions=at_sizes([torus_slice.directions[axis] for torus_slice, axis in narrowest]),
            lanes=at_sizes([torus_slice.lanes[axis] for torus_slice, axis in narrowest]),
        ),
    )


@formula("byte/s", source="dally2004")
def slice_all_to_all(size: Pure, directions: Pure, link: BytePerSecond, chips: Pure) -> Quantity:
    """All-to-all rate that a slice's narrowest dimension allows.

    R = n B d / floor(d^2/4) x (N-1)/N, n = 2 on a ring, 1 on a line.
    """
    return directions * link * size / floor(size * size / 4) * (chips - 1) / chips


@formula("byte/s", source="dally2004")
def slice_cut(size: Pure, directions: Pure, link: BytePerSecond, chips: Pure) -> Quantity:
    """Bandwidth per direction across the middle of one dimension of a slice: n (N/d) B."""
    return directions * chips / size * link
