"""Slices of a torus: the block of neighbouring chips a group takes that does not fill it.

A slice's size divides the torus' in every dimension, so that equal groups tile it. Its rings close
over the wrap-around links where it spans a dimension, or where optical switches close them for
slices of whole blocks; elsewhere a ring is an open line. All of it is structure in whole numbers
and lanes; the rate of a lane is a value.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from tco.core.elementwise import floor
from tco.core.formula import formula
from tco.core.types import Quantity
from tco.core.units import BytePerSecond, Pure


class Torus(NamedTuple):
    """Sizes and lanes of the dimensions, and the block that optical switches close into tori."""

    sizes: tuple[int, ...]
    lanes: tuple[float, ...]
    block: tuple[int, ...] = ()


class TorusSlice(NamedTuple):
    """Sizes of a slice, which of its dimensions are closed rings, and the lanes a link."""

    sizes: tuple[int, ...]
    closed: tuple[bool, ...]
    lanes: tuple[float, ...]

    @property
    def chips(self) -> int:
        """Chips of the slice."""
        return math.prod(self.sizes)

    @property
    def directions(self) -> tuple[int, ...]:
        """Links per dimension of the worst-placed chip: two of a ring, one of a line or a pair."""
        return tuple(
            min(size - 1, 2 if closed else 1)
            for size, closed in zip(self.sizes, self.closed, strict=True)
        )

    @property
    def injection(self) -> float:
        """Lanes of the worst-placed chip."""
        return sum(links * width for links, width in zip(self.directions, self.lanes, strict=True))

    @property
    def mean_injection(self) -> float:
        """Lanes of a chip on average: a line of d has d - 1 links."""
        shares = (
            n if closed or size < 3 else 2 * (size - 1) / size
            for n, size, closed in zip(self.directions, self.sizes, self.closed, strict=True)
        )
        return sum(share * width for share, width in zip(shares, self.lanes, strict=True))

    @property
    def steps(self) -> int:
        """Steps of bucket rings over all dimensions."""
        return sum(size - 1 for size in self.sizes)

    @property
    def narrowest(self) -> int:
        """Dimension that allows the least when all talk to all."""
        shared = zip(self.sizes, self.directions, self.lanes, strict=True)
        rates = [
            links * width * size / (size * size // 4) if size > 1 else math.inf
            for size, links, width in shared
        ]
        return rates.index(min(rates))

    @property
    def all_to_all(self) -> float:
        """Lanes that limit a chip which talks to all others."""
        dimension = self.narrowest
        return (
            self.directions[dimension]
            * self.lanes[dimension]
            * self.sizes[dimension]
            / (self.sizes[dimension] ** 2 // 4)
        )

    @property
    def hops_mean(self) -> float:
        """Mean number of chips between distinct chips.

        A ring has floor(d^2/4)/d links, a line (d^2-1)/(3d).
        """
        pairs = zip(self.sizes, self.closed, strict=True)
        links = sum(
            (size * size // 4) / size if closed else (size * size - 1) / (3 * size)
            for size, closed in pairs
        )
        return links * self.chips / (self.chips - 1) - 1

    @property
    def hops_worst(self) -> int:
        """Most intermediate chips between two chips."""
        return (
            sum(
                size // 2 if closed else size - 1
                for size, closed in zip(self.sizes, self.closed, strict=True)
            )
            - 1
        )


def _closed_rings(torus: Torus, sizes: tuple[int, ...]) -> tuple[bool, ...]:
    blocks = bool(torus.block) and all(
        size % part == 0 for size, part in zip(sizes, torus.block, strict=True)
    )
    return tuple(
        blocks or size == torus_size for size, torus_size in zip(sizes, torus.sizes, strict=True)
    )


@lru_cache(maxsize=4096)
def slice_of(torus: Torus, chips: int) -> TorusSlice:
    """Return the smallest slice that holds `chips`.

    Ties go to the best all-to-all, then the most compact, then the most lanes.
    """
    most = math.prod(torus.sizes)
    if not 1 < chips <= most:
        raise ValueError(f"a slice of {chips} chips of a torus of {most}")
    size_divisors = [
        [part for part in range(1, size + 1) if size % part == 0] for size in torus.sizes
    ]
    shapes = [sizes for sizes in itertools.product(*size_divisors) if math.prod(sizes) >= chips]
    least = min(math.prod(sizes) for sizes in shapes)
    smallest_slices = [
        TorusSlice(sizes, _closed_rings(torus, sizes), torus.lanes)
        for sizes in shapes
        if math.prod(sizes) == least
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


class Slices(NamedTuple):
    """Slices of groups of several sizes, each field a number or an array like the sizes."""

    chips: Any
    injection: Quantity
    hops: Quantity
    farthest: Quantity
    steps: Quantity
    rings: tuple[tuple[Quantity, Quantity], ...]  # size of each dimension, and whether it is closed
    # size, links a chip and lanes a link of the narrowest dimension
    narrow: tuple[Quantity, Quantity, Quantity]


def slices_of(torus: Torus, chips: Any) -> Slices:
    """Return the slices of groups of `chips`; a single chip exchanges nothing and gets a pair."""
    sizes = np.asarray(chips, dtype=float)
    chip_counts, where = np.unique(np.maximum(np.ceil(sizes - 1e-9), 2), return_inverse=True)
    unique_slices = [slice_of(torus, int(chip_count)) for chip_count in chip_counts]

    def field(pick: Any) -> Any:
        slice_values = np.array([pick(torus_slice) for torus_slice in unique_slices], dtype=float)
        return slice_values[where].reshape(sizes.shape) if sizes.ndim else float(slice_values[0])

    size, directions, width = (
        field(
            lambda torus_slice, slice_field=slice_field: getattr(torus_slice, slice_field)[
                torus_slice.narrowest
            ]
        )
        for slice_field in ("sizes", "directions", "lanes")
    )
    rings = tuple(
        (
            field(lambda torus_slice, dimension=dimension: torus_slice.sizes[dimension]),
            field(lambda torus_slice, dimension=dimension: torus_slice.closed[dimension]),
        )
        for dimension in range(len(torus.sizes))
    )
    slice_properties = map(
        field, map(attrgetter, ("chips", "injection", "hops_mean", "hops_worst", "steps"))
    )
    return Slices._make((*slice_properties, rings, (size, directions, width)))


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
