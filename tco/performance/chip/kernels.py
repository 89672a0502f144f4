"""Formulas of single kernels: tiled products, conversions, row passes, attention and experts.

A core takes one tile of the result at a time; tiles run in waves over all cores, and the last wave
may be nearly empty.
"""

from __future__ import annotations

from tco.core.elementwise import expm1, log, sqrt
from tco.core.formula import ceil_ratio, formula, maximum, minimum, select
from tco.core.types import Quantity
from tco.core.units import (
    FLOP,
    Byte,
    BytePerSecond,
    FLOPPerSecond,
    PerSecond,
    Pure,
    Second,
    SecondPerByte,
)


@formula("FLOP/s", source="tco-calibration")
def core_rate(rate: FLOPPerSecond, cores: Pure) -> Quantity:
    """Rate of products on one busy core: r = P / n."""
    return rate / cores


@formula("FLOP/s", source="deepseek-v3")
def scaled_rate(
    rate: FLOPPerSecond, vector_rate: FLOPPerSecond, block: Pure, exposed: Pure, taken: Pure
) -> Quantity:
    """Rate of products whose partial sums are scaled: P / (1 + (1 - t) x P / (b V)).

    Vector units scale and add the partial sums, unless matrix units take the scales (t = 1).
    """
    return rate / (1 + (1 - taken) * exposed * rate / (block * vector_rate))


@formula("byte/s", source="tco-calibration")
def core_load_rate(per_clock: Byte, clock: PerSecond) -> Quantity:
    """Rate at which one core loads: L = b f."""
    return per_clock * clock


@formula("", source="cutlass")
def tiles_of(
    rows: Pure, columns: Pure, groups: Pure, tile_rows: Pure, tile_columns: Pure
) -> Quantity:
    """Tiles that cover the results of g equal products: g ceil(m / t_m) ceil(n / t_n)."""
    return groups * ceil_ratio(rows, tile_rows) * ceil_ratio(columns, tile_columns)


@formula("s", source="tco-calibration")
def tile_step(
    tile_rows: Pure,
    tile_columns: Pure,
    rate: FLOPPerSecond,
    input_size: Byte,
    weight_size: Byte,
    load: BytePerSecond,
    latency: Second,
    flop_per_mac: FLOP = 2,
) -> Quantity:
    """Time of a tile per element of the inner side.

    t = max(2 t_m t_n / r, (t_m a + t_n w) / L, latency).
    """
    computing = flop_per_mac * tile_rows * tile_columns / rate
    loading = (tile_rows * input_size + tile_columns * weight_size) / load
    return maximum(maximum(computing, loading), latency)


@formula("", source="tco-calibration")
def product_overlap(asynchronous: Pure) -> Quantity:
    """Sharpness of the smooth maximum of a product's computing and loading: p = 1 + a.

    p is 1 where the same waves do both in turn.
    """
    return 1 + asynchronous


@formula("s", source="tco-calibration")
def ends_time(ends: Second, rows: Pure, tile_rows: Pure) -> Quantity:
    """Time of a tile's first loads and last writes, as far as rows fill it: e min(m / t_m, 1)."""
    return ends * minimum(rows / tile_rows, 1)


@formula("s", source="cutlass")
def waves_time(
    tiles: Pure, cores: Pure, inner: Pure, step: Second, chain: Second, ends: Second
) -> Quantity:
    """Time of all waves of tiles, at least the chain of steps of one tile.

    t = max(ceil(tiles / n) (k step + e), k chain).
    """
    return maximum(ceil_ratio(tiles, cores) * (inner * step + ends), inner * chain)


@formula("s", source="cutlass")
def split_time(
    tiles: Pure, cores: Pure, inner: Pure, step: Second, most: Pure, reduction: Second, ends: Second
) -> Quantity:
    """Time of tiles whose inner side is split up to s ways, and of summing the parts.

    t = max(tiles / n, 1/s) k step + e + r. All cores end together.
    """
    return maximum(tiles / cores, 1 / most) * (inner * step) + ends + reduction


@formula("s", source="aws-nki-trn2")
def array_time(
    rows: Pure,
    padded: Pure,
    groups: Pure,
    moving: Pure,
    rate: FLOPPerSecond,
    flop_per_mac: FLOP = 2,
) -> Quantity:
    """Time of g products on large arrays, with padded weights: 2 g w_p max(m, m_least) / P.

    Fewer rows than m_least wait for the next weights.
    """
    return flop_per_mac * groups * padded * maximum(rows, moving) / rate


