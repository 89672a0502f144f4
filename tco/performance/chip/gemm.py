"""The time of a matrix product on one chip: the one model that kernels, serving and training share.

GPUs cut a product into tiles over many small cores; TPUs, Trainium and Gaudi feed a few large
arrays, where waves and tiles do not exist and sides are padded instead. Chips, plans, rows and sets
of parameters may be arrays that broadcast against each other. Times are without the launch, which
callers add as they count kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tco.catalog import Catalogue
from tco.core.formula import (
    MANY,
    extent,
    formula,
    greatest,
    in_use,
    least,
    least_over,
    select,
    stack_terms,
)
from tco.core.types import JsonObject, Quantity, Settings
from tco.core.units import Pure
from tco.performance.chip import kernels as cost
from tco.performance.chip.formats import FORMATS, WIDE, Computed, element_size, unpacking_time
from tco.performance.chip.roofline import (
    achieved_bandwidth,
    achieved_rate,
    fed_bandwidth,
    padded_weights,
    smooth_maximum,
    stream_time,
)
from tco.performance.software_maturity import MEASURED, SoftwareMaturity, reached_share

# rows and columns of the result that one core holds
TILES = (
    (128.0, 256.0),
    (128.0, 128.0),
    (64.0, 128.0),
    (64.0, 64.0),
)
GROUPED = 2.0  # sharpness of the smooth maximum of grouped kernels: other tiles hide a tile's loads
SPLITS = 8  # most cores that share the inner side of a tile
PLAIN = (0, 1)  # extent of plain numbers: no axes, one number


class Chip(NamedTuple):
    """A chip as its kernels see it: its kind, and where its attributes and parameters stand."""

    values: Settings
    parts: str
    performance: str
    tiled: bool  # many small cores; else a few large arrays
    # of rates and bandwidth that is left where cores form logical devices; None for all of it
    share: Quantity | None = None
    fed: bool = False  # DMA engines of stated bandwidth bring whatever the cores read
    reach: SoftwareMaturity = MEASURED

    def part(self, part_attribute: str) -> Any:
        """Return an attribute of the part."""
        return self.values[f"{self.parts}.{part_attribute}"]

    def practice(self, practice_name: str) -> Any:
        """Return a practical parameter of the family's kernels."""
        return self.reach.parameter(self.values, f"{self.performance}.{practice_name}")

    def rate(self, peak: str, efficiency: str) -> Quantity:
        """Return the rate that large products reach."""
        rate = achieved_rate(self.part(peak), self.practice(efficiency))
        return rate if self.share is None else achieved_rate(rate, self.share)

    @property
    def held_rate(self) -> Quantity:
        """Share of its family's sustained rate that this chip's products reach.

        Better software lifts the share towards 1.
        """
        held_share: Quantity = self.part("held_rate")
        if self.reach.gap is None:
            return held_share
        return reached_share(held_share, 1.0, self.reach.gap)

    def bandwidth(self, efficiency: str) -> Quantity:
        """Return the memory bandwidth that a kind of kernel reaches."""
        memory = self.part("hbm_bandwidth")
        if self.fed:
            memory = fed_bandwidth(memory, self.part("dma_bandwidth"))
        bandwidth = achieved_bandwidth(memory, self.practice(efficiency))
        return bandwidth if self.share is None else achieved_bandwidth(bandwidth, self.share)

    def load(self, per_clock: str) -> Quantity:
        """Return the rate at which one core loads."""
        return cost.core_load_rate(self.practice(per_clock), self.part("clock"))


class Traits(NamedTuple):
    """Traits of a chip that decide the timing of its kernels."""

    tiled: bool  # many small cores; else a few large arrays
    logical: bool  # cores that software groups into logical devices
    # DMA engines bring what the cores read; experts need descriptors that are made after routing
    fed: bool = False
    dereferencing: bool = False  # engines that may read tokens through their indices


def traits_of(catalogue: Catalogue, part: str) -> Traits:
    """Return the traits of a part as stated in the catalogue.

    Args:
        catalogue: Holds the attributes of the parts.
        part: Id of the part.

    """
    array, *trait_flags = (
        catalogue.has_part_value(part, trait_attribute)
        for trait_attribute in ("array_rows", "cores_per_device", "dma_bandwidth", "dereferences")
    )
    return Traits(not array, *trait_flags)


@formula("", source="semianalysis-trn3")
def device_efficiency(cores_per_device: Pure, cores: Pure, whole_chip: Pure) -> Quantity:
    """Efficiency of a chip by its logical devices: h where one device has all cores, otherwise 1.

    h is the efficiency of a whole chip: e = h if c_device >= c, otherwise 1.
    """
    return select(cores_per_device >= cores, whole_chip, 1)


