"""Times of whole kernels on one chip, or on an array of chips: which formulas a kernel is made of, and the choice of its tiles.

GPUs spread a kernel over many small cores; TPUs, Trainium and Gaudi feed a few large matrix units, where waves, blocks and rows that
bind one core do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tco.foundation.formula import least, total
from tco.performance.chip import kernels as cost
from tco.performance.chip import kernels_attention as attention
from tco.performance.chip.messages import hidden_pass_bytes, kernel_time, stream_time
from tco.performance.chip.roofline import achieved_bandwidth, achieved_rate, attention_bytes, attention_flops, block_scaled_size, exponential_rate
from tco.performance.training.compute import conversion_traffic, product_bytes, smooth_maximum

TILES = ((128, 256), (128, 128), (64, 128), (64, 64))  # rows and columns of the result that one core holds
SPLITS = (1, 2, 4, 8)  # ways the inner side may be split
MATRIX_BLOCK = 128  # side of the large matrix units
WIDE = 2.0  # bytes of an activation and of a result
GEMM_OVERLAP, OVERLAP = 2, 4  # sharpness of the smooth maximum: products hide their traffic less well than other kernels
QUERY_TILE = 128  # queries of one block of fused attention
DECODE_CHUNK = 1024  # keys of one block of decoding
WIDEST_GROUP = 32  # query heads of one key head that a decode kernel on matrix units takes
LAYER_KERNELS = {"prefill": 4, "decode": 3}  # dependent kernels of an attention layer: rotary and cache write, attention, reduction


class Format(NamedTuple):
    """A number format: the peaks that compute it, narrow to wide, bytes stored, and how a library casts an activation to it."""

    peaks: tuple[str, ...]
    efficiency: str
    element: float  # bytes of an element and of the scale that a block of them shares
    scale: float
    block: int
    casts: int  # dependent kernels
    reads: int  # times an activation is read


FORMATS = {
    "bf16": Format(("peak_bf16",), "tile_efficiency", 2, 0, 1, 0, 0),
    "fp8": Format(("peak_fp8", "peak_bf16"), "tile_efficiency", 1, 0, 1, 3, 2),
    "fp8_block": Format(("peak_fp8", "peak_bf16"), "tile_efficiency", 1, 4, 128, 1, 1),
    "nvfp4": Format(("peak_fp4", "peak_fp8", "peak_bf16"), "tile_efficiency_fp4", 0.5, 1, 16, 1, 1),
}


class Chip(NamedTuple):
    """A chip as its kernels see it: attributes of the part, parameters of practice, and whether it has many small cores."""

    part: Callable[[str], Any]
    practice: Callable[[str], Any]
    tiled: bool

    def peak(self, number_format: str) -> Any:
        """Return the peak that computes a format."""
        *narrower, widest = FORMATS[number_format].peaks
        found = self.part(widest)
        for name in reversed(narrower):
            found = cost.computing_peak(self.part(name), found)
        return found

    def bandwidth(self, efficiency: str) -> Any:
        """Return the memory bandwidth that a kind of kernel reaches."""
        return achieved_bandwidth(self.part("hbm_bandwidth"), self.practice(efficiency))

    def load(self, per_clock: str) -> Any:
        """Return the rate at which one core loads."""
        return cost.core_load_rate(self.practice(per_clock), self.part("clock"))


def stored_size(number_format: str) -> Any:
    """Bytes of a number with its share of the block's scale."""
    form = FORMATS[number_format]
    return block_scaled_size(form.element, form.scale, form.block)


def computing_time(chip: Chip, rows: Any, columns: Any, inner: Any, number_format: str, splits: tuple[int, ...]) -> Any:
    """Time the matrix units take: the best of tiles and splits, or whole blocks of large units."""
    efficiency = chip.practice(FORMATS[number_format].efficiency)
    if not chip.tiled:
        return cost.padded_time(rows, columns, inner, MATRIX_BLOCK, achieved_rate(chip.peak(number_format), efficiency))
    cores, size = chip.part("cores"), stored_size(number_format)
    rate, load = cost.core_rate(chip.peak(number_format), efficiency, cores), chip.load("core_load")
    latency = chip.practice("fp4_inner_latency") if number_format == "nvfp4" else 0.0
    candidates = []
    for tile_rows, tile_columns in TILES:
        tiles = cost.tiles_of(rows, columns, tile_rows, tile_columns)
        step = cost.tile_step(tile_rows, tile_columns, rate, size, size, load, latency)
        for ways in splits:
            reduction = chip.practice("kernel_stage") if ways > 1 else 0.0
            candidates.append(cost.waves_time(tiles, ways, cores, inner, step, reduction))
    return least("tiles and splits", candidates)


