"""Claims on engines and number formats: peaks, clocks, intensities."""

from __future__ import annotations

from tco.hardware.chip import systolic_peak
from tco.models.architecture import load_model
from tco.performance.chip.roofline import block_scaled_size, machine_balance
from tco.studies.claims.context import Context, computes


def array_peak(c: Context, rows: str, cores: float) -> float:
    """Return the peak of Trainium3's array of some rows over some cores."""
    return float(systolic_peak(c.part("trn3", rows), c.part("trn3", "array_columns"), c.part("trn3", "clock"), cores))


def fp8_ratio(c: Context) -> float:
    """Return the FP8 peak of Trainium3 over Trainium2's."""
    return c.part("trn3", "peak_fp8") / c.part("trn2", "peak_fp8")


def balance(c: Context, system: str) -> float:
    """Return the BF16 intensity of a system's chip."""
    return float(machine_balance(c.chip(system, "peak_bf16"), c.chip(system, "hbm_bandwidth")))


def scaled_size(c: Context, number_format: str) -> float:
    """Return the size of a number of a block format, its share of the scale included."""
    return float(block_scaled_size(*(c.part(number_format, name) for name in ("element_size", "scale_size", "scale_block"))))


@computes("C011", "TFLOP/s")
def mx_peak_of_core(c: Context) -> float:
    """The 512 x 128 array at its clock."""
    return array_peak(c, "mx_array_rows", 1)


@computes("C012", "PFLOP/s")
def mx_peak_of_chip(c: Context) -> float:
    """The 512 x 128 arrays of all cores."""
    return array_peak(c, "mx_array_rows", c.part("trn3", "cores"))


@computes("C013", "TFLOP/s")
def bf16_peak_of_core(c: Context) -> float:
    """The 128 x 128 array at its clock."""
    return array_peak(c, "array_rows", 1)


@computes("C014", "PFLOP/s")
def bf16_peak_of_chip(c: Context) -> float:
    """The 128 x 128 arrays of all cores."""
    return array_peak(c, "array_rows", c.part("trn3", "cores"))


@computes("C015", "TFLOP/s")
def fp32_peak_of_core(c: Context) -> float:
    """The BF16 array, each product in several passes."""
    return array_peak(c, "array_rows", 1) / c.part("trn3", "fp32_passes")


@computes("C016")
def bf16_unchanged(c: Context) -> float:
    """Both peaks as the vendor states them."""
    return c.part("trn3", "peak_bf16") / c.part("trn2", "peak_bf16")


@computes("C017")
def fp8_doubled(c: Context) -> float:
    """Both peaks as the vendor states them."""
    return fp8_ratio(c)


@computes("C018")
def arrays_in_one(c: Context) -> float:
    """Rows of the two arrays; their columns are the same."""
    return c.part("trn3", "mx_array_rows") / c.part("trn3", "array_rows")


@computes("C019")
def sparsity_gain(c: Context) -> float:
    """Numbers of a 4:8 block over those kept, at best."""
    return c.part("trn3", "sparse_block") / c.part("trn3", "sparse_kept")


@computes("C020")
def exponential_gain(c: Context) -> float:
    """Rate a cycle times clock, over Trainium2's."""
    rate = [c.part(chip, "exp_rate") * c.part(chip, "vector_clock") for chip in ("trn3", "trn2")]
    return rate[0] / rate[1]


@computes("C021", "TFLOP/s")
def trn2_bf16_peak(c: Context) -> float:
    """The vendor's own page."""
    return c.part("trn2", "peak_bf16")


@computes("C023", "FLOP/byte")
def trn2_balance(c: Context) -> float:
    """Peak over bandwidth."""
    return balance(c, "trn2-nl16")


@computes("C024", "FLOP/byte")
def h100_balance(c: Context) -> float:
    """Peak over bandwidth."""
    return balance(c, "h100-hgx8")


@computes("C025", "FLOP/byte")
def tpuv6e_balance(c: Context) -> float:
    """Peak over bandwidth."""
    return balance(c, "tpuv6e-256")


def tensor_cores(c: Context, system: str) -> float:
    """Return the tensor cores of a system's GPU."""
    return c.chip(system, "cores") * c.part("nvidia-sm", "tensor_cores")


@computes("C026")
def h100_tensor_cores(c: Context) -> float:
    """Multiprocessors times the tensor cores of each."""
    return tensor_cores(c, "h100-hgx8")


@computes("C027")
def gb200_tensor_cores(c: Context) -> float:
    """Multiprocessors times the tensor cores of each."""
    return tensor_cores(c, "gb200-nvl72")


@computes("C028")
def core_memory_ratio(c: Context) -> float:
    """On-chip buffers of one core."""
    return c.part("trn3", "core_memory") / c.part("trn2", "core_memory")


@computes("C029")
def added_cores(c: Context) -> float:
    """Trainium1's cores and what the claim adds."""
    return c.part("trn1", "cores") + c.given("added")


@computes("C031")
def four_times_chip(c: Context) -> float:
    """FP8 peaks, the best of the ratios of one chip."""
    return fp8_ratio(c)


@computes("C175", "%")
def active_experts(c: Context) -> float:
    """Routed experts a token passes, of all, by the model's own configuration."""
    layers = [block.feed_forward for block in load_model(c.catalogue, "deepseek-v3").blocks]
    sparse = next(layer for layer in layers if layer.experts)
    return sparse.active / sparse.experts


@computes("C176")
def four_bit_weights(c: Context) -> float:
    """Size of an 8-bit number over a 4-bit one, scales included."""
    return scaled_size(c, "mxfp8") / scaled_size(c, "mxfp4")


@computes("C181", "bit")
def nvfp4_size(c: Context) -> float:
    """Element and its share of the block's scale."""
    return scaled_size(c, "nvfp4")


@computes("C182", "TFLOP/s")
def gb200_fp8_peak(c: Context) -> float:
    """Dense peak of one GPU."""
    return c.chip("gb200-nvl72", "peak_fp8")


@computes("C197", "FLOP/byte")
def trn4_balance(c: Context) -> float:
    """Trainium3's peak and bandwidth, each times what the claim says."""
    return float(machine_balance(c.given("compute") * c.part("trn3", "peak_fp8"), c.given("bandwidth") * c.part("trn3", "hbm_bandwidth")))
