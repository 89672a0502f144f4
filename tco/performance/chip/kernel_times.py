"""Times of whole kernels on one chip or on an array of chips, with their launches.

The kernels are products, casts, passes over rows and attention.

A kernel is asked for by its operation, its shape by name, and the library that runs it: a library's
layer casts its own wide input and makes a chain of kernels around attention, which its rows of
practice state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.core.errors import DataError
from tco.core.formula import total
from tco.core.types import JsonMapping, JsonObject, Quantity, Settings
from tco.performance.chip import kernels as cost
from tco.performance.chip.engine_corrections import Correction
from tco.performance.chip.families import family_of
from tco.performance.chip.formats import FORMATS, WIDE, Computed, element_size
from tco.performance.chip.gemm import Chip, Operands, kernels_on, operands, product, traits_of
from tco.performance.chip.roofline import (
    achieved_bandwidth,
    achieved_rate,
    attention_bytes,
    attention_flops,
    elementwise_bytes,
    exponential_rate,
    message_bytes,
    per_rank,
    repeated,
    smooth_maximum,
    stream_time,
)

OVERLAP = 4  # sharpness of the smooth maximum of kernels that hide their traffic well
QUERY_TILE = 128  # queries of one block of fused attention
DECODE_CHUNK = 1024  # keys of one block of decoding
HEAD_TILE = 64  # rows of matrix units that the query heads of one key head fill
SHAPES = {  # names of the sides a kernel is asked with
    "gemm": ("m", "n", "k"),
    "grouped": ("m", "n", "k", "groups"),
    "experts": ("tokens", "topk", "experts", "ranks", "hidden", "width", "skew", "even"),
    "prefill": ("batch", "seq_q", "seq_kv", "heads", "kv_heads", "head_dim", "value_dim", "causal"),
    "decode": ("batch", "seq_kv", "heads", "kv_heads", "head_dim"),
    "latent": ("batch", "seq_kv", "heads", "latent", "rotary"),
    "elementwise": ("m", "width", "passes", "by_row"),
}
BARE = "bare-kernel"  # the library of kernels called one at a time

Shape = JsonMapping


class KernelTime(NamedTuple):
    """A kernel's time, its parts by bound, and the least work and traffic of its shape."""

    time: Any
    parts: JsonObject
    flops: Quantity
    bytes: Quantity


class KernelLibrary(NamedTuple):
    """Kernel library, with parameters from its rows of practice."""

    values: Settings
    name: str

    def practice(self, practice_name: str) -> Any:
        """Return a parameter of the library's practice."""
        return self.values[f"performance.{self.name}.{practice_name}"]


def chip_on(catalogue: Catalogue, input_values: Settings, part: str) -> Chip:
    """Return a chip of the catalogue as its kernels see it.

    Args:
        catalogue: Holds the chip and its family.
        input_values: Values by input path.
        part: Id of the chip.

    Raises:
        DataError: No family has the chip.

    """
    return kernels_on(input_values, part, family_of(catalogue, part), traits_of(catalogue, part))


def kernel_timing(
    chip: Chip,
    operation: str,
    form: Computed,
    shape: Shape,
    library: str = BARE,
    cores: Any = None,
    learnt: Correction | None = None,
) -> KernelTime:
    """Return the time of a kernel by physics, corrected where a table says so.

    Args:
        chip: Chip that runs the kernel.
        operation: Operation of the kernel, a key of `SHAPES`.
        form: Format of the weights of a product, of the cores of attention over prompts, or of the
            cache that decoding reads.
        shape: Sides by the names of `SHAPES`, as numbers or arrays.
        library: Library that runs the kernel.
        cores: Cores of the chip that a product has to itself, where software hands them out; None
            for the whole chip.
        learnt: Correction from the table of an engine; None for physics alone.

    Returns:
        Time and its parts in s, work in FLOP and traffic in bytes. A correction changes the time
        alone.

    Raises:
        DataError: The shape lacks a side of the operation.

    """
    physical_time = _by_physics(chip, operation, form, shape, library, cores)
    return (
        physical_time
        if learnt is None
        else physical_time._replace(time=learnt.of(operation, physical_time.time, shape))
    )


def _by_physics(
    chip: Chip, operation: str, form: Computed, shape: Shape, library: str, cores: Quantity
) -> KernelTime:
    """Return the time of a kernel by physics and the practice of its library."""
    missing = [shape_key for shape_key in SHAPES[operation] if shape_key not in shape]
    if missing:
        raise DataError(
            f"{operation}: states no {', '.join(missing)}; it takes {', '.join(SHAPES[operation])}"
        )
    runs = KernelLibrary(chip.values, library)
    sides = [shape[shape_key] for shape_key in SHAPES[operation]]
    if operation == "experts":
        return _expert_layer(chip, form, runs, *sides)
    if operation == "latent":
        return _latent_decode(chip, form, runs, *sides)
    if operation in ("gemm", "grouped"):
        output_rows, columns, inner, groups = sides if operation == "grouped" else (*sides, None)
        return _product_kernel(chip, form, runs, output_rows, columns, inner, groups, cores)
    if operation == "prefill":
        return _prefill_attention_kernel(chip, form, runs, *sides)
    if operation == "decode":
        return _decode_attention_kernel(chip, form, runs, *sides)
    return elementwise(chip, *sides)