@formula("FLOP", source="scaling-book")
def products_flops(
    rows: Pure, columns: Pure, inner: Pure, groups: Pure, flop_per_mac: FLOP = 2
) -> Quantity:
    """Work of g equal products: F = 2 g m n k."""
    return flop_per_mac * groups * rows * columns * inner


@formula("byte", source="scaling-book")
def products_bytes(
    rows: Pure,
    columns: Pure,
    inner: Pure,
    groups: Pure,
    input_size: Byte,
    weight_size: Byte,
    output_size: Byte,
) -> Quantity:
    """Traffic of g equal products, each operand and result once.

    Q = g (b_in m k + b_w k n + b_out m n).
    """
    return groups * (
        (input_size * rows + weight_size * columns) * inner + output_size * rows * columns
    )


@formula("", source="scaling-book")
def products_weights(columns: Pure, inner: Pure, groups: Pure) -> Quantity:
    """Weights of g equal products: g k n."""
    return groups * columns * inner


@formula("byte")
def quantising_size(reads: Pure, wide: Byte, stored: Byte) -> Quantity:
    """Traffic of casting one activation to a narrow format: r b + b_q.

    The activation is read once for its scale and once to cast, unless one pass does both.
    """
    return reads * wide + stored


@formula("s", source="tco-calibration")
def row_time(width: Pure, passes: Pure, element_size: Byte, load: BytePerSecond) -> Quantity:
    """Time one core takes for a row, however few there are: t = p w b / L."""
    return passes * width * element_size / load


@formula("byte", source="tco-calibration")
def uncached_bytes(bytes_moved: Byte, cache: Byte, cached_share: Pure) -> Quantity:
    """Memory traffic when the cache holds part of the previous kernel's output: Q - k min(Q, C)."""
    return bytes_moved - cached_share * minimum(bytes_moved, cache)


@formula("FLOP/s", source="neuron-measured")
def partial_rate(
    rate: FLOPPerSecond, cores: Pure, chip_cores: Pure, device: Pure, dies: Pure, gain: Pure
) -> Quantity:
    """Rate of c of a chip's C cores, faster by a gain g while the rest of their die is idle.

    P c/C (1 + (g-1) (1-s)), where s = clamp((c - d) / (C/D - d), 0, 1) is the share of the die in
    use, with D dies and logical devices of d cores.
    """
    full = minimum(maximum((cores - device) / maximum(chip_cores / dies - device, 1), 0), 1)
    return rate * (cores / chip_cores) * (1 + (gain - 1) * (1 - full))


@formula("byte/s", source="aws-nki-dma")
def partial_bandwidth(bandwidth: BytePerSecond, cores: Pure, chip_cores: Pure) -> Quantity:
    """Memory bandwidth of some cores of a chip, each with transfer engines of its own: B c / C."""
    return bandwidth * cores / chip_cores


@formula("s", source="neuron-measured")
def program_call_time(
    call: Second, rows: Pure, columns: Pure, size: Byte, result: SecondPerByte
) -> Quantity:
    """Time in which the host calls a compiled program and copies its result: t + m n b r."""
    return call + rows * columns * size * result


@formula("", source="flashattention3")
def flash_scores(
    sequences: Pure, heads: Pure, queries: Pure, keys: Pure, causal: Pure, tile: Pure
) -> Quantity:
    """Number of attention scores that a kernel computes: b h q (k (1 - c/2) + c tile/2).

    A causal mask (c = 1) halves them, except for half of each tile on the diagonal.
    """
    return sequences * heads * queries * (keys * (1 - causal / 2) + causal * tile / 2)


@formula("", source="scaling-book")
def mean_keys(keys: Pure, causal: Pure) -> Quantity:
    """Keys a query sees on average, half of them under a causal mask: k (1 - c/2)."""
    return keys * (1 - causal / 2)


@formula("", source="scaling-book")
def all_heads(sequences: Pure, heads: Pure) -> Quantity:
    """Query heads of all sequences: b h."""
    return sequences * heads


