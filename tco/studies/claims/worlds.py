"""Claims on whole UltraServers: sums over their chips, and one generation over the other."""

from __future__ import annotations

from tco.studies.claims.context import Context, computes

GEN2, GEN1, TRN2 = "trn3-nl72x2", "trn3-nl32x2", "trn2-nl32x2-3d"


def summed(c: Context, system: str, attribute: str) -> float:
    """Return an attribute of the chip summed over one world."""
    return c.chips(system) * c.chip(system, attribute)


@computes("C033")
def peak_ratio(c: Context) -> float:
    """FP8 peaks of the worlds."""
    return summed(c, GEN2, "peak_fp8") / summed(c, TRN2, "peak_fp8")


@computes("C034")
def bandwidth_ratio(c: Context) -> float:
    """HBM bandwidths of the worlds."""
    return summed(c, GEN2, "hbm_bandwidth") / summed(c, TRN2, "hbm_bandwidth")


@computes("C035")
def efficiency_ratio(c: Context) -> float:
    """FP8 peak per watt of the worlds, watts by their bills."""
    return peak_ratio(c) * c.power(TRN2) / c.power(GEN2)


@computes("C037", "%")
def power_saved(c: Context) -> float:
    """What the efficiency the same source claims would save."""
    return 1 - 1 / c.claimed("C035")


@computes("C038", "PFLOP/s")
def gen2_peak(c: Context) -> float:
    """FP8 peak over all chips."""
    return summed(c, GEN2, "peak_fp8")


@computes("C039", "PFLOP/s")
def gen1_peak(c: Context) -> float:
    """FP8 peak over all chips."""
    return summed(c, GEN1, "peak_fp8")


@computes("C040", "TB/s")
def gen2_bandwidth(c: Context) -> float:
    """HBM bandwidth over all chips."""
    return summed(c, GEN2, "hbm_bandwidth")


@computes("C041", "TB/s")
def gen2_injection(c: Context) -> float:
    """What all chips can send over the fabric, per direction."""
    scope = c.scope(GEN2)
    return scope.chips * float(scope.injection)


@computes("C045", "TB/s")
def gen1_bandwidth(c: Context) -> float:
    """HBM bandwidth over all chips."""
    return summed(c, GEN1, "hbm_bandwidth")


@computes("C046", "PFLOP/s")
def trn2_peak(c: Context) -> float:
    """FP8 peak over all chips."""
    return summed(c, TRN2, "peak_fp8")


@computes("C048", "TB/s")
def trn2_bandwidth(c: Context) -> float:
    """HBM bandwidth over all chips."""
    return summed(c, TRN2, "hbm_bandwidth")


@computes("C049")
def gen1_relative(c: Context) -> float:
    """FP8 peaks of the worlds."""
    return summed(c, GEN1, "peak_fp8") / summed(c, TRN2, "peak_fp8")