def _on_cores(chip: Chip, product_operands: Operands, cores: Quantity) -> Operands:
    chip_cores, device = chip.part("cores"), chip.part("cores_per_device")
    rate = cost.partial_rate(
        product_operands.rate,
        cores,
        chip_cores,
        device,
        chip.part("dies"),
        chip.practice("lone_core_gain"),
    )
    return product_operands._replace(
        rate=rate, stream=cost.partial_bandwidth(product_operands.stream, cores, chip_cores)
    )


def _run_by(library: KernelLibrary, product_operands: Operands) -> Operands:
    """Return operands with the rate shares that `library` achieves.

    The shares are relative to the best kernels.
    """
    share = library.practice("rate_share")
    rate = achieved_rate(product_operands.rate, share)
    core = None if product_operands.core is None else achieved_rate(product_operands.core, share)
    return product_operands._replace(
        rate=rate,
        core=core,
        stream=achieved_bandwidth(product_operands.stream, library.practice("stream_share")),
    )


def _product_kernel(
    chip: Chip,
    form: Computed,
    library: KernelLibrary,
    output_rows: Quantity,
    columns: Quantity,
    inner: Quantity,
    groups: Quantity | None,
    cores: Quantity | None,
) -> KernelTime:
    """Return the time of products whose tiles share the waves, with launch and casts.

    A framework that calls compiled programs adds the call and the copy of the result to the host.
    """
    product_operands = _run_by(library, operands(chip, form))
    if cores is not None:
        product_operands = _on_cores(chip, product_operands, cores)
    timed_product = product(product_operands, output_rows, columns, inner, groups)
    launch = chip.practice("kernel_launch")
    parts = {"compute": timed_product.computing, "memory": timed_product.moving, "latency": launch}
    terms = [launch, timed_product.time]
    if FORMATS[form.activations].casts:
        cast = _casting_time(chip, product_operands, form, output_rows, inner)
        parts["cast"] = repeated(cast, library.practice("casts_activations"))
        terms.append(parts["cast"])
    parts["call"] = cost.program_call_time(
        library.practice("call_time"),
        output_rows,
        columns,
        element_size(WIDE),
        library.practice("result_time"),
    )
    terms.append(parts["call"])
    return KernelTime(total("product", terms), parts, timed_product.flops, timed_product.bytes)


def skew_of_power_law(exponent: Any, tokens: Any, topk: Any, experts: Any) -> Any:
    """Return expert popularity skew under a power law: standard deviation over mean.

    The popularity of an expert is drawn from one token to four fifths of all tokens. Where
    there are fewer choices than experts, the popularity is drawn below two.

    Args:
        exponent: Exponent a of the power law x^-a.
        tokens: Number of tokens.
        topk: Number of experts that each token chooses.
        experts: Number of experts.

    """
    has_enough_choices = tokens * topk > experts
    return cost.power_law_scatter(
        exponent,
        np.where(has_enough_choices, 1.0, 0.01),
        np.where(has_enough_choices, np.maximum(0.8 * tokens, 1.01), 2.0),
    )


def _expert_layer(
    chip: Chip,
    form: Computed,
    library: KernelLibrary,
    tokens: Quantity,
    topk: Quantity,
    experts: Quantity,
    ranks: Quantity,
    hidden: Quantity,
    width: Quantity,
    skew: Quantity,
    even: Quantity,
) -> KernelTime:
    """Return the time of an expert layer on the busiest rank.

    It takes the gate and up product, the activation, the down product, and the move of tokens to
    their experts and back.

    `tokens` are those of all ranks, `width` the rank's part of an expert's. `skew` is how unlike
    the experts' popularity is, as standard deviation over mean; `even` says that tokens are dealt
    out in turn.
    """
    product_operands = _run_by(library, operands(chip, form))
    local = cost.group_tokens(experts, 1.0, ranks)
    load = cost.busiest_popular(
        cost.group_tokens(tokens, topk, ranks),
        ranks,
        chip.values["performance.experts.expert_imbalance"],
        local,
        skew,
        even,
    )
    reached = cost.popular_experts(load, local, skew, even)
    expert_rows = per_rank(load, reached)
    up, down = (
        product(product_operands, expert_rows, columns, inner, reached)
        for columns, inner in ((2 * width, hidden), (hidden, width))
    )
    numbers = cost.expert_numbers(width, hidden, library.practice("expert_passes"))
    touched = elementwise_bytes(load, numbers, 1.0, element_size(WIDE))
    passing = stream_time(touched, chip.bandwidth("row_efficiency"))
    latency = repeated(chip.practice("kernel_stage"), library.practice("expert_stages"))
    parts = {
        "compute": total("computing", (up.computing, down.computing)),
        "memory": total("moving", (up.moving, down.moving)),
        "passes": passing,
        "latency": latency,
    }
    flops = total("flops", (up.flops, down.flops))
    bytes_moved = total("bytes", (up.bytes, down.bytes))
    return KernelTime(
        total("experts", (up.time, down.time, passing, latency)), parts, flops, bytes_moved
    )