@formula("s", source="flashattention3")
def score_product_time(
    scores: Pure, score_width: Pure, value_width: Pure, rate: FLOPPerSecond, flop_per_mac: FLOP = 2
) -> Quantity:
    """Time of both products of attention: 2 s (d_qk + d_v) / P."""
    return flop_per_mac * scores * (score_width + value_width) / rate


@formula("s", source="flashattention3")
def softmax_time(scores: Pure, cost: Pure, exponentials: PerSecond) -> Quantity:
    """Time of the softmax on the exponential units: s x slots per score / E."""
    return scores * cost / exponentials


@formula("s", source="flashattention3")
def flash_core_time(products: Second, softmax: Second, asynchronous: Pure) -> Quantity:
    """Time of the core: (a^4 + b^4)^(1/4) where matrix units work beside the others, else a + b."""
    return select(asynchronous > 0.5, (products**4 + softmax**4) ** 0.25, products + softmax)


@formula("s", source="tco-calibration")
def tail_time(
    exposed: Pure, core: Second, scores: Pure, cores: Pure, tile: Pure, keys: Pure
) -> Quantity:
    """Exposed time of the longest block, a tile of queries that sees all keys.

    t_tail = x t / (s / n) x tile x k.
    """
    return exposed * core / scores * cores * tile * keys


@formula("byte", source="flashattention3")
def flash_bytes(
    sequences: Pure,
    queries: Pure,
    keys: Pure,
    heads: Pure,
    kv_heads: Pure,
    score_width: Pure,
    value_width: Pure,
    element_size: Byte,
) -> Quantity:
    """Traffic of queries, keys, values and results: b (q h + k h_kv) (d_qk + d_v) bytes."""
    return (
        sequences * (queries * heads + keys * kv_heads) * (score_width + value_width) * element_size
    )


@formula("s", source="tco-calibration")
def preparation_time(
    preparation: Second, sequences: Pure, heads: Pure, queries: Pure, tile: Pure, cores: Pure
) -> Quantity:
    """Rotary embedding, cache write and casts of all tiles of queries: p b h ceil(q / tile) / n."""
    return preparation * sequences * heads * ceil_ratio(queries, tile) / cores


@formula("", source="flashdecoding")
def decode_blocks(sequences: Pure, kv_heads: Pure, keys: Pure, chunk: Pure, most: Pure) -> Quantity:
    """Blocks that share the cache, with chunked keys: b h_kv min(max(k / chunk, 1), most)."""
    return sequences * kv_heads * minimum(maximum(keys / chunk, 1), most)


@formula("s", source="tco-calibration")
def decode_core_time(
    blocks: Pure, cores: Pure, block_time: Second, bytes_moved: Byte, load: BytePerSecond
) -> Quantity:
    """Time the cores take for their blocks: max(n_b / n, 1) (t_b + Q / n_b / L)."""
    return maximum(blocks / cores, 1) * (block_time + bytes_moved / blocks / load)


@formula("s", source="tco-calibration")
def vector_time(flops: FLOP, peak: FLOPPerSecond, efficiency: Pure) -> Quantity:
    """Time on the vector units: F / (P e)."""
    return flops / (peak * efficiency)


@formula("s", source="tco-calibration")
def decode_compute_time(
    vector: Second, matrix: Second, group: Pure, widest: Pure, single: Pure
) -> Quantity:
    """Computing time of decode attention, on vector units or on matrix units.

    Vector units compute where more queries share a key head than matrix kernels take (g > w), or
    where one query is alone (g <= 1) and s = 1.
    """
    return select(
        group > widest, vector, select(group <= 1, single * vector + (1 - single) * matrix, matrix)
    )


@formula("", source="flashmla")
def padded_heads(heads: Pure, tile: Pure) -> Quantity:
    """Rows of the matrix units that some heads take: ceil(h / t) t."""
    return ceil_ratio(heads, tile) * tile


@formula("", source="flashmla")
def latent_blocks(sequences: Pure, keys: Pure, chunk: Pure, cores: Pure) -> Quantity:
    """Blocks that share the caches: b min(max(k / chunk, 1), max(n / b, 1)).

    Caches are split only until all cores have a block.
    """
    return sequences * minimum(maximum(keys / chunk, 1), maximum(cores / sequences, 1))


