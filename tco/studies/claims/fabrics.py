"""Claims on the scale-up fabric: lanes, links, hops, all-to-all."""

from __future__ import annotations

from math import prod

from tco.fabric.scopes import ring_neighbours
from tco.fabric.slices import lanes_rate
from tco.studies.claims.context import Context, computes

SPARE = "plane_spare"
ACTIVE = ("tray", "plane", "cross_rack")


@computes("C050", "TB/s")
def trn3_both_ways(c: Context) -> float:
    """Injection of a chip, both directions."""
    return 2 * float(c.scope("trn3-nl72x2").injection)


@computes("C051", "TB/s")
def trn2_both_ways(c: Context) -> float:
    """Injection of a chip, both directions."""
    return 2 * float(c.scope("trn2-nl32x2-3d").injection)


@computes("C052")
def generations(c: Context) -> float:
    """All lanes of Trainium3, spares included, over Trainium2's."""
    return c.link("trn3-nl72x2", *ACTIVE, SPARE) / trn2_injection(c)


@computes("C054", "GB/s")
def sled_links(c: Context) -> float:
    """The links the claim describes at the lane rate, both directions."""
    return 2 * float(lanes_rate(c.given("links") * c.given("lanes"), c.part("trn3", "lane_bandwidth")))


@computes("C056")
def gen2_worst_path(c: Context) -> float:
    """Devices on the longest of the shortest paths."""
    return float(c.scope("trn3-nl72x2").hops_worst)


@computes("C057")
def ultraserver_dimensions(c: Context) -> float:
    """Dimensions of the torus."""
    return len(c.dimensions("trn2-nl32x2-3d"))


@computes("C058")
def sku_list_dimensions(c: Context) -> float:
    """Dimensions of the torus."""
    return len(c.dimensions("trn2-nl32x2-3d"))


@computes("C059")
def all_lanes(c: Context) -> float:
    """Lanes on every medium."""
    return c.lanes("trn3-nl72x2", *ACTIVE, SPARE)


@computes("C060")
def active_lanes(c: Context) -> float:
    """Lanes on every medium, spares left out."""
    return c.lanes("trn3-nl72x2", *ACTIVE)


@computes("C061", "TB/s")
def trn3_injection(c: Context) -> float:
    """Active lanes at the lane rate."""
    return c.link("trn3-nl72x2", *ACTIVE)


@computes("C063")
def lane_rates(c: Context) -> float:
    """One lane of each generation."""
    return c.part("trn3", "lane_bandwidth") / c.part("trn2", "lane_bandwidth")


@computes("C064", "GB/s")
def front_cable(c: Context) -> float:
    """Lanes of the cable at the lane rate."""
    return float(lanes_rate(c.part("dac-pcie6-x16", "lanes"), c.part("dac-pcie6-x16", "lane_bandwidth")))


@computes("C065", "%")
def cross_rack_share(c: Context) -> float:
    """Cross-rack over active backplane lanes."""
    return c.lanes("trn3-nl72x2", "cross_rack") / c.lanes("trn3-nl72x2", "plane")


@computes("C083")
def nl32_same_plane(c: Context) -> float:
    """To the same place of the next tray."""
    return c.hops("trn3-nl32x2", 0, 1, 0)


@computes("C084")
def nl32_other_plane(c: Context) -> float:
    """To the other place of the next tray."""
    return c.hops("trn3-nl32x2", 0, 1, 1)


@computes("C085")
def nl32_other_rack(c: Context) -> float:
    """To the other place of the next tray in the other rack."""
    return c.hops("trn3-nl32x2", 1, 1, 1)


@computes("C086")
def nl72_same_plane(c: Context) -> float:
    """To the same place of the next tray."""
    return c.hops("trn3-nl72x2", 0, 1, 0)


@computes("C087")
def nl72_other_plane(c: Context) -> float:
    """To another place of the next tray."""
    return c.hops("trn3-nl72x2", 0, 1, 1)


@computes("C088")
def nl72_other_rack(c: Context) -> float:
    """To another place of the next tray in the other rack."""
    return c.hops("trn3-nl72x2", 1, 1, 1)


@computes("C089")
def nl72_rack_worst(c: Context) -> float:
    """Devices on the longest of the shortest paths."""
    return float(c.scope("trn3-nl72x2", "rack").hops_worst)


@computes("C090")
def nl32_rack_worst(c: Context) -> float:
    """Devices on the longest of the shortest paths."""
    return float(c.scope("trn3-nl32x2", "rack").hops_worst)


@computes("C091")
def nl32_gen2_rack_worst(c: Context) -> float:
    """Devices on the longest of the shortest paths, with the larger switch."""
    return float(c.scope("trn3-nl32x2", "rack", switch="gen2").hops_worst)


@computes("C092")
def oversubscription(c: Context) -> float:
    """What a chip injects over the all-to-all rate of its rack."""
    rack = c.scope("trn3-nl72x2", "rack")
    return float(rack.injection) / float(rack.all_to_all)


@computes("C093", "kB")
def half_performance_size(c: Context) -> float:
    """Message that takes as long on the wires as it waits for its links."""
    torus = c.scope("trn2-nl32x2-3d")
    return (float(torus.hops_mean) + 1) * c.part("trn2", "latency") * float(torus.all_to_all)


@computes("C105", "GB/s")
def trn2_link(c: Context) -> float:
    """Lanes of a link inside the server."""
    return c.link("trn2-nl32x2-3d", "x")


@computes("C106", "GB/s")
def trn2_vertical_link(c: Context) -> float:
    """Lanes of a link between servers."""
    return c.link("trn2-nl32x2-3d", "z")


@computes("C107", "GB/s")
def trn2_injection(c: Context) -> float:
    """All links of a chip."""
    return float(c.scope("trn2-nl32x2-3d").injection)


@computes("C111")
def largest_torus(c: Context) -> float:
    """Links of equal width make rings as long as the server's, a last odd one a pair."""
    rings, odd = divmod(round(trn2_injection(c) / trn2_link(c)), 2)
    return float(c.dimensions("trn2-nl32x2-3d")[0] ** rings * 2**odd)


@computes("C112")
def torus_edges(c: Context) -> float:
    """Each chip's neighbours, every link counted at both ends."""
    return c.chips("trn2-nl16") * sum(float(ring_neighbours(size)) for size in c.dimensions("trn2-nl16")) / 2


@computes("C116")
def concept_chips(c: Context) -> float:
    """Places of the torus."""
    return float(prod(c.dimensions("trn2-4x4x16")))


@computes("C156", "Gb/s")
def nvlink6_lane(c: Context) -> float:
    """A lane's rate, both directions on one wire."""
    return 2 * c.chip("vr-nvl144", "lane_bandwidth")


@computes("C183", "Gb/s")
def nvlink5_lane(c: Context) -> float:
    """A lane's rate, one direction a wire."""
    return c.chip("gb200-nvl72", "lane_bandwidth")