def kernels_on(
    input_values: Settings,
    chip: str,
    family: str,
    traits: Traits,
    reach: SoftwareMaturity = MEASURED,
) -> Chip:
    """Return a chip of a family with the parameters of its kernels.

    For rows of measurements both the chip and the family are `rows`.

    Args:
        input_values: Values by input path.
        chip: Id of the chip, under `parts`.
        family: Family whose practical parameters apply, under `performance`.
        traits: Traits of the chip that decide the timing of kernels.
        reach: Maturity of the software.

    """
    part, practice, share = f"parts.{chip}", f"performance.{family}", None
    if traits.logical:
        share = device_efficiency(
            input_values[f"{part}.cores_per_device"],
            input_values[f"{part}.cores"],
            input_values[f"{practice}.whole_chip_efficiency"],
        )
    return Chip(input_values, part, practice, traits.tiled, share, traits.fed, reach)


class Operands(NamedTuple):
    """Rates, sizes and latencies that time the products of a format.

    Fields may be arrays over chips or formats that have the same structure.
    """

    rate: Quantity  # of all cores busy
    input_size: Quantity
    weight_size: Quantity
    stream: Quantity  # memory bandwidth
    splits: bool  # whether kernels split the inner side between cores
    # the next six are of tiled chips
    cores: Any = None
    core: Any = None  # operations/s of one core
    load: Any = None  # bytes/s that one core loads
    stage: Any = None  # seconds of a further stage, which adds up a split inner side
    latency: Quantity = 0.0  # least seconds of a step along the inner side
    ends: Quantity = 0.0  # of a wave of tiles: first loads and last writes that nothing hides
    # sharpness of the smooth maximum of computing and moving; 1: they take turns
    overlap: Quantity = 2.0
    # of chips with large arrays: rows, rows as joined in the format, columns, least moving rows
    array: tuple[Quantity, Quantity, Quantity, Quantity] | None = None
    # operations per stored number and operations/s of the vector units, where software unpacks
    unpacking: tuple[Quantity, Quantity] | None = None
    extent: tuple[int, int] = PLAIN  # most axes and most numbers of any field


def operands(chip: Chip, form: Computed, efficiency: Any = None) -> Operands:
    """Return the rates, sizes and latencies of products in a format.

    The values are read once and serve any number of products.

    Args:
        chip: Chip with the parameters of its kernels.
        form: Number format, as the chip computes the format.
        efficiency: Share of the rates that the products reach; None for the full rates.

    """
    product_operands = _read_operands(chip, form)
    if efficiency is not None:
        if product_operands.rate is not None:
            product_operands = product_operands._replace(
                rate=achieved_rate(product_operands.rate, efficiency)
            )
        if product_operands.core is not None:
            product_operands = product_operands._replace(
                core=achieved_rate(product_operands.core, efficiency)
            )
    return product_operands._replace(
        extent=extent(
            (
                *product_operands,
                *(product_operands.array or ()),
                *(product_operands.unpacking or ()),
            )
        )
    )


def _read_operands(chip: Chip, form: Computed) -> Operands:
    """Return the operands of a format without their `extent`."""
    rate = chip.rate(form.peak, form.tile_efficiency)
    # the efficiency of 16-bit products is measured, and contains the rate that the chip holds
    if form.peak != "peak_bf16":
        rate = achieved_rate(rate, chip.held_rate)
    stored = FORMATS[form.stored]
    if stored.scales and not form.unpacked:
        vector_rate = chip.part("peak_vector")
        exposed = chip.practice("scaling_exposed")
        scales_in_hardware = chip.part(stored.scales)
        rate = cost.scaled_rate(rate, vector_rate, stored.block, exposed, scales_in_hardware)
    has_fp4_kernels = form.tile_efficiency != "tile_efficiency"
    unpacking = None
    if form.unpacked:
        unpacking = (chip.practice("unpacking_operations"), chip.part("peak_vector"))
    product_operands = Operands(
        rate=rate,
        input_size=element_size(FORMATS[form.activations].bits),
        weight_size=element_size(stored.bits),
        stream=chip.bandwidth("stream_efficiency"),
        splits=not has_fp4_kernels,
        overlap=cost.product_overlap(chip.part("asynchronous_loads")),
        unpacking=unpacking,
    )
    if chip.tiled:
        return product_operands._replace(
            cores=chip.part("cores"),
            core=cost.core_rate(rate, chip.part("cores")),
            load=chip.load("core_load"),
            stage=chip.practice("kernel_stage"),
            latency=chip.practice("fp4_inner_latency" if has_fp4_kernels else "inner_latency"),
            ends=chip.practice("tile_ends"),
        )
    joined = "array_rows" if form.peak == "peak_bf16" else "mx_array_rows"
    array_rows, rows_joined, columns, moving = (
        chip.part(array_attribute)
        for array_attribute in ("array_rows", joined, "array_columns", "array_least_moving")
    )
    return product_operands._replace(array=(array_rows, rows_joined, columns, moving))


