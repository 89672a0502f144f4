"""Times of attention kernels as formulas: fused attention over whole prompts, and one query against a long cache."""

from __future__ import annotations

from typing import Any

from tco.foundation.formula import ceil_ratio, formula, maximum, minimum, select
from tco.foundation.units import FLOP, Byte, BytePerSecond, FLOPPerSecond, PerSecond, Pure, Second


@formula(unit="", source="flashattention3")
def flash_scores(sequences: Pure, heads: Pure, queries: Pure, keys: Pure, causal: Pure, tile: Pure) -> Any:
    """Scores computed: b h q (k (1 - c/2) + c tile/2); a causal mask (c = 1) halves them but for half of each tile on the diagonal."""
    return sequences * heads * queries * (keys * (1 - causal / 2) + causal * tile / 2)


@formula(unit="", source="scaling-book")
def mean_keys(keys: Pure, causal: Pure) -> Any:
    """Keys a query sees on average, half of them under a causal mask: k (1 - c/2)."""
    return keys * (1 - causal / 2)


@formula(unit="", source="scaling-book")
def all_heads(sequences: Pure, heads: Pure) -> Any:
    """Query heads of all sequences: b h."""
    return sequences * heads


@formula(unit="s", source="flashattention3")
def score_product_time(scores: Pure, score_width: Pure, value_width: Pure, rate: FLOPPerSecond, flop_per_mac: FLOP = 2) -> Any:
    """Time of both products of attention: 2 s (d_qk + d_v) / P."""
    return flop_per_mac * scores * (score_width + value_width) / rate


@formula(unit="s", source="flashattention3")
def softmax_time(scores: Pure, cost: Pure, exponentials: PerSecond) -> Any:
    """Time of the softmax on the exponential units: s x slots per score / E."""
    return scores * cost / exponentials


@formula(unit="s", source="flashattention3")
def flash_core_time(products: Second, softmax: Second, asynchronous: Pure) -> Any:
    """Time of the core: (a^4 + b^4)^(1/4) where matrix units work beside the others, else a + b."""
    return select(asynchronous > 0.5, (products**4 + softmax**4) ** 0.25, products + softmax)


@formula(unit="s", source="tco-calibration")
def tail_time(exposed: Pure, core: Second, scores: Pure, cores: Pure, tile: Pure, keys: Pure) -> Any:
    """Exposed part of the longest block, a tile of queries that sees all keys: x t / (s / n) x tile x k."""
    return exposed * core / scores * cores * tile * keys


@formula(unit="byte", source="flashattention3")
def flash_bytes(
    sequences: Pure, queries: Pure, keys: Pure, heads: Pure, kv_heads: Pure, score_width: Pure, value_width: Pure, element_size: Byte
) -> Any:
    """Traffic of queries, keys, values and results: b (q h + k h_kv) (d_qk + d_v) bytes."""
    return sequences * (queries * heads + keys * kv_heads) * (score_width + value_width) * element_size


@formula(unit="s", source="tco-calibration")
def preparation_time(preparation: Second, sequences: Pure, heads: Pure, queries: Pure, tile: Pure, cores: Pure) -> Any:
    """Rotary embedding, cache write and casts of all tiles of queries: p b h ceil(q / tile) / n."""
    return preparation * sequences * heads * ceil_ratio(queries, tile) / cores


@formula(unit="", source="flashdecoding")
def decode_blocks(sequences: Pure, kv_heads: Pure, keys: Pure, chunk: Pure, most: Pure) -> Any:
    """Blocks that share the cache, each head's keys split into chunks: b h_kv min(max(k / chunk, 1), most)."""
    return sequences * kv_heads * minimum(maximum(keys / chunk, 1), most)


@formula(unit="s", source="tco-calibration")
def decode_core_time(blocks: Pure, cores: Pure, block_time: Second, bytes_moved: Byte, load: BytePerSecond) -> Any:
    """Time the cores take for their blocks: max(n_b / n, 1) (t_b + Q / n_b / L)."""
    return maximum(blocks / cores, 1) * (block_time + bytes_moved / blocks / load)


@formula(unit="s", source="tco-calibration")
def decode_vector_time(flops: FLOP, peak: FLOPPerSecond, efficiency: Pure, group: Pure, widest: Pure, single: Pure) -> Any:
    """Time on the vector units where no matrix kernel fits: F / (P e) for groups of queries wider than `widest`, and for lone ones if single = 1."""
    return flops / (peak * efficiency) * select(group > widest, 1, select(group <= 1, single, 0))


@formula(unit="", source="flashmla")
def padded_heads(heads: Pure, tile: Pure) -> Any:
    """Rows of the matrix units that some heads take: ceil(h / t) t."""
    return ceil_ratio(heads, tile) * tile


@formula(unit="", source="flashmla")
def latent_blocks(sequences: Pure, keys: Pure, chunk: Pure, cores: Pure) -> Any:
    """Blocks that share the caches, split only until all cores have one: b min(max(k / chunk, 1), max(n / b, 1))."""
    return sequences * minimum(maximum(keys / chunk, 1), maximum(cores / sequences, 1))


@formula(unit="", source="tco-calibration")
def shared_by_cores(blocks: Pure, cores: Pure) -> Any:
    """Blocks that the busiest core computes, one after the other: max(n_b / n, 1)."""
    return maximum(blocks / cores, 1)


@formula(unit="s", source="flashmla")
def latent_product_time(
    sequences: Pure, keys: Pure, rows: Pure, score_width: Pure, value_width: Pure, rate: FLOPPerSecond, flop_per_mac: FLOP = 2
) -> Any:
    """Time of both products of all heads against one cache, on all cores: 2 b k r (d_qk + d_v) / P."""
    return flop_per_mac * sequences * keys * rows * (score_width + value_width) / rate


@formula(unit="s", source="tco-calibration")
def on_busiest(time: Second, blocks: Pure, each: Pure, cores: Pure) -> Any:
    """Time on the core with most blocks of what takes t on all cores: t n c / n_b."""
    return time * cores * each / blocks


@formula(unit="s", source="tco-calibration")
def block_load_time(bytes_moved: Byte, blocks: Pure, each: Pure, load: BytePerSecond) -> Any:
    """Time the busiest core takes to load its blocks: c Q / n_b / L."""
    return each * bytes_moved / blocks / load


@formula(unit="byte", source="tco-calibration")
def query_bytes(sequences: Pure, heads: Pure, width: Pure, passes: Pure, element_size: Byte) -> Any:
    """Traffic of queries and results, with the passes that turn, cast and scale them: p b h w e."""
    return passes * sequences * heads * width * element_size


@formula(unit="byte", source="tco-calibration")
def widened_bytes(bytes_moved: Byte, stored: Byte, passes: Pure, wide: Byte) -> Any:
    """Traffic of turning a cache into wide numbers, which no kernel reads otherwise: p Q (1 + w / b)."""
    return passes * bytes_moved * (1 + wide / stored)


@formula(unit="s", source="flashdecoding")
def joining_time(blocks: Pure, sequences: Pure, stage: Second) -> Any:
    """Time of adding up the blocks of a sequence where it has several: t (1 - b / n_b)."""
    return stage * (1 - sequences / blocks)