def product_time(chip: Chip, rows: Any, columns: Any, inner: Any, number_format: str, groups: Any = None) -> Any:
    """Time of a matrix product, or of `groups` products of equal shape whose tiles share the waves.

    Kernels of FP4 and of groups do not split the inner side.
    """
    many = 1 if groups is None else groups
    splits = SPLITS if groups is None and number_format != "nvfp4" else SPLITS[:1]
    size = stored_size(number_format)
    computing = computing_time(chip, rows, columns * many, inner, number_format, splits)
    moved = product_bytes(rows * many, inner, columns, many * columns * inner, size, WIDE)
    moving = stream_time(moved, chip.bandwidth("stream_efficiency"))
    return total("product", (chip.practice("kernel_launch"), smooth_maximum(computing, moving, GEMM_OVERLAP)))


def casting_time(chip: Chip, rows: Any, inner: Any, number_format: str) -> Any:
    """Time of casting the wide activations of a product to its format before it."""
    form = FORMATS[number_format]
    if not form.casts:
        return 0.0
    size = cost.quantising_size(form.reads, WIDE, stored_size(number_format))
    moving = stream_time(conversion_traffic(rows, inner, size), chip.bandwidth("row_efficiency"))
    return total("cast", (kernel_time(form.casts, chip.practice("kernel_stage")), over_rows(chip, inner, 1, moving)))


def over_rows(chip: Chip, width: Any, passes: int, moving: Any) -> Any:
    """Time of a pass over rows: the memory, or the one core that a row has to itself."""
    if not chip.tiled:
        return moving
    return smooth_maximum(cost.row_time(width, passes, WIDE, chip.load("row_load")), moving, OVERLAP)


def elementwise_time(chip: Chip, rows: Any, width: Any, passes: int, by_row: bool) -> Any:
    """Time of an elementwise kernel: norms, gates and rotary embeddings go row by row, sums are flat."""
    moved = cost.uncached_bytes(hidden_pass_bytes(rows, width, passes, WIDE), chip.part("last_level_cache"), chip.practice("cache_kept"))
    moving = stream_time(moved, chip.bandwidth("row_efficiency" if by_row else "stream_efficiency"))
    return total("elementwise", (chip.practice("kernel_launch"), over_rows(chip, width, passes, moving) if by_row else moving))


def prefill_time(
    chip: Chip, sequences: Any, queries: Any, keys: Any, heads: Any, kv_heads: Any, width: Any, causal: Any, number_format: str, layer: bool
) -> Any:
    """Time of fused attention over whole prompts; `layer`: with rotary embedding, cache write and casts, as a serving library runs it."""
    scores = attention.flash_scores(sequences, heads, queries, keys, causal, QUERY_TILE)
    rate = achieved_rate(chip.peak(number_format), chip.practice(f"flash_efficiency_{number_format}"))
    exponentials = exponential_rate(chip.part("cores"), chip.part("exponentials_per_clock"), chip.part("clock"), 1.0)
    softmax = attention.softmax_time(scores, chip.practice("softmax_cost"), exponentials)
    core = attention.flash_core_time(attention.score_product_time(scores, width, width, rate), softmax, chip.part("asynchronous_matrix"))
    moved = attention.flash_bytes(sequences, queries, keys, heads, kv_heads, width, width, WIDE)
    terms = [core, stream_time(moved, chip.bandwidth("stream_efficiency"))]
    if chip.tiled:
        terms.append(attention.tail_time(chip.practice("tail_exposed"), core, scores, chip.part("cores"), QUERY_TILE, keys))
    if not layer:
        return total("attention", (*terms, chip.practice("kernel_launch")))
    terms.append(kernel_time(LAYER_KERNELS["prefill"], chip.practice("kernel_stage")))
    if chip.tiled:
        preparation = chip.practice("attention_preparation")
        terms.append(attention.preparation_time(preparation, sequences, heads, queries, QUERY_TILE, chip.part("cores")))
    return total("attention", terms)


def decode_time(chip: Chip, sequences: Any, keys: Any, heads: Any, kv_heads: Any, width: Any, cache_size: Any, layer: bool) -> Any:
    """Time of attention with one query a sequence against its cache; `layer`: as a serving library runs it, else the kernel and its reduction."""
    moved = attention_bytes(sequences, keys, 2 * kv_heads * width, cache_size)
    core = stream_time(moved, chip.bandwidth("stream_efficiency"))
    if chip.tiled:
        blocks = attention.decode_blocks(sequences, kv_heads, keys, DECODE_CHUNK, chip.practice("decode_splits"))
        on_cores = attention.decode_core_time(blocks, chip.part("cores"), chip.practice("decode_block_time"), moved, chip.load("core_load"))
        flops = attention_flops(sequences, keys, heads, width, width)
        peak, efficiency = chip.part("peak_vector"), chip.practice("vector_efficiency")
        vector = attention.decode_vector_time(flops, peak, efficiency, heads / kv_heads, WIDEST_GROUP, chip.part("single_query_on_vector"))
        core = smooth_maximum(smooth_maximum(core, on_cores, OVERLAP), vector, OVERLAP)
    stages = kernel_time(LAYER_KERNELS["decode"] if layer else 1, chip.practice("kernel_stage"))
    return total("attention", (core, stages) if layer else (core, stages, chip.practice("kernel_launch")))