class Product(NamedTuple):
    """A product's time without its launch, its time per bound, its work and its traffic.

    Of several products every field has an entry per product.
    """

    time: Any  # seconds
    computing: Any  # seconds of the matrix units, or of the vector units that unpack for them
    moving: Any  # seconds of memory traffic
    flops: Any
    bytes: Any


def product(
    product_operands: Operands,
    output_rows: Any,
    columns: Any,
    inner: Quantity,
    groups: Quantity | None = None,
) -> Product:
    """Return the time of a product of (rows x inner) and (inner x columns).

    Args:
        product_operands: Rates, sizes and latencies of products on the chip.
        output_rows: Rows of the result; of a grouped kernel the rows of one group, or their mean.
        columns: Columns of the result.
        inner: Length of the inner side, over which a product sums.
        groups: Number of equal products of a grouped kernel, or their mean number, such as the
            experts that tokens reach. Their tiles share the waves, and no kernel splits the inner
            side. None for a single product.

    """
    group_count = 1 if groups is None else groups
    computing = _matrix_unit_time(
        product_operands,
        output_rows,
        columns,
        inner,
        group_count,
        split=groups is None and product_operands.splits,
        hidden=groups is not None,
    )
    if product_operands.unpacking is not None:
        unpacking = unpacking_time(
            cost.products_weights(columns, inner, group_count), *product_operands.unpacking
        )
        computing = greatest("engines", (computing, unpacking))
    bytes_moved = cost.products_bytes(
        output_rows,
        columns,
        inner,
        group_count,
        product_operands.input_size,
        product_operands.weight_size,
        element_size(WIDE),
    )
    moving = stream_time(bytes_moved, product_operands.stream)
    overlap = product_operands.overlap if groups is None else GROUPED
    return Product(
        smooth_maximum(computing, moving, overlap),
        computing,
        moving,
        cost.products_flops(output_rows, columns, inner, group_count),
        bytes_moved,
    )


class Sides(NamedTuple):
    """A product by its sides: (rows x inner) and (inner x columns)."""

    rows: Quantity
    columns: Quantity
    inner: Quantity


def products(
    operand_sets: Sequence[Operands], several: Sequence[Sides], groups: Quantity | None = None
) -> Product:
    """Return the times of several products, each field with a first axis over the products.

    They are computed in one call. While a trace is recorded, and where arrays are so large that a
    call costs less than their memory, they are computed one by one; the result is the same.

    Args:
        operand_sets: Operands of each product, with equal `batching_key`.
        several: Sides of each product.
        groups: Number of equal products of each grouped kernel; None for single products.

    """
    axes, size = extent((groups, *(side for sides in several for side in sides)))
    if (
        in_use() is not None
        or max(size, *(operand_set.extent[1] for operand_set in operand_sets)) > MANY
        or len(several) == 1
    ):
        separate_products = [
            product(operand_set, sides.rows, sides.columns, sides.inner, groups)
            for operand_set, sides in zip(operand_sets, several, strict=True)
        ]
        return Product(*zip(*separate_products, strict=True))
    axes = max(axes, *(operand_set.extent[0] for operand_set in operand_sets))
    # rows that all products share broadcast, so they need no axis over the products
    has_shared_rows = all(sides.rows is several[0].rows for sides in several)
    output_rows = (
        several[0].rows if has_shared_rows else stack_terms([sides.rows for sides in several], axes)
    )
    columns = stack_terms([sides.columns for sides in several], axes)
    inner = stack_terms([sides.inner for sides in several], axes)
    joint_operands = (
        operand_sets[0]
        if all(operand_set is operand_sets[0] for operand_set in operand_sets)
        else _stack_operands(tuple(operand_sets), axes)
    )
    return product(joint_operands, output_rows, columns, inner, groups)


def batching_key(product_operands: Operands) -> Any:
    """Return the key by which operands are batched.

    Products may be computed in one call where the keys of their operands are equal. Operands of
    plain numbers without unpacking share a key where they have the same structure. All others have
    a key of their own.
    """
    if product_operands.extent == PLAIN and product_operands.unpacking is None:
        return product_operands.splits, product_operands.array is None
    return product_operands.splits, id(product_operands)


@lru_cache(maxsize=64)
def _stack_operands(operand_sets: tuple[Operands, ...], axes: int) -> Operands:
    """Return several operands of plain numbers as one, with an axis in front where they differ."""

    def column(several: tuple[Quantity, ...]) -> Any:
        if len({*several}) == 1:
            return several[0]
        return np.array(several, dtype=float).reshape(-1, *[1] * axes)

    stacked_fields: JsonObject = {
        operand_field: column(terms)
        for operand_field, terms in zip(
            Operands._fields, zip(*operand_sets, strict=True), strict=True
        )
        if operand_field != "array"
    }
    arrays = [operand_set.array for operand_set in operand_sets if operand_set.array is not None]
    return Operands(
        **stacked_fields,
        array=tuple(column(terms) for terms in zip(*arrays, strict=True)) if arrays else None,
    )