@formula("", source="tco-calibration")
def shared_by_cores(blocks: Pure, cores: Pure) -> Quantity:
    """Blocks that the busiest core computes, one after the other: max(n_b / n, 1)."""
    return maximum(blocks / cores, 1)


@formula("s", source="flashmla")
def latent_product_time(
    sequences: Pure,
    keys: Pure,
    rows: Pure,
    score_width: Pure,
    value_width: Pure,
    rate: FLOPPerSecond,
    flop_per_mac: FLOP = 2,
) -> Quantity:
    """Time of both products of all heads against one cache: 2 b k r (d_qk + d_v) / P."""
    return flop_per_mac * sequences * keys * rows * (score_width + value_width) / rate


@formula("s", source="tco-calibration")
def on_busiest(time: Second, blocks: Pure, busiest_blocks: Pure, cores: Pure) -> Quantity:
    """Time on the core with most blocks of what takes t on all cores: t n c / n_b."""
    return time * cores * busiest_blocks / blocks


@formula("s", source="tco-calibration")
def block_load_time(
    bytes_moved: Byte, blocks: Pure, busiest_blocks: Pure, load: BytePerSecond
) -> Quantity:
    """Time the busiest core takes to load its blocks: c Q / n_b / L."""
    return busiest_blocks * bytes_moved / blocks / load


@formula("byte", source="tco-calibration")
def widened_bytes(bytes_moved: Byte, stored: Byte, passes: Pure, wide: Byte) -> Quantity:
    """Traffic of widening a cache whose format no kernel reads: p Q (1 + w / b)."""
    return passes * bytes_moved * (1 + wide / stored)


@formula("s", source="flashdecoding")
def joining_time(blocks: Pure, sequences: Pure, stage: Second) -> Quantity:
    """Time of adding up the blocks of a sequence where it has several: t (1 - b / n_b)."""
    return stage * (1 - sequences / blocks)


@formula("")
def group_tokens(tokens: Pure, active: Pure, groups: Pure) -> Quantity:
    """Expert tokens of a group on average: T k / G."""
    return tokens * active / groups


@formula("", source="raab-steger1998")
def busiest_popular(
    load: Pure, groups: Pure, imbalance: Pure, local_experts: Pure, skew: Pure, even: Pure
) -> Quantity:
    """Expert tokens of the busiest group of experts: x + c sqrt(2 ln G (x + (s x)^2 / E_local)).

    It is x where tokens are dealt out in turn. Chance and popularity both scatter; s is the
    popularity's standard deviation over its mean.
    """
    return load + (1 - even) * imbalance * sqrt(
        2 * log(groups) * (load + (skew * load) ** 2 / local_experts)
    )


@formula("")
def popular_experts(load: Pure, local_experts: Pure, skew: Pure, even: Pure) -> Quantity:
    """Experts of a group that receive at least one token: E_local (1 - exp(-x / sqrt(1 + s^2))).

    x is the mean number of tokens per expert. sqrt(1 + s^2) is mean over median of a popularity
    whose logarithm is normal. Dealt out in turn, tokens reach E_local min(x, 1) experts.
    """
    tokens_per_expert = load / local_experts
    return local_experts * select(
        even > 0.5, minimum(tokens_per_expert, 1), -expm1(-tokens_per_expert / sqrt(1 + skew**2))
    )


@formula("", source="tco-calibration")
def expert_numbers(width: Pure, hidden: Pure, passes: Pure) -> Quantity:
    """Numbers that an expert token moves beside its products: 3 w + p h.

    3 w belong to the activation, p h to the way to its expert and back.
    """
    return 3 * width + passes * hidden


@formula("", source="clauset2009")
def power_law_scatter(exponent: Pure, least: Pure, most: Pure) -> Quantity:
    """Standard deviation over mean of a power law p(x) ~ x^-a between two ends.

    sqrt(m_0 m_2 / m_1^2 - 1), where m_i = (M^(1+i-a) - l^(1+i-a)) / (1+i-a).
    """
    none = (most ** (1 - exponent) - least ** (1 - exponent)) / (1 - exponent)
    first_moment = (most ** (2 - exponent) - least ** (2 - exponent)) / (2 - exponent)
    two = (most ** (3 - exponent) - least ** (3 - exponent)) / (3 - exponent)
    return sqrt(maximum(none * two / first_moment**2 - 1, 0))
