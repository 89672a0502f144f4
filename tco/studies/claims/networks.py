"""Claims on the scale-out network: NICs, Clos reach, planes, latency."""

from __future__ import annotations

from tco.hardware.clos import clos_endpoints, edge_bandwidth, network_planes, reach_of, switch_radix
from tco.studies.claims.context import Context, computes


def radix(c: Context, switch: str, port: float) -> float:
    """Return the logical ports of a switch at a port rate."""
    return float(switch_radix(c.part(switch, "switch_capacity"), port))


def reach(c: Context, switch: str, port: float, tiers: float) -> float:
    """Return the endpoints of a non-blocking Clos of one switch."""
    return float(clos_endpoints(radix(c, switch, port), tiers))


def mixed_reach(c: Context, *switches: str) -> float:
    """Return the endpoints of a Clos of several switches, the lowest tier first."""
    return reach_of([radix(c, switch, c.given("port")) for switch in switches], 1.0)


def nic_option(c: Context, system: str, option: str) -> float:
    """Return a chip's share of the NICs behind its tray's cables to the ToR switches."""
    return c.count(system, "y-aec-400g", nic=option) * c.part("y-aec-400g", "port_bandwidth") / c.chips(system)


@computes("C108")
def trn2_scale_up_over_out(c: Context) -> float:
    """Injection of the 16-chip torus over its NICs."""
    return float(c.scope("trn2-nl16").injection) / c.chip("trn2-nl16", "scale_out_bandwidth")


@computes("C109")
def ultra_scale_up_over_out(c: Context) -> float:
    """Injection of the 64-chip torus over its NICs."""
    return float(c.scope("trn2-nl32x2-3d").injection) / c.chip("trn2-nl32x2-3d", "scale_out_bandwidth")


@computes("C110", "Gb/s")
def trn2_scale_out(c: Context) -> float:
    """NICs of a tray over its chips."""
    return c.count("trn2-nl16", "nitro-v5-200g") * c.part("nitro-v5-200g", "port_bandwidth") / c.chips("trn2-nl16")


@computes("C115", "Tb/s")
def rack_downlink(c: Context) -> float:
    """What the NICs of a rack offer its switches."""
    return float(edge_bandwidth(c.chips("trn2-nl16") / c.racks("trn2-nl16"), c.chip("trn2-nl16", "scale_out_bandwidth")))


@computes("C117")
def h100_scale_up_over_out(c: Context) -> float:
    """NVLink over the NIC."""
    return c.chip("h100-hgx8", "scale_up_bandwidth") / c.chip("h100-hgx8", "scale_out_bandwidth")


@computes("C119", "%")
def efa_latency(c: Context) -> float:
    """Packet latencies of the two generations."""
    return 1 - c.part("nitro-v5-200g", "latency") / c.part("nitro-v4-100g", "latency")


@computes("C142", "Gb/s")
def nl32_option_1(c: Context) -> float:
    """One NIC for the two chips of a tray."""
    return nic_option(c, "trn3-nl32x2", "200g")


@computes("C143", "Gb/s")
def nl32_option_2(c: Context) -> float:
    """A NIC for each chip."""
    return nic_option(c, "trn3-nl32x2", "400g")


@computes("C144", "Gb/s")
def nl72_option_1(c: Context) -> float:
    """Two NICs for the four chips of a tray."""
    return nic_option(c, "trn3-nl72x2", "200g")


@computes("C145", "Gb/s")
def nl72_option_2(c: Context) -> float:
    """A NIC for each chip."""
    return nic_option(c, "trn3-nl72x2", "400g")


@computes("C146")
def scale_out_doubled(c: Context) -> float:
    """The larger option over Trainium2-Ultra."""
    return c.chip("trn3-nl72x2", "scale_out_bandwidth", nic="400g") / c.chip("trn2-nl32x2-3d", "scale_out_bandwidth")


@computes("C158")
def two_tiers_400g(c: Context) -> float:
    """A 12.8T switch at 400G."""
    return reach(c, "tor-12t8", c.given("port"), 2)


@computes("C159")
def two_tiers_100g(c: Context) -> float:
    """A 12.8T switch at 100G."""
    return reach(c, "tor-12t8", c.given("port"), 2)


@computes("C160")
def three_tiers_100g(c: Context) -> float:
    """A 12.8T switch at 100G."""
    return reach(c, "tor-12t8", c.given("port"), 3)


@computes("C161")
def two_tiers_64_ports(c: Context) -> float:
    """A QM9700 at 400G."""
    return reach(c, "quantum-qm9700", c.given("port"), 2)


@computes("C162")
def two_tiers_51t(c: Context) -> float:
    """A 51.2T switch at 100G."""
    return reach(c, "tor-51t2", c.given("port"), 2)


def port_gain(c: Context, tiers: float) -> float:
    """Return the reach with the finer ports over that with the coarser."""
    return reach(c, "tor-12t8", c.given("fine"), tiers) / reach(c, "tor-12t8", c.given("coarse"), tiers)


@computes("C163")
def two_tier_gain(c: Context) -> float:
    """100G over 400G."""
    return port_gain(c, 2)


@computes("C164")
def three_tier_gain(c: Context) -> float:
    """100G over 400G."""
    return port_gain(c, 3)


@computes("C165")
def leaf_and_spine_25t(c: Context) -> float:
    """Leaf and spine of twice the capacity over the same ToR switch."""
    return mixed_reach(c, "tor-12t8", "tor-25t6", "tor-25t6") / mixed_reach(c, "tor-12t8", "tor-12t8", "tor-12t8")


@computes("C166")
def leaf_and_spine_51t(c: Context) -> float:
    """Leaf and spine of twice the capacity again."""
    return mixed_reach(c, "tor-12t8", "tor-51t2", "tor-51t2") / mixed_reach(c, "tor-12t8", "tor-25t6", "tor-25t6")


@computes("C167")
def qm9700_ports(c: Context) -> float:
    """Capacity over port rate."""
    return radix(c, "quantum-qm9700", c.given("port"))


@computes("C168")
def parallel_planes(c: Context) -> float:
    """A GPU's NIC over the port rate."""
    return float(network_planes(c.chip("h100-hgx8", "scale_out_bandwidth"), c.given("port")))


@computes("C169")
def million_chips(c: Context) -> float:
    """Three tiers of 12.8T at 100G."""
    return reach(c, "tor-12t8", c.given("port"), 3)