def _matrix_unit_time(
    product_operands: Operands,
    output_rows: Quantity,
    columns: Quantity,
    inner: Quantity,
    groups: Quantity,
    split: bool,
    hidden: bool,
) -> Quantity:
    """Return the seconds of the matrix units, with the best tiles and splits or padded arrays."""
    if product_operands.array is not None:
        array_rows, joined, array_columns, moving = product_operands.array
        padded = padded_weights(inner, columns, array_rows, joined, array_columns)
        return cost.array_time(output_rows, padded, groups, moving, product_operands.rate)
    return least_over(
        "tiles",
        TILES,
        _tiles_time,
        output_rows,
        columns,
        inner,
        groups,
        split,
        *_tile_arguments(product_operands, hidden),
    )


def _tile_arguments(product_operands: Operands, hidden: bool) -> tuple[Quantity, ...]:
    """Return the last nine arguments of `_tiles_time`.

    Where `hidden`, a step has no latency: kernels of many groups hide the latency behind other
    tiles. The chain of all steps along the inner side of one tile keeps it.
    """
    step_latency = 0.0 if hidden else product_operands.latency
    return (
        product_operands.cores,
        product_operands.core,
        product_operands.load,
        product_operands.stage,
        step_latency,
        product_operands.latency,
        product_operands.ends,
        product_operands.input_size,
        product_operands.weight_size,
    )


def _tiles_time(
    tile_rows: Quantity,
    tile_columns: Quantity,
    output_rows: Any,
    columns: Quantity,
    inner: Quantity,
    groups: Quantity,
    split: bool,
    cores: Quantity,
    rate: Quantity,
    load: Quantity,
    stage: Quantity,
    step_latency: Quantity,
    chain_latency: Quantity,
    ends: Quantity,
    input_size: Quantity,
    weight_size: Quantity,
) -> Any:
    """Return the seconds of products cut into tiles of one size.

    Each tile runs on one core, or on several that split the inner side where that is quicker.
    """
    tiles = cost.tiles_of(output_rows, columns, groups, tile_rows, tile_columns)
    step = cost.tile_step(
        tile_rows, tile_columns, rate, input_size, weight_size, load, step_latency
    )
    ends = cost.ends_time(ends, output_rows, tile_rows)
    unsplit_time = cost.waves_time(tiles, cores, inner, step, chain_latency, ends)
    if not split:
        return unsplit_time
    split_time = cost.split_time(tiles, cores, inner, step, SPLITS, stage, ends)
    return least("splits", (unsplit_time, split_time))


class Tiling(NamedTuple):
    """Tiling of a product: tile sides, tile count, waves and sharing cores."""

    rows: float  # of a tile
    columns: float  # of a tile
    tiles: float
    waves: float  # rounds in which the cores work off the tiles
    sharing: float  # cores that split the inner side of a tile


def tiling(
    product_operands: Operands,
    output_rows: Any,
    columns: Any,
    inner: Quantity,
    groups: Quantity | None = None,
) -> Tiling | None:
    """Return the tiling by which the quickest kernel cuts a product.

    The sides of the product are plain numbers.

    Args:
        product_operands: Rates, sizes and latencies of products on the chip.
        output_rows: Rows of the result.
        columns: Columns of the result.
        inner: Length of the inner side, over which a product sums.
        groups: Number of equal products of a grouped kernel; None for a single product.

    Returns:
        Tile sides, tile count, waves and sharing cores; None for chips with large arrays, which cut
        no tiles.

    """
    if product_operands.array is not None:
        return None
    group_count = 1 if groups is None else groups
    may_split = groups is None and product_operands.splits
    sides = (output_rows, columns, inner, group_count)
    core_arguments = _tile_arguments(product_operands, groups is not None)
    times = [_tiles_time(*tile, *sides, may_split, *core_arguments) for tile in TILES]
    best_tile = TILES[int(np.argmin(times))]
    tiles = float(cost.tiles_of(output_rows, columns, group_count, *best_tile))
    unsplit_time = _tiles_time(*best_tile, *sides, False, *core_arguments)
    waves, sharing = tiles / product_operands.cores, 1.0
    if may_split and min(times) < unsplit_time:
        sharing = min(max(product_operands.cores / tiles, 1.0), SPLITS)
    else:
        waves = np.ceil(waves - 1e-9)
    return Tiling(*best_tile, tiles, float(max(waves, 1.0)), float(sharing))
