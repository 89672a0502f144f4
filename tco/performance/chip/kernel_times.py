"""Times of whole kernels on one chip, or on an array of chips: products, casts, passes over rows and attention, with their launches.

A kernel is asked for by its operation, its shape by name, and the library that runs it: a library's layer casts its own wide input
and makes a chain of kernels around attention, which its rows of practice state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tco.catalog import Catalogue
from tco.foundation.errors import DataError
from tco.foundation.formula import total
from tco.performance.chip import kernels as cost
from tco.performance.chip.formats import FORMATS, WIDE, Computed, element_size, family_of
from tco.performance.chip.products import Chip, Operands, kernels_on, operands, product, traits_of
from tco.performance.chip.roofline import (
    attention_bytes,
    attention_flops,
    conversion_traffic,
    exponential_rate,
    hidden_pass_bytes,
    kernel_time,
    smooth_maximum,
    stream_time,
)

OVERLAP = 4  # sharpness of the smooth maximum of kernels that hide their traffic well
QUERY_TILE = 128  # queries of one block of fused attention
DECODE_CHUNK = 1024  # keys of one block of decoding
WIDEST_GROUP = 32  # query heads of one key head that a decode kernel on matrix units takes
SHAPES = {  # names of the sides a kernel is asked with
    "gemm": ("m", "n", "k"),
    "grouped": ("m", "n", "k", "groups"),
    "prefill": ("batch", "seq_q", "seq_kv", "heads", "kv_heads", "head_dim", "causal"),
    "decode": ("batch", "seq_kv", "heads", "kv_heads", "head_dim"),
    "elementwise": ("m", "width", "passes", "by_row"),
}
BARE = "bare-kernel"  # the library of kernels called one at a time

Shape = Mapping[str, Any]


class Kernel(NamedTuple):
    """A kernel's time, what it consists of by the bound each part belongs to, and the least work and traffic of its shape."""

    time: Any
    parts: dict[str, Any]
    flops: Any
    bytes: Any


class Library(NamedTuple):
    """How a library runs a kernel, as its rows of practice say."""

    values: Mapping[str, Any]
    name: str

    def practice(self, name: str) -> Any:
        """Return a parameter of the library's practice."""
        return self.values[f"performance.{self.name}.{name}"]


def chip_on(catalogue: Catalogue, values: Mapping[str, Any], part: str) -> Chip:
    """Return a chip of the catalogue as its kernels see it."""
    return kernels_on(values, part, family_of(catalogue, part), traits_of(catalogue, part))


def kernel(chip: Chip, operation: str, form: Computed, shape: Shape, library: str = BARE, cores: Any = None) -> Kernel:
    """Return the time of a kernel; `shape` holds the sides that `SHAPES` names, as numbers or arrays.

    The format is that of a product's weights, of the cores of prompts' attention, and of the cache that decoding reads. A product
    may have a part of the chip's `cores` to itself where software hands them out.
    """
    missing = [name for name in SHAPES[operation] if name not in shape]
    if missing:
        raise DataError(f"{operation}: states no {', '.join(missing)}; it takes {', '.join(SHAPES[operation])}")
    runs, sides = Library(chip.values, library), [shape[name] for name in SHAPES[operation]]
    if operation in ("gemm", "grouped"):
        rows, columns, inner, groups = sides if operation == "grouped" else (*sides, None)
        return product_kernel(chip, form, runs, rows, columns, inner, groups, cores)
    if operation == "prefill":
        return prefill(chip, form, runs, *sides)
    if operation == "decode":
        return decode(chip, form, runs, *sides)
    return elementwise(chip, *sides)


def on_cores(chip: Chip, made: Operands, cores: Any) -> Operands:
    """Return what products rest on that have some of the cores of a chip: their part of its rates, more where neighbours on the die are idle."""
    every, device = chip.part("cores"), chip.part("cores_per_device")
    rate = cost.partial_rate(made.rate, cores, every, device, chip.part("dies"), chip.practice("lone_core_gain"))
    return made._replace(rate=rate, stream=cost.partial_bandwidth(made.stream, cores, every))


def product_kernel(
    chip: Chip, form: Computed, library: Library, rows: Any, columns: Any, inner: Any, groups: Any = None, cores: Any = None
) -> Kernel:
    """Return the time of a product, or of some whose tiles share the waves, with its launch and the casts its library makes before it.

    A framework that calls compiled programs adds the call and the copy of the result to the host.
    """
    made = operands(chip, form)
    if cores is not None:
        made = on_cores(chip, made, cores)
    found = product(made, rows, columns, inner, groups)
    launch = chip.practice("kernel_launch")
    parts, terms = {"compute": found.computing, "memory": found.moving, "latency": launch}, [launch, found.time]
    if FORMATS[form.activations].casts:
        cast = casting_time(chip, made, form, rows, inner)
        parts["cast"] = kernel_time(library.practice("casts_activations"), cast)
        terms.append(parts["cast"])
    parts["call"] = cost.program_call_time(library.practice("call_time"), rows, columns, element_size(WIDE), library.practice("result_time"))
    terms.append(parts["call"])
    return Kernel(total("product", terms), parts, found.flops, found.bytes)