def _casting_time(
    chip: Chip, product_operands: Operands, form: Computed, output_rows: Quantity, inner: Quantity
) -> Quantity:
    """Return the time of casting the wide activations of a product to its format before it."""
    cast = FORMATS[form.activations]
    size = cost.quantising_size(cast.reads, element_size(WIDE), product_operands.input_size)
    moving = stream_time(message_bytes(output_rows, inner, size), chip.bandwidth("row_efficiency"))
    return total(
        "cast",
        (repeated(chip.practice("kernel_stage"), cast.casts), _over_rows(chip, inner, 1, moving)),
    )


def _over_rows(chip: Chip, width: Quantity, passes: Quantity, moving: Quantity) -> Quantity:
    if not chip.tiled:
        return moving
    return smooth_maximum(
        cost.row_time(width, passes, element_size(WIDE), chip.load("row_load")), moving, OVERLAP
    )


def elementwise(
    chip: Chip, token_rows: Quantity, width: Quantity, passes: Quantity, by_row: bool
) -> KernelTime:
    """Return the time of an elementwise kernel.

    Norms, gates and rotary embeddings go row by row, sums are flat.
    """
    touched = elementwise_bytes(token_rows, width, passes, element_size(WIDE))
    bytes_moved = cost.uncached_bytes(
        touched, chip.part("last_level_cache"), chip.practice("cache_kept")
    )
    moving = stream_time(
        bytes_moved, chip.bandwidth("row_efficiency" if by_row else "stream_efficiency")
    )
    launch = chip.practice("kernel_launch")
    time = total(
        "elementwise", (launch, _over_rows(chip, width, passes, moving) if by_row else moving)
    )
    return KernelTime(time, {"memory": moving, "latency": launch}, 0.0, touched)


def _prefill_attention_kernel(
    chip: Chip,
    form: Computed,
    library: KernelLibrary,
    batch: Quantity,
    queries: Quantity,
    key_count: Quantity,
    heads: Quantity,
    kv_heads: Quantity,
    width: Quantity,
    value_width: Quantity,
    causal: Quantity,
) -> KernelTime:
    """Return the time of fused attention over whole prompts, with its library's extra kernels."""
    if form.efficiency not in ("bf16", "fp8"):
        raise DataError(
            f"attention: computes in {form.stored}, expected a format of 8 bits or wider"
        )
    scores = cost.flash_scores(batch, heads, queries, key_count, causal, QUERY_TILE)
    rate = chip.rate(form.peak, f"flash_efficiency_{form.efficiency}")
    exponentials = exponential_rate(
        chip.part("cores"), chip.part("exponentials_per_clock"), chip.part("clock"), 1.0
    )
    softmax = cost.softmax_time(scores, chip.practice("softmax_cost"), exponentials)
    products = cost.score_product_time(scores, width, value_width, rate)
    core = cost.flash_core_time(products, softmax, chip.part("asynchronous_matrix"))
    bytes_moved = cost.flash_bytes(
        batch, queries, key_count, heads, kv_heads, width, value_width, element_size(WIDE)
    )
    memory = stream_time(bytes_moved, chip.bandwidth("stream_efficiency"))
    latency = [repeated(chip.practice("kernel_launch"), library.practice("attention_launches"))]
    latency.append(repeated(chip.practice("kernel_stage"), library.practice("prefill_stages")))
    if chip.tiled:
        exposed = chip.practice("tail_exposed")
        latency.append(
            cost.tail_time(exposed, core, scores, chip.part("cores"), QUERY_TILE, key_count)
        )
        tile_preparation = repeated(
            chip.practice("attention_preparation"), library.practice("prepares_attention")
        )
        latency.append(
            cost.preparation_time(
                tile_preparation, batch, heads, queries, QUERY_TILE, chip.part("cores")
            )
        )
    flops = attention_flops(
        queries, cost.mean_keys(key_count, causal), cost.all_heads(batch, heads), width, value_width
    )
    parts = {
        "compute": products,
        "exponentials": softmax,
        "memory": memory,
        "latency": total("latency", latency),
    }
    return KernelTime(total("attention", (core, memory, *latency)), parts, flops, bytes_moved)


