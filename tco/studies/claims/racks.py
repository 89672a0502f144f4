"""Claims on trees: chips, trays, hosts and memory of servers and racks."""

from __future__ import annotations

from tco.studies.claims.context import Context, computes


def chips_per_rack(c: Context, system: str) -> float:
    """Return the chips of one rack."""
    return c.chips(system) / c.racks(system)


@computes("C053")
def gen1_sleds(c: Context) -> float:
    """Trays that hold chips, in the whole world."""
    return c.count("trn3-nl32x2", "jbog-tray")


@computes("C055")
def gen2_sleds(c: Context) -> float:
    """Trays that hold chips, in the whole world."""
    return c.count("trn3-nl72x2", "compute-tray")


@computes("C099")
def server_connectors(c: Context) -> float:
    """Trays of a server times the connectors the claim counts on each."""
    return c.count("trn2-nl16", "jbog-tray") * c.given("connectors")


@computes("C100")
def torus_backplanes(c: Context) -> float:
    """One backplane for each server of the world."""
    return c.chips("trn3-nl32x2-3d") / c.chips("trn3-nl16")


@computes("C113")
def trn2_chips_per_rack(c: Context) -> float:
    """Servers of a rack times their chips."""
    return chips_per_rack(c, "trn2-nl16")


@computes("C114")
def server_height(c: Context) -> float:
    """Trays of a server times the rack units of each."""
    return (c.count("trn2-nl16", "jbog-tray") + c.count("trn2-nl16", "cpu-tray")) * c.given("units")


@computes("C118", "TiB")
def head_node_memory(c: Context) -> float:
    """Modules of the head tray times their size."""
    return c.count("trn2-nl16", "ddr5-dimm") * c.part("ddr5-dimm", "capacity")


@computes("C123")
def blast_radius(c: Context) -> float:
    """The whole torus, when no route leads around a hole."""
    return c.chips("trn2-nl32x2-3d")


@computes("C124")
def tpu_pod(c: Context) -> float:
    """Cubes the claim counts times the chips of one."""
    return c.given("cubes") * c.chips("tpuv7-cube64")


@computes("C137")
def nl72_chips_per_rack(c: Context) -> float:
    """Trays of a rack times their chips."""
    return chips_per_rack(c, "trn3-nl72x2")


@computes("C138")
def nl72_chips(c: Context) -> float:
    """Racks times trays times their chips."""
    return c.chips("trn3-nl72x2")


@computes("C139")
def nl72_hosts(c: Context) -> float:
    """Host CPUs of both racks."""
    return c.count("trn3-nl72x2", "graviton4")


@computes("C147", "GiB")
def host_memory(c: Context) -> float:
    """Modules of a tray times their size."""
    return c.count("trn3-nl72x2", "ddr5-dimm") / c.count("trn3-nl72x2", "compute-tray") * c.part("ddr5-dimm", "capacity")


@computes("C148")
def nl32_chips(c: Context) -> float:
    """Racks times trays times their chips."""
    return c.chips("trn3-nl32x2")


@computes("C149")
def nl32_host_trays(c: Context) -> float:
    """CPU trays of one rack."""
    return c.count("trn3-nl32x2", "cpu-tray") / c.racks("trn3-nl32x2")


@computes("C170")
def scale_up_world(c: Context) -> float:
    """Chips the switched fabric joins."""
    return c.chips("trn3-nl72x2")


def power_per_chip(c: Context, system: str) -> float:
    """Return the power of one chip's share of its world, by the bill."""
    return c.power(system) / c.chips(system)


@computes("C130", "kW")
def server_rack_power(c: Context) -> float:
    """The bill's power of a rack of servers."""
    return c.power("trn2-nl16") / c.racks("trn2-nl16")


@computes("C140")
def small_retimers(c: Context) -> float:
    """Retimers of the world over its trays of chips."""
    return c.count("trn3-nl32x2", "retimer-pcie6-x16") / c.count("trn3-nl32x2", "jbog-tray")


@computes("C141")
def large_retimers(c: Context) -> float:
    """Retimers of the world over its trays of chips."""
    return c.count("trn3-nl72x2", "retimer-pcie6-x16") / c.count("trn3-nl72x2", "compute-tray")


@computes("C150")
def power_alike(c: Context) -> float:
    """Power of a chip in the smaller world over that in the larger."""
    return power_per_chip(c, "trn3-nl32x2") / power_per_chip(c, "trn3-nl72x2")