def casting_time(chip: Chip, made: Operands, form: Computed, rows: Any, inner: Any) -> Any:
    """Return the time of casting the wide activations of a product to its format before it."""
    cast = FORMATS[form.activations]
    size = cost.quantising_size(cast.reads, element_size(WIDE), made.input_size)
    moving = stream_time(conversion_traffic(rows, inner, size), chip.bandwidth("row_efficiency"))
    return total("cast", (kernel_time(cast.casts, chip.practice("kernel_stage")), over_rows(chip, inner, 1, moving)))


def over_rows(chip: Chip, width: Any, passes: Any, moving: Any) -> Any:
    """Return the time of a pass over rows: the memory, or the one core that a row has to itself."""
    if not chip.tiled:
        return moving
    return smooth_maximum(cost.row_time(width, passes, element_size(WIDE), chip.load("row_load")), moving, OVERLAP)


def elementwise(chip: Chip, rows: Any, width: Any, passes: Any, by_row: bool) -> Kernel:
    """Return the time of an elementwise kernel: norms, gates and rotary embeddings go row by row, sums are flat."""
    touched = hidden_pass_bytes(rows, width, passes, element_size(WIDE))
    moved = cost.uncached_bytes(touched, chip.part("last_level_cache"), chip.practice("cache_kept"))
    moving = stream_time(moved, chip.bandwidth("row_efficiency" if by_row else "stream_efficiency"))
    launch = chip.practice("kernel_launch")
    time = total("elementwise", (launch, over_rows(chip, width, passes, moving) if by_row else moving))
    return Kernel(time, {"memory": moving, "latency": launch}, 0.0, touched)


def prefill(
    chip: Chip, form: Computed, library: Library, batch: Any, queries: Any, keys: Any, heads: Any, kv_heads: Any, width: Any, causal: Any
) -> Kernel:
    """Return the time of fused attention over whole prompts, with the kernels its library runs around it."""
    if form.efficiency not in ("bf16", "fp8"):
        raise DataError(f"attention: computes in {form.stored}, expected a format of 8 bits or wider")
    scores = cost.flash_scores(batch, heads, queries, keys, causal, QUERY_TILE)
    rate = chip.rate(form.peak, f"flash_efficiency_{form.efficiency}")
    exponentials = exponential_rate(chip.part("cores"), chip.part("exponentials_per_clock"), chip.part("clock"), 1.0)
    softmax = cost.softmax_time(scores, chip.practice("softmax_cost"), exponentials)
    products = cost.score_product_time(scores, width, width, rate)
    core = cost.flash_core_time(products, softmax, chip.part("asynchronous_matrix"))
    moved = cost.flash_bytes(batch, queries, keys, heads, kv_heads, width, width, element_size(WIDE))
    memory = stream_time(moved, chip.bandwidth("stream_efficiency"))
    latency = [kernel_time(library.practice("attention_launches"), chip.practice("kernel_launch"))]
    latency.append(kernel_time(library.practice("prefill_stages"), chip.practice("kernel_stage")))
    if chip.tiled:
        latency.append(cost.tail_time(chip.practice("tail_exposed"), core, scores, chip.part("cores"), QUERY_TILE, keys))
        one = kernel_time(library.practice("prepares_attention"), chip.practice("attention_preparation"))
        latency.append(cost.preparation_time(one, batch, heads, queries, QUERY_TILE, chip.part("cores")))
    flops = attention_flops(queries, cost.mean_keys(keys, causal), cost.all_heads(batch, heads), width, width)
    parts = {"compute": products, "exponentials": softmax, "memory": memory, "latency": total("latency", latency)}
    return Kernel(total("attention", (core, memory, *latency)), parts, flops, moved)


def decode(chip: Chip, form: Computed, library: Library, batch: Any, keys: Any, heads: Any, kv_heads: Any, width: Any) -> Kernel:
    """Return the time of attention with one query a sequence against its cache, with the reductions its library runs after it."""
    moved = attention_bytes(batch, keys, 2 * kv_heads * width, element_size(FORMATS[form.stored].bits))
    memory = core = stream_time(moved, chip.bandwidth("stream_efficiency"))
    flops = attention_flops(batch, keys, heads, width, width)
    parts = {"memory": memory}
    if chip.tiled:
        blocks = cost.decode_blocks(batch, kv_heads, keys, DECODE_CHUNK, chip.practice("decode_splits"))
        parts["cores"] = cost.decode_core_time(blocks, chip.part("cores"), chip.practice("decode_block_time"), moved, chip.load("core_load"))
        peak, efficiency = chip.part("peak_vector"), chip.practice("vector_efficiency")
        group, single = heads / kv_heads, chip.part("single_query_on_vector")
        parts["compute"] = cost.decode_vector_time(flops, peak, efficiency, group, WIDEST_GROUP, single)
        core = smooth_maximum(smooth_maximum(memory, parts["cores"], OVERLAP), parts["compute"], OVERLAP)
    stages = kernel_time(library.practice("decode_stages"), chip.practice("kernel_stage"))
    launches = kernel_time(library.practice("attention_launches"), chip.practice("kernel_launch"))
    parts["latency"] = total("latency", (stages, launches))
    return Kernel(total("attention", (core, stages, launches)), parts, flops, moved)