def _decode_attention_kernel(
    chip: Chip,
    form: Computed,
    library: KernelLibrary,
    batch: Quantity,
    key_count: Quantity,
    heads: Quantity,
    kv_heads: Quantity,
    width: Quantity,
) -> KernelTime:
    """Return the time of attention with one query per sequence, with its library's reductions."""
    bytes_moved = attention_bytes(
        batch, key_count, 2 * kv_heads * width, element_size(FORMATS[form.stored].bits)
    )
    memory = core = stream_time(bytes_moved, chip.bandwidth("stream_efficiency"))
    flops = attention_flops(batch, key_count, heads, width, width)
    parts = {"memory": memory}
    if chip.tiled:
        blocks = cost.decode_blocks(
            batch, kv_heads, key_count, DECODE_CHUNK, chip.practice("decode_splits")
        )
        parts["cores"] = cost.decode_core_time(
            blocks,
            chip.part("cores"),
            chip.practice("decode_block_time"),
            bytes_moved,
            chip.load("core_load"),
        )
        group = heads / kv_heads
        widest = library.practice("widest_group")
        single = chip.part("single_query_on_vector")
        vector = cost.vector_time(
            flops, chip.part("peak_vector"), chip.practice("vector_efficiency")
        )
        rate = chip.rate(form.peak, f"flash_efficiency_{form.efficiency}")
        matrix = cost.latent_product_time(
            cost.all_heads(batch, kv_heads),
            key_count,
            cost.padded_heads(group, HEAD_TILE),
            width,
            width,
            rate,
        )
        parts["compute"] = cost.decode_compute_time(vector, matrix, group, widest, single)
        core = smooth_maximum(
            smooth_maximum(memory, parts["cores"], OVERLAP), parts["compute"], OVERLAP
        )
    stages = repeated(chip.practice("kernel_stage"), library.practice("decode_stages"))
    launches = repeated(chip.practice("kernel_launch"), library.practice("attention_launches"))
    parts["latency"] = total("latency", (stages, launches))
    return KernelTime(total("attention", (core, stages, launches)), parts, flops, bytes_moved)


def _latent_decode(
    chip: Chip,
    form: Computed,
    library: KernelLibrary,
    batch: Quantity,
    key_count: Quantity,
    heads: Quantity,
    latent: Quantity,
    rotary: Quantity,
) -> KernelTime:
    """Return the time of latent attention with one query per sequence.

    All heads read one cache, each entry once as key and as value.

    A cache in a format that the library's kernel does not read is widened before, which moves all
    of it.
    """
    if not chip.tiled:
        raise DataError("latent attention: timed on chips of many small cores only")
    numbers, size = latent + rotary, element_size(FORMATS[form.stored].bits)
    bytes_moved = attention_bytes(batch, key_count, numbers, size)
    head_rows = cost.padded_heads(heads, HEAD_TILE)
    flops = attention_flops(batch, key_count, heads, numbers, latent)
    rate = chip.rate(form.peak, f"latent_efficiency_{form.efficiency}")
    blocks = cost.latent_blocks(batch, key_count, chip.practice("latent_chunk"), chip.part("cores"))
    cores = cost.shared_by_cores(blocks, chip.part("cores"))
    computing = cost.latent_product_time(batch, key_count, head_rows, numbers, latent, rate)
    loading = cost.block_load_time(bytes_moved, blocks, cores, chip.load("core_load"))
    busiest_core_time = cost.on_busiest(computing, blocks, cores, chip.part("cores"))
    memory = stream_time(bytes_moved, chip.bandwidth("stream_efficiency"))
    core = smooth_maximum(smooth_maximum(busiest_core_time, loading, 2), memory, OVERLAP)
    query_bytes = elementwise_bytes(
        cost.all_heads(batch, heads),
        numbers + latent,
        chip.practice("latent_query_passes"),
        element_size(WIDE),
    )
    queries = stream_time(query_bytes, chip.part("hbm_bandwidth"))
    widening = stream_time(
        cost.widened_bytes(bytes_moved, size, library.practice("widens_cache"), element_size(WIDE)),
        chip.bandwidth("row_efficiency"),
    )
    starts = repeated(chip.practice("decode_block_time"), cores)
    stages = repeated(chip.practice("kernel_stage"), library.practice("latent_stages"))
    joining = cost.joining_time(blocks, batch, chip.practice("kernel_stage"))
    latency = total("latency", (stages, joining, starts))
    parts = {
        "compute": busiest_core_time,
        "cores": loading,
        "memory": memory,
        "queries": queries,
        "widening": widening,
        "latency": latency,
    }
    return KernelTime(
        total("attention", (core, queries, widening, stages, joining, starts)),
        parts,
        flops,
        bytes_moved,
    )
