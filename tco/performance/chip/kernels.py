"""Times of single kernels as formulas: products cut into tiles over many small cores, conversions of activations, passes over rows.

A core takes one tile of the result at a time; tiles run in waves over all cores, and the last wave may be nearly empty.
"""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import ceil_ratio, formula, maximum, minimum
from tco.foundation.units import FLOP, Byte, BytePerSecond, FLOPPerSecond, PerSecond, Pure, Second, SecondPerByte


@formula(unit="FLOP/s", source="tco-calibration")
def core_rate(rate: FLOPPerSecond, cores: Pure) -> Any:
    """Rate of products on one busy core: r = P / n."""
    return rate / cores


@formula(unit="FLOP/s", source="deepseek-v3")
def scaled_rate(rate: FLOPPerSecond, vector_rate: FLOPPerSecond, block: Pure, exposed: Pure, taken: Pure) -> Any:
    """Rate of products whose partial sums vector units scale and add, unless matrix units take the scales: P / (1 + (1-t) x P / (b V))."""
    return rate / (1 + (1 - taken) * exposed * rate / (block * vector_rate))


@formula(unit="byte/s", source="tco-calibration")
def core_load_rate(per_clock: Byte, clock: PerSecond) -> Any:
    """Rate at which one core loads: L = b f."""
    return per_clock * clock


@formula(unit="", source="cutlass")
def tiles_of(rows: Pure, columns: Pure, groups: Pure, tile_rows: Pure, tile_columns: Pure) -> Any:
    """Tiles that cover the results of g equal products: g ceil(m / t_m) ceil(n / t_n)."""
    return groups * ceil_ratio(rows, tile_rows) * ceil_ratio(columns, tile_columns)


@formula(unit="s", source="tco-calibration")
def tile_step(
    tile_rows: Pure,
    tile_columns: Pure,
    rate: FLOPPerSecond,
    input_size: Byte,
    weight_size: Byte,
    load: BytePerSecond,
    latency: Second,
    flop_per_mac: FLOP = 2,
) -> Any:
    """Time of a tile for each element of the inner side: max(2 t_m t_n / r, (t_m a + t_n w) / L, latency)."""
    computing = flop_per_mac * tile_rows * tile_columns / rate
    loading = (tile_rows * input_size + tile_columns * weight_size) / load
    return maximum(maximum(computing, loading), latency)


@formula(unit="", source="tco-calibration")
def product_overlap(asynchronous: Pure) -> Any:
    """Sharpness of the smooth maximum of a product's computing and loading: p = 1 + a, one where the same waves do both in turn."""
    return 1 + asynchronous


@formula(unit="s", source="tco-calibration")
def ends_time(ends: Second, rows: Pure, tile_rows: Pure) -> Any:
    """First loads and last writes of a tile, as long as it is filled with rows: e min(m / t_m, 1)."""
    return ends * minimum(rows / tile_rows, 1)


@formula(unit="s", source="cutlass")
def waves_time(tiles: Pure, cores: Pure, inner: Pure, step: Second, chain: Second, ends: Second) -> Any:
    """Time of all waves of tiles over the cores, each with its first loads and last writes, no shorter than the chain of steps of one tile.

    t = max(ceil(tiles / n) (k step + e), k chain).
    """
    return maximum(ceil_ratio(tiles, cores) * (inner * step + ends), inner * chain)


@formula(unit="s", source="cutlass")
def split_time(tiles: Pure, cores: Pure, inner: Pure, step: Second, most: Pure, reduction: Second, ends: Second) -> Any:
    """Time of tiles whose inner side is split up to s ways, so that all cores end together, and of summing: max(tiles / n, 1/s) k step + e + r."""
    return maximum(tiles / cores, 1 / most) * (inner * step) + ends + reduction


@formula(unit="s", source="aws-nki-trn2")
def array_time(rows: Pure, padded: Pure, groups: Pure, moving: Pure, rate: FLOPPerSecond, flop_per_mac: FLOP = 2) -> Any:
    """Time of g products on large arrays, weights padded to whole ones: 2 g w_p max(m, m_least) / P; fewer rows wait for the next weights."""
    return flop_per_mac * groups * padded * maximum(rows, moving) / rate


@formula(unit="FLOP", source="scaling-book")
def products_flops(rows: Pure, columns: Pure, inner: Pure, groups: Pure, flop_per_mac: FLOP = 2) -> Any:
    """Work of g equal products: F = 2 g m n k."""
    return flop_per_mac * groups * rows * columns * inner


@formula(unit="byte", source="scaling-book")
def products_bytes(rows: Pure, columns: Pure, inner: Pure, groups: Pure, input_size: Byte, weight_size: Byte, output_size: Byte) -> Any:
    """Traffic of g equal products, each operand and result once: Q = g (b_in m k + b_w k n + b_out m n)."""
    return groups * ((input_size * rows + weight_size * columns) * inner + output_size * rows * columns)


@formula(unit="", source="scaling-book")
def products_weights(columns: Pure, inner: Pure, groups: Pure) -> Any:
    """Weights of g equal products: g k n."""
    return groups * columns * inner


@formula(unit="byte", source="tco-model")
def quantising_size(reads: Pure, wide: Byte, stored: Byte) -> Any:
    """Traffic of turning one activation into a narrow format, read once for its scale and once to cast unless one pass does both: r b + b_q."""
    return reads * wide + stored


@formula(unit="s", source="tco-calibration")
def row_time(width: Pure, passes: Pure, element_size: Byte, load: BytePerSecond) -> Any:
    """Time one core takes for a row, however few there are: t = p w b / L."""
    return passes * width * element_size / load


@formula(unit="byte", source="tco-calibration")
def uncached_bytes(bytes_moved: Byte, cache: Byte, kept: Pure) -> Any:
    """Traffic that reaches memory when the cache still holds what the kernel before it wrote: Q - k min(Q, C)."""
    return bytes_moved - kept * minimum(bytes_moved, cache)


@formula(unit="FLOP/s", source="neuron-measured")
def partial_rate(rate: FLOPPerSecond, cores: Pure, every: Pure, device: Pure, dies: Pure, gain: Pure) -> Any:
    """Rate of c of a chip's C cores, faster by a gain g while the rest of their die is idle: P c/C (1 + (g-1) (1-s)).

    s = clamp((c - d) / (C/D - d), 0, 1) is how far the die is full, of D dies and logical devices of d cores.
    """
    full = minimum(maximum((cores - device) / maximum(every / dies - device, 1), 0), 1)
    return rate * (cores / every) * (1 + (gain - 1) * (1 - full))


@formula(unit="byte/s", source="aws-nki-dma")
def partial_bandwidth(bandwidth: BytePerSecond, cores: Pure, every: Pure) -> Any:
    """Memory bandwidth of some cores of a chip, each with transfer engines of its own: B c / C."""
    return bandwidth * cores / every


@formula(unit="s", source="neuron-measured")
def program_call_time(call: Second, rows: Pure, columns: Pure, size: Byte, result: SecondPerByte) -> Any:
    """What the host adds that calls a compiled program and takes its result: t + m n b r."""
    return call + rows * columns * size * result
